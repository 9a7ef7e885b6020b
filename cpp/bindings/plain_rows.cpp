// The numbers of a release in plain memory: counters and noise, what reaches the cut, intervals.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <optional>

#include "plain_memory.hpp"

namespace discreet {
namespace {

using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

NumbersView plus_noise(Integers counters, Integers noises, int64_t shift) {
  if (counters.size() != noises.size()) throw DataError("every counter must have its noise");
  int64_t* out;
  NumbersView made = unwritten_integers(counters.size(), out);
  // As unsigned numbers, which may wrap.
  const int64_t *counter = counters.data(), *noise = noises.data();
  for (size_t i = 0, rows = counters.size(); i < rows; ++i)
    out[i] = static_cast<int64_t>(static_cast<uint64_t>(counter[i]) + static_cast<uint64_t>(shift) +
                                  static_cast<uint64_t>(noise[i]));
  return made;
}

NumbersView at_least(Integers numbers, int64_t cut) {
  bool* out;
  NumbersView made = unwritten_numbers(numbers.size(), "?", out);
  const int64_t* number = numbers.data();
  for (size_t i = 0, rows = numbers.size(); i < rows; ++i) out[i] = number[i] >= cut;
  return made;
}

NumbersView places_of(Flags flags) {
  const bool* begin = flags.data();
  int64_t* out;
  NumbersView made = unwritten_integers(static_cast<size_t>(std::count(begin, begin + flags.size(), true)), out);
  for (size_t i = 0; i < flags.size(); ++i)
    if (begin[i]) *out++ = static_cast<int64_t>(i);
  return made;
}

NumbersView numbers_at(Integers numbers, Integers places) {
  int64_t* out;
  NumbersView made = unwritten_integers(places.size(), out);
  const int64_t *number = numbers.data(), *place = places.data();
  const size_t size = numbers.size();
  for (size_t i = 0, rows = places.size(); i < rows; ++i) {
    if (static_cast<uint64_t>(place[i]) >= size) throw DataError("a place is outside the column");
    out[i] = number[place[i]];
  }
  return made;
}

// lower = max(count - below, lowest), or `lowest` where it does not lie above the cut, if there is one;
// upper = max(count + above, lower). Distances are one for all rows, or one for each.
std::pair<NumbersView, NumbersView> bounds_of(Integers counts, Reals below, Reals above, double lowest,
                                          std::optional<double> cut) {
  const size_t rows = counts.size();
  for (const Reals& side : {below, above})
    if (side.size() != 1 && side.size() != rows) throw DataError("there must be one distance, or one for every row");
  double *lower, *upper;
  NumbersView lows = unwritten_numbers(rows, "d", lower), highs = unwritten_numbers(rows, "d", upper);
  const size_t next_below = below.size() == rows, next_above = above.size() == rows;
  for (size_t i = 0; i < rows; ++i) {
    const double count = static_cast<double>(counts.data()[i]);
    lower[i] = std::max(count - below.data()[i * next_below], lowest);
    if (cut && !(lower[i] > *cut)) lower[i] = lowest;
    upper[i] = std::max(count + above.data()[i * next_above], lower[i]);
  }
  return {lows, highs};
}

}  // namespace

void bind_plain_rows(nb::module_& m) {
  // Whatever has a buffer of such numbers is taken: arrays of NumPy, too.
  m.def("plus_noise", &plus_noise, nb::arg("counters"), nb::arg("noises"), nb::arg("shift"),
        nb::sig("def plus_noise(counters: object, noises: object, shift: int) -> memoryview"),
        "counters + noises + shift (int64).");
  m.def("at_least", &at_least, nb::arg("numbers"), nb::arg("cut"),
        nb::sig("def at_least(numbers: object, cut: int) -> memoryview"), "Which numbers reach the cut.");
  m.def("places_of", &places_of, nb::arg("flags"), nb::sig("def places_of(flags: object) -> memoryview"),
        "Where flags are set (int64).");
  m.def("numbers_at", &numbers_at, nb::arg("numbers"), nb::arg("places"),
        nb::sig("def numbers_at(numbers: object, places: object) -> memoryview"), "The numbers at these places (int64).");
  m.def("bounds_of", &bounds_of, nb::arg("counts"), nb::arg("below"), nb::arg("above"), nb::arg("lowest"),
        nb::arg("cut").none(),
        nb::sig("def bounds_of(counts: object, below: object, above: object, lowest: float, cut: float | None) -> "
                "tuple[memoryview, memoryview]"),
        "(lower, upper): counts less and plus a distance, at least `lowest`; lower ends not above a cut are `lowest`.");
}

}  // namespace discreet
