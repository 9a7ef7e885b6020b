// Rows of people and items, both known by numbers, grouped in memory: sorted once, then gone through once a question.
//
// Rows are split by the first digits of their persons, and each part, which fits a core's cache unless one person fills
// it, is sorted by its other digits. Threads take parts; sums are of whole numbers, so that nothing depends on which.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "discreet/errors.hpp"
#include "discreet/hash.hpp"
#include "discreet/in_threads.hpp"

namespace discreet {

// One pair for every person and item, in the order of the persons, with how often it occurred or what its rows add up
// to. Nothing of what is returned depends on the order in which rows came, nor on the number of threads.
class Pairs {
 public:
  enum class Entry : uint8_t { present, times, sums };

  // Vectors are at most `length` steps long; of times, or sums, at most `most` count.
  Pairs(Entry entry, int64_t length, int64_t most, size_t threads)
      : entry_(entry), whole_(static_cast<double>(length - 1)), most_(most), threads_(std::max<size_t>(1, threads)) {}

  uint64_t rows() const { return rows_; }
  uint32_t items() const { return items_; }
  uint64_t people() const { return people_; }
  Entry entry_kind() const { return entry_; }

  // Rows with a negative number are left out. `values` is null unless entries are sums.
  void add(const int32_t* users, const int32_t* items, const int64_t* values, size_t n) {
    if (!parts_.empty()) throw ParameterError("these rows are grouped already");
    Block block{std::vector<uint64_t>(n), std::vector<int64_t>(entry_ == Entry::sums ? n : 0)};
    uint64_t all = 0;
    uint32_t most = 0;
    uint64_t last = 0;
    size_t kept = 0;
    for (size_t row = 0; row < n; ++row) {
      if ((users[row] | items[row]) < 0) continue;
      const uint64_t key = static_cast<uint64_t>(users[row]) << 32 | static_cast<uint32_t>(items[row]);
      all |= key;
      most = std::max(most, static_cast<uint32_t>(key) + 1);
      last = std::max(last, (key >> 32) + 1);
      if (entry_ == Entry::sums) block.values[kept] = values[row];
      block.keys[kept++] = key;
    }
    block.keys.resize(kept);
    all_ |= all;
    items_ = std::max(items_, most);
    people_ = std::max(people_, last);
    rows_ += block.keys.size();
    blocks_.push_back(std::move(block));
  }

  // Groups the rows; none may be added from here on.
  void group() {
    if (entry_ == Entry::sums) {
      split<true>();
    } else {
      split<false>();
    }
    if (entry_ == Entry::times) sums_ = std::make_unique_for_overwrite<int64_t[]>(rows_);
    std::atomic<size_t> next = 0;
    in_threads(threads_for(rows_), [&](size_t) {
      std::vector<uint64_t> keys;
      std::vector<int64_t> values;
      for (size_t part; (part = next++) < parts_.size();) {
        if (entry_ == Entry::sums) {
          group_part<true>(parts_[part], keys, values);
        } else {
          group_part<false>(parts_[part], keys, values);
        }
      }
    });
  }

  // Sorts the rows that were added since the last time, and keeps each pair once: how many there are. More rows may be
  // added. Entries are `present`.
  size_t keep_each_once() {
    if (entry_ != Entry::present) throw ParameterError("entries would be lost");
    group();
    std::vector<uint64_t> both(once_.size() + rows_);
    const uint64_t *kept = once_.data(), *const end = kept + once_.size();
    uint64_t* to = both.data();
    for (const Part& part : parts_) {
      const uint64_t *pair = pairs_.get() + part.begin, *const last = pairs_.get() + part.end;
      while (kept < end && pair < last) {  // which is the smaller cannot be foreseen: no branch depends on it
        const uint64_t a = *kept, b = *pair;
        *to++ = std::min(a, b);
        kept += a <= b;
        pair += b <= a;
      }
      to = std::copy(pair, last, to);
    }
    to = std::copy(kept, end, to);
    both.resize(static_cast<size_t>(to - both.data()));
    once_ = std::move(both);
    pairs_.reset();
    parts_.clear();
    rows_ = 0;
    return once_.size();
  }

