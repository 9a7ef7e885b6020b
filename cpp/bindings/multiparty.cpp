// Local oracles, the codes of messages, and the words that items become, for discreet.multiparty. All deterministic.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <vector>

#include "discreet/sketches/count_sketch.hpp"
#include "discreet/sketches/local_oracles.hpp"
#include "discreet/sketches/message_codec.hpp"
#include "discreet/wipe.hpp"
#include "ingest.hpp"
#include "linear_summary.hpp"

namespace discreet {
namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Words = In<uint64_t>;
using PublicKey = std::pair<uint64_t, uint64_t>;

// `size` numbers that fill(out) writes without the GIL.
template <class T, class Fill>
Out<T> filled(size_t size, Fill&& fill) {
  auto owned = std::make_unique<T[]>(size);
  {
    nb::gil_scoped_release release;
    fill(owned.get());
  }
  T* data = owned.release();
  nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
  return Out<T>(data, {size}, owner);
}

void same_length(size_t a, size_t b) {
  if (a != b) throw ParameterError("arrays must have one number for each report");
}

oracle::Key key_of(const PublicKey& key) { return {key.first, key.second}; }

// ---- items ---------------------------------------------------------------------------------------------------------

// The word of a string: a polynomial over the field of 2^61 - 1 at a public point, its length the leading coefficient.
uint64_t fingerprint(std::string_view text, uint64_t point) {
  const char* p = text.data();
  uint32_t n = static_cast<uint32_t>(text.size());
  uint64_t h = n;
  for (; n >= 8; p += 7, n -= 7) h = polynomial_step(h, point, load64(p) & 0xffffffffffffffull);
  return n ? polynomial_step(h, point, seven_bytes(p, n)) : h;
}

void append_words(const Column& column, uint64_t point, WipedVector<uint64_t>& out) {
  if (column.key_kind() == KeyKind::none) return;
  const Column& values = column.dictionary ? *column.dictionary : column;
  const auto word = [&](int64_t at) {
    return is_integer(values.kind) ? integer_at(values, at) : fingerprint(bytes_at(values, at), point);
  };
  WipedVector<uint64_t> known;
  if (column.dictionary && values.length <= column.length) {
    known.resize(static_cast<size_t>(values.length));
    for (int64_t code = 0; code < values.length; ++code)
      if (values.valid(code)) known[static_cast<size_t>(code)] = word(code);
  }
  for (int64_t i = 0; i < column.length; ++i) {
    if (!column.valid(i)) continue;
    const int64_t at = column.dictionary ? static_cast<int64_t>(integer_at(column, i)) : i;
    if (!values.valid(at)) continue;
    out.push_back(known.empty() ? word(at) : known[static_cast<size_t>(at)]);
  }
}

// One word for each item; `kind` is what all of them must be.
Out<uint64_t> item_words(nb::handle data, const std::string& kind, bool skip_nulls, uint64_t max_key_bytes,
                         uint64_t point) {
  auto source = open_column(data);
  WipedVector<uint64_t> words;
  {
    nb::gil_scoped_release release;
    for (Column chunk; source->next(chunk); chunk = Column()) {
      validate(chunk, {max_key_bytes, skip_nulls});
      const KeyKind given = chunk.key_kind();
      const bool fits = given == KeyKind::uint64 ? kind == "int64" && fits_other_sign(chunk) : kind == name_of(given);
      if (!fits && given != KeyKind::none && chunk.length)
        throw DataError("the universe has " + kind + " items, the column has " + name_of(given) +
                        " items or some outside that range");
      append_words(chunk, point % kPrime61, words);
    }
    source.reset();
  }
  return filled<uint64_t>(words.size(), [&](uint64_t* out) { std::copy(words.begin(), words.end(), out); });
}

// ---- sketches ------------------------------------------------------------------------------------------------------

// Estimates of words from the cells of a count sketch with these hashes.
Out<int64_t> sketch_estimates(Words words, In<int64_t> cells, uint64_t width, uint64_t depth, uint64_t seed) {
  if (width < 1 || depth < 1 || depth > kMaxDepth || depth % 2 == 0 || width * depth != cells.size())
    throw ParameterError("cells must be an odd number of rows of `width` numbers");
  CountSketch<IntKey> sketch(width, hashes_of(seed, depth), 0);
  return filled<int64_t>(words.size(), [&](int64_t* out) {
    sketch.assign({cells.data(), cells.data() + cells.size()}, 0, {});
    for (size_t i = 0; i < words.size(); ++i) out[i] = sketch.estimate(sketch.digest(IntKey{words.data()[i]}));
  });
}

std::string_view bytes_of(const nb::bytes& data) { return {static_cast<const char*>(data.data()), data.size()}; }

template <class Write>
nb::bytes written(Write&& write) {
  std::string out;
  {
    nb::gil_scoped_release release;
    out = write();
  }
  return nb::bytes(out.data(), out.size());
}

}  // namespace

