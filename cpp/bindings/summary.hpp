// What every summary of the module shares: key kinds, batches, locking, rollback, states. A family adds its kernel
// and its parameters.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <variant>

#include "discreet/lineage.hpp"
#include "discreet/sketches/widen.hpp"
#include "discreet/state.hpp"
#include "ingest.hpp"

namespace discreet {

// Lets Ctrl-C through during long updates: every 100 ms the main thread asks Python for pending signals.
class InterruptCheck {
 public:
  // Off until there is a copy to go back to: an interrupted update must leave no trace.
  void enable() { enabled_ = true; }
  void operator()() {
    if (enabled_) unchanged();
  }
  // The same, where the update has changed nothing yet since the last copy.
  void unchanged() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
  }

 private:
  bool enabled_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

inline constexpr int64_t kSlice = 1 << 18;  // elements between two looks at the clock

// Checks a column, a slice at a time, and returns the rows to leave out.
inline BadRows bad_rows(const Column& column, const Checks& checks, InterruptCheck& interrupt) {
  BadRows bad;
  const int64_t rows = column.dictionary ? kSlice << 6 : kSlice;  // codes are quick, but each slice checks the values
  for (int64_t begin = 0; begin < column.length; begin += rows) {
    Column slice = column;
    slice.offset += begin;
    slice.length = std::min(rows, column.length - begin);
    for (const int64_t row : validate(slice, checks)) bad.push_back(begin + row);
    interrupt.unchanged();
  }
  return bad;
}
inline void validate_column(Column& column, const Checks& checks, InterruptCheck& interrupt) {
  if (column.passed == checks) return;
  leave_out(column, bad_rows(column, checks, interrupt));
}

// Feeds a validated column to a kernel that counts single items.
template <class Key, class Kernel>
void feed_column(Kernel& kernel, const Column& column, InterruptCheck& interrupt) {
  const auto in_slices = [&](auto&& part) {
    for (int64_t begin = 0; begin < column.length; begin += kSlice) {
      part(begin, std::min(column.length, begin + kSlice));
      interrupt();
    }
  };
  const bool coded = column.dictionary && column.dictionary->length <= column.length;
  if (!column.dictionary) {
    in_slices([&](int64_t begin, int64_t end) {
      for_blocks(column, begin, end, kernel.seed(), Key{}, [&](const Key* keys, const uint64_t* hashes, size_t n) {
        kernel.add_block(keys, hashes, n);
      });
    });
    return;
  }
  if constexpr (std::is_same_v<Key, StrKey> && requires { kernel.about_to_grow(); }) {
    // Setting up takes a pass over the table: not for a few rows and a large table.
    if (coded && kernel.table().positions() <= 16 * static_cast<uint64_t>(column.length)) {
      const std::vector<uint64_t> hashes = code_hashes(*column.dictionary, kernel.seed());
      DictionaryFeed<Kernel> feed(kernel, column, hashes);
      in_slices([&](int64_t begin, int64_t end) { feed.feed(begin, end); });
      feed.settle();
      return;
    }
  }
  // Integers, or few rows: looking each row's key up costs less than setting up the codes.
  const Column& dictionary = *column.dictionary;
  in_slices([&](int64_t begin, int64_t end) {
    Key keys[kBlock];
    uint64_t hashes[kBlock];
    size_t n = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (!column.valid(i)) continue;
      const int64_t code = static_cast<int64_t>(integer_at(column, i));
      if (dictionary.kind == KeyKind::none || !dictionary.valid(code)) continue;
      keys[n] = key_at(dictionary, code, Key{});
      hashes[n] = keys[n].hash(kernel.seed());
      if (++n == kBlock) {
        kernel.add_block(keys, hashes, n);
        n = 0;
      }
    }
    kernel.add_block(keys, hashes, n);
  });
}

// Keys and counts as bytes that NumPy and pyarrow wrap: (key kind, values, 64-bit offsets or empty, counts, tags of mixed
// keys or empty).
using RawCounters = std::tuple<std::string, nb::bytes, nb::bytes, nb::bytes, nb::bytes>;