  // The pairs that are kept, in ascending order: a person's number in the upper 32 bits, an item's in the lower ones.
  std::vector<uint64_t> take_pairs() {
    keep_each_once();
    return std::move(once_);
  }

  // The sum over people of what each gives its items: trunc(length/sqrt(d)) for d of them. Of more than `most_items`
  // a random choice takes part: by a hash of the item's key, which must depend on the item alone, and of all keys of
  // the person. So a choice depends on this person alone, and people with other items choose anew.
  std::vector<int64_t> discovery(uint64_t most_items, const uint64_t* keys) const {
    std::vector<int64_t> weights(most_items + 1, 0);
    for (uint64_t d = 1; d <= most_items; ++d)
      weights[d] = static_cast<int64_t>(std::trunc(whole_ / std::sqrt(static_cast<double>(d))));
    return sums_over_people(items_, [&](std::vector<int64_t>& sums) {
      return [&, choice = Choice()](size_t begin, size_t end) mutable {
        if (end - begin <= most_items) {
          const int64_t weight = weights[end - begin];
          for (size_t at = begin; at < end; ++at) {
            __builtin_prefetch(&sums[item_after(at, kAhead)], 1);
            sums[item(at)] += weight;
          }
          return;
        }
        choose(begin, end, most_items, keys, choice);
        for (const auto& [hash, item] : choice) sums[item] += weights[most_items];
      };
    });
  }

  // For each of the chosen items the sum over people of trunc(length v / max(1, |v|)) of the vectors v that have the
  // item's weight where a person has the item, and it takes part in discovery.
  std::vector<int64_t> aimed(uint64_t most_items, const uint64_t* keys, const int32_t* index, const int64_t* weights,
                             size_t chosen) const {
    return sums_over_people(chosen, [&](std::vector<int64_t>& sums) {
      return [&, choice = Choice()](size_t begin, size_t end) mutable {
        if (end - begin <= most_items) {
          for (size_t at = begin; at < end; ++at) {
            __builtin_prefetch(&index[item_after(at, 2 * kAhead)]);
            if (const int32_t later = index[item_after(at, kAhead)]; later >= 0) {
              __builtin_prefetch(&weights[later]);
              __builtin_prefetch(&sums[static_cast<size_t>(later)], 1);
            }
          }
          add_scaled(sums, index, weights, 1.0, [&](auto&& f) {
            for (size_t at = begin; at < end; ++at) f(item(at), 1);
          });
          return;
        }
        choose(begin, end, most_items, keys, choice);
        add_scaled(sums, index, weights, 1.0, [&](auto&& f) {
          for (const auto& [hash, item] : choice) f(item, 1);
        });
      };
    });
  }

  // The items of every person that are chosen, by their index in ascending order, and how many each person has, of all
  // who have any.
  std::pair<std::vector<int64_t>, std::vector<int64_t>> holdings(const int32_t* index) const {
    std::vector<int64_t> sizes, held;
    for_people(0, 1, [&](size_t begin, size_t end) {
      const size_t before = held.size();
      for (size_t at = begin; at < end; ++at)
        if (const int32_t i = index[item(at)]; i >= 0) held.push_back(i);
      if (held.size() == before) return;
      std::sort(held.begin() + static_cast<int64_t>(before), held.end());
      sizes.push_back(static_cast<int64_t>(held.size() - before));
    });
    return {std::move(sizes), std::move(held)};
  }

