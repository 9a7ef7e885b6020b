#include "discreet/records.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "discreet/errors.hpp"
#include "discreet/json_lines.hpp"
#include "module.hpp"

namespace discreet {
namespace {

using Buffers = std::tuple<nb::bytes, nb::bytes, nb::bytes>;
using Read = std::tuple<nb::bytes, nb::bytes, std::vector<Buffers>>;

template <class T>
nb::bytes as_bytes(const T& values) {
  return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
}

std::vector<Buffers> buffers(const TextRows& rows) {
  std::vector<Buffers> out;
  for (const TextColumn& column : rows.columns)
    out.emplace_back(as_bytes(column.kinds), as_bytes(column.offsets), as_bytes(column.data));
  return out;
}

std::string_view checked(const nb::bytes& text) {
  if (text.size() > INT32_MAX) throw ParameterError("text must have less than 2 GiB");
  return {text.c_str(), text.size()};
}

char checked_delimiter(int delimiter) {
  if (delimiter < 1 || delimiter > 127) throw ParameterError("delimiter must be one character of ASCII");
  return static_cast<char>(delimiter);
}

std::tuple<nb::bytes, int> ends_of(const nb::bytes& text, int delimiter, int cell) {
  if (cell < 0 || cell > 3) throw ParameterError("cell must be 0 to 3");
  std::vector<int64_t> ends;
  const char mark = checked_delimiter(delimiter);
  const Cell after = record_ends({text.c_str(), text.size()}, mark, static_cast<Cell>(cell), ends);
  return {as_bytes(ends), static_cast<int>(after)};
}

Read delimited_rows(const nb::bytes& text, int delimiter, const std::vector<int>& columns) {
  const std::string_view all = checked(text);
  const DelimitedReader reader(checked_delimiter(delimiter), columns);
  TextRows rows;
  int last = -1;
  for (const int place : columns) last = std::max(last, place);
  rows.columns.resize(static_cast<size_t>(last + 1));
  std::vector<bool> seen(rows.columns.size());
  for (const int place : columns) {
    if (place < 0) continue;
    if (seen[static_cast<size_t>(place)]) throw ParameterError("columns must be different");
    seen[static_cast<size_t>(place)] = true;
  }
  if (std::find(seen.begin(), seen.end(), false) != seen.end()) throw ParameterError("a column has no cell");
  {
    nb::gil_scoped_release release;
    reader.read(all, rows);
  }
  return {as_bytes(rows.records), as_bytes(rows.ends), buffers(rows)};
}

std::tuple<nb::bytes, nb::bytes, std::vector<Buffers>, nb::bytes, nb::bytes> json_rows(
    const nb::bytes& text, std::vector<std::optional<std::string>> wanted, bool lists) {
  const std::string_view all = checked(text);
  TextRows rows;
  rows.columns.resize(wanted.size());
  JsonLinesReader reader(std::move(wanted), lists);
  {
    nb::gil_scoped_release release;
    reader.read(all, rows);
  }
  return {as_bytes(rows.records), as_bytes(rows.ends), buffers(rows), as_bytes(reader.list_kinds),
          as_bytes(reader.list_offsets)};
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def("record_ends", &ends_of, nb::arg("text"), nb::arg("delimiter"), nb::arg("cell"),
        "The offsets (int64) after the records of delimited text, and how its last cell goes on: 0 at its start, 1 "
        "plain, 2 inside quotes, 3 after a quote that may have closed it.");
  m.def("delimited_rows", &delimited_rows, nb::arg("text"), nb::arg("delimiter"), nb::arg("columns"),
        "The kind of every record (uint8: 0 a row, 1 blank, 2 another number of cells, 3 unreadable), the offset after "
        "it (int64), and of the rows the wanted columns as text: kinds (uint8: 0 an empty cell without quotes, 1 "
        "text), offsets (int32) and bytes. columns[i] is the place of cell i among them, or -1.");
  m.def("json_rows", &json_rows, nb::arg("text"), nb::arg("wanted"), nb::arg("lists"),
        "The same of JSON lines. Kinds of values: 0 null, 1 text, 2 an integer of 64 bits with a sign, 3 without, 4 "
        "another number, 5 something else. None is the only key beside the others. With lists the values of the first "
        "column are their elements, and two more buffers are the kinds (4 for a list without one) and offsets of the "
        "lists.");
}

}  // namespace discreet
