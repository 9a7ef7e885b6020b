#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "discreet/readers/json_lines.hpp"
#include "discreet/readers/records.hpp"
#include "discreet/readers/text_items.hpp"

using namespace discreet;

namespace {

std::vector<std::string> values(const TextColumn& column) {
  std::vector<std::string> out;
  for (size_t i = 0; i < column.kinds.size(); ++i)
    out.emplace_back(column.data.data() + column.offsets[i], column.data.data() + column.offsets[i + 1]);
  return out;
}

constexpr CellMarks kCsv{',', '"'};

TextRows csv(const std::string& text, std::vector<int> columns) {
  TextRows rows;
  rows.columns.resize(1);
  DelimitedReader(kCsv, std::move(columns), false).read(text, rows);
  return rows;
}

TextRows json(const std::string& text, std::vector<std::optional<std::string>> wanted) {
  TextRows rows;
  rows.columns.resize(wanted.size());
  JsonLinesReader(std::move(wanted), false).read(text, rows);
  return rows;
}

using Kinds = std::vector<uint8_t>;

}  // namespace

TEST_CASE("Cells of CSV: quotes, empty cells, carriage returns, rows of another length") {
  const TextRows rows = csv("a,1\n\"b,\"\"c\",2\r\n,3\n\"\",4\nonly\n\nx\ry,5\n\"open,6", {0, -1});
  CHECK(rows.records == Kinds{0, 0, 0, 0, 2, 1, 3, 3});
  CHECK(values(rows.columns[0]) == std::vector<std::string>{"a", "b,\"c", "", ""});
  CHECK(rows.columns[0].kinds == Kinds{1, 1, 0, 1});
  CHECK(rows.rows == 4);
}

TEST_CASE("Records end where they do, wherever the text is cut") {
  const std::string text = "a,\"x\ny\",\"\"\"\n\"\n\"b\"\"\",\n\nlast";
  std::vector<int64_t> whole;
  const Cell end = record_ends(text, kCsv, Cell::start, whole);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    std::vector<int64_t> ends, later;
    const Cell middle = record_ends(std::string_view(text).substr(0, cut), kCsv, Cell::start, ends);
    CHECK(record_ends(std::string_view(text).substr(cut), kCsv, middle, later) == end);
    for (const int64_t at : later) ends.push_back(at + static_cast<int64_t>(cut));
    CHECK(ends == whole);
    const RecordBounds bounds = record_bounds(std::string_view(text).substr(0, cut), kCsv, Cell::start);
    CHECK(bounds.cell == middle);
    CHECK(bounds.first == (cut < static_cast<size_t>(whole[0]) ? 0 : whole[0]));
    ends.erase(std::remove_if(ends.begin(), ends.end(), [&](int64_t at) { return at > static_cast<int64_t>(cut); }),
               ends.end());
    CHECK(bounds.last == (ends.empty() ? 0 : ends.back()));
  }
}

TEST_CASE("JSON lines: kinds of values, escapes, keys that come twice, and what is not JSON") {
  const TextRows rows = json(
      "{\"k\": \"a\\u00e9\\n\"}\n{\"k\": 12, \"other\": [1, {\"k\": 2}]}\n{\"k\": 18446744073709551615}\n{\"k\": 1.5}\n"
      "{\"k\": null}\n{}\n{\"k\": 1, \"k\": \"last\"}\n{\"k\": [1]}\n{\"k\": tru}\n[1]\n{\"k\": 1} x\n \n{\"k\": "
      "\"\xff\"}\n",
      {"k"});
  CHECK(rows.records == Kinds{0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 1, 3});
  CHECK(rows.columns[0].kinds == Kinds{1, 2, 3, 4, 0, 0, 1, 5});
  CHECK(values(rows.columns[0])[0] == "a\xc3\xa9\n");
  CHECK(values(rows.columns[0])[1] == "12");
  CHECK(values(rows.columns[0])[6] == "last");
}

TEST_CASE("JSON lines: nesting has an end, and every cut of a line is refused") {
  const std::string deep = "{\"k\": " + std::string(2000, '[') + std::string(2000, ']') + "}";
  CHECK(json(deep, {"k"}).records == Kinds{3});
  const std::string line = "{\"key\": \"a\\ud83d\\ude00\", \"b\": [1, 2.5e3, {\"c\": false}]}";
  CHECK(json(line, {"key"}).records == Kinds{0});
  for (size_t size = 1; size < line.size(); ++size) CHECK(json(line.substr(0, size), {"key"}).records == Kinds{3});
}

