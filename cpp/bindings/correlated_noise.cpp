#include "discreet/noise/correlated_noise.hpp"

#include <nanobind/ndarray.h>

#include "discreet/errors.hpp"
#include "module.hpp"

namespace discreet {
namespace {

template <int dimensions>
using In = nb::ndarray<const std::int64_t, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
template <int dimensions>
using InOut = nb::ndarray<std::int64_t, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

void check_bits(int bits) {
  if (bits < 1 || bits > 62) throw ParameterError("bits must be from 1 to 62");
}

void buffered_noise(InOut<2> state, InOut<1> noise, In<2> z, In<1> theta, In<1> omega, int coefficient_bits,
                    int fraction_bits) {
  const std::size_t buffers = state.shape(0), count = state.shape(1);
  if (noise.shape(0) != count || z.shape(1) != count || theta.shape(0) != buffers || omega.shape(0) != buffers)
    throw ParameterError("the shapes of the arrays do not fit together");
  check_bits(coefficient_bits);
  check_bits(fraction_bits);
  const BufferedToeplitz c{theta.data(), omega.data(), buffers, coefficient_bits, fraction_bits};
  std::int64_t *to_state = state.data(), *to_noise = noise.data();
  const std::int64_t* from = z.data();
  const std::size_t steps = z.shape(0);
  nb::gil_scoped_release release;
  advance(c, to_state, to_noise, from, steps, count);
}

void toeplitz_sums(In<2> past, std::size_t used, In<1> coefficients, int coefficient_bits, InOut<1> out) {
  if (used > past.shape(1) || used > coefficients.shape(0) || out.shape(0) != past.shape(0))
    throw ParameterError("the shapes of the arrays do not fit together");
  check_bits(coefficient_bits);
  const std::size_t rows = past.shape(0), stride = past.shape(1);
  const std::int64_t *from = past.data(), *c = coefficients.data();
  std::int64_t* to = out.data();
  nb::gil_scoped_release release;
  for (std::size_t row = 0; row < rows; ++row) to[row] = toeplitz_sum(from + row * stride, used, c, coefficient_bits);
}

}  // namespace

void bind_correlated_noise(nb::module_& m) {
  m.def("buffered_noise", &buffered_noise, nb::arg("state"), nb::arg("noise"), nb::arg("z"), nb::arg("theta"),
        nb::arg("omega"), nb::arg("coefficient_bits"), nb::arg("fraction_bits"),
        "Advance state and noise, in place, by as many steps as z has rows.");
  m.def("toeplitz_sums", &toeplitz_sums, nb::arg("past"), nb::arg("used"), nb::arg("coefficients"),
        nb::arg("coefficient_bits"), nb::arg("out"), "For each row the rounded sum of c_j times its latest values.");
}

}  // namespace discreet
