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

// SplitMix64: a bijection whose outputs for the multiples of an odd number look independent.
inline uint64_t splitmix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

// What a summary hashes under: the words that its seed becomes, and which hash of bytes it was begun with.
struct HashKey {
  uint64_t seed;
  uint64_t second, third;
  bool first_version;  // of a state of version 1, which goes on with the order it began with

  explicit HashKey(uint64_t seed, bool first_version = false)
      : seed(seed), second(splitmix(seed + kMixA)), third(splitmix(seed + 2 * kMixA)), first_version(first_version) {}
};

// The hash of bytes in states of version 1, and the checksum of states. The two factors of its product are keyed with
// words whose difference is the same under every seed, so that some pairs of strings collide under all of them.
inline uint64_t first_hash_bytes(const char* p, uint32_t n, uint64_t seed) {
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

// Each product has two factors that are keyed with different words, so that neither which strings make a factor zero nor
// which strings exchange the factors is known without the seed; and the length is in the last product, so that no choice
// of the first bytes can make up for it. (wyhash and rapidhash leave one factor of short strings without a key: one
// public word makes it zero under every seed, whatever the other word is.)
inline uint64_t hash_bytes(const char* p, uint32_t n, const HashKey& key) {
  if (key.first_version) [[unlikely]]
    return first_hash_bytes(p, n, key.seed);
  const uint64_t length = n;
  uint64_t h = key.second;
  while (n > 16) {
    h = fold(load64(p) ^ h, load64(p + 8) ^ key.third);
    p += 16;
    n -= 16;
  }
  uint64_t a, b;
  short_words(p, n, a, b);
  return fold(fold(a ^ h, b ^ key.third) ^ h, kMixA + 2 * length);
}

}  // namespace discreet
