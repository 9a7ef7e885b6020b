// One column of a block of text, from its rows to a column that kernels count, where every row holds an item; or
// several, and the rows for which a condition holds.
//
// Where one does not (a null, a bad row, an item that is too long, text that is not UTF-8), nothing is found here, and
// the readers of rows say which row that is. Items that lie in the text one after the other, with as many bytes between
// any two, are counted where they are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "discreet/column.hpp"
#include "discreet/readers/cell_condition.hpp"
#include "discreet/readers/page_memory.hpp"
#include "discreet/readers/records.hpp"
#include "discreet/readers/text_rows.hpp"

namespace discreet {

// Sizes are rounded, so that the next block can use the memory again.
inline std::shared_ptr<char> block_memory(PageMemory& home, size_t n) {
  return home.take((n + 0xffff) & ~size_t{0xffff});
}

// Whole records, what holds them, and the memory that their columns are made in.
struct TextMemory {
  std::string_view text;
  std::shared_ptr<char> owner;
  std::shared_ptr<PageMemory> home;

  std::shared_ptr<char> take(size_t n) const { return block_memory(*home, n); }
};

struct TextItems {
  Column column;
  size_t lines = 0;  // how many newlines the block has
};

// ---- where cells end -----------------------------------------------------------------------------------------------

// Which of 64 bytes are marks.
struct MarkBits {
  uint64_t newline, carriage, delimiter, quote;
};

// Those of this many times 64 bytes; whether one of these is not ASCII.
inline bool mark_bits(const char* p, size_t words, CellMarks marks, MarkBits* out) {
#if defined(__SSE2__)
  const __m128i newline = _mm_set1_epi8('\n'), carriage = _mm_set1_epi8('\r');
  const __m128i delimiter = _mm_set1_epi8(marks.delimiter), quote = _mm_set1_epi8(marks.quote);
  __m128i any = _mm_setzero_si128();
  for (size_t word = 0; word < words; ++word, p += 64) {
    __m128i there[4];
    for (int i = 0; i < 4; ++i) {
      there[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * i));
      any = _mm_or_si128(any, there[i]);
    }
    const auto bits = [&](__m128i mark) {
      uint64_t found = 0;
      for (int i = 0; i < 4; ++i)
        found |= static_cast<uint64_t>(static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(there[i], mark))))
                 << (16 * i);
      return found;
    };
    out[word] = {bits(newline), bits(carriage), bits(delimiter), bits(quote)};
  }
  return _mm_movemask_epi8(any);
#else
  const auto bits = [](const char* from, char mark) {
    uint64_t found = 0;
    for (int i = 0; i < 64; ++i) found |= static_cast<uint64_t>(from[i] == mark) << i;
    return found;
  };
  for (size_t word = 0; word < words; ++word) {
    const char* const from = p + 64 * word;
    out[word] = {bits(from, '\n'), bits(from, '\r'), bits(from, marks.delimiter), bits(from, marks.quote)};
  }
  return has_high_bit(p, 64 * words);
#endif
}

#if defined(__x86_64__) && defined(__GNUC__)
#define DISCREET_WIDE_MARKS
// The same where there are registers of 32 bytes.
[[gnu::target("avx2")]] inline bool wide_mark_bits(const char* p, size_t words, CellMarks marks, MarkBits* out) {
  const __m256i newline = _mm256_set1_epi8('\n'), carriage = _mm256_set1_epi8('\r');
  const __m256i delimiter = _mm256_set1_epi8(marks.delimiter), quote = _mm256_set1_epi8(marks.quote);
  __m256i any = _mm256_setzero_si256();
#define DISCREET_BITS(mark)                                                                           \
  (static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, mark)))) | \
   static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, mark)))) << 32)
  for (size_t word = 0; word < words; ++word, p += 64) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
    any = _mm256_or_si256(any, _mm256_or_si256(low, high));
    out[word] = {DISCREET_BITS(newline), DISCREET_BITS(carriage), DISCREET_BITS(delimiter), DISCREET_BITS(quote)};
  }
#undef DISCREET_BITS
  return _mm256_movemask_epi8(any);
}
#endif

// The delimiters and newlines of a text that are between cells: a bit for each of its bytes.
//
// They are found without going from cell to cell where a text is regular: a quote opens a cell at its start or is one
// of two in a row, nothing comes after the quote that closes a cell, and carriage returns end lines. (With white space
// for a quote no text is: a line may be blank before it is quoted.)
struct CellEnds {
  std::shared_ptr<char> memory;
  size_t last = 0;       // after the last record that ends
  bool regular = false;  // and known
  bool open = false;     // it ends inside of quotes
  bool returns = false;  // there are carriage returns outside of them
  bool doubled = false;  // two quotes in a row stand for one
  bool high = false;     // it is not ASCII

