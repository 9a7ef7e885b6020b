#include "discreet/records.hpp"

#include <nanobind/stl/tuple.h>

#include "discreet/errors.hpp"
#include "module.hpp"

namespace discreet {
namespace {

std::tuple<nb::bytes, int> ends_of(const nb::bytes& text, int delimiter, int cell) {
  if (cell < 0 || cell > 3) throw ParameterError("cell must be 0 to 3");
  if (delimiter < 1 || delimiter > 127) throw ParameterError("delimiter must be one character of ASCII");
  std::vector<int64_t> ends;
  const Cell after =
      record_ends({text.c_str(), text.size()}, static_cast<char>(delimiter), static_cast<Cell>(cell), ends);
  return {nb::bytes(ends.data(), ends.size() * sizeof(int64_t)), static_cast<int>(after)};
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def("record_ends", &ends_of, nb::arg("text"), nb::arg("delimiter"), nb::arg("cell"),
        "The offsets (int64) after the records of delimited text, and how its last cell goes on: 0 at its start, 1 "
        "plain, 2 inside quotes, 3 after a quote that may have closed it.");
}

}  // namespace discreet
