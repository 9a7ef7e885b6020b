// What the footer of a Parquet file says about its column chunks, read without trusting it.
//
// pyarrow's own accessors end the process when some numbers of a damaged footer do not fit together. Only a few are needed
// here, to choose how a chunk is read: the footer is a Thrift structure in the compact protocol, of which all other
// fields are passed over. Whether the file can be read is left to pyarrow's reader, which raises.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/errors.hpp"

namespace discreet {

struct ParquetChunk {
  uint64_t column = 0;  // which of the wanted ones
  uint64_t depth = 0;   // how many names its path has: 1 unless it is nested
  int64_t values = 0;
  int64_t uncompressed_bytes = 0;
  bool has_dictionary = false;
};

class ThriftReader {
 public:
  explicit ThriftReader(std::string_view data) : rest_(data) {}

  enum Type : uint8_t { stop, yes, no, byte, i16, i32, i64, real, binary, list, set, map, structure, uuid };

  // Calls field(id, type) for every field of a structure; it must read or skip the value.
  template <class F>
  void fields(F&& field) {
    if (++depth_ > kMaxDepth) fail();
    for (int64_t id = 0;;) {
      const uint8_t head = u8();
      if (head == stop) break;
      id = head >> 4 ? id + (head >> 4) : integer();
      field(id, static_cast<Type>(head & 15));
    }
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
      default: fail();  // the footer of a Parquet file has no maps
    }
  }
  [[noreturn]] static void fail() { throw DataError("the footer of the Parquet file is damaged"); }

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

// The chunks of the columns whose first name is `wanted`, row group by row group.
inline std::vector<std::vector<ParquetChunk>> parquet_chunks(std::string_view footer,
                                                            const std::vector<std::string>& wanted) {
  using Type = ThriftReader::Type;
  ThriftReader in(footer);
  std::vector<std::vector<ParquetChunk>> groups;
  const auto structures = [&](auto&& each) {
    const auto [n, type] = in.elements();
    if (n > 0 && type != Type::structure) ThriftReader::fail();
    for (uint64_t i = 0; i < n; ++i) each();
  };
  const auto chunk_metadata = [&](int64_t id, Type type, ParquetChunk& chunk, std::string_view& root) {
    if (id == 3 && type == Type::list) {
      const auto [n, each] = in.elements();
      if (n > 0 && each != Type::binary) ThriftReader::fail();
      chunk.depth = n;
      for (uint64_t i = 0; i < n; ++i) {
        const std::string_view name = in.bytes();
        if (i == 0) root = name;
      }
    } else if ((id == 5 || id == 6 || id == 11) && type == Type::i64) {
      const int64_t value = in.integer();
      if (id == 5) chunk.values = value;
      if (id == 6) chunk.uncompressed_bytes = value;
      if (id == 11) chunk.has_dictionary = true;
    } else {
      in.skip(type);
    }
  };
  const auto chunk = [&](std::vector<ParquetChunk>& group) {
    ParquetChunk found;
    std::string_view root;
    in.fields([&](int64_t id, Type type) {
      if (id == 3 && type == Type::structure)
        in.fields([&](int64_t inner, Type t) { chunk_metadata(inner, t, found, root); });
      else
        in.skip(type);
    });
    const auto at = std::find(wanted.begin(), wanted.end(), root);
    if (at == wanted.end()) return;
    found.column = static_cast<uint64_t>(at - wanted.begin());
    group.push_back(found);
  };
  in.fields([&](int64_t id, Type type) {
    if (id != 4 || type != Type::list) return in.skip(type);
    structures([&] {
      std::vector<ParquetChunk> group;
      in.fields([&](int64_t inner, Type t) {
        if (inner == 1 && t == Type::list)
          structures([&] { chunk(group); });
        else
          in.skip(t);
      });
      groups.push_back(std::move(group));
    });
  });
  return groups;
}

}  // namespace discreet
