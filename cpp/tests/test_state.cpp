#include <doctest/doctest.h>

#include <string>

#include "discreet/lineage.hpp"
#include "discreet/readers/parquet_footer.hpp"
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
  using namespace std::string_literals;
  // In Thrift's compact protocol: {1: 1, 2: [{4: "r", 5: 1}, {1: 6, 3: 0, 4: "url"}], 3: 10, 4: [group]}; the group:
  // {1: [{2: 4, 3: {1: 6, 2: [0], 3: ["url"], 4: 0, 5: 10, 6: 400, 7: 100, 9: 4, 11: 4}}], 2: 10, 3: 10}.
  const std::string schema = "\x15\x02\x19\x2c\x48\x01r\x15\x02\x00\x15\x0c\x25\x00\x18\x03url\x00"s;
  const std::string chunk =
      "\x26\x08\x1c\x15\x0c\x19\x15\x00\x19\x18\x03url\x15\x00\x16\x14\x16\xa0\x06"
      "\x16\xc8\x01\x26\x08\x26\x08\x00\x00"s;
  const std::string rows = "\x16\x14"s, end = "\x00"s;
  const std::string footer = schema + rows + "\x19\x1c" + "\x19\x1c" + chunk + "\x16\x14" + rows + end + end;
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
        int64_t found = 0;
        for (const auto& group : parquet_footer(wrong, {"url"}).groups) found += group.rows;
        CHECK(found == 10);  // or it is refused: what is left of a file is not the file
      } catch (const DataError&) {
      }
    }
}

TEST_CASE("The footer of a Parquet file: rows that do not add up") {
  using namespace std::string_literals;
  const std::string schema = "\x15\x02\x19\x2c\x48\x01r\x15\x02\x00\x15\x0c\x25\x00\x18\x03url\x00"s;
  const auto chunk = [](char values) {
    std::string out =
        "\x26\x08\x1c\x15\x0c\x19\x15\x00\x19\x18\x03url\x15\x00\x16\x14\x16\x14\x16\x14\x26\x08\x00\x00"s;
    out[17] = values;
    return out;
  };
  const auto footer = [&](char all, char group, const std::string& chunks) {
    return schema + '\x16' + all + "\x19\x1c\x19" + chunks + "\x16\x14\x16" + group + std::string(2, '\0');
  };
  const std::string one = '\x1c' + chunk(20);
  CHECK(parquet_footer(footer(20, 20, one), {"url"}).groups.size() == 1);
  const auto refused = [](const std::string& wrong) { CHECK_THROWS_AS(parquet_footer(wrong, {"url"}), DataError); };
  refused(footer(22, 20, one));                             // fewer than it says
  refused(footer(18, 20, one));                             // more
  refused(footer(18, 18, one));                             // a chunk has more
  refused(footer(19, 19, '\x1c' + chunk(19)));              // negative
  refused(footer(20, 20, "\x0c"));                          // no chunk
  refused(footer(20, 20, '\x2c' + chunk(20) + chunk(20)));  // two of one leaf
  refused(schema + "\x19\x0c" + std::string(1, '\0'));      // a field is missing
}
