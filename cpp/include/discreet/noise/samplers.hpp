// Exact integer samplers by inversion of a table, one random word a draw.
//
// A law on the integers is written as value = +-(block * 2^block_bits + offset). The block is drawn by inversion from a
// table; the offset is uniform and accepted with probability exp(-x(block, offset)). A comparison of a uniform real U
// with a real number c is decided from the first bits of U and an enclosure of c. When these bits do not decide it,
// the draw is returned as Pending and the caller continues it with more bits and more digits of c. So the law of
// what is drawn is the law asked for, not an approximation of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "discreet/noise/random_source.hpp"

namespace discreet {

struct Pending {
  std::size_t index;      // which draw
  bool negative;          // its sign
  bool block_known;       // false: `word` is the uniform of the block; true: that of the acceptance
  int bits;               // how many bits `word` has
  std::uint64_t word;
  std::uint64_t block;
  std::uint64_t offset;
};

class IntegerLaw {
 public:
  enum class Sign { none, folded, reject_negative_zero };

  // bounds[h] = floor(2^bits * P[block <= h]) + 1, with the floor of a lower bound that is less than one unit below.
  // x(h, l) = slopes[h] * (l/m) + curvature * (l/m)^2 with m = 2^block_bits, in units of 2^-62, both rounded down, x < 1/2.
  IntegerLaw(std::vector<std::uint64_t> bounds, int bits, Sign sign, int block_bits, std::vector<std::uint64_t> slopes,
             std::uint64_t curvature)
      : bounds_(std::move(bounds)), slopes_(std::move(slopes)), curvature_(curvature), bits_(bits),
        block_bits_(block_bits), sign_(sign) {
    if (bits < 1 || bits > 63 || block_bits < 0 || block_bits > 48) throw std::invalid_argument("bad word size");
    if (bounds_.empty() || bounds_.back() < (std::uint64_t{1} << bits) - 1 ||
        !std::is_sorted(bounds_.begin(), bounds_.end()))
      throw std::invalid_argument("the table must be sorted and cover every word");
    if (block_bits > 0 && slopes_.size() != bounds_.size()) throw std::invalid_argument("one slope for each block");
    for (const std::uint64_t slope : slopes_)
      if (slope + curvature >= kOne / 2) throw std::invalid_argument("the acceptance exponent must be below 1/2");
    // One word holds offset and acceptance when enough bits remain for the acceptance.
    one_word_ = block_bits_ <= 20;
    accept_bits_ = std::min(bits_, one_word_ ? std::min(62, 64 - block_bits_) : 62);
    guide_shift_ = bits_ - std::min(bits_, 10);
    for (std::uint64_t cell = 0; cell < std::uint64_t{1} << (bits_ - guide_shift_); ++cell) {
      const auto first = std::lower_bound(bounds_.begin(), bounds_.end(), cell << guide_shift_);
      guide_.push_back(static_cast<std::uint32_t>(first - bounds_.begin()));
    }
  }

  // About how many random words so many draws take, those that are rejected among them, and rather more: beyond what was
  // expected a source reads from the system a few words at a time.
  std::size_t words(std::size_t draws) const {
    const std::size_t each = block_bits_ == 0 ? 1 : one_word_ ? 2 : 3;
    return each * draws + each * draws / 2;
  }

  // Draws number first..last into out; those not decided are left for the caller in pending.
  void draw(RandomSource& source, std::int64_t* out, std::size_t first, std::size_t last,
            std::vector<Pending>& pending) const {
    for (std::size_t i = first; i < last; ++i) {
      while (!draw_one(source, out[i], i, pending)) {
      }
    }
  }

 private:
  static constexpr std::uint64_t kOne = std::uint64_t{1} << 62;
  enum class Verdict { no, yes, unknown };

