// The order of a release: the largest count first, of equals the smaller item.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/in_threads.hpp"

namespace discreet {

// Where the rows of a column without nulls, of texts, bytes or integers, stand. Texts are compared by their bytes. The
// first bytes after those that all items share are compared as a number, the rest only where they are equal.
class ReleaseOrder {
 public:
  ReleaseOrder(const Column& items, const int64_t* counts) : items_(items), counts_(counts) {}

  std::vector<int64_t> places(size_t threads) {
    const size_t rows = static_cast<size_t>(items_.length);
    if (!is_integer(items_.kind)) shared_ = shared_bytes();
    std::vector<Entry> entries(rows);
    std::vector<size_t> ends(rows < kFewRows ? 2 : std::max<size_t>(1, threads) + 1);
    for (size_t i = 0; i < ends.size(); ++i) ends[i] = rows * i / (ends.size() - 1);
    const auto before = [this](const Entry& a, const Entry& b) { return comes_before(a, b); };
    in_threads(ends.size() - 1, [&](size_t part) {
      for (size_t row = ends[part]; row < ends[part + 1]; ++row)
        entries[row] = {counts_[row], first_bytes(static_cast<int64_t>(row)), static_cast<int64_t>(row)};
      std::sort(entries.begin() + static_cast<int64_t>(ends[part]), entries.begin() + static_cast<int64_t>(ends[part + 1]),
                before);
    });
    for (size_t part = 1; part + 1 < ends.size(); ++part)
      std::inplace_merge(entries.begin(), entries.begin() + static_cast<int64_t>(ends[part]),
                         entries.begin() + static_cast<int64_t>(ends[part + 1]), before);
    std::vector<int64_t> out(rows);
    for (size_t i = 0; i < rows; ++i) out[i] = entries[i].row;
    return out;
  }

 private:
  static constexpr size_t kFewRows = 1 << 15;
  struct Entry {
    int64_t count;
    uint64_t first;
    int64_t row;
  };

  bool comes_before(const Entry& a, const Entry& b) const {
    if (a.count != b.count) return a.count > b.count;
    if (a.first != b.first) return a.first < b.first;
    if (!is_integer(items_.kind))
      if (const int order = bytes_at(items_, a.row).compare(bytes_at(items_, b.row))) return order < 0;
    return a.row < b.row;
  }

  // How many bytes all items begin with.
  size_t shared_bytes() const {
    if (items_.length == 0) return 0;
    const std::string_view one = bytes_at(items_, 0);
    size_t shared = one.size();
    for (int64_t row = 1; row < items_.length && shared > 0; ++row) {
      const std::string_view other = bytes_at(items_, row);
      if (other.size() < shared || std::memcmp(one.data(), other.data(), shared) != 0)
        shared = static_cast<size_t>(
            std::mismatch(one.begin(), one.begin() + static_cast<int64_t>(std::min(shared, other.size())), other.begin())
                .first -
            one.begin());
    }
    return shared;
  }

  uint64_t first_bytes(int64_t row) const {
    if (items_.kind == KeyKind::int64) return integer_at(items_, row) ^ 1ull << 63;
    if (items_.kind == KeyKind::uint64) return integer_at(items_, row);
    const std::string_view rest = bytes_at(items_, row).substr(shared_);
    uint64_t first = 0;
    for (size_t i = 0; i < 8; ++i) first = first << 8 | (i < rest.size() ? static_cast<uint8_t>(rest[i]) : 0);
    return first;
  }

  const Column& items_;
  const int64_t* counts_;
  size_t shared_ = 0;
};

}  // namespace discreet
