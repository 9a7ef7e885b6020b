#include "discreet/counters/interner.hpp"

#include <nanobind/stl/vector.h>

#include <mutex>

#include "summary.hpp"

namespace discreet {
namespace {

// Of StrKey texts or bytes, and not both: the kind of the first column stays; with `any_kind` whatever may be an item.
// Of IntKey the 64 bits of integers.
template <class Key>
struct Numbered {
  static constexpr bool kTexts = std::is_same_v<Key, StrKey>;

  Numbered(uint64_t max_key_bytes, uint64_t seed, bool any_kind)
      : max_key_bytes(max_key_bytes), kernel(HashKey(seed)), any_kind(any_kind) {}

  nb::bytes number(nb::handle data, bool skip_nulls) {
    auto source = open_column(data, BadItems::skip_all);
    std::vector<int32_t> out;
    {
      nb::gil_scoped_release release;
      const std::scoped_lock lock(mutex);
      InterruptCheck interrupt;
      Column column;
      while (source->next(column)) {
        validate_column(column, {max_key_bytes, skip_nulls, BadItems::skip_all}, interrupt);
        const KeyKind given = column.key_kind();
        if (kTexts && any_kind) {
          if (any_valid(column)) kind = combined_kind(kind, column);
          column = as_mixed(column);  // a key is written in one way, whatever kinds came before
        } else if (given != KeyKind::none) {
          const bool fits = kTexts ? given == KeyKind::string || given == KeyKind::binary : is_integer(given);
          if (!fits) throw DataError("only texts, only bytes, or only integers can be numbered");
          if (kTexts && kind != KeyKind::none && kind != given)
            throw DataError("texts and bytes are not numbered together");
          kind = given;
        }
        const size_t before = out.size();
        out.resize(before + static_cast<size_t>(column.length));
        kernel.number_rows(column, out.data() + before);
        column = Column();
      }
      source.reset();
    }
    return nb::bytes(out.data(), out.size() * sizeof(int32_t));
  }

  RawCounters keys(const std::vector<int64_t>& wanted) {
    const std::scoped_lock lock(mutex);
    std::vector<Counter<Key>> chosen;
    for (const int64_t number : wanted) {
      if (number < 0 || static_cast<uint64_t>(number) >= kernel.size())
        throw ParameterError("no value has this number");
      chosen.push_back({kernel.key(static_cast<uint64_t>(number)), 0, 0});
    }
    return raw_counters(kind == KeyKind::none ? KeyKind::string : kind, chosen);
  }

  // Of integers: their 64 bits, by number.
  nb::bytes values() {
    const std::scoped_lock lock(mutex);
    std::vector<uint64_t> all(kernel.size());
    for (size_t number = 0; number < all.size(); ++number) all[number] = kernel.key(number).value;
    return nb::bytes(all.data(), all.size() * sizeof(uint64_t));
  }

  nb::bytes hashes() {
    const std::scoped_lock lock(mutex);
    const std::vector<uint64_t> all = kernel.hashes();
    return nb::bytes(all.data(), all.size() * sizeof(uint64_t));
  }

  uint64_t bytes() const { return kernel.bytes(); }

  uint64_t max_key_bytes;
  Interner<Key> kernel;
  bool any_kind;
  KeyKind kind = KeyKind::none;
  std::mutex mutex;
};

template <class Key>
nb::class_<Numbered<Key>> bind(nb::module_& m, const char* name, const char* doc) {
  using Self = Numbered<Key>;
  return nb::class_<Self>(m, name, doc)
      .def("number", &Self::number, nb::arg("data"), nb::arg("skip_nulls") = true,
           "The number of every row (int32); -1 for one without a value, or with one that cannot be an item.")
      .def("hashes", &Self::hashes, "A keyed hash (uint64) of every value, by number: it depends on the value alone.")
      .def_prop_ro("size", [](Self& self) { return self.kernel.size(); });
}

}  // namespace

void bind_interner(nb::module_& m) {
  bind<StrKey>(m, "Interner", "Numbers for values, in the order of their first appearance.")
      .def(nb::init<uint64_t, uint64_t, bool>(), nb::arg("max_key_bytes"), nb::arg("seed"), nb::arg("any_kind") = false,
           "Of texts or of bytes; with any_kind of all that may be an item, in one sequence.")
      .def("keys", &Numbered<StrKey>::keys, nb::arg("numbers"), "The values with these numbers, as raw counters.")
      .def_prop_ro("bytes", &Numbered<StrKey>::bytes);
  bind<IntKey>(m, "IntegerInterner", "Numbers for integers, in the order of their first appearance.")
      .def(
          "__init__",
          [](Numbered<IntKey>* self, uint64_t seed) { new (self) Numbered<IntKey>(sizeof(uint64_t), seed, false); },
          nb::arg("seed"))
      .def("values", &Numbered<IntKey>::values, "All values (64 bits each), by number.")
      .def_prop_ro("bytes", &Numbered<IntKey>::bytes);
}

}  // namespace discreet
