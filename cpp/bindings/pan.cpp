// Pan-private tables for Python. A batch is gathered and checked as a whole, then applied without a way to fail: a
// copy to go back to would be a second state, and whoever reads the memory would see the element at two times.
#include "discreet/sketches/pan.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>

#include "discreet/sketches/pan_index.hpp"
#include "discreet/state.hpp"
#include "ingest.hpp"

namespace discreet::pan {
namespace {

using Numbers = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Noise = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Counts = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
using Index = std::variant<RangeIndex, IntegerIndex, StringIndex, HashedIndex>;

constexpr size_t kPart = 1024;  // elements located before they are applied
constexpr size_t kWords = 512;  // read from the system at once
constexpr uint64_t kMaxKeyBytes = 1u << 30;
constexpr uint32_t kMaxRounds = 16;  // announced intrusions; accuracy is long gone by then

uint64_t random_word() {
  uint64_t word;
  system_random(&word, sizeof word);
  return word;
}

// The entries of a part of a column, and room to find them; zeroed when the call ends.
struct Found {
  uint32_t entries[kPart];
  uint64_t patterns[kPart];
  size_t size = 0;
  void add(uint32_t entry) {  // without a branch: whether an element has an entry is hard to predict
    entries[size] = entry;
    size += entry != kAbsent;
  }
  ~Found() { wipe(this, sizeof *this); }
};

// The pattern of the integers that a column of the other signedness writes the same way as a different number.
template <class Known>
uint64_t forbidden(const Known& known, const Column& column) {
  return known.is_signed() == (column.kind == KeyKind::uint64) ? kTop : 0;
}

// The common case, 64-bit integers without nulls: first those that may have an entry, then their entries.
template <class Known>
void find_words(const Known& known, const Column& column, int64_t begin, int64_t end, Found& found) {
  const uint64_t* values = static_cast<const uint64_t*>(column.values) + column.offset;
  const uint64_t not_here = forbidden(known, column);
  size_t n = 0;
  for (int64_t i = begin; i < end; ++i) {
    found.patterns[n] = values[i];
    n += known.may_have(values[i]) & !(values[i] & not_here);
  }
  for (size_t i = 0; i < n; ++i) found.add(known.find(found.patterns[i]));
}

// The entry of an element of a mixed column; one of another kind than the universe is outside of it.
uint32_t entry_of(const Index& index, StrKey key) {
  const std::string_view bytes(key.data, key.size);
  const auto integer = [&](const auto& known) {
    if (!key.is_number()) return kAbsent;
    const uint64_t pattern = load64(key.data);
    const bool same = known.is_signed() ? key.tag == Tag::integer : key.tag == Tag::large || !(pattern & kTop);
    return same ? known.find(pattern) : kAbsent;
  };
  if (const auto* known = std::get_if<RangeIndex>(&index)) return integer(*known);
  if (const auto* known = std::get_if<IntegerIndex>(&index)) return integer(*known);
  if (const auto* known = std::get_if<StringIndex>(&index))
    return key.tag == (known->kind() == KeyKind::string ? Tag::text : Tag::bytes) ? known->find(bytes) : kAbsent;
  const auto& hashed = std::get<HashedIndex>(index);
  if (key.is_number()) return hashed.find_integer(load64(key.data), key.tag == Tag::large);
  return hashed.find_bytes(bytes, key.tag == Tag::text);
}

// The entry of element i of a column without a dictionary.
uint32_t entry_of(const Index& index, const Column& column, int64_t i) {
  if (!column.valid(i)) return kAbsent;
  if (column.tags) return entry_of(index, key_at(column, i, StrKey{}));
  const auto integer = [&](const auto& known) {
    const uint64_t pattern = integer_at(column, i);
    return pattern & forbidden(known, column) ? kAbsent : known.find(pattern);
  };
  if (const auto* known = std::get_if<RangeIndex>(&index)) return integer(*known);
  if (const auto* known = std::get_if<IntegerIndex>(&index)) return integer(*known);
  if (const auto* known = std::get_if<StringIndex>(&index)) return known->find(bytes_at(column, i));
  const auto& hashed = std::get<HashedIndex>(index);
  if (!is_integer(column.kind)) return hashed.find_bytes(bytes_at(column, i), column.kind == KeyKind::string);
  const uint64_t pattern = integer_at(column, i);
  return hashed.find_integer(pattern, column.kind == KeyKind::uint64 && (pattern & kTop));
}

void find_entries(const Index& index, const Column& column, int64_t begin, int64_t end, Found& found) {
  found.size = 0;
  if (!column.validity && (column.layout == Layout::i64 || column.layout == Layout::u64)) {
    if (const auto* known = std::get_if<RangeIndex>(&index)) return find_words(*known, column, begin, end, found);
    if (const auto* known = std::get_if<IntegerIndex>(&index)) return find_words(*known, column, begin, end, found);
  }
  for (int64_t i = begin; i < end; ++i) found.add(entry_of(index, column, i));
}

class PanTable {
 public:
  PanTable(Index index, uint64_t unseen, uint64_t seen) : index_(std::move(index)) {
    response_.unseen.threshold = unseen;
    response_.seen.threshold = seen;
  }

