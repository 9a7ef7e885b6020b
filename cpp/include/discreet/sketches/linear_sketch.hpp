// What CountMin and CountSketch share: depth rows of width cells, every event adds +-1 to one cell of every row.
//
// A `Rule` says whether events have signs and how an estimate comes from the rows. Blocks of events are hashed row by
// row first and the cells touched afterwards, so that the misses of a wide table overlap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/sketches/candidates.hpp"
#include "discreet/sketches/row_hash.hpp"

namespace discreet {

inline constexpr uint64_t kMaxWidth = 1ull << 30;
inline constexpr uint64_t kMaxDepth = 255;
inline constexpr uint64_t kMaxCells = 1ull << 31;

// A cell of the whole table, and in the top bit whether events count negatively there.
using Place = uint32_t;
inline constexpr Place kNegative = 1u << 31;

template <class Key, class Rule>
class LinearSketch {
 public:
  using Digest = typename DigestFor<Key>::type;

  LinearSketch(uint64_t width, std::shared_ptr<const RowHashes> hashes, uint64_t tracked)
      : width_(width),
        depth_(hashes->depth()),
        hashes_(std::move(hashes)),
        cells_(width * depth_, 0),
        candidates_(tracked, hashes_->table_seed()),
        places_(tracked ? depth_ * kBlock : 0) {}

  uint64_t total() const { return total_; }
  uint64_t size() const { return candidates_.size(); }
  uint64_t bytes() const { return cells_.size() * 8 + places_.size() * sizeof(Place) + candidates_.bytes(); }
  const HashKey& seed() const { return hashes_->table_seed(); }
  bool tracks() const { return candidates_.capacity() > 0; }
  Digest digest(Key key) const { return hashes_->digest(key); }
  const std::vector<int64_t>& cells() const { return cells_; }

  Place place(size_t row, Digest digest) const {
    const uint64_t column = (static_cast<uint64_t>(hashes_->cell(row)(digest)) * width_) >> 32;
    const Place cell = static_cast<Place>(row * width_ + column);
    if constexpr (Rule::kSigned) return cell | (hashes_->sign(row)(digest) & kNegative);
    return cell;
  }

  // Counts a block of at most kBlock events, in order. `hashes` are the keys' under seed().
  void add(const Key* keys, const uint64_t* hashes, const Digest* digests, size_t n) {
    total_ += n;
    if (tracks()) return add_tracked(keys, hashes, digests, n);
    std::array<Place, kBlock> places;
    for (size_t row = 0; row < depth_; ++row) {
      place_block(row, digests, n, places.data());
      for (size_t i = 0; i < n; ++i) bump(places[i], 1);
    }
  }

  // Counts an event `weight` times; only without candidates, whose order of arrival would be lost.
  void add_weighted(Digest digest, uint64_t weight) {
    total_ += weight;
    for (size_t row = 0; row < depth_; ++row) bump(place(row, digest), static_cast<int64_t>(weight));
  }

  int64_t estimate(Digest digest) const {
    std::array<int64_t, kMaxDepth> rows;
    for (size_t row = 0; row < depth_; ++row) rows[row] = at(place(row, digest));
    return Rule::combine(rows.data(), depth_);
  }

  // The candidates with their present estimates.
  std::vector<Candidate<Key>> counters() const {
    std::vector<Candidate<Key>> out = candidates_.all();
    for (Candidate<Key>& c : out) c.count = estimate(digest(c.key));
    return out;
  }
  // The candidates with the estimates of their last arrival, which is what decides who is replaced.
  std::vector<Candidate<Key>> arrivals() const { return candidates_.all(); }

  // Cells add up. The candidates are the largest, by the new estimates, of those of both.
  void merge(const LinearSketch& other) {
    LinearSketch sum = *this;
    for (size_t i = 0; i < cells_.size(); ++i) sum.cells_[i] += other.cells_[i];
    sum.total_ += other.total_;
    std::vector<Candidate<Key>> both = sum.counters();
    const ptrdiff_t mine = static_cast<ptrdiff_t>(both.size());
    for (Candidate<Key> c : other.candidates_.all()) {
      if (std::binary_search(both.begin(), both.begin() + mine, c, by_key<Key>)) continue;
      c.count = sum.estimate(digest(c.key));
      both.push_back(c);
    }
    // The keys point into both sketches, so `sum` is filled before `this` goes.
    candidates_.assign(std::move(both));
    sum.candidates_ = std::move(candidates_);
    *this = std::move(sum);
  }

  void assign(std::vector<int64_t> cells, uint64_t total, std::vector<Candidate<Key>> candidates) {
    cells_ = std::move(cells);
    total_ = total;
    candidates_.assign(std::move(candidates));
  }

 private:
  static constexpr size_t kPrefetchCells = 1 << 15;  // a table of 256 KiB stays in the second-level cache

  int64_t at(Place place) const {
    if constexpr (Rule::kSigned) return place & kNegative ? -cells_[place & ~kNegative] : cells_[place];
    return cells_[place];
  }
  void bump(Place place, int64_t by) {
    if constexpr (Rule::kSigned) {
      const int64_t sign = -static_cast<int64_t>(place >> 31);  // 0 or -1
      cells_[place & ~kNegative] += (by ^ sign) - sign;
    } else {
      cells_[place] += by;
    }
  }

  void place_block(size_t row, const Digest* digests, size_t n, Place* places) {
    const RowFunction cell = hashes_->cell(row);
    const uint64_t first = row * width_;
    for (size_t i = 0; i < n; ++i)
      places[i] = static_cast<Place>(first + ((static_cast<uint64_t>(cell(digests[i])) * width_) >> 32));
    if (cells_.size() > kPrefetchCells)
      for (size_t i = 0; i < n; ++i) __builtin_prefetch(&cells_[places[i]], 1);
    if constexpr (Rule::kSigned) {
      const RowFunction sign = hashes_->sign(row);
      for (size_t i = 0; i < n; ++i) places[i] |= sign(digests[i]) & kNegative;
    }
  }

  void add_tracked(const Key* keys, const uint64_t* hashes, const Digest* digests, size_t n) {
    for (size_t row = 0; row < depth_; ++row) place_block(row, digests, n, &places_[row * kBlock]);
    std::array<int64_t, kMaxDepth> rows;
    for (size_t i = 0; i < n; ++i) {
      for (size_t row = 0; row < depth_; ++row) {
        const Place place = places_[row * kBlock + i];
        bump(place, 1);
        rows[row] = at(place);
      }
      candidates_.offer(keys[i], hashes[i], Rule::combine(rows.data(), depth_));
    }
  }

  uint64_t width_;
  uint64_t depth_;
  std::shared_ptr<const RowHashes> hashes_;
  std::vector<int64_t> cells_;  // row by row
  Candidates<Key> candidates_;
  std::vector<Place> places_;  // of a block, row by row
  uint64_t total_ = 0;
};

}  // namespace discreet
