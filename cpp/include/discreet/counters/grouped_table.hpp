// An open-addressing table whose entries never move: a position is a stable index for as long as its key lives.
//
// Positions come in groups of 16, each with 16 one-byte tags that one vector compare searches. A key lives in its home
// group or, when that is full, in the next one with room; every full group it passed counts it in `overflow`, so a
// search stops at the first group that nobody passed and no tombstones are needed.
//
// Groups lie in rows: the first bits of the hash choose the row, the next ones the column, and the groups of a column
// are neighbours. So groups can be visited in the order of the hashes (`first_group`, `following`), and yet the neighbour
// of a group is far from it in that order. Misra-Gries erases keys in the order of their hashes while others come
// anywhere: half of the table is then as empty as the other half is full, and what a full group has to pass on finds room
// next door instead of in a row of groups that are as full.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "discreet/counters/lines.hpp"
#include "discreet/keys.hpp"

namespace discreet {

template <class Key>
class GroupedTable {
 public:
  using Stored = typename StoredFor<Key>::type;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kGroup = 16;
  static constexpr uint64_t kMaxCapacity = 1ull << 30;
  // Tables start with room for at most this many keys and grow with what they hold, so that a large capacity, or a
  // state that claims one, costs no memory before it is used.
  static constexpr uint64_t kStart = 4096;

  // Room for at least `capacity` keys at half load.
  GroupedTable(uint64_t capacity, const HashKey& seed)
      : seed_(seed),
        rows_(2 * capacity < kGroup << 2 * kRowBits ? 1 : 1 << kRowBits),
        columns_(static_cast<uint32_t>(std::max<uint64_t>(1, ((2 * capacity + kGroup - 1) / kGroup + rows_ - 1) / rows_))),
        groups_(columns_ * rows_),
        tags_(static_cast<size_t>(groups_) * kGroup, kEmpty),
        overflow_(groups_, 0),
        keys_(static_cast<size_t>(groups_) * kGroup) {}

  const HashKey& seed() const { return seed_; }
  uint32_t positions() const { return groups_ * kGroup; }
  uint64_t room() const { return positions() / 2; }
  uint64_t bytes() const {
    uint64_t heap = 0;
    for (const Stored& key : keys_) heap += key.heap_bytes();
    return tags_.size() + overflow_.size() * sizeof(uint32_t) + keys_.size() * sizeof(Stored) + heap;
  }
  bool live(uint32_t position) const { return tags_[position] != kEmpty; }
  const Stored& key(uint32_t position) const { return keys_[position]; }
  uint64_t hash_at(uint32_t position) const { return keys_[position].hash(seed_); }
  void prefetch(uint64_t hash) const { __builtin_prefetch(&tags_[static_cast<size_t>(home(hash)) * kGroup]); }
  // Where the key most likely is or, if it is nowhere, would go, once its tags are there.
  uint32_t likely(uint64_t hash) const {
    const uint32_t group = home(hash);
    // The lowest bit set, without a branch that is as good as a coin flip: tags first, then empty places, then any.
    const uint32_t either = match(group, tag_of(hash)) | match(group, kEmpty) << kGroup | 1u << (2 * kGroup - 1);
    return group * kGroup + static_cast<uint32_t>(std::countr_zero(either)) % kGroup;
  }
  // (Not inlined, a function that only asks would be taken for one that does nothing, and its calls left out.)
  [[gnu::always_inline]] void prefetch_group(uint32_t group) const {
    const size_t first = static_cast<size_t>(group) * kGroup;
    __builtin_prefetch(&tags_[first], 1);
    for (size_t i = 0; i < kGroup; i += 64 / sizeof(Stored)) __builtin_prefetch(&keys_[first + i], 1);
  }
  void prefetch_at(uint32_t position) const { __builtin_prefetch(&keys_[position]); }

