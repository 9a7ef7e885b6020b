// Privacy-aware Misra-Gries over sets, one set a user: Algorithm 4 of [LT].
//
// A user increments the counters of all its distinct items and causes at most one decrement of all counters, after
// which zero counters are removed. Counters are stored as c + alpha; a decrement takes k+1 increments, so the scan
// that removes zeros costs O(1) an increment.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/counters/misra_gries.hpp"

namespace discreet {

template <class Key>
class UserMisraGries {
  using Table = GroupedTable<Key>;

 public:
  // `most` is the largest number of distinct items a user may have: the table holds up to capacity + most keys.
  UserMisraGries(uint64_t capacity, uint64_t most, const HashKey& seed)
      : table_(std::min(capacity + most, Table::kStart), seed),
        counts_(table_.positions(), kFree),
        user_(table_.positions(), 0),
        capacity_(capacity),
        most_(most) {}

  uint64_t total() const { return total_; }
  uint64_t users() const { return users_; }
  uint64_t size() const { return size_; }
  uint64_t decrements() const { return alpha_; }
  const HashKey& seed() const { return table_.seed(); }
  uint64_t bytes() const { return table_.bytes() + counts_.size() * 16; }

  // One user's items; repeats count once. At most `most` of them may be distinct. A user without items leaves no
  // trace: one that came before the first key could not be counted.
  void add_user(const Key* keys, const uint64_t* hashes, size_t n) {
    if (n == 0) return;
    ++users_;
    for (size_t i = 0; i < n; ++i) {
      uint32_t p = table_.find(keys[i], hashes[i]);
      if (p == Table::kNone) {
        p = place(keys[i], hashes[i], 1);
      } else if (user_[p] != users_) {
        ++counts_[p];
      } else {
        continue;
      }
      user_[p] = users_;
      ++total_;
    }
    if (size_ > capacity_) decrement_all();
  }

  std::pair<uint64_t, bool> count(Key key) const {
    const uint32_t position = table_.find(key, key.hash(table_.seed()));
    if (position == Table::kNone) return {0, false};
    return {counts_[position] - alpha_, true};
  }

  std::vector<Counter<Key>> counters() const {
    std::vector<Counter<Key>> out;
    out.reserve(size_);
    table_.for_keys([&](uint32_t p, uint64_t hash) { out.push_back({table_.key(p).view(), hash, counts_[p] - alpha_}); });
    sort_scanned<Key>(out);
    return out;
  }

  void assign(const std::vector<Counter<Key>>& counters, uint64_t total, uint64_t users, uint64_t alpha) {
    UserMisraGries fresh(capacity_, most_, table_.seed());
    fresh.reserve(counters.size());
    fresh.total_ = total;
    fresh.users_ = users;
    fresh.alpha_ = alpha;
    for (const Counter<Key>& c : counters) fresh.place(c.key, c.key.hash(table_.seed()), c.count);
    *this = std::move(fresh);
  }

  void merge(const UserMisraGries& other) {
    std::vector<Counter<Key>> sum = counters();
    for (Counter<Key>& c : sum) c.count += other.count(c.key).first;
    for (const Counter<Key>& c : other.counters())
      if (!count(c.key).second) sum.push_back(c);
    const uint64_t cut = subtract_to_capacity(sum, capacity_);
    assign(sum, total_ + other.total_, users_ + other.users_, alpha_ + other.alpha_ + cut);
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;

  void reserve(uint64_t n) {  // as in MisraGries
    if (n > table_.room()) regrow(table_, n, kFree, counts_, user_);
  }

  uint32_t place(Key key, uint64_t hash, uint64_t count) {
    if (++size_ > table_.room()) [[unlikely]]
      regrow(table_, std::min(capacity_ + most_, 2 * table_.room()), kFree, counts_, user_);
    const uint32_t position = table_.insert(key, hash);
    counts_[position] = alpha_ + count;
    user_[position] = 0;
    return position;
  }

  void decrement_all() {
    ++alpha_;
    for (uint32_t p = 0; p < table_.positions(); ++p) {
      if (counts_[p] != alpha_) continue;
      table_.erase(p);
      counts_[p] = kFree;
      --size_;
    }
  }

  Table table_;
  LineVector<uint64_t> counts_;  // c + alpha by position
  LineVector<uint64_t> user_;    // the last user that held the key, so that a repeat within a set is seen
  uint64_t capacity_;
  uint64_t most_;
  uint64_t size_ = 0;
  uint64_t total_ = 0;
  uint64_t users_ = 0;
  uint64_t alpha_ = 0;
};

}  // namespace discreet
