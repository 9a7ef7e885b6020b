// Snappy, decompressed without trusting it: literals and copies of what came before, each with its length in a tag.
//
// Room after the end of both buffers (page_memory.hpp) lets short pieces be copied 16 bytes at a time, whatever their
// length. Part of the Parquet decoder, which is fenced and frozen: see parquet_items.hpp.
#pragma once

#include <cstdint>
#include <cstring>

#include "discreet/errors.hpp"
#include "discreet/hash.hpp"

namespace discreet {

namespace snappy {

[[noreturn]] inline void fail() { throw DataError("compressed data is damaged"); }

// The length that the data says it has, which begins it; `p` goes past it.
inline uint64_t length(const uint8_t*& p, const uint8_t* end) {
  uint64_t n = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (p == end) fail();
    const uint8_t b = *p++;
    n |= static_cast<uint64_t>(b & 127) << shift;
    if (!(b & 128)) return n;
  }
  fail();
}

inline void copy16(uint8_t* to, const uint8_t* from) {
  char piece[16];
  std::memcpy(piece, from, 16);
  std::memcpy(to, piece, 16);
}

// `n` bytes from `offset` back, which may overlap those that are written. Writes up to 16 bytes more.
inline void copy_back(uint8_t* to, size_t offset, size_t n) {
  const uint8_t* from = to - offset;
  if (offset >= 16) [[likely]] {
    copy16(to, from);
    for (size_t done = 16; done < n; done += 16) copy16(to + done, from + done);
  } else {
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
  }
}

}  // namespace snappy

// Fills `out` with exactly `size` bytes, or throws. Both buffers have kSlack bytes after their end.
inline void snappy_decompress(const char* data, size_t bytes, char* out, size_t size) {
  const auto* p = reinterpret_cast<const uint8_t*>(data);
  const uint8_t* const end = p + bytes;
  if (snappy::length(p, end) != size) snappy::fail();
  auto* const begin = reinterpret_cast<uint8_t*>(out);
  uint8_t* to = begin;
  uint8_t* const last = begin + size;
  while (p < end) {
    const uint8_t tag = *p++;  // what follows it lies in the data or in its slack until it is checked
    size_t n = static_cast<size_t>(tag >> 2) + 1, offset;
    switch (tag & 3) {
      case 0: {
        if (n > 60) {  // the length is in the next one to four bytes
          const size_t more = n - 60;
          n = (static_cast<size_t>(load32(reinterpret_cast<const char*>(p))) & (0xffffffffu >> (32 - 8 * more))) + 1;
          p += more;
        }
        if (p > end || n > static_cast<size_t>(end - p) || n > static_cast<size_t>(last - to)) snappy::fail();
        if (n <= 16) {
          snappy::copy16(to, p);
        } else {
          std::memcpy(to, p, n);
        }
        p += n;
        to += n;
        continue;
      }
      case 1:
        n = static_cast<size_t>(tag >> 2 & 7) + 4;
        offset = static_cast<size_t>(tag >> 5) << 8 | *p;
        p += 1;
        break;
      case 2:
        offset = load32(reinterpret_cast<const char*>(p)) & 0xffff;
        p += 2;
        break;
      default:
        offset = load32(reinterpret_cast<const char*>(p));
        p += 4;
    }
    if (p > end || offset == 0 || offset > static_cast<size_t>(to - begin) || n > static_cast<size_t>(last - to))
      snappy::fail();
    snappy::copy_back(to, offset, n);
    to += n;
  }
  if (to != last) snappy::fail();
}

}  // namespace discreet
