// One Misra-Gries kernel in a state: a sketch has one, a sharded sketch has several.
#pragma once

#include "counters_state.hpp"

namespace discreet {

template <class Key>
void write_kernel(StateWriter& out, KeyKind kind, const MisraGries<Key>& kernel) {
  out.u64(kernel.total());
  out.u64(kernel.decrements());
  write_records(out, kind, kernel.counters());
}

// Fills an empty kernel, and returns its counters. Their keys point into the state's bytes.
template <class Key>
std::vector<Counter<Key>> read_kernel(StateReader& in, const KernelFacts& facts, MisraGries<Key>& kernel) {
  const uint64_t total = read_total(in);
  const uint64_t alpha = in.u64();
  auto records = read_counters<Counter<Key>>(in, facts, total);
  if (records.size() < facts.capacity && ((alpha > 0 && !facts.merged) || has_zero(records)))
    throw CorruptStateError("state has decrements while it has room");
  // Every decrement takes k counts and one event: sum c + alpha (k+1) = n. A merge may have taken more.
  const unsigned __int128 accounted =
      static_cast<unsigned __int128>(alpha) * (facts.capacity + 1) + sum_of_counts(records);
  if (facts.merged ? accounted > total : accounted != total)
    throw CorruptStateError("state has counts that do not add up to its total");
  kernel.assign(records, total, alpha);
  return records;
}

}  // namespace discreet
