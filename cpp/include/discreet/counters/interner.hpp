// Numbers for values, in the order of their first appearance. Memory grows with the distinct ones.
//
// Of a row, the table holds 8 bytes: half of the hash and the number. Values lie apart, by their numbers, and are written
// once: a table that grows does not move them. Rows are looked up in blocks, with what each will need asked for ahead, so
// that the misses of a block wait together: also of a row whose place is not the first that its hash leads to, as one in
// four has where the table is half full.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/counters/lines.hpp"
#include "discreet/errors.hpp"

namespace discreet {

// The values by their numbers.
template <class Key>
class NumberedKeys;

template <>
class NumberedKeys<IntKey> {
 public:
  static constexpr bool kApart = false;  // a number leads to the value itself
  uint64_t bytes() const { return values_.capacity() * sizeof(uint64_t); }
  IntKey at(size_t number) const { return {values_[number]}; }
  bool equals(size_t number, IntKey key) const { return values_[number] == key.value; }
  void prefetch(size_t number) const { __builtin_prefetch(values_.data() + number); }
  void prefetch_apart(size_t, IntKey) const {}
  void add(IntKey key) { values_.push_back(key.value); }

 private:
  LineVector<uint64_t> values_;
};

// Each as one record: size, tag and bytes.
template <>
class NumberedKeys<StrKey> {
 public:
  static constexpr bool kApart = true;
  uint64_t bytes() const { return records_.capacity() * sizeof(char*) + chunk_bytes_; }
  StrKey at(size_t number) const {
    const char* record = records_[number];
    return {record + kBytes, load32(record), static_cast<Tag>(record[kTag])};
  }
  bool equals(size_t number, StrKey key) const {
    const StrKey known = at(number);
    return known.size == key.size && known.tag == key.tag && equal_bytes(known.data, key.data, key.size);
  }
  void prefetch(size_t number) const { __builtin_prefetch(records_.data() + number); }
  void prefetch_apart(size_t number, StrKey key) const {  // where the record of this key begins and ends
    __builtin_prefetch(records_[number]);
    __builtin_prefetch(records_[number] + kBytes + key.size);
  }
  void add(StrKey key) {
    const size_t size = kBytes + key.size;
    if (size > room_) {
      const size_t room = std::max(size, std::clamp<size_t>(chunk_bytes_, kFirstChunk, kLargestChunk));
      chunks_.push_back(std::make_unique_for_overwrite<char[]>(room));  // may end in an error: nothing is changed then
      chunk_bytes_ += room;
      room_ = room;
      free_ = chunks_.back().get();
    }
    std::memcpy(free_, &key.size, sizeof key.size);
    free_[kTag] = static_cast<char>(key.tag);
    if (key.size) std::memcpy(free_ + kBytes, key.data, key.size);
    records_.push_back(free_);
    free_ += size;
    room_ -= size;
  }

 private:
  static constexpr size_t kTag = 4, kBytes = 5;  // where in a record
  static constexpr size_t kFirstChunk = 1 << 12, kLargestChunk = 1 << 20;

  LineVector<const char*> records_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  uint64_t chunk_bytes_ = 0;
  char* free_ = nullptr;
  size_t room_ = 0;
};

template <class Key>
class Interner {
 public:
  static constexpr int32_t kNothing = -1;  // for a row without a value, or with one that cannot be an item

  explicit Interner(const HashKey& seed) : seed_(seed), slots_(kStart, kFree) {}

  uint64_t size() const { return size_; }
  uint64_t bytes() const { return slots_.size() * sizeof(uint64_t) + keys_.bytes(); }

