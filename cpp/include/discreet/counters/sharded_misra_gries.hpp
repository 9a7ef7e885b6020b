// Misra-Gries in shards: every item belongs to one of several kernels, which threads fill at the same time.
//
// The shard is a function of the item's hash under the summary's seed, so one event touches one shard and no other. A
// shard holds exactly what a sketch of its own would hold of the events of its items, in the order of the stream.
//
// A stream goes through three steps that overlap. The caller reads chunks. A slice of a chunk is checked and hashed, if
// whoever read it has not, and split into one lane a shard: hashing is what costs most, and it is done once. Lanes are
// counted by their shard, slice after slice. A thread counts the shard of its own number before it splits: when a frequent
// item keeps one shard busy, the other threads split slices meanwhile.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/counters/misra_gries.hpp"
#include "discreet/wipe.hpp"

namespace discreet {

inline constexpr uint32_t kMaxShards = 128;

// From bits 7 to 31 of the hash: the table of a shard takes its tags from the bits below and its groups from those above.
inline uint32_t shard_of(uint64_t hash, uint32_t shards) {
  return static_cast<uint32_t>(((hash >> 7 & 0x1ffffff) * shards) >> 25);
}

template <class Key>
class ShardedMisraGries {
 public:
  using Shard = MisraGries<Key>;

  ShardedMisraGries(uint64_t capacity, uint32_t shards, const HashKey& seed) : shards_(shards, Shard(capacity, seed)) {}

  const HashKey& seed() const { return shards_[0].seed(); }
  std::vector<Shard>& shards() { return shards_; }
  const std::vector<Shard>& shards() const { return shards_; }
  const Shard& shard_with(uint64_t hash) const { return shards_[shard_of(hash, static_cast<uint32_t>(shards_.size()))]; }

  uint64_t total() const { return sum(&Shard::total); }
  uint64_t size() const { return sum(&Shard::size); }
  uint64_t bytes() const { return sum(&Shard::bytes); }
  std::pair<uint64_t, bool> count(Key key) const { return shard_with(key.hash(seed())).count(key); }

