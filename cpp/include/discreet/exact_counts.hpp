// Exact counts of every key: memory grows with the number of distinct keys. The yardstick, and for small domains.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/misra_gries.hpp"

namespace discreet {

template <class Key>
class ExactCounts {
  using Table = GroupedTable<Key>;

 public:
  explicit ExactCounts(uint64_t seed) : table_(kStart, seed), counts_(table_.positions(), 0) {}

  uint64_t total() const { return total_; }
  uint64_t size() const { return size_; }
  uint64_t layout() const { return table_.positions(); }  // as in MisraGries
  uint32_t evicted() const { return Table::kNone; }
  uint64_t seed() const { return table_.seed(); }
  uint64_t bytes() const { return table_.bytes() + counts_.size() * 8; }

  uint32_t add(Key key, uint64_t hash) { return add(key, hash, 1); }
  uint32_t add(Key key, uint64_t hash, uint64_t weight) {
    total_ += weight;
    uint32_t p = table_.find(key, hash);
    if (p == Table::kNone) {
      if (++size_ > table_.room()) grow();
      p = table_.insert(key, hash);
      counts_[p] = 0;
    }
    counts_[p] += weight;
    return p;
  }
  void add_at(uint32_t position) {
    ++total_;
    ++counts_[position];
  }

  std::pair<uint64_t, bool> count(Key key) const {
    const uint32_t p = table_.find(key, key.hash(table_.seed()));
    if (p == Table::kNone) return {0, false};
    return {counts_[p], true};
  }

  std::vector<Counter<Key>> counters() const {
    std::vector<Counter<Key>> out;
    out.reserve(size_);
    for (uint32_t p = 0; p < table_.positions(); ++p)
      if (table_.live(p)) out.push_back({table_.key(p).view(), table_.hash_at(p), counts_[p]});
    std::sort(out.begin(), out.end(), in_order<Key>);
    return out;
  }

  void merge(const ExactCounts& other) {
    for (const Counter<Key>& c : other.counters()) add(c.key, c.key.hash(table_.seed()), c.count);
  }

 private:
  static constexpr uint64_t kStart = 64;

  void grow() {
    if (size_ >= Table::kMaxCapacity) throw DataError("more distinct items than ExactCounts can hold (2**30)");
    regrow(table_, 2 * table_.room(), 0, counts_);
  }

  Table table_;
  std::vector<uint64_t> counts_;
  uint64_t size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace discreet
