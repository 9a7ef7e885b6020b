// Random sources and exact integer laws. The lock of a source is only held while the GIL is not.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <thread>
#include <tuple>
#include <vector>

#include "discreet/in_threads.hpp"
#include "discreet/noise/random_source.hpp"
#include "discreet/noise/samplers.hpp"
#include "plain_memory.hpp"

namespace discreet {
namespace {

// Draws between two looks at the lock: short enough that other threads, and a fork, do not wait long.
constexpr std::size_t kChunk = 1 << 16;

// Fills `size` integers with fill(out, first, last), chunk by chunk under the lock; words(n) are read for n of them.
template <class Words, class Fill>
NumbersView draw(RandomSource& source, std::size_t size, Words words, Fill fill) {
  std::int64_t* out;
  NumbersView values = unwritten_integers(size, out);
  nb::gil_scoped_release release;
  for (std::size_t first = 0; first < size; first += kChunk) {
    const std::size_t last = std::min(size, first + kChunk);
    const auto drawing = source.draw(words(last - first));
    fill(out, first, last);
  }
  return values;
}

// Fills `size` integers with fill(out) under one lock: a permutation is not made of independent chunks.
template <class Fill>
NumbersView draw_whole(RandomSource& source, std::size_t size, Fill fill) {
  std::int64_t* out;
  NumbersView values = unwritten_integers(size, out);
  nb::gil_scoped_release release;
  const auto drawing = source.draw(size);
  fill(out);
  return values;
}

nb::bytes random_bytes(RandomSource& source, std::size_t count) {
  std::vector<std::uint64_t> words((count + 7) / 8);
  {
    nb::gil_scoped_release release;
    const auto drawing = source.draw(words.size());
    for (std::uint64_t& word : words) word = source.next();
  }
  nb::bytes result(reinterpret_cast<const char*>(words.data()), count);
  std::fill(words.begin(), words.end(), 0);
  asm volatile("" : : "r"(words.data()) : "memory");
  return result;
}

// (index, negative, block_known, bits, word, block, offset)
using PendingTuple = std::tuple<std::size_t, bool, bool, int, std::uint64_t, std::uint64_t, std::uint64_t>;

// Draws by threads, each from a source of its own over the system's generator, which are as independent as two draws from
// one. A seeded source is one sequence: its draws are made one after the other, whatever the machine has.
NumbersView draw_law_in_threads(const IntegerLaw& law, std::size_t size, std::size_t threads,
                                std::vector<Pending>& pending) {
  std::int64_t* out;
  NumbersView values = unwritten_integers(size, out);
  nb::gil_scoped_release release;
  std::vector<std::vector<Pending>> found(threads);
  in_threads(threads, [&](std::size_t thread) {
    RandomSource own;
    const std::size_t end = size / threads * (thread + 1) + (thread + 1 == threads ? size % threads : 0);
    for (std::size_t first = size / threads * thread; first < end; first += kChunk) {
      const std::size_t last = std::min(end, first + kChunk);
      const auto drawing = own.draw(law.words(last - first));
      law.draw(own, out, first, last, found[thread]);
    }
  });
  for (const auto& some : found) pending.insert(pending.end(), some.begin(), some.end());
  return values;
}

std::tuple<NumbersView, std::vector<PendingTuple>> draw_law(const IntegerLaw& law, RandomSource& source, std::size_t size) {
  constexpr std::size_t kManyDraws = 1 << 17;  // worth a thread
  std::vector<Pending> pending;
  const std::size_t threads =
      std::clamp<std::size_t>(size / kManyDraws, 1, std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  NumbersView values = threads > 1 && !source.seeded()
                           ? draw_law_in_threads(law, size, threads, pending)
                           : draw(
                                 source, size, [&](std::size_t n) { return law.words(n); },
                                 [&](std::int64_t* out, std::size_t first, std::size_t last) {
                                   law.draw(source, out, first, last, pending);
                                 });
  std::vector<PendingTuple> rest;
  for (const Pending& p : pending)
    rest.emplace_back(p.index, p.negative, p.block_known, p.bits, p.word, p.block, p.offset);
  return {std::move(values), std::move(rest)};
}

}  // namespace

void bind_noise(nb::module_& m) {
  nb::class_<RandomSource>(m, "RandomSource", "Random words from the system, or from a seed. Safe to share by threads.")
      .def(nb::init<>())
      .def(nb::init<std::uint64_t>(), nb::arg("seed"))
      .def(nb::init<std::vector<std::uint64_t>>(), nb::arg("replay"))
      .def_prop_ro("seeded", &RandomSource::seeded)
      .def("bytes", &random_bytes, nb::arg("count"))
      .def(
          "uniform_integers",
          [](RandomSource& source, std::uint64_t high, std::size_t size) {
            return draw(
                source, size, [](std::size_t n) { return n; },
                [&](std::int64_t* out, std::size_t first, std::size_t last) {
                  for (std::size_t i = first; i < last; ++i) out[i] = static_cast<std::int64_t>(source.below(high));
                });
          },
          nb::arg("high"), nb::arg("size"))
      .def(
          "sample_without_replacement",
          [](RandomSource& source, std::uint64_t population, std::size_t count) {
            return draw_whole(source, count, [&](std::int64_t* out) {
              discreet::sample_without_replacement(source, population, out, count);
            });
          },
          nb::arg("population"), nb::arg("count"))
      .def(
          "permutation",
          [](RandomSource& source, std::size_t count) {
            return draw_whole(source, count,
                              [&](std::int64_t* out) { discreet::permutation(source, out, count); });
          },
          nb::arg("count"));

  nb::enum_<IntegerLaw::Sign>(m, "Sign", "How a law treats the sign of what it draws.")
      .value("none", IntegerLaw::Sign::none)
      .value("folded", IntegerLaw::Sign::folded)
      .value("reject_negative_zero", IntegerLaw::Sign::reject_negative_zero);

  nb::class_<IntegerLaw>(m, "IntegerLaw", "A law on the integers, drawn by inversion of a table of enclosures.")
      .def(nb::init<std::vector<std::uint64_t>, int, IntegerLaw::Sign, int, std::vector<std::uint64_t>, std::uint64_t>(),
           nb::arg("bounds"), nb::arg("bits"), nb::arg("sign"), nb::arg("block_bits"), nb::arg("slopes"),
           nb::arg("curvature"))
      .def("draw", &draw_law, nb::arg("source"), nb::arg("size"),
           "The draws, and for those not decided: index, negative, block_known, bits, word, block, offset.");
}

}  // namespace discreet
