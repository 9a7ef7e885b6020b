#include <doctest/doctest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "discreet/sketches/local_oracles.hpp"
#include "discreet/sketches/message_codec.hpp"

using namespace discreet;

namespace {

std::vector<int64_t> read(const std::string& data, size_t n, int64_t bound) {
  std::vector<int64_t> out(n, 99);
  codec::read_integers(data, n, bound, out.data());
  return out;
}

}  // namespace

TEST_CASE("Integers come back as they were written, dense and sparse, large and small") {
  std::mt19937_64 random(4);
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const uint64_t one_in : {1u, 3u, 200u})
    for (const int64_t scale : {int64_t{1}, int64_t{40}, int64_t{1} << 40, most}) {
      std::vector<int64_t> values(500, 0);
      for (int64_t& value : values)
        if (random() % one_in == 0) value = static_cast<int64_t>(random() % static_cast<uint64_t>(scale)) - scale / 2;
      const std::string data = codec::write_integers(values.data(), values.size());
      CHECK(read(data, values.size(), most) == values);
    }
  const std::vector<int64_t> ends{most, -most, 0, 1, -1};
  CHECK(read(codec::write_integers(ends.data(), 5), 5, most) == ends);
  CHECK(read(codec::write_integers(nullptr, 0), 0, 1).empty());
}

TEST_CASE("Messages that nobody writes are refused") {
  const std::vector<int64_t> values{0, 0, 5, -3, 0, 0, 0, 1};
  const std::string good = codec::write_integers(values.data(), values.size());
  CHECK_THROWS_AS(read(good, 8, 4), DataError);   // a value above the bound
  CHECK_THROWS_AS(read(good, 40, 9), DataError);  // more values than there are
  CHECK_THROWS_AS(read(good, 3, 9), DataError);   // fewer
  CHECK_THROWS_AS(read(good + std::string(1, '\0'), 8, 9), DataError);
  CHECK_THROWS_AS(read("", 8, 9), DataError);
  const int64_t negative[] = {1, -5};
  CHECK_THROWS_AS(read(codec::write_integers(negative, 2), 2, 4), DataError);
  std::vector<int64_t> last(201, 0);  // one value, in the place after the end of a table of 200
  last[200] = 1;
  CHECK_THROWS_AS(read(codec::write_integers(last.data(), last.size()), 200, 9), DataError);
  CHECK_THROWS_AS(read(good.substr(0, good.size() - 1), 8, 9), DataError);
  CHECK_THROWS_AS(read("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 8, 9), DataError);
}

TEST_CASE("Every message of up to two bytes is read or refused") {
  for (unsigned first = 0; first < 256; ++first)
    for (unsigned second = 0; second < 256; ++second) {
      const std::string data{static_cast<char>(first), static_cast<char>(second)};
      std::vector<int64_t> out(3);
      try {
        codec::read_integers(data, 3, 4, out.data());
      } catch (const DataError&) {
        continue;
      }
      for (const int64_t value : out) CHECK(std::abs(value) <= 4);
    }
}

TEST_CASE("Packed values keep their width and stay below their limit") {
  const std::vector<uint32_t> values{0, 5, 6, 2, 1};
  const std::string data = codec::pack(values.data(), values.size(), 3);
  CHECK(data.size() == 2);
  std::vector<uint32_t> out(5);
  codec::unpack(data, 5, 3, 7, out.data());
  CHECK(out == values);
  CHECK_THROWS_AS(codec::unpack(data, 5, 3, 6, out.data()), DataError);
  CHECK_THROWS_AS(codec::unpack(data + "x", 5, 3, 7, out.data()), DataError);
}

TEST_CASE("Philox gives the published numbers") {
  // The vector of zeros of Random123's known answers for philox4x64-10.
  const oracle::Words zero = oracle::philox({0, 0}, 0);
  CHECK(zero ==
        oracle::Words{0x16554d9eca36314cull, 0xdb20fe9d672d0fdcull, 0xd7e772cee186176bull, 0x7e68b68aec7ba23bull});
}

TEST_CASE("Sums over Hadamard reports are the same by the transform and one by one") {
  const oracle::Key key{3, 4};
  std::vector<uint64_t> numbers, items{0, 1, 5, 6};
  std::vector<uint8_t> bits;
  for (uint64_t i = 0; i < 300; ++i) {
    numbers.push_back(7 * i);
    bits.push_back(i % 3 == 0);
  }
  std::vector<int64_t> sums(items.size());
  oracle::hadamard_sums(key, 3, numbers.data(), bits.data(), numbers.size(), items.data(), items.size(), sums.data());
  for (size_t j = 0; j < items.size(); ++j) {
    int64_t direct = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      direct += (oracle::parity(oracle::hadamard_row(key, numbers[i], 3), items[j]) ^ bits[i]) ? -1 : 1;
    CHECK(sums[j] == direct);
  }
}

TEST_CASE("Counts of buckets are those of hashing every item for every report") {
  const oracle::Key key{1, 2};
  for (const uint32_t buckets : {2u, 3u, 10u}) {
    std::vector<uint64_t> numbers, items{0, 9, uint64_t{1} << 63, 12345};
    std::vector<uint32_t> reports;
    for (uint32_t i = 0; i < 2000; ++i) {
      numbers.push_back(i);
      reports.push_back(i % buckets);
    }
    std::vector<int64_t> counts(items.size());
    oracle::bucket_counts(key, buckets, numbers.data(), reports.data(), numbers.size(), items.data(), items.size(),
                          counts.data());
    for (size_t j = 0; j < items.size(); ++j) {
      int64_t direct = 0;
      for (size_t i = 0; i < numbers.size(); ++i)
        direct += oracle::bucket_of(oracle::Function::of(key, numbers[i])(items[j]), buckets) == reports[i];
      CHECK(counts[j] == direct);
    }
  }
}
