#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <vector>

#include "discreet/sketches/count_min.hpp"
#include "discreet/sketches/count_sketch.hpp"
#include "streams.hpp"

using namespace discreet;
using namespace discreet::test;

namespace {

std::shared_ptr<const RowHashes> hashes(uint64_t depth, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> words(RowHashes::words(depth));
  for (uint64_t& word : words) word = random();
  return std::make_shared<const RowHashes>(depth, words.data(), false);
}

template <class Sketch, class Key>
void feed_linear(Sketch& sketch, const std::vector<Key>& keys) {
  std::vector<uint64_t> under_seed;
  std::vector<typename Sketch::Digest> digests;
  for (const Key& key : keys) {
    under_seed.push_back(key.hash(sketch.seed()));
    digests.push_back(sketch.digest(key));
  }
  for (size_t at = 0; at < keys.size(); at += kBlock)
    sketch.add(&keys[at], &under_seed[at], &digests[at], std::min(kBlock, keys.size() - at));
}

}  // namespace

TEST_CASE("CountMin never underestimates, and its cells are the sums that they stand for") {
  const auto stream = skewed(4000, 500, 2);
  for (const uint64_t tracked : {0u, 20u}) {
    CountMin<IntKey> sketch(64, hashes(3, 1), tracked);
    feed_linear(sketch, keys_of(stream));
    std::vector<int64_t> cells(64 * 3, 0);
    for (const uint64_t x : stream)
      for (size_t row = 0; row < 3; ++row) ++cells[sketch.place(row, sketch.digest(IntKey{x}))];
    CHECK(sketch.cells() == cells);
    for (const auto& [item, truth] : tally(stream))
      CHECK(sketch.estimate(sketch.digest(IntKey{item})) >= static_cast<int64_t>(truth));
    CHECK(sketch.size() == std::min<uint64_t>(tracked, tally(stream).size()));
  }
}

TEST_CASE("CountSketch adds with signs, and a wide one is exact") {
  const auto words = texts(skewed(3000, 40, 8));
  CountSketch<StrKey> sketch(1 << 16, hashes(5, 3), 8);
  feed_linear(sketch, keys_of(words));
  for (const auto& [item, truth] : tally(words))
    CHECK(sketch.estimate(sketch.digest(str(item))) == static_cast<int64_t>(truth));
  int64_t largest = 0;
  for (const int64_t cell : sketch.cells()) largest = std::max(largest, -cell);
  CHECK(largest > 0);  // there are negative signs
}

TEST_CASE("Linear sketches merge to the sketch of both streams") {
  const auto left = skewed(1000, 300, 1), right = skewed(1500, 300, 2);
  const auto same = hashes(3, 9);
  CountSketch<IntKey> a(50, same, 0), b(50, same, 0), whole(50, same, 0);
  feed_linear(a, keys_of(left));
  feed_linear(b, keys_of(right));
  feed_linear(whole, keys_of(left));
  feed_linear(whole, keys_of(right));
  a.merge(b);
  CHECK(a.cells() == whole.cells());
  CHECK(a.total() == whole.total());
  CountSketch<IntKey> weighted(50, same, 0);
  for (const auto& [item, n] : tally(left)) weighted.add_weighted(weighted.digest(IntKey{item}), n);
  for (const auto& [item, n] : tally(right)) weighted.add_weighted(weighted.digest(IntKey{item}), n);
  CHECK(weighted.cells() == whole.cells());
}

TEST_CASE("Digests of texts tell lengths and kinds apart") {
  const auto functions = hashes(1, 4);
  for (uint32_t n = 0; n < 40; ++n) {
    const std::string zeros(n, '\0'), more(n + 1, '\0');
    const StrDigest a = functions->digest(str(zeros)), b = functions->digest(str(more));
    CHECK((a.u != b.u || a.v != b.v));
    const StrDigest c = functions->digest(str(zeros, Tag::bytes));
    CHECK((a.u != c.u || a.v != c.v));
    CHECK(a.u < kPrime61);
    CHECK(a.v < kPrime61);
  }
}
