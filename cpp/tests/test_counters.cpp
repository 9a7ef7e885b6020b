#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "discreet/counters/exact_counts.hpp"
#include "discreet/counters/misra_gries.hpp"
#include "discreet/counters/sharded_misra_gries.hpp"
#include "discreet/counters/space_saving.hpp"
#include "discreet/counters/user_misra_gries.hpp"
#include "discreet/sketches/widen.hpp"
#include "streams.hpp"

using namespace discreet;
using namespace discreet::test;

namespace {

// Algorithm 1 of [LT] word by word: dummies first, zero counters kept, the zero counter whose hash comes first goes.
template <class Item>
class LiteralMisraGries {
 public:
  LiteralMisraGries(size_t capacity, const HashKey& seed) : capacity_(capacity), seed_(seed) {}
  void add(const Item& item, uint64_t hash) {
    if (const auto at = counts_.find(item); at != counts_.end()) {
      ++at->second.second;
    } else if (counts_.size() < capacity_) {
      counts_[item] = {hash, 1};
    } else {
      auto first = counts_.end();
      for (auto c = counts_.begin(); c != counts_.end(); ++c)
        if (c->second.second == 0 && (first == counts_.end() || c->second.first < first->second.first)) first = c;
      if (first != counts_.end()) {
        counts_.erase(first);
        counts_[item] = {hash, 1};
        return;
      }
      ++decrements;
      for (auto& c : counts_) --c.second.second;
    }
  }
  std::map<Item, uint64_t> counts() const {
    std::map<Item, uint64_t> out;
    for (const auto& [item, c] : counts_) out[item] = c.second;
    return out;
  }
  uint64_t decrements = 0;

 private:
  size_t capacity_;
  HashKey seed_;
  std::map<Item, std::pair<uint64_t, uint64_t>> counts_;
};

// Algorithm 2 of [SS]: of the smallest counts the one that was seen last is replaced.
template <class Item>
std::map<Item, uint64_t> literal_space_saving(const std::vector<Item>& stream, size_t capacity) {
  std::map<Item, std::pair<uint64_t, uint64_t>> counts;  // count, last
  uint64_t now = 0;
  for (const Item& item : stream) {
    ++now;
    uint64_t count = 1;
    if (const auto at = counts.find(item); at != counts.end()) {
      count = at->second.first + 1;
    } else if (counts.size() == capacity) {
      const auto victim = std::min_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second.first != b.second.first ? a.second.first < b.second.first : a.second.second > b.second.second;
      });
      count = victim->second.first + 1;
      counts.erase(victim);
    }
    counts[item] = {count, now};
  }
  std::map<Item, uint64_t> out;
  for (const auto& [item, c] : counts) out[item] = c.first;
  return out;
}

template <class Item>
void check_misra_gries(const std::vector<Item>& stream, size_t capacity, uint64_t seed) {
  const auto keys = keys_of(stream);
  using Key = std::remove_cvref_t<decltype(keys[0])>;
  MisraGries<Key> kernel(capacity, HashKey(seed));
  feed(kernel, keys);
  LiteralMisraGries<Item> literal(capacity, HashKey(seed));
  for (size_t i = 0; i < stream.size(); ++i) literal.add(stream[i], keys[i].hash(kernel.seed()));
  CHECK(counts_of(kernel) == literal.counts());
  CHECK(kernel.decrements() == literal.decrements);
  CHECK(kernel.total() == stream.size());
  for (const auto& [item, truth] : tally(stream)) {
    const uint64_t count = kernel.count(keys_of(std::vector<Item>{item})[0]).first;
    CHECK(count <= truth);
    CHECK(count + kernel.decrements() >= truth);
  }
}

}  // namespace

TEST_CASE("Misra-Gries is Algorithm 1 of [LT], for numbers and texts") {
  for (const uint64_t seed : {1u, 2u, 3u})
    for (const size_t capacity : {1u, 2u, 7u, 64u}) {
      const auto stream = skewed(3000, 4 * capacity + 3, seed);
      check_misra_gries(stream, capacity, seed);
      check_misra_gries(texts(stream), capacity, seed);
    }
}

