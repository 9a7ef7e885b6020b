// From an element to its entry in a pan-private table. Everything here is fixed before any data is seen.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/errors.hpp"

namespace discreet::pan {

inline constexpr uint32_t kAbsent = UINT32_MAX;  // an element without an entry: nothing is stored about it

// An integer as both signednesses see it: an int64 column and a uint64 column agree on patterns below 2^63.
inline constexpr uint64_t kTop = uint64_t{1} << 63;

// All integers from `first` on. Entry i belongs to first + i.
class RangeIndex {
 public:
  RangeIndex(uint64_t first, bool is_signed, uint32_t size) : first_(first), signed_(is_signed), size_(size) {}
  uint32_t entries() const { return size_; }
  bool is_signed() const { return signed_; }
  uint64_t first() const { return first_; }
  bool may_have(uint64_t pattern) const { return pattern - first_ < size_; }
  uint32_t find(uint64_t pattern) const {
    const uint64_t at = pattern - first_;
    return at < size_ ? static_cast<uint32_t>(at) : kAbsent;
  }

 private:
  uint64_t first_;
  bool signed_;
  uint32_t size_;
};

// Chosen integers: a filter of one bit in sixteen that turns most others away from a small memory, then an
// open-addressed table, at most half full.
class IntegerIndex {
 public:
  IntegerIndex(std::vector<uint64_t> keys, bool is_signed, uint64_t seed)
      : keys_(std::move(keys)), signed_(is_signed), odd_(seed | 1) {
    int bits = 4;
    while ((size_t{1} << bits) < 2 * keys_.size() + 1) ++bits;
    shift_ = 64 - bits;
    filter_shift_ = shift_ - 3;
    slots_.assign(size_t{1} << bits, {0, kAbsent});
    filter_.assign((size_t{8} << bits) / 64, 0);
    for (uint32_t entry = 0; entry < keys_.size(); ++entry) {
      const uint64_t hash = mixed(keys_[entry]);
      size_t at = hash >> shift_;
      for (; slots_[at].entry != kAbsent; at = (at + 1) & (slots_.size() - 1))
        if (slots_[at].key == keys_[entry]) throw ParameterError("an element was given twice");
      slots_[at] = {keys_[entry], entry};
      filter_[hash >> (filter_shift_ + 6)] |= uint64_t{1} << (hash >> filter_shift_ & 63);
    }
  }
  uint32_t entries() const { return static_cast<uint32_t>(keys_.size()); }
  bool is_signed() const { return signed_; }
  const std::vector<uint64_t>& keys() const { return keys_; }
  bool may_have(uint64_t pattern) const {
    const uint64_t hash = mixed(pattern);
    return filter_[hash >> (filter_shift_ + 6)] >> (hash >> filter_shift_ & 63) & 1;
  }
  uint32_t find(uint64_t pattern) const {
    for (size_t at = mixed(pattern) >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.key == pattern || slot.entry == kAbsent) return slot.entry;
    }
  }

 private:
  struct __attribute__((packed)) Slot {
    uint64_t key;
    uint32_t entry;
  };
  uint64_t mixed(uint64_t pattern) const { return (pattern ^ pattern >> 32) * odd_; }

  std::vector<uint64_t> keys_;
  bool signed_;
  uint64_t odd_;
  int shift_ = 0, filter_shift_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint64_t> filter_;
};

// Chosen strings or byte strings.
class StringIndex {
 public:
  StringIndex(KeyKind kind, std::vector<std::string> keys, uint64_t seed)
      : kind_(kind), keys_(std::move(keys)), seed_(seed) {
    size_t slots = 16;
    while (slots < 2 * keys_.size() + 1) slots *= 2;
    mask_ = slots - 1;
    slots_.assign(slots, kAbsent);
    for (uint32_t entry = 0; entry < keys_.size(); ++entry) {
      size_t at = hash(keys_[entry]) & mask_;
      for (; slots_[at] != kAbsent; at = (at + 1) & mask_)
        if (keys_[slots_[at]] == keys_[entry]) throw ParameterError("an element was given twice");
      slots_[at] = entry;
    }
  }
  uint32_t entries() const { return static_cast<uint32_t>(keys_.size()); }
  KeyKind kind() const { return kind_; }
  const std::vector<std::string>& keys() const { return keys_; }
  uint32_t find(std::string_view key) const {
    for (size_t at = hash(key) & mask_;; at = (at + 1) & mask_) {
      const uint32_t entry = slots_[at];
      if (entry == kAbsent || keys_[entry] == key) return entry;
    }
  }