  // Calls add(i, likely) for n events in order. `likely` is where the key of event i is most likely (or kNone). In a table
  // that a core's own cache does not hold, what the next events will touch is asked for before the first is added: the
  // tags of each group, then keys and their `values`, then bytes apart.
  template <class HashOf, class Values, class Add>
  [[gnu::always_inline]] void each_ahead(size_t n, HashOf&& hash_of, const Values& values, Add&& add) const {
    constexpr size_t kAhead = 32;
    constexpr uint32_t kFar = 1 << 14;  // positions
    size_t i = 0;
    if (positions() >= kFar)
      for (; i + kAhead <= n; i += kAhead) {
        uint32_t likely_at[kAhead];
        for (size_t j = 0; j < kAhead; ++j) prefetch(hash_of(i + j));
        for (size_t j = 0; j < kAhead; ++j) {
          likely_at[j] = likely(hash_of(i + j));
          prefetch_at(likely_at[j]);
          __builtin_prefetch(&values[likely_at[j]], 1);
        }
        for (size_t j = 0; j < kAhead; ++j) key(likely_at[j]).prefetch_apart();
        for (size_t j = 0; j < kAhead; ++j) add(i + j, likely_at[j]);
      }
    for (; i < n; ++i) add(i, kNone);
  }

  // The group in which a key with this hash lives unless it is full.
  uint32_t home(uint64_t hash) const {
    if (rows_ == 1) [[unlikely]]
      return static_cast<uint32_t>(((hash >> 32) * groups_) >> 32);
    const uint64_t column = (static_cast<uint64_t>(static_cast<uint32_t>(hash >> (32 - kRowBits))) * columns_) >> 32;
    return static_cast<uint32_t>(column << kRowBits | hash >> (64 - kRowBits));
  }
  // Groups in the order of the hashes that are at home there.
  static constexpr uint32_t first_group() { return 0; }
  uint32_t following(uint32_t group) const {
    if (group + rows_ < groups_) [[likely]]
      return group + rows_;
    const uint32_t row = (group & (rows_ - 1)) + 1;
    return row < rows_ ? row : kNone;
  }
  // One that follows a little later, or another: for prefetching.
  uint32_t ahead(uint32_t group) const {
    const uint32_t later = group + 8 * rows_;
    return later < groups_ ? later : later - groups_ < groups_ ? later - groups_ : group;
  }
  // Calls f(group) for all other groups where keys that are at home in this one may live.
  template <class F>
  void for_refuges(uint32_t home, F&& f) const {
    for (uint32_t group = home; overflow_[group];) {
      group = next(group);
      if (group == home) return;
      f(group);
    }
  }

  // Calls f(position, hash) for all keys, ordered by their home groups: almost in the order of the hashes.
  template <class F>
  void for_keys(F&& f) const {
    for (uint32_t home_group = first_group(); home_group != kNone; home_group = following(home_group)) {
      const auto in_group = [&](uint32_t group) {
        for (uint32_t position = group * kGroup; position < (group + 1) * kGroup; ++position)
          if (live(position))
            if (const uint64_t hash = hash_at(position); home(hash) == home_group) f(position, hash);
      };
      prefetch_group(ahead(home_group));
      in_group(home_group);
      for_refuges(home_group, in_group);
    }
  }

  uint32_t find(Key key, uint64_t hash) const {
    return find_where(hash, [&](uint32_t position) { return keys_[position].equals(key, hash); });
  }
  // The position for which equal(position) holds, among those where a key with this hash can be.
  template <class Equal>
  uint32_t find_where(uint64_t hash, Equal&& equal) const {
    const uint32_t first = home(hash);
    const uint8_t tag = tag_of(hash);
    uint32_t group = first;
    for (;;) {
      uint32_t mask = match(group, tag);
      while (mask) {
        const uint32_t position = group * kGroup + static_cast<uint32_t>(std::countr_zero(mask));
        if (equal(position)) [[likely]]
          return position;
        mask &= mask - 1;
      }
      if (!overflow_[group]) [[likely]]
        return kNone;
      group = next(group);
      // Keys that came in the order of their hashes can have passed every group by now.
      if (group == first) [[unlikely]]
        return kNone;
    }
  }

