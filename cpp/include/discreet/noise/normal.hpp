// The normal distribution where calibration needs it: a few roundings off, also far out in the tails.
#pragma once

#include <cmath>

namespace discreet {

// exp(x^2) erfc(x).
inline double erfcx(double x) {
  constexpr double kFar = 20.0;
  if (x >= kFar) {
    // The asymptotic series, 1/(x sqrt(pi)) sum_n (-1)^n (2n-1)!!/(2x^2)^n: the eighth term is below 1e-15 from here on.
    const double step = -0.5 / (x * x);
    double term = 1.0, sum = 1.0;
    for (int n = 1; n <= 8; ++n) sum += term *= step * (2 * n - 1);
    return sum / (x * 1.7724538509055160273);
  }
  const double square = x * x;
  const double rest = std::fma(x, x, -square);  // x^2 = square + rest exactly: the exponential loses nothing
  return std::exp(square) * (1.0 + rest) * std::erfc(x);
}

// P[N <= x], and its logarithm.
inline double ndtr(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }
inline double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  return x < -1.0 ? std::log(erfcx(-t) / 2.0) - t * t : std::log1p(-std::erfc(t) / 2.0);
}

}  // namespace discreet