TEST_CASE("Misra-Gries replaces every counter in the order of the hashes, in a table of several rows") {
  std::vector<uint64_t> stream(6000);  // no item comes twice: each takes the place of another, or decrements
  for (size_t i = 0; i < stream.size(); ++i) stream[i] = i * 2654435761u;
  check_misra_gries(stream, 600, 4);
  check_misra_gries(skewed(6000, 3000, 5), 600, 5);
  check_misra_gries(texts(skewed(6000, 3000, 6)), 600, 6);
}

TEST_CASE("Misra-Gries orders keys with equal hashes by their bytes") {
  for (const uint64_t hashes : {1u, 2u, 5u}) {
    const std::vector<std::string> stream = texts(skewed(2000, 60, 3));
    const std::vector<StrKey> keys = keys_of(stream);
    for (const size_t capacity : {4u, 12u, 24u}) {
      MisraGries<StrKey> kernel(capacity, HashKey(1));
      LiteralMisraGries<std::string> literal(capacity, HashKey(1));
      for (size_t i = 0; i < stream.size(); ++i) {
        const uint64_t hash = (std::hash<std::string>()(stream[i]) % hashes) << 60;
        kernel.add_block(&keys[i], &hash, 1);
        literal.add(stream[i], hash);
      }
      CHECK(counts_of(kernel) == literal.counts());
      CHECK(kernel.decrements() == literal.decrements);
    }
  }
}

TEST_CASE("A large table counts blocks as it counts single events, and keys take over the memory of others") {
  const std::vector<uint64_t> numbers = skewed(60'000, 40'000, 11);
  const std::vector<std::string> stream = texts(numbers);
  const std::vector<StrKey> keys = keys_of(stream);
  const HashKey seed(5);
  std::vector<uint64_t> hashes;
  for (const StrKey& key : keys) hashes.push_back(key.hash(seed));
  MisraGries<StrKey> blocks(9'000, seed), single(9'000, seed);
  for (size_t at = 0; at < keys.size(); at += 500)
    blocks.add_block(keys.data() + at, hashes.data() + at, std::min<size_t>(500, keys.size() - at));
  for (size_t i = 0; i < keys.size(); ++i) single.add_block(&keys[i], &hashes[i], 1);
  CHECK(blocks.table().positions() > (1 << 14));
  CHECK(blocks.decrements() > 1);
  CHECK(blocks.decrements() == single.decrements());
  const auto found = blocks.counters(), expected = single.counters();
  REQUIRE(found.size() == expected.size());
  bool same = true;
  for (size_t i = 0; i < found.size(); ++i)
    same &=
        found[i].count == expected[i].count && found[i].hash == expected[i].hash &&
        std::string(found[i].key.data, found[i].key.size) == std::string(expected[i].key.data, expected[i].key.size);
  CHECK(same);
}

TEST_CASE("Misra-Gries grows from its first table to a large capacity") {
  const auto stream = skewed(40000, 30000, 9);
  MisraGries<IntKey> kernel(1 << 20, HashKey(5));
  feed(kernel, keys_of(stream));
  CHECK(counts_of(kernel) == tally(stream));
  CHECK(kernel.decrements() == 0);
}

TEST_CASE("Misra-Gries: a weight is that many events in a row") {
  const auto stream = skewed(400, 20, 4);
  MisraGries<IntKey> one(8, HashKey(3)), many(8, HashKey(3));
  for (size_t i = 0; i < stream.size(); ++i) {
    const IntKey key{stream[i]};
    const uint64_t weight = 1 + i % 5;
    for (uint64_t k = 0; k < weight; ++k) one.add(key, key.hash(one.seed()), 1);
    many.add(key, key.hash(many.seed()), weight);
  }
  CHECK(counts_of(one) == counts_of(many));
  CHECK(one.decrements() == many.decrements());
  CHECK(one.total() == many.total());
}

