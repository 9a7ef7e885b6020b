#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "discreet/readers/parquet_items.hpp"

using namespace discreet;

namespace {

std::string padded(std::string data) { return data + std::string(kSlack, '\xee'); }

std::string unpacked(const std::string& data, size_t size) {
  std::string in = padded(data), out = padded(std::string(size, '?'));
  snappy_decompress(in.data(), data.size(), out.data(), size);
  return out.substr(0, size);
}

class Memory : public RandomAccess {
 public:
  explicit Memory(std::string data) : data_(std::move(data)) {}
  void read(uint64_t at, char* to, size_t n) const override {
    if (at > data_.size() || n > data_.size() - at) throw DataError("the file ends too early");
    std::memcpy(to, data_.data() + at, n);
  }
  uint64_t size() const override { return data_.size(); }

 private:
  std::string data_;
};

std::vector<uint32_t> unpacked_indices(const std::string& data, uint64_t n, uint64_t size) {
  std::vector<uint32_t> out(n);
  parquet::indices(std::string_view(padded(data)).substr(0, data.size()), n, size, out.data());
  return out;
}

// The items of a chunk that is this file; nothing if its pages are refused.
std::vector<std::string> items_of(const std::string& file, int64_t rows, bool optional = false, int64_t codec = 0) {
  const ParquetItems items(std::make_shared<const Memory>(file), {"item", ParquetField::text, optional});
  ParquetChunk chunk;
  chunk.depth = 1;
  chunk.type = 6;
  chunk.codec = codec;
  chunk.values = rows;
  chunk.data_at = 0;
  chunk.compressed_bytes = static_cast<int64_t>(file.size());
  const auto runs = items.runs_of({rows, {chunk}});
  std::vector<std::string> out;
  if (!runs) return out;
  for (const auto& run : *runs) {
    const MadeColumn made = items.decode(run);
    for (int64_t i = 0; i < made.column.length; ++i)
      out.emplace_back(made.column.dictionary
                           ? bytes_at(*made.column.dictionary, static_cast<int64_t>(integer_at(made.column, i)))
                           : bytes_at(made.column, i));
  }
  return out;
}

// {1: DATA_PAGE, 2: 15, 3: 15, 5: {1: 3, 2: PLAIN, 3: RLE, 4: RLE}} and its values, which are "ab", "" and "c".
const std::string kPlainPage(
    "\x15\x00\x15\x1e\x15\x1e\x2c\x15\x06\x15\x00\x15\x06\x15\x06\x00\x00"
    "\x02\x00\x00\x00"
    "ab\x00\x00\x00\x00\x01\x00\x00\x00"
    "c",
    32);

}  // namespace

TEST_CASE("Snappy: literals, copies that overlap what they write, and every length") {
  CHECK(unpacked(std::string("\x00", 1), 0).empty());
  CHECK(unpacked("\x03\x08"
                 "abc",
                 3) == "abc");
  // A literal of two bytes, then 10 bytes from 2 back: one by one, they repeat.
  CHECK(unpacked(std::string("\x0c\x04"
                             "ab\x19\x02",
                             6),
                 12) == "abababababab");
  // The same with offsets of two and of four bytes.
  CHECK(unpacked(std::string("\x0c\x04"
                             "ab\x26\x02\x00",
                             7),
                 12) == "abababababab");
  CHECK(unpacked(std::string("\x0c\x04"
                             "ab\x27\x02\x00\x00\x00",
                             9),
                 12) == "abababababab");
  const std::string text(300, 'x');
  CHECK(unpacked(std::string("\xac\x02\xf4\x2b\x01", 5) + text, 300) == text);  // a length in two bytes more
}

TEST_CASE("Snappy: every cut and every changed byte is refused or fills exactly what was asked for") {
  const std::string data(
      "\x13\x0c"
      "abcd\x11\x03\x08"
      "efg\x01\x01",
      14);
  const std::string whole = unpacked(data, 19);
  CHECK(whole == "abcdbcdbcdbcefggggg");
  CHECK_THROWS_AS(unpacked(data, 18), DataError);
  CHECK_THROWS_AS(unpacked(data, 20), DataError);
  for (size_t size = 0; size < data.size(); ++size) CHECK_THROWS_AS(unpacked(data.substr(0, size), 19), DataError);
  for (size_t at = 0; at < data.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      std::string wrong = data;
      wrong[at] = static_cast<char>(value);
      try {
        unpacked(wrong, 19);
      } catch (const DataError&) {
      }
    }
}

