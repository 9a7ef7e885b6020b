// A column chunk as kernels read it: borrowed buffers, checked before any kernel sees them, decoded block by block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/arrow_abi.hpp"
#include "discreet/errors.hpp"
#include "discreet/keys.hpp"
#include "discreet/wipe.hpp"

namespace discreet {

enum class Layout : uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, offsets32, offsets64, views, fixed };

// What becomes of rows that cannot be items: too long, or not text. `skip` still refuses input without a single Python
// object that could be one, which is a mistake of the caller; `skip_all` does not.
enum class BadItems : uint8_t { error = 0, skip = 1, skip_all = 2 };

struct Checks {
  uint64_t max_key_bytes;
  bool skip_nulls;
  BadItems bad = BadItems::error;

  bool operator==(const Checks&) const = default;
};

struct Column {
  KeyKind kind = KeyKind::none;  // none: a column of nulls only
  Layout layout = Layout::i64;
  int64_t length = 0;
  int64_t offset = 0;                     // first element, for every buffer
  const uint8_t* validity = nullptr;      // bit per element, or null when all are valid
  const void* values = nullptr;           // integers, string bytes, or views
  const void* offsets = nullptr;          // of offsets32 and offsets64
  const void* const* variadic = nullptr;  // data buffers of views
  int64_t width = 0;                      // of fixed
  bool untyped = false;                   // made of Python objects: its kind is that of the data, not of a schema
  const uint8_t* tags = nullptr;          // of mixed columns: a Tag for every element
  bool strip_zeros = false;               // of fixed: NumPy pads byte strings with NUL
  int32_t gap = 0;                        // of offsets32: bytes between two texts, in pages of Parquet their lengths
  uint32_t checked = 0;                   // unless 0: all elements were found to be items, of at most this many bytes
  std::shared_ptr<Column> dictionary;     // then values/layout describe the indices
  std::shared_ptr<void> owner;            // keeps the buffers alive
  std::optional<Checks> passed;           // checks that were made already: what they leave out is left out
  const uint64_t* hashes = nullptr;       // of text and bytes, from element `hashes_from` of the buffers on, or nothing
  int64_t hashes_from = 0;
  uint64_t hashed_under = 0;  // this seed

  bool valid(int64_t i) const {
    if (!validity) return true;
    const int64_t j = offset + i;
    return validity[j >> 3] >> (j & 7) & 1;
  }
  // The hashes of the elements, if they were made under this seed.
  const uint64_t* known_hashes(const HashKey& seed) const {
    const bool known = hashes && hashed_under == seed.seed && !seed.first_version;
    return known ? hashes + (offset - hashes_from) : nullptr;
  }
  Tag tag(int64_t i) const {
    if (tags) return static_cast<Tag>(tags[offset + i]);
    return kind == KeyKind::binary ? Tag::bytes : Tag::text;
  }
  KeyKind key_kind() const { return dictionary ? dictionary->kind : kind; }
};

// The most bytes of an item in a column that native code makes.
inline constexpr uint32_t kLongestItem = 4096;

// A column that native code has read and checked, and how many rows there were beside its items: nulls, and rows that cannot
// be items.
struct MadeColumn {
  Column column;
  int64_t nulls = 0, bad = 0;
};

// One Arrow list array: the items of user i are items[offsets(i), offsets(i+1)).
struct ListColumn {
  Column items;
  int64_t length = 0;
  int64_t offset = 0;
  const uint8_t* validity = nullptr;
  const void* offsets = nullptr;
  bool wide = false;       // 64-bit offsets
  int64_t fixed_size = 0;  // of fixed-size lists, which have no offsets
  int64_t first = 0;       // where `items` begins in the array the offsets count from
  std::shared_ptr<void> owner;

  bool valid(int64_t i) const {
    if (!validity) return true;
    const int64_t j = offset + i;
    return validity[j >> 3] >> (j & 7) & 1;
  }
  std::pair<int64_t, int64_t> range(int64_t i) const {
    return {bound(offset + i) - first, bound(offset + i + 1) - first};
  }

