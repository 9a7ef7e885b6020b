// Rows of text: which records of a block hold one, and its values in the columns that are wanted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace discreet {

// What a record is depends on its bytes alone.
enum class RecordKind : uint8_t { row = 0, blank = 1, other_cells = 2, unreadable = 3, not_computed = 9 };

// Whole numbers are told apart by the 64 bits that they fit into; a `number` fits into none, and `other` is no item.
enum class ValueKind : uint8_t { null = 0, text = 1, integer = 2, large = 3, number = 4, other = 5 };

// Bytes that are appended to. What a value costs is mostly a call of memcpy, so short ones are copied in whole words
// where there is room behind them, here and in the text they come from.
class TextBytes {
 public:
  const char* data() const { return bytes_.get(); }
  size_t size() const { return size_; }
  std::string_view view() const { return {bytes_.get(), size_}; }

  void reserve(size_t size) {
    if (size + kSlack > room_) grow(size);
  }
  void append(std::string_view value) {
    reserve(size_ + value.size());
    std::copy(value.begin(), value.end(), bytes_.get() + size_);
    size_ += value.size();
  }
  // The same of bytes from a text that ends at `end`.
  void append(std::string_view value, const char* end) {
    if (value.size() > kSlack || end - value.data() < static_cast<std::ptrdiff_t>(kSlack)) return append(value);
    reserve(size_ + value.size());
    std::memcpy(bytes_.get() + size_, value.data(), kSlack);
    size_ += value.size();
  }
  void cut(size_t size) { size_ = size; }
  // Gives up the bytes.
  std::unique_ptr<char[]> take() {
    size_ = room_ = 0;
    return std::move(bytes_);
  }

 private:
  static constexpr size_t kSlack = 32;
  [[gnu::noinline]] void grow(size_t size) {
    const size_t room = std::max(size, 2 * size_) + kSlack;
    std::unique_ptr<char[]> larger(new char[room]);
    std::copy(bytes_.get(), bytes_.get() + size_, larger.get());
    bytes_ = std::move(larger);
    room_ = room;
  }
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0, room_ = 0;
};

// Values as text, one after the other: Arrow's layout of a string column, and what each value is.
struct TextColumn {
  std::vector<uint8_t> kinds;
  std::vector<int32_t> offsets{0};
  TextBytes data;

  void end_value(ValueKind kind) {
    kinds.push_back(static_cast<uint8_t>(kind));
    offsets.push_back(static_cast<int32_t>(data.size()));
  }
  // Forget the values after the first `count`, and what was begun of another.
  void cut(size_t count) {
    kinds.resize(count);
    offsets.resize(count + 1);
    data.cut(static_cast<size_t>(offsets.back()));
  }
};

struct TextRows {
  std::vector<uint8_t> records;  // the kind of each
  std::vector<int64_t> ends;     // the offset after each
  std::vector<TextColumn> columns;
  size_t rows = 0;  // records of kind `row`: as many values has every column

  // Room for the records of a text, by the length of its first; and for the values of its columns.
  void expect(std::string_view text, size_t cells) {
    const size_t first = text.substr(0, text.find('\n')).size() + 1;
    const size_t many = std::min(text.size(), text.size() / first + text.size() / first / 8 + 16);
    records.reserve(many);
    ends.reserve(many);
    for (TextColumn& column : columns) {
      column.kinds.reserve(many);
      column.offsets.reserve(many + 1);
      column.data.reserve(text.size() / cells);
    }
  }

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

// How many newlines there are.
inline size_t newlines(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  size_t count = 0;
#if defined(__SSE2__)
  const __m128i newline = _mm_set1_epi8('\n');
  while (end - at >= 16) {
    const char* const stop = at + std::min<std::ptrdiff_t>((end - at) & ~15, 255 * 16);
    __m128i counts = _mm_setzero_si128();  // of every place of sixteen, less than 256
    for (; at != stop; at += 16)
      counts = _mm_sub_epi8(counts, _mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), newline));
    const __m128i sums = _mm_sad_epu8(counts, _mm_setzero_si128());
    count += static_cast<size_t>(_mm_cvtsi128_si64(sums) + _mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums)));
  }
#endif
  return count + static_cast<size_t>(std::count(at, end, '\n'));
}

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Where a blank record (white space alone) ends, or `at` if it is not blank.
inline const char* after_blank(const char* at, const char* end) {
  for (const char* c = at; c != end; ++c) {
    if (*c == '\n') return c + 1;
    if (!is_space(*c)) return at;
  }
  return end;
}

}  // namespace discreet