  uint64_t* bits() const { return reinterpret_cast<uint64_t*>(memory.get()); }
};

inline CellEnds cell_ends(std::string_view text, CellMarks marks, PageMemory& home) {
  constexpr size_t kWords = 64;  // at a time
  CellEnds out;
  out.memory = block_memory(home, text.size() / 8 + 8);
  auto find_marks = mark_bits;
#if defined(DISCREET_WIDE_MARKS)
  if (__builtin_cpu_supports("avx2")) find_marks = wide_mark_bits;
#endif
  MarkBits found[kWords];
  char rest[64] = {};
  uint64_t bad = is_space(marks.quote), returns = 0, doubled = 0;
  uint64_t inside_before = 0;                                   // all bits of it
  uint64_t may_open = 1, closed_before = 0, return_before = 0;  // the bit before the first
  for (size_t at = 0; at < text.size(); at += 64) {
    const size_t word = at / 64, left = text.size() - at;
    if (left < 64) {
      std::memcpy(rest, text.data() + at, left);
      out.high |= find_marks(rest, 1, marks, &found[word % kWords]);
    } else if (word % kWords == 0) {
      out.high |= find_marks(text.data() + at, std::min(kWords, left / 64), marks, found);
    }
    auto [newline, carriage, delimiter, quote] = found[word % kWords];
    if (!marks.quote) quote = 0;
    if (!quote && inside_before) {  // and so is all of it
      out.bits()[word] = 0;
      may_open = 0;
      continue;
    }
    const uint64_t there = left < 64 ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
    uint64_t inside = quote;  // from the quote that opens to before the one that closes
    for (int shift = 1; shift < 64; shift *= 2) inside ^= inside << shift;
    inside ^= inside_before;
    const uint64_t opens = quote & inside, closes = quote & ~inside;
    const uint64_t ends = (newline | delimiter) & ~inside, ends_line = newline & ~inside;
    const uint64_t back = carriage & ~inside, after_closed = closes << 1 | closed_before;
    bad |= opens & ~((ends | closes) << 1 | may_open);
    bad |= after_closed & ~(ends | opens | back) & there;
    bad |= (back << 1 | return_before) & ~(ends_line | back) & there;
    returns |= back;
    doubled |= opens & after_closed;
    if (ends_line) out.last = at + 64 - static_cast<size_t>(std::countl_zero(ends_line));
    out.bits()[word] = ends;
    inside_before = inside >> (left < 64 ? left - 1 : 63) & 1 ? ~uint64_t{0} : 0;
    may_open = (ends | closes) >> 63;
    closed_before = closes >> 63;
    return_before = back >> 63;
  }
  out.regular = !bad;
  out.open = inside_before != 0;
  out.returns = returns != 0;
  out.doubled = doubled != 0;
  return out;
}

namespace text_items {

inline void set_texts(Column& column, const char* bytes, const int32_t* offsets, int64_t count, int32_t gap) {
  column.kind = KeyKind::string;
  column.layout = Layout::offsets32;
  column.length = count;
  column.values = bytes;
  column.offsets = offsets;
  column.gap = gap;
  column.checked = kLongestItem;
}
inline bool all_utf8(const Column& column) {
  for (int64_t i = 0; i < column.length; ++i)
    if (!is_utf8(bytes_at(column, i))) return false;
  return true;
}

// Items of a text, in order. As long as there are as many bytes between any two, they stay where they are; then they
// are copied one after the other.
class Found {
 public:
  Found(const TextMemory& block, size_t most)
      : block_(block),
        offsets_(block.take(4 * (most + 1))),
        places_(reinterpret_cast<int32_t*>(offsets_.get())),
        begin_(block.text.data()),
        end_(begin_ + block.text.size()) {}

  void add(const char* from, const char* to) {
    const auto begin = static_cast<int32_t>(from - begin_), end = static_cast<int32_t>(to - begin_);
    longest_ = std::max(longest_, end - begin);
    if (begin - last_ != gap_) [[unlikely]]
      return add_odd(from, to);
    places_[count_++] = begin;
    last_ = end;
  }
  // The same of a cell in which two quotes in a row stand for one.
  void add_doubled(std::string_view cell, char quote) {
    if (!copied_) copy_all();
    for (size_t pair; (pair = cell.find(quote)) != cell.npos; cell.remove_prefix(pair + 2))
      copy(cell.substr(0, pair + 1));
    append(cell);
    longest_ = std::max(longest_, places_[count_] - places_[count_ - 1]);
  }