  // Leaves of `items` only what the lists refer to, so that the rest is neither checked nor read.
  void narrow() {
    const int64_t begin = length ? bound(offset) : 0;
    const int64_t end = length ? bound(offset + length) : 0;
    bool rising = 0 <= begin && end <= items.length;
    for (int64_t i = 0; i < length; ++i) rising &= bound(offset + i) <= bound(offset + i + 1);
    if (!rising) throw DataError("a list column has offsets outside its items");
    first = begin;
    items.offset += begin;
    items.length = end - begin;
  }

 private:
  int64_t bound(int64_t j) const {
    if (fixed_size) return j * fixed_size;
    return wide ? static_cast<const int64_t*>(offsets)[j] : static_cast<const int32_t*>(offsets)[j];
  }
};

// ---- from Arrow ---------------------------------------------------------------------------------------------------

inline constexpr const char* kAllowedTypes =
    "integers, strings or bytes (Arrow int8 to uint64, string, large_string, string_view, binary, large_binary, "
    "binary_view, fixed_size_binary, or a dictionary of those)";

inline bool integer_layout(std::string_view format, Layout& layout) {
  if (format.size() != 1) return false;
  switch (format[0]) {
    case 'c': layout = Layout::i8; return true;
    case 's': layout = Layout::i16; return true;
    case 'i': layout = Layout::i32; return true;
    case 'l': layout = Layout::i64; return true;
    case 'C': layout = Layout::u8; return true;
    case 'S': layout = Layout::u16; return true;
    case 'I': layout = Layout::u32; return true;
    case 'L': layout = Layout::u64; return true;
    default: return false;
  }
}

inline Column column_from_arrow(const ArrowSchema& schema, const ArrowArray& array, std::shared_ptr<void> owner) {
  Column column;
  column.owner = std::move(owner);
  column.length = array.length;
  column.offset = array.offset;
  const std::string_view format = schema.format;
  if (format == "n") return column;  // the null type: no buffers, nothing valid
  if (array.n_buffers > 0 && array.null_count != 0) column.validity = static_cast<const uint8_t*>(array.buffers[0]);
  if (integer_layout(format, column.layout)) {
    column.kind = column.layout == Layout::u64 ? KeyKind::uint64 : KeyKind::int64;
    column.values = array.buffers[1];
    if (schema.dictionary) {
      if (!array.dictionary) throw DataError("a dictionary column came without its dictionary");
      if (array.dictionary->length > UINT32_MAX) throw DataError("a dictionary has more than 2**32 values");
      column.dictionary =
          std::make_shared<Column>(column_from_arrow(*schema.dictionary, *array.dictionary, column.owner));
      if (column.dictionary->dictionary) throw DataError("a dictionary of dictionaries is not supported");
    }
  } else if (format == "u" || format == "z" || format == "U" || format == "Z") {
    column.kind = format == "u" || format == "U" ? KeyKind::string : KeyKind::binary;
    column.layout = format == "u" || format == "z" ? Layout::offsets32 : Layout::offsets64;
    column.offsets = array.buffers[1];
    column.values = array.buffers[2];
  } else if (format == "vu" || format == "vz") {
    column.kind = format == "vu" ? KeyKind::string : KeyKind::binary;
    column.layout = Layout::views;
    column.values = array.buffers[1];
    column.variadic = array.buffers + 2;
  } else if (format.substr(0, 2) == "w:") {
    column.kind = KeyKind::binary;
    column.layout = Layout::fixed;
    column.width = std::stoll(std::string(format.substr(2)));
    column.values = array.buffers[1];
  } else {
    throw DataError("the column's Arrow type has format '" + std::string(format) + "'; allowed are " + kAllowedTypes);
  }
  return column;
}

// Whether a struct array (a table) has null rows; its null count may be unknown.
inline bool has_null_rows(const ArrowArray& array) {
  if (array.null_count == 0 || array.n_buffers == 0 || !array.buffers[0]) return false;
  const auto* bits = static_cast<const uint8_t*>(array.buffers[0]);
  for (int64_t j = array.offset; j < array.offset + array.length; ++j)
    if (!(bits[j >> 3] >> (j & 7) & 1)) return true;
  return false;
}

