// The binding of a linear sketch: CountMin and CountSketch differ in their kernel, their names and one check.
#pragma once

#include <memory>
#include <vector>

#include "counters_state.hpp"
#include "discreet/sketches/linear_sketch.hpp"

namespace discreet {

// Words for the hash functions: SHAKE-256 of the seed. Needs the GIL.
inline std::shared_ptr<const RowHashes> hashes_of(uint64_t seed, uint64_t depth, bool first_version = false) {
  StateWriter in;
  in.bytes("discreet rows", 13);
  in.u64(seed);
  const std::string text = in.content();
  const size_t count = RowHashes::words(depth);
  const nb::object shake = nb::module_::import_("hashlib").attr("shake_256")(nb::bytes(text.data(), text.size()));
  const nb::bytes digest = nb::cast<nb::bytes>(shake.attr("digest")(count * 8));
  std::vector<uint64_t> words(count);
  std::memcpy(words.data(), digest.data(), count * 8);
  return std::make_shared<const RowHashes>(depth, words.data(), first_version);
}

template <class R>
struct LinearFamily {
  using Rule = R;
  template <class Key>
  using Kernel = LinearSketch<Key, Rule>;
  uint64_t width, depth, tracked;
  HashKey seed;
  std::shared_ptr<const RowHashes> hashes;

  LinearFamily(uint64_t width, uint64_t depth, uint64_t tracked, const HashKey& seed)
      : width(width), depth(depth), tracked(tracked), seed(seed), hashes(hashes_of(seed.seed, depth, seed.first_version)) {}
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(width, hashes, tracked);
  }
};

// Calls take(keys, hashes, digests, n) for the valid elements of a column, in order; pause() between slices. The values
// of a dictionary are hashed once each when there are fewer of them than rows.
template <class Key, class Kernel, class Take, class Pause>
void for_digests(const Kernel& kernel, const Column& column, Take&& take, Pause&& pause) {
  using Digest = typename Kernel::Digest;
  Digest digests[kBlock];
  const auto in_slices = [&](auto&& part) {
    for (int64_t begin = 0; begin < column.length; begin += kSlice) {
      part(begin, std::min(column.length, begin + kSlice));
      pause();
    }
  };
  if (!column.dictionary) {
    in_slices([&](int64_t begin, int64_t end) {
      for_blocks(column, begin, end, kernel.seed(), Key{}, [&](const Key* keys, const uint64_t* hashes, size_t n) {
        for (size_t i = 0; i < n; ++i) digests[i] = kernel.digest(keys[i]);
        take(keys, hashes, digests, n);
      });
    });
    return;
  }
  struct Known {
    uint64_t hash;
    Digest digest;
    bool set;
  };
  const Column& dictionary = *column.dictionary;
  std::vector<Known> known(dictionary.length <= column.length ? static_cast<size_t>(dictionary.length) : 0);
  Key keys[kBlock];
  uint64_t hashes[kBlock];
  in_slices([&](int64_t begin, int64_t end) {
    size_t n = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (!column.valid(i)) continue;
      const int64_t code = static_cast<int64_t>(integer_at(column, i));
      if (dictionary.kind == KeyKind::none || !dictionary.valid(code)) continue;
      keys[n] = key_at(dictionary, code, Key{});
      Known fresh{};
      Known& k = known.empty() ? fresh : known[static_cast<size_t>(code)];
      if (!k.set) k = {keys[n].hash(kernel.seed()), kernel.digest(keys[n]), true};
      hashes[n] = k.hash;
      digests[n] = k.digest;
      if (++n == kBlock) {
        take(keys, hashes, digests, n);
        n = 0;
      }
    }
    take(keys, hashes, digests, n);
  });
}

template <class Key, class Kernel>
void feed_linear(Kernel& kernel, const Column& column, InterruptCheck& interrupt) {
  const auto pause = [&] { interrupt(); };
  if (!column.dictionary || kernel.tracks() || column.dictionary->length > column.length)
    return for_digests<Key>(
        kernel, column,
        [&](const Key* keys, const uint64_t* hashes, const auto* digests, size_t n) {
          kernel.add(keys, hashes, digests, n);
        },
        pause);
  // Without candidates the order of events leaves no trace: count the codes, then add each once.
  const Column& dictionary = *column.dictionary;
  if (dictionary.kind == KeyKind::none) return;
  std::vector<uint64_t> counts(static_cast<size_t>(dictionary.length), 0);
  with_integers(column, [&](auto codes) {
    for (int64_t begin = 0; begin < column.length; begin += kSlice) {
      const int64_t end = std::min(column.length, begin + kSlice);
      for (int64_t i = begin; i < end; ++i)
        if (column.valid(i)) ++counts[static_cast<size_t>(codes[i])];
      pause();
    }
  });
  for (size_t code = 0; code < counts.size(); ++code)
    if (counts[code] && dictionary.valid(static_cast<int64_t>(code)))
      kernel.add_weighted(kernel.digest(key_at(dictionary, static_cast<int64_t>(code), Key{})), counts[code]);
}