template <class Counters>
RawCounters raw_counters(KeyKind kind, const Counters& counters) {
  // What is written follows from the keys: an interner of any kind has integers as keys of 8 bytes, too.
  constexpr bool kNumbers = requires { counters.front().key.value; };
  const size_t rows = counters.size();
  size_t bytes = 0;
  for (const auto& c : counters) {
    if constexpr (kNumbers) {
      bytes += sizeof c.key.value;
    } else {
      bytes += c.key.size;
    }
  }
  const size_t ends = kNumbers ? (is_integer(kind) ? 0 : 1) : rows + 1;
  nb::bytes values = unwritten(bytes), offsets = unwritten(8 * ends), counts = unwritten(8 * rows),
            tags = unwritten(!kNumbers && kind == KeyKind::mixed ? rows : 0);
  char *value = written(values), *offset = written(offsets), *count = written(counts), *tag = written(tags);
  const char* first = value;
  const auto put = [](char*& out, uint64_t v) {
    std::memcpy(out, &v, 8);
    out += 8;
  };
  if (ends) put(offset, 0);
  for (const auto& c : counters) {
    if constexpr (kNumbers) {
      put(value, c.key.value);
    } else {
      if (c.key.size) std::memcpy(value, c.key.data, c.key.size);
      value += c.key.size;
      put(offset, static_cast<uint64_t>(value - first));
      if (kind == KeyKind::mixed) *tag++ = static_cast<char>(c.key.tag);
    }
    put(count, c.count);
  }
  return {name_of(kind), values, offsets, counts, tags};
}

// What copies share until one of them changes: copying is free, and whoever changes what others hold too copies it first.
// Each holder is guarded by a lock of its own. One that holds it alone, under its lock, stays alone: another would have
// to come through that lock.
template <class T>
class Shared {
 public:
  explicit Shared(T value = T()) : held_(std::make_shared<T>(std::move(value))) {}
  const T& operator*() const { return *held_; }
  T& own() {
    if (held_.use_count() > 1) held_ = std::make_shared<T>(*held_);
    std::atomic_thread_fence(std::memory_order_acquire);  // what the last one to let go has read is read
    return *held_;
  }

 private:
  std::shared_ptr<T> held_;
};

// A summary with a kernel for each kind of key. `Family` gives:
//   template <class Key> using Kernel; Parameters parameters; make<Key>() -> Kernel<Key>.
template <class Family>
class Summary {
 public:
  template <class Key>
  using Kernel = typename Family::template Kernel<Key>;
  using Kernels = std::variant<std::monostate, Kernel<IntKey>, Kernel<StrKey>>;

  Family family;
  uint64_t max_key_bytes;
  bool merged = false;
  Lineage lineage;

  Summary(Family family, uint64_t max_key_bytes) : family(std::move(family)), max_key_bytes(max_key_bytes) {}

  // Runs f on the kernel under the lock, without the GIL; `otherwise` when there is no key yet.
  template <class F, class T>
  T read(F&& f, T otherwise) const {
    nb::gil_scoped_release release;
    const auto lock = hold();
    return read_locked(f, std::move(otherwise));
  }
  template <class F, class T>
  T read_locked(F&& f, T otherwise) const {
    if (auto* k = std::get_if<1>(&*kernels_)) return f(*k);
    if (auto* k = std::get_if<2>(&*kernels_)) return f(*k);
    return otherwise;
  }

  KeyKind kind() const {
    nb::gil_scoped_release release;
    const auto lock = hold();
    return kind_;
  }

  // A change that happens completely or leaves no trace: what it is put back to, once there is a copy.
  class Change {
   public:
    explicit Change(Summary& summary) : summary_(summary) {}
    KeyKind kind() const { return summary_.kind_; }
    bool has_copy() const { return before_ != nullptr; }
    void keep_copy() { before_ = std::make_unique<State>(summary_.kind_, summary_.kernels_); }
    void undo() {
      if (!before_) return;
      summary_.kind_ = before_->first;
      summary_.kernels_ = std::move(before_->second);
    }

   private:
    using State = std::pair<KeyKind, Shared<Kernels>>;
    Summary& summary_;
    std::unique_ptr<State> before_;
  };

  // Runs f(change) under the lock, without the GIL. If f throws, the summary goes back to the copy that was kept.
  template <class F>
  void change(F&& f) {
    nb::gil_scoped_release release;
    const auto lock = hold();
    updating_ = std::this_thread::get_id();
    struct Done {
      std::atomic<std::thread::id>& id;
      ~Done() { id = std::thread::id(); }
    } done{updating_};
    Change made(*this);
    try {
      f(made);
      if (kind_ != KeyKind::none) lineage.start();
    } catch (...) {
      made.undo();
      throw;
    }
  }