 private:
  uint64_t hash(std::string_view key) const {
    return hash_bytes(key.data(), static_cast<uint32_t>(key.size()), seed_);
  }
  KeyKind kind_;
  std::vector<std::string> keys_;
  HashKey seed_;
  size_t mask_ = 0;
  std::vector<uint32_t> slots_;
};

// Any element at all, hashed to one bucket of one level: level j with probability 2^-(j+1), the last level takes the
// rest. An element has one entry, so a budget need not be shared by the levels.
//
// An element is first reduced to r in the field of p = 2^61 - 1 by a polynomial in a random point over its parts (two
// of n bytes agree with probability at most (n/7 + 3)/p), then hashed by a random cubic polynomial of r: the hashes
// of any four reduced elements are independent. The kind of the key is one of the parts: 1 and "1" are two elements,
// and no kind has to be remembered, which would tell that something was seen.
class HashedIndex {
 public:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint32_t kMaxLevels = 30;  // the bits of the level and the 32 bits of the bucket are apart
  using Seeds = std::array<uint64_t, 5>;

  HashedIndex(const Seeds& seeds, uint32_t levels, uint32_t buckets)
      : seeds_(seeds), levels_(levels), buckets_(buckets) {
    for (const uint64_t seed : seeds_)
      if (seed >= kPrime) throw ParameterError("a hash seed must be below 2**61 - 1");
    if (levels < 1 || levels > kMaxLevels) throw ParameterError("levels must be from 1 to 30");
  }
  uint32_t entries() const { return levels_ * buckets_; }
  uint32_t levels() const { return levels_; }
  uint32_t buckets() const { return buckets_; }
  const Seeds& seeds() const { return seeds_; }

  uint32_t find_integer(uint64_t pattern, bool beyond_int64) const {
    uint64_t r = beyond_int64 ? 2 : 1;
    r = step(r, pattern >> 32);
    return place(step(r, pattern & UINT32_MAX));
  }
  uint32_t find_bytes(std::string_view bytes, bool text) const {
    uint64_t r = text ? 3 : 4;
    const char* p = bytes.data();
    size_t n = bytes.size();
    for (; n >= 7; p += 7, n -= 7) r = step(r, part(p, 7));
    r = step(r, part(p, n));
    return place(step(r, bytes.size()));
  }

 private:
  static uint64_t part(const char* p, size_t n) {
    uint64_t value = 0;
    if (n) std::memcpy(&value, p, n);
    return value;
  }
  static uint64_t times_plus(uint64_t a, uint64_t b, uint64_t c) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + c;
    const uint64_t sum = static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
    return sum >= kPrime ? sum - kPrime : sum;
  }
  uint64_t step(uint64_t r, uint64_t value) const { return times_plus(r, seeds_[0], value); }
  uint32_t place(uint64_t r) const {
    uint64_t h = times_plus(seeds_[4], r, seeds_[3]);
    h = times_plus(h, r, seeds_[2]);
    h = times_plus(h, r, seeds_[1]);
    const uint32_t zeros = h ? static_cast<uint32_t>(__builtin_clzll(h)) - 3 : 61;
    const uint32_t level = zeros < levels_ ? zeros : levels_ - 1;
    return level * buckets_ + static_cast<uint32_t>((h & UINT32_MAX) * buckets_ >> 32);
  }

  Seeds seeds_;
  uint32_t levels_;
  uint32_t buckets_;
};

}  // namespace discreet::pan
