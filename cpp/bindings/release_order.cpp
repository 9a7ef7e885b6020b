#include "discreet/release_order.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <string>
#include <thread>

#include "plain_memory.hpp"

namespace discreet {

PlainItems::PlainItems(KeyKind kind, nb::bytes values, nb::bytes offsets)
    : kind(kind), values(std::move(values)), offsets(std::move(offsets)) {
  const size_t bytes = this->values.size(), ends = this->offsets.size() / sizeof(int64_t);
  if (is_integer(kind)) {
    if (bytes % sizeof(int64_t) || ends) throw DataError("plain numbers have 8 bytes each");
    length = static_cast<int64_t>(bytes / sizeof(int64_t));
    return;
  }
  const int64_t* end = reinterpret_cast<const int64_t*>(this->offsets.c_str());
  if (ends == 0 || this->offsets.size() % sizeof(int64_t) || end[0] != 0 || !std::is_sorted(end, end + ends) ||
      static_cast<uint64_t>(end[ends - 1]) > bytes)
    throw DataError("plain texts lie one after the other");
  length = static_cast<int64_t>(ends - 1);
}

namespace {

KeyKind kind_named(const std::string& name) {
  for (const KeyKind kind : {KeyKind::int64, KeyKind::uint64, KeyKind::string, KeyKind::binary})
    if (name == name_of(kind)) return kind;
  throw DataError("plain items are texts, bytes or whole numbers");
}

constexpr size_t kAhead = 16;  // texts that are asked for before the first of them is copied

size_t cores() { return std::clamp(std::thread::hardware_concurrency(), 1u, 8u); }

nb::bytes release_order(nb::handle items, Integers counts) {
  const auto source = open_column(items);
  std::vector<int64_t> places;
  {
    nb::gil_scoped_release release;
    Column column, more;
    if (!source->next(column)) column.length = 0;
    if (column.dictionary || column.kind == KeyKind::mixed || any_null(column) || source->next(more))
      throw DataError("items are put in order as one plain column without nulls");
    if (static_cast<size_t>(column.length) != counts.size()) throw DataError("items and counts must have one length");
    places = ReleaseOrder(column, counts.data()).places(cores());
  }
  return nb::bytes(places.data(), places.size() * sizeof(int64_t));
}

std::pair<nb::bytes, nb::bytes> texts_at(nb::handle items, Integers places) {
  const auto source = open_column(items);
  const size_t rows = places.size();
  nb::bytes offsets = unwritten((rows + 1) * sizeof(int64_t));
  int64_t* ends = reinterpret_cast<int64_t*>(written(offsets));
  std::vector<std::string_view> texts(rows);
  Column column, more;  // may own what the texts lie in
  {
    nb::gil_scoped_release release;
    if (!source->next(column)) column.length = 0;
    if (column.length > 0 && (column.dictionary || is_integer(column.kind) || any_null(column) || source->next(more)))
      throw DataError("texts are taken from one plain column without nulls");
    ends[0] = 0;
    for (size_t i = 0; i < rows; ++i) {
      const int64_t place = places.data()[i];
      if (place < 0 || place >= column.length) throw DataError("a place is outside the column");
      texts[i] = bytes_at(column, place);
      ends[i + 1] = ends[i] + static_cast<int64_t>(texts[i].size());
    }
  }
  nb::bytes values = unwritten(static_cast<size_t>(ends[rows]));
  char* out = written(values);
  {
    nb::gil_scoped_release release;
    const size_t parts = rows < (1 << 15) ? 1 : cores();
    in_threads(parts, [&](size_t part) {
      const size_t last = rows * (part + 1) / parts;
      for (size_t i = rows * part / parts; i < last; ++i) {
        __builtin_prefetch(texts[std::min(i + kAhead, last - 1)].data());
        if (!texts[i].empty()) std::memcpy(out + ends[i], texts[i].data(), texts[i].size());
      }
    });
  }
  return {values, offsets};
}

PlainItems items_at(const PlainItems& self, nb::handle items, Integers places) {
  if (!is_integer(self.kind)) {
    auto [values, offsets] = texts_at(items, places);
    return {self.kind, std::move(values), std::move(offsets)};
  }
  nb::bytes values = unwritten(places.size() * sizeof(int64_t));
  const char* from = self.values.c_str();
  char* out = written(values);
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t place = places.data()[i];
    if (place < 0 || place >= self.length) throw DataError("a place is outside the column");
    std::memcpy(out + i * sizeof place, from + static_cast<size_t>(place) * sizeof place, sizeof place);
  }
  return {self.kind, std::move(values), self.offsets};
}

// The same items in a kind that depends on them alone: nothing is text, and numbers are int64 unless one needs uint64.
PlainItems as_published(const PlainItems& self) {
  if (self.length == 0) return {KeyKind::string, nb::bytes("", 0), nb::bytes("\0\0\0\0\0\0\0", 8)};
  if (self.kind != KeyKind::uint64) return self;
  const uint64_t* values = reinterpret_cast<const uint64_t*>(self.values.c_str());
  const bool large = std::any_of(values, values + self.length, [](uint64_t value) { return value >> 63; });
  return {large ? KeyKind::uint64 : KeyKind::int64, self.values, self.offsets};
}

nb::typed<nb::list, nb::object> items_listed(const PlainItems& self) {
  const Column column = self.column();
  nb::typed<nb::list, nb::object> out;
  for (int64_t i = 0; i < self.length; ++i) {
    if (is_integer(self.kind)) {
      const uint64_t value = integer_at(column, i);
      if (self.kind == KeyKind::uint64) {
        out.append(value);
      } else {
        out.append(static_cast<int64_t>(value));
      }
      continue;
    }
    const std::string_view item = bytes_at(column, i);
    if (self.kind == KeyKind::binary) {
      out.append(nb::bytes(item.data(), item.size()));
    } else {
      out.append(nb::str(item.data(), item.size()));
    }
  }
  return out;
}

}  // namespace

