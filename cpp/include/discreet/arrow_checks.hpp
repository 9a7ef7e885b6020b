// Arrow structures of another library, checked before anything reads what they point to.
//
// The C data interface carries no sizes of buffers, so a producer's lengths must be believed up to a point. Everything
// else is checked: structure and counts, that lengths fit the address space and that every buffer can be read (at both
// ends and at every MiB), that offsets rise and stay inside the items, that views point into their buffers. (Indices into a dictionary
// are checked by `validate`, and UTF-8.) What is left is a buffer that is shorter than its lengths say and has
// readable memory after it: rows would be made of that memory.
#pragma once

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "discreet/arrow_abi.hpp"
#include "discreet/errors.hpp"

namespace discreet {
namespace arrow_checks {

inline constexpr uint64_t kAddressSpace = 1ull << 47;
inline constexpr int64_t kMaxRows = 1ll << 40;
inline constexpr int64_t kMaxEmptyRows = 1ll << 32;  // of columns that take no memory: nulls, bytes of width 0
inline constexpr int64_t kMaxBuffers = 1ll << 24;
inline constexpr uint64_t kStride = 1ull << 20;
inline constexpr int kMaxDepth = 6;
inline constexpr size_t kLongestFormat = 256;

[[noreturn]] inline void refuse(const char* what) { throw DataError(std::string("the Arrow data is malformed: ") + what); }
inline void require(bool holds, const char* what) {
  if (!holds) refuse(what);
}

// Whether a byte can be read. The kernel copies the signal set before it looks at the (wrong) first argument, so the
// call fails with EFAULT if it cannot be read and with EINVAL if it can; it changes nothing.
inline bool can_read(uintptr_t address) {
  if (address < 4096) return false;
#ifdef __linux__
  if (syscall(SYS_rt_sigprocmask, ~0, address & ~uintptr_t{7}, nullptr, 8) == -1) return errno != EFAULT;
#endif
  return true;
}

// A buffer of `count` elements of `width` bytes; a null pointer will do for none.
inline void check_buffer(const void* buffer, int64_t count, uint64_t width) {
  if (count == 0 || width == 0) return;
  require(buffer, "a buffer is missing");
  const uint64_t bytes = static_cast<uint64_t>(count) * width;  // count <= 2^41 and width < 2^31 do not wrap together
  require(width <= kAddressSpace / static_cast<uint64_t>(count), "a length is more than memory can hold");
  const uintptr_t first = reinterpret_cast<uintptr_t>(buffer);
  require(first < kAddressSpace && bytes <= kAddressSpace - first, "a length is more than memory can hold");
  bool there = can_read(first) && can_read(first + bytes - 1);
  for (uint64_t at = kStride; there && at < bytes; at += kStride) there = can_read(first + at);  // no holes between
  require(there, "a buffer ends before its last element");
}

inline void check_validity(const ArrowArray& array) {
  const int64_t end = array.offset + array.length;
  if (array.null_count == 0 || !array.buffers[0]) {
    require(array.null_count <= 0, "there are nulls and no buffer that says where");
    return;
  }
  check_buffer(array.buffers[0], end / 8 + (end % 8 != 0), 1);
}

// Offsets of `length` + 1 elements from `offset` on: they rise, from 0 or more. Returns the last.
template <class T>
int64_t check_offsets(const ArrowArray& array, const void* buffer) {
  if (array.length == 0) return 0;
  check_buffer(buffer, array.offset + array.length + 1, sizeof(T));
  const T* offsets = static_cast<const T*>(buffer) + array.offset;
  require(offsets[0] >= 0, "an offset is negative");
  std::make_unsigned_t<T> signs = 0;  // of every offset and of every step: of none is it set, so no step wraps
  using U = decltype(signs);
  for (int64_t i = 0; i < array.length; ++i)
    signs |= static_cast<U>(static_cast<U>(offsets[i + 1]) - static_cast<U>(offsets[i])) | static_cast<U>(offsets[i + 1]);
  require(static_cast<T>(signs) >= 0, "offsets do not rise");
  return static_cast<int64_t>(offsets[array.length]);
}

inline void check_views(const ArrowArray& array) {
  const int64_t others = array.n_buffers - 3;
  check_buffer(array.buffers, array.n_buffers, sizeof(void*));
  check_buffer(array.buffers[1], array.offset + array.length, 16);
  check_buffer(array.buffers[array.n_buffers - 1], others, 8);
  const auto* sizes = static_cast<const int64_t*>(array.buffers[array.n_buffers - 1]);
  for (int64_t b = 0; b < others; ++b) {
    require(sizes[b] >= 0, "a buffer has a negative size");
    if (sizes[b] > 0) check_buffer(array.buffers[2 + b], sizes[b], 1);
  }
  const auto* bits = array.null_count != 0 ? static_cast<const uint8_t*>(array.buffers[0]) : nullptr;
  const char* views = static_cast<const char*>(array.buffers[1]);
  for (int64_t j = array.offset; j < array.offset + array.length; ++j) {
    if (bits && !(bits[j >> 3] >> (j & 7) & 1)) continue;
    int32_t view[4];
    std::memcpy(view, views + 16 * j, 16);
    if (view[0] >= 0 && view[0] <= 12) continue;
    require(view[0] >= 0 && view[2] >= 0 && view[2] < others && view[3] >= 0 &&
                static_cast<int64_t>(view[3]) + view[0] <= sizes[view[2]],
            "a view points outside its buffers");
  }
}

inline std::string_view format_of(const ArrowSchema& schema) {
  require(schema.format, "a column has no format");
  const size_t n = strnlen(schema.format, kLongestFormat + 1);
  require(n <= kLongestFormat, "a format is too long");
  for (size_t i = 0; i < n; ++i)  // it is quoted where a type is refused
    require(schema.format[i] >= ' ' && schema.format[i] <= '~', "a format is not printable");
  return {schema.format, n};
}

// The number after a prefix, as in "w:12".
inline int64_t width_of(std::string_view digits) {
  int64_t width = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), width);
  require(error == std::errc() && end == digits.data() + digits.size() && width >= 0 && width <= INT32_MAX,
          "a format has no width");
  return width;
}