TEST_CASE("Misra-Gries: merges keep the bound, and what is assigned goes on as it would have") {
  const auto left = skewed(2000, 200, 11), right = skewed(3000, 150, 12);
  MisraGries<IntKey> a(32, HashKey(7)), b(32, HashKey(7));
  feed(a, keys_of(left));
  feed(b, keys_of(right));
  MisraGries<IntKey> copy(32, HashKey(7));
  copy.assign(a.counters(), a.total(), a.decrements());
  feed(copy, keys_of(right));
  MisraGries<IntKey> whole(32, HashKey(7));
  feed(whole, keys_of(left));
  feed(whole, keys_of(right));
  CHECK(counts_of(copy) == counts_of(whole));
  a.merge(b);
  auto both = left;
  both.insert(both.end(), right.begin(), right.end());
  CHECK(a.size() <= 32);
  CHECK(a.total() == both.size());
  CHECK(a.decrements() <= both.size() / 33);
  for (const auto& [item, truth] : tally(both)) {
    CHECK(a.count({item}).first <= truth);
    CHECK(a.count({item}).first + a.decrements() >= truth);
  }
}

TEST_CASE("SpaceSaving is Algorithm 2 of [SS], and merges keep its bound") {
  for (const size_t capacity : {1u, 3u, 16u}) {
    const auto numbers = skewed(3000, 5 * capacity, capacity);
    SpaceSaving<IntKey> kernel(capacity, HashKey(1));
    feed(kernel, keys_of(numbers));
    CHECK(counts_of(kernel) == literal_space_saving(numbers, capacity));
    const auto words = texts(numbers);
    SpaceSaving<StrKey> of_texts(capacity, HashKey(1));
    feed(of_texts, keys_of(words));
    CHECK(counts_of(of_texts) == literal_space_saving(words, capacity));
    SpaceSaving<IntKey> other(capacity, HashKey(1));
    const auto more = skewed(2000, 4 * capacity, 77);
    feed(other, keys_of(more));
    kernel.merge(other);
    auto both = numbers;
    both.insert(both.end(), more.begin(), more.end());
    for (const auto& c : kernel.counters()) {
      CHECK(c.count >= tally(both)[c.key.value]);
      CHECK(c.count <= tally(both)[c.key.value] + both.size() / capacity);
    }
  }
}

TEST_CASE("SpaceSaving, where the smallest count rises by several at once, and in a table of several rows") {
  std::mt19937_64 random(9);
  for (const size_t capacity : {2u, 5u, 600u}) {
    std::vector<uint64_t> stream;
    while (stream.size() < 6000) {
      const uint64_t item = random() % (2 * capacity) * 2654435761u;
      stream.insert(stream.end(), 1 + random() % 7, item);
    }
    SpaceSaving<IntKey> kernel(capacity, HashKey(2));
    feed(kernel, keys_of(stream));
    CHECK(counts_of(kernel) == literal_space_saving(stream, capacity));
  }
}

TEST_CASE("ExactCounts counts, and merges to the counts of both") {
  const auto words = texts(skewed(5000, 3000, 3)), more = texts(skewed(2000, 500, 4));
  ExactCounts<StrKey> a(HashKey(2)), b(HashKey(2));
  feed(a, keys_of(words));
  feed(b, keys_of(more));
  a.merge(b);
  auto both = words;
  both.insert(both.end(), more.begin(), more.end());
  CHECK(counts_of(a) == tally(both));
  CHECK(a.total() == both.size());
}