TEST_CASE("Newlines are counted in words and in the rest, and values of any length are copied whole") {
  std::string text;
  for (int i = 0; i < 9000; ++i) text += i % 7 ? static_cast<char>('a' + i % 26) : '\n';
  for (const size_t size : {0, 1, 15, 16, 17, 63, 4079, 4080, 4096, 4097, 9000})
    CHECK(newlines(std::string_view(text).substr(0, size)) ==
          static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(size), '\n')));
  for (size_t size = 1; size < 100; ++size) {
    const std::string value(size, 'x');
    CHECK(values(csv(value + "\n" + value, {0}).columns[0]) == std::vector<std::string>{value, value});
    const std::string line = "{\"k\": \"" + value + "\"}";
    CHECK(values(json(line + "\n" + line, {"k"}).columns[0]) == std::vector<std::string>{value, value});
    const std::string escaped = "{\"k\": \"" + value + "\\n" + value + "\"}";
    CHECK(values(json(escaped, {"k"}).columns[0]) == std::vector<std::string>{value + "\n" + value});
  }
}

TEST_CASE("UTF-8: what is in it and what is not") {
  for (const char* good : {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "12345678\xc3\xa9"})
    CHECK(is_utf8(good));
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xff", "12345678\xc3"})
    CHECK_FALSE(is_utf8(bad));
}

TEST_CASE("Items of a column are those of its rows, or there are none") {
  const auto home = std::make_shared<PageMemory>();
  std::mt19937 random(1);
  const std::vector<std::string> pieces{
      "a", "bc",       "\"d\"", "\"e\"\"f\"",         "\"g,\nh\"",           "\"\"", ",", "\n", "\r\n", "\"", "\r",
      " ", "\xc3\xbc", "\xff",  std::string(70, 'x'), std::string(4097, 'y')};
  size_t regular = 0, found = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const size_t usual = round % 3 ? 7 : pieces.size();  // most are well written
    for (size_t n = random() % 12; n > 0; --n) {
      text += pieces[random() % usual];
      if (usual == 7) text += random() % 3 ? "\n" : ",";
    }
    std::vector<int> columns(1 + random() % 2, -1);
    columns[random() % columns.size()] = 0;
    const bool more = random() % 2;
    const CellEnds ends = cell_ends(text, kCsv, *home);
    std::vector<int64_t> whole;
    const Cell last = record_ends(text, kCsv, Cell::start, whole);
    if (ends.regular) {
      ++regular;
      REQUIRE(ends.last == static_cast<size_t>(whole.empty() ? 0 : whole.back()));
      REQUIRE(ends.open == (last == Cell::quoted));
    }
    if (last == Cell::quoted) continue;  // such a record is not whole
    TextRows rows;
    rows.columns.resize(1);
    DelimitedReader(kCsv, columns, more).read(text, rows);
    const std::vector<std::string> expected = values(rows.columns[0]);
    const auto is_item = [](const std::string& value) { return value.size() <= 4096 && is_utf8(value); };
    const bool all =
        std::all_of(rows.records.begin(), rows.records.end(), [](uint8_t kind) { return kind <= 1; }) &&
        std::all_of(rows.columns[0].kinds.begin(), rows.columns[0].kinds.end(), [](uint8_t k) { return k == 1; }) &&
        std::all_of(expected.begin(), expected.end(), is_item);
    std::shared_ptr<char> owner(new char[text.size() + 1], std::default_delete<char[]>());
    std::copy(text.begin(), text.end(), owner.get());
    const TextMemory block{{owner.get(), text.size()}, owner, home};
    const auto items = delimited_items(block, ends, 0, kCsv, columns, more);
    REQUIRE(items.has_value() == all);
    if (!items) continue;
    ++found;
    REQUIRE(items->lines == newlines(text));
    REQUIRE(items->column.length == static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      REQUIRE(bytes_at(items->column, static_cast<int64_t>(i)) == expected[i]);
  }
  CHECK(regular > 8000);
  CHECK(found > 2000);
}

