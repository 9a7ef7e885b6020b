// SpaceSaving that evicts the most recently seen of the items with minimal count: Algorithm 2 of [SS].
//
// While the minimal count is m, nothing joins the items of count m: they are evicted, or hit and move to m+1. So the
// items of count m are listed once, oldest first, when m becomes the minimum, and evicted from the back of the list;
// one that was hit since is skipped. An item has count m+1 from the moment it was last seen, so what reaches m+1
// during the phase is appended to the next list already in order; what had m+1 before the phase is older than all of
// those and is found by a scan. The counts sum to the stream's length, so there are at most n/k phases and the scans
// cost O(1) an event.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/counters/misra_gries.hpp"

namespace discreet {

// A counter with the stream position at which its key was last seen.
template <class Key>
struct SeenCounter : Counter<Key> {
  uint64_t last = 0;
};

template <class Key>
class SpaceSaving {
  using Table = GroupedTable<Key>;

 public:
  SpaceSaving(uint64_t capacity, const HashKey& seed)
      : table_(std::min(capacity, Table::kStart), seed),
        counts_(table_.positions(), kFree),
        last_(table_.positions(), 0),
        evict_(table_.room()),
        reached_(table_.room()),
        capacity_(capacity) {}

  uint64_t total() const { return total_; }
  uint64_t size() const { return size_; }
  const HashKey& seed() const { return table_.seed(); }
  uint64_t bytes() const {
    return table_.bytes() + counts_.size() * 16 + evict_.bytes() + reached_.bytes();
  }

  // Events in order, as in MisraGries.
  template <class HashOf, class Equal, class Absent>
  void add_each(size_t n, HashOf&& hash_of, Equal&& equal, Absent&& absent) {
    uint64_t* counts = counts_.data();
    uint64_t* last = last_.data();
    uint64_t next = minimum_ + 1;
    uint64_t total = total_;
    for (size_t i = 0; i < n; ++i) {
      const uint32_t position = table_.find_where(hash_of(i), [&](uint32_t p) { return equal(i, p); });
      ++total;
      if (position != Table::kNone) {
        last[position] = total;
        reached_.add_if(++counts[position] == next, position);
      } else {
        total_ = total;
        absent(i);
        counts = counts_.data();
        last = last_.data();
        next = minimum_ + 1;
      }
    }
    total_ = total;
  }
  void add_block(const Key* keys, const uint64_t* hashes, size_t n) {
    add_each(
        n, [&](size_t i) { return hashes[i]; },
        [&](size_t i, uint32_t p) { return table_.key(p).equals(keys[i], hashes[i]); },
        [&](size_t i) { enter(keys[i], hashes[i]); });
  }
  template <class NewKey>
  [[gnu::noinline]] uint32_t enter(NewKey key, uint64_t hash) {
    evicted_ = Table::kNone;
    if (size_ < capacity_) [[unlikely]] {
      ++size_;
      return place(key, hash, 1);
    }
    const uint32_t victim = most_recent_of_minimal();
    counts_[victim] = kFree;
    evicted_ = victim;
    const uint32_t fresh = table_.replace(victim, table_.hash_at(victim), key, hash);
    counts_[fresh] = minimum_ + 1;
    last_[fresh] = total_;
    reached_.add_if(true, fresh);
    return fresh;
  }
  const Table& table() const { return table_; }  // these four as in MisraGries
  Table& table() { return table_; }
  bool about_to_grow() const { return size_ < capacity_ && size_ >= table_.room(); }
  uint32_t evicted() const { return evicted_; }

  // The largest frequency an untracked key can have: the smallest count when all counters are used, otherwise 0.
  uint64_t untracked_bound() const {
    return size_ < capacity_ ? 0 : *std::min_element(counts_.begin(), counts_.end());
  }

  std::pair<uint64_t, bool> count(Key key) const {
    const uint32_t position = table_.find(key, key.hash(table_.seed()));
    if (position == Table::kNone) return {0, false};
    return {counts_[position], true};
  }

  std::vector<SeenCounter<Key>> counters() const {
    std::vector<SeenCounter<Key>> out;
    out.reserve(size_);
    table_.for_keys([&](uint32_t p, uint64_t hash) { out.push_back({{table_.key(p).view(), hash, counts_[p]}, last_[p]}); });
    sort_scanned<Key>(out);
    return out;
  }

  void assign(const std::vector<SeenCounter<Key>>& counters, uint64_t total) {
    SpaceSaving fresh(capacity_, table_.seed());
    fresh.reserve(counters.size());
    for (const SeenCounter<Key>& c : counters) {
      ++fresh.size_;
      fresh.last_[fresh.place(c.key, c.key.hash(table_.seed()), c.count)] = c.last;
    }
    fresh.total_ = total;
    *this = std::move(fresh);
  }