  // All of them, if they are short enough and text.
  std::optional<Column> column(bool check_text) {
    if (longest_ > static_cast<int32_t>(kLongestItem)) return std::nullopt;
    const int32_t gap = std::max(gap_, 0);
    Column out;
    if (!copied_) places_[count_] = last_ + gap;
    set_texts(out, copied_ ? copied_.get() : begin_, places_, count_, copied_ ? 0 : gap);
    if (check_text && !all_utf8(out)) return std::nullopt;
    using Owners = std::pair<std::shared_ptr<char>, std::shared_ptr<char>>;
    out.owner = std::make_shared<Owners>(copied_ ? copied_ : block_.owner, offsets_);
    return out;
  }

 private:
  static constexpr size_t kRoom = 32;
  static constexpr int32_t kUnknown = -1;  // as a gap: the first two say which it is

  [[gnu::noinline]] void add_odd(const char* from, const char* to) {
    const auto begin = static_cast<int32_t>(from - begin_);
    if (!copied_ && count_ < 2) {
      if (count_ == 1) gap_ = begin - last_;
      places_[count_++] = begin;
      last_ = static_cast<int32_t>(to - begin_);
      return;
    }
    if (!copied_) copy_all();
    append({from, static_cast<size_t>(to - from)});
  }
  void copy_all() {
    copied_ = block_.take(block_.text.size() + kRoom);
    const int32_t gap = std::max(gap_, 0);
    places_[count_] = last_ + gap;
    int32_t begin = places_[0];
    places_[0] = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const int32_t next = places_[i + 1];
      copy({begin_ + begin, static_cast<size_t>(next - gap - begin)});
      places_[i + 1] = static_cast<int32_t>(size_);
      begin = next;
    }
    last_ = 0;
    gap_ = kUnknown;  // from now on all are odd
  }
  void copy(std::string_view item) {
    // What a short text costs is mostly a call of memcpy.
    if (item.size() <= kRoom && end_ - item.data() >= static_cast<std::ptrdiff_t>(kRoom)) {
      std::memcpy(copied_.get() + size_, item.data(), kRoom);
    } else {
      std::memcpy(copied_.get() + size_, item.data(), item.size());
    }
    size_ += item.size();
  }
  void append(std::string_view item) {
    copy(item);
    places_[++count_] = static_cast<int32_t>(size_);
  }

  const TextMemory& block_;
  std::shared_ptr<char> offsets_, copied_;
  int32_t* places_;
  const char *begin_, *end_;
  int64_t count_ = 0;
  int32_t last_ = 0, gap_ = kUnknown, longest_ = 0;  // where the last one ends, and what is between two
  size_t size_ = 0;                                  // of the copies
};

// What a reader of rows has found, if its only column has an item in every row.
inline std::optional<Column> of_rows(TextRows&& rows) {
  const auto is_fine = [](uint8_t kind) { return kind <= static_cast<uint8_t>(RecordKind::blank); };
  if (!std::all_of(rows.records.begin(), rows.records.end(), is_fine)) return std::nullopt;
  auto own = std::make_shared<TextColumn>(std::move(rows.columns[0]));
  const auto is_text = [](uint8_t kind) { return kind == static_cast<uint8_t>(ValueKind::text); };
  if (!std::all_of(own->kinds.begin(), own->kinds.end(), is_text)) return std::nullopt;
  for (size_t i = 0; i < own->kinds.size(); ++i)
    if (static_cast<uint32_t>(own->offsets[i + 1] - own->offsets[i]) > kLongestItem) return std::nullopt;
  Column column;
  set_texts(column, own->data.data(), own->offsets.data(), static_cast<int64_t>(own->kinds.size()), 0);
  if (has_high_bit(own->data.data(), own->data.size()) && !all_utf8(column)) return std::nullopt;
  column.owner = std::move(own);
  return column;
}

// The bytes of a cell, without the quotes around it.
struct CellText {
  std::string_view text;
  bool quoted = false;
  bool doubled = false;  // two quotes in a row stand for one

  bool is_null() const { return text.empty() && !quoted; }
};

// The cells of a regular text. `first` is where the records begin in the text whose cells are known. A row has as many
// cells as are said, or with `more` at least as many.
class Cells {
 public:
  Cells(std::string_view text, const CellEnds& ends, size_t first, char quote, size_t cells, bool more)
      : text_(text), ends_(ends), first_(first), quote_(quote), more_(more), stops_(cells) {}