TEST_CASE("UserMisraGries is Algorithm 4 of [LT]: repeats count once, at most one decrement a user") {
  std::map<uint64_t, int64_t> literal;
  uint64_t decrements = 0;
  constexpr size_t kCapacity = 12, kMost = 5;
  UserMisraGries<IntKey> kernel(kCapacity, kMost, HashKey(3));
  std::mt19937_64 random(5);
  for (int user = 0; user < 2000; ++user) {
    std::vector<IntKey> keys;
    std::vector<uint64_t> hashes;
    for (uint64_t i = random() % (kMost + 1); i > 0; --i) keys.push_back({random() % (1 + random() % 60)});
    if (!keys.empty()) keys.push_back(keys[0]);
    std::map<uint64_t, bool> set;
    for (const IntKey key : keys) {
      hashes.push_back(key.hash(kernel.seed()));
      set[key.value] = true;
    }
    for (const auto& each : set) ++literal[each.first];
    if (literal.size() > kCapacity) {
      ++decrements;
      for (auto& c : literal) --c.second;
      std::erase_if(literal, [](const auto& c) { return c.second == 0; });
    }
    kernel.add_user(keys.data(), hashes.data(), keys.size());
  }
  CHECK(kernel.decrements() == decrements);
  const auto counts = counts_of(kernel);
  CHECK(counts.size() == literal.size());
  for (const auto& [item, count] : literal) CHECK(counts.at(item) == static_cast<uint64_t>(count));
}

TEST_CASE("A sharded sketch holds in each shard what a sketch of its own would") {
  const auto stream = skewed(5000, 400, 6);
  ShardedMisraGries<IntKey> sharded(16, 3, HashKey(8));
  std::vector<std::vector<uint64_t>> parts(3);
  for (const uint64_t x : stream) parts[shard_of(IntKey{x}.hash(sharded.seed()), 3)].push_back(x);
  for (size_t s = 0; s < 3; ++s) {
    feed(sharded.shards()[s], keys_of(parts[s]));
    MisraGries<IntKey> alone(16, HashKey(8));
    feed(alone, keys_of(parts[s]));
    CHECK(counts_of(sharded.shards()[s]) == counts_of(alone));
  }
  CHECK(sharded.total() == stream.size());
}

TEST_CASE("A kernel of numbers that becomes one of several kinds has the same counters in the same order") {
  const auto stream = skewed(2000, 100, 13);
  MisraGries<IntKey> narrow(16, HashKey(8));
  feed(narrow, keys_of(stream));
  MisraGries<StrKey> wide(16, HashKey(8));
  widen(narrow, KeyKind::int64, wide);
  const auto before = narrow.counters();
  const auto after = wide.counters();
  REQUIRE(before.size() == after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(before[i].hash == after[i].hash);
    CHECK(before[i].count == after[i].count);
    CHECK(load64(after[i].key.data) == before[i].key.value);
    CHECK(after[i].key.tag == Tag::integer);
  }
}

TEST_CASE("GroupedTable finds what is in it and nothing else, whatever was erased") {
  GroupedTable<IntKey> table(64, HashKey(4));
  std::map<uint64_t, uint32_t> at;
  std::mt19937_64 random(3);
  for (int step = 0; step < 20000; ++step) {
    const IntKey key{random() % 200};
    const uint64_t hash = key.hash(table.seed());
    const uint32_t found = table.find(key, hash);
    CHECK((found == GroupedTable<IntKey>::kNone) == !at.contains(key.value));
    if (at.contains(key.value)) {
      CHECK(found == at[key.value]);  // entries never move
      table.erase(found);
      at.erase(key.value);
    } else if (at.size() < table.positions()) {
      at[key.value] = table.insert(key, hash);
    }
  }
}

TEST_CASE("Texts, bytes and numbers of the same bytes are different keys") {
  StoredString stored;
  const std::string word = "12345678";
  stored.set(str(word, Tag::text), 5);
  CHECK(stored.equals(str(word, Tag::text), 5));
  CHECK_FALSE(stored.equals(str(word, Tag::bytes), 5));
  CHECK_FALSE(stored.equals(str(word, Tag::integer), 5));
  for (const size_t size : {0u, 1u, 3u, 4u, 7u, 8u, 15u, 16u, 17u, 19u, 20u, 100u}) {
    const std::string text(size, 'a');
    stored.set(str(text), 1);
    StoredString copy = stored, moved = std::move(stored);
    CHECK(copy.equals(str(text), 1));
    CHECK(moved.equals(str(text), 1));
    if (size > 0) CHECK_FALSE(copy.equals(str(std::string(size - 1, 'a') + "b"), 1));
    stored = copy;
  }
}
