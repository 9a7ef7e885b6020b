#include "discreet/interner.hpp"

#include <nanobind/stl/vector.h>

#include <mutex>

#include "summary.hpp"

namespace discreet {
namespace {

// Texts or bytes, not both: the kind of the first column stays.
struct Numbered {
  Numbered(uint64_t max_key_bytes, uint64_t seed) : max_key_bytes(max_key_bytes), kernel(HashKey(seed)) {}

  nb::bytes number(nb::handle data) {
    auto source = open_column(data, BadItems::skip_all);
    std::vector<int32_t> out;
    {
      nb::gil_scoped_release release;
      const std::scoped_lock lock(mutex);
      InterruptCheck interrupt;
      Column column;
      while (source->next(column)) {
        validate_column(column, {max_key_bytes, true, BadItems::skip_all}, interrupt);
        const KeyKind given = column.key_kind();
        if (given != KeyKind::none) {
          if (given != KeyKind::string && given != KeyKind::binary)
            throw DataError("only texts, or only bytes, can be numbered");
          if (kind != KeyKind::none && kind != given) throw DataError("texts and bytes are not numbered together");
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
    const std::vector<StrKey> all = kernel.keys();
    std::vector<Counter<StrKey>> chosen;
    for (const int64_t number : wanted) {
      if (number < 0 || static_cast<uint64_t>(number) >= all.size()) throw ParameterError("no value has this number");
      chosen.push_back({all[static_cast<size_t>(number)], 0, 0});
    }
    return raw_counters(kind == KeyKind::none ? KeyKind::string : kind, chosen);
  }

  nb::bytes hashes() {
    const std::scoped_lock lock(mutex);
    const std::vector<uint64_t> all = kernel.hashes();
    return nb::bytes(all.data(), all.size() * sizeof(uint64_t));
  }

  uint64_t max_key_bytes;
  Interner kernel;
  KeyKind kind = KeyKind::none;
  std::mutex mutex;
};

}  // namespace

void bind_interner(nb::module_& m) {
  nb::class_<Numbered>(m, "Interner", "Numbers for texts or bytes, in the order of their first appearance.")
      .def(nb::init<uint64_t, uint64_t>(), nb::arg("max_key_bytes"), nb::arg("seed"))
      .def("number", &Numbered::number, nb::arg("data"),
           "The number of every row (int32); -1 for one without a value, or with one that cannot be an item.")
      .def("keys", &Numbered::keys, nb::arg("numbers"), "The values with these numbers, as raw counters.")
      .def("hashes", &Numbered::hashes, "A keyed hash (uint64) of every value, by number: it depends on the value alone.")
      .def_prop_ro("size", [](Numbered& self) { return self.kernel.size(); })
      .def_prop_ro("bytes", [](Numbered& self) { return self.kernel.bytes(); });
}

}  // namespace discreet
