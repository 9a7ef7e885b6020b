#include "discreet/counters/space_saving.hpp"

#include "counters_state.hpp"

namespace discreet {
namespace {

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

struct SpaceSavingFamily {
  template <class Key>
  using Kernel = SpaceSaving<Key>;
  uint64_t capacity;
  HashKey seed;
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(capacity, seed);
  }

  static constexpr StateFamily kState = StateFamily::space_saving;
  void write_shape(StateWriter& out) const { out.u64(capacity); }
  static SpaceSavingFamily read_shape(StateReader& in) { return {read_capacity(in), HashKey(0)}; }
  template <class Key>
  static void write_kernel(StateWriter& out, KeyKind kind, const Kernel<Key>& kernel) {
    out.u64(kernel.total());
    write_records(out, kind, kernel.counters());
  }
  template <class Key>
  void read_kernel(StateReader& in, const KernelFacts& facts, Kernel<Key>& kernel) const {
    const uint64_t total = read_total(in);
    const auto records = read_counters<SeenCounter<Key>>(in, facts, total);
    if (has_zero(records)) throw CorruptStateError("state has a counter that counts nothing");
    check_last_seen(records);
    // Every event raises one counter by one. A merge keeps only the largest sums.
    const uint64_t sum = sum_of_counts(records);
    if (facts.merged ? sum > total : sum != total)
      throw CorruptStateError("state has counts that do not add up to its total");
    kernel.assign(records, total);
  }
};
using Sketch = Summary<SpaceSavingFamily>;

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
      .def_prop_ro("untracked_bound",
                   [](const Sketch& s) { return s.read([](auto& k) { return k.untracked_bound(); }, uint64_t{0}); });
  bound.def("copy", &Sketch::copy, "An independent summary with the same state.");
  bind_counter_sketch(bound);
}

}  // namespace discreet