// A column, or the only column of a table.
inline Column column_or_only_child(const ArrowSchema& schema, const ArrowArray& array, std::shared_ptr<void> owner) {
  if (std::string_view(schema.format) != "+s") return column_from_arrow(schema, array, std::move(owner));
  if (schema.n_children != 1)
    throw DataError("expected one column, got a table with " + std::to_string(schema.n_children) + " columns");
  if (has_null_rows(array)) throw DataError("expected one column, got a struct column with nulls");
  Column column = column_from_arrow(*schema.children[0], *array.children[0], std::move(owner));
  column.offset += array.offset;
  column.length = array.length;
  return column;
}

inline ListColumn list_from_arrow(const ArrowSchema& schema, const ArrowArray& array, std::shared_ptr<void> owner) {
  const std::string_view format = schema.format;
  if (format == "+s") {
    if (schema.n_children != 1)
      throw DataError("expected one column, got a table with " + std::to_string(schema.n_children) + " columns");
    if (has_null_rows(array)) throw DataError("expected a list column, got a struct column with nulls");
    ArrowArray rows = *array.children[0];  // borrowed: `owner` releases it
    rows.offset += array.offset;
    rows.length = array.length;
    return list_from_arrow(*schema.children[0], rows, std::move(owner));
  }
  ListColumn list;
  list.length = array.length;
  list.offset = array.offset;
  if (array.n_buffers > 0 && array.null_count != 0) list.validity = static_cast<const uint8_t*>(array.buffers[0]);
  if (format == "+l" || format == "+L") {
    list.wide = format == "+L";
    list.offsets = array.buffers[1];
  } else if (format.substr(0, 3) == "+w:") {
    list.fixed_size = std::stoll(std::string(format.substr(3)));
    if (list.fixed_size <= 0) throw DataError("expected lists with at least one item each, got fixed-size lists of 0");
  } else {
    throw DataError("expected a list column (one list a user), got Arrow format '" + std::string(format) + "'");
  }
  list.items = column_from_arrow(*schema.children[0], *array.children[0], owner);
  list.owner = std::move(owner);
  list.narrow();
  return list;
}

// ---- elements ------------------------------------------------------------------------------------------------------

template <class T>
uint64_t as_pattern(const void* values, int64_t i) {
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<const T*>(values)[i]));
}

// The 64-bit pattern of the integer (or dictionary index) at `i`.
inline uint64_t integer_at(const Column& column, int64_t i) {
  const int64_t j = column.offset + i;
  switch (column.layout) {
    case Layout::i8: return as_pattern<int8_t>(column.values, j);
    case Layout::i16: return as_pattern<int16_t>(column.values, j);
    case Layout::i32: return as_pattern<int32_t>(column.values, j);
    case Layout::u8: return as_pattern<uint8_t>(column.values, j);
    case Layout::u16: return as_pattern<uint16_t>(column.values, j);
    case Layout::u32: return as_pattern<uint32_t>(column.values, j);
    default: return static_cast<const uint64_t*>(column.values)[j];
  }
}

// The bytes at `i`, with their length as stored (checked later, by validate).
inline std::string_view bytes_at(const Column& column, int64_t i) {
  const int64_t j = column.offset + i;
  const char* data = static_cast<const char*>(column.values);
  switch (column.layout) {
    case Layout::offsets32: {
      const int32_t* offsets = static_cast<const int32_t*>(column.offsets);
      return {data + offsets[j], static_cast<size_t>(static_cast<int64_t>(offsets[j + 1]) - offsets[j] - column.gap)};
    }
    case Layout::offsets64: {
      const int64_t* offsets = static_cast<const int64_t*>(column.offsets);
      return {data + offsets[j], static_cast<size_t>(offsets[j + 1] - offsets[j])};
    }
    case Layout::views: {
      const char* view = data + 16 * j;
      const uint32_t size = load32(view);
      if (size <= 12) return {view + 4, size};
      return {static_cast<const char*>(column.variadic[load32(view + 8)]) + load32(view + 12), size};
    }
    default: {
      const char* p = data + column.width * j;
      int64_t size = column.width;
      if (column.strip_zeros)
        while (size > 0 && p[size - 1] == '\0') --size;
      return {p, static_cast<size_t>(size)};
    }
  }
}