// A binding of one linear sketch; `Cells` knows its family and what its state may hold.
template <class Rule, class Cells>
class LinearBinding {
 public:
  using S = Summary<LinearFamily<Rule>>;

  static void bind(nb::module_& m, const char* name) {
    nb::class_<S> bound(m, name);
    bound
        .def("__init__",
             [](S* self, uint64_t width, uint64_t depth, uint64_t tracked, uint64_t max_key_bytes, uint64_t seed) {
               new (self) S(LinearFamily<Rule>(width, depth, tracked, HashKey(seed)), max_key_bytes);
             },
             nb::arg("width"), nb::arg("depth"), nb::arg("tracked"), nb::arg("max_key_bytes"), nb::arg("seed"))
        .def("update", &update, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"))
        .def("merge", &merge)
        .def("estimate", &estimate, nb::arg("item").none())
        .def("estimates", &estimates, nb::arg("data"), "Estimates of many items, as the bytes of int64.")
        .def("places", &places, nb::arg("data"),
             "For every item and row the cell (row * width + column), with the top bit set where events count "
             "negatively; as the bytes of uint32.")
        .def("cells", &cells, "All cells, row by row, as the bytes of int64.")
        .def("to_bytes", &to_bytes)
        .def_static("from_bytes", &from_bytes, nb::arg("data"))
        .def_prop_ro("width", [](const S& s) { return s.family.width; })
        .def_prop_ro("depth", [](const S& s) { return s.family.depth; })
        .def_prop_ro("tracked", [](const S& s) { return s.family.tracked; });
    bind_summary(bound);
  }

 private:
  static void update(S& self, nb::handle data, bool skip_nulls, BadItems bad) {
    auto source = open_column(data, bad);
    self.update(
        *source, Column{}, skip_nulls, bad, validate_column, [](Column& c) -> Column& { return c; },
        [](auto& kernel, const Column& c, auto key, InterruptCheck& interrupt) {
          feed_linear<decltype(key)>(kernel, c, interrupt);
        });
    nb::gil_scoped_release release;
    source.reset();
  }

  static void merge(S& self, const S& other) {
    require_equal("widths", self.family.width, other.family.width);
    require_equal("depths", self.family.depth, other.family.depth);
    require_equal("numbers of tracked items", self.family.tracked, other.family.tracked);
    require_equal_seeds(self.family.seed, other.family.seed);
    self.merge(other);
  }

  static int64_t estimate(const S& self, nb::handle item) {
    int64_t out = 0;
    with_item(self, item, [&](auto key) {
      out = self.read(
          [&](const auto& kernel) -> int64_t {
            if constexpr (requires { kernel.digest(key); }) return kernel.estimate(kernel.digest(key));
            return 0;
          },
          int64_t{0});
    });
    return out;
  }

  // Reads a column to its end before it locks the summary, whose state is then the same for all items, and calls
  // take(kernel, digest) for each. A summary without keys calls none(length) instead.
  template <class Take, class None>
  static void for_items(const S& self, nb::handle data, Take&& take, None&& none) {
    auto source = open_column(data);
    nb::gil_scoped_release release;
    std::vector<Column> chunks;
    for (Column chunk; source->next(chunk); chunk = Column()) {
      validate(chunk, {self.max_key_bytes, false});
      chunks.push_back(std::move(chunk));
    }
    self.locked([&](KeyKind kind) {
      for (Column& chunk : chunks) {
        if (kind == KeyKind::none) {
          none(static_cast<size_t>(chunk.length));
          continue;
        }
        require_kind(kind, chunk);
        if (kind == KeyKind::mixed) chunk = as_mixed(chunk);
        self.visit_kernel([&](const auto& kernel, auto key) {
          using Key = decltype(key);
          for_digests<Key>(
              kernel, chunk,
              [&](const Key*, const uint64_t*, const auto* digests, size_t n) {
                for (size_t i = 0; i < n; ++i) take(kernel, digests[i]);
              },
              [] {});
        });
      }
    });
    chunks.clear();
    source.reset();
  }

  template <class T>
  static nb::bytes as_bytes(const std::vector<T>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }

  static nb::bytes estimates(const S& self, nb::handle data) {
    std::vector<int64_t> out;
    for_items(
        self, data, [&](const auto& kernel, auto digest) { out.push_back(kernel.estimate(digest)); },
        [&](size_t n) { out.resize(out.size() + n, 0); });
    return as_bytes(out);
  }

  static nb::bytes places(const S& self, nb::handle data) {
    std::vector<Place> out;
    for_items(
        self, data,
        [&](const auto& kernel, auto digest) {
          for (size_t row = 0; row < self.family.depth; ++row) out.push_back(kernel.place(row, digest));
        },
        [](size_t) { throw DataError("the summary has no keys yet, so it does not know their kind"); });
    return as_bytes(out);
  }

  static nb::bytes cells(const S& self) {
    std::vector<int64_t> out = self.read([](const auto& kernel) { return kernel.cells(); }, std::vector<int64_t>());
    if (out.empty()) out.resize(self.family.width * self.family.depth, 0);
    return as_bytes(out);
  }

  static nb::bytes to_bytes(const S& self) {
    StateWriter out;
    KeyKind kind = KeyKind::none;
    self.with_lock([&](KeyKind held) {
      kind = held;
      out.u64(self.family.width);
      out.u64(self.family.depth);
      out.u64(self.family.tracked);
      out.u64(self.max_key_bytes);
      out.seed(self.family.seed);
      out.u8(self.merged);
      self.read_locked(
          [&](const auto& kernel) {
            out.u64(kernel.total());
            out.bytes(reinterpret_cast<const char*>(kernel.cells().data()), kernel.cells().size() * 8);
            const auto candidates = kernel.arrivals();
            out.u64(candidates.size());
            for (const auto& c : candidates) {
              out.key(c.key, kind);
              out.u64(static_cast<uint64_t>(c.count));
            }
            return 0;
          },
          0);
      write_lineage(out, self);
    });
    return sealed(out, Cells::kFamily, 2, kind);
  }

  static std::unique_ptr<S> from_bytes(const nb::bytes& data) {
    const OpenState state = open_state(view_of(data), Cells::kFamily, 2);
    StateReader in(state.payload);
    const uint64_t width = in.u64();
    const uint64_t depth = in.u64();
    const uint64_t tracked = in.u64();
    if (width < 1 || width > kMaxWidth || depth < 1 || depth > kMaxDepth || width * depth > kMaxCells)
      throw CorruptStateError("state has a width or depth that is not allowed");
    if (Rule::kSigned && depth % 2 == 0) throw CorruptStateError("state has an even depth");
    if (tracked > GroupedTable<IntKey>::kMaxCapacity) throw CorruptStateError("state tracks more than 2**30 items");
    const uint64_t max_key_bytes = read_max_key_bytes(in);
    const HashKey seed(in.u64(), state.first_hash);
    auto sketch = std::make_unique<S>(LinearFamily<Rule>(width, depth, tracked, seed), max_key_bytes);
    sketch->merged = read_flag(in);
    if (state.kind != KeyKind::none) {
      const uint64_t total = in.u64();
      if (total > INT64_MAX) throw CorruptStateError("state has a total of 2**63 or more");
      const std::string_view raw = in.bytes(width * depth * 8);  // before the kernel takes as much memory
      std::vector<int64_t> cells(width * depth);
      std::memcpy(cells.data(), raw.data(), raw.size());
      for (uint64_t row = 0; row < depth; ++row) Cells::check_row(&cells[row * width], width, total);
      sketch->start(state.kind);
      sketch->visit_kernel([&](auto& kernel, auto key) {
        auto candidates = read_candidates<decltype(key)>(in, state.kind, tracked, max_key_bytes, kernel.seed(), total);
        kernel.assign(std::move(cells), total, std::move(candidates));
        Cells::check_candidates(kernel);
      });
    }
    sketch->lineage = read_lineage(in, state);
    in.finish();
    return sketch;
  }

  template <class Key>
  static std::vector<Candidate<Key>> read_candidates(StateReader& in, KeyKind kind, uint64_t tracked,
                                                     uint64_t max_key_bytes, const HashKey& table_seed,
                                                     uint64_t total) {
    const uint64_t n = in.records(12);
    if (n > tracked) throw CorruptStateError("state has more tracked items than it may");
    std::vector<Candidate<Key>> candidates(n);
    for (Candidate<Key>& c : candidates) {
      in.key(c.key, kind);
      check_restored(kind, c.key, max_key_bytes);
      c.hash = c.key.hash(table_seed);
      c.count = static_cast<int64_t>(in.u64());
      if (c.count > static_cast<int64_t>(total) || c.count < -static_cast<int64_t>(total))
        throw CorruptStateError("state has an estimate larger than its total");
    }
    for (size_t i = 1; i < n; ++i)
      if (!by_key(candidates[i - 1], candidates[i])) throw CorruptStateError("state has tracked items out of order");
    return candidates;
  }
};

}  // namespace discreet
