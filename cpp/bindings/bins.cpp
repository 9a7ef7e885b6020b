// The bins of a public grid that values lie in.
#include <nanobind/ndarray.h>

#include <algorithm>

#include "discreet/errors.hpp"
#include "module.hpp"

namespace discreet {
namespace {

template <class T>
using In = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The bin i with edges[i] <= value < edges[i + 1] (the last with its upper end) of every value, cut to the edges first.
// Edges are about evenly spaced: where a value is follows from one division, off by one at most; what is not between
// the edges of its bin then is searched for.
void places(const double* values, size_t rows, const double* edges, size_t bins, int32_t* out) {
  const double low = edges[0], high = edges[bins], scale = static_cast<double>(bins) / (high - low);
  const double last = static_cast<double>(bins - 1);
  for (size_t i = 0; i < rows; ++i) {
    const double value = std::min(std::max(values[i], low), high);
    const double about = (value - low) * scale;
    size_t bin = about < last ? static_cast<size_t>(about) : bins - 1;
    if (value < edges[bin] && bin > 0)
      --bin;
    else if (bin + 1 < bins && value >= edges[bin + 1])
      ++bin;
    if (!(edges[bin] <= value && (bin + 1 == bins || value < edges[bin + 1])))
      bin = static_cast<size_t>(std::upper_bound(edges + 1, edges + bins, value) - (edges + 1));
    out[i] = static_cast<int32_t>(bin);
  }
}

}  // namespace

void bind_bins(nb::module_& m) {
  m.def(
      "grid_places",
      [](In<const double> values, In<const double> edges, In<int32_t> out) {
        if (edges.size() < 2 || edges.size() > (size_t{1} << 30)) throw ParameterError("a grid has 1 to 2**30 bins");
        if (out.size() != values.size()) throw ParameterError("every value needs a place for its bin");
        nb::gil_scoped_release release;
        places(values.data(), values.size(), edges.data(), edges.size() - 1, out.data());
      },
      nb::arg("values"), nb::arg("edges"), nb::arg("out"),
      "Writes the bin of every value, none of which is NaN, between ascending edges.");
}

}  // namespace discreet
