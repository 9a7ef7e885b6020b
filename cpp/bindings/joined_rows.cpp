// Keys of several columns: the bytes of each row one after the other.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <optional>
#include <tuple>
#include <vector>

#include "discreet/errors.hpp"
#include "module.hpp"

namespace discreet {
namespace {

template <class T, int dimensions = 1>
using In = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Fixed = In<const uint8_t, 2>;
using Text = std::tuple<In<const int64_t>, In<const uint8_t>, std::optional<In<const int32_t>>>;

struct TextColumn {
  const int64_t* offsets;
  const uint8_t* data;
  const int32_t* indices;
  size_t values;
  size_t bytes;
};

// The bytes of a text; a place that the column does not have, or one outside of its data, is refused.
inline std::pair<const uint8_t*, size_t> text_at(const TextColumn& text, size_t row) {
  const size_t place = text.indices ? static_cast<size_t>(static_cast<uint32_t>(text.indices[row])) : row;
  if (place >= text.values) throw DataError("a text is not in its dictionary");
  const int64_t start = text.offsets[place], end = text.offsets[place + 1];
  if (start < 0 || end < start || static_cast<uint64_t>(end) > text.bytes || end - start > UINT32_MAX)
    throw DataError("a text is outside of its column");
  return {text.data + start, static_cast<size_t>(end - start)};
}

struct Columns {
  std::vector<std::pair<const uint8_t*, size_t>> fixed;  // and how many bytes a row has
  std::vector<TextColumn> texts;
  size_t head = 0;
};

Columns columns_of(const std::vector<Fixed>& fixed, const std::vector<Text>& texts, size_t rows) {
  Columns columns;
  for (const Fixed& each : fixed) {
    if (each.shape(0) != rows) throw ParameterError("columns must have the same number of rows");
    columns.fixed.emplace_back(each.data(), each.shape(1));
    columns.head += each.shape(1);
  }
  for (const auto& [offsets, data, indices] : texts) {
    if (!offsets.size() || (indices ? indices->size() : offsets.size() - 1) != rows)
      throw ParameterError("columns must have the same number of rows");
    columns.texts.push_back(
        {offsets.data(), data.data(), indices ? indices->data() : nullptr, offsets.size() - 1, data.size()});
  }
  if (texts.size() > 1) columns.head += 4 * (texts.size() - 1);
  return columns;
}

}  // namespace

void bind_joined_rows(nb::module_& m) {
  m.def(
      "joined_offsets",
      [](const std::vector<Fixed>& fixed, const std::vector<Text>& texts, In<int64_t> out) {
        if (!out.size()) throw ParameterError("there is one more offset than rows");
        const size_t rows = out.size() - 1;
        const Columns columns = columns_of(fixed, texts, rows);
        nb::gil_scoped_release release;
        int64_t end = out.data()[0] = 0;
        for (size_t row = 0; row < rows; ++row) {
          size_t size = columns.head;
          for (const TextColumn& text : columns.texts) size += text_at(text, row).second;
          out.data()[row + 1] = end += static_cast<int64_t>(size);
        }
      },
      nb::arg("fixed"), nb::arg("texts"), nb::arg("out"), "Writes where the keys of rows begin, and where the last ends.");
  m.def(
      "join_rows",
      [](const std::vector<Fixed>& fixed, const std::vector<Text>& texts, In<const int64_t> offsets, In<uint8_t> out) {
        if (!offsets.size()) throw ParameterError("there is one more offset than rows");
        const size_t rows = offsets.size() - 1;
        const Columns columns = columns_of(fixed, texts, rows);
        nb::gil_scoped_release release;
        uint8_t* place = out.data();
        for (size_t row = 0; row < rows; ++row) {
          if (offsets.data()[row] != place - out.data() || offsets.data()[row + 1] < offsets.data()[row] ||
              static_cast<uint64_t>(offsets.data()[row + 1]) > out.size())
            throw ParameterError("offsets are not those of these rows");
          for (const auto& [data, width] : columns.fixed) {
            std::memcpy(place, data + row * width, width);
            place += width;
          }
          uint8_t* lengths = place;
          if (columns.texts.size() > 1) place += 4 * (columns.texts.size() - 1);
          for (size_t i = 0; i < columns.texts.size(); ++i) {
            const auto [text, size] = text_at(columns.texts[i], row);
            if (i + 1 < columns.texts.size()) {
              for (int byte = 0; byte < 4; ++byte) lengths[4 * i + byte] = static_cast<uint8_t>(size >> 8 * byte);
            }
            if (static_cast<size_t>(out.data() + offsets.data()[row + 1] - place) < size)
              throw ParameterError("offsets are not those of these rows");
            std::memcpy(place, text, size);
            place += size;
          }
        }
        if (static_cast<size_t>(place - out.data()) != out.size())
          throw ParameterError("offsets are not those of these rows");
      },
      nb::arg("fixed"), nb::arg("texts"), nb::arg("offsets"), nb::arg("out"),
      "Writes the keys of rows: the fixed parts, the lengths of all texts but the last in four bytes, and the texts.");
}

}  // namespace discreet
