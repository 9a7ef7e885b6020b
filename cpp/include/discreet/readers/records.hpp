// Records of delimited text (CSV, TSV): they end at newlines that are not inside quotes, and have cells.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "discreet/readers/text_rows.hpp"

namespace discreet {

// A quote opens a cell at its start only; elsewhere in a cell without quotes it is an ordinary character. Inside a
// quoted cell two quotes in a row stand for one.
enum class Cell : uint8_t { start = 0, plain = 1, quoted = 2, after_quote = 3 };

// What stands between cells, and around one that may have it inside. Without a quote (0) a record is a line.
struct CellMarks {
  char delimiter;
  char quote;

  bool opens(char c) const { return c == quote && quote; }
};

// The first of some bytes, or `end`. Cells are short: what a call of memchr costs is more than what it finds.
template <class... Byte>
const char* next_of(const char* at, const char* end, Byte... bytes) {
#if defined(__SSE2__)
  for (; end - at >= 16; at += 16) {
    const __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const int found = (_mm_movemask_epi8(_mm_cmpeq_epi8(there, _mm_set1_epi8(bytes))) | ...);
    if (found) return at + std::countr_zero(static_cast<unsigned>(found));
  }
#endif
  while (at != end && ((*at != bytes) && ...)) ++at;
  return at;
}
// Where a cell without quotes ends.
inline const char* cell_end(const char* at, const char* end, CellMarks marks) {
  return next_of(at, end, marks.delimiter, '\n', '\r');
}

// Where the record ends that goes on at `at`, in this cell; nullptr if it does not. Each byte is looked at once.
inline const char* record_end(const char* at, const char* end, CellMarks marks, Cell& cell) {
  while (at != end) {
    if (cell == Cell::quoted) {
      at = next_of(at, end, marks.quote);
      if (at == end) return nullptr;
      cell = Cell::after_quote;
    } else if (marks.opens(*at) && cell != Cell::plain) {
      cell = Cell::quoted;
    } else if (*at == '\n') {
      cell = Cell::start;
      return at + 1;
    } else if (*at == marks.delimiter || *at == '\r') {
      cell = Cell::start;
    } else {
      cell = Cell::plain;
      at = cell_end(at + 1, end, marks);
      continue;
    }
    ++at;
  }
  return nullptr;
}

// Reads text that goes on where the text before it left `cell`. Appends the offset after each record.
inline Cell record_ends(std::string_view text, CellMarks marks, Cell cell, std::vector<int64_t>& ends) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); (at = record_end(at, end, marks, cell));) ends.push_back(at - text.data());
  return cell;
}

// The same of the first and the last record alone; 0 where none ends.
struct RecordBounds {
  int64_t first = 0, last = 0;
  Cell cell = Cell::start;
};
inline RecordBounds record_bounds(std::string_view text, CellMarks marks, Cell cell) {
  const char* const end = text.data() + text.size();
  RecordBounds out{0, 0, cell};
  for (const char* at = text.data(); (at = record_end(at, end, marks, out.cell));) {
    out.last = at - text.data();
    if (!out.first) out.first = out.last;
  }
  return out;
}

// The cells of records. `columns[i]` is the place of cell i among the wanted columns, or -1. A row has as many cells as
// there are columns, or with `more` at least as many.
class DelimitedReader {
 public:
  DelimitedReader(CellMarks marks, std::vector<int> columns, bool more)
      : marks_(marks), columns_(std::move(columns)), more_(more) {}

  // All records of a text that ends where one does; the last may do without its newline.
  void read(std::string_view text, TextRows& out) const {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    out.expect(text, columns_.size());
    for (const char* at = begin; at != end;) {
      const char* next = after_blank(at, end);
      RecordKind kind = RecordKind::blank;
      if (next == at) kind = read_record(next, end, out.columns);
      out.end_record(kind, next - begin);
      at = next;
    }
  }

 private:
  RecordKind read_record(const char*& at, const char* end, std::vector<TextColumn>& out) const {
    for (size_t cell = 0;; ++cell, ++at) {
      const int place = cell < columns_.size() ? columns_[cell] : -1;
      TextColumn* const column = place < 0 ? nullptr : &out[static_cast<size_t>(place)];
      const bool quoted = at != end && marks_.opens(*at);
      if (quoted && !read_quoted(at, end, column)) return RecordKind::unreadable;
      const char* const start = at;
      at = cell_end(at, end, marks_);
      if (column) {
        column->data.append({start, static_cast<size_t>(at - start)}, end);
        const bool empty = column->data.size() == static_cast<size_t>(column->offsets.back());
        column->end_value(empty && !quoted ? ValueKind::null : ValueKind::text);
      }
      if (at != end && *at == marks_.delimiter) continue;
      const char* const line_end = at;
      while (at != end && *at == '\r') ++at;
      if (at != end && *at != '\n') {  // a carriage return inside of a record: nobody knows what it means
        Cell state = Cell::start;
        at = record_end(line_end + 1, end, marks_, state);
        if (!at) at = end;
        return RecordKind::unreadable;
      }
      if (at != end) ++at;
      const bool fits = more_ ? cell + 1 >= columns_.size() : cell + 1 == columns_.size();
      return fits ? RecordKind::row : RecordKind::other_cells;
    }
  }

  // From a quote to after the one that closes the cell.
  bool read_quoted(const char*& at, const char* end, TextColumn* column) const {
    do {
      const char* const start = ++at;
      at = next_of(at, end, marks_.quote);
      if (at == end) return false;
      const bool doubled = at + 1 != end && at[1] == marks_.quote;
      if (column) column->data.append({start, static_cast<size_t>(at + doubled - start)}, end);
      at += 1;
    } while (at != end && *at == marks_.quote);
    return true;
  }

  CellMarks marks_;
  std::vector<int> columns_;
  bool more_;
};

}  // namespace discreet
