#include "discreet/counters/misra_gries.hpp"

#include <nanobind/ndarray.h>

#include "misra_gries_state.hpp"

namespace discreet {
namespace {

struct MisraGriesFamily {
  template <class Key>
  using Kernel = MisraGries<Key>;
  uint64_t capacity;
  HashKey seed;
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(capacity, seed);
  }

  static constexpr StateFamily kState = StateFamily::misra_gries;
  void write_shape(StateWriter& out) const { out.u64(capacity); }
  static MisraGriesFamily read_shape(StateReader& in) { return {read_capacity(in), HashKey(0)}; }
  template <class Key>
  static void write_kernel(StateWriter& out, KeyKind kind, const Kernel<Key>& kernel) {
    discreet::write_kernel(out, kind, kernel);
  }
  template <class Key>
  void read_kernel(StateReader& in, const KernelFacts& facts, Kernel<Key>& kernel) const {
    discreet::read_kernel(in, facts, kernel);
  }
};
using Sketch = Summary<MisraGriesFamily>;

using Weights = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// weights[i] events in a row of the i-th item, which is not null.
void update_counts(Sketch& self, nb::handle data, Weights weights) {
  auto source = open_column(data);
  const int64_t* values = weights.data();
  const size_t size = weights.size();
  uint64_t sum = 0;
  for (size_t i = 0; i < size; ++i) {
    if (values[i] < 0) throw DataError("an item cannot occur a negative number of times");
    sum += static_cast<uint64_t>(values[i]);  // both are below 2**63, so this does not wrap
    if (sum >> 63) throw DataError("the numbers of occurrences must stay below 2**63 together");
  }
  size_t checked = 0, fed = 0;
  self.update(
      *source, Column{}, false, BadItems::error,
      [&](Column& column, const Checks& checks, InterruptCheck& interrupt) {
        checked += static_cast<size_t>(column.length);
        if (checked > size) throw DataError("there are more items than numbers of occurrences");
        if (column.dictionary) throw DataError("items with numbers of occurrences must not be a dictionary");
        validate_column(column, checks, interrupt);
        self.read_locked(
            [&](const auto& kernel) {
              if ((kernel.total() + sum) >> 63) throw DataError("a summary counts fewer than 2**63 events");
              return 0;
            },
            0);
        sum = 0;  // all of it is allowed for from the first chunk on
      },
      [](Column& c) -> Column& { return c; },
      [&](auto& kernel, const Column& column, auto key, InterruptCheck& interrupt) {
        for (int64_t begin = 0; begin < column.length; begin += kSlice) {
          const int64_t end = std::min(column.length, begin + kSlice);
          for_blocks(column, begin, end, kernel.seed(), key, [&](const auto* keys, const uint64_t* hashes, size_t n) {
            for (size_t i = 0; i < n; ++i)
              if (const int64_t weight = values[fed++]; weight > 0)
                kernel.add(keys[i], hashes[i], static_cast<uint64_t>(weight));
          });
          interrupt();
        }
      });
  nb::gil_scoped_release release;
  source.reset();
}

}  // namespace

void bind_misra_gries(nb::module_& m) {
  nb::class_<Sketch> bound(m, "MisraGries");
  bound
      .def("__init__",
           [](Sketch* self, uint64_t capacity, uint64_t max_key_bytes, uint64_t seed) {
             new (self) Sketch(MisraGriesFamily{capacity, HashKey(seed)}, max_key_bytes);
           },
           nb::arg("capacity"), nb::arg("max_key_bytes"), nb::arg("seed"))
      .def("update", &update_items<Sketch>, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("checked", &checked_batch<Sketch>, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("hash_made", &hash_made<Sketch>, nb::arg("made"))
      .def("update_counts", &update_counts, nb::arg("data"), nb::arg("weights"))
      .def("merge",
           [](Sketch& self, const Sketch& other) {
             require_equal("capacities", self.family.capacity, other.family.capacity);
             self.merge(other);
           })
      .def_prop_ro("decrements",
                   [](const Sketch& s) { return s.read([](auto& k) { return k.decrements(); }, uint64_t{0}); });
  bound.def("copy", &Sketch::copy, "An independent summary with the same state.");
  bind_counter_sketch(bound);
}

}  // namespace discreet
