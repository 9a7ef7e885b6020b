// For tests and benchmarks: the hashes a summary gives to keys, and what it costs to look keys up and do nothing else.
#include <cstdint>
#include <string>

#include "counters_state.hpp"
#include "discreet/counters/grouped_table.hpp"

namespace discreet {
namespace {

// Calls f(column, key) for every chunk, with an example of the type of its keys.
template <class F>
void for_columns(nb::handle data, F&& f) {
  const auto source = open_column(data);
  Column column;
  while (source->next(column)) {
    validate(column, {kMaxKeyBytes, true});
    if (column.dictionary) throw DataError("expected a plain column, got a dictionary");
    if (column.kind == KeyKind::none) continue;
    if (is_integer(column.kind)) {
      f(column, IntKey{});
    } else {
      f(column, StrKey{});
    }
  }
}

nb::bytes key_hashes(nb::handle data, uint64_t seed) {
  std::string out;
  for_columns(data, [&](const Column& column, auto key) {
    for_blocks(column, 0, column.length, HashKey(seed), key, [&](const auto*, const uint64_t* hashes, size_t n) {
      out.append(reinterpret_cast<const char*>(hashes), 8 * n);
    });
  });
  return nb::bytes(out.data(), out.size());
}

template <class Key>
uint64_t probe(const GroupedTable<Key>& table, const Column& column) {
  uint64_t hits = 0;
  for_blocks(column, 0, column.length, table.seed(), Key{}, [&](const Key* keys, const uint64_t* hashes, size_t n) {
    for (size_t i = 0; i < n; ++i) hits += table.find(keys[i], hashes[i]) != GroupedTable<Key>::kNone;
  });
  return hits;
}

uint64_t probe_floor(nb::handle data, nb::handle keys, uint64_t capacity, uint64_t seed) {
  if (capacity < 1 || capacity > (1u << 24)) throw ParameterError("capacity must be between 1 and 2**24");
  GroupedTable<IntKey> integers(capacity, HashKey(seed));
  GroupedTable<StrKey> strings(capacity, HashKey(seed));
  uint64_t stored = 0;
  for_columns(keys, [&](const Column& column, auto key) {
    for (int64_t i = 0; i < column.length; ++i) {
      if (!column.valid(i)) continue;
      const auto k = key_at(column, i, key);
      if (++stored > capacity) throw ParameterError("more keys than the capacity");
      if constexpr (requires { k.value; }) {
        integers.insert(k, k.hash(HashKey(seed)));
      } else {
        strings.insert(k, k.hash(HashKey(seed)));
      }
    }
  });
  uint64_t hits = 0;
  for_columns(data, [&](const Column& column, auto key) {
    if constexpr (requires { key.value; }) {
      hits += probe(integers, column);
    } else {
      hits += probe(strings, column);
    }
  });
  return hits;
}

// A state with the right length and checksum for what it holds, so that tests reach the checks behind them.
nb::bytes reseal_state(const nb::bytes& data) {
  const std::string_view state = view_of(data);
  if (state.size() < kHeaderBytes) throw ParameterError("a state has at least 32 bytes");
  std::string out(state);
  const uint64_t length = out.size() - kHeaderBytes;
  std::memcpy(out.data() + 16, &length, 8);
  const uint64_t sum = checksum(std::string_view(out).substr(0, 24), std::string_view(out).substr(kHeaderBytes));
  std::memcpy(out.data() + 24, &sum, 8);
  return nb::bytes(out.data(), out.size());
}

}  // namespace

void bind_diagnostics(nb::module_& m) {
  m.def("key_hashes", &key_hashes, nb::arg("data"), nb::arg("seed"),
        "The 64-bit hashes of a column's items under a seed, as bytes: the order of zero counters.");
  m.def("probe_floor", &probe_floor, nb::arg("data"), nb::arg("keys"), nb::arg("capacity"), nb::arg("seed"),
        "Looks every item of a column up in a table of `keys`, each given once, and returns how many it found.");
  m.def("reseal_state", &reseal_state, nb::arg("data"),
        "The same state with the length and checksum that fit it; to test what readers check after those.");
}

}  // namespace discreet
