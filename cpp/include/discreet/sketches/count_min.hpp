// CountMin: the smallest of an item's cells. It never underestimates.
//
// A cell holds f plus what collides: in expectation at most n p, p the largest probability of a cell, by pairwise
// independence. By Markov's inequality a row exceeds f by more than a n p with probability at most 1/a, all rows do with
// probability at most a^-depth. a = e gives the textbook bound.
#pragma once

#include "discreet/sketches/linear_sketch.hpp"

namespace discreet {

struct SmallestOfRows {
  static constexpr bool kSigned = false;
  static int64_t combine(int64_t* rows, size_t depth) {
    int64_t smallest = rows[0];
    for (size_t i = 1; i < depth; ++i) smallest = std::min(smallest, rows[i]);
    return smallest;
  }
};

template <class Key>
using CountMin = LinearSketch<Key, SmallestOfRows>;

}  // namespace discreet
