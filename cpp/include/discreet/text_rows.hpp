// Rows of text: which records of a block hold one, and its values in the columns that are wanted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace discreet {

// What a record is depends on its bytes alone.
enum class RecordKind : uint8_t { row = 0, blank = 1, other_cells = 2, unreadable = 3 };

// Whole numbers are told apart by the 64 bits that they fit into; a `number` fits into none, and `other` is no item.
enum class ValueKind : uint8_t { null = 0, text = 1, integer = 2, large = 3, number = 4, other = 5 };

// Values as text, one after the other: Arrow's layout of a string column, and what each value is.
struct TextColumn {
  std::vector<uint8_t> kinds;
  std::vector<int32_t> offsets{0};
  std::string data;

  void end_value(ValueKind kind) {
    kinds.push_back(static_cast<uint8_t>(kind));
    offsets.push_back(static_cast<int32_t>(data.size()));
  }
  // Forget the values after the first `count`, and what was begun of another.
  void cut(size_t count) {
    kinds.resize(count);
    offsets.resize(count + 1);
    data.resize(static_cast<size_t>(offsets.back()));
  }
};

struct TextRows {
  std::vector<uint8_t> records;  // the kind of each
  std::vector<int64_t> ends;     // the offset after each
  std::vector<TextColumn> columns;
  size_t rows = 0;  // records of kind `row`: as many values has every column

  void end_record(RecordKind kind, int64_t end) {
    records.push_back(static_cast<uint8_t>(kind));
    ends.push_back(end);
    if (kind == RecordKind::row) {
      ++rows;
    } else {
      for (TextColumn& column : columns) column.cut(rows);
    }
  }
};

// Where a blank record (white space alone) ends, or `at` if it is not blank.
inline const char* after_blank(const char* at, const char* end) {
  for (const char* c = at; c != end; ++c) {
    if (*c == '\n') return c + 1;
    if (*c != ' ' && (*c < '\t' || *c > '\r')) return at;
  }
  return end;
}

}  // namespace discreet