void bind_multiparty(nb::module_& m) {
  m.def("item_words", &item_words, nb::arg("data"), nb::arg("kind"), nb::arg("skip_nulls"), nb::arg("max_key_bytes"),
        nb::arg("point"));
  m.def("sketch_estimates", &sketch_estimates, nb::arg("words"), nb::arg("cells"), nb::arg("width"), nb::arg("depth"),
        nb::arg("seed"));

  m.def(
      "hadamard_bits",
      [](Words numbers, Words words, int order, PublicKey key) {
        same_length(numbers.size(), words.size());
        if (order < 0 || order > 64) throw ParameterError("order must be from 0 to 64");
        return filled<uint8_t>(words.size(), [&](uint8_t* out) {
          oracle::hadamard_bits(key_of(key), order, numbers.data(), words.data(), words.size(), out);
        });
      },
      nb::arg("numbers"), nb::arg("words"), nb::arg("order"), nb::arg("key"));
  m.def(
      "hadamard_sums",
      [](Words numbers, In<uint8_t> bits, Words items, int order, PublicKey key) {
        same_length(numbers.size(), bits.size());
        if (order < 0 || order > 64) throw ParameterError("order must be from 0 to 64");
        for (size_t j = 0; order < 64 && j < items.size(); ++j)
          if (items.data()[j] >> order) throw ParameterError("an item is outside the matrix");
        return filled<int64_t>(items.size(), [&](int64_t* out) {
          oracle::hadamard_sums(key_of(key), order, numbers.data(), bits.data(), bits.size(), items.data(),
                                items.size(), out);
        });
      },
      nb::arg("numbers"), nb::arg("bits"), nb::arg("items"), nb::arg("order"), nb::arg("key"));

  m.def(
      "hash_buckets",
      [](Words numbers, Words words, uint32_t buckets, PublicKey key) {
        same_length(numbers.size(), words.size());
        return filled<uint32_t>(words.size(), [&](uint32_t* out) {
          oracle::hash_buckets(key_of(key), buckets, numbers.data(), words.data(), words.size(), out);
        });
      },
      nb::arg("numbers"), nb::arg("words"), nb::arg("buckets"), nb::arg("key"));
  m.def(
      "bucket_counts",
      [](Words numbers, In<uint32_t> reports, Words items, uint32_t buckets, PublicKey key) {
        same_length(numbers.size(), reports.size());
        for (size_t i = 0; i < reports.size(); ++i)
          if (reports.data()[i] >= buckets) throw ParameterError("a report is outside the buckets");
        return filled<int64_t>(items.size(), [&](int64_t* out) {
          oracle::bucket_counts(key_of(key), buckets, numbers.data(), reports.data(), reports.size(), items.data(),
                                items.size(), out);
        });
      },
      nb::arg("numbers"), nb::arg("reports"), nb::arg("items"), nb::arg("buckets"), nb::arg("key"));

  m.def(
      "row_cells",
      [](Words numbers, Words words, uint32_t columns, PublicKey key) {
        same_length(numbers.size(), words.size());
        return filled<int64_t>(words.size() * columns, [&](int64_t* out) {
          oracle::add_to_rows(key_of(key), columns, numbers.data(), words.data(), words.size(), out);
        });
      },
      nb::arg("numbers"), nb::arg("words"), nb::arg("columns"), nb::arg("key"));
  m.def(
      "row_sums",
      [](Words numbers, In<int32_t> cells, Words items, uint32_t columns, PublicKey key) {
        same_length(numbers.size() * columns, cells.size());
        return filled<int64_t>(items.size(), [&](int64_t* out) {
          oracle::row_sums(key_of(key), columns, numbers.data(), cells.data(), numbers.size(), items.data(),
                           items.size(), out);
        });
      },
      nb::arg("numbers"), nb::arg("cells"), nb::arg("items"), nb::arg("columns"), nb::arg("key"));

  m.def(
      "write_integers",
      [](In<int64_t> values) { return written([&] { return codec::write_integers(values.data(), values.size()); }); },
      nb::arg("values"));
  m.def(
      "read_integers",
      [](const nb::bytes& data, size_t count, int64_t bound) {
        return filled<int64_t>(count, [&](int64_t* out) { codec::read_integers(bytes_of(data), count, bound, out); });
      },
      nb::arg("data"), nb::arg("count"), nb::arg("bound"));
  m.def(
      "pack_values",
      [](In<uint32_t> values, uint32_t width) {
        return written([&] { return codec::pack(values.data(), values.size(), width); });
      },
      nb::arg("values"), nb::arg("width"));
  m.def(
      "unpack_values",
      [](const nb::bytes& data, size_t count, uint32_t width, uint64_t limit) {
        if (data.size() != (count * width + 7) / 8) throw DataError("message has the wrong length for its reports");
        return filled<uint32_t>(count, [&](uint32_t* out) { codec::unpack(bytes_of(data), count, width, limit, out); });
      },
      nb::arg("data"), nb::arg("count"), nb::arg("width"), nb::arg("limit"));
}

}  // namespace discreet