// Calls f with a pointer to the integers (or dictionary indices) of a column, from its first element on.
template <class F>
auto with_integers(const Column& column, F&& f) {
  const auto at = [&]<class T>(T) { return static_cast<const T*>(column.values) + column.offset; };
  switch (column.layout) {
    case Layout::i8: return f(at(int8_t{}));
    case Layout::i16: return f(at(int16_t{}));
    case Layout::i32: return f(at(int32_t{}));
    case Layout::u8: return f(at(uint8_t{}));
    case Layout::u16: return f(at(uint16_t{}));
    case Layout::u32: return f(at(uint32_t{}));
    case Layout::u64: return f(at(uint64_t{}));
    default: return f(at(int64_t{}));
  }
}
// Calls f with the function that reads the bytes of element i.
template <class F>
auto with_bytes(const Column& column, F&& f) {
  const auto by_offsets = [&]<class T>(T) {
    const char* data = static_cast<const char*>(column.values);
    const T* offsets = static_cast<const T*>(column.offsets) + column.offset;
    const T gap = column.gap;
    return f([data, offsets, gap](int64_t i) {
      return std::string_view(data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i] - gap));
    });
  };
  if (column.layout == Layout::offsets32) return by_offsets(int32_t{});
  if (column.layout == Layout::offsets64) return by_offsets(int64_t{});
  return f([&column](int64_t i) { return bytes_at(column, i); });
}

inline IntKey key_at(const Column& column, int64_t i, IntKey) { return {integer_at(column, i)}; }
inline StrKey key_at(const Column& column, int64_t i, StrKey) {
  const std::string_view bytes = bytes_at(column, i);
  return {bytes.data(), static_cast<uint32_t>(bytes.size()), column.tag(i)};
}

// ---- checks --------------------------------------------------------------------------------------------------------

inline bool is_utf8(std::string_view s) {
  const auto* p = reinterpret_cast<const unsigned char*>(s.data());
  const auto* end = p + s.size();
  while (p != end) {
    if (end - p >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      if (!(word & 0x8080808080808080ull)) {
        p += 8;
        continue;
      }
    }
    const unsigned c = *p++;
    if (c < 0x80) continue;
    int more;
    unsigned low = 0x80, high = 0xbf;  // allowed range of the first continuation byte
    if (c >= 0xc2 && c <= 0xdf) {
      more = 1;
    } else if (c >= 0xe0 && c <= 0xef) {
      more = 2;
      if (c == 0xe0) low = 0xa0;
      if (c == 0xed) high = 0x9f;  // surrogates
    } else if (c >= 0xf0 && c <= 0xf4) {
      more = 3;
      if (c == 0xf0) low = 0x90;
      if (c == 0xf4) high = 0x8f;
    } else {
      return false;
    }
    if (end - p < more || *p < low || *p > high) return false;
    for (int k = 1; k < more; ++k)
      if ((p[k] & 0xc0) != 0x80) return false;
    p += more;
  }
  return true;
}

using BadRows = std::vector<int64_t>;  // rows to leave out

inline bool has_high_bit(const char* p, size_t n) {
  uint64_t any = 0;
  for (; n >= 8; p += 8, n -= 8) any |= load64(p);
  for (; n; ++p, --n) any |= static_cast<uint8_t>(*p);
  return any & 0x8080808080808080ull;
}

// Whether the valid element i can be an item; otherwise `row` is noted, or refused.
inline void check_bytes_at(const Column& column, int64_t i, const Checks& checks, bool ascii, BadRows& bad, int64_t row) {
  if (column.tags && column.tag(i) >= Tag::integer) return;
  const std::string_view bytes = bytes_at(column, i);
  const bool too_long = bytes.size() > checks.max_key_bytes;
  if (!too_long && (ascii || is_utf8(bytes))) return;
  if (checks.bad != BadItems::error) {
    bad.push_back(row);
    return;
  }
  if (too_long)
    throw DataError("an item is longer than max_key_bytes, which is " + std::to_string(checks.max_key_bytes));
  throw DataError("a string column holds bytes that are not valid UTF-8");
}

