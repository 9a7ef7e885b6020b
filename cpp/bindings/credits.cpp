#include "discreet/counters/credits.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "module.hpp"

namespace discreet {
namespace {

using Pairs64 = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::bytes as_bytes(const std::vector<int64_t>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(int64_t));
}

}  // namespace

void bind_credits(nb::module_& m) {
  nb::class_<Credits>(m, "Credits", "How many values can be credited to people. NOT private.")
      .def(
          "__init__",
          [](Credits* self, Pairs64 pairs) {
            nb::gil_scoped_release release;
            new (self) Credits(pairs.data(), pairs.size());
          },
          nb::arg("pairs"))
      .def(
          "credited",
          [](Credits& self, uint32_t most) {
            Credits::Left left;
            {
              nb::gil_scoped_release release;
              left = self.credited(most);
            }
            return nb::make_tuple(left.credited, as_bytes(left.people), as_bytes(left.values), as_bytes(left.room));
          },
          nb::arg("most"),
          nb::sig("def credited(self, most: int) -> tuple[int, bytes, bytes, bytes]"),
          "(how many values are decided; the people and the values of the pairs that are not; the room of people).");
}

}  // namespace discreet
