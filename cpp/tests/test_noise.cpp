#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "discreet/noise/correlated_noise.hpp"
#include "discreet/noise/random_source.hpp"
#include "discreet/noise/samplers.hpp"
#include "discreet/sketches/pan.hpp"

using namespace discreet;

TEST_CASE("A source that replays gives its words in order, and then an error") {
  std::vector<uint64_t> words;
  for (uint64_t i = 0; i < 700; ++i) words.push_back(i * i);
  RandomSource source(words);
  for (const uint64_t word : words) CHECK(source.next() == word);
  CHECK_THROWS_AS(source.next(), std::out_of_range);
}

TEST_CASE("The system's source differs from itself, and a seeded one does not") {
  RandomSource a, b, c(7), d(7);
  CHECK_FALSE(a.seeded());
  CHECK(a.next() != b.next());
  CHECK(c.seeded());
  for (int i = 0; i < 2000; ++i) CHECK(c.next() == d.next());
}

TEST_CASE("below() is uniform over every first word of a small set") {
  // Over the words k * 2^60 each value of [0, 3) must come equally often among those that are not rejected.
  std::map<uint64_t, int> seen;
  for (uint64_t k = 0; k < 3 * 64; ++k) {
    // Words in the middle of 192 equal parts of the range: no part crosses a border of thirds.
    const uint64_t word = static_cast<uint64_t>(((static_cast<unsigned __int128>(2 * k + 1) << 64) / (2 * 3 * 64)));
    RandomSource source(std::vector<uint64_t>{word, 0});
    ++seen[source.below(3)];
  }
  CHECK(seen == std::map<uint64_t, int>{{0, 64}, {1, 64}, {2, 64}});
  // The one word of 2^64 = 3 * q + 1 that would favour a value is rejected.
  RandomSource rejects(std::vector<uint64_t>{0, UINT64_MAX});
  CHECK(rejects.below(3) == 2);
}

TEST_CASE("IntegerLaw inverts its table word by word and leaves undecided words to the caller") {
  // P[block <= 0] = 1/2, P[block <= 1] = 3/4, P[block <= 2] = 1, from 8 bits.
  const IntegerLaw law({129, 193, 257}, 8, IntegerLaw::Sign::none, 0, {}, 0);
  std::map<int64_t, int> seen;
  int undecided = 0;
  for (uint64_t word = 0; word < 256; ++word) {
    RandomSource source(std::vector<uint64_t>{word << 56});
    int64_t out = -1;
    std::vector<Pending> pending;
    law.draw(source, &out, 0, 1, pending);
    if (pending.empty()) {
      ++seen[out];
      CHECK(out == (word < 128 ? 0 : word < 192 ? 1 : 2));
    } else {
      ++undecided;
      CHECK(pending[0].word == word);
      CHECK_FALSE(pending[0].block_known);
    }
  }
  CHECK(undecided <= 6);
  CHECK(seen[0] >= 126);
  CHECK(seen[1] >= 62);
  CHECK(seen[2] >= 62);
}

TEST_CASE("IntegerLaw: a sign that is folded makes both, one that rejects draws minus zero again") {
  const IntegerLaw folded({257}, 8, IntegerLaw::Sign::reject_negative_zero, 0, {}, 0);
  RandomSource source(std::vector<uint64_t>{(7ull << 56) | 1, 9ull << 56});
  int64_t out = -1;
  std::vector<Pending> pending;
  folded.draw(source, &out, 0, 1, pending);
  CHECK(out == 0);
  CHECK_THROWS_AS(source.next(), std::out_of_range);  // both words were used
}

TEST_CASE("IntegerLaw says how many words draws take, those that are rejected among them") {
  // Of three words a draw, of two, and of one; the slopes reject as often as any law's may.
  const uint64_t steep = (uint64_t{1} << 61) - 1;
  const IntegerLaw wide({129, 257}, 8, IntegerLaw::Sign::reject_negative_zero, 27, {steep, steep}, 0);
  const IntegerLaw middle({129, 257}, 8, IntegerLaw::Sign::reject_negative_zero, 10, {steep, steep}, 0);
  const IntegerLaw narrow({129, 257}, 8, IntegerLaw::Sign::none, 0, {}, 0);
  for (const IntegerLaw* law : {&wide, &middle, &narrow}) {
    constexpr size_t kDraws = 10'000;
    std::vector<uint64_t> words(law->words(kDraws));
    RandomSource random(7);
    for (uint64_t& word : words) word = random.next();
    RandomSource source(words);
    std::vector<int64_t> out(kDraws);
    std::vector<Pending> pending;
    law->draw(source, out.data(), 0, kDraws, pending);  // throws where words are lacking
  }
}