  uint32_t entries() const {
    return std::visit([](const auto& index) { return index.entries(); }, index_);
  }

  // Before any data: the cells of every entry, drawn from the source.
  void add_layer(Numbers modulus, Numbers step, bool bits, Shift shift, RandomSource* source) {
    Layer layer(entries(), {modulus.data(), modulus.data() + modulus.size()}, {step.data(), step.data() + step.size()},
                bits, std::move(shift));
    nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> hold(mutex_);
    with_random(source, [&](RandomBytes& random) { layer.start(response_, random); });
    layers_.push_back(std::move(layer));
  }

  void update(nb::handle data, bool skip_nulls, RandomSource* source) {
    auto columns = open_column(data, BadItems::skip);
    nb::gil_scoped_release release;
    if (updating_.load() == std::this_thread::get_id())
      throw DataError("the input reads the table it is being added to");
    const std::lock_guard<std::mutex> hold(mutex_);
    check_open();
    updating_ = std::this_thread::get_id();
    struct Done {
      std::atomic<std::thread::id>& id;
      ~Done() { id = std::thread::id(); }
    } done{updating_};

    std::vector<Column> batch;
    for (Column column; columns->next(column); column = Column()) {
      leave_out(column, validate(column, {kMaxKeyBytes, skip_nulls, BadItems::skip}));
      if (!column.untyped) check_kind(column.key_kind());
      // Objects of another kind than the universe are outside of it.
      if (!same_kind(column.key_kind()) && column.key_kind() != KeyKind::mixed) continue;
      batch.push_back(std::move(column));
    }
    with_random(source, [&](RandomBytes& random) {
      for (const Column& column : batch) column.dictionary ? feed_codes(column, random) : feed(column, random);
    });
  }

  void rerandomise(RandomSource* source) {
    nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> hold(mutex_);
    check_open();
    if (response_.rounds == kMaxRounds) throw ParameterError("at most 16 intrusions can be announced");
    with_random(source, [&](RandomBytes& random) {
      for (Layer& layer : layers_) layer.rerandomise(response_, random);
    });
    ++response_.rounds;
  }

  // Zeroes all cells for good: a cell drawn after this would tell that its element came.
  void erase() {
    nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> hold(mutex_);
    erased_ = true;
    for (Layer& layer : layers_) layer.erase();
  }

  // How many bits are 1 in consecutive groups of entries of the given size, from `begin` on, plus the noise. The counts
  // without noise never leave this function.
  Counts noisy_ones(size_t layer, uint32_t begin, uint32_t group, Noise noise) const {
    const size_t groups = noise.size();
    auto owned = std::make_unique<int64_t[]>(groups);
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> hold(mutex_);
      const auto& bits = layers_.at(layer).bits();
      if (begin + static_cast<uint64_t>(group) * groups > bits.size()) throw ParameterError("no such entries");
      const uint8_t* bit = bits.data() + begin;
      for (size_t g = 0; g < groups; ++g) {
        owned[g] = noise.data()[g];
        for (uint32_t i = 0; i < group; ++i) owned[g] += *bit++;
      }
    }
    return give(std::move(owned), groups);
  }

