// Misra-Gries with zero counters kept: Algorithm 1 of [LT].
//
// Counters are stored as c + alpha, where alpha counts the decrements of all counters, so that decrementing is O(1).
// After a decrement the zero counters are those with stored value alpha: one scan finds them, in the order of their
// hashes, and misses replace them one by one until none is left and the next miss decrements again. A decrement takes
// k+1 events, so the scans cost O(1) an event.
//
// The order is the hash of the key under the summary's seed: it does not depend on the stream, as Lemma 8 needs. (Two
// keys with equal 64-bit hashes are ordered by their bytes.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/counters/grouped_table.hpp"
#include "discreet/errors.hpp"

namespace discreet {

inline bool key_less(IntKey a, IntKey b) { return a.value < b.value; }
inline bool key_less(StrKey a, StrKey b) {
  if (a.is_number() && b.is_number()) return a.tag != b.tag ? a.tag < b.tag : load64(a.data) < load64(b.data);
  if (a.tag != b.tag) return a.tag < b.tag;
  const int order = std::memcmp(a.data, b.data, std::min(a.size, b.size));
  return order != 0 ? order < 0 : a.size < b.size;
}

// The fixed, stream-independent order of keys.
template <class Key>
bool in_order(const Counter<Key>& a, const Counter<Key>& b) {
  return a.hash != b.hash ? a.hash < b.hash : key_less(a.key, b.key);
}

// Sorts counters as a scan of a table gives them: almost in order, so that each goes back a few places only.
template <class Key, class One>
void sort_scanned(std::vector<One>& counters) {
  size_t moves = 32 * counters.size() + 1024;
  for (size_t i = 1; i < counters.size(); ++i) {
    if (!in_order<Key>(counters[i], counters[i - 1])) continue;
    const One one = counters[i];
    size_t to = i;
    for (; to > 0 && in_order<Key>(one, counters[to - 1]); --to) counters[to] = counters[to - 1];
    counters[to] = one;
    if (i - to > moves) {  // they came in some other order
      std::sort(counters.begin(), counters.end(), in_order<Key>);
      return;
    }
    moves -= i - to;
  }
}

// Subtracts the (k+1)-th largest count from all and keeps what stays positive: the merge of section 7 of [LT].
// `counters` holds each key once. Returns what was subtracted.
template <class Key>
uint64_t subtract_to_capacity(std::vector<Counter<Key>>& counters, uint64_t capacity) {
  std::erase_if(counters, [](const Counter<Key>& c) { return c.count == 0; });
  if (counters.size() <= capacity) return 0;
  const auto nth = counters.begin() + static_cast<ptrdiff_t>(capacity);
  std::nth_element(counters.begin(), nth, counters.end(),
                   [](const Counter<Key>& a, const Counter<Key>& b) { return a.count > b.count; });
  const uint64_t cut = nth->count;
  std::erase_if(counters, [cut](const Counter<Key>& c) { return c.count <= cut; });
  for (Counter<Key>& c : counters) c.count -= cut;
  return cut;
}

template <class Key>
class MisraGries {
  using Table = GroupedTable<Key>;

 public:
  MisraGries(uint64_t capacity, const HashKey& seed)
      : table_(std::min(capacity, Table::kStart), seed), counts_(table_.positions(), kFree), capacity_(capacity) {}

  uint64_t total() const { return total_; }
  uint64_t size() const { return size_; }
  uint64_t decrements() const { return alpha_; }
  const HashKey& seed() const { return table_.seed(); }
  uint64_t bytes() const { return table_.bytes() + counts_.size() * 8 + zeros_.capacity() * sizeof(Zero); }