TEST_CASE("IntegerLaw refuses tables that do not cover every word, and slopes that are too steep") {
  CHECK_THROWS_AS(IntegerLaw({100}, 8, IntegerLaw::Sign::none, 0, {}, 0), std::invalid_argument);
  CHECK_THROWS_AS(IntegerLaw({257, 100}, 8, IntegerLaw::Sign::none, 0, {}, 0), std::invalid_argument);
  CHECK_THROWS_AS(IntegerLaw({257}, 64, IntegerLaw::Sign::none, 0, {}, 0), std::invalid_argument);
  CHECK_THROWS_AS(IntegerLaw({257}, 8, IntegerLaw::Sign::none, 4, {uint64_t{1} << 62}, 0), std::invalid_argument);
  CHECK_THROWS_AS(IntegerLaw({257}, 8, IntegerLaw::Sign::none, 4, {}, 0), std::invalid_argument);
}

TEST_CASE("Permutations and samples hold every place at most once") {
  RandomSource source(3);
  for (const size_t n : {1u, 2u, 100u}) {
    std::vector<int64_t> order(n);
    permutation(source, order.data(), n);
    CHECK(std::set<int64_t>(order.begin(), order.end()).size() == n);
    std::vector<int64_t> some(n);
    sample_without_replacement(source, 3 * n, some.data(), n);
    const std::set<int64_t> places(some.begin(), some.end());
    CHECK(places.size() == n);
    CHECK(*places.begin() >= 0);
    CHECK(*places.rbegin() < static_cast<int64_t>(3 * n));
  }
}

TEST_CASE("Correlated noise: both forms of the same factorisation agree") {
  // One buffer with theta = 1/2 and omega = -1/2 is c_j = -1/2 (1/2)^(j-1).
  const int64_t theta = 1 << 19, omega = -(1 << 19);
  const BufferedToeplitz c{&theta, &omega, 1, 20, 24};
  int64_t state = 0, noise = 0;
  std::vector<int64_t> coefficients, past;
  for (int j = 0; j < 12; ++j) coefficients.push_back(-(1 << 19) >> j);
  int64_t direct = 0;
  for (const int64_t z : {1000000, -3, 77777, 0, -123456, 5, 999, -1, 40000, 12}) {
    advance(c, &state, &noise, &z, 1, 1);
    const int64_t w = z - toeplitz_sum(past.data(), past.size(), coefficients.data(), 20);
    past.push_back(w);
    direct += w;
    CHECK(std::abs(noise - direct) <= static_cast<int64_t>(past.size()));  // rounding, at most one half a step and form
  }
  CHECK(rounded_shift(3, 1) == 2);
  CHECK(rounded_shift(-3, 1) == -1);
}

TEST_CASE("The coin of pan-private tables is exact in its bits") {
  // U < threshold with U the 8 bytes that come, the lowest byte of a word first.
  const pan::Coin coin{0x8000000000000001ull};
  const auto toss = [&](std::vector<uint8_t> bytes) {
    bytes.resize(8, 0);
    uint64_t word = 0;
    for (size_t i = 0; i < 8; ++i) word |= static_cast<uint64_t>(bytes[i]) << (8 * i);
    RandomSource source(std::vector<uint64_t>{word, 0});
    pan::RandomBytes random(source);
    return coin.toss(random);
  };
  CHECK(toss({0x7f}) == 1);
  CHECK(toss({0x81}) == 0);
  CHECK(toss({0x80, 0, 0, 0, 0, 0, 0, 0}) == 1);  // U = threshold - 1
  CHECK(toss({0x80, 0, 0, 0, 0, 0, 0, 1}) == 0);  // U = threshold
}

TEST_CASE("Pan-private counters run modulo their number, and layers refuse what fits no law") {
  for (const uint64_t prime : {3u, 7u, 101u}) {
    std::set<uint64_t> squares;
    for (uint64_t x = 1; x < prime; ++x) squares.insert(x * x % prime);
    for (uint64_t x = 0; x < prime; ++x) CHECK(pan::legendre(x, prime) == (x == 0 ? 0 : squares.contains(x) ? 1 : -1));
  }
  RandomSource source(1);
  pan::RandomBytes random(source);
  pan::Layer layer(4, {5}, {2}, false, {});
  layer.start({}, random);
  const uint64_t before = layer.counters()[1];
  for (int i = 0; i < 7; ++i) layer.occur(1, {}, random);
  CHECK(layer.counters()[1] == (before + 14) % 5);
  CHECK_THROWS_AS(pan::Layer(4, {5, 5}, {1}, false, {}), ParameterError);
  CHECK_THROWS_AS(pan::Layer(4, {1}, {1}, false, {}), ParameterError);
  CHECK_THROWS_AS(pan::Layer(4, {0}, {1}, true, {}), ParameterError);
}