  // The sum over the layers of weight times the number of bits that are 1, plus one noise.
  int64_t noisy_weighted_ones(const std::vector<int64_t>& weights, Noise noise) const {
    nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> hold(mutex_);
    if (weights.size() != layers_.size() || noise.size() != 1) throw ParameterError("one weight a layer, one noise");
    int64_t sum = noise.data()[0];
    for (size_t layer = 0; layer < layers_.size(); ++layer)
      for (const uint8_t bit : layers_[layer].bits()) sum += weights[layer] * bit;
    return sum;
  }

  // Of the bits whose counter is from `low` to `high` - 1, over the entries with a modulus of at least `high`: how many
  // are 1 less how many are 0, plus one noise.
  int64_t noisy_signs(size_t layer, uint64_t low, uint64_t high, Noise noise) const {
    nb::gil_scoped_release release;
    const std::lock_guard<std::mutex> hold(mutex_);
    if (noise.size() != 1) throw ParameterError("one noise");
    const Layer& cells = layers_.at(layer);
    const auto& bits = cells.bits();
    int64_t sum = noise.data()[0];
    for (uint32_t i = 0; i < bits.size(); ++i) {
      const uint64_t counter = cells.only_bits() ? 0 : cells.counters()[i];
      if (cells.modulus(i) >= high && low <= counter && counter < high) sum += bits[i] ? 1 : -1;
    }
    return sum;
  }

  // Of the bits in consecutive groups of `group` entries, for each value of their counters: how many are 1 less how
  // many are 0, plus the noise. Counters run fastest.
  Counts noisy_signs_by_counter(size_t layer, uint32_t group, Noise noise) const {
    auto owned = std::make_unique<int64_t[]>(noise.size());
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> hold(mutex_);
      const Layer& cells = layers_.at(layer);
      const auto& bits = cells.bits();
      const uint64_t modulus = cells.modulus(0);
      if (cells.moduli().size() != 1 || group == 0 || bits.size() / group * modulus != noise.size())
        throw ParameterError("one noise for each group and counter");
      std::copy(noise.data(), noise.data() + noise.size(), owned.get());
      for (size_t i = 0; i < bits.size() / group * group; ++i) {
        const uint64_t counter = cells.only_bits() ? 0 : cells.counters()[i];
        owned[i / group * modulus + counter] += bits[i] ? 1 : -1;
      }
    }
    return give(std::move(owned), noise.size());
  }

