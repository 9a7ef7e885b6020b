// The states of counter sketches: one way to write and read them, and what each of them says of itself.
//
// A state is: what the family has beside the seed (`write_shape`), the longest key, the seed, whether it was merged, for
// shards how many (`write_more`), the kernel (`write_kernel`, nothing before the first key), and the lineage.
#pragma once

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "discreet/counters/misra_gries.hpp"
#include "summary.hpp"

namespace discreet {

inline constexpr uint64_t kMaxKeyBytes = 1u << 30;

// Reads `capacity` and `max_key_bytes`, which every counter sketch starts with.
inline uint64_t read_capacity(StateReader& in) {
  const uint64_t capacity = in.u64();
  if (capacity < 1 || capacity > GroupedTable<IntKey>::kMaxCapacity)
    throw CorruptStateError("state has a capacity outside 1 to 2**30");
  return capacity;
}
inline uint64_t read_max_key_bytes(StateReader& in) {
  const uint64_t most = in.u64();
  if (most < 1 || most > kMaxKeyBytes) throw CorruptStateError("state has max_key_bytes outside 1 to 2**30");
  return most;
}
// Totals stay below 2**63, so that counts fit int64 and no sum of two of them overflows.
inline uint64_t read_total(StateReader& in) {
  const uint64_t total = in.u64();
  if (total >> 63) throw CorruptStateError("state has a total of 2**63 or more");
  return total;
}
inline bool read_flag(StateReader& in) {
  const uint8_t flag = in.u8();
  if (flag > 1) throw CorruptStateError("state has a flag that is neither 0 nor 1");
  return flag == 1;
}

// The records of one kernel: key, count, and for SpaceSaving when it was last seen.
template <class Record>
void write_records(StateWriter& out, KeyKind kind, const std::vector<Record>& records) {
  out.u64(records.size());
  for (const Record& r : records) {
    out.key(r.key, kind);
    out.u64(r.count);
    if constexpr (requires { r.last; }) out.u64(r.last);
  }
}

// Keys must be distinct, and no count larger than `total`. Views point into the state's bytes.
template <class Record>
std::vector<Record> read_records(StateReader& in, KeyKind kind, uint64_t max_key_bytes, const HashKey& seed,
                                 uint64_t total) {
  const uint64_t n = in.records(12);
  std::vector<Record> records(n);
  for (Record& r : records) {
    in.key(r.key, kind);
    check_restored(kind, r.key, max_key_bytes);
    r.hash = r.key.hash(seed);
    r.count = in.u64();
    if (r.count > total) throw CorruptStateError("state has a count larger than its total");
    if constexpr (requires { r.last; }) {
      r.last = in.u64();
      if (r.last > total) throw CorruptStateError("state has a position after its end");
    }
  }
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return in_order(a, b); });
  for (size_t i = 1; i < records.size(); ++i)
    if (!in_order(records[i - 1], records[i])) throw CorruptStateError("state has a key twice");
  return records;
}

template <class Record>
uint64_t sum_of_counts(const std::vector<Record>& records) {
  unsigned __int128 sum = 0;
  for (const Record& r : records) sum += r.count;
  if (sum > UINT64_MAX) throw CorruptStateError("state has counts that overflow");
  return static_cast<uint64_t>(sum);
}

template <class Record>
bool has_zero(const std::vector<Record>& records) {
  return std::any_of(records.begin(), records.end(), [](const Record& r) { return r.count == 0; });
}

// What a kernel's part of a state is checked against.
struct KernelFacts {
  KeyKind kind;
  uint64_t capacity;  // 0 if there is none
  uint64_t max_key_bytes;
  const HashKey& seed;
  bool merged;
};

// A total and its counters, of which no more than the capacity may be there. Keys point into the state's bytes.
template <class Record>
std::vector<Record> read_counters(StateReader& in, const KernelFacts& facts, uint64_t total) {
  auto records = read_records<Record>(in, facts.kind, facts.max_key_bytes, facts.seed, total);
  if (facts.capacity && records.size() > facts.capacity)
    throw CorruptStateError("state has more counters than its capacity");
  return records;
}

inline nb::bytes sealed(const StateWriter& out, StateFamily family, uint16_t version, KeyKind kind) {
  const std::string state = out.seal(static_cast<uint16_t>(family), version, kind);
  return nb::bytes(state.data(), state.size());
}

