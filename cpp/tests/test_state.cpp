#include <doctest/doctest.h>

#include <string>

#include "discreet/lineage.hpp"
#include "discreet/parquet_footer.hpp"
#include "discreet/state.hpp"
#include "streams.hpp"

using namespace discreet;
using namespace discreet::test;

namespace {

std::string sealed() {
  StateWriter out;
  out.u64(7);
  out.key(str("word"), KeyKind::mixed);
  out.key(IntKey{5}, KeyKind::int64);
  return out.seal(static_cast<uint16_t>(StateFamily::misra_gries), 2, KeyKind::mixed);
}

}  // namespace

TEST_CASE("A state gives back what was written") {
  const std::string data = sealed();
  const OpenState state = open_state(data, StateFamily::misra_gries, 2);
  CHECK(state.kind == KeyKind::mixed);
  StateReader in(state.payload);
  CHECK(in.u64() == 7);
  StrKey word;
  in.key(word, KeyKind::mixed);
  CHECK(plain(word) == "word");
  IntKey number;
  in.key(number, KeyKind::int64);
  CHECK(number.value == 5);
  in.finish();
  CHECK_THROWS_AS(in.u8(), CorruptStateError);
}

TEST_CASE("Every flipped bit and every cut of a state is noticed") {
  const std::string data = sealed();
  for (size_t bit = 0; bit < 8 * data.size(); ++bit) {
    std::string wrong = data;
    wrong[bit / 8] = static_cast<char>(wrong[bit / 8] ^ (1 << (bit % 8)));
    CHECK_THROWS_AS(open_state(wrong), CorruptStateError);
  }
  for (size_t size = 0; size < data.size(); ++size)
    CHECK_THROWS_AS(open_state(data.substr(0, size)), CorruptStateError);
  CHECK_THROWS_AS(open_state(data, StateFamily::space_saving, 2), CorruptStateError);
  CHECK_THROWS_AS(open_state(data, StateFamily::misra_gries, 1), CorruptStateError);
}

TEST_CASE("A state that announces more than it holds is refused before memory is set aside") {
  StateWriter out;
  out.u64(UINT64_MAX);
  StateReader in(out.payload());
  CHECK_THROWS_AS(in.records(1), CorruptStateError);
  StateWriter key;
  key.u32(UINT32_MAX);
  StateReader long_key(key.payload());
  StrKey view;
  CHECK_THROWS_AS(long_key.key(view, KeyKind::string), CorruptStateError);
}

TEST_CASE("Lineages join once") {
  Lineage a({1, 5}), b({2}), both = a.joined(b);
  CHECK(both.names() == std::vector<uint64_t>{1, 2, 5});
  CHECK_THROWS_AS(both.joined(a), IncompatibleSummaryError);
}

TEST_CASE("The footer of a Parquet file: one chunk, and damage at every byte") {
  // {4: [{1: [{3: {3: ["url"], 5: 10, 6: 400, 11: 4}}]}]} in Thrift's compact protocol.
  const std::string footer("\x49\x1c\x19\x1c\x3c\x39\x18\x03url\x26\x14\x16\xa0\x06\x56\x08\x00\x00\x00\x00", 22);
  const auto groups = parquet_footer(footer, {"visitor", "url"}).groups;
  REQUIRE(groups.size() == 1);
  REQUIRE(groups[0].chunks.size() == 1);
  CHECK(groups[0].chunks[0].column == 1);
  CHECK(groups[0].chunks[0].depth == 1);
  CHECK(groups[0].chunks[0].values == 10);
  CHECK(groups[0].chunks[0].uncompressed_bytes == 400);
  CHECK(groups[0].chunks[0].has_dictionary);
  for (size_t size = 0; size < footer.size(); ++size)
    CHECK_THROWS_AS(parquet_footer(footer.substr(0, size), {"url"}), DataError);
  for (size_t at = 0; at < footer.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string wrong = footer;
      wrong[at] = static_cast<char>(value);
      try {
        parquet_footer(wrong, {"url"});
      } catch (const DataError&) {
      }
    }
}