  // Tells `row` of every row, and `blank` of other records, where each ends. Whether none is bad, and both want more.
  template <class Row, class Blank>
  bool read(Row&& row, Blank&& blank) {
    const size_t stop = first_ + text_.size();
    const char* const text = text_.data() - first_;
    for (size_t word = first_ / 64; word * 64 < stop; ++word) {
      uint64_t bits = ends_.bits()[word];
      if (word == first_ / 64) bits &= ~uint64_t{0} << (first_ % 64);
      if (stop - word * 64 < 64) bits &= (uint64_t{1} << (stop - word * 64)) - 1;
      for (; bits; bits &= bits - 1) {
        const char* const at = text + word * 64 + std::countr_zero(bits);
        if (*at != '\n') {
          if (cell_ < stops_.size()) stops_[cell_] = at;
          ++cell_;
          continue;
        }
        if (!end_record(at, at + 1, row, blank)) return false;
        record_ = at + 1;
        cell_ = 0;
      }
    }
    return record_ == text + stop || end_record(text + stop, text + stop, row, blank);
  }

  // Of the row that was told last.
  CellText cell(size_t place) const {
    const char* from = place ? stops_[place - 1] + 1 : record_;
    const char* to = stops_[place];
    if (from == to || !quote_ || *from != quote_) return {{from, static_cast<size_t>(to - from)}};
    ++from, --to;
    const std::string_view inside(from, static_cast<size_t>(to - from));
    return {inside, true, ends_.doubled && inside.find(quote_) != inside.npos};
  }

 private:
  template <class Row, class Blank>
  bool end_record(const char* end, const char* next, Row&& row, Blank&& blank) {
    // An empty line is blank, too.
    if (record_ == end || (is_space(*record_) && after_blank(record_, end) == end)) return blank(next);
    const char* const start = cell_ ? stops_[std::min(cell_, stops_.size()) - 1] + 1 : record_;
    if (ends_.returns)
      while (end > start && end[-1] == '\r') --end;
    if (more_ ? cell_ + 1 < stops_.size() : cell_ + 1 != stops_.size()) return false;
    if (cell_ < stops_.size()) stops_[cell_] = end;
    return row(next);
  }

  std::string_view text_;
  const CellEnds& ends_;
  size_t first_;
  char quote_;
  bool more_;
  const char* record_ = text_.data();
  size_t cell_ = 0;
  std::vector<const char*> stops_;  // where the cells of a record end
};

// Reads cells as text, also those in which two quotes stand for one.
inline std::string_view plain_text(const CellText& cell, char quote, std::string& home) {
  if (!cell.doubled) return cell.text;
  home.clear();
  for (std::string_view rest = cell.text; !rest.empty();) {
    const size_t pair = rest.find(quote);
    home += rest.substr(0, pair == rest.npos ? pair : pair + 1);
    rest.remove_prefix(pair == rest.npos ? rest.size() : pair + 2);
  }
  return home;
}

// What a condition says of the rows of a text, if all that is looked at is text. `columns[i]` is the place of cell i.
class CellsAsked {
 public:
  CellsAsked(const Cells& cells, const CellEnds& ends, char quote, const std::vector<int>& columns,
             const CellCondition* condition, size_t bytes)
      : cells_(cells), quote_(quote), condition_(condition), check_text_(ends.high) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] < 0) continue;
      cell_at_.resize(std::max(cell_at_.size(), static_cast<size_t>(columns[i]) + 1));
      cell_at_[static_cast<size_t>(columns[i])] = i;
    }
    if (condition && condition->places() > cell_at_.size())
      throw ParameterError("a condition looks at a cell that is not read");
    check_length_ = condition && bytes > CellCondition::kLongest;
  }
  CellText at(size_t place) const { return cells_.cell(cell_at_[place]); }

  size_t places() const { return cell_at_.size(); }

  // Whether all cells that are looked at are text, and none is longer than a condition may look at.
  bool is_text() const {
    if (!check_text_ && !check_length_) return true;
    for (size_t place = 0; place < cell_at_.size(); ++place) {
      const std::string_view text = at(place).text;
      if ((check_text_ && !is_utf8(text)) || (check_length_ && text.size() > CellCondition::kLongest)) return false;
    }
    return true;
  }
  Said row() {
    if (!condition_) return Said::yes;
    return condition_->of([&](size_t place) -> std::optional<std::string_view> {
      const CellText cell = at(place);
      if (cell.is_null()) return std::nullopt;
      return plain_text(cell, quote_, home_);
    });
  }

 private:
  const Cells& cells_;
  char quote_;
  const CellCondition* condition_;
  bool check_text_, check_length_ = false;
  std::vector<size_t> cell_at_;  // by place
  std::string home_;
};

}  // namespace text_items