  // For every item the sum over people of what their rows with it have in all: vote min(1, most/n) each for n rows of a
  // person, rounded down. So a person never has more than vote * most. `rows` says n of every person; where it is null,
  // all of their rows are here. Entries are times.
  std::vector<int64_t> votes(int64_t vote, int64_t most, const int64_t* rows) const {
    return sums_over_people(items_, [&](std::vector<int64_t>& sums) {
      return [&](size_t begin, size_t end) {
        int64_t n = rows ? rows[pairs_[begin] >> 32] : 0;
        if (!rows)
          for (size_t at = begin; at < end; ++at) n += sums_[at];
        const int64_t whole = vote * most, shared = std::max(n, most);
        for (size_t at = begin; at < end; ++at) {
          int64_t product;
          sums[item(at)] += __builtin_mul_overflow(whole, sums_[at], &product)
                                ? static_cast<int64_t>(static_cast<__int128>(whole) * sums_[at] / shared)
                                : product / shared;
        }
      };
    });
  }

  // The squared lengths of the vectors weight * entry over the chosen items, of all people for whom it is not zero.
  // `index` says for every item which of the chosen it is, or -1.
  std::vector<double> lengths(const int32_t* index, const int64_t* weights) const {
    std::vector<std::vector<double>> found(threads_for(rows_));
    in_threads(found.size(), [&](size_t share) {
      for_people(share, found.size(), [&](size_t begin, size_t end) {
        if (const double squared = squared_length(index, weights, Person{*this, begin, end}); squared > 0)
          found[share].push_back(squared);
      });
    });
    for (size_t share = 1; share < found.size(); ++share)
      found[0].insert(found[0].end(), found[share].begin(), found[share].end());
    return std::move(found[0]);
  }

  // For each of the chosen items the sum over people of trunc(length v / max(longest, |v|)).
  std::vector<int64_t> scaled_sums(const int32_t* index, const int64_t* weights, size_t chosen, double longest) const {
    return sums_over_people(chosen, [&](std::vector<int64_t>& sums) {
      return [&](size_t begin, size_t end) { add_scaled(sums, index, weights, longest, Person{*this, begin, end}); };
    });
  }

 private:
  static constexpr int kDigit = 11;
  static constexpr int kPartBits = 10;         // parts are at most 2^10: more places to write to at once are slower
  static constexpr uint64_t kFewRows = 1 << 13;  // not worth a part of their own
  static constexpr uint64_t kFewForThreads = 1 << 16;
  static constexpr size_t kAhead = 16;  // pairs

  struct Block {
    std::vector<uint64_t> keys;
    std::vector<int64_t> values;
  };
  // The pairs [begin, end), of persons that are in no other part.
  struct Part {
    size_t begin, end;
  };

  size_t threads_for(uint64_t rows) const { return rows < kFewForThreads ? 1 : threads_; }
  uint32_t item(size_t at) const { return static_cast<uint32_t>(pairs_[at]); }
  // That of a pair that comes later, or another: to ask for what it will touch, since items lie all over memory.
  uint32_t item_after(size_t at, size_t pairs) const { return item(std::min<size_t>(at + pairs, rows_ - 1)); }
  int64_t entry(size_t at) const { return entry_ == Entry::present ? 1 : std::min(sums_[at], most_); }

  // Calls f(begin, end) for the pairs of every person of one of this many shares.
  template <class F>
  void for_people(size_t share, size_t shares, F&& f) const {
    const auto first_of = [&](size_t i) {  // the part where about i/shares of the rows are over
      const auto after = [](const Part& part, size_t row) { return part.begin < row; };
      return std::lower_bound(parts_.begin(), parts_.end(), rows_ / shares * i, after) - parts_.begin();
    };
    const auto last = share + 1 == shares ? static_cast<int64_t>(parts_.size()) : first_of(share + 1);
    for (auto part = first_of(share); part < last; ++part) {
      const size_t stop = parts_[static_cast<size_t>(part)].end;
      for (size_t begin = parts_[static_cast<size_t>(part)].begin, end; begin < stop; begin = end) {
        const uint64_t user = pairs_[begin] >> 32;
        for (end = begin + 1; end < stop && pairs_[end] >> 32 == user;) ++end;
        f(begin, end);
      }
    }
  }