  // How many counters have each residue, plus the noise.
  Counts noisy_residues(size_t layer, Noise noise) const {
    auto owned = std::make_unique<int64_t[]>(noise.size());
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> hold(mutex_);
      const Layer& cells = layers_.at(layer);
      if (cells.moduli().size() != 1 || cells.modulus(0) != noise.size())
        throw ParameterError("one noise for each residue");
      std::copy(noise.data(), noise.data() + noise.size(), owned.get());
      for (const uint64_t counter : cells.counters()) ++owned[counter];
    }
    return give(std::move(owned), noise.size());
  }

  // For counters modulo a prime: how many of counter - target are nonzero squares, and, if there is a second noise, how
  // many are zero; plus the noise.
  Counts noisy_squares(size_t layer, uint64_t target, Noise noise) const {
    const size_t wanted = noise.size();
    if (wanted != 1 && wanted != 2) throw ParameterError("one noise or two");
    auto owned = std::make_unique<int64_t[]>(wanted);
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> hold(mutex_);
      const Layer& cells = layers_.at(layer);
      const uint64_t prime = cells.modulus(0), back = prime - target % prime;
      std::copy(noise.data(), noise.data() + wanted, owned.get());
      for (const uint64_t counter : cells.counters()) {
        const int symbol = legendre(counter + back, prime);
        owned[0] += symbol == 1;
        if (wanted == 2) owned[1] += symbol == 0;
      }
    }
    return give(std::move(owned), wanted);
  }

  // The whole table: it may be shown to one intruder, which is what its guarantee speaks of.
  nb::bytes to_bytes() const {
    StateWriter out;
    {
      nb::gil_scoped_release release;
      const std::lock_guard<std::mutex> hold(mutex_);
      write_index(out);
      out.u64(response_.unseen.threshold);
      out.u64(response_.seen.threshold);
      out.u32(response_.rounds);
      out.u8(erased_);
      out.u32(static_cast<uint32_t>(layers_.size()));
      for (const Layer& layer : layers_) write_layer(out, layer);
    }
    const std::string payload = out.payload();
    return nb::bytes(payload.data(), payload.size());
  }

  static std::unique_ptr<PanTable> from_bytes(const nb::bytes& data) {
    StateReader in({static_cast<const char*>(data.data()), data.size()});
    try {
      Index index = read_index(in);
      const uint64_t unseen = in.u64(), seen = in.u64();
      auto table = std::make_unique<PanTable>(std::move(index), unseen, seen);
      table->response_.rounds = in.u32();
      if (table->response_.rounds > kMaxRounds) throw CorruptStateError("state has too many announced intrusions");
      table->erased_ = flag(in);
      for (uint32_t layers = in.u32(); layers > 0; --layers) table->read_layer(in);
      in.finish();
      return table;
    } catch (const ParameterError& error) {
      throw CorruptStateError(std::string("state has a table that cannot be: ") + error.what());
    }
  }

  // For audits and tests: the cells as they are, which is what an intruder sees.
  nb::object seen_by_intruder(size_t layer) const {
    nb::list counters, bits;
    const Layer& cells = layers_.at(layer);
    for (const uint64_t counter : cells.counters()) counters.append(counter);
    for (const uint8_t bit : cells.bits()) bits.append(bit);
    return nb::make_tuple(counters, bits);
  }

  uint32_t rounds() const { return response_.rounds; }
  bool erased() const { return erased_; }
  uint64_t unseen() const { return response_.unseen.threshold; }
  uint64_t seen() const { return response_.seen.threshold; }
  size_t layers() const { return layers_.size(); }
  uint64_t modulus(size_t layer) const { return layers_.at(layer).modulus(0); }
  const Index& index() const { return index_; }

 private:
  // A source of its own for each call unless a test brings one: words it read ahead are gone when the call ends.
  template <class F>
  static void with_random(RandomSource* given, F&& f) {
    std::optional<RandomSource> own;
    if (!given) given = &own.emplace();
    const auto drawing = given->draw(kWords);
    RandomBytes random(*given);
    f(random);
  }

  static Counts give(std::unique_ptr<int64_t[]> owned, size_t size) {
    int64_t* data = owned.release();
    nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<int64_t*>(memory); });
    return Counts(data, {size}, owner);
  }

  void check_open() const {
    if (erased_) throw ParameterError("the last release was made and the table erased; start a new estimator");
  }

  bool same_kind(KeyKind kind) const {
    if (kind == KeyKind::none || std::holds_alternative<HashedIndex>(index_)) return true;
    const auto* strings = std::get_if<StringIndex>(&index_);
    return strings ? kind == strings->kind() : is_integer(kind);
  }
  void check_kind(KeyKind kind) const {
    if (same_kind(kind)) return;
    const auto* strings = std::get_if<StringIndex>(&index_);
    throw DataError(std::string("the universe has ") + (strings ? name_of(strings->kind()) : "integer") +
                    " elements, the column has " + name_of(kind) + " items");
  }

  void feed(const Column& column, RandomBytes& random) {
    if (column.kind == KeyKind::none) return;
    Found found;
    for (int64_t begin = 0; begin < column.length; begin += kPart) {
      find_entries(index_, column, begin, std::min<int64_t>(column.length, begin + kPart), found);
      apply(found, random);
    }
  }

  // Every value of a dictionary is located once.
  void feed_codes(const Column& column, RandomBytes& random) {
    const Column& dictionary = *column.dictionary;
    if (dictionary.kind == KeyKind::none) return;
    WipedVector<uint32_t> by_code(static_cast<size_t>(dictionary.length));
    for (int64_t code = 0; code < dictionary.length; ++code)
      by_code[static_cast<size_t>(code)] = entry_of(index_, dictionary, code);
    Found found;
    for (int64_t begin = 0; begin < column.length; begin += kPart) {
      const int64_t end = std::min<int64_t>(column.length, begin + kPart);
      found.size = 0;
      for (int64_t i = begin; i < end; ++i)
        if (column.valid(i)) found.add(by_code[integer_at(column, i)]);
      apply(found, random);
    }
  }

  void apply(const Found& found, RandomBytes& random) {
    if (layers_.size() == 1 && layers_[0].only_bits()) {
      uint8_t* bits = layers_[0].bits().data();
      const Response response = response_;
      for (size_t i = 0; i < found.size; ++i) bits[found.entries[i]] = response.draw_seen(random);
      return;
    }
    for (Layer& layer : layers_)
      for (size_t i = 0; i < found.size; ++i) layer.occur(found.entries[i], response_, random);
  }

  // ---- state -------------------------------------------------------------------------------------------------------

  void write_index(StateWriter& out) const {
    out.u8(static_cast<uint8_t>(index_.index()));
    if (const auto* range = std::get_if<RangeIndex>(&index_)) {
      out.u64(range->first());
      out.u8(range->is_signed());
      out.u32(range->entries());
    } else if (const auto* integers = std::get_if<IntegerIndex>(&index_)) {
      out.u8(integers->is_signed());
      out.u64(integers->keys().size());
      for (const uint64_t key : integers->keys()) out.u64(key);
    } else if (const auto* strings = std::get_if<StringIndex>(&index_)) {
      out.u8(static_cast<uint8_t>(strings->kind()));
      out.u64(strings->keys().size());
      for (const std::string& key : strings->keys())
        out.key(StrKey{key.data(), static_cast<uint32_t>(key.size())}, strings->kind());
    } else {
      const auto& hashed = std::get<HashedIndex>(index_);
      for (const uint64_t seed : hashed.seeds()) out.u64(seed);
      out.u32(hashed.levels());
      out.u32(hashed.buckets());
    }
  }

  static Index read_index(StateReader& in) {
    const uint8_t which = in.u8();
    if (which == 0) {
      const uint64_t first = in.u64();
      const bool is_signed = flag(in);
      return RangeIndex(first, is_signed, entry_count(in.u32()));
    }
    if (which == 1) {
      const bool is_signed = flag(in);
      std::vector<uint64_t> keys(entry_count(in.records(8)));
      for (uint64_t& key : keys) key = in.u64();
      return IntegerIndex(std::move(keys), is_signed, random_word());
    }
    if (which == 2) {
      const auto kind = static_cast<KeyKind>(in.u8());
      if (kind != KeyKind::string && kind != KeyKind::binary) throw CorruptStateError("state has an unknown key kind");
      std::vector<std::string> keys(entry_count(in.records(4)));
      for (std::string& key : keys) {
        StrKey view;
        in.key(view, kind);
        key.assign(view.data, view.size);
      }
      return StringIndex(kind, std::move(keys), random_word());
    }
    if (which != 3) throw CorruptStateError("state has an unknown kind of universe");
    HashedIndex::Seeds seeds;
    for (uint64_t& seed : seeds) seed = in.u64();
    const uint32_t levels = in.u32(), buckets = in.u32();
    entry_count(static_cast<uint64_t>(levels) * buckets);
    return HashedIndex(seeds, levels, buckets);
  }

  static bool flag(StateReader& in) {
    const uint8_t value = in.u8();
    if (value > 1) throw CorruptStateError("state has a flag that is neither 0 nor 1");
    return value == 1;
  }
  static uint32_t entry_count(uint64_t entries) {
    if (entries < 1 || entries > UINT32_MAX - 1) throw CorruptStateError("state has no or too many entries");
    return static_cast<uint32_t>(entries);
  }

  static void write_layer(StateWriter& out, const Layer& layer) {
    for (const auto* numbers : {&layer.moduli(), &layer.steps()}) {
      out.u64(numbers->size());
      for (const uint64_t number : *numbers) out.u64(number);
    }
    const Shift& shift = layer.shift();
    out.u8(static_cast<uint8_t>(shift.law));
    out.u64(shift.coin.threshold);
    out.u64(shift.cumulative.size());
    for (const uint64_t sum : shift.cumulative) out.u64(sum);
    out.u64(layer.counters().size());
    for (const uint64_t counter : layer.counters()) out.u64(counter);
    out.u64(layer.bits().size());
    uint8_t packed = 0;
    for (size_t i = 0; i < layer.bits().size(); ++i) {
      packed |= static_cast<uint8_t>(layer.bits()[i] << (i & 7));
      if ((i & 7) == 7 || i + 1 == layer.bits().size()) {
        out.u8(packed);
        packed = 0;
      }
    }
  }

  void read_layer(StateReader& in) {
    const auto numbers = [&in] {
      std::vector<uint64_t> out(in.records(8));
      for (uint64_t& number : out) number = in.u64();
      return out;
    };
    std::vector<uint64_t> modulus = numbers(), step = numbers();
    if (modulus.empty() || step.empty()) throw CorruptStateError("state has a layer without a modulus");
    Shift shift;
    const uint8_t law = in.u8();
    if (law > 2) throw CorruptStateError("state has an unknown law");
    shift.law = static_cast<Shift::Law>(law);
    shift.coin.threshold = in.u64();
    shift.cumulative = numbers();
    if (!std::is_sorted(shift.cumulative.begin(), shift.cumulative.end()))
      throw CorruptStateError("state has weights out of order");
    const std::vector<uint64_t> counters = numbers();
    const uint64_t bits = in.u64();
    const std::string_view packed = in.bytes(bits / 8 + (bits % 8 != 0));
    if ((!bits && counters.empty()) || (bits && bits != entries()) || (!counters.empty() && counters.size() != entries()))
      throw CorruptStateError("state has a layer of the wrong size");
    Layer layer(entries(), std::move(modulus), std::move(step), bits > 0, std::move(shift));
    if (layer.counters().size() != counters.size()) throw CorruptStateError("state has a layer of the wrong size");
    for (uint32_t i = 0; i < counters.size(); ++i) {
      if (counters[i] >= layer.modulus(i)) throw CorruptStateError("state has a counter beyond its modulus");
      layer.counters()[i] = counters[i];
    }
    for (uint64_t i = 0; i < bits; ++i) layer.bits()[i] = static_cast<uint8_t>(packed[i >> 3]) >> (i & 7) & 1;
    layers_.push_back(std::move(layer));
  }

  mutable std::mutex mutex_;
  std::atomic<std::thread::id> updating_{};
  Index index_;
  Response response_;
  std::vector<Layer> layers_;
  bool erased_ = false;
};

