#include "discreet/sketches/count_min.hpp"

#include "linear_summary.hpp"

namespace discreet {
namespace {

struct CountMinState {
  static constexpr StateFamily kFamily = StateFamily::count_min;
  static void check_row(const int64_t* cells, uint64_t width, uint64_t total) {
    uint64_t rest = total;
    for (uint64_t i = 0; i < width; ++i) {
      if (cells[i] < 0 || static_cast<uint64_t>(cells[i]) > rest)
        throw CorruptStateError("state has a row that does not add up to its total");
      rest -= static_cast<uint64_t>(cells[i]);
    }
    if (rest != 0) throw CorruptStateError("state has a row that does not add up to its total");
  }
  // Estimates only grow, so none can be larger than it is now.
  template <class Kernel>
  static void check_candidates(const Kernel& kernel) {
    const auto now = kernel.counters();
    const auto then = kernel.arrivals();
    for (size_t i = 0; i < now.size(); ++i)
      if (then[i].count < 1 || then[i].count > now[i].count)
        throw CorruptStateError("state tracks an item with an estimate it never had");
  }
};

}  // namespace

void bind_count_min(nb::module_& m) { LinearBinding<SmallestOfRows, CountMinState>::bind(m, "CountMin"); }

}  // namespace discreet