  // Shard after shard, each in its fixed order.
  std::vector<Counter<Key>> counters() const {
    std::vector<Counter<Key>> out;
    for (const Shard& shard : shards_) {
      const auto part = shard.counters();
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  void merge(const ShardedMisraGries& other) {
    for (size_t i = 0; i < shards_.size(); ++i) shards_[i].merge(other.shards_[i]);
  }

 private:
  uint64_t sum(uint64_t (Shard::*part)() const) const {
    uint64_t out = 0;
    for (const Shard& shard : shards_) out += (shard.*part)();
    return out;
  }
  std::vector<Shard> shards_;
};

// One chunk on its way through the threads.
struct ShardedChunk {
  static constexpr uint8_t kNobody = UINT8_MAX;  // the shard of a null
  Column column;
  bool checked = false;          // otherwise each slice is checked when it is split
  std::vector<uint64_t> hashes;  // of a dictionary of strings whose codes are counted: by code
  std::vector<uint8_t> shards;   // and the shard, or kNobody
  int64_t next = 0;              // the first row of no slice yet
  uint64_t open = 0;             // slices that are not yet counted

  bool coded() const { return !shards.empty(); }
  // About how long its texts are, where they lie in a row.
  int64_t bytes() const {
    if (column.length == 0 || column.dictionary || column.layout != Layout::offsets32) return 0;
    return bytes_at(column, column.length - 1).data() - bytes_at(column, 0).data();
  }
  // Codes in place of keys from now on.
  void use_codes(const HashKey& seed, uint32_t count) {
    const Column& dictionary = *column.dictionary;
    hashes = code_hashes(dictionary, seed);
    shards.assign(hashes.size(), kNobody);
    for (size_t code = 0; code < shards.size(); ++code)
      if (dictionary.valid(static_cast<int64_t>(code))) shards[code] = static_cast<uint8_t>(shard_of(hashes[code], count));
  }
};

// Checks rows of a dictionary column all of whose values may be items.
inline void check_codes(const Column& rows, const Checks& checks) {
  if (!checks.skip_nulls && any_null(rows))
    throw DataError("the column has nulls; pass nulls=\"skip\" to leave them out");
  const uint64_t size = static_cast<uint64_t>(rows.dictionary->length);
  with_integers(rows, [&](auto codes) {
    bool outside = false;
    for (int64_t i = 0; i < rows.length; ++i) outside |= static_cast<uint64_t>(codes[i]) >= size && rows.valid(i);
    if (outside) throw DataError("a dictionary column has an index outside its dictionary");
  });
}

// What one shard gets of a slice: keys with their hashes, or numbers in their place.
template <class Key>
struct Hashed {
  Key key;
  uint64_t hash = 0;
};
enum class LaneOf : uint8_t {
  keys,
  rows,   // of texts or bytes whose hashes are kept with them, counted from the first of the slice
  codes,  // of a dictionary of strings
};
template <class Key>
struct Lane {
  LaneOf content = LaneOf::keys;
  WipedVector<Hashed<Key>> keys;
  WipedVector<uint32_t> numbers;
  size_t size = 0;
};

// Appends to lanes; no more than a block between two calls of reserve().
template <class Key, class Value>
class LaneWriter {
 public:
  LaneWriter(std::vector<Lane<Key>>& lanes, WipedVector<Value> Lane<Key>::*values, LaneOf content)
      : lanes_(lanes), values_(values) {
    for (Lane<Key>& lane : lanes) {
      lane.content = content;
      lane.size = 0;
    }
  }
  void reserve() {
    for (size_t s = 0; s < lanes_.size(); ++s) {
      auto& values = lanes_[s].*values_;
      if (ends_[s]) lanes_[s].size = static_cast<size_t>(ends_[s] - values.data());
      if (values.size() < lanes_[s].size + kBlock) values.resize(2 * (lanes_[s].size + kBlock));
      ends_[s] = values.data() + lanes_[s].size;
    }
  }
  void put(uint32_t shard, const Value& value) { *ends_[shard]++ = value; }
  void finish() {
    for (size_t s = 0; s < lanes_.size(); ++s) lanes_[s].size = static_cast<size_t>(ends_[s] - (lanes_[s].*values_).data());
  }

 private:
  std::vector<Lane<Key>>& lanes_;
  WipedVector<Value> Lane<Key>::*values_;
  Value* ends_[kMaxShards] = {};
};

// Splits rows [begin, end) of a checked chunk into a lane for each shard, in order.
template <class Key>
void split(const ShardedChunk& chunk, int64_t begin, int64_t end, const HashKey& seed, std::vector<Lane<Key>>& lanes) {
  const uint32_t shards = static_cast<uint32_t>(lanes.size());
  const Column& column = chunk.column;
  // Calls put(row) for the valid ones, a block at a time.
  const auto each_row = [&](auto& writer, auto&& put) {
    while (begin < end) {
      writer.reserve();
      const int64_t stop = std::min<int64_t>(end, begin + static_cast<int64_t>(kBlock));
      if (!column.validity) {
        for (; begin < stop; ++begin) put(begin);
      } else {
        for (; begin < stop; ++begin)
          if (column.valid(begin)) put(begin);
      }
    }
    writer.finish();
  };
  if (chunk.coded()) {
    LaneWriter<Key, uint32_t> writer(lanes, &Lane<Key>::numbers, LaneOf::codes);
    with_integers(column, [&](auto codes) {
      each_row(writer, [&](int64_t row) {
        const uint32_t code = static_cast<uint32_t>(codes[row]);
        const uint8_t shard = chunk.shards[code];
        if (shard != ShardedChunk::kNobody) writer.put(shard, code);
      });
    });
    return;
  }
  if constexpr (std::is_same_v<Key, StrKey>) {
    const uint64_t* const hashes = column.dictionary || column.validity || column.tags ? nullptr : column.known_hashes(seed);
    if (hashes) {
      LaneWriter<Key, uint32_t> writer(lanes, &Lane<Key>::numbers, LaneOf::rows);
      const int64_t first = begin;
      each_row(writer, [&](int64_t row) { writer.put(shard_of(hashes[row], shards), static_cast<uint32_t>(row - first)); });
      return;
    }
  }
  LaneWriter<Key, Hashed<Key>> writer(lanes, &Lane<Key>::keys, LaneOf::keys);
  if (column.dictionary) {
    const Column& dictionary = *column.dictionary;
    each_row(writer, [&](int64_t row) {
      const int64_t code = static_cast<int64_t>(integer_at(column, row));
      if (!dictionary.valid(code)) return;
      const Key key = key_at(dictionary, code, Key{});
      const uint64_t hash = key.hash(seed);
      writer.put(shard_of(hash, shards), {key, hash});
    });
    return;
  }
  for_blocks(column, begin, end, seed, Key{}, [&](const Key* keys, const uint64_t* hashes, size_t n) {
    writer.reserve();
    for (size_t i = 0; i < n; ++i) writer.put(shard_of(hashes[i], shards), {keys[i], hashes[i]});
  });
  writer.finish();
}

inline void add_rows(MisraGries<StrKey>& shard, const Lane<StrKey>& lane, const Column& column, int64_t first) {
  const uint32_t* const rows = lane.numbers.data();
  const uint64_t* const known = column.known_hashes(shard.seed()) + first;
  const Tag tag = column.tag(0);
  with_bytes(column, [&](auto bytes_of) {
    StrKey keys[kBlock];
    uint64_t hashes[kBlock];
    for (size_t begin = 0, n; begin < lane.size; begin += n) {
      n = std::min(kBlock, lane.size - begin);
      for (size_t i = 0; i < n; ++i) {
        const uint32_t row = rows[begin + i];
        const std::string_view bytes = bytes_of(first + row);
        keys[i] = {bytes.data(), static_cast<uint32_t>(bytes.size()), tag};
        hashes[i] = known[row];
      }
      shard.add_block(keys, hashes, n);
    }
  });
}

// Counts a lane of keys, or of rows of a column from `first` on.
template <class Key>
void add_lane(MisraGries<Key>& shard, const Lane<Key>& lane, const Column& column, int64_t first) {
  if constexpr (std::is_same_v<Key, StrKey>) {
    if (lane.content == LaneOf::rows) return add_rows(shard, lane, column, first);
  }
  const Hashed<Key>* items = lane.keys.data();
  shard.add_each(
      lane.size, [&](size_t i) { return items[i].hash; },
      [&](size_t i, uint32_t p) { return shard.table().key(p).equals(items[i].key, items[i].hash); },
      [&](size_t i) { shard.enter(items[i].key, items[i].hash); });
}

// Fills the shards with one thread for each. While it lives nobody else may touch them.
template <class Key>
class ShardThreads {
 public:
  ShardThreads(ShardedMisraGries<Key>& summary, const Checks& checks)
      : shards_(summary.shards()), checks_(checks), seed_(summary.seed()), next_(shards_.size(), 0),
        counting_(shards_.size(), false), feeds_(shards_.size()), slices_(2 * shards_.size() + 2) {
    for (Slice& slice : slices_) slice.lanes.resize(shards_.size());
    try {
      for (size_t i = 0; i < shards_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ShardThreads(const ShardThreads&) = delete;
  ShardThreads& operator=(const ShardThreads&) = delete;
  ~ShardThreads() { stop(); }

  // Takes a chunk as soon as the threads are about to run out of rows. Throws what a thread threw; `wait` is called now
  // and then while there is nothing to do, and may throw.
  template <class Wait>
  void push(ShardedChunk chunk, Wait&& wait) {
    if (chunk.column.length == 0) return;
    until([this] { return !enough(); }, wait);
    const std::lock_guard lock(mutex_);
    waiting_rows_ += chunk.column.length;
    waiting_bytes_ += chunk.bytes();
    chunks_.push_back(std::make_unique<ShardedChunk>(std::move(chunk)));
    changed_.notify_all();
  }
  // Returns when everything is counted.
  template <class Wait>
  void finish(Wait&& wait) {
    until([this] { return waiting_rows_ == 0 && done_ == claimed_; }, wait);
  }

 private:
  struct Slice {
    ShardedChunk* chunk = nullptr;
    int64_t begin = 0, end = 0;
    bool ready = false;
    size_t left = 0;  // shards that have not counted it
    std::vector<Lane<Key>> lanes;
  };

  static constexpr int64_t kEnoughBytes = 4 << 20;
  static constexpr int64_t kMostRows = 65536;
  // Many rows for a lock, few enough for the second-level cache: lanes of keys are longer than those of rows.
  int64_t slice_rows() const { return std::clamp<int64_t>(8192 * static_cast<int64_t>(shards_.size()), 16384, kMostRows); }
  int64_t slice_rows(const ShardedChunk& chunk) const { return chunk.column.hashes ? kMostRows : slice_rows(); }
  // Whether so much waits to be split that more would only take memory.
  bool enough() const { return waiting_rows_ >= 4 * slice_rows() || waiting_bytes_ >= kEnoughBytes; }
  Slice& slice(uint64_t number) { return slices_[number % slices_.size()]; }

  template <class Done, class Wait>
  void until(Done&& done, Wait&& wait) {
    std::unique_lock lock(mutex_);
    for (;;) {
      // The caller lets go of the chunks: that may need the GIL, and must not be done under the lock.
      std::vector<std::unique_ptr<ShardedChunk>> finished;
      while (!chunks_.empty() && chunks_.front()->next == chunks_.front()->column.length && !chunks_.front()->open) {
        finished.push_back(std::move(chunks_.front()));
        chunks_.pop_front();
      }
      if (!finished.empty()) {
        lock.unlock();
        finished.clear();
        lock.lock();
      }
      if (failure_) std::rethrow_exception(failure_);
      if (done()) return;
      if (progress_.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::timeout) {
        lock.unlock();
        wait();
        lock.lock();
      }
    }
  }

  // Thread `own` counts the shard of its number, whose counters are in its cache; another one's only when there is
  // nothing else to do.
  void work(size_t own) {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      try {
        if (!count_of(own, lock) && !split_one(lock) && !count_any(lock)) changed_.wait(lock);
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!failure_) failure_ = std::current_exception();
        stopping_ = true;
        changed_.notify_all();
        progress_.notify_all();
      }
    }
  }

  // Counts the lane of the shard that is furthest behind.
  bool count_any(std::unique_lock<std::mutex>& lock) {
    size_t shard = 0;
    for (size_t s = 1; s < shards_.size(); ++s)
      if (counting_[shard] || (!counting_[s] && next_[s] < next_[shard])) shard = s;
    return count_of(shard, lock);
  }

  // Counts the next lane of a shard, if there is one and no other thread is at it.
  bool count_of(size_t shard, std::unique_lock<std::mutex>& lock) {
    if (counting_[shard] || next_[shard] == claimed_ || !slice(next_[shard]).ready) return false;
    Slice& part = slice(next_[shard]);
    counting_[shard] = true;
    lock.unlock();
    count(part, shard);
    lock.lock();
    counting_[shard] = false;
    ++next_[shard];
    if (--part.left == 0) {
      part.ready = false;
      --part.chunk->open;
      if (++done_ == claimed_ && waiting_rows_ == 0) progress_.notify_all();
    }
    changed_.notify_all();
    return true;
  }

  void count(const Slice& part, size_t shard) {
    const Lane<Key>& lane = part.lanes[shard];
    if (lane.content != LaneOf::codes) {
      add_lane(shards_[shard], lane, part.chunk->column, part.begin);
      return;
    }
    if constexpr (std::is_same_v<Key, StrKey>) {
      auto& feed = feeds_[shard];
      if (!feed)
        feed = std::make_unique<DictionaryFeed<MisraGries<Key>>>(shards_[shard], part.chunk->column, part.chunk->hashes);
      feed->feed(lane.numbers.data(), lane.size);
      if (part.end == part.chunk->column.length) {
        feed->settle();
        feed.reset();
      }
    }
  }

  // Splits the next slice, if one of the lanes' places is free.
  bool split_one(std::unique_lock<std::mutex>& lock) {
    Slice& part = slice(claimed_);
    if (waiting_rows_ == 0 || part.left) return false;
    const auto found = std::find_if(chunks_.begin(), chunks_.end(), [](auto& c) { return c->next < c->column.length; });
    part.chunk = found->get();
    part.begin = part.chunk->next;
    part.end = std::min(part.chunk->column.length, part.begin + slice_rows(*part.chunk));
    part.left = shards_.size();
    part.chunk->next = part.end;
    ++part.chunk->open;
    const bool were_enough = enough();
    waiting_rows_ -= part.end - part.begin;
    if (part.end == part.chunk->column.length) waiting_bytes_ -= part.chunk->bytes();
    if (were_enough && !enough()) progress_.notify_all();
    ++claimed_;
    lock.unlock();
    bool ready = false;
    if (!part.chunk->checked) {
      Column rows = part.chunk->column;
      rows.offset += part.begin;
      rows.length = part.end - part.begin;
      if (part.chunk->coded()) {
        check_codes(rows, checks_);
      } else if (const BadRows bad = validate(rows, checks_); !bad.empty()) {
        ShardedChunk rest;
        leave_out(rows, bad);
        rest.column = std::move(rows);
        split(rest, 0, rest.column.length, seed_, part.lanes);
        ready = true;
      }
    }
    if (!ready) split(*part.chunk, part.begin, part.end, seed_, part.lanes);
    lock.lock();
    part.ready = true;
    changed_.notify_all();
    return true;
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::vector<MisraGries<Key>>& shards_;
  const Checks checks_;
  const HashKey seed_;

  std::mutex mutex_;  // guards everything below but the lanes of a slice that a thread works on
  std::condition_variable changed_;   // for the threads: there may be something to do
  std::condition_variable progress_;  // for the caller: chunks are wanted, or all is counted, or something failed
  std::deque<std::unique_ptr<ShardedChunk>> chunks_;
  int64_t waiting_rows_ = 0;      // of no slice yet
  int64_t waiting_bytes_ = 0;     // of chunks that have such rows
  uint64_t claimed_ = 0;          // slices that were made; slice n lives at n modulo the number of places
  uint64_t done_ = 0;             // slices that every shard has counted
  std::vector<uint64_t> next_;    // by shard: the slice it counts next
  std::vector<bool> counting_;    // by shard: whether a thread is at it
  std::vector<std::unique_ptr<DictionaryFeed<MisraGries<Key>>>> feeds_;  // by shard: of the chunk whose codes it counts
  std::vector<Slice> slices_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace discreet
