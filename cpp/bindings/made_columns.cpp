// Columns that native code has read and checked, and their rows as buffers that Arrow takes.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "ingest.hpp"

namespace discreet {
namespace {

using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Piece = std::tuple<const MadeColumn*, int64_t, int64_t>;  // some rows of a column, from one on up to another
using Buffers = std::pair<nb::bytes, nb::bytes>;

std::string_view text_at(const Column& rows, int64_t i) {
  return rows.dictionary ? bytes_at(*rows.dictionary, static_cast<int64_t>(integer_at(rows, i))) : bytes_at(rows, i);
}

int64_t rows_of(const std::vector<Piece>& pieces) {
  int64_t rows = 0;
  for (const auto& [made, start, stop] : pieces) {
    if (!made || start < 0 || stop < start || stop > made->column.length) throw DataError("the column has no such rows");
    rows += stop - start;
  }
  return rows;
}

// Calls f(text, end) for every row of the pieces that is kept, in order; bytes before `end` may be read.
template <class F>
void each_text(const std::vector<Piece>& pieces, const bool* keep, F&& f) {
  for (const auto& [made, start, stop] : pieces) {
    const Column& rows = made->column;
    if (rows.dictionary || rows.layout != Layout::offsets32) {
      for (int64_t i = start; i < stop; ++i)
        if (!keep || *keep++) f(text_at(rows, i), nullptr);
      continue;
    }
    const int32_t* const offsets = static_cast<const int32_t*>(rows.offsets) + rows.offset;
    const char* const data = static_cast<const char*>(rows.values);
    const char* const end = data + offsets[stop] - rows.gap;
    for (int64_t i = start; i < stop; ++i)
      if (!keep || *keep++) f({data + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i] - rows.gap)}, end);
  }
}

// The texts of rows one after the other, and where they begin: the buffers of an Arrow column with 32-bit offsets.
Buffers gathered(const std::vector<Piece>& pieces, const std::optional<Flags>& keep) {
  constexpr std::ptrdiff_t kShort = 32;  // most texts are, and so many bytes are copied at once
  const int64_t rows = rows_of(pieces);
  if (keep && keep->size() != static_cast<size_t>(rows)) throw DataError("there must be a flag for every row");
  const bool* const flags = keep ? keep->data() : nullptr;
  int64_t kept = 0, bytes = 0;
  {
    nb::gil_scoped_release release;
    each_text(pieces, flags, [&](std::string_view text, const char*) {
      ++kept;
      bytes += static_cast<int64_t>(text.size());
    });
  }
  if (bytes > std::numeric_limits<int32_t>::max()) throw DataError("the texts are too long for one column");
  nb::bytes offsets = unwritten(4 * static_cast<size_t>(kept + 1)), data = unwritten(static_cast<size_t>(bytes));
  auto* place = reinterpret_cast<int32_t*>(written(offsets));
  char* out = written(data);
  const char *const begin = out, *const last = out + bytes;
  {
    nb::gil_scoped_release release;
    *place = 0;
    each_text(pieces, flags, [&](std::string_view text, const char* end) {
      const auto size = static_cast<std::ptrdiff_t>(text.size());
      if (size <= kShort && end && end - text.data() >= kShort && last - out >= kShort) {
        std::memcpy(out, text.data(), kShort);  // what is too much of it is written over
      } else {
        std::memcpy(out, text.data(), text.size());
      }
      out += size;
      *++place = static_cast<int32_t>(out - begin);
    });
  }
  return {std::move(offsets), std::move(data)};
}

// Of columns by one dictionary: the index of every row.
nb::bytes codes_of(const std::vector<Piece>& pieces) {
  nb::bytes codes = unwritten(4 * static_cast<size_t>(rows_of(pieces)));
  char* out = written(codes);
  for (const auto& [made, start, stop] : pieces) {
    const Column& rows = made->column;
    if (!rows.dictionary || rows.layout != Layout::u32 || rows.dictionary != std::get<0>(pieces[0])->column.dictionary)
      throw DataError("the rows are not those of one dictionary");
    const size_t size = 4 * static_cast<size_t>(stop - start);
    std::memcpy(out, static_cast<const uint32_t*>(rows.values) + rows.offset + start, size);
    out += size;
  }
  return codes;
}

// The column of a dictionary, which is one of its own.
std::optional<MadeColumn> dictionary_of(const MadeColumn& self) {
  if (!self.column.dictionary) return std::nullopt;
  return MadeColumn{*self.column.dictionary};
}

}  // namespace

void bind_made_columns(nb::module_& m) {
  nb::class_<MadeColumn>(m, "MadeColumn", "Items that native code has read and checked. NOT PRIVATE.")
      .def("__len__", [](const MadeColumn& self) { return self.column.length; })
      .def(
          "to_list",
          [](const MadeColumn& self) {
            nb::typed<nb::list, nb::bytes> out;
            for (int64_t i = 0; i < self.column.length; ++i) {
              const std::string_view item = text_at(self.column, i);
              out.append(nb::bytes(item.data(), item.size()));
            }
            return out;
          },
          "The bytes of every item.")
      .def_prop_ro("dictionary", &dictionary_of, "The values that rows are indices of; None if rows hold their own.")
      .def_ro("nulls", &MadeColumn::nulls, "How many rows beside the items were null.")
      .def_ro("bad", &MadeColumn::bad, "How many rows beside the items cannot be items.");
  m.def("gathered", &gathered, nb::arg("pieces"), nb::arg("keep").none() = nb::none(),
        nb::sig("def gathered(pieces: Sequence[tuple[MadeColumn, int, int]], keep: object | None = None) -> "
                "tuple[bytes, bytes]"),
        "(offsets, data) of the rows of these pieces (a column, where they begin, where they end), or of those to keep: "
        "the buffers of an Arrow column of texts or bytes.");
  m.def("codes_of", &codes_of, nb::arg("pieces"),
        nb::sig("def codes_of(pieces: Sequence[tuple[MadeColumn, int, int]]) -> bytes"),
        "The index (int32) of every row of pieces by the same dictionary.");
}

}  // namespace discreet