  // `size` sums over all people; adding_to(sums) is what adds one person. Each thread has sums of its own, unless they
  // would take much beside the rows.
  template <class F>
  std::vector<int64_t> sums_over_people(size_t size, F&& adding_to) const {
    const size_t threads = std::clamp<size_t>(rows_ / (4 * size + 1), 1, threads_for(rows_));
    std::vector<std::vector<int64_t>> sums(threads);
    in_threads(threads, [&](size_t share) {
      sums[share].resize(size, 0);
      for_people(share, threads, adding_to(sums[share]));
    });
    for (size_t share = 1; share < threads; ++share)
      for (size_t i = 0; i < size; ++i) sums[0][i] += sums[share][i];
    return std::move(sums[0]);
  }

  // Of one person's items those that take part in discovery, with what they were chosen by.
  using Choice = std::vector<std::pair<uint64_t, uint32_t>>;
  void choose(size_t begin, size_t end, uint64_t most_items, const uint64_t* keys, Choice& choice) const {
    choice.clear();
    uint64_t all = 0;
    for (size_t at = begin; at < end; ++at) all ^= keys[item(at)];
    for (size_t at = begin; at < end; ++at) choice.emplace_back(splitmix(keys[item(at)] ^ splitmix(all)), item(at));
    std::nth_element(choice.begin(), choice.begin() + static_cast<int64_t>(most_items), choice.end());
    choice.resize(most_items);
  }

  // A person calls f(item, entry) for every item.
  struct Person {
    const Pairs& all;
    size_t begin, end;

    template <class F>
    void operator()(F&& f) const {
      for (size_t at = begin; at < end; ++at) f(all.item(at), all.entry(at));
    }
  };

  // Exact, and then rounded as DuckDB rounds its 128 bits.
  template <class Entries>
  double squared_length(const int32_t* index, const int64_t* weights, const Entries& person) const {
    unsigned __int128 squared = 0;
    person([&](uint32_t item, int64_t entry) {
      if (const int32_t i = index[item]; i >= 0) {
        const int64_t v = entry * weights[i];
        squared += static_cast<unsigned __int128>(static_cast<__int128>(v) * v);
      }
    });
    return static_cast<double>(static_cast<uint64_t>(squared >> 64)) * 0x1p64 +
           static_cast<double>(static_cast<uint64_t>(squared));
  }

  // Adds a person's vector, scaled: trunc(length v / max(longest, |v|)).
  template <class Entries>
  void add_scaled(std::vector<int64_t>& sums, const int32_t* index, const int64_t* weights, double longest,
                  const Entries& person) const {
    const double squared = squared_length(index, weights, person);
    if (squared <= 0) return;
    const double by = std::max(std::sqrt(squared), longest);
    person([&](uint32_t item, int64_t entry) {
      if (const int32_t i = index[item]; i >= 0)
        sums[static_cast<size_t>(i)] +=
            static_cast<int64_t>(std::trunc(whole_ * static_cast<double>(entry * weights[i]) / by));
    });
  }

  // Splits the rows into parts by the first digits of their persons.
  template <bool with_values>
  void split() {
    pairs_ = std::make_unique_for_overwrite<uint64_t[]>(rows_);
    if constexpr (with_values) sums_ = std::make_unique_for_overwrite<int64_t[]>(rows_);
    const int user_bits = std::bit_width(all_ >> 32);
    const int part_bits = std::min({user_bits, kPartBits, static_cast<int>(std::bit_width(rows_ / kFewRows))});
    const int shift = 32 + user_bits - part_bits;
    rest_of_users_ = user_bits - part_bits;
    const size_t parts = size_t{1} << part_bits, threads = threads_for(rows_);
    // Every thread has a range of the blocks, and in every part a place for its rows.
    std::vector<std::vector<size_t>> at(threads, std::vector<size_t>(parts, 0));
    const auto blocks_of = [&](size_t thread) { return blocks_.size() * thread / threads; };
    in_threads(threads, [&](size_t thread) {
      for (size_t block = blocks_of(thread); block < blocks_of(thread + 1); ++block)
        for (const uint64_t key : blocks_[block].keys) ++at[thread][key >> shift];
    });
    size_t row = 0;
    for (size_t part = 0; part < parts; ++part) {
      parts_.push_back({row, row});
      for (auto& places : at) row += std::exchange(places[part], row);
      parts_.back().end = row;
    }
    in_threads(threads, [&](size_t thread) {
      size_t* const to = at[thread].data();
      for (size_t block = blocks_of(thread); block < blocks_of(thread + 1); ++block) {
        const Block rows = std::exchange(blocks_[block], {});  // gone when its rows are elsewhere
        for (size_t i = 0; i < rows.keys.size(); ++i) {
          const size_t place = to[rows.keys[i] >> shift]++;
          pairs_[place] = rows.keys[i];
          if constexpr (with_values) sums_[place] = rows.values[i];
        }
      }
    });
    blocks_.clear();
  }

