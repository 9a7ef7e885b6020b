// Thrift's compact protocol, as Parquet writes its footer and the headers of its pages, read without trusting it.
//
// Part of the Parquet decoder, which is fenced and frozen: see parquet_items.hpp.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "discreet/errors.hpp"

namespace discreet {

class ThriftReader {
 public:
  explicit ThriftReader(std::string_view data) : rest_(data) {}

  enum Type : uint8_t { stop, yes, no, byte, i16, i32, i64, real, binary, list, set, map, structure, uuid };

  // A field that the format says is there, and of which type.
  struct Required {
    int64_t id;
    Type type;
  };

  // Calls field(id, type) for every field of a structure; it must read or skip the value.
  template <class F>
  void fields(F&& field) {
    fields({}, field);
  }
  // The same of a structure that is damaged if a required field is not there, is there twice or has another type.
  template <class F>
  void fields(std::initializer_list<Required> required, F&& field) {
    if (++depth_ > kMaxDepth) fail();
    size_t missing = required.size();
    uint64_t seen = 0;  // a bit for each required field
    for (int64_t id = 0;;) {
      const uint8_t head = u8();
      if (head == stop) break;
      id = head >> 4 ? id + (head >> 4) : integer();
      const auto type = static_cast<Type>(head & 15);
      uint64_t bit = 1;
      for (const Required& one : required) {
        if (one.id == id) {
          if (one.type != type || (seen & bit)) fail();
          seen |= bit;
          --missing;
        }
        bit <<= 1;
      }
      field(id, type);
    }
    if (missing) fail();
    --depth_;
  }
  // The number of elements of a list and their type.
  std::pair<uint64_t, Type> elements() {
    const uint8_t head = u8();
    const uint64_t n = head >> 4 == 15 ? varint() : head >> 4;
    if (n > rest_.size()) fail();  // each takes a byte at least
    return {n, static_cast<Type>(head & 15)};
  }
  int64_t integer() {
    const uint64_t v = varint();
    return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1);
  }
  std::string_view bytes() {
    const uint64_t n = varint();
    if (n > rest_.size()) fail();
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  // Of a field; `in_list`: of an element, where a truth value takes a byte.
  void skip(Type type, bool in_list = false) {
    switch (type) {
      case yes:
      case no:
        if (in_list) u8();
        return;
      case byte: u8(); return;
      case i16:
      case i32:
      case i64: varint(); return;
      case real: pass(8); return;
      case uuid: pass(16); return;
      case binary: bytes(); return;
      case structure: fields([this](int64_t, Type t) { skip(t); }); return;
      case list:
      case set: {
        if (++depth_ > kMaxDepth) fail();
        const auto [n, each] = elements();
        for (uint64_t i = 0; i < n; ++i) skip(each, true);
        --depth_;
        return;
      }
      default: fail();  // Parquet has no maps
    }
  }
  size_t left() const { return rest_.size(); }
  [[noreturn]] static void fail() { throw DataError("the Parquet file is damaged"); }

 private:
  static constexpr int kMaxDepth = 24;
  uint8_t u8() {
    if (rest_.empty()) fail();
    const auto v = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return v;
  }
  uint64_t varint() {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t b = u8();
      v |= static_cast<uint64_t>(b & 127) << shift;
      if (!(b & 128)) return v;
    }
    fail();
  }
  void pass(size_t n) {
    if (n > rest_.size()) fail();
    rest_.remove_prefix(n);
  }
  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace discreet
