// The bins of a public grid that values lie in.
#include <nanobind/ndarray.h>

#include <algorithm>

#include "discreet/errors.hpp"
#include "module.hpp"

namespace discreet {
namespace {

template <class T>
using In = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The bin i with edges[i] <= value < edges[i + 1] (the last with its upper end) of a value, cut to the edges first.
// Edges are about evenly spaced: where a value is follows from one division, off by one at most; what is not between
// the edges of its bin then is searched for.
class Bins {
 public:
  explicit Bins(const In<const double>& edges) : edges_(edges.data()), bins_(edges.size() - 1) {
    if (edges.size() < 2 || edges.size() > (size_t{1} << 30)) throw ParameterError("a grid has 1 to 2**30 bins");
    low_ = edges_[0];
    high_ = edges_[bins_];
    scale_ = static_cast<double>(bins_) / (high_ - low_);
    last_ = static_cast<double>(bins_ - 1);
  }
  size_t size() const { return bins_; }
  size_t of(double given) const {
    const double value = std::min(std::max(given, low_), high_);
    const double about = (value - low_) * scale_;
    size_t bin = about < last_ ? static_cast<size_t>(about) : bins_ - 1;
    if (value < edges_[bin] && bin > 0)
      --bin;
    else if (bin + 1 < bins_ && value >= edges_[bin + 1])
      ++bin;
    if (!(edges_[bin] <= value && (bin + 1 == bins_ || value < edges_[bin + 1])))
      bin = static_cast<size_t>(std::upper_bound(edges_ + 1, edges_ + bins_, value) - (edges_ + 1));
    return bin;
  }

 private:
  const double* edges_;
  size_t bins_;
  double low_, high_, scale_, last_;
};

}  // namespace

void bind_bins(nb::module_& m) {
  m.def(
      "grid_places",
      [](In<const double> values, In<const double> edges, In<int32_t> out) {
        const Bins bins(edges);
        if (out.size() != values.size()) throw ParameterError("every value needs a place for its bin");
        nb::gil_scoped_release release;
        for (size_t i = 0, rows = values.size(); i < rows; ++i) out.data()[i] = static_cast<int32_t>(bins.of(values.data()[i]));
      },
      nb::arg("values"), nb::arg("edges"), nb::arg("out"),
      "Writes the bin of every value, none of which is NaN, between ascending edges.");
  m.def(
      "count_in_grid",
      [](In<const double> values, In<const double> edges, In<int64_t> counts) {
        const Bins bins(edges);
        if (counts.size() != bins.size()) throw ParameterError("every bin needs a count");
        nb::gil_scoped_release release;
        for (size_t i = 0, rows = values.size(); i < rows; ++i) {
          const double value = values.data()[i];
          if (value == value) ++counts.data()[bins.of(value)];
        }
      },
      nb::arg("values"), nb::arg("edges"), nb::arg("counts"),
      "Adds the values to the counts of their bins; NaN is in none.");
}

}  // namespace discreet
