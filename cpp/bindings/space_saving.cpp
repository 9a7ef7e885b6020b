#include "discreet/space_saving.hpp"

#include "counters_state.hpp"

namespace discreet {
namespace {

struct SpaceSavingFamily {
  template <class Key>
  using Kernel = SpaceSaving<Key>;
  uint64_t capacity;
  HashKey seed;
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(capacity, seed);
  }
};
using Sketch = Summary<SpaceSavingFamily>;

nb::bytes to_bytes(const Sketch& self) {
  StateWriter out;
  KeyKind kind = KeyKind::none;
  self.with_lock([&](KeyKind held) {
    kind = held;
    out.u64(self.family.capacity);
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
  return sealed(out, StateFamily::space_saving, 2, kind);
}

// No two keys were seen at the same time.
template <class Record>
void check_last_seen(const std::vector<Record>& records) {
  std::vector<uint64_t> times;
  times.reserve(records.size());
  for (const Record& r : records) times.push_back(r.last);
  std::sort(times.begin(), times.end());
  if ((!times.empty() && times.front() == 0) || std::adjacent_find(times.begin(), times.end()) != times.end())
    throw CorruptStateError("state has impossible times of last occurrence");
}

std::unique_ptr<Sketch> from_bytes(const nb::bytes& data) {
  const OpenState state = open_state(view_of(data), StateFamily::space_saving, 2);
  StateReader in(state.payload);
  const uint64_t capacity = read_capacity(in);
  const uint64_t max_key_bytes = read_max_key_bytes(in);
  const HashKey seed(in.u64(), state.first_hash);
  auto sketch = std::make_unique<Sketch>(SpaceSavingFamily{capacity, seed}, max_key_bytes);
  sketch->merged = read_flag(in);
  if (state.kind != KeyKind::none) {
    sketch->start(state.kind);
    const uint64_t total = read_total(in);
    sketch->visit_kernel([&](auto& kernel, auto key) {
      const auto records = read_records<SeenCounter<decltype(key)>>(in, state.kind, max_key_bytes, seed, total);
      if (records.size() > capacity) throw CorruptStateError("state has more counters than its capacity");
      if (has_zero(records)) throw CorruptStateError("state has a counter that counts nothing");
      check_last_seen(records);
      // Every event raises one counter by one. A merge keeps only the largest sums.
      const uint64_t sum = sum_of_counts(records);
      if (sketch->merged ? sum > total : sum != total)
        throw CorruptStateError("state has counts that do not add up to its total");
      kernel.assign(records, total);
    });
  }
  sketch->lineage = read_lineage(in, state);
  in.finish();
  return sketch;
}

}  // namespace

void bind_space_saving(nb::module_& m) {
  nb::class_<Sketch> bound(m, "SpaceSaving");
  bound
      .def("__init__",
           [](Sketch* self, uint64_t capacity, uint64_t max_key_bytes, uint64_t seed) {
             new (self) Sketch(SpaceSavingFamily{capacity, HashKey(seed)}, max_key_bytes);
           },
           nb::arg("capacity"), nb::arg("max_key_bytes"), nb::arg("seed"))
      .def("update", &update_items<Sketch>, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("merge",
           [](Sketch& self, const Sketch& other) {
             require_equal("capacities", self.family.capacity, other.family.capacity);
             self.merge(other);
           })
      .def("to_bytes", &to_bytes)
      .def_static("from_bytes", &from_bytes, nb::arg("data"))
      .def_prop_ro("untracked_bound",
                   [](const Sketch& s) { return s.read([](auto& k) { return k.untracked_bound(); }, uint64_t{0}); })
      .def_prop_ro("capacity", [](const Sketch& s) { return s.family.capacity; });
  bind_counter_sketch(bound);
}

}  // namespace discreet
