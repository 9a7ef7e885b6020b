// Keyed 64-bit hashing of keys, for tables and for the fixed order of zero counters.
//
// The seed is drawn once per summary, independently of the stream, and travels in its state: whoever writes the
// stream cannot aim for collisions, and neighbouring streams see the same order. These hashes carry no proof of
// independence; the linear sketches, whose error bounds need one, have their own.
#pragma once

#include <cstdint>
#include <cstring>

namespace discreet {

inline uint64_t load64(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
inline uint32_t load32(const char* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

// Multiply to 128 bits and fold: every input bit reaches every output bit.
inline uint64_t fold(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline constexpr uint64_t kMixA = 0x9e3779b97f4a7c15ull;  // odd, with balanced bits
inline constexpr uint64_t kMixB = 0xd1b54a32d192ed03ull;
inline constexpr uint64_t kMixC = 0x8cb92ba72f3d8dd7ull;

inline uint64_t hash_int(uint64_t x, uint64_t seed) { return fold(fold(x ^ seed, kMixA) ^ x, kMixB ^ seed); }

// Two words that hold all bytes of a string of at most 16 bytes; with the length they determine it.
inline void short_words(const char* p, uint32_t n, uint64_t& a, uint64_t& b) {
  if (n >= 8) {
    a = load64(p);
    b = load64(p + n - 8);
  } else if (n >= 4) {
    a = load32(p);
    b = load32(p + n - 4);
  } else if (n > 0) {
    a = static_cast<uint8_t>(p[0]) | static_cast<uint64_t>(static_cast<uint8_t>(p[n >> 1])) << 8 |
        static_cast<uint64_t>(static_cast<uint8_t>(p[n - 1])) << 16;
    b = 0;
  } else {
    a = b = 0;
  }
}

inline uint64_t hash_bytes(const char* p, uint32_t n, uint64_t seed) {
  uint64_t h = seed ^ (kMixA * (n + 1ull));
  while (n > 16) {
    h = fold(load64(p) ^ h, load64(p + 8) ^ seed ^ kMixB);  // keyed on both sides: nobody can make a factor zero
    p += 16;
    n -= 16;
  }
  uint64_t a, b;
  short_words(p, n, a, b);
  return fold(fold(a ^ h ^ kMixC, b ^ seed ^ kMixB) ^ h, kMixA);
}

}  // namespace discreet