inline constexpr uint16_t kCountersVersion = 2;

template <class Family>
nb::bytes state_of(const Summary<Family>& self) {
  StateWriter out;
  KeyKind kind = KeyKind::none;
  self.with_lock([&](KeyKind held) {
    kind = held;
    self.family.write_shape(out);
    out.u64(self.max_key_bytes);
    out.seed(self.family.seed);
    out.u8(self.merged);
    if constexpr (requires { self.family.write_more(out); }) self.family.write_more(out);
    self.read_locked(
        [&](const auto& kernel) {
          Family::write_kernel(out, kind, kernel);
          return 0;
        },
        0);
    write_lineage(out, self);
  });
  return sealed(out, Family::kState, kCountersVersion, kind);
}

template <class Family>
std::unique_ptr<Summary<Family>> from_state(const nb::bytes& data) {
  const OpenState state = open_state(view_of(data), Family::kState, kCountersVersion);
  StateReader in(state.payload);
  Family family = Family::read_shape(in);
  const uint64_t max_key_bytes = read_max_key_bytes(in);
  family.seed = HashKey(in.u64(), state.first_hash);
  const bool merged = read_flag(in);
  if constexpr (requires { family.read_more(in); }) family.read_more(in);
  auto sketch = std::make_unique<Summary<Family>>(family, max_key_bytes);
  sketch->merged = merged;
  if (state.kind != KeyKind::none) {
    uint64_t capacity = 0;
    if constexpr (requires { family.capacity; }) capacity = family.capacity;
    const KernelFacts facts{state.kind, capacity, max_key_bytes, sketch->family.seed, merged};
    sketch->start(state.kind);
    sketch->visit_kernel([&](auto& kernel, auto) { sketch->family.read_kernel(in, facts, kernel); });
  }
  sketch->lineage = read_lineage(in, state);
  in.finish();
  return sketch;
}

// The methods and properties that all summaries share.
template <class S>
nb::class_<S>& bind_summary(nb::class_<S>& bound) {
  return bound.def("counters", &counters_of<S>)
      .def_prop_ro("total", [](const S& s) { return s.read([](auto& k) { return k.total(); }, uint64_t{0}); })
      .def_prop_ro("size", [](const S& s) { return s.read([](auto& k) { return k.size(); }, uint64_t{0}); })
      .def_prop_ro("memory_bytes", [](const S& s) { return s.read([](auto& k) { return k.bytes(); }, uint64_t{0}); })
      .def_prop_ro("key_kind", [](const S& s) { return std::string(name_of(s.kind())); })
      .def_prop_ro("lineage",
                   [](const S& s) {
                     std::vector<uint64_t> names;
                     s.with_lock([&](KeyKind) { names = s.lineage.names(); });
                     return names;
                   })
      .def_prop_ro("merged", [](const S& s) { return s.merged; })
      .def_prop_ro("seed", [](const S& s) { return s.family.seed.seed; })
      .def_prop_ro("max_key_bytes", [](const S& s) { return s.max_key_bytes; });
}

// And those that hold a counter for some of the items.
template <class Family>
void bind_counter_sketch(nb::class_<Summary<Family>>& bound) {
  using S = Summary<Family>;
  bound.def("count", &count_of<S>, nb::arg("item").none())
      .def("to_bytes", &state_of<Family>)
      .def_static("from_bytes", &from_state<Family>, nb::arg("data"));
  if constexpr (requires(Family family) { family.capacity; })
    bound.def_prop_ro("capacity", [](const S& s) { return s.family.capacity; });
  bind_summary(bound);
}

inline void require_equal(const char* what, uint64_t mine, uint64_t theirs) {
  if (mine != theirs)
    throw IncompatibleSummaryError(std::string(what) + " differ: " + std::to_string(mine) + " and " +
                                   std::to_string(theirs));
}

// Where two summaries must agree on a hash of every key.
inline void require_equal_seeds(const HashKey& mine, const HashKey& theirs) {
  require_equal("seeds", mine.seed, theirs.seed);
  if (mine.first_version != theirs.first_version)
    throw IncompatibleSummaryError("one of the summaries was begun by an older version, which hashed in another way");
}

}  // namespace discreet