  // The key must be absent and the table must have room.
  template <class NewKey>
  uint32_t insert(NewKey key, uint64_t hash) {
    const uint32_t position = take_place(hash);
    keys_[position].set(key, hash);
    return position;
  }
  // The same after another key is erased, whose memory it may take over.
  template <class NewKey>
  [[gnu::always_inline]] uint32_t replace(uint32_t old, uint64_t old_hash, NewKey key, uint64_t hash) {
    leave_place(old, old_hash);
    const uint32_t position = take_place(hash);
    if (position == old) {
      keys_[position].set(key, hash);
    } else {
      keys_[position].replace(keys_[old], key, hash);
    }
    return position;
  }

  // Gives a key that was inserted as LaterKey its bytes.
  void settle(uint32_t position, Key key) { keys_[position].set(key, hash_at(position)); }

  void erase(uint32_t position) { erase(position, hash_at(position)); }
  void erase(uint32_t position, uint64_t hash) {
    leave_place(position, hash);
    keys_[position].clear();
  }

 private:
  static constexpr uint8_t kEmpty = 0;
  static constexpr uint32_t kRowBits = 3;

  [[gnu::always_inline]] uint32_t take_place(uint64_t hash) {
    uint32_t group = home(hash);
    uint32_t empty = match(group, kEmpty);
    while (!empty) [[unlikely]] {
      ++overflow_[group];
      group = next(group);
      empty = match(group, kEmpty);
    }
    const uint32_t position = group * kGroup + static_cast<uint32_t>(std::countr_zero(empty));
    tags_[position] = tag_of(hash);
    return position;
  }
  [[gnu::always_inline]] void leave_place(uint32_t position, uint64_t hash) {
    const uint32_t group = position / kGroup;
    for (uint32_t passed = home(hash); passed != group; passed = next(passed)) --overflow_[passed];
    tags_[position] = kEmpty;
  }

  static uint8_t tag_of(uint64_t hash) { return static_cast<uint8_t>(0x80 | (hash & 0x7f)); }
  uint32_t next(uint32_t group) const { return group + 1 == groups_ ? 0 : group + 1; }

  // A bit for every position of the group whose tag is `tag`.
  uint32_t match(uint32_t group, uint8_t tag) const {
    const uint8_t* tags = tags_.data() + static_cast<size_t>(group) * kGroup;
#if defined(__SSE2__)
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tags));
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_set1_epi8(static_cast<char>(tag)))));
#else
    uint32_t mask = 0;
    for (uint32_t i = 0; i < kGroup; ++i) mask |= static_cast<uint32_t>(tags[i] == tag) << i;
    return mask;
#endif
  }

  HashKey seed_;
  uint32_t rows_;
  uint32_t columns_;
  uint32_t groups_;
  LineVector<uint8_t> tags_;
  LineVector<uint32_t> overflow_;
  LineVector<Stored> keys_;
};

// Moves the keys to a table for `capacity` keys and every array of values along with them. Positions change.
template <class Key, class... Values>
void regrow(GroupedTable<Key>& table, uint64_t capacity, uint64_t fill, LineVector<Values>&... values) {
  GroupedTable<Key> bigger(capacity, table.seed());
  const auto move_all = [&](auto& array, const std::vector<uint32_t>& to) {
    std::remove_reference_t<decltype(array)> moved(bigger.positions(), fill);
    for (uint32_t p = 0; p < to.size(); ++p)
      if (to[p] != GroupedTable<Key>::kNone) moved[to[p]] = array[p];
    array = std::move(moved);
  };
  std::vector<uint32_t> to(table.positions(), GroupedTable<Key>::kNone);
  for (uint32_t p = 0; p < table.positions(); ++p)
    if (table.live(p)) to[p] = bigger.insert(table.key(p).view(), table.hash_at(p));
  (move_all(values, to), ...);
  table = std::move(bigger);
}

}  // namespace discreet