inline int64_t integer_width(std::string_view format) {
  static constexpr std::string_view kCodes = "cCsSiIlL";
  const size_t at = format.size() == 1 ? kCodes.find(format[0]) : std::string_view::npos;
  return at == std::string_view::npos ? 0 : int64_t{1} << (at / 2);
}

inline void check_array(const ArrowSchema& schema, const ArrowArray& array, int depth = 0);

// The only child of an array of lists or of a struct with one column, which must have this many elements.
inline void check_child(const ArrowSchema& schema, const ArrowArray& array, int64_t child, int64_t least, int depth) {
  check_array(*schema.children[child], *array.children[child], depth + 1);
  require(array.children[child]->length >= least, "a column has fewer elements than those that refer to it");
}

inline void check_children(const ArrowSchema& schema, const ArrowArray& array) {
  require(schema.n_children >= 0 && schema.n_children == array.n_children, "schema and array differ in their children");
  require(schema.n_children == 0 || (schema.children && array.children), "the children are missing");
  for (int64_t i = 0; i < schema.n_children && i < 2; ++i)  // columns beyond the first are not read
    require(schema.children[i] && array.children[i], "a child is missing");
}

inline void check_array(const ArrowSchema& schema, const ArrowArray& array, int depth) {
  require(depth < kMaxDepth, "it is nested too deeply");
  const std::string_view format = format_of(schema);
  const int64_t length = array.length, offset = array.offset;
  require(length >= 0 && offset >= 0, "a length or an offset is negative");
  require(length <= kMaxRows && offset <= kMaxRows, "a length is more than memory can hold");
  require(array.null_count >= -1 && array.null_count <= length, "a null count is outside the length");
  require(array.n_buffers >= 0 && (array.n_buffers == 0 || array.buffers), "the buffers are missing");
  check_children(schema, array);
  require(!schema.dictionary == !array.dictionary, "schema and array differ in whether there is a dictionary");
  if (format == "n") return require(length <= kMaxEmptyRows, "a length is more than memory can hold");

  const auto has_buffers = [&](int64_t n) { require(array.n_buffers == n, "a column has another number of buffers"); };
  const bool wide = format == "U" || format == "Z" || format == "+L";
  if (const int64_t width = integer_width(format)) {
    has_buffers(2);
    check_buffer(array.buffers[1], length ? offset + length : 0, static_cast<uint64_t>(width));
    if (schema.dictionary) check_array(*schema.dictionary, *array.dictionary, depth + 1);
  } else if (schema.dictionary) {
    refuse("the indices of a dictionary are not integers");
  } else if (format == "u" || format == "z" || format == "U" || format == "Z") {
    has_buffers(3);
    const int64_t last = wide ? check_offsets<int64_t>(array, array.buffers[1])
                              : check_offsets<int32_t>(array, array.buffers[1]);
    require(static_cast<uint64_t>(last) <= kAddressSpace, "a length is more than memory can hold");
    check_buffer(array.buffers[2], last, 1);
  } else if (format == "vu" || format == "vz") {
    require(array.n_buffers >= 3 && array.n_buffers <= kMaxBuffers, "a column of views has too few buffers, or too many");
    check_validity(array);
    check_views(array);
  } else if (format.substr(0, 2) == "w:") {
    has_buffers(2);
    const int64_t width = width_of(format.substr(2));
    require(width > 0 || length <= kMaxEmptyRows, "a length is more than memory can hold");
    check_buffer(array.buffers[1], length ? offset + length : 0, static_cast<uint64_t>(width));
  } else if (format == "+s") {
    has_buffers(1);
    if (schema.n_children == 1) check_child(schema, array, 0, offset + length, depth);
  } else if (format == "+l" || format == "+L") {
    has_buffers(2);
    require(schema.n_children == 1, "a list has another number of children than one");
    const int64_t last = wide ? check_offsets<int64_t>(array, array.buffers[1])
                              : check_offsets<int32_t>(array, array.buffers[1]);
    check_child(schema, array, 0, last, depth);
  } else if (format.substr(0, 3) == "+w:") {
    has_buffers(1);
    require(schema.n_children == 1, "a list has another number of children than one");
    // At most 2^41 rows of at most 2^31 items would wrap.
    const int64_t width = width_of(format.substr(3));
    require(width == 0 || offset + length <= INT64_MAX / width, "a length is more than memory can hold");
    check_child(schema, array, 0, (offset + length) * width, depth);
  } else {
    return;  // a type that no summary takes; refused by its name
  }
  check_validity(array);
}

}  // namespace arrow_checks

// Throws DataError for a structure that cannot be what its schema says.
inline void check_arrow(const ArrowSchema& schema, const ArrowArray& array) { arrow_checks::check_array(schema, array); }

}  // namespace discreet
