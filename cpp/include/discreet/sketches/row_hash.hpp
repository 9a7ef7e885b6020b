// Hash functions of the linear sketches, with the independence their error bounds assume.
//
// Integers. A 64-bit key is the pair (x0, x1) of its 32-bit halves, and a row keeps the top 32 bits of
//
//     H(x) = (a0 + x1)(a1 + x0) + b   mod 2^64,      a0, a1, b uniform in [0, 2^64)        (pair-multiply-shift)
//
// which is strongly universal: for keys x != y the two values are uniform and independent. Proof: expanded,
// H(x) = a0 x0 + a1 x1 + x0 x1 + c with c = a0 a1 + b, and (a0, a1, c) is uniform because b is. So H(y) is uniform for
// every a0 and a1, thanks to c, and H(x) = H(y) + D with D = a0 (x0 - y0) + a1 (x1 - y1) + (x0 x1 - y0 y1), where D does
// not depend on c. Say x0 != y0 (else x1 != y1 and the same with a1): x0 - y0 is an odd number times 2^s, s <= 31, so
// a0 (x0 - y0) is uniform on the multiples of 2^s. Hence bits s to 63 of H(y) + D are uniform given H(y); bits 32 to 63
// are among them.
//
// Strings. Bytes become a polynomial over the field of p = 2^61 - 1: the length is the leading coefficient, then come
// groups of 7 bytes. Different strings are different polynomials of degree at most m = ceil(bytes / 7), so at a random
// point they agree with probability at most (m+1)/2^61 (the point is 61 random bits, and 0 may come up as p too). Two
// independent points make the digest (u, v) of 122 bits:
//
//     P[two given strings share a digest] <= ((m+1) / 2^61)^2,
//
// which every error bound counts once for each pair of items. Different digests are four 32-bit halves and go through the
// sum of two pair-multiply-shifts with one b, strongly universal by the same proof. A sketch of items of several kinds has
// integers x in the first of the two alone; a text shares all cells with x only if u = x and v = 0, which is less likely
// than a shared digest. (A negative number shares its cells with the one 2^64 above it.)
//
// From 32 bits to a cell: (H * width) >> 32, so that every cell has a probability of at most ceil(2^32 / width) / 2^32.
//
// Rows, and the signs of CountSketch, have words of their own, so they are independent of each other. The words come
// from SHAKE-256 of the summary's seed: they are taken for random. (A stream that breaks a bound more often than proved
// would tell SHAKE-256 from random bits.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/keys.hpp"

namespace discreet {

inline constexpr uint64_t kPrime61 = (1ull << 61) - 1;

// What a row hashes: one word for integers, two for strings.
struct IntDigest {
  uint64_t u;
};
struct StrDigest {
  uint64_t u, v;
  static constexpr uint64_t kNumber = UINT64_MAX;  // as v: u is an integer, which counts where its IntDigest does
};
template <class Key>
struct DigestFor;
template <>
struct DigestFor<IntKey> {
  using type = IntDigest;
};
template <>
struct DigestFor<StrKey> {
  using type = StrDigest;
};

// h * point + next modulo p, for h < p and next < 2^56; the result is below p again.
inline uint64_t polynomial_step(uint64_t h, uint64_t point, uint64_t next) {
  const unsigned __int128 x = static_cast<unsigned __int128>(h) * point + next;
  const uint64_t folded = (static_cast<uint64_t>(x) & kPrime61) + static_cast<uint64_t>(x >> 61);
  return folded >= kPrime61 ? folded - kPrime61 : folded;
}

// At most 7 bytes as a number; with n it determines them.
inline uint64_t seven_bytes(const char* p, uint32_t n) {
  if (n >= 4) return load32(p) | static_cast<uint64_t>(load32(p + n - 4)) << (8 * (n - 4));
  if (n == 0) return 0;
  return static_cast<uint8_t>(p[0]) | static_cast<uint64_t>(static_cast<uint8_t>(p[n >> 1])) << 8 |
         static_cast<uint64_t>(static_cast<uint8_t>(p[n - 1])) << 16;
}

// One strongly universal function of a digest.
struct RowFunction {
  uint64_t a0, a1, a2, a3, b;

  uint32_t operator()(IntDigest d) const {
    return static_cast<uint32_t>(((a0 + (d.u >> 32)) * (a1 + (d.u & 0xffffffff)) + b) >> 32);
  }
  uint32_t operator()(StrDigest d) const {
    const uint64_t first = (a0 + (d.u >> 32)) * (a1 + (d.u & 0xffffffff));
    const uint64_t is_text = d.v == StrDigest::kNumber ? 0 : UINT64_MAX;
    const uint64_t second = (a2 + (d.v >> 32)) * (a3 + (d.v & 0xffffffff)) & is_text;
    return static_cast<uint32_t>((first + second + b) >> 32);
  }
};

// All functions of one sketch.
class RowHashes {
 public:
  static size_t words(uint64_t depth) { return 3 + 10 * depth; }

  // `random` holds words(depth) words.
  RowHashes(uint64_t depth, const uint64_t* random, bool first_version)
      : point_u_(reduced(random[0])), point_v_(reduced(random[1])), table_seed_(random[2], first_version) {
    random += 3;
    for (uint64_t row = 0; row < depth; ++row, random += 10) {
      cells_.push_back({random[0], random[1], random[2], random[3], random[4]});
      signs_.push_back({random[5], random[6], random[7], random[8], random[9]});
    }
  }

  uint64_t depth() const { return cells_.size(); }
  const HashKey& table_seed() const { return table_seed_; }
  const RowFunction& cell(size_t row) const { return cells_[row]; }
  const RowFunction& sign(size_t row) const { return signs_[row]; }

  IntDigest digest(IntKey key) const { return {key.value}; }
  StrDigest digest(StrKey key) const {
    if (key.is_number()) return {load64(key.data), StrDigest::kNumber};
    const char* p = key.data;
    uint32_t n = key.size;
    // With the length comes the kind, so that "a" and b"a" are different polynomials (not so in states of version 1).
    const uint64_t lead = n | static_cast<uint64_t>(key.tag == Tag::bytes && !table_seed_.first_version) << 32;
    StrDigest d{lead, lead};
    for (; n >= 8; p += 7, n -= 7) {
      const uint64_t group = load64(p) & 0xffffffffffffffull;
      d = {polynomial_step(d.u, point_u_, group), polynomial_step(d.v, point_v_, group)};
    }
    if (n) {
      const uint64_t group = seven_bytes(p, n);
      d = {polynomial_step(d.u, point_u_, group), polynomial_step(d.v, point_v_, group)};
    }
    return d;
  }

 private:
  static uint64_t reduced(uint64_t word) {
    const uint64_t point = word >> 3;
    return point == kPrime61 ? 0 : point;
  }

  uint64_t point_u_, point_v_;
  HashKey table_seed_;
  std::vector<RowFunction> cells_, signs_;
};

}  // namespace discreet
