// Rows of people and items, both known by numbers, grouped in memory: sorted once, then gone through once a question.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/hash.hpp"

namespace discreet {

// One pair for every person and item, in the order of the persons, with how often it occurred or what its rows add up
// to. Nothing of what is returned depends on the order in which rows came: all sums are of whole numbers.
class Pairs {
 public:
  enum class Entry : uint8_t { present, times, sums };

  // Vectors are at most `length` steps long; of times, or sums, at most `most` count.
  Pairs(Entry entry, int64_t length, int64_t most)
      : entry_(entry), whole_(static_cast<double>(length - 1)), most_(most) {}

  uint64_t rows() const { return rows_; }
  uint32_t items() const { return items_; }

  // Rows with a negative number are left out. `values` is null unless entries are sums.
  void add(const int32_t* users, const int32_t* items, const int64_t* values, size_t n) {
    keys_.emplace_back();
    values_.emplace_back();
    keys_.back().reserve(n);
    if (entry_ == Entry::sums) values_.back().reserve(n);
    for (size_t row = 0; row < n; ++row) {
      if ((users[row] | items[row]) < 0) continue;
      keys_.back().push_back(static_cast<uint64_t>(users[row]) << 32 | static_cast<uint32_t>(items[row]));
      if (entry_ == Entry::sums) values_.back().push_back(values[row]);
    }
    rows_ += keys_.back().size();
  }

  // Groups the rows; none may be added from here on.
  void group() {
    uint64_t all = 0;
    for (const auto& block : keys_)
      for (const uint64_t key : block) {
        all |= key;
        items_ = std::max(items_, static_cast<uint32_t>(key) + 1);
      }
    if (entry_ == Entry::sums) {
      sort<true>(all);
    } else {
      sort<false>(all);
    }
    merge();
  }

  // The sum over people of what each gives its items: trunc(length/sqrt(d)) for d of them. Of more than `most_items`
  // a random choice takes part: by a hash of the item's key, which must depend on the item alone, and of all keys of
  // the person. So a choice depends on this person alone, and people with other items choose anew.
  std::vector<int64_t> discovery(uint64_t most_items, const uint64_t* keys) const {
    std::vector<int64_t> sums(items_, 0);
    std::vector<int64_t> weights(most_items + 1, 0);
    for (uint64_t d = 1; d <= most_items; ++d)
      weights[d] = static_cast<int64_t>(std::trunc(whole_ / std::sqrt(static_cast<double>(d))));
    std::vector<std::pair<uint64_t, uint32_t>> choice;
    for_people([&](size_t begin, size_t end) {
      if (end - begin <= most_items) {
        const int64_t weight = weights[end - begin];
        for (size_t at = begin; at < end; ++at) sums[item(at)] += weight;
        return;
      }
      choice.clear();
      uint64_t all = 0;
      for (size_t at = begin; at < end; ++at) all ^= keys[item(at)];
      for (size_t at = begin; at < end; ++at) choice.emplace_back(splitmix(keys[item(at)] ^ splitmix(all)), item(at));
      std::nth_element(choice.begin(), choice.begin() + static_cast<int64_t>(most_items), choice.end());
      for (uint64_t i = 0; i < most_items; ++i) sums[choice[i].second] += weights[most_items];
    });
    return sums;
  }

  // The squared lengths of the vectors weight * entry over the chosen items, of all people for whom it is not zero.
  // `index` says for every item which of the chosen it is, or -1.
  std::vector<double> lengths(const int32_t* index, const int64_t* weights) const {
    std::vector<double> out;
    for_people([&](size_t begin, size_t end) {
      if (const double squared = squared_length(begin, end, index, weights); squared > 0) out.push_back(squared);
    });
    return out;
  }

  // For each of the chosen items the sum over people of trunc(length v / max(longest, |v|)).
  std::vector<int64_t> scaled_sums(const int32_t* index, const int64_t* weights, size_t chosen, double longest) const {
    std::vector<int64_t> sums(chosen, 0);
    for_people([&](size_t begin, size_t end) {
      const double squared = squared_length(begin, end, index, weights);
      if (squared <= 0) return;
      const double by = std::max(std::sqrt(squared), longest);
      for (size_t at = begin; at < end; ++at)
        if (const int32_t i = index[item(at)]; i >= 0)
          sums[static_cast<size_t>(i)] +=
              static_cast<int64_t>(std::trunc(whole_ * static_cast<double>(entry(at) * weights[i]) / by));
    });
    return sums;
  }