TEST_CASE("Rows of cells are those of a reader of rows, or there are none; a condition leaves rows out") {
  const auto home = std::make_shared<PageMemory>();
  std::mt19937 random(3);
  const std::vector<std::string> pieces{
      "a", "404", "\"d\"",    "\"e\"\"f\"", "\"g,\nh\"",          "\"\"", ",", "\n", "\r\n", "\"", "\r",
      " ", "-",   "\xc3\xbc", "\xff",       std::string(70, 'x'), "0x194"};
  CellStep step{CellStep::whole, 1, 2, "", 404, 404};
  const CellCondition condition({{step}});
  size_t found = 0, chosen = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const size_t usual = round % 4 ? 6 : pieces.size();
    for (size_t n = random() % 6; n > 0; --n)
      text += pieces[random() % usual] + "," + pieces[random() % usual] + (random() % 3 ? "\n" : "\r\n");
    const CellEnds ends = cell_ends(text, kCsv, *home);
    std::vector<int64_t> whole;
    if (record_ends(text, kCsv, Cell::start, whole) == Cell::quoted) continue;
    const bool more = random() % 2;
    TextRows rows;
    rows.columns.resize(2);
    DelimitedReader(kCsv, {0, 1}, more).read(text, rows);
    const auto all = rows_of_cells(text, ends, 0, kCsv, {0, 1}, more, nullptr);
    const auto bad = [](uint8_t kind) { return kind > 1; };
    const bool any_bad = std::any_of(rows.records.begin(), rows.records.end(), bad);
    const std::vector<std::string> first = values(rows.columns[0]), second = values(rows.columns[1]);
    bool all_text = true;
    for (const auto* column : {&first, &second})
      for (const std::string& value : *column) all_text &= is_utf8(value);
    REQUIRE(all.has_value() == (ends.regular && !any_bad && all_text));
    if (!all) continue;
    ++found;
    CHECK(all->sure);
    REQUIRE(all->rows.records == rows.records);
    REQUIRE(all->rows.ends == rows.ends);
    for (size_t i = 0; i < 2; ++i) {
      REQUIRE(values(all->rows.columns[i]) == values(rows.columns[i]));
      REQUIRE(all->rows.columns[i].kinds == rows.columns[i].kinds);
    }
    const auto some = rows_of_cells(text, ends, 0, kCsv, {0, 1}, more, &condition);
    REQUIRE(some.has_value());
    std::vector<std::string> expected;
    Kinds kinds;
    bool sure = true;
    size_t row = 0;
    for (const uint8_t kind : rows.records) {
      if (kind) {
        kinds.push_back(kind);
        continue;
      }
      const std::string cell = second[row];
      const bool null = rows.columns[1].kinds[row] == 0, word = is_no_number(cell, false);
      const bool odd = !null && !word && !plain_number(cell);
      sure &= !odd;
      kinds.push_back(cell == "404" || odd ? 0 : word ? 9 : 1);
      if (cell == "404" || odd) expected.push_back(first[row]);
      ++row;
    }
    REQUIRE(some->sure == sure);
    REQUIRE(some->rows.records == kinds);
    REQUIRE(some->rows.ends == rows.ends);
    REQUIRE(values(some->rows.columns[0]) == expected);
    chosen += expected.size();
  }
  CHECK(found > 5000);
  CHECK(chosen > 1000);
}

TEST_CASE("Numbers are plain digits, and nothing is read behind the end of a cell") {
  for (const char* good : {"0", "-0", "007", "404", "-1.5", "0.000000000000000001", "999999999999999999"})
    CHECK(plain_number(good));
  for (const char* odd :
       {"", "-", ".", "1.", ".5", "+1", " 1", "1 ", "1_0", "1e2", "0x1", "1234567890123456789", "1.2.3", "--1"})
    CHECK_FALSE(plain_number(odd));
  const std::string text = "4041";
  CHECK(plain_number(std::string_view(text).substr(0, 3))->whole == 404);
  CHECK(order_of(*plain_number("403.9999999999"), int64_t{404}) == std::nullopt);  // DuckDB rounds to nine digits
  CHECK(order_of(*plain_number("403.999999999"), int64_t{404}) == -1);
  CHECK(order_of(*plain_number("-404.5"), int64_t{-404}) == -1);
  CHECK(order_of(*plain_number("0.30000000000000004"), 0.3) == std::nullopt);
  CHECK(order_of(*plain_number("0.3"), 0.3) == 0);
}

TEST_CASE("Marks are found the same way in registers of any width") {
  std::mt19937 random(2);
  std::string text(64 * 9, ' ');
  for (char& c : text) c = "a,\n\r\"\0\xff"[random() % 7];
  MarkBits narrow[9];
  const bool high = mark_bits(text.data(), 9, kCsv, narrow);
  CHECK(high);
  for (size_t i = 0; i < text.size(); ++i) {
    const MarkBits& bits = narrow[i / 64];
    const auto is = [&](uint64_t word) { return (word >> (i % 64) & 1) != 0; };
    REQUIRE(is(bits.newline) == (text[i] == '\n'));
    REQUIRE(is(bits.carriage) == (text[i] == '\r'));
    REQUIRE(is(bits.delimiter) == (text[i] == ','));
    REQUIRE(is(bits.quote) == (text[i] == '"'));
  }
#if defined(DISCREET_WIDE_MARKS)
  if (__builtin_cpu_supports("avx2")) {
    MarkBits wide[9];
    CHECK(wide_mark_bits(text.data(), 9, kCsv, wide) == high);
    CHECK(std::memcmp(narrow, wide, sizeof wide) == 0);
  }
#endif
}