inline void check_bytes(const Column& column, const Checks& checks, BadRows& bad) {
  if (column.length == 0) return;
  bool ascii = column.kind != KeyKind::string;
  if (!ascii && (column.layout == Layout::offsets32 || column.layout == Layout::offsets64)) {
    // One pass over the whole buffer is cheaper than one over every string.
    const char* first = bytes_at(column, 0).data();
    const std::string_view last = bytes_at(column, column.length - 1);
    ascii = last.data() >= first && !has_high_bit(first, static_cast<size_t>(last.data() + last.size() - first));
  }
  with_bytes(column, [&](auto bytes_of) {
    size_t longest = 0;
    if (!column.validity) {
      for (int64_t i = 0; i < column.length; ++i) longest = std::max(longest, bytes_of(i).size());
    } else {
      for (int64_t i = 0; i < column.length; ++i)
        if (column.valid(i)) longest = std::max(longest, bytes_of(i).size());
    }
    if (longest <= checks.max_key_bytes && ascii) return;
    for (int64_t i = 0; i < column.length; ++i)
      if (column.valid(i)) check_bytes_at(column, i, checks, ascii, bad, i);
  });
}

// Whether every value of a dictionary of strings may be an item. When one may not, or when there are more values than
// rows, only the values in use are checked, row by row.
inline bool all_values_fit(const Column& dictionary, int64_t rows, const Checks& checks) {
  if (dictionary.length > rows) return false;
  BadRows bad;
  check_bytes(dictionary, {checks.max_key_bytes, true, BadItems::skip}, bad);
  return bad.empty();
}

inline bool any_null(const Column& column) {
  if (column.kind == KeyKind::none) return column.length > 0;
  if (!column.validity) return false;
  for (int64_t i = 0; i < column.length; ++i)
    if (!column.valid(i)) return true;
  return false;
}

inline bool any_valid(const Column& column) {
  if (column.key_kind() == KeyKind::none) return false;
  if (!column.validity) return column.length > 0;
  for (int64_t i = 0; i < column.length; ++i)
    if (column.valid(i)) return true;
  return false;
}

// Throws DataError for what the summary cannot take; nothing has been changed by then. Returns the rows to leave out.
inline BadRows validate(const Column& column, const Checks& checks) {
  BadRows bad;
  if (column.checked && column.checked <= checks.max_key_bytes) return bad;
  if (!checks.skip_nulls && any_null(column))
    throw DataError("the column has nulls; pass nulls=\"skip\" to leave them out");
  if (column.dictionary) {
    const Column& dictionary = *column.dictionary;
    const bool check_rows = !is_integer(dictionary.kind) && dictionary.kind != KeyKind::none &&
                            !all_values_fit(dictionary, column.length, checks);
    const bool ascii = dictionary.kind != KeyKind::string;
    const uint64_t size = static_cast<uint64_t>(dictionary.length);
    const bool null_values = dictionary.kind == KeyKind::none || dictionary.validity;
    with_integers(column, [&](auto codes) {
      bool outside = false;
      for (int64_t i = 0; i < column.length; ++i)
        outside |= static_cast<uint64_t>(codes[i]) >= size && column.valid(i);
      if (outside) throw DataError("a dictionary column has an index outside its dictionary");
      if (!check_rows && (!null_values || checks.skip_nulls)) return;
      for (int64_t i = 0; i < column.length; ++i) {
        if (!column.valid(i)) continue;
        const int64_t code = static_cast<int64_t>(codes[i]);
        if (dictionary.kind == KeyKind::none || !dictionary.valid(code)) {
          if (!checks.skip_nulls) throw DataError("the column has nulls; pass nulls=\"skip\" to leave them out");
        } else if (check_rows) {
          check_bytes_at(dictionary, code, checks, ascii, bad, i);
        }
      }
    });
  } else if (!is_integer(column.kind) && column.kind != KeyKind::none) {
    check_bytes(column, checks, bad);
  }
  return bad;
}

// Makes nulls of these rows, for good: they were checked, and are passed over like nulls that are skipped.
inline void leave_out(Column& column, const BadRows& rows) {
  if (rows.empty()) return;
  auto bits = std::make_shared<std::vector<uint8_t>>(static_cast<size_t>((column.offset + column.length + 7) / 8), 0xff);
  if (column.validity) std::memcpy(bits->data(), column.validity, bits->size());
  for (const int64_t i : rows) {
    const int64_t j = column.offset + i;
    (*bits)[static_cast<size_t>(j >> 3)] &= static_cast<uint8_t>(~(1u << (j & 7)));
  }
  column.validity = bits->data();
  column.owner = std::make_shared<std::pair<std::shared_ptr<void>, decltype(bits)>>(column.owner, bits);
}

