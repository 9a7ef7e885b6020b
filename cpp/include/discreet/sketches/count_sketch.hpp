// CountSketch: the median over the rows of sign times cell. Depth is odd.
//
// A row is off by at most the mass that collides, which by Markov's inequality exceeds a n p with probability at most
// 1/a; the median is off by more only if (depth+1)/2 rows are. Signs are pairwise independent and independent of the
// cells, so a row is unbiased with variance at most p F2.
#pragma once

#include "discreet/sketches/linear_sketch.hpp"

namespace discreet {

struct MedianOfRows {
  static constexpr bool kSigned = true;
  // Reorders the rows.
  static int64_t combine(int64_t* rows, size_t depth) {
    if (depth > 16) {
      std::nth_element(rows, rows + depth / 2, rows + depth);
    } else {
      for (size_t i = 1; i < depth; ++i) {
        const int64_t value = rows[i];
        size_t j = i;
        for (; j > 0 && rows[j - 1] > value; --j) rows[j] = rows[j - 1];
        rows[j] = value;
      }
    }
    return rows[depth / 2];
  }
};

template <class Key>
using CountSketch = LinearSketch<Key, MedianOfRows>;

}  // namespace discreet
