// Pages of Parquet: their headers, and what texts and bytes without nesting are written as, read without trusting it.
//
// A page is a header (Thrift), levels that say which rows are null, and values: PLAIN, each with its length before it, or
// indices into the dictionary that begins the chunk. Texts are not copied: a column of PLAIN values is the decompressed
// page with the places of its texts.
//
// Part of the Parquet decoder, which is fenced and frozen: see parquet_items.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "discreet/hash.hpp"
#include "discreet/readers/snappy.hpp"
#include "discreet/readers/thrift.hpp"

namespace discreet {

struct ParquetPage {
  enum Type : int64_t { data = 0, index = 1, dictionary = 2, data_2 = 3 };
  enum Encoding : int64_t { plain = 0, plain_dictionary = 2, rle = 3, rle_dictionary = 8 };
  int64_t type = -1, values = -1, encoding = -1;
  int64_t uncompressed = -1, compressed = -1;  // bytes after the header
  int64_t levels_encoding = rle;               // of data
  int64_t definition_bytes = 0, repetition_bytes = 0;  // of data_2
  bool is_compressed = true;
  std::optional<uint32_t> checksum;
  uint64_t at = 0;  // where in the file it begins, after its header

  bool has_indices() const { return encoding == plain_dictionary || encoding == rle_dictionary; }
};

namespace parquet {

inline void data_page(ThriftReader& in, ParquetPage& page) {
  in.fields([&](int64_t id, ThriftReader::Type type) {
    if (type != ThriftReader::i32 || id > 3) return in.skip(type);
    (id == 1 ? page.values : id == 2 ? page.encoding : page.levels_encoding) = in.integer();
  });
}
inline void dictionary_page(ThriftReader& in, ParquetPage& page) {
  in.fields([&](int64_t id, ThriftReader::Type type) {
    if (type != ThriftReader::i32 || id > 2) return in.skip(type);
    (id == 1 ? page.values : page.encoding) = in.integer();
  });
}
inline void data_page_2(ThriftReader& in, ParquetPage& page) {
  in.fields([&](int64_t id, ThriftReader::Type type) {
    if (id == 7 && (type == ThriftReader::yes || type == ThriftReader::no)) {
      page.is_compressed = type == ThriftReader::yes;
    } else if (type == ThriftReader::i32 && (id == 1 || id == 4 || id == 5 || id == 6)) {
      (id == 1   ? page.values
       : id == 4 ? page.encoding
       : id == 5 ? page.definition_bytes
                 : page.repetition_bytes) = in.integer();
    } else {
      in.skip(type);
    }
  });
}

}  // namespace parquet

inline ParquetPage parquet_page(ThriftReader& in) {
  ParquetPage page;
  in.fields([&](int64_t id, ThriftReader::Type type) {
    if (type == ThriftReader::i32 && id >= 1 && id <= 4) {
      const int64_t value = in.integer();
      if (id == 4) page.checksum = static_cast<uint32_t>(value);
      if (id < 4) (id == 1 ? page.type : id == 2 ? page.uncompressed : page.compressed) = value;
    } else if (type == ThriftReader::structure && id == 5) {
      parquet::data_page(in, page);
    } else if (type == ThriftReader::structure && id == 7) {
      parquet::dictionary_page(in, page);
    } else if (type == ThriftReader::structure && id == 8) {
      parquet::data_page_2(in, page);
    } else {
      in.skip(type);
    }
  });
  return page;
}

// CRC-32 as in gzip, eight bytes at a time.
inline uint32_t crc32(const char* data, size_t n) {
  static const auto tables = [] {
    std::array<std::array<uint32_t, 256>, 8> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
      t[0][i] = c;
    }
    for (size_t k = 1; k < 8; ++k)
      for (size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
    return t;
  }();
  uint32_t c = ~0u;
  for (; n >= 8; data += 8, n -= 8) {
    const uint64_t w = load64(data) ^ c;
    c = 0;
    for (size_t k = 0; k < 8; ++k) c ^= tables[7 - k][w >> (8 * k) & 255];
  }
  for (; n; ++data, --n) c = c >> 8 ^ tables[0][(c ^ static_cast<uint8_t>(*data)) & 255];
  return ~c;
}

namespace parquet {

[[noreturn]] inline void damaged() { ThriftReader::fail(); }

// Runs of equal numbers and runs of packed ones, in turns: calls same(count, value) and packed(count, bytes) for `n`
// numbers of `width` bits. After the end of the data there are kSlack bytes that may be read.
template <class Same, class Packed>
void hybrid(std::string_view data, unsigned width, uint64_t n, Same&& same, Packed&& packed) {
  const char* p = data.data();
  const char* const end = p + data.size();
  while (n > 0) {
    uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      if (p == end || shift > 28) damaged();
      const auto b = static_cast<uint8_t>(*p++);
      head |= static_cast<uint64_t>(b & 127) << shift;
      if (!(b & 128)) break;
    }
    const auto left = static_cast<uint64_t>(end - p);
    if (head & 1) {
      const uint64_t count = std::min(n, (head >> 1) * 8);
      if ((count * width + 7) / 8 > left) damaged();
      packed(count, p);
      p += std::min(left, (head >> 1) * width);  // the last group may be cut
      n -= count;
    } else {
      const uint64_t count = std::min(n, head >> 1), bytes = (width + 7) / 8;
      if (bytes > left) damaged();
      same(count, static_cast<uint32_t>(load64(p) & ((uint64_t{1} << (8 * bytes)) - 1)));
      p += bytes;
      n -= count;
    }
  }
}

// How many of `n` rows have a value: levels of one bit.
inline uint64_t count_present(std::string_view levels, uint64_t n) {
  uint64_t there = 0;
  hybrid(
      levels, 1, n,
      [&](uint64_t count, uint32_t level) {
        if (level > 1) damaged();
        there += level * count;
      },
      [&](uint64_t count, const char* bits) {
        for (; count >= 64; count -= 64, bits += 8) there += static_cast<uint64_t>(__builtin_popcountll(load64(bits)));
        if (count) there += static_cast<uint64_t>(__builtin_popcountll(load64(bits) & ((uint64_t{1} << count) - 1)));
      });
  return there;
}

// Indices, all of them below `size`.
inline void indices(std::string_view data, uint64_t n, uint64_t size, uint32_t* out) {
  if (n == 0) return;
  if (data.empty()) damaged();
  const auto width = static_cast<uint8_t>(data.front());
  if (width > 32) damaged();
  const uint64_t mask = (uint64_t{1} << width) - 1;
  uint32_t largest = 0;
  hybrid(
      data.substr(1), width, n,
      [&](uint64_t count, uint32_t value) {
        largest = std::max(largest, value);
        std::fill_n(out, count, value);
        out += count;
      },
      [&](uint64_t count, const char* bits) {
        for (uint64_t i = 0, at = 0; i < count; ++i, at += width) {
          out[i] = static_cast<uint32_t>(load64(bits + (at >> 3)) >> (at & 7) & mask);
          largest = std::max(largest, out[i]);
        }
        out += count;
      });
  if (largest >= size) damaged();
}

// PLAIN texts: places[i] is where the i-th begins in `data`; the four bytes of the next one's length are after its end, and
// places[n] is as if there were one. They are all that is in `data`. Returns the length of the longest.
inline uint32_t places(std::string_view data, uint64_t n, int32_t* out) {
  const char* p = data.data();
  const char* const end = p + data.size();
  uint32_t longest = 0;
  for (uint64_t i = 0; i < n; ++i) {
    if (end - p < 4) damaged();
    const uint32_t size = load32(p);
    p += 4;
    if (size > static_cast<uint64_t>(end - p)) damaged();
    longest = std::max(longest, size);
    out[i] = static_cast<int32_t>(p - data.data());
    p += size;
  }
  if (p != end) damaged();  // as where levels were taken for values
  out[n] = static_cast<int32_t>(p - data.data()) + 4;
  return longest;
}

}  // namespace parquet
}  // namespace discreet