// Whether the integers of a validated column fit the other signedness.
inline bool fits_other_sign(const Column& column) {
  for (int64_t i = 0; i < column.length; ++i) {
    if (!column.valid(i)) continue;
    const Column& values = column.dictionary ? *column.dictionary : column;
    const int64_t at = column.dictionary ? static_cast<int64_t>(integer_at(column, i)) : i;
    if (values.valid(at) && static_cast<int64_t>(integer_at(values, at)) < 0) return false;
  }
  return true;
}

// The key kind of a summary after this column.
inline KeyKind combined_kind(KeyKind have, const Column& column) {
  const KeyKind given = column.key_kind();
  if (given == KeyKind::none || column.length == 0) return have;
  if (have == KeyKind::none || have == given) return given;
  return is_integer(have) && is_integer(given) && fits_other_sign(column) ? have : KeyKind::mixed;
}

// For questions about items: throws DataError for those that a summary of this kind cannot hold.
inline void require_kind(KeyKind have, const Column& column) {
  if (have != KeyKind::mixed && combined_kind(have, column) != have)
    throw DataError(std::string("the summary holds ") + name_of(have) + " keys, the column has " +
                    name_of(column.key_kind()) + " keys");
}

// A column of integers as one of a mixed summary; other columns can be read as they are.
inline Column as_mixed(const Column& column) {
  if (!is_integer(column.key_kind())) return column;
  struct Buffers {
    WipedVector<char> bytes;
    WipedVector<int64_t> offsets;
    WipedVector<uint8_t> tags, validity;
  };
  auto own = std::make_shared<Buffers>();
  const size_t n = static_cast<size_t>(column.length);
  own->offsets.resize(n + 1);
  own->tags.resize(n);
  own->validity.resize(n / 8 + 1, 0);
  const Column& values = column.dictionary ? *column.dictionary : column;
  bool whole = true;
  own->bytes.reserve(8 * n);
  for (size_t i = 0; i < n; ++i) {
    const int64_t row = static_cast<int64_t>(i);
    const int64_t at = column.dictionary && column.valid(row) ? static_cast<int64_t>(integer_at(column, row)) : row;
    if (column.valid(row) && (!column.dictionary || values.valid(at))) {
      const uint64_t pattern = integer_at(values, at);
      const char* p = reinterpret_cast<const char*>(&pattern);
      own->bytes.insert(own->bytes.end(), p, p + 8);
      own->tags[i] = static_cast<uint8_t>(tag_of(pattern, values.kind));
      own->validity[i >> 3] |= static_cast<uint8_t>(1u << (i & 7));
    } else {
      whole = false;
    }
    own->offsets[i + 1] = static_cast<int64_t>(own->bytes.size());
  }
  Column out;
  out.kind = KeyKind::mixed;
  out.layout = Layout::offsets64;
  out.length = column.length;
  if (!whole) out.validity = own->validity.data();
  out.values = own->bytes.data();
  out.offsets = own->offsets.data();
  out.tags = own->tags.data();
  out.untyped = column.untyped;
  out.owner = own;
  return out;
}

// ---- decoding ------------------------------------------------------------------------------------------------------

inline constexpr size_t kBlock = 512;

