#include "discreet/release_order.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <thread>

#include "ingest.hpp"

namespace discreet {
namespace {

using Counts = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr size_t kAhead = 16;  // texts that are asked for before the first of them is copied

size_t cores() { return std::clamp(std::thread::hardware_concurrency(), 1u, 8u); }

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
    places = ReleaseOrder(column, counts.data()).places(cores());
  }
  return nb::bytes(places.data(), places.size() * sizeof(int64_t));
}

std::pair<nb::bytes, nb::bytes> texts_at(nb::handle items, Counts places) {
  const auto source = open_column(items);
  const size_t rows = places.size();
  nb::bytes offsets = unwritten((rows + 1) * sizeof(int64_t));
  int64_t* ends = reinterpret_cast<int64_t*>(written(offsets));
  std::vector<std::string_view> texts(rows);
  Column column, more;  // may own what the texts lie in
  {
    nb::gil_scoped_release release;
    if (!source->next(column)) column.length = 0;
    if (column.length > 0 && (column.dictionary || is_integer(column.kind) || any_null(column) || source->next(more)))
      throw DataError("texts are taken from one plain column without nulls");
    ends[0] = 0;
    for (size_t i = 0; i < rows; ++i) {
      const int64_t place = places.data()[i];
      if (place < 0 || place >= column.length) throw DataError("a place is outside the column");
      texts[i] = bytes_at(column, place);
      ends[i + 1] = ends[i] + static_cast<int64_t>(texts[i].size());
    }
  }
  nb::bytes values = unwritten(static_cast<size_t>(ends[rows]));
  char* out = written(values);
  {
    nb::gil_scoped_release release;
    const size_t parts = rows < (1 << 15) ? 1 : cores();
    in_threads(parts, [&](size_t part) {
      const size_t last = rows * (part + 1) / parts;
      for (size_t i = rows * part / parts; i < last; ++i) {
        __builtin_prefetch(texts[std::min(i + kAhead, last - 1)].data());
        if (!texts[i].empty()) std::memcpy(out + ends[i], texts[i].data(), texts[i].size());
      }
    });
  }
  return {values, offsets};
}

}  // namespace

void bind_release_order(nb::module_& m) {
  m.def("release_order", &release_order, nb::arg("items"), nb::arg("counts"),
        "Where rows stand (int64): the largest count first, of equals the smaller item.");
  m.def("texts_at", &texts_at, nb::arg("items"), nb::arg("places"),
        "The texts or bytes of a plain column at these places: their bytes, and where each begins and ends (int64).");
}

}  // namespace discreet