 private:
  static constexpr int kDigit = 11;

  uint32_t item(size_t at) const { return static_cast<uint32_t>(pairs_[at]); }
  int64_t entry(size_t at) const { return entry_ == Entry::present ? 1 : std::min(sums_[at], most_); }

  template <class F>
  void for_people(F&& f) const {
    for (size_t begin = 0, end; begin < pairs_.size(); begin = end) {
      const uint64_t user = pairs_[begin] >> 32;
      for (end = begin + 1; end < pairs_.size() && pairs_[end] >> 32 == user;) ++end;
      f(begin, end);
    }
  }

  // Exact, and then rounded as DuckDB rounds its 128 bits.
  double squared_length(size_t begin, size_t end, const int32_t* index, const int64_t* weights) const {
    unsigned __int128 squared = 0;
    for (size_t at = begin; at < end; ++at)
      if (const int32_t i = index[item(at)]; i >= 0) {
        const int64_t v = entry(at) * weights[i];
        squared += static_cast<unsigned __int128>(static_cast<__int128>(v) * v);
      }
    return static_cast<double>(static_cast<uint64_t>(squared >> 64)) * 0x1p64 +
           static_cast<double>(static_cast<uint64_t>(squared));
  }

  // From the lowest digit to the highest; the digits of items and those of users, as many as are in use.
  template <bool with_values>
  void sort(uint64_t all) {
    std::vector<uint64_t> other(rows_);
    std::vector<int64_t> other_values(with_values ? rows_ : 0);
    pairs_.resize(rows_);
    sums_.resize(with_values ? rows_ : 0);
    bool first = true;
    for (const int base : {0, 32}) {
      const int bits = std::max(1, static_cast<int>(std::bit_width(static_cast<uint32_t>(all >> base))));
      const int digits = (bits + kDigit - 1) / kDigit;
      const int width = (bits + digits - 1) / digits;
      for (int digit = 0; digit < digits; ++digit) {
        const int shift = base + digit * width;
        const uint64_t mask = (1ull << std::min(width, bits - digit * width)) - 1;
        std::vector<uint64_t> at(static_cast<size_t>(mask) + 2, 0);
        const auto place = [&](const std::vector<uint64_t>& keys, const std::vector<int64_t>& values) {
          for (size_t row = 0; row < keys.size(); ++row) {
            const uint64_t to = at[keys[row] >> shift & mask]++;
            other[to] = keys[row];
            if constexpr (with_values) other_values[to] = values[row];
          }
        };
        const auto count = [&](const std::vector<uint64_t>& keys) {
          for (const uint64_t key : keys) ++at[(key >> shift & mask) + 1];
        };
        if (first) {
          for (const auto& block : keys_) count(block);
        } else {
          count(pairs_);
        }
        for (size_t i = 1; i < at.size(); ++i) at[i] += at[i - 1];
        if (first) {
          for (size_t block = 0; block < keys_.size(); ++block) {
            place(keys_[block], values_[block]);
            std::vector<uint64_t>().swap(keys_[block]);
            std::vector<int64_t>().swap(values_[block]);
          }
        } else {
          place(pairs_, sums_);
        }
        first = false;
        pairs_.swap(other);
        sums_.swap(other_values);
      }
    }
    keys_.clear();
    values_.clear();
  }

  // Equal pairs become one.
  void merge() {
    if (entry_ == Entry::times) sums_.assign(pairs_.size(), 1);
    size_t out = 0;
    for (size_t at = 0; at < pairs_.size(); ++at) {
      const bool same = out > 0 && pairs_[out - 1] == pairs_[at];
      if (entry_ != Entry::present) {
        if (same) {
          sums_[out - 1] += sums_[at];
        } else {
          sums_[out] = sums_[at];
        }
      }
      if (!same) pairs_[out++] = pairs_[at];
    }
    pairs_.resize(out);
    if (entry_ != Entry::present) sums_.resize(out);
  }

  Entry entry_;
  double whole_;
  int64_t most_;
  uint64_t rows_ = 0;
  uint32_t items_ = 0;
  std::vector<std::vector<uint64_t>> keys_;  // as added
  std::vector<std::vector<int64_t>> values_;
  std::vector<uint64_t> pairs_;  // grouped: user << 32 | item
  std::vector<int64_t> sums_;
};

}  // namespace discreet