void bind_release_order(nb::module_& m) {
  nb::class_<PlainItems>(m, "PlainItems", "Texts, bytes or whole numbers in memory of Python: Arrow's buffers without Arrow.")
      .def("__init__",
           [](PlainItems* self, const std::string& kind, nb::bytes values, nb::bytes offsets) {
             new (self) PlainItems(kind_named(kind), std::move(values), std::move(offsets));
           },
           nb::arg("kind"), nb::arg("values"), nb::arg("offsets"))
      .def("__len__", [](const PlainItems& self) { return self.length; })
      .def_prop_ro("kind", [](const PlainItems& self) { return name_of(self.kind); })
      .def_ro("values", &PlainItems::values, "The numbers, or the bytes of all texts.")
      .def_ro("offsets", &PlainItems::offsets, "Of texts: where each begins and ends (int64). Of numbers nothing.")
      .def("to_pylist", &items_listed, "The items as Python has them.")
      .def(
          "at",
          [](nb::handle self, Integers places) { return items_at(nb::cast<const PlainItems&>(self), self, places); },
          nb::arg("places"), nb::sig("def at(self, places: object) -> PlainItems"), "The items at these places.")
      .def("as_published", &as_published, "The same items in a kind that depends on them alone.");
  m.def("release_order", &release_order, nb::arg("items"), nb::arg("counts"),
        nb::sig("def release_order(items: object, counts: object) -> bytes"),
        "Where rows stand (int64): the largest count first, of equals the smaller item.");
  m.def("texts_at", &texts_at, nb::arg("items"), nb::arg("places"),
        nb::sig("def texts_at(items: object, places: object) -> tuple[bytes, bytes]"),
        "The texts or bytes of a plain column at these places: their bytes, and where each begins and ends (int64).");
}

}  // namespace discreet
