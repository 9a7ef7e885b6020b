#include "discreet/counters/user_misra_gries.hpp"

#include "counters_state.hpp"
#include "discreet/noise/random_source.hpp"

namespace discreet {
namespace {

struct UserMisraGriesFamily {
  template <class Key>
  using Kernel = UserMisraGries<Key>;
  uint64_t capacity;
  uint64_t max_items;  // distinct items a user may have
  bool sample;         // what to do with more: a uniform sample, or an error
  HashKey seed;
  template <class Key>
  Kernel<Key> make() const {
    return Kernel<Key>(capacity, max_items, seed);
  }

  static constexpr StateFamily kState = StateFamily::user_misra_gries;
  void write_shape(StateWriter& out) const {
    out.u64(capacity);
    out.u64(max_items);
    out.u8(sample);
  }
  static UserMisraGriesFamily read_shape(StateReader& in) {
    const uint64_t capacity = read_capacity(in);
    const uint64_t max_items = in.u64();
    if (max_items < 1 || max_items > capacity) throw CorruptStateError("state has a bound outside 1 to its capacity");
    return {capacity, max_items, read_flag(in), HashKey(0)};
  }
  template <class Key>
  static void write_kernel(StateWriter& out, KeyKind kind, const Kernel<Key>& kernel) {
    out.u64(kernel.total());
    out.u64(kernel.users());
    out.u64(kernel.decrements());
    write_records(out, kind, kernel.counters());
  }
  template <class Key>
  void read_kernel(StateReader& in, const KernelFacts& facts, Kernel<Key>& kernel) const {
    const uint64_t total = read_total(in);
    const uint64_t users = in.u64();
    const uint64_t alpha = in.u64();
    const auto records = read_counters<Counter<Key>>(in, facts, total);
    for (const auto& r : records)
      if (r.count == 0 || r.count > users) throw CorruptStateError("state has a count outside 1 to its users");
    // Every user has an item, and causes at most one decrement.
    if (users > total || (!facts.merged && alpha > users))
      throw CorruptStateError("state has users that do not fit its total");
    // A decrement takes at least k+1 counts: sum c + alpha (k+1) <= N.
    const unsigned __int128 accounted =
        static_cast<unsigned __int128>(alpha) * (capacity + 1) + sum_of_counts(records);
    if (accounted > total) throw CorruptStateError("state has counts that do not add up to its total");
    kernel.assign(records, total, users, alpha);
  }
};
using Sketch = Summary<UserMisraGriesFamily>;

// The distinct valid items of one user, in order of first appearance.
template <class Key>
class UserItems {
 public:
  void gather(const ListColumn& list, int64_t user, const HashKey& seed) {
    records_.clear();
    const auto [begin, end] = list.range(user);
    for (int64_t i = begin; i < end; ++i) {
      if (!list.items.valid(i)) continue;
      Key key;
      if (list.items.dictionary) {
        const int64_t code = static_cast<int64_t>(integer_at(list.items, i));
        if (list.items.dictionary->kind == KeyKind::none || !list.items.dictionary->valid(code)) continue;
        key = key_at(*list.items.dictionary, code, Key{});
      } else {
        key = key_at(list.items, i, Key{});
      }
      records_.push_back({key, key.hash(seed), static_cast<uint64_t>(records_.size())});
    }
  }
  // Leaves one record of each key. The table drops repeats by itself, so this is only needed to count them.
  void make_distinct() {
    std::stable_sort(records_.begin(), records_.end(), in_order<Key>);
    const auto same = [](const Counter<Key>& a, const Counter<Key>& b) { return !in_order(a, b) && !in_order(b, a); };
    records_.erase(std::unique(records_.begin(), records_.end(), same), records_.end());
    std::sort(records_.begin(), records_.end(), [](const auto& a, const auto& b) { return a.count < b.count; });
  }
  // A uniform sample of `n` of the distinct items, by the first n steps of a shuffle.
  void sample(uint64_t n, RandomSource& source) {
    const auto drawing = source.draw(n);
    for (uint64_t i = 0; i < n; ++i)
      std::swap(records_[i], records_[i + source.below(records_.size() - i)]);
    records_.resize(n);
  }
  size_t size() const { return records_.size(); }
  void add_to(UserMisraGries<Key>& kernel) {
    keys_.clear();
    hashes_.clear();
    for (const Counter<Key>& r : records_) {
      keys_.push_back(r.key);
      hashes_.push_back(r.hash);
    }
    kernel.add_user(keys_.data(), hashes_.data(), keys_.size());
  }