// Decodes valid elements from `begin` on, at most a block of them, and returns where it stopped. The switch over the
// column's layout is made here, once a block, so that each kernel is compiled for one layout and not for all.
inline int64_t decode_block(const Column& column, int64_t begin, int64_t end, const HashKey& seed, IntKey* keys,
                            uint64_t* hashes, size_t& n) {
  n = 0;
  with_integers(column, [&](auto values) {
    const auto put = [&](int64_t i) {
      keys[n].value = static_cast<uint64_t>(static_cast<int64_t>(values[i]));
      hashes[n] = keys[n].hash(seed);
      ++n;
    };
    if (!column.validity) {
      for (const int64_t stop = std::min<int64_t>(end, begin + static_cast<int64_t>(kBlock)); begin < stop; ++begin)
        put(begin);
    } else {
      for (; begin < end && n < kBlock; ++begin)
        if (column.valid(begin)) put(begin);
    }
  });
  return begin;
}
inline int64_t decode_block(const Column& column, int64_t begin, int64_t end, const HashKey& seed, StrKey* keys,
                            uint64_t* hashes, size_t& n) {
  n = 0;
  const uint64_t* const known = column.validity || column.tags ? nullptr : column.known_hashes(seed);
  with_bytes(column, [&](auto bytes_of) {
    const Tag one = column.kind == KeyKind::binary ? Tag::bytes : Tag::text;
    if (known) {
      for (const int64_t stop = std::min<int64_t>(end, begin + static_cast<int64_t>(kBlock)); begin < stop; ++begin) {
        const std::string_view bytes = bytes_of(begin);
        keys[n] = {bytes.data(), static_cast<uint32_t>(bytes.size()), one};
        hashes[n++] = known[begin];
      }
      return;
    }
    for (; begin < end && n < kBlock; ++begin) {
      if (!column.valid(begin)) continue;
      const std::string_view bytes = bytes_of(begin);
      keys[n] = {bytes.data(), static_cast<uint32_t>(bytes.size()), column.tags ? column.tag(begin) : one};
      hashes[n] = column.tags ? keys[n].hash(seed) : hash_bytes(keys[n].data, keys[n].size, seed);
      ++n;
    }
  });
  return begin;
}

// Calls take(keys, hashes, n) for the valid elements of [begin, end), in order.
template <class Key, class F>
void for_blocks(const Column& column, int64_t begin, int64_t end, const HashKey& seed, Key, F&& take) {
  Key keys[kBlock];
  uint64_t hashes[kBlock];
  while (begin < end) {
    size_t n;
    begin = decode_block(column, begin, end, seed, keys, hashes, n);
    take(keys, hashes, n);
  }
}

// The hash of every value of a dictionary of strings, by code.
inline std::vector<uint64_t> code_hashes(const Column& dictionary, const HashKey& seed) {
  std::vector<uint64_t> hashes(static_cast<size_t>(dictionary.length));
  if (dictionary.kind == KeyKind::none) return hashes;
  if (const uint64_t* const known = dictionary.known_hashes(seed)) {
    std::copy(known, known + dictionary.length, hashes.begin());
    return hashes;
  }
  if (dictionary.validity || dictionary.tags) {
    for (int64_t code = 0; code < dictionary.length; ++code)
      if (dictionary.valid(code)) hashes[static_cast<size_t>(code)] = key_at(dictionary, code, StrKey{}).hash(seed);
    return hashes;
  }
  with_bytes(dictionary, [&](auto bytes_of) {
    for (int64_t code = 0; code < dictionary.length; ++code) {
      const std::string_view bytes = bytes_of(code);
      hashes[static_cast<size_t>(code)] = hash_bytes(bytes.data(), static_cast<uint32_t>(bytes.size()), seed);
    }
  });
  return hashes;
}

// Keeps the hashes of a checked column of text or bytes with it, or of its dictionary, so that who counts need not make
// them. Integers are hashed as fast as hashes are read.
inline void keep_hashes(Column& column, const HashKey& seed) {
  if (seed.first_version) return;  // these would be taken for those of today under the same seed
  if (column.dictionary) {
    if (column.dictionary->length > column.length) return;  // then rows are looked up one by one
    auto values = std::make_shared<Column>(*column.dictionary);
    keep_hashes(*values, seed);
    column.dictionary = std::move(values);
    return;
  }
  if (column.kind == KeyKind::none || is_integer(column.kind) || column.known_hashes(seed)) return;
  auto own = std::make_shared<std::pair<std::shared_ptr<void>, std::vector<uint64_t>>>(column.owner,
                                                                                      code_hashes(column, seed));
  column.hashes = own->second.data();
  column.hashes_from = column.offset;
  column.hashed_under = seed.seed;
  column.owner = std::move(own);
}

// Feeds a kernel from a dictionary column of strings. Each code is hashed once, and while its key stays in the table
// the code alone identifies it: `owner_` names the code that lives at a position. A key that enters the table gets its
// bytes at the end, if it is still there, so that keys that come and go are never copied.
template <class Kernel>
class DictionaryFeed {
 public:
  // `hashes` are those of code_hashes() under the kernel's seed.
  DictionaryFeed(Kernel& kernel, const Column& column, const std::vector<uint64_t>& hashes)
      : kernel_(kernel), column_(column), hashes_(hashes) {
    forget_positions();
  }
  DictionaryFeed(const DictionaryFeed&) = delete;
  DictionaryFeed& operator=(const DictionaryFeed&) = delete;
  ~DictionaryFeed() = default;

