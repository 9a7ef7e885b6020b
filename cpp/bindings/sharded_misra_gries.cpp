#include "discreet/counters/sharded_misra_gries.hpp"

#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "misra_gries_state.hpp"

namespace discreet {
namespace {

struct ShardedFamily {
  template <class Key>
  using Kernel = ShardedMisraGries<Key>;
  uint64_t capacity;  // of every shard
  uint32_t shards;
  HashKey seed;
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(capacity, shards, seed);
  }

  static constexpr StateFamily kState = StateFamily::sharded_misra_gries;
  void write_shape(StateWriter& out) const { out.u64(capacity); }
  static ShardedFamily read_shape(StateReader& in) { return {read_capacity(in), 0, HashKey(0)}; }
  void write_more(StateWriter& out) const { out.u32(shards); }
  void read_more(StateReader& in) {
    shards = in.u32();
    if (shards < 1 || shards > kMaxShards) throw CorruptStateError("state has a number of shards outside 1 to 128");
  }
  template <class Key>
  static void write_kernel(StateWriter& out, KeyKind kind, const Kernel<Key>& kernel) {
    for (const auto& shard : kernel.shards()) discreet::write_kernel(out, kind, shard);
  }
  template <class Key>
  void read_kernel(StateReader& in, const KernelFacts& facts, Kernel<Key>& kernel) const {
    uint64_t total = 0;
    for (uint32_t s = 0; s < shards; ++s) {
      auto& shard = kernel.shards()[s];
      // An item in two shards would count for both: the privacy of a release rests on there being none.
      for (const auto& counter : discreet::read_kernel(in, facts, shard))
        if (shard_of(counter.hash, shards) != s) throw CorruptStateError("state has a key in a shard of others");
      total += shard.total();
      if (total >> 63) throw CorruptStateError("state has a total of 2**63 or more");
    }
  }
};
using Sketch = Summary<ShardedFamily>;

constexpr int64_t kFewRows = 1 << 14;  // less work than starting threads for it

// Chunks of one column after the other, from a Python iterator over columns.
class BatchSource : public ColumnSource {
 public:
  BatchSource(nb::handle batches, BadItems bad) : iterator_(nb::steal(PyObject_GetIter(batches.ptr()))), bad_(bad) {
    if (!iterator_.is_valid()) nb::raise_python_error();
  }
  ~BatchSource() override {
    column_.reset();
    nb::gil_scoped_acquire gil;
    iterator_.reset();
  }
  bool next(Column& column) override {
    while (!column_ || !column_->next(column)) {
      column_.reset();
      nb::gil_scoped_acquire gil;
      const nb::object batch = nb::steal(PyIter_Next(iterator_.ptr()));
      if (!batch.is_valid()) {
        if (PyErr_Occurred()) nb::raise_python_error();
        return false;
      }
      column_ = open_column(batch, bad_);
    }
    return true;
  }

 private:
  nb::object iterator_;
  BadItems bad_;
  std::unique_ptr<ColumnSource> column_;
};

// The threads, once the kind of keys is known.
class Threads {
 public:
  template <class Key>
  ShardThreads<Key>& of(ShardedMisraGries<Key>& kernel, const Checks& checks) {
    auto& threads = std::get<std::unique_ptr<ShardThreads<Key>>>(threads_);
    if (!threads) threads = std::make_unique<ShardThreads<Key>>(kernel, checks);
    return *threads;
  }
  // Waits for them, and sends them home.
  template <class Wait>
  void dismiss(Wait&& wait) {
    finish(wait);
    std::apply([&](auto&... threads) { (threads.reset(), ...); }, threads_);
  }
  template <class Wait>
  void finish(Wait&& wait) {
    std::apply([&](auto&... threads) { ((threads ? threads->finish(wait) : void()), ...); }, threads_);
  }