  // The mergeable-summaries rule: counts add up, a key that one side does not track counts with that side's bound,
  // and the k largest stay. Keeps f <= C <= f + n/k. `other` counts as the later part of the stream.
  void merge(const SpaceSaving& other) {
    const uint64_t mine = untracked_bound();
    const uint64_t theirs = other.untracked_bound();
    std::vector<SeenCounter<Key>> sum = counters();
    for (SeenCounter<Key>& c : sum) {
      const uint32_t position = other.table_.find(c.key, c.key.hash(other.seed()));
      c.count += position == Table::kNone ? theirs : other.counts_[position];
      if (position != Table::kNone) c.last = total_ + other.last_[position];
    }
    for (SeenCounter<Key> c : other.counters()) {
      if (count(c.key).second) continue;
      c.hash = c.key.hash(seed());  // ties at the cut follow this summary's order on both sides
      c.count += mine;
      c.last += total_;
      sum.push_back(c);
    }
    if (sum.size() > capacity_) {
      const auto nth = sum.begin() + static_cast<ptrdiff_t>(capacity_);
      std::nth_element(sum.begin(), nth, sum.end(), [](const auto& a, const auto& b) {
        return a.count != b.count ? a.count > b.count : in_order<Key>(a, b);
      });
      sum.resize(capacity_);
    }
    assign(sum, total_ + other.total_);
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  static constexpr uint64_t kNoPhase = UINT64_MAX - 1;

  // Positions of items, each at most once, in an array that has room for all: whether one is added takes no branch.
  class Positions {
   public:
    explicit Positions(size_t most) : all_(most + 1) {}
    void add_if(bool wanted, uint32_t position) {
      all_[size_] = position;
      size_ += wanted;
    }
    uint32_t pop() { return all_[--size_]; }
    void clear() { size_ = 0; }
    size_t size() const { return size_; }
    uint32_t operator[](size_t i) const { return all_[i]; }
    std::vector<uint32_t>::iterator begin() { return all_.begin(); }
    std::vector<uint32_t>::iterator end() { return all_.begin() + static_cast<ptrdiff_t>(size_); }
    uint64_t bytes() const { return all_.capacity() * sizeof(uint32_t); }

   private:
    std::vector<uint32_t> all_;
    size_t size_ = 0;
  };

  void grow(uint64_t room) {  // nothing is listed before all counters are used
    regrow(table_, room, kFree, counts_, last_);
    evict_ = Positions(table_.room());
    reached_ = Positions(table_.room());
  }
  void reserve(uint64_t n) {  // as in MisraGries
    if (n > table_.room()) grow(n);
  }

  template <class NewKey>
  uint32_t place(NewKey key, uint64_t hash, uint64_t count) {
    if (size_ > table_.room()) [[unlikely]]
      grow(std::min(capacity_, 2 * table_.room()));
    const uint32_t position = table_.insert(key, hash);
    counts_[position] = count;
    last_[position] = total_;
    return position;
  }

  uint32_t most_recent_of_minimal() {
    for (;;) {
      while (evict_.size() > 0) {
        const uint32_t position = evict_.pop();
        fetch_later();
        if (counts_[position] == minimum_) return position;
      }
      begin_phase();
    }
  }

  // Asks for the items that are soon to be evicted, which lie anywhere.
  [[gnu::always_inline]] void fetch_later() const {
    const size_t left = evict_.size();
    if (left < 16) return;
    const uint32_t later = evict_[left - 16];
    table_.prefetch_at(later);
    __builtin_prefetch(&counts_[later], 1);
    table_.key(evict_[left - 8]).prefetch_apart();
  }

  // Lists the items of the next smallest count. Nothing has a count below `minimum_` + 1, so if anything has that, it is
  // the smallest; and what came to it during the phase that ends is in `reached_`.
  [[gnu::noinline]] void begin_phase() {
    const uint64_t started = phase_start_;
    phase_start_ = total_;  // the event being processed is still unplaced, so everything tracked was seen before
    evict_.clear();
    if (minimum_ != kNoPhase) {
      ++minimum_;
      list_minimal(started);
      for (const uint32_t p : reached_) evict_.add_if(counts_[p] == minimum_, p);
    }
    if (evict_.size() == 0) {
      minimum_ = *std::min_element(counts_.begin(), counts_.end());
      list_minimal(UINT64_MAX);
    }
    reached_.clear();
  }
  // Those last seen before a time, oldest first.
  void list_minimal(uint64_t before) {
    for (uint32_t p = 0; p < table_.positions(); ++p) evict_.add_if(counts_[p] == minimum_ && last_[p] < before, p);
    std::sort(evict_.begin(), evict_.end(), [this](uint32_t a, uint32_t b) { return last_[a] < last_[b]; });
  }

  Table table_;
  LineVector<uint64_t> counts_;
  LineVector<uint64_t> last_;  // position in the stream of the latest occurrence, from 1
  Positions evict_;            // candidates of count minimum_, most recently seen at the back
  Positions reached_;          // what came to minimum_+1 during this phase, in order of time
  uint32_t evicted_ = Table::kNone;
  uint64_t capacity_;
  uint64_t size_ = 0;
  uint64_t total_ = 0;
  uint64_t minimum_ = kNoPhase;
  uint64_t phase_start_ = 0;
};

}  // namespace discreet