TEST_CASE("Indices: runs of equal ones, packed ones, and none outside the dictionary") {
  CHECK(unpacked_indices(std::string("\x02\x06\x03", 3), 3, 4) == std::vector<uint32_t>{3, 3, 3});
  // Eight numbers of 3 bits, 0 to 7, as in the format's own example.
  const std::string packed("\x03\x03\x88\xc6\xfa", 5);
  CHECK(unpacked_indices(packed, 8, 8) == std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(unpacked_indices(packed, 5, 5) == std::vector<uint32_t>{0, 1, 2, 3, 4});
  CHECK(unpacked_indices(std::string("\x00\x08", 2), 4, 1) == std::vector<uint32_t>{0, 0, 0, 0});
  CHECK_THROWS_AS(unpacked_indices(packed, 8, 7), DataError);
  CHECK_THROWS_AS(unpacked_indices(std::string("\x02\x06\x03", 3), 3, 3), DataError);
  CHECK_THROWS_AS(unpacked_indices(packed.substr(0, 4), 8, 8), DataError);
  CHECK_THROWS_AS(unpacked_indices("", 1, 8), DataError);
  CHECK_THROWS_AS(unpacked_indices("\x21\x03", 1, 8), DataError);  // 33 bits
}

TEST_CASE("Levels: how many rows have a value") {
  const auto present = [](const std::string& data, uint64_t n) {
    return parquet::count_present(std::string_view(padded(data)).substr(0, data.size()), n);
  };
  CHECK(present(std::string("\xc8\x01\x01", 3), 100) == 100);
  CHECK(present(std::string("\x03\xa5", 2), 8) == 4);
  CHECK(present(std::string("\x03\xa5", 2), 3) == 2);
  CHECK(present(std::string("\x13\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10), 72) == 65);
  CHECK_THROWS_AS(present(std::string("\x08\x02", 2), 4), DataError);  // there is no level 2
  CHECK_THROWS_AS(present("", 1), DataError);
}

TEST_CASE("Checksums are those of gzip") {
  CHECK(crc32("123456789", 9) == 0xcbf43926u);
  CHECK(crc32("", 0) == 0);
}

TEST_CASE("A page of texts: its rows, and damage at every byte") {
  CHECK(items_of(kPlainPage, 3) == std::vector<std::string>{"ab", "", "c"});
  CHECK(items_of(kPlainPage + kPlainPage, 6) == std::vector<std::string>{"ab", "", "c", "ab", "", "c"});
  CHECK(items_of(kPlainPage, 2).empty());
  CHECK(items_of(kPlainPage, 4).empty());
  for (size_t size = 0; size < kPlainPage.size(); ++size) CHECK(items_of(kPlainPage.substr(0, size), 3).empty());
  for (const bool optional : {false, true})
    for (size_t at = 0; at < kPlainPage.size(); ++at)
      for (int value = 0; value < 256; ++value) {
        std::string wrong = kPlainPage;
        wrong[at] = static_cast<char>(value);
        try {
          const auto found = items_of(wrong, 3, optional);
          CHECK(found.size() <= 3);
        } catch (const DataError&) {
        }
      }
}

TEST_CASE("A page whose header has the fields of another type of page is read as what it is") {
  // {1: DATA_PAGE, 2: 60, 3: 15, 5: {1: 1, 2: PLAIN, 3: RLE, 4: RLE}, 8: {7: false}}: 15 bytes that are said to be 60,
  // and fields of version 2 that say that they are not compressed. The first text would end after them.
  const std::string page(
      "\x15\x00\x15\x78\x15\x1e\x2c\x15\x02\x15\x00\x15\x06\x15\x06\x00\x3c\x72\x00\x00"
      "\x38\x00\x00\x00"
      "ab\x00\x00\x00\x00\x01\x00\x00\x00"
      "c",
      35);
  const int64_t snappy = 1;
  CHECK_THROWS_AS(items_of(page, 1, false, snappy), DataError);
  CHECK(items_of(page, 1).empty());
}
