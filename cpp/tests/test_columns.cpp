#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "discreet/arrow_checks.hpp"
#include "discreet/column.hpp"
#include "discreet/counters/interner.hpp"
#include "discreet/counters/misra_gries.hpp"
#include "discreet/counters/pairs.hpp"
#include "streams.hpp"

using namespace discreet;
using namespace discreet::test;

namespace {

// A string column as another library hands it over, in buffers of exactly its size: an address sanitizer sees every
// byte that is read beside them.
struct Strings {
  std::unique_ptr<int32_t[]> offsets;
  std::unique_ptr<char[]> bytes;
  const void* buffers[3];
  ArrowSchema schema{};
  ArrowArray array{};

  explicit Strings(const std::vector<std::string>& values) : offsets(new int32_t[values.size() + 1]) {
    offsets[0] = 0;
    std::string all;
    for (size_t i = 0; i < values.size(); ++i) {
      all += values[i];
      offsets[i + 1] = static_cast<int32_t>(all.size());
    }
    bytes.reset(new char[all.size()]);
    std::copy(all.begin(), all.end(), bytes.get());
    buffers[0] = nullptr;
    buffers[1] = offsets.get();
    buffers[2] = bytes.get();
    schema.format = "u";
    array.length = static_cast<int64_t>(values.size());
    array.n_buffers = 3;
    array.buffers = buffers;
  }
};

}  // namespace

TEST_CASE("A string column of Arrow is read to its last byte and no further") {
  const auto words = texts(skewed(1500, 90, 1));
  Strings strings(words);
  check_arrow(strings.schema, strings.array);
  const Column column = column_from_arrow(strings.schema, strings.array, nullptr);
  CHECK(validate(column, {100, false}).empty());
  MisraGries<StrKey> kernel(200, HashKey(2));
  for_blocks(column, 0, column.length, kernel.seed(), StrKey{},
             [&](const StrKey* keys, const uint64_t* hashes, size_t n) { kernel.add_block(keys, hashes, n); });
  CHECK(counts_of(kernel) == tally(words));
}

TEST_CASE("A dictionary column counts what its decoded column counts") {
  const auto words = texts(skewed(60, 40, 2));
  Strings values(words);
  std::vector<int32_t> codes;
  std::vector<std::string> decoded;
  for (const uint64_t x : skewed(3000, words.size(), 3)) {
    codes.push_back(static_cast<int32_t>(x));
    decoded.push_back(words[x]);
  }
  const void* buffers[2] = {nullptr, codes.data()};
  ArrowSchema schema{};
  ArrowArray array{};
  schema.format = "i";
  schema.dictionary = &values.schema;
  array.length = static_cast<int64_t>(codes.size());
  array.n_buffers = 2;
  array.buffers = buffers;
  array.dictionary = &values.array;
  check_arrow(schema, array);
  const Column column = column_from_arrow(schema, array, nullptr);
  CHECK(validate(column, {100, false}).empty());
  for (const uint64_t capacity : {3u, 8u, 100u}) {
    MisraGries<StrKey> coded(capacity, HashKey(6)), plainly(capacity, HashKey(6));
    const auto hashes = code_hashes(*column.dictionary, coded.seed());
    DictionaryFeed<MisraGries<StrKey>> dictionary(coded, column, hashes);
    dictionary.feed(0, column.length);
    dictionary.settle();
    feed(plainly, keys_of(decoded));
    CHECK(counts_of(coded) == counts_of(plainly));
  }
  Interner<StrKey> interner{HashKey(1)};
  std::vector<int32_t> numbers(codes.size());
  interner.number_rows(column, numbers.data());
  for (size_t i = 0; i < numbers.size(); ++i)
    CHECK(plain(interner.key(static_cast<uint64_t>(numbers[i]))) == decoded[i]);
  codes[7] = static_cast<int32_t>(words.size());
  CHECK_THROWS_AS(validate(column, {100, false}), DataError);
}