 private:
  std::vector<Counter<Key>> records_;  // count holds the order of appearance
  std::vector<Key> keys_;
  std::vector<uint64_t> hashes_;
};

template <class Key>
bool within_bound(const ListColumn& list, int64_t user, uint64_t most, const HashKey& seed, UserItems<Key>& items) {
  const auto [begin, end] = list.range(user);
  if (static_cast<uint64_t>(end - begin) <= most) return true;
  items.gather(list, user, seed);
  items.make_distinct();
  return items.size() <= most;
}

// The items of null lists are not looked at.
void check_lists(const Sketch& self, ListColumn& list, const Checks& checks, InterruptCheck& interrupt) {
  BadRows bad;
  for (int64_t i = 0; i < list.length; ++i) {
    if (!list.valid(i)) {
      if (!checks.skip_nulls) throw DataError("the column has nulls; pass nulls=\"skip\" to leave them out");
      continue;
    }
    int64_t last = i;
    while (last + 1 < list.length && list.valid(last + 1)) ++last;
    Column run = list.items;
    run.offset += list.range(i).first;
    run.length = list.range(last).second - list.range(i).first;
    for (const int64_t row : bad_rows(run, checks, interrupt)) bad.push_back(list.range(i).first + row);
    i = last;
  }
  leave_out(list.items, bad);
  if (self.family.sample || list.items.key_kind() == KeyKind::none) return;
  const auto check = [&](auto key) {
    UserItems<decltype(key)> items;
    for (int64_t i = 0; i < list.length; ++i)
      if (list.valid(i) && !within_bound(list, i, self.family.max_items, self.family.seed, items))
        throw DataError("a user has more than max_items_per_user=" + std::to_string(self.family.max_items) +
                        " distinct items; pass oversized=\"sample\" to keep a uniform sample of them");
  };
  if (is_integer(list.items.key_kind())) {
    check(IntKey{});
  } else {
    check(StrKey{});
  }
}

void update(Sketch& self, nb::handle data, bool skip_nulls, BadItems bad, RandomSource& source) {
  auto lists = open_lists(data, bad);
  self.update(
      *lists, ListColumn{}, skip_nulls, bad,
      [&](ListColumn& list, const Checks& checks, InterruptCheck& interrupt) {
        check_lists(self, list, checks, interrupt);
      },
      [](ListColumn& list) -> Column& { return list.items; },
      [&](auto& kernel, const ListColumn& list, auto key, InterruptCheck& interrupt) {
        UserItems<decltype(key)> items;
        for (int64_t i = 0; i < list.length; ++i) {
          if (!list.valid(i)) continue;
          items.gather(list, i, self.family.seed);
          if (items.size() > self.family.max_items) {
            items.make_distinct();
            if (items.size() > self.family.max_items) items.sample(self.family.max_items, source);
          }
          items.add_to(kernel);
          if ((i & 0xfff) == 0) interrupt();
        }
      });
  nb::gil_scoped_release release;
  lists.reset();
}

}  // namespace

void bind_user_misra_gries(nb::module_& m) {
  nb::class_<Sketch> bound(m, "UserMisraGries");
  bound
      .def("__init__",
           [](Sketch* self, uint64_t capacity, uint64_t max_items, bool sample, uint64_t max_key_bytes, uint64_t seed) {
             new (self) Sketch(UserMisraGriesFamily{capacity, max_items, sample, HashKey(seed)}, max_key_bytes);
           },
           nb::arg("capacity"), nb::arg("max_items"), nb::arg("sample"), nb::arg("max_key_bytes"), nb::arg("seed"))
      .def("update", &update, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("bad_items"), nb::arg("source"))
      .def("merge",
           [](Sketch& self, const Sketch& other) {
             require_equal("capacities", self.family.capacity, other.family.capacity);
             require_equal("bounds on a user's items", self.family.max_items, other.family.max_items);
             self.merge(other);
           })
      .def_prop_ro("users", [](const Sketch& s) { return s.read([](auto& k) { return k.users(); }, uint64_t{0}); })
      .def_prop_ro("decrements",
                   [](const Sketch& s) { return s.read([](auto& k) { return k.decrements(); }, uint64_t{0}); })
      .def_prop_ro("max_items", [](const Sketch& s) { return s.family.max_items; })
      .def_prop_ro("sample", [](const Sketch& s) { return s.family.sample; });
  bind_counter_sketch(bound);
}

}  // namespace discreet