  // Events in order: event i has hash hash_of(i), its key is at `position` iff equal(i, position), and when it is
  // stored nowhere, absent(i) calls enter(). The loop holds what a hit needs in registers.
  template <class HashOf, class Equal, class Absent>
  void add_each(size_t n, HashOf&& hash_of, Equal&& equal, Absent&& absent) {
    total_ += n;
    uint64_t* counts = counts_.data();
    const auto add = [&](size_t i, uint32_t likely) {
      const uint32_t position = likely != Table::kNone && table_.live(likely) && equal(i, likely)
                                    ? likely
                                    : table_.find_where(hash_of(i), [&](uint32_t p) { return equal(i, p); });
      if (position != Table::kNone) {
        ++counts[position];
      } else {
        absent(i);
        counts = counts_.data();
      }
    };
    table_.each_ahead(n, hash_of, counts_, add);
  }
  void add_block(const Key* keys, const uint64_t* hashes, size_t n) {
    add_each(
        n, [&](size_t i) { return hashes[i]; },
        [&](size_t i, uint32_t p) { return table_.key(p).equals(keys[i], hashes[i]); },
        [&](size_t i) { enter(keys[i], hashes[i]); });
  }
  // An event, already counted, of a key without a counter. Returns the key's new position, or kNone.
  template <class NewKey>
  [[gnu::noinline]] uint32_t enter(NewKey key, uint64_t hash) {
    evicted_ = Table::kNone;
    if (size_ < capacity_) [[unlikely]] {
      ++size_;
      return place(key, hash);
    }
    while (next_zero_ < end_zero_ || more_zeros()) {
      const auto [victim_hash, victim] = zeros_[next_zero_++];
      if (next_zero_ + 4 < end_zero_) table_.key(zeros_[next_zero_ + 4].position).prefetch_apart();
      if (counts_[victim] == alpha_) {
        counts_[victim] = kFree;
        evicted_ = victim;
        const uint32_t position = table_.replace(victim, victim_hash, key, hash);
        counts_[position] = alpha_ + 1;
        return position;
      }
    }
    ++alpha_;
    turn_ = Table::first_group();
    return Table::kNone;
  }
  // `weight` events of one key in a row, in O(1) but for the scans: the same state as that many single events.
  void add(Key key, uint64_t hash, uint64_t weight) {
    total_ += weight;
    const uint32_t found = table_.find(key, hash);
    if (found != Table::kNone) {
      counts_[found] += weight;
      return;
    }
    while (weight > 0) {
      const uint32_t position = enter(key, hash);  // one event: a counter, or one decrement of all
      --weight;
      if (position != Table::kNone) {
        counts_[position] += weight;
        return;
      }
      // If no counter is zero, each further event decrements all again.
      const uint64_t decrements = std::min(weight, smallest() - alpha_);
      alpha_ += decrements;
      weight -= decrements;
    }
  }
  // For callers that remember positions: they hold while the table does not grow and they are not evicted.
  const Table& table() const { return table_; }
  Table& table() { return table_; }
  bool about_to_grow() const { return size_ < capacity_ && size_ >= table_.room(); }
  uint32_t evicted() const { return evicted_; }  // by the latest enter(), or kNone

  // The counter of a key, and whether it is stored.
  std::pair<uint64_t, bool> count(Key key) const {
    const uint32_t position = table_.find(key, key.hash(table_.seed()));
    if (position == Table::kNone) return {0, false};
    return {counts_[position] - alpha_, true};
  }

  // All stored keys, zero counters too, in the fixed order.
  std::vector<Counter<Key>> counters() const {
    std::vector<Counter<Key>> out;
    out.reserve(size_);
    table_.for_keys([&](uint32_t p, uint64_t hash) { out.push_back({table_.key(p).view(), hash, counts_[p] - alpha_}); });
    sort_scanned<Key>(out);
    return out;
  }

  // Replaces the content; `counters` holds at most `capacity` distinct keys.
  void assign(const std::vector<Counter<Key>>& counters, uint64_t total, uint64_t alpha) {
    MisraGries fresh(capacity_, table_.seed());
    fresh.reserve(counters.size());
    for (const Counter<Key>& c : counters) {
      ++fresh.size_;
      fresh.counts_[fresh.place(c.key, c.key.hash(table_.seed()))] = c.count + alpha;
    }
    fresh.total_ = total;
    fresh.alpha_ = alpha;
    if (fresh.size_ == capacity_) fresh.turn_ = Table::first_group();
    *this = std::move(fresh);
  }

