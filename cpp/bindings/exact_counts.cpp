#include "discreet/exact_counts.hpp"

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
};
using Sketch = Summary<ExactCountsFamily>;

nb::bytes to_bytes(const Sketch& self) {
  StateWriter out;
  KeyKind kind = KeyKind::none;
  self.with_lock([&](KeyKind held) {
    kind = held;
    out.u64(self.max_key_bytes);
    out.seed(self.family.seed);
    out.u8(self.merged);
    self.read_locked(
        [&](const auto& kernel) {
          out.u64(kernel.total());
          write_records(out, kind, kernel.counters());
          return 0;
        },
        0);
    write_lineage(out, self);
  });
  return sealed(out, StateFamily::exact_counts, 2, kind);
}

std::unique_ptr<Sketch> from_bytes(const nb::bytes& data) {
  const OpenState state = open_state(view_of(data), StateFamily::exact_counts, 2);
  StateReader in(state.payload);
  const uint64_t max_key_bytes = read_max_key_bytes(in);
  const HashKey seed(in.u64(), state.first_hash);
  auto sketch = std::make_unique<Sketch>(ExactCountsFamily{seed}, max_key_bytes);
  sketch->merged = read_flag(in);
  if (state.kind != KeyKind::none) {
    sketch->start(state.kind);
    const uint64_t total = read_total(in);
    sketch->visit_kernel([&](auto& kernel, auto key) {
      const auto records = read_records<Counter<decltype(key)>>(in, state.kind, max_key_bytes, seed, total);
      if (has_zero(records)) throw CorruptStateError("state has a counter that counts nothing");
      if (sum_of_counts(records) != total) throw CorruptStateError("state has counts that do not add up to its total");
      kernel.reserve(records.size());
      for (const auto& r : records) kernel.add(r.key, r.hash, r.count);
    });
  }
  sketch->lineage = read_lineage(in, state);
  in.finish();
  return sketch;
}

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
      .def("merge", [](Sketch& self, const Sketch& other) { self.merge(other); })
      .def("to_bytes", &to_bytes)
      .def_static("from_bytes", &from_bytes, nb::arg("data"));
  bind_counter_sketch(bound);
}

}  // namespace discreet