  // Sorts a part and makes one of equal pairs. From the lowest digit to the highest: those of items, and what is left of
  // those of persons.
  template <bool with_values>
  void group_part(Part& part, std::vector<uint64_t>& keys, std::vector<int64_t>& values) {
    const size_t rows = part.end - part.begin;
    uint64_t* from = pairs_.get() + part.begin;
    int64_t* from_values = with_values ? sums_.get() + part.begin : nullptr;
    keys.resize(std::max(keys.size(), rows));
    if constexpr (with_values) values.resize(std::max(values.size(), rows));
    uint64_t* to = keys.data();
    int64_t* to_values = values.data();
    std::array<size_t, 1 << kDigit> at;
    for (const auto& [base, bits] : {std::pair(0, static_cast<int>(std::bit_width(static_cast<uint32_t>(all_)))),
                                     std::pair(32, rest_of_users_)}) {
      const int digits = (bits + kDigit - 1) / kDigit;
      for (int digit = 0; digit < digits; ++digit) {
        const int width = (bits + digits - 1) / digits, shift = base + digit * width;
        const uint64_t mask = (1ull << std::min(width, bits - digit * width)) - 1;
        std::fill_n(at.begin(), mask + 1, 0);
        for (size_t row = 0; row < rows; ++row) ++at[from[row] >> shift & mask];
        size_t sum = 0;
        for (size_t i = 0; i <= mask; ++i) sum += std::exchange(at[i], sum);
        for (size_t row = 0; row < rows; ++row) {
          const size_t place = at[from[row] >> shift & mask]++;
          to[place] = from[row];
          if constexpr (with_values) to_values[place] = from_values[row];
        }
        std::swap(from, to);
        std::swap(from_values, to_values);
      }
    }
    uint64_t* const pairs = pairs_.get() + part.begin;
    int64_t* const sums = entry_ == Entry::present ? nullptr : sums_.get() + part.begin;
    size_t out = 0;
    for (size_t row = 0; row < rows; ++row) {
      const bool same = out > 0 && pairs[out - 1] == from[row];
      if (sums) {
        const int64_t value = with_values ? from_values[row] : 1;
        sums[same ? out - 1 : out] = same ? sums[out - 1] + value : value;
      }
      if (!same) pairs[out++] = from[row];
    }
    part.end = part.begin + out;
  }

  Entry entry_;
  double whole_;
  int64_t most_;
  size_t threads_;
  uint64_t rows_ = 0;
  uint64_t all_ = 0;  // of every row, the bits that are set
  uint32_t items_ = 0;
  uint64_t people_ = 0;
  int rest_of_users_ = 0;      // bits of persons that are not the same in a part
  std::vector<Block> blocks_;  // as added
  std::vector<Part> parts_;
  std::vector<uint64_t> once_;  // pairs that were grouped and are kept, in ascending order
  std::unique_ptr<uint64_t[]> pairs_;  // grouped: user << 32 | item
  std::unique_ptr<int64_t[]> sums_;
};

}  // namespace discreet