 private:
  std::tuple<std::unique_ptr<ShardThreads<IntKey>>, std::unique_ptr<ShardThreads<StrKey>>> threads_;
};

template <class Key>
void count_here(ShardedMisraGries<Key>& kernel, const ShardedChunk& chunk) {
  std::vector<Lane<Key>> lanes(kernel.shards().size());
  split(chunk, 0, chunk.column.length, kernel.seed(), lanes);
  for (size_t s = 0; s < lanes.size(); ++s) add_lane(kernel.shards()[s], lanes[s], chunk.column, 0);
}

// Whether a dictionary column is counted by its codes: its values are strings, and not more of them than rows.
bool by_codes(const Column& column) {
  return column.dictionary && !is_integer(column.key_kind()) && column.key_kind() != KeyKind::none &&
         column.dictionary->length <= column.length;
}

// Reads chunk after chunk while the threads count the ones before.
void fill(Sketch& self, ColumnSource& source, bool skip_nulls, BadItems bad) {
  self.change([&](Sketch::Change& made) {
    InterruptCheck interrupt;
    const Checks checks{self.max_key_bytes, skip_nulls, bad};
    Threads threads;  // gone before anything is undone
    Column chunk, following;
    bool more = source.next(chunk);
    const bool alone = more && !source.next(following);
    for (bool first = true; more; first = false) {
      // One small chunk is checked completely before it changes anything. More than that needs a copy to go back to, and
      // then the threads check the rows that they split.
      const bool small = alone && chunk.length <= kSlice;
      const KeyKind given = chunk.key_kind();
      const bool mixed = made.kind() != KeyKind::none && given != made.kind();  // then combined_kind() reads the rows
      const bool codes = by_codes(chunk) && chunk.length > kFewRows;
      const bool known = chunk.passed == checks;
      const bool by_threads =
          known || !chunk.dictionary || (codes && !chunk.dictionary->validity &&
                                         all_values_fit(*chunk.dictionary, chunk.length, checks));
      const bool check_here = known || small || !by_threads || given == KeyKind::none || mixed;
      if (check_here) validate_column(chunk, checks, interrupt);
      const bool empty = !any_valid(chunk);
      const KeyKind kind = empty ? made.kind() : combined_kind(made.kind(), chunk);
      if (!small && !made.has_copy()) {
        made.keep_copy();
        interrupt.enable();
      }
      if (!empty) {
        if (is_integer(made.kind()) && kind == KeyKind::mixed) threads.dismiss(interrupt);  // their kernel goes
        self.start(kind);
        if (kind == KeyKind::mixed) chunk = as_mixed(chunk);
        self.visit_kernel([&](auto& kernel, auto) {
          ShardedChunk ready;
          ready.column = chunk;
          ready.checked = check_here;
          if (codes) ready.use_codes(kernel.seed(), self.family.shards);
          if (small && chunk.length <= kFewRows) {
            count_here(kernel, ready);
          } else {
            threads.of(kernel, checks).push(std::move(ready), interrupt);
          }
        });
      }
      interrupt();
      chunk = std::exchange(following, Column());
      more = first ? !alone : source.next(chunk);
    }
    threads.finish(interrupt);
  });
}

void update(Sketch& self, nb::handle data, bool skip_nulls, BadItems bad) {
  auto source = open_column(data, bad);
  fill(self, *source, skip_nulls, bad);
  nb::gil_scoped_release release;
  source.reset();
}

void update_batches(Sketch& self, nb::handle batches, bool skip_nulls, BadItems bad) {
  auto source = std::make_unique<BatchSource>(batches, bad);
  fill(self, *source, skip_nulls, bad);
  nb::gil_scoped_release release;
  source.reset();
}

// A number of every shard; nothing before the first key.
template <class F>
std::vector<uint64_t> of_shards(const Sketch& self, F&& number) {
  return self.read(
      [&](const auto& kernel) {
        std::vector<uint64_t> out;
        for (const auto& shard : kernel.shards()) out.push_back(number(shard));
        return out;
      },
      std::vector<uint64_t>(self.family.shards, 0));
}

}  // namespace

void bind_sharded_misra_gries(nb::module_& m) {
  nb::class_<Sketch> bound(m, "ShardedMisraGries");
  bound
      .def("__init__",
           [](Sketch* self, uint64_t capacity, uint32_t shards, uint64_t max_key_bytes, uint64_t seed) {
             new (self) Sketch(ShardedFamily{capacity, shards, HashKey(seed)}, max_key_bytes);
           },
           nb::arg("capacity"), nb::arg("shards"), nb::arg("max_key_bytes"), nb::arg("seed"))
      .def("update", &update, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("checked", &checked_batch<Sketch>, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("hash_made", &hash_made<Sketch>, nb::arg("made"))
      .def("update_batches", &update_batches, nb::arg("batches"), nb::arg("skip_nulls"), nb::arg("bad_items"))
      .def("merge",
           [](Sketch& self, const Sketch& other) {
             require_equal("capacities", self.family.capacity, other.family.capacity);
             require_equal("numbers of shards", self.family.shards, other.family.shards);
             require_equal_seeds(self.family.seed, other.family.seed);
             self.merge(other);
           })
      .def("shard_of",
           [](const Sketch& s, nb::handle item) {
             const Column column = column_of_item(item);
             const uint64_t hash = is_integer(column.kind) ? key_at(column, 0, IntKey{}).hash(s.family.seed)
                                                           : key_at(column, 0, StrKey{}).hash(s.family.seed);
             return shard_of(hash, s.family.shards);
           },
           nb::arg("item").none())
      .def_prop_ro("decrements", [](const Sketch& s) { return of_shards(s, [](auto& k) { return k.decrements(); }); })
      .def_prop_ro("sizes", [](const Sketch& s) { return of_shards(s, [](auto& k) { return k.size(); }); })
      .def_prop_ro("totals", [](const Sketch& s) { return of_shards(s, [](auto& k) { return k.total(); }); })
      .def_prop_ro("shards", [](const Sketch& s) { return s.family.shards; });
  bind_counter_sketch(bound);
}

}  // namespace discreet
