#include "discreet/release_order.hpp"

#include <nanobind/ndarray.h>

#include <thread>

#include "ingest.hpp"

namespace discreet {
namespace {

using Counts = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::bytes release_order(nb::handle items, Counts counts) {
  const auto source = open_column(items);
  std::vector<int64_t> places;
  {
    nb::gil_scoped_release release;
    Column column, more;
    if (!source->next(column)) column.length = 0;
    if (column.dictionary || column.kind == KeyKind::mixed || any_null(column) || source->next(more))
      throw DataError("items are put in order as one plain column without nulls");
    if (static_cast<size_t>(column.length) != counts.size()) throw DataError("items and counts must have one length");
    places = ReleaseOrder(column, counts.data()).places(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  }
  return nb::bytes(places.data(), places.size() * sizeof(int64_t));
}

}  // namespace

void bind_release_order(nb::module_& m) {
  m.def("release_order", &release_order, nb::arg("items"), nb::arg("counts"),
        "Where rows stand (int64): the largest count first, of equals the smaller item.");
}

}  // namespace discreet
