#include "discreet/counters/pairs.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "discreet/errors.hpp"
#include "module.hpp"

namespace discreet {
namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::bytes as_bytes(const std::vector<T>& values) {
  return nb::bytes(values.data(), values.size() * sizeof(T));
}

template <class F>
auto without_gil(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

void add(Pairs& pairs, In<int32_t> users, In<int32_t> items, std::optional<In<int64_t>> values) {
  if (users.size() != items.size() || (values && values->size() != users.size()))
    throw ParameterError("columns must have the same number of rows");
  without_gil([&] { pairs.add(users.data(), items.data(), values ? values->data() : nullptr, users.size()); });
}

void check(const Pairs& pairs, const In<int32_t>& index, size_t chosen) {
  if (index.size() < pairs.items()) throw ParameterError("every item needs an index");
  for (size_t i = 0; i < index.size(); ++i)
    if (index.data()[i] >= static_cast<int64_t>(chosen)) throw ParameterError("an index without a weight");
}

}  // namespace

void bind_pairs(nb::module_& m) {
  nb::class_<Pairs> pairs(m, "Pairs", "Rows of people and items, grouped in memory. NOT private.");
  nb::enum_<Pairs::Entry>(pairs, "Entry", "What a pair says: that it is there, how often, or what its rows add up to.")
      .value("present", Pairs::Entry::present)
      .value("times", Pairs::Entry::times)
      .value("sums", Pairs::Entry::sums);
  pairs.def(nb::init<Pairs::Entry, int64_t, int64_t, size_t>(), nb::arg("entry"), nb::arg("length"), nb::arg("most"),
            nb::arg("threads"))
      .def("add", &add, nb::arg("users"), nb::arg("items"), nb::arg("values").none() = nb::none(),
           "Add rows; those with a negative number are left out.")
      .def("group", [](Pairs& self) { without_gil([&] { self.group(); }); }, "Group the rows; none can be added then.")
      .def(
          "keep_each_once", [](Pairs& self) { return without_gil([&] { return self.keep_each_once(); }); },
          "Sort the rows that were added, and keep each pair once: how many there are. More rows can be added.")
      .def(
          "take_pairs", [](Pairs& self) { return as_bytes(without_gil([&] { return self.take_pairs(); })); },
          "Each pair once, in ascending order: a person << 32 | an item (int64). None is left.")
      .def(
          "discovery",
          [](const Pairs& self, uint64_t most_items, In<uint64_t> keys) {
            if (keys.size() < self.items()) throw ParameterError("every item needs a key");
            if (most_items < 1 || most_items > 1 << 20) throw ParameterError("most_items must be in [1, 2**20]");
            return as_bytes(without_gil([&] { return self.discovery(most_items, keys.data()); }));
          },
          nb::arg("most_items"), nb::arg("keys"), "For every item the sum of its people's weights (int64).")
      .def(
          "aimed",
          [](const Pairs& self, uint64_t most_items, In<uint64_t> keys, In<int32_t> index, In<int64_t> weights) {
            if (keys.size() < self.items()) throw ParameterError("every item needs a key");
            if (most_items < 1 || most_items > 1 << 20) throw ParameterError("most_items must be in [1, 2**20]");
            check(self, index, weights.size());
            return as_bytes(without_gil([&] {
              return self.aimed(most_items, keys.data(), index.data(), weights.data(), weights.size());
            }));
          },
          nb::arg("most_items"), nb::arg("keys"), nb::arg("index"), nb::arg("weights"),
          "The sums of scaled vectors of weights, over the items that take part in discovery (int64).")
      .def(
          "holdings",
          [](const Pairs& self, In<int32_t> index) {
            check(self, index, size_t{1} << 31);
            const auto [sizes, held] = without_gil([&] { return self.holdings(index.data()); });
            return std::pair(as_bytes(sizes), as_bytes(held));
          },
          nb::arg("index"), "How many chosen items people have, and which, person by person (int64).")
      .def(
          "votes",
          [](const Pairs& self, int64_t vote, int64_t most, std::optional<In<int64_t>> rows) {
            if (vote < 1 || most < 1 || vote > (int64_t{1} << 62) / most) throw ParameterError("votes below 2**62");
            if (self.entry_kind() == Pairs::Entry::present) throw ParameterError("votes are shared by rows");
            if (rows && rows->size() < self.people()) throw ParameterError("every person needs a number of rows");
            return as_bytes(without_gil([&] { return self.votes(vote, most, rows ? rows->data() : nullptr); }));
          },
          nb::arg("vote"), nb::arg("most"), nb::arg("rows").none() = nb::none(),
          "For every item the sum of what people's rows have, who share `most` votes (int64).")
      .def(
          "lengths",
          [](const Pairs& self, In<int32_t> index, In<int64_t> weights) {
            check(self, index, weights.size());
            return as_bytes(without_gil([&] { return self.lengths(index.data(), weights.data()); }));
          },
          nb::arg("index"), nb::arg("weights"), "The squared lengths of people's vectors that are not zero (float64).")
      .def(
          "scaled_sums",
          [](const Pairs& self, In<int32_t> index, In<int64_t> weights, double longest) {
            check(self, index, weights.size());
            const auto sums = without_gil(
                [&] { return self.scaled_sums(index.data(), weights.data(), weights.size(), longest); });
            return as_bytes(sums);
          },
          nb::arg("index"), nb::arg("weights"), nb::arg("longest"), "The sums of the scaled vectors (int64).")
      .def_prop_ro("rows", &Pairs::rows);
}

}  // namespace discreet
