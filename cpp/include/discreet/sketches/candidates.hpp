// The candidates of Algorithm 4 of [SS]: up to `capacity` keys, each with the estimate it had when it last arrived.
//
// A key that arrives and is tracked takes its new estimate. Otherwise it is tracked if there is room, or if its estimate
// is larger than the smallest one held, whose key it then replaces; among equal smallest ones the first in the fixed order
// of keys goes. A heap finds the smallest. Its values may lag behind estimates that grew, and are brought up to date
// only when they come to the top: a hit on a growing estimate, the common case, leaves the heap alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "discreet/counters/misra_gries.hpp"

namespace discreet {

template <class Key>
struct Candidate {
  Key key;
  uint64_t hash = 0;
  int64_t count = 0;  // an estimate
};

// The fixed order of keys.
template <class Key>
bool by_key(const Candidate<Key>& a, const Candidate<Key>& b) {
  return a.hash != b.hash ? a.hash < b.hash : key_less(a.key, b.key);
}
// Smaller estimates first, then the fixed order of keys.
template <class Key>
bool leaves_before(const Candidate<Key>& a, const Candidate<Key>& b) {
  return a.count != b.count ? a.count < b.count : by_key(a, b);
}

template <class Key>
class Candidates {
  using Table = GroupedTable<Key>;

 public:
  Candidates(uint64_t capacity, const HashKey& seed)
      : table_(std::min(capacity, Table::kStart), seed),
        estimates_(table_.positions(), 0),
        where_(table_.positions(), 0),
        capacity_(capacity) {}

  uint64_t capacity() const { return capacity_; }
  uint64_t size() const { return heap_.size(); }
  uint64_t bytes() const {
    return table_.bytes() + estimates_.size() * 8 + where_.size() * 4 + heap_.capacity() * sizeof(Entry);
  }

  // `key` has arrived and is now estimated at `estimate`.
  void offer(Key key, uint64_t hash, int64_t estimate) {
    const uint32_t position = table_.find(key, hash);
    if (position != Table::kNone) {
      estimates_[position] = estimate;
      const uint32_t at = where_[position];
      if (estimate < heap_[at].estimate) [[unlikely]] {
        heap_[at].estimate = estimate;
        rise(at);
      }
    } else if (size() < capacity_) {
      insert(key, hash, estimate);
    } else if (settle_smallest(estimate)) {
      table_.erase(heap_[0].position);
      put_at(0, key, hash, estimate);
      sink(0);
    }
  }

  // In the fixed order of keys.
  std::vector<Candidate<Key>> all() const {
    std::vector<Candidate<Key>> out;
    out.reserve(size());
    for (const Entry& e : heap_) out.push_back({table_.key(e.position).view(), e.hash, estimates_[e.position]});
    std::sort(out.begin(), out.end(), by_key<Key>);
    return out;
  }

  // Replaces the content by the largest of `candidates`, whose keys are distinct.
  void assign(std::vector<Candidate<Key>> candidates) {
    Candidates fresh(capacity_, table_.seed());
    if (candidates.size() > capacity_) {
      const auto last = candidates.begin() + static_cast<ptrdiff_t>(capacity_);
      std::nth_element(candidates.begin(), last, candidates.end(),
                       [](const Candidate<Key>& a, const Candidate<Key>& b) { return leaves_before(b, a); });
      candidates.erase(last, candidates.end());
    }
    if (candidates.size() > fresh.table_.room())  // at once: see MisraGries::reserve
      regrow(fresh.table_, candidates.size(), 0, fresh.estimates_, fresh.where_);
    for (const Candidate<Key>& c : candidates) fresh.insert(c.key, c.hash, c.count);
    *this = std::move(fresh);
  }

 private:
  struct Entry {
    int64_t estimate;  // at most the one in estimates_
    uint64_t hash;
    uint32_t position;
  };

  bool before(const Entry& a, const Entry& b) const {
    if (a.estimate != b.estimate) return a.estimate < b.estimate;
    if (a.hash != b.hash) [[likely]]
      return a.hash < b.hash;
    return key_less(table_.key(a.position).view(), table_.key(b.position).view());
  }

  // Brings the smallest candidate to the top and tells whether `estimate` is larger; stops as soon as it is not.
  bool settle_smallest(int64_t estimate) {
    for (;;) {
      Entry& top = heap_[0];
      if (estimate <= top.estimate) return false;
      const int64_t now = estimates_[top.position];
      if (now == top.estimate) return true;
      top.estimate = now;
      sink(0);
    }
  }

  void insert(Key key, uint64_t hash, int64_t estimate) {
    if (size() + 1 > table_.room()) [[unlikely]] {
      regrow(table_, std::min(capacity_, 2 * table_.room()), 0, estimates_, where_);
      for (uint32_t p = 0; p < table_.positions(); ++p)
        if (table_.live(p)) heap_[where_[p]].position = p;
    }
    heap_.emplace_back();
    const uint32_t at = static_cast<uint32_t>(size() - 1);
    put_at(at, key, hash, estimate);
    rise(at);
  }
  void put_at(uint32_t at, Key key, uint64_t hash, int64_t estimate) {
    const uint32_t position = table_.insert(key, hash);
    estimates_[position] = estimate;
    where_[position] = at;
    heap_[at] = {estimate, hash, position};
  }
  void move_to(uint32_t at, const Entry& entry) {
    heap_[at] = entry;
    where_[entry.position] = at;
  }
  void rise(uint32_t at) {
    const Entry entry = heap_[at];
    while (at > 0 && before(entry, heap_[(at - 1) / 2])) {
      move_to(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    move_to(at, entry);
  }
  void sink(uint32_t at) {
    const Entry entry = heap_[at];
    for (;;) {
      uint32_t child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], entry)) break;
      move_to(at, heap_[child]);
      at = child;
    }
    move_to(at, entry);
  }

  Table table_;
  LineVector<int64_t> estimates_;  // by position
  LineVector<uint32_t> where_;     // by position: its place in the heap
  std::vector<Entry> heap_;
  uint64_t capacity_;
};

}  // namespace discreet