  // Takes the chunks of a source; each is checked before it changes anything, and if a later one fails or Ctrl-C
  // arrives, the summary is put back as it was. `check(chunk, checks, interrupt)` validates,
  // `feed(kernel, chunk, key, interrupt)` applies, `items(chunk)` gives the items.
  template <class Source, class Chunk, class Check, class Items, class Feed>
  void update(Source& source, Chunk, bool skip_nulls, BadItems bad, Check&& check, Items&& items, Feed&& feed) {
    change([&](Change& made) {
      InterruptCheck interrupt;
      const Checks checks{max_key_bytes, skip_nulls, bad};
      Chunk chunk, following;
      bool more = source.next(chunk);
      while (more) {
        check(chunk, checks, interrupt);
        const bool empty = !any_valid(items(chunk));  // nulls only, or rows that cannot be items: they decide nothing
        const KeyKind kind = empty ? kind_ : combined_kind(kind_, items(chunk));
        more = source.next(following);
        if (!made.has_copy() && (more || items(chunk).length > kSlice)) {
          made.keep_copy();
          interrupt.enable();
        }
        if (!empty) {
          start(kind);
          if (kind == KeyKind::mixed) items(chunk) = as_mixed(items(chunk));
          visit_kernel([&](auto& kernel, auto key) { feed(kernel, chunk, key, interrupt); });
        }
        interrupt();
        chunk = std::move(following);
        following = Chunk();
      }
    });
  }

  // An independent summary with the same state.
  std::unique_ptr<Summary> copy() const {
    nb::gil_scoped_release release;
    const auto lock = hold();
    auto made = std::make_unique<Summary>(family, max_key_bytes);
    made->merged = merged;
    made->lineage = lineage;
    made->kind_ = kind_;
    made->kernels_ = kernels_;
    return made;
  }

  void merge(const Summary& other) {
    nb::gil_scoped_release release;
    if (this == &other) throw IncompatibleSummaryError("a summary cannot be merged with itself");
    refuse_reentry();
    other.refuse_reentry();
    std::scoped_lock lock(mutex_, other.mutex_);
    if (max_key_bytes != other.max_key_bytes)
      throw IncompatibleSummaryError("max_key_bytes differ: " + std::to_string(max_key_bytes) + " and " +
                                     std::to_string(other.max_key_bytes));
    if (other.kind_ != KeyKind::none) {
      Lineage both = lineage.joined(other.lineage);
      start(kind_ == KeyKind::none || kind_ == other.kind_ ? other.kind_ : KeyKind::mixed);
      visit_kernel([&](auto& kernel, auto key) {
        using Mine = std::decay_t<decltype(kernel)>;
        if (auto* same = std::get_if<Mine>(&*other.kernels_)) return kernel.merge(*same);
        if constexpr (std::is_same_v<decltype(key), StrKey>)
          kernel.merge(wider(std::get<1>(*other.kernels_), other.kind_));
      });
      lineage = std::move(both);
    }
    merged = true;
  }

  // The kernel for restoring a state; only for a summary nobody else holds yet.
  void start(KeyKind kind) {
    if (kind_ == kind) return;
    if (kind_ == KeyKind::none) {
      if (is_integer(kind)) {
        kernels_ = Shared(Kernels(std::in_place_index<1>, family.template make<IntKey>()));
      } else {
        kernels_ = Shared(Kernels(std::in_place_index<2>, family.template make<StrKey>()));
      }
    } else if (kind == KeyKind::mixed && is_integer(kind_)) {
      kernels_ = Shared(Kernels(std::in_place_index<2>, wider(std::get<1>(*kernels_), kind_)));
    }
    kind_ = kind;
  }
  template <class F>
  void visit_kernel(F&& f) {
    Kernels& mine = kernels_.own();
    if (auto* k = std::get_if<1>(&mine)) f(*k, IntKey{});
    if (auto* k = std::get_if<2>(&mine)) f(*k, StrKey{});
  }
  template <class F>
  void visit_kernel(F&& f) const {
    if (auto* k = std::get_if<1>(&*kernels_)) f(*k, IntKey{});
    if (auto* k = std::get_if<2>(&*kernels_)) f(*k, StrKey{});
  }
  template <class F>
  void with_lock(F&& f) const {
    nb::gil_scoped_release release;
    locked(f);
  }
  // The same for a caller that has already released the GIL.
  template <class F>
  void locked(F&& f) const {
    const auto lock = hold();
    f(kind_);
  }

 private:
  Kernel<StrKey> wider(const Kernel<IntKey>& kernel, KeyKind kind) const {
    auto wide = family.template make<StrKey>();
    widen(kernel, kind, wide);
    return wide;
  }
  // The input of an update may run Python code (iterators, signal handlers) that comes back to the summary.
  void refuse_reentry() const {
    if (updating_.load() == std::this_thread::get_id())
      throw DataError("the input of an update uses the summary that is being updated");
  }
  std::unique_lock<std::mutex> hold() const {
    refuse_reentry();
    return std::unique_lock<std::mutex>(mutex_);
  }

  mutable std::mutex mutex_;
  std::atomic<std::thread::id> updating_{};
  KeyKind kind_ = KeyKind::none;
  Shared<Kernels> kernels_;
};