  // Section 7 of [LT]: zero counters are dropped, and the sum loses its (k+1)-th largest count.
  void merge(const MisraGries& other) {
    std::vector<Counter<Key>> sum = counters();
    for (Counter<Key>& c : sum) c.count += other.count(c.key).first;
    for (const Counter<Key>& c : other.counters())
      if (!count(c.key).second) sum.push_back(c);
    const uint64_t cut = subtract_to_capacity(sum, capacity_);
    assign(sum, total_ + other.total_, alpha_ + other.alpha_ + cut);
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  struct Zero {
    uint64_t hash;
    uint32_t position;
  };

  static constexpr size_t kEnough = 64;  // zero counters that are looked for at a time

  // Asks for a group whose zero counters are soon to be replaced.
  [[gnu::always_inline]] void fetch_group(uint32_t group) const {
    const uint32_t first = group * Table::kGroup;
    for (uint32_t i = 0; i < Table::kGroup; i += 8) __builtin_prefetch(&counts_[first + i], 1);
    table_.prefetch_group(group);
  }

  // Room for `n` keys. Keys that come in the order of their hashes, as those of a state do, would crowd the low end of
  // a table that grows step by step.
  void reserve(uint64_t n) {
    if (n > table_.room()) regrow(table_, n, kFree, counts_);
  }

  template <class NewKey>
  uint32_t place(NewKey key, uint64_t hash) {
    if (size_ > table_.room()) [[unlikely]]
      regrow(table_, std::min(capacity_, 2 * table_.room()), kFree, counts_);
    const uint32_t position = table_.insert(key, hash);
    counts_[position] = alpha_ + 1;
    return position;
  }

  // The smallest stored value, c + alpha.
  uint64_t smallest() const { return *std::min_element(counts_.begin(), counts_.end()); }  // kFree is the largest

  // Lists the zero counters of the next groups that have some, in the fixed order; false if no group has any. Groups are
  // visited in the order of the hashes. While the zero counters that a decrement left are replaced no counter becomes
  // zero, so they need not be known before.
  [[gnu::noinline]] bool more_zeros() {
    next_zero_ = end_zero_ = 0;
    while (turn_ != Table::kNone && end_zero_ < kEnough) {
      const uint32_t group = turn_;
      turn_ = table_.following(group);
      fetch_group(table_.ahead(group));
      const size_t begin = end_zero_;
      collect_zeros(group, group);
      table_.for_refuges(group, [&](uint32_t refuge) { collect_zeros(refuge, group); });
      sort_zeros(zeros_.data() + begin, static_cast<uint32_t>(end_zero_ - begin));
    }
    return end_zero_ > 0;
  }
  // Lists those of a group whose keys are at home in `home`.
  void collect_zeros(uint32_t group, uint32_t home) {
    constexpr uint32_t kGroup = Table::kGroup;
    if (zeros_.size() < end_zero_ + kGroup) [[unlikely]]
      zeros_.resize(std::max(kEnough, end_zero_) + kGroup);
    Zero* zeros = zeros_.data() + end_zero_;
    const uint64_t* counts = counts_.data() + static_cast<size_t>(group) * kGroup;
    uint32_t n = 0;
    for (uint32_t i = 0; i < kGroup; ++i) {
      zeros[n].position = group * kGroup + i;
      n += counts[i] == alpha_;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t position = zeros[i].position;
      const uint64_t hash = table_.hash_at(position);
      zeros[kept] = {hash, position};
      kept += table_.home(hash) == home;
    }
    end_zero_ += kept;
  }
  // By their ranks, without branches, unless they are many or some hashes are equal.
  void sort_zeros(Zero* zeros, uint32_t n) const {
    constexpr uint32_t kFew = 8;
    if (n < 2) return;
    if (n <= kFew) {
      sort_few<kFew>(zeros, n);
    } else if (n <= Table::kGroup) {
      sort_few<Table::kGroup>(zeros, n);
    } else {
      std::sort(zeros, zeros + n, [this](const Zero& a, const Zero& b) { return before(a, b); });
    }
  }
  template <uint32_t kMost>
  void sort_few(Zero* zeros, uint32_t n) const {
    Zero unsorted[kMost];
    uint64_t hashes[kMost];
    for (uint32_t i = 0; i < kMost; ++i) {
      unsorted[i] = zeros[i];
      hashes[i] = i < n ? zeros[i].hash : UINT64_MAX;
    }
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < n; ++i) {
      uint32_t rank = 0;
      for (uint32_t j = 0; j < kMost; ++j) rank += hashes[j] < hashes[i];
      zeros[rank] = unsorted[i];
      ranks += rank;
    }
    if (ranks == n * (n - 1) / 2) [[likely]]
      return;
    std::copy(unsorted, unsorted + n, zeros);  // some hashes are equal
    std::sort(zeros, zeros + n, [this](const Zero& a, const Zero& b) { return before(a, b); });
  }
  bool before(const Zero& a, const Zero& b) const {
    if (a.hash != b.hash) [[likely]]
      return a.hash < b.hash;
    return key_less(table_.key(a.position).view(), table_.key(b.position).view());
  }

  Table table_;
  LineVector<uint64_t> counts_;  // c + alpha by position
  std::vector<Zero> zeros_;       // from next_zero_ to end_zero_: zero counters to replace next (some were hit since)
  size_t next_zero_ = 0;
  size_t end_zero_ = 0;
  uint32_t turn_ = Table::kNone;  // the group whose zero counters come next, if there may be any
  uint32_t evicted_ = Table::kNone;
  uint64_t capacity_;
  uint64_t size_ = 0;
  uint64_t total_ = 0;
  uint64_t alpha_ = 0;
};

}  // namespace discreet