// Every line of a text is an item.
inline std::optional<TextItems> line_items(const TextMemory& block) {
  using namespace text_items;
  const std::string_view text = block.text;
  TextItems out{{}, newlines(text)};
  Found found(block, out.lines + 1);
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    const char* const stop = next_of(at, end, '\n');
    found.add(at, stop - (stop > at && stop[-1] == '\r'));
    at = stop + 1;
  }
  auto column = found.column(has_high_bit(text.data(), text.size()));
  if (!column) return std::nullopt;
  out.column = std::move(*column);
  return out;
}

// The cells of one column: `columns` and `more` as for a DelimitedReader, whose place is 0. `ends` are those of a text
// in which the records begin at `first`. With a condition they are those of the rows for which it holds, and it has to
// know that of all rows.
inline std::optional<TextItems> delimited_items(const TextMemory& block, const CellEnds& ends, size_t first,
                                                CellMarks marks, const std::vector<int>& columns, bool more,
                                                const CellCondition* condition = nullptr) {
  using namespace text_items;
  TextItems out{{}, newlines(block.text)};
  std::optional<Column> column;
  if (ends.regular) {
    Found found(block, out.lines + 1);
    Cells cells(block.text, ends, first, marks.quote, columns.size(), more);
    const auto wanted = static_cast<size_t>(std::find(columns.begin(), columns.end(), 0) - columns.begin());
    const auto take = [&](const char*) {
      const CellText item = cells.cell(wanted);
      if (item.is_null()) return false;
      if (item.doubled) {
        found.add_doubled(item.text, marks.quote);
      } else {
        found.add(item.text.data(), item.text.data() + item.text.size());
      }
      return true;
    };
    const auto pass = [](const char*) { return true; };
    if (!condition) {
      if (cells.read(take, pass)) column = found.column(ends.high);
    } else {
      CellsAsked asked(cells, ends, marks.quote, columns, condition, block.text.size());
      const auto ask = [&](const char* end) {
        if (!asked.is_text()) return false;
        const Said said = asked.row();
        return said == Said::no || (said == Said::yes && take(end));
      };
      if (cells.read(ask, pass)) column = found.column(false);
    }
  } else if (!condition) {
    TextRows rows;
    rows.columns.resize(1);
    DelimitedReader(marks, columns, more).read(block.text, rows);
    column = of_rows(std::move(rows));
  }
  if (!column) return std::nullopt;
  out.column = std::move(*column);
  return out;
}

// The rows of a text, as a DelimitedReader finds them, where none is bad and all that is looked at is text. Rows for
// which a condition does not hold are blank; `sure` says whether it knows that of all rows, and those of which it does
// not stay.
struct ChosenRows {
  TextRows rows;
  bool sure = true;
};
inline std::optional<ChosenRows> rows_of_cells(std::string_view text, const CellEnds& ends, size_t first,
                                               CellMarks marks, const std::vector<int>& columns, bool more,
                                               const CellCondition* condition) {
  using namespace text_items;
  if (!ends.regular) return std::nullopt;
  Cells cells(text, ends, first, marks.quote, columns.size(), more);
  CellsAsked asked(cells, ends, marks.quote, columns, condition, text.size());
  ChosenRows out;
  TextRows& rows = out.rows;
  rows.columns.resize(asked.places());
  rows.expect(text, columns.size());
  const char* const stop = text.data() + text.size();
  std::string home;
  const auto row = [&](const char* end) {
    if (!asked.is_text()) return false;
    const Said said = asked.row();
    RecordKind kind = said == Said::bad ? RecordKind::not_computed : RecordKind::blank;
    if (said == Said::yes || said == Said::unsure) {
      kind = RecordKind::row;
      out.sure = out.sure && said == Said::yes;
      for (size_t place = 0; place < rows.columns.size(); ++place) {
        const CellText cell = asked.at(place);
        const std::string_view value = plain_text(cell, marks.quote, home);
        if (cell.doubled) {
          rows.columns[place].data.append(value);
        } else {
          rows.columns[place].data.append(value, stop);
        }
        rows.columns[place].end_value(cell.is_null() ? ValueKind::null : ValueKind::text);
      }
    }
    rows.end_record(kind, end - text.data());
    return true;
  };
  const auto blank = [&](const char* end) {
    rows.end_record(RecordKind::blank, end - text.data());
    return true;
  };
  if (!cells.read(row, blank)) return std::nullopt;
  return out;
}

}  // namespace discreet
