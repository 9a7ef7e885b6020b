#include "discreet/noise/normal.hpp"

#include <nanobind/ndarray.h>

#include <memory>

#include "module.hpp"

namespace discreet {
namespace {

using Given = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Values = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

void bind(nb::module_& m, const char* name, double (*function)(double), const char* doc) {
  m.def(
      name,
      [function](Given x) {
        auto owned = std::make_unique_for_overwrite<double[]>(x.size());
        for (size_t i = 0; i < x.size(); ++i) owned[i] = function(x.data()[i]);
        double* data = owned.release();
        nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<double*>(memory); });
        return Values(data, {x.size()}, owner);
      },
      nb::arg("x"), doc);
}

}  // namespace

void bind_normal(nb::module_& m) {
  bind(m, "erfcx", erfcx, "exp(x^2) erfc(x).");
  bind(m, "ndtr", ndtr, "P[N <= x] of a standard normal N.");
  bind(m, "log_ndtr", log_ndtr, "The logarithm of P[N <= x].");
}

}  // namespace discreet
