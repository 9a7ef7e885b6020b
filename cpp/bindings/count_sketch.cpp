#include "discreet/sketches/count_sketch.hpp"

#include "linear_summary.hpp"

namespace discreet {
namespace {

struct CountSketchState {
  static constexpr StateFamily kFamily = StateFamily::count_sketch;
  // Events of both signs may cancel, in pairs.
  static void check_row(const int64_t* cells, uint64_t width, uint64_t total) {
    uint64_t rest = total;
    for (uint64_t i = 0; i < width; ++i) {
      const uint64_t size = cells[i] < 0 ? 0 - static_cast<uint64_t>(cells[i]) : static_cast<uint64_t>(cells[i]);
      if (size > rest) throw CorruptStateError("state has a row that holds more than its total");
      rest -= size;
    }
    if (rest % 2 != 0) throw CorruptStateError("state has a row that cannot come from its total");
  }
  template <class Kernel>
  static void check_candidates(const Kernel&) {}
};

}  // namespace

void bind_count_sketch(nb::module_& m) { LinearBinding<MedianOfRows, CountSketchState>::bind(m, "CountSketch"); }

}  // namespace discreet
