// Which streams a summary has counted, so that none is counted twice.
//
// A summary that takes its first events draws a random name. Copies and stored states keep it, and a merge joins the names
// of both. So two summaries that have an event in common have a name in common, also when they went different ways since;
// an empty summary has no name, and copies of it may each count a part. Eight bytes a part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "discreet/errors.hpp"
#include "discreet/noise/random_source.hpp"

namespace discreet {

class Lineage {
 public:
  Lineage() = default;
  explicit Lineage(std::vector<uint64_t> names) : names_(std::move(names)) {}

  const std::vector<uint64_t>& names() const { return names_; }  // in ascending order

  // Called whenever events were counted.
  void start() {
    if (!names_.empty()) return;
    uint64_t name;
    system_random(&name, sizeof name);
    names_.push_back(name);
  }

  Lineage joined(const Lineage& other) const {
    std::vector<uint64_t> both;
    both.reserve(names_.size() + other.names_.size());
    std::set_union(names_.begin(), names_.end(), other.names_.begin(), other.names_.end(), std::back_inserter(both));
    if (both.size() < names_.size() + other.names_.size())
      throw IncompatibleSummaryError(
          "the summaries have counted some of the same events: one is a copy of the other, or a part was merged "
          "before. An event must not count twice");
    return Lineage(std::move(both));
  }

 private:
  std::vector<uint64_t> names_;
};

}  // namespace discreet
