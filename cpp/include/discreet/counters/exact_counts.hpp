// Exact counts of every key: memory grows with the number of distinct keys. The yardstick, and for small domains.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/counters/misra_gries.hpp"

namespace discreet {

template <class Key>
class ExactCounts {
  using Table = GroupedTable<Key>;

 public:
  explicit ExactCounts(const HashKey& seed) : table_(kStart, seed), counts_(table_.positions(), 0) {}

  uint64_t total() const { return total_; }
  uint64_t size() const { return size_; }
  const HashKey& seed() const { return table_.seed(); }
  uint64_t bytes() const { return table_.bytes() + counts_.size() * 8; }

  // Events in order, as in MisraGries.
  template <class HashOf, class Equal, class Absent>
  void add_each(size_t n, HashOf&& hash_of, Equal&& equal, Absent&& absent) {
    total_ += n;
    table_.each_ahead(n, hash_of, counts_, [&](size_t i, uint32_t likely) {
      const uint32_t position = likely != Table::kNone && table_.live(likely) && equal(i, likely)
                                    ? likely
                                    : table_.find_where(hash_of(i), [&](uint32_t p) { return equal(i, p); });
      if (position != Table::kNone) {
        ++counts_[position];
      } else {
        absent(i);
      }
    });
  }
  void add_block(const Key* keys, const uint64_t* hashes, size_t n) {
    add_each(
        n, [&](size_t i) { return hashes[i]; },
        [&](size_t i, uint32_t p) { return table_.key(p).equals(keys[i], hashes[i]); },
        [&](size_t i) { enter(keys[i], hashes[i]); });
  }
  template <class NewKey>
  uint32_t enter(NewKey key, uint64_t hash) {
    const uint32_t position = place(key, hash);
    counts_[position] = 1;
    return position;
  }
  // Many events of one key at once, for merges and states.
  void add(Key key, uint64_t hash, uint64_t weight) {
    total_ += weight;
    const uint32_t found = table_.find(key, hash);
    counts_[found != Table::kNone ? found : place(key, hash)] += weight;
  }
  const Table& table() const { return table_; }  // these four as in MisraGries
  Table& table() { return table_; }
  bool about_to_grow() const { return size_ >= table_.room(); }
  uint32_t evicted() const { return Table::kNone; }

  std::pair<uint64_t, bool> count(Key key) const {
    const uint32_t p = table_.find(key, key.hash(table_.seed()));
    if (p == Table::kNone) return {0, false};
    return {counts_[p], true};
  }

  std::vector<Counter<Key>> counters() const {
    std::vector<Counter<Key>> out;
    out.reserve(size_);
    table_.for_keys([&](uint32_t p, uint64_t hash) { out.push_back({table_.key(p).view(), hash, counts_[p]}); });
    sort_scanned<Key>(out);
    return out;
  }

  void reserve(uint64_t n) {  // as in MisraGries
    if (n > table_.room()) regrow(table_, n, 0, counts_);
  }

  void merge(const ExactCounts& other) {
    reserve(std::max(size_, other.size_));
    for (const Counter<Key>& c : other.counters()) add(c.key, c.key.hash(table_.seed()), c.count);
  }

 private:
  static constexpr uint64_t kStart = 64;

  template <class NewKey>
  uint32_t place(NewKey key, uint64_t hash) {
    if (size_ >= table_.room()) {
      if (size_ >= Table::kMaxCapacity) throw DataError("more distinct items than ExactCounts can hold (2**30)");
      regrow(table_, 2 * table_.room(), 0, counts_);
    }
    ++size_;
    const uint32_t position = table_.insert(key, hash);
    counts_[position] = 0;
    return position;
  }

  Table table_;
  LineVector<uint64_t> counts_;
  uint64_t size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace discreet