std::vector<uint64_t> copied(const Numbers& numbers) { return {numbers.data(), numbers.data() + numbers.size()}; }

}  // namespace
}  // namespace discreet::pan

namespace discreet {

void bind_pan(nb::module_& m) {
  using namespace pan;
  nb::class_<PanTable>(m, "PanTable", "A table of which every state is private; see discreet.pan.")
      .def_static(
          "of_range",
          [](uint64_t first, bool is_signed, uint32_t size, uint64_t unseen, uint64_t seen) {
            return std::make_unique<PanTable>(RangeIndex(first, is_signed, size), unseen, seen);
          },
          nb::arg("first"), nb::arg("is_signed"), nb::arg("size"), nb::arg("unseen"), nb::arg("seen"))
      .def_static(
          "of_integers",
          [](Numbers keys, bool is_signed, uint64_t unseen, uint64_t seen) {
            return std::make_unique<PanTable>(IntegerIndex(copied(keys), is_signed, random_word()), unseen, seen);
          },
          nb::arg("keys"), nb::arg("is_signed"), nb::arg("unseen"), nb::arg("seen"))
      .def_static(
          "of_strings",
          [](const std::vector<nb::bytes>& keys, bool text, uint64_t unseen, uint64_t seen) {
            std::vector<std::string> copies;
            for (const nb::bytes& key : keys) copies.emplace_back(static_cast<const char*>(key.data()), key.size());
            return std::make_unique<PanTable>(
                StringIndex(text ? KeyKind::string : KeyKind::binary, std::move(copies), random_word()), unseen, seen);
          },
          nb::arg("keys"), nb::arg("text"), nb::arg("unseen"), nb::arg("seen"))
      .def_static(
          "of_hashes",
          [](const HashedIndex::Seeds& seeds, uint32_t levels, uint32_t buckets, uint64_t unseen, uint64_t seen) {
            return std::make_unique<PanTable>(HashedIndex(seeds, levels, buckets), unseen, seen);
          },
          nb::arg("seeds"), nb::arg("levels"), nb::arg("buckets"), nb::arg("unseen"), nb::arg("seen"))
      .def(
          "add_bits",
          [](PanTable& self, Numbers modulus, Numbers step, RandomSource* source) {
            self.add_layer(modulus, step, true, Shift(), source);
          },
          nb::arg("modulus"), nb::arg("step"), nb::arg("source").none())
      .def(
          "add_counters",
          [](PanTable& self, Numbers modulus, Numbers step, Numbers cumulative, RandomSource* source) {
            self.add_layer(modulus, step, false, Shift{Shift::Law::weights, copied(cumulative), {}}, source);
          },
          nb::arg("modulus"), nb::arg("step"), nb::arg("cumulative"), nb::arg("source").none())
      .def(
          "add_square_counters",
          [](PanTable& self, Numbers modulus, Numbers step, uint64_t square, RandomSource* source) {
            self.add_layer(modulus, step, false, Shift{Shift::Law::squares, {}, {square}}, source);
          },
          nb::arg("modulus"), nb::arg("step"), nb::arg("square"), nb::arg("source").none())
      .def("update", &PanTable::update, nb::arg("data"), nb::arg("skip_nulls"), nb::arg("source").none())
      .def("rerandomise", &PanTable::rerandomise, nb::arg("source").none())
      .def("erase", &PanTable::erase)
      .def("noisy_ones", &PanTable::noisy_ones, nb::arg("layer"), nb::arg("begin"), nb::arg("group"), nb::arg("noise"))
      .def("noisy_weighted_ones", &PanTable::noisy_weighted_ones, nb::arg("weights"), nb::arg("noise"))
      .def("noisy_signs", &PanTable::noisy_signs, nb::arg("layer"), nb::arg("low"), nb::arg("high"), nb::arg("noise"))
      .def("noisy_signs_by_counter", &PanTable::noisy_signs_by_counter, nb::arg("layer"), nb::arg("group"),
           nb::arg("noise"))
      .def("noisy_residues", &PanTable::noisy_residues, nb::arg("layer"), nb::arg("noise"))
      .def("noisy_squares", &PanTable::noisy_squares, nb::arg("layer"), nb::arg("target"), nb::arg("noise"))
      .def("seen_by_intruder", &PanTable::seen_by_intruder, nb::arg("layer"))
      .def("to_bytes", &PanTable::to_bytes)
      .def_static("from_bytes", &PanTable::from_bytes, nb::arg("data"))
      .def("modulus", &PanTable::modulus, nb::arg("layer"))
      .def_prop_ro("entries", &PanTable::entries)
      .def_prop_ro("layers", &PanTable::layers)
      .def_prop_ro("erased", &PanTable::erased)
      .def_prop_ro("unseen", &PanTable::unseen)
      .def_prop_ro("seen", &PanTable::seen)
      .def_prop_ro("rounds", &PanTable::rounds);
}

}  // namespace discreet