// update() for kernels that count single items.
template <class S>
void update_items(S& self, nb::handle data, bool skip_nulls, BadItems bad) {
  auto source = open_column(data, bad);
  self.update(
      *source, Column{}, skip_nulls, bad, validate_column,
      [](Column& c) -> Column& { return c; },
      [](auto& kernel, const Column& c, auto key, InterruptCheck& interrupt) {
        feed_column<decltype(key)>(kernel, c, interrupt);
      });
  nb::gil_scoped_release release;
  source.reset();
}

// What update() does with a batch before it counts, for any thread.
template <class S>
CheckedBatch checked_batch(const S& self, nb::handle data, bool skip_nulls, BadItems bad) {
  auto source = open_column(data, bad);
  CheckedBatch batch;
  nb::gil_scoped_release release;
  const Checks checks{self.max_key_bytes, skip_nulls, bad};
  for (Column column; source->next(column); column = Column()) {
    leave_out(column, validate(column, checks));
    column.passed = checks;
    keep_hashes(column, self.family.seed);
    batch.chunks.push_back(std::move(column));
  }
  source.reset();
  return batch;
}

// The part of it that takes long, for a column that native code has made and that nobody else has yet.
template <class S>
void hash_made(const S& self, MadeColumn& made) {
  nb::gil_scoped_release release;
  keep_hashes(made.column, self.family.seed);
}

// Calls f(key) with the item as a key of the summary's kind; nothing happens for a summary without keys.
template <class S, class F>
void with_item(const S& self, nb::handle item, F&& f) {
  Column column = column_of_item(item);
  const KeyKind kind = self.kind();
  if (kind == KeyKind::none) return;
  require_kind(kind, column);
  if (kind == KeyKind::mixed) column = as_mixed(column);
  if (is_integer(kind)) {
    f(key_at(column, 0, IntKey{}));
  } else {
    f(key_at(column, 0, StrKey{}));
  }
}

// (count, stored) of an item.
template <class S>
std::pair<uint64_t, bool> count_of(const S& self, nb::handle item) {
  std::pair<uint64_t, bool> out{0, false};
  with_item(self, item, [&](auto key) {
    out = self.read(
        [&](const auto& kernel) -> std::pair<uint64_t, bool> {
          if constexpr (requires { kernel.count(key); }) return kernel.count(key);
          return {0, false};
        },
        out);
  });
  return out;
}

template <class S>
RawCounters counters_of(const S& self) {
  std::optional<RawCounters> out;
  self.with_lock([&](KeyKind kind) {
    self.read_locked(
        [&](const auto& kernel) {
          const auto counters = kernel.counters();
          nb::gil_scoped_acquire gil;
          out = raw_counters(kind, counters);
          return 0;
        },
        0);
  });
  if (out) return *out;
  return {"none", nb::bytes("", 0), nb::bytes("", 0), nb::bytes("", 0), nb::bytes("", 0)};
}

// The end of every payload from version 2 on. In version 1 the state's own checksum stands for what it has counted: the
// same state, read twice, is then still known to be the same.
template <class S>
void write_lineage(StateWriter& out, const S& self) {
  out.u64(self.lineage.names().size());
  for (const uint64_t name : self.lineage.names()) out.u64(name);
}
inline Lineage read_lineage(StateReader& in, const OpenState& state) {
  std::vector<uint64_t> names;
  if (state.version == 1) {
    if (state.kind != KeyKind::none) names.push_back(state.sum);
    return Lineage(std::move(names));
  }
  names.resize(in.records(8));
  for (uint64_t& name : names) name = in.u64();
  for (size_t i = 1; i < names.size(); ++i)
    if (names[i - 1] >= names[i]) throw CorruptStateError("state has a lineage out of order");
  if (names.empty() != (state.kind == KeyKind::none))
    throw CorruptStateError("state has a lineage that does not fit its keys");
  return Lineage(std::move(names));
}

// Checks a restored key as a batch's would have been.
inline void check_restored(KeyKind kind, IntKey, uint64_t) {
  if (!is_integer(kind)) throw CorruptStateError("state has a key of the wrong kind");
}
inline void check_restored(KeyKind kind, StrKey key, uint64_t max_key_bytes) {
  if (is_integer(kind)) throw CorruptStateError("state has a key of the wrong kind");
  if (key.is_number()) {
    if (key.size != 8) throw CorruptStateError("state has an integer of the wrong size");
    if ((key.tag == Tag::large) > (load64(key.data) >> 63)) throw CorruptStateError("state has an integer of the wrong kind");
    return;
  }
  if (key.size > max_key_bytes) throw CorruptStateError("state has a key longer than its max_key_bytes");
  if (key.tag == Tag::text && !is_utf8({key.data, key.size}))
    throw CorruptStateError("state has a string that is not valid UTF-8");
}

inline std::string_view view_of(const nb::bytes& data) {
  return {static_cast<const char*>(data.data()), data.size()};
}

}  // namespace discreet
