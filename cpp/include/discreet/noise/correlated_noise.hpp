// Correlated noise on a lattice: the recurrences of a Toeplitz factorisation in exact integers.
//
// Of independent integers z the noise is N = sum of w with w_t = z_t - round(sum_{j >= 1} c_j w_{t-j}). Every step is
// integer arithmetic with a rounding of at most one half, which is all that the privacy argument uses
// (docs/privacy/correlated-noise.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace discreet {

using Wide = __int128;

// value / 2^bits, to the nearest integer, halves up.
inline std::int64_t rounded_shift(Wide value, int bits) {
  return static_cast<std::int64_t>((value + (Wide{1} << (bits - 1))) >> bits);
}

// The fixed-point numbers of c_j = sum_i omega_i theta_i^(j-1), j >= 1, c_0 = 1.
struct BufferedToeplitz {
  const std::int64_t* theta;
  const std::int64_t* omega;
  std::size_t buffers;
  int coefficient_bits;  // theta and omega are multiples of 2^-coefficient_bits
  int fraction_bits;     // the buffers hold multiples of 2^-fraction_bits
};

// Runs `steps` steps of `count` independent noises. `state` holds buffers x count, `noise` count, z steps x count.
inline void advance(const BufferedToeplitz& c, std::int64_t* state, std::int64_t* noise, const std::int64_t* z,
                    std::size_t steps, std::size_t count) {
  const int bits = c.coefficient_bits + c.fraction_bits;
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t item = 0; item < count; ++item) {
      Wide sum = 0;
      for (std::size_t i = 0; i < c.buffers; ++i) sum += static_cast<Wide>(c.omega[i]) * state[i * count + item];
      const std::int64_t w = z[step * count + item] - rounded_shift(sum, bits);
      noise[item] += w;
      for (std::size_t i = 0; i < c.buffers; ++i) {
        std::int64_t& s = state[i * count + item];
        s = rounded_shift(static_cast<Wide>(c.theta[i]) * s, c.coefficient_bits) + w * (std::int64_t{1} << c.fraction_bits);
      }
    }
  }
}

// round(sum_{j=1}^{used} c_j w_{t-j}) for one noise whose w_1, ..., w_used are in `past`; coefficients start at c_1.
inline std::int64_t toeplitz_sum(const std::int64_t* past, std::size_t used, const std::int64_t* coefficients,
                                 int coefficient_bits) {
  Wide sum = 0;
  for (std::size_t j = 0; j < used; ++j) sum += static_cast<Wide>(coefficients[j]) * past[used - 1 - j];
  return rounded_shift(sum, coefficient_bits);
}

}  // namespace discreet
