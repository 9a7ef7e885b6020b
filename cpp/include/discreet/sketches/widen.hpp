// A kernel of integers as one of keys of several kinds: the same counters, in the same order, in the same places.
#pragma once

#include <utility>
#include <vector>

#include "discreet/counters/exact_counts.hpp"
#include "discreet/counters/sharded_misra_gries.hpp"
#include "discreet/counters/space_saving.hpp"
#include "discreet/counters/user_misra_gries.hpp"
#include "discreet/sketches/linear_sketch.hpp"

namespace discreet {

// The keys of the result point into `records`.
template <template <class> class Record>
std::vector<Record<StrKey>> widened(const std::vector<Record<IntKey>>& records, KeyKind kind) {
  std::vector<Record<StrKey>> out(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const IntKey& key = records[i].key;
    out[i].key = {reinterpret_cast<const char*>(&key.value), 8, tag_of(key.value, kind)};
    out[i].hash = records[i].hash;
    out[i].count = records[i].count;
    if constexpr (requires { out[i].last; }) out[i].last = records[i].last;
  }
  return out;
}

// Fills an empty kernel of the same parameters.
inline void widen(const MisraGries<IntKey>& from, KeyKind kind, MisraGries<StrKey>& to) {
  const auto records = from.counters();
  to.assign(widened(records, kind), from.total(), from.decrements());
}
inline void widen(const ShardedMisraGries<IntKey>& from, KeyKind kind, ShardedMisraGries<StrKey>& to) {
  for (size_t i = 0; i < from.shards().size(); ++i) widen(from.shards()[i], kind, to.shards()[i]);
}
inline void widen(const SpaceSaving<IntKey>& from, KeyKind kind, SpaceSaving<StrKey>& to) {
  const auto records = from.counters();
  to.assign(widened(records, kind), from.total());
}
inline void widen(const UserMisraGries<IntKey>& from, KeyKind kind, UserMisraGries<StrKey>& to) {
  const auto records = from.counters();
  to.assign(widened(records, kind), from.total(), from.users(), from.decrements());
}
inline void widen(const ExactCounts<IntKey>& from, KeyKind kind, ExactCounts<StrKey>& to) {
  const auto records = from.counters();
  to.reserve(records.size());
  for (const Counter<StrKey>& c : widened(records, kind)) to.add(c.key, c.hash, c.count);
}
template <class Rule>
void widen(const LinearSketch<IntKey, Rule>& from, KeyKind kind, LinearSketch<StrKey, Rule>& to) {
  const auto records = from.arrivals();
  to.assign(from.cells(), from.total(), widened(records, kind));
}

}  // namespace discreet