  // The number of every row of a validated column of such keys (of texts, also of integers as mixed columns have them).
  void number_rows(const Column& column, int32_t* out) {
    if (column.key_kind() == KeyKind::none) {
      std::fill(out, out + column.length, kNothing);
    } else if (column.dictionary) {
      number_codes(column, out);
    } else if (!column.validity) {
      for_blocks(column, 0, column.length, seed_, Key{}, [&](const Key* keys, const uint64_t* hashes, size_t n) {
        uint32_t likely[kBlock];
        ask_ahead(keys, hashes, n, likely);
        for (size_t i = 0; i < n; ++i) {
          const bool known = likely[i] != kNoNumber && keys_.equals(likely[i], keys[i]);
          *out++ = known ? static_cast<int32_t>(likely[i]) : number(keys[i], hashes[i]);
        }
      });
    } else {
      for (int64_t i = 0; i < column.length; ++i) out[i] = column.valid(i) ? number_at(column, i) : kNothing;
    }
  }

  // The key with a number; valid until the next row is numbered.
  Key key(uint64_t number) const { return keys_.at(number); }

  // The keyed hashes of the keys by their numbers. A number depends on all rows before; a hash on the key alone.
  std::vector<uint64_t> hashes() const {
    std::vector<uint64_t> out(size_);
    for (size_t number = 0; number < size_; ++number) out[number] = keys_.at(number).hash(seed_);
    return out;
  }

 private:
  static constexpr size_t kStart = 1024;
  static constexpr size_t kMost = 1ull << 30;
  static constexpr uint64_t kFree = UINT64_MAX;  // no number is so large
  static constexpr uint32_t kNoNumber = static_cast<uint32_t>(kFree);

  // Slots are in the order of the upper half of the hash, which is all that a slot keeps of it.
  size_t home(uint64_t upper) const { return upper >> (32 - std::countr_zero(slots_.size())); }
  size_t next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }

  // The number that each of the keys has, or none, unless another key has the same upper half of the hash. Asks for what
  // comparing the keys will touch.
  void ask_ahead(const Key* keys, const uint64_t* hashes, size_t n, uint32_t* likely) const {
    for (size_t i = 0; i < n; ++i) __builtin_prefetch(slots_.data() + home(hashes[i] >> 32));
    for (size_t i = 0; i < n; ++i) {
      const uint64_t upper = hashes[i] >> 32;
      size_t at = home(upper);
      while (slots_[at] != kFree && slots_[at] >> 32 != upper) at = next(at);
      likely[i] = static_cast<uint32_t>(slots_[at]);
      if (likely[i] != kNoNumber) keys_.prefetch(likely[i]);
    }
    if constexpr (NumberedKeys<Key>::kApart)
      for (size_t i = 0; i < n; ++i)
        if (likely[i] != kNoNumber) keys_.prefetch_apart(likely[i], keys[i]);
  }

  int32_t number(Key key, uint64_t hash) {
    const uint64_t upper = hash >> 32;
    size_t at = home(upper);
    for (; slots_[at] != kFree; at = next(at)) {
      const uint32_t number = static_cast<uint32_t>(slots_[at]);
      if (slots_[at] >> 32 == upper && keys_.equals(number, key)) return static_cast<int32_t>(number);
    }
    if (size_ >= kMost) throw DataError("more different values than can be numbered (2**30)");
    keys_.add(key);
    slots_[at] = upper << 32 | size_;
    if (8 * ++size_ > 5 * slots_.size()) grow();
    return static_cast<int32_t>(size_ - 1);
  }
  void grow() {
    LineVector<uint64_t> before(2 * slots_.size(), kFree);
    before.swap(slots_);
    for (const uint64_t slot : before) {
      if (slot == kFree) continue;
      size_t at = home(slot >> 32);
      while (slots_[at] != kFree) at = next(at);
      slots_[at] = slot;
    }
  }
  int32_t number_at(const Column& column, int64_t i) {
    const Key key = key_at(column, i, Key{});
    return number(key, key.hash(seed_));
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

  HashKey seed_;
  LineVector<uint64_t> slots_;  // upper half of the hash << 32 | number, or kFree; at most 5 of 8 are taken
  NumberedKeys<Key> keys_;
  uint64_t size_ = 0;
};

}  // namespace discreet
