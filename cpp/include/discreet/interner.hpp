// Numbers for values, in the order of their first appearance. Memory grows with the distinct ones.
#pragma once

#include <cstdint>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/errors.hpp"
#include "discreet/grouped_table.hpp"

namespace discreet {

template <class Key>
class Interner {
  using Table = GroupedTable<Key>;

 public:
  static constexpr int32_t kNothing = -1;  // for a row without a value, or with one that cannot be an item

  explicit Interner(const HashKey& seed) : table_(kStart, seed), numbers_(table_.positions(), 0) {}

  uint64_t size() const { return size_; }
  // Asked after every batch: the table's own answer would go through all of its keys.
  uint64_t bytes() const {
    return table_.positions() * (sizeof(typename Table::Stored) + sizeof(int32_t) + 2) + heap_bytes_;
  }

  // The number of every row of a validated column of such keys (of texts, also of integers as mixed columns have them).
  void number_rows(const Column& column, int32_t* out) {
    if (column.key_kind() == KeyKind::none) {
      std::fill(out, out + column.length, kNothing);
    } else if (column.dictionary) {
      number_codes(column, out);
    } else if (!column.validity) {
      for_blocks(column, 0, column.length, table_.seed(), Key{}, [&](const Key* keys, const uint64_t* hashes, size_t n) {
        for (size_t i = 0; i < n; ++i) table_.prefetch(hashes[i]);
        for (size_t i = 0; i < n; ++i) table_.prefetch_key(hashes[i]);
        for (size_t i = 0; i < n; ++i) *out++ = number(keys[i], hashes[i]);
      });
    } else {
      for (int64_t i = 0; i < column.length; ++i) out[i] = column.valid(i) ? number_at(column, i) : kNothing;
    }
  }

  // The keys by their numbers; valid until the next row is numbered.
  std::vector<Key> keys() const {
    std::vector<Key> out(size_);
    for (uint32_t p = 0; p < table_.positions(); ++p)
      if (table_.live(p)) out[static_cast<size_t>(numbers_[p])] = table_.key(p).view();
    return out;
  }

  // The keyed hashes of the keys by their numbers. A number depends on all rows before; a hash on the key alone.
  std::vector<uint64_t> hashes() const {
    std::vector<uint64_t> out(size_);
    for (uint32_t p = 0; p < table_.positions(); ++p)
      if (table_.live(p)) out[static_cast<size_t>(numbers_[p])] = table_.hash_at(p);
    return out;
  }

 private:
  static constexpr uint64_t kStart = 1024;

  int32_t number(Key key, uint64_t hash) {
    const uint32_t found = table_.find(key, hash);
    if (found != Table::kNone) return numbers_[found];
    if (size_ >= table_.room()) {
      if (size_ >= Table::kMaxCapacity) throw DataError("more different values than can be numbered (2**30)");
      regrow(table_, 2 * table_.room(), 0, numbers_);
    }
    const uint32_t position = table_.insert(key, hash);
    if (const uint64_t heap = table_.key(position).heap_bytes()) heap_bytes_ += heap + 16;  // what malloc adds
    return numbers_[position] = static_cast<int32_t>(size_++);
  }
  int32_t number_at(const Column& column, int64_t i) {
    const Key key = key_at(column, i, Key{});
    return number(key, key.hash(table_.seed()));
  }
  // Every value of the dictionary that is in use is looked up once.
  void number_codes(const Column& column, int32_t* out) {
    constexpr int32_t kUnknown = -2;
    const Column& dictionary = *column.dictionary;
    std::vector<int32_t> numbers(static_cast<size_t>(dictionary.length), kUnknown);
    for (int64_t i = 0; i < column.length; ++i) {
      out[i] = kNothing;
      if (!column.valid(i)) continue;
      const int64_t code = static_cast<int64_t>(integer_at(column, i));
      int32_t& known = numbers[static_cast<size_t>(code)];
      if (known == kUnknown) known = dictionary.valid(code) ? number_at(dictionary, code) : kNothing;
      out[i] = known;
    }
  }

  Table table_;
  std::vector<int32_t> numbers_;
  uint64_t size_ = 0;
  uint64_t heap_bytes_ = 0;
};

}  // namespace discreet