  void feed(int64_t begin, int64_t end) {
    uint32_t block[kAhead];
    while (begin < end) {
      size_t n;
      begin = decode(begin, end, block, n);
      add(block, n);
    }
  }
  // The same with codes that were read already, all of them of values that are items.
  void feed(const uint32_t* codes, size_t count) {
    for (size_t n; count > 0; codes += n, count -= n) {
      n = std::min(count, kAhead);
      for (size_t i = 0; i < n; ++i) __builtin_prefetch(hashes_.data() + codes[i]);
      add(codes, n);
    }
  }

  // Copies the bytes of the keys that are still in the table. Must be called before anyone else reads the kernel.
  void settle() {
    for (uint32_t position = 0; position < owner_.size(); ++position) {
      if (!later_[position]) continue;
      kernel_.table().settle(position, key_of(owner_[position]));
      later_[position] = 0;
    }
  }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;

  bool usable(size_t code) const {
    const Column& dictionary = *column_.dictionary;
    return dictionary.kind != KeyKind::none && dictionary.valid(static_cast<int64_t>(code));
  }
  StrKey key_of(uint32_t code) const { return key_at(*column_.dictionary, code, StrKey{}); }
  void forget_positions() {
    owner_.assign(kernel_.table().positions(), kNobody);
    later_.assign(kernel_.table().positions(), 0);
  }

  static constexpr size_t kAhead = 128;  // hashes asked for before one is used: they must not drive the table out

  // At most kAhead codes.
  void add(const uint32_t* codes, size_t n) {
    uint64_t hashes[kAhead];
    for (size_t i = 0; i < n; ++i) hashes[i] = hashes_[codes[i]];
    kernel_.add_each(
        n, [&](size_t i) { return hashes[i]; },
        [&](size_t i, uint32_t p) { return owner_[p] == codes[i] || same_key(p, codes[i], hashes[i]); },
        [&](size_t i) { enter(codes[i], hashes[i]); });
  }

  // The next codes that stand for an item, and where it stopped.
  int64_t decode(int64_t begin, int64_t end, uint32_t* block, size_t& n) const {
    const Column& dictionary = *column_.dictionary;
    const bool any_null = column_.validity || dictionary.kind == KeyKind::none || dictionary.validity;
    n = 0;
    with_integers(column_, [&](auto codes) {
      for (; begin < end && n < kAhead; ++begin) {
        if (any_null && (!column_.valid(begin) || !usable(static_cast<size_t>(codes[begin])))) continue;
        block[n] = static_cast<uint32_t>(codes[begin]);
        __builtin_prefetch(hashes_.data() + block[n]);
        ++n;
      }
    });
    return begin;
  }

  // Whether the key at a position, which another code or an earlier batch brought, is this code's.
  [[gnu::noinline]] bool same_key(uint32_t position, uint32_t code, uint64_t hash) {
    if (kernel_.table().hash_at(position) != hash) return false;
    const StrKey there = later_[position] ? key_of(owner_[position]) : kernel_.table().key(position).view();
    const StrKey here = key_of(code);
    if (there.size != here.size || there.tag != here.tag || !equal_bytes(there.data, here.data, here.size)) return false;
    if (!later_[position]) owner_[position] = code;
    return true;
  }

  [[gnu::noinline]] void enter(uint32_t code, uint64_t hash) {
    const bool grows = kernel_.about_to_grow();
    if (grows) settle();
    const uint32_t position = kernel_.enter(LaterKey{}, hash);
    if (grows) forget_positions();
    if (kernel_.evicted() < owner_.size()) {
      owner_[kernel_.evicted()] = kNobody;
      later_[kernel_.evicted()] = 0;
    }
    if (position == kNobody) return;
    owner_[position] = code;
    later_[position] = 1;
  }

  Kernel& kernel_;
  const Column& column_;
  const std::vector<uint64_t>& hashes_;  // by code
  std::vector<uint32_t> owner_;          // by position: the code whose key lives there, as far as this chunk knows
  std::vector<uint8_t> later_;           // by position: the key has no bytes yet
};

}  // namespace discreet
