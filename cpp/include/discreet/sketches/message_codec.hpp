// Small signed integers in few bits: the cells of noisy sketches as they travel in messages.
//
// Values become 0, 1, 2, ... for 0, -1, 1, -2, ... and are written as Rice codes: the quotient by 2^k in unary, then k
// bits. Two forms: all of them one after the other, or, where most are zero, the gaps before the others and their values.
// The writer takes whichever is shorter. What is written is a function of the values alone, in their order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "discreet/errors.hpp"

namespace discreet::codec {

inline constexpr uint32_t kEscape = 48;  // a quotient this large is followed by the whole number in 64 bits
inline constexpr uint32_t kMaxRice = 48;

class BitWriter {
 public:
  void bits(uint64_t value, uint32_t count) {
    for (; count > 0; --count) bit(value >> (count - 1) & 1);
  }
  void bit(bool value) {
    if (used_ == 0) out_.push_back(0);
    if (value) out_.back() = static_cast<char>(static_cast<uint8_t>(out_.back()) | (0x80u >> used_));
    used_ = (used_ + 1) & 7;
  }
  void rice(uint64_t value, uint32_t k) {
    const uint64_t quotient = value >> k;
    if (quotient >= kEscape) {
      for (uint32_t i = 0; i < kEscape; ++i) bit(true);
      return bits(value, 64);
    }
    for (uint64_t i = 0; i < quotient; ++i) bit(true);
    bit(false);
    bits(value, k);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
  uint32_t used_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::string_view data) : data_(data) {}
  bool bit() {
    if (position_ >= data_.size() * 8) throw DataError("message ends before its last number");
    const bool value = static_cast<uint8_t>(data_[position_ >> 3]) >> (7 - (position_ & 7)) & 1;
    ++position_;
    return value;
  }
  uint64_t bits(uint32_t count) {
    uint64_t value = 0;
    for (; count > 0; --count) value = value << 1 | bit();
    return value;
  }
  uint64_t rice(uint32_t k) {
    uint64_t quotient = 0;
    while (quotient < kEscape && bit()) ++quotient;
    if (quotient < kEscape) return quotient << k | bits(k);
    const uint64_t value = bits(64);
    if (value >> k < kEscape) throw DataError("message has a number that is not in its shortest form");
    return value;
  }
  // Nothing but the rest of the last byte, all zero, may follow.
  void finish() {
    if (data_.size() * 8 - position_ >= 8) throw DataError("message goes on after its last number");
    while (position_ < data_.size() * 8)
      if (bit()) throw DataError("message has bits set after its last number");
  }

 private:
  std::string_view data_;
  size_t position_ = 0;
};

inline uint64_t folded(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t unfolded(uint64_t value) { return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1))); }

inline uint64_t rice_bits(uint64_t value, uint32_t k) {
  const uint64_t quotient = value >> k;
  return quotient >= kEscape ? kEscape + 64 : quotient + 1 + k;
}

// The k that makes these numbers shortest, and how long they are.
inline std::pair<uint32_t, uint64_t> best_rice(const std::vector<uint64_t>& values) {
  std::pair<uint32_t, uint64_t> best{0, std::numeric_limits<uint64_t>::max() / 4};
  for (uint32_t k = 0, worse = 0; k <= kMaxRice && worse < 3; ++k) {
    uint64_t length = 0;
    for (const uint64_t value : values) length += rice_bits(value, k);
    if (length < best.second) {
      best = {k, length};
      worse = 0;
    } else {
      ++worse;
    }
  }
  return best;
}

// First a bit, whether only the nonzero values follow, and k in 6 bits. Then the values; or the k of the nonzero values in
// 6 bits, how many there are (the length of the number in 6 bits, the number), and for each its gap and its value.
inline std::string write_integers(const int64_t* values, size_t n) {
  std::vector<uint64_t> all(n), gaps, others;
  uint64_t gap = 0;
  for (size_t i = 0; i < n; ++i) {
    all[i] = folded(values[i]);
    if (values[i] == 0) {
      ++gap;
      continue;
    }
    gaps.push_back(gap);
    others.push_back(all[i] - 1);
    gap = 0;
  }
  const auto dense = best_rice(all), at = best_rice(gaps), value = best_rice(others);
  const uint32_t digits = 64 - static_cast<uint32_t>(__builtin_clzll(gaps.size() | 1));
  const bool sparse = at.second + value.second + 12 + digits < dense.second;
  BitWriter out;
  out.bit(sparse);
  out.bits(sparse ? at.first : dense.first, 6);
  if (!sparse) {
    for (const uint64_t v : all) out.rice(v, dense.first);
    return out.take();
  }
  out.bits(value.first, 6);
  out.bits(digits - 1, 6);
  out.bits(gaps.size(), digits);
  for (size_t i = 0; i < gaps.size(); ++i) {
    out.rice(gaps[i], at.first);
    out.rice(others[i], value.first);
  }
  return out.take();
}

// Exactly n values, none larger than `bound` in size.
inline void read_integers(std::string_view data, size_t n, int64_t bound, int64_t* out) {
  BitReader in(data);
  const auto parameter = [&in] {
    const uint32_t k = static_cast<uint32_t>(in.bits(6));
    if (k > kMaxRice) throw DataError("message has an unknown code");
    return k;
  };
  const auto checked = [bound](int64_t value) {
    if (value > bound || value < -bound) throw DataError("message has a value outside what its party may send");
    return value;
  };
  const bool sparse = in.bit();
  const uint32_t k = parameter();
  if (!sparse) {
    for (size_t i = 0; i < n; ++i) out[i] = checked(unfolded(in.rice(k)));
    return in.finish();
  }
  const uint32_t value_k = parameter();
  const uint64_t count = in.bits(static_cast<uint32_t>(in.bits(6)) + 1);
  if (count > n) throw DataError("message has more values than it may");
  std::fill(out, out + n, 0);
  uint64_t position = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t gap = in.rice(k);
    if (gap >= n - position) throw DataError("message has a value outside its table");
    position += gap;
    const uint64_t value = in.rice(value_k);
    if (value == std::numeric_limits<uint64_t>::max()) throw DataError("message has an unknown value");
    out[position++] = checked(unfolded(value + 1));
  }
  in.finish();
}

inline std::string pack(const uint32_t* values, size_t n, uint32_t width) {
  BitWriter out;
  for (size_t i = 0; i < n; ++i) out.bits(values[i], width);
  return out.take();
}

// Exactly n values below `limit`.
inline void unpack(std::string_view data, size_t n, uint32_t width, uint64_t limit, uint32_t* out) {
  BitReader in(data);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t value = in.bits(width);
    if (value >= limit) throw DataError("message has a value outside what its party may send");
    out[i] = static_cast<uint32_t>(value);
  }
  in.finish();
}

}  // namespace discreet::codec
