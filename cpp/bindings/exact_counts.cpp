#include "discreet/counters/exact_counts.hpp"

#include "counters_state.hpp"

namespace discreet {
namespace {

struct ExactCountsFamily {
  template <class Key>
  using Kernel = ExactCounts<Key>;
  HashKey seed;
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(seed);
  }

  static constexpr StateFamily kState = StateFamily::exact_counts;
  void write_shape(StateWriter&) const {}
  static ExactCountsFamily read_shape(StateReader&) { return {HashKey(0)}; }
  template <class Key>
  static void write_kernel(StateWriter& out, KeyKind kind, const Kernel<Key>& kernel) {
    out.u64(kernel.total());
    write_records(out, kind, kernel.counters());
  }
  template <class Key>
  void read_kernel(StateReader& in, const KernelFacts& facts, Kernel<Key>& kernel) const {
    const uint64_t total = read_total(in);
    const auto records = read_counters<Counter<Key>>(in, facts, total);
    if (has_zero(records)) throw CorruptStateError("state has a counter that counts nothing");
    if (sum_of_counts(records) != total) throw CorruptStateError("state has counts that do not add up to its total");
    kernel.reserve(records.size());
    for (const auto& r : records) kernel.add(r.key, r.hash, r.count);
  }
};
using Sketch = Summary<ExactCountsFamily>;

}  // namespace

void bind_exact_counts(nb::module_& m) {
  nb::class_<Sketch> bound(m, "ExactCounts");
  bound
      .def("__init__",
           [](Sketch* self, uint64_t max_key_bytes, uint64_t seed) {
             new (self) Sketch(ExactCountsFamily{HashKey(seed)}, max_key_bytes);
           },
           nb::arg("max_key_bytes"), nb::arg("seed"))
      .def("update", &update_items<Sketch>, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("merge", [](Sketch& self, const Sketch& other) { self.merge(other); });
  bind_counter_sketch(bound);
}

}  // namespace discreet