TEST_CASE("Numbers are those of the first appearance, while the table grows and where a block has a new key twice") {
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < 40'000; ++i) texts.push_back(std::string(i % 23, 'x') + std::to_string(i * i % 9'001));
  for (size_t i = 0; i + 1 < texts.size(); i += 100) texts[i + 1] = texts[i] = "twice " + std::to_string(i);
  std::map<std::string, int32_t> first;
  std::vector<int32_t> expected, numbers(texts.size()), again(texts.size());
  for (const std::string& text : texts)
    expected.push_back(first.emplace(text, static_cast<int32_t>(first.size())).first->second);
  Strings strings(texts);
  const Column column = column_from_arrow(strings.schema, strings.array, nullptr);
  Interner<StrKey> interner{HashKey(3)};
  interner.number_rows(column, numbers.data());
  interner.number_rows(column, again.data());
  CHECK(numbers == expected);
  CHECK(again == expected);
  CHECK(interner.size() == first.size());
}

TEST_CASE("Malformed Arrow is refused before it is read") {
  Strings strings({"a", "bc", "def"});
  strings.offsets[2] = 0;  // offsets that fall
  CHECK_THROWS_AS(check_arrow(strings.schema, strings.array), DataError);
  strings.offsets[2] = 3;
  check_arrow(strings.schema, strings.array);
  strings.array.length = -1;
  CHECK_THROWS_AS(check_arrow(strings.schema, strings.array), DataError);
  strings.array.length = 3;
  strings.array.n_buffers = 2;
  CHECK_THROWS_AS(check_arrow(strings.schema, strings.array), DataError);
  strings.array.n_buffers = 3;
  strings.buffers[2] = nullptr;
  CHECK_THROWS_AS(check_arrow(strings.schema, strings.array), DataError);
  strings.schema.format = nullptr;
  CHECK_THROWS_AS(check_arrow(strings.schema, strings.array), DataError);
}

TEST_CASE("Bad items are refused, or left out") {
  Strings strings({"good", "\xff", "too long for this"});
  Column column = column_from_arrow(strings.schema, strings.array, nullptr);
  CHECK_THROWS_AS(validate(column, {100, false}), DataError);
  const BadRows bad = validate(column, {10, false, BadItems::skip});
  CHECK(bad == BadRows{1, 2});
  leave_out(column, bad);
  CHECK(column.valid(0));
  CHECK_FALSE(column.valid(1));
  CHECK_FALSE(column.valid(2));
}

TEST_CASE("People and items are grouped, whatever the order of the rows and the number of threads") {
  std::mt19937_64 random(8);
  std::vector<int32_t> users, items;
  std::map<std::pair<int32_t, int32_t>, int64_t> times;
  constexpr size_t kRows = 40000;
  for (size_t row = 0; row < kRows; ++row) {
    users.push_back(static_cast<int32_t>(random() % 300) - 1);  // -1: no person
    items.push_back(static_cast<int32_t>(random() % 3000));
    if (users.back() >= 0) ++times[{users.back(), items.back()}];
  }
  for (const size_t threads : {1u, 3u}) {
    Pairs pairs(Pairs::Entry::times, 1001, 3, threads);
    pairs.add(users.data(), items.data(), nullptr, 2000);
    pairs.add(users.data() + 2000, items.data() + 2000, nullptr, kRows - 2000);
    pairs.group();
    std::vector<int32_t> index(pairs.items(), -1);
    std::vector<int64_t> weights{1, 2};
    index[5] = 0;
    index[6] = 1;
    std::map<int32_t, double> squared;
    for (const auto& [pair, n] : times)
      if (pair.second == 5 || pair.second == 6) {
        const auto v = static_cast<double>(std::min<int64_t>(n, 3) * (pair.second == 5 ? 1 : 2));
        squared[pair.first] += v * v;
      }
    std::vector<double> expected, lengths = pairs.lengths(index.data(), weights.data());
    for (const auto& each : squared) expected.push_back(each.second);
    std::sort(expected.begin(), expected.end());
    std::sort(lengths.begin(), lengths.end());
    CHECK(lengths == expected);
    std::vector<uint64_t> keys(pairs.items());
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = splitmix(i);
    // With room for all items, an item's sum is the sum over its people of trunc(1000 / sqrt(items of the person)).
    const auto sums = pairs.discovery(4000, keys.data());
    std::map<int32_t, int64_t> lists;
    for (const auto& each : times) ++lists[each.first.first];
    std::vector<int64_t> direct(pairs.items(), 0);
    for (const auto& each : times)
      direct[static_cast<size_t>(each.first.second)] +=
          static_cast<int64_t>(1000.0 / std::sqrt(static_cast<double>(lists[each.first.first])));
    CHECK(sums == direct);
  }
}