  // Returns false when the candidate was rejected.
  bool draw_one(RandomSource& source, std::int64_t& out, std::size_t index, std::vector<Pending>& pending) const {
    const std::uint64_t random = source.next();
    const bool negative = sign_ != Sign::none && (random & 1);
    const std::uint64_t word = random >> (64 - bits_);  // bits_ <= 63: the sign's bit is not among them
    std::size_t block = guide_[word >> guide_shift_];
    while (word > bounds_[block]) ++block;
    if (word + 1 >= bounds_[block]) {  // within one unit of P[block <= h]
      pending.push_back({index, negative, false, bits_, word, 0, 0});
      return true;
    }
    std::uint64_t magnitude = block;
    if (block_bits_ > 0) {
      std::uint64_t fresh = source.next();
      const std::uint64_t offset = fresh & ((std::uint64_t{1} << block_bits_) - 1);
      if (!one_word_) fresh = source.next();
      const std::uint64_t uniform = fresh >> (64 - accept_bits_);
      magnitude = (static_cast<std::uint64_t>(block) << block_bits_) + offset;
      if (magnitude == 0 && negative && sign_ == Sign::reject_negative_zero) return false;
      const Verdict verdict = accept(block, offset, uniform);
      if (verdict == Verdict::no) return false;
      if (verdict == Verdict::unknown) {
        pending.push_back({index, negative, true, accept_bits_, uniform, block, offset});
        return true;
      }
    } else if (magnitude == 0 && negative && sign_ == Sign::reject_negative_zero) {
      return false;
    }
    out = negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
    return true;
  }

  // Is U < exp(-x), for U in [uniform, uniform + 1) / 2^accept_bits? Partial sums of the series alternate around it.
  // Rounding: x is at most 5 units of 2^-62 too small, so a term is at most (5 + 1 + half the error before) / k + 1 < 8
  // units off and the sum of 16 terms less than 128.
  Verdict accept(std::size_t block, std::uint64_t offset, std::uint64_t uniform) const {
    constexpr std::uint64_t slack = 128;
    using wide = unsigned __int128;
    const auto scaled = [this, offset](std::uint64_t factor) {
      return static_cast<std::uint64_t>((wide{factor} * offset) >> block_bits_);
    };
    const std::uint64_t x = scaled(slopes_[block]) + scaled(scaled(curvature_));
    const std::uint64_t low = uniform << (62 - accept_bits_);
    const std::uint64_t high = (uniform + 1) << (62 - accept_bits_);
    std::uint64_t sum = kOne, term = kOne;
    for (std::uint64_t k = 1; k <= 16; ++k) {
      term = static_cast<std::uint64_t>((wide{term} * x) >> 62) / k;
      if (k % 2 == 1) {
        sum -= term;
        if (high + slack <= sum) return Verdict::yes;
      } else {
        sum += term;
        if (low >= sum + slack) return Verdict::no;
      }
    }
    return Verdict::unknown;
  }

  std::vector<std::uint64_t> bounds_;
  std::vector<std::uint32_t> guide_;
  std::vector<std::uint64_t> slopes_;
  std::uint64_t curvature_;
  int bits_;
  int block_bits_;
  int accept_bits_;
  int guide_shift_;
  bool one_word_;
  Sign sign_;
};

// The first `count` places of a uniform permutation of 0..population-1, in random order: Fisher-Yates on a sparse array.
inline void sample_without_replacement(RandomSource& source, std::uint64_t population, std::int64_t* out,
                                       std::size_t count) {
  std::unordered_map<std::uint64_t, std::uint64_t> moved;
  moved.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t j = i + source.below(population - i);
    const auto at_j = moved.find(j);
    out[i] = static_cast<std::int64_t>(at_j == moved.end() ? j : at_j->second);
    const auto at_i = moved.find(i);
    moved[j] = at_i == moved.end() ? i : at_i->second;
  }
}

// A uniform permutation of 0..count-1: Fisher-Yates.
inline void permutation(RandomSource& source, std::int64_t* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t j = source.below(i + 1);
    out[i] = out[j];
    out[j] = static_cast<std::int64_t>(i);
  }
}

}  // namespace discreet
