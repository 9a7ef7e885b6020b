#include "ingest.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "discreet/arrow_checks.hpp"
#include "discreet/wipe.hpp"
#include "plain_memory.hpp"

namespace discreet {
namespace {

constexpr size_t kChunk = 65536;  // Python objects gathered at a time

// ---- plain Python objects ------------------------------------------------------------------------------------------

// Gathers Python ints, strings or bytes into buffers of its own, which are zeroed when they are freed. Several kinds make
// a mixed column.
class Builder {
 public:
  explicit Builder(BadItems bad) : skip_(bad != BadItems::error) {}

  void add(PyObject* item) {
    validity_.resize((size_ >> 3) + 1, 0);
    if (item == Py_None) {
      has_null_ = true;
      push_empty();
      return;
    }
    if (PyUnicode_Check(item)) {
      Py_ssize_t n;
      const char* data = PyUnicode_AsUTF8AndSize(item, &n);
      if (!data) {
        PyErr_Clear();
        return refuse("a string cannot be written as UTF-8 (it has lone surrogates)");
      }
      push_bytes(KeyKind::string, Tag::text, data, static_cast<size_t>(n));
    } else if (PyBytes_Check(item)) {
      push_bytes(KeyKind::binary, Tag::bytes, PyBytes_AS_STRING(item), static_cast<size_t>(PyBytes_GET_SIZE(item)));
    } else if (PyLong_CheckExact(item) || (PyIndex_Check(item) && !is_boolean(item))) {
      if (!push_integer(item)) return;
    } else {
      wrong_type_ = true;
      return refuse(std::string("items must be int, str or bytes, not ") + Py_TYPE(item)->tp_name);
    }
    validity_[size_ >> 3] |= static_cast<uint8_t>(1u << (size_ & 7));
    ++size_;
  }

  size_t size() const { return size_; }
  // Why the first object that can be no item, whatever its value, was left out; empty if there was none.
  const std::string& wrong_type() const { return reason_; }

  Column finish() {
    struct Buffers {
      WipedVector<uint64_t> integers;
      WipedVector<int64_t> offsets;
      WipedVector<char> bytes;
      WipedVector<uint8_t> validity, tags;
    };
    auto own = std::make_shared<Buffers>();
    own->integers = std::move(integers_);
    own->offsets = std::move(offsets_);
    own->bytes = std::move(bytes_);
    own->validity = std::move(validity_);
    own->tags = std::move(tags_);
    Column column;
    column.length = static_cast<int64_t>(size_);
    column.kind = kind_ == KeyKind::int64 && big_ ? KeyKind::uint64 : kind_;
    column.untyped = true;
    if (has_null_) column.validity = own->validity.data();
    if (is_integer(kind_)) {
      column.layout = Layout::i64;
      column.values = own->integers.data();
    } else {
      column.layout = Layout::offsets64;
      column.offsets = own->offsets.data();
      column.values = own->bytes.data();
      if (kind_ == KeyKind::mixed) column.tags = own->tags.data();
    }
    column.owner = own;
    return column;
  }

 private:
  // Leaves the object out, or raises: nothing of it has been stored.
  void refuse(const std::string& reason) {
    if (!skip_) throw DataError(reason);
    if (wrong_type_ && reason_.empty()) reason_ = reason;
  }
  void want(KeyKind kind) {
    if (kind_ == kind || kind_ == KeyKind::mixed) return;
    if (kind_ != KeyKind::none) return become_mixed();
    kind_ = kind;
    // Nulls that came before the first item.
    if (is_integer(kind)) {
      integers_.assign(size_, 0);
    } else {
      offsets_.assign(size_ + 1, 0);
    }
  }
  void become_mixed() {
    const Tag tag = kind_ == KeyKind::binary ? Tag::bytes : Tag::text;
    tags_.assign(size_, static_cast<uint8_t>(tag));
    if (is_integer(kind_)) {
      offsets_.assign(1, 0);
      for (size_t i = 0; i < size_; ++i) {
        append(reinterpret_cast<const char*>(&integers_[i]), 8);
        tags_[i] = static_cast<uint8_t>(tag_of(integers_[i], big_ ? KeyKind::uint64 : KeyKind::int64));
      }
      integers_.clear();
    }
    kind_ = KeyKind::mixed;
  }
  void push_empty() {
    if (is_integer(kind_)) {
      integers_.push_back(0);
    } else if (kind_ != KeyKind::none) {
      offsets_.push_back(static_cast<int64_t>(bytes_.size()));
      if (kind_ == KeyKind::mixed) tags_.push_back(0);
    }
    ++size_;
  }
  // NumPy's too, which some of its versions pass for the index 0 or 1.
  static bool is_boolean(PyObject* item) {
    const std::string_view type = Py_TYPE(item)->tp_name;
    return PyBool_Check(item) || type == "numpy.bool" || type == "numpy.bool_";
  }
  void append(const char* data, size_t n) {
    bytes_.insert(bytes_.end(), data, data + n);
    offsets_.push_back(static_cast<int64_t>(bytes_.size()));
  }
  void push_bytes(KeyKind kind, Tag tag, const char* data, size_t n) {
    want(kind);
    append(data, n);
    if (kind_ == KeyKind::mixed) tags_.push_back(static_cast<uint8_t>(tag));
  }
  // Whether the integer is an item.
  bool push_integer(PyObject* item) {
    const nb::object number = nb::steal(PyNumber_Index(item));
    if (!number.is_valid()) {
      PyErr_Clear();  // it may quote the object
      wrong_type_ = true;
      refuse(std::string("items must be int, str or bytes, not ") + Py_TYPE(item)->tp_name);
      return false;
    }
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    uint64_t pattern = static_cast<uint64_t>(value);
    if (overflow > 0) {
      pattern = PyLong_AsUnsignedLongLong(number.ptr());
      if (PyErr_Occurred()) {
        PyErr_Clear();
        overflow = -1;
      }
    }
    if (overflow < 0) {
      refuse("an integer is outside the range of int64 and uint64");
      return false;
    }
    const bool big = overflow > 0, negative = !big && value < 0;
    want(KeyKind::int64);
    if (kind_ == KeyKind::int64 && ((big && negative_) || (negative && big_))) become_mixed();
    big_ |= big;
    negative_ |= negative;
    if (kind_ == KeyKind::mixed) {
      append(reinterpret_cast<const char*>(&pattern), 8);
      tags_.push_back(static_cast<uint8_t>(big ? Tag::large : Tag::integer));
    } else {
      integers_.push_back(pattern);
    }
    return true;
  }

  const bool skip_;
  KeyKind kind_ = KeyKind::none;
  size_t size_ = 0;
  bool has_null_ = false, big_ = false, negative_ = false, wrong_type_ = false;
  std::string reason_;
  WipedVector<uint64_t> integers_;
  WipedVector<int64_t> offsets_;
  WipedVector<char> bytes_;
  WipedVector<uint8_t> validity_, tags_;
};

// Refuses input that has objects which can be no items, and nothing else: a mistake of the caller, not a rare row.
class Usefulness {
 public:
  explicit Usefulness(BadItems bad) : bad_(bad) {}
  void note(const Builder& builder) {
    any_ |= builder.size() > 0;
    if (reason_.empty()) reason_ = builder.wrong_type();
  }
  void check() const {
    if (bad_ == BadItems::skip && !any_ && !reason_.empty()) throw DataError(reason_);
  }

 private:
  BadItems bad_;
  bool any_ = false;
  std::string reason_;
};

nb::object iterator_of(nb::handle data, const char* expected) {
  if (PyUnicode_Check(data.ptr()) || PyBytes_Check(data.ptr()))
    throw DataError(std::string("expected ") + expected + ", got a single string; put it in a list");
  // Its keys alone would count, and the counts it may hold would not.
  if (PyMapping_Check(data.ptr()) && nb::hasattr(data, "keys"))
    throw DataError(std::string("expected ") + expected + ", got a mapping (" + Py_TYPE(data.ptr())->tp_name + ")");
  PyObject* iterator = PyObject_GetIter(data.ptr());
  if (!iterator) {
    PyErr_Clear();
    throw DataError(std::string("expected ") + expected + ", got " + Py_TYPE(data.ptr())->tp_name);
  }
  return nb::steal(iterator);
}

// The next object of an iterator, or an invalid one at the end. Exceptions of the iterator pass through.
nb::object next_of(const nb::object& iterator) {
  nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
  if (!item.is_valid() && PyErr_Occurred()) nb::raise_python_error();
  return item;
}

class IterableSource : public ColumnSource {
 public:
  IterableSource(nb::handle data, BadItems bad)
      : iterator_(iterator_of(data, "an Arrow, NumPy, pandas or polars column, or an iterable of int, str or bytes")),
        bad_(bad),
        useful_(bad) {}
  ~IterableSource() override {
    nb::gil_scoped_acquire gil;
    iterator_.reset();
  }
  bool next(Column& column) override {
    nb::gil_scoped_acquire gil;
    Builder builder(bad_);
    for (size_t seen = 1; builder.size() < kChunk; ++seen) {
      const nb::object item = next_of(iterator_);
      if (!item.is_valid()) break;
      builder.add(item.ptr());
      if (seen % kChunk == 0 && PyErr_CheckSignals() != 0) nb::raise_python_error();  // rows may be left out without end
    }
    useful_.note(builder);
    if (builder.size() == 0) {
      useful_.check();
      return false;
    }
    column = builder.finish();
    return true;
  }

 private:
  nb::object iterator_;
  BadItems bad_;
  Usefulness useful_;
};

class IterableListSource : public ListSource {
 public:
  IterableListSource(nb::handle data, BadItems bad)
      : iterator_(iterator_of(data, "an Arrow list column or an iterable of iterables, one for each user")),
        bad_(bad),
        useful_(bad) {}
  ~IterableListSource() override {
    nb::gil_scoped_acquire gil;
    iterator_.reset();
  }
  bool next(ListColumn& list) override {
    nb::gil_scoped_acquire gil;
    Builder builder(bad_);
    auto offsets = std::make_shared<std::vector<int64_t>>(1, 0);
    auto validity = std::make_shared<std::vector<uint8_t>>();
    bool has_null = false;
    while (builder.size() < kChunk && offsets->size() <= kChunk) {
      const nb::object user = next_of(iterator_);
      if (!user.is_valid()) break;
      const size_t i = offsets->size() - 1;
      validity->resize((i >> 3) + 1, 0);
      if (user.is_none()) {
        has_null = true;
      } else {
        (*validity)[i >> 3] |= static_cast<uint8_t>(1u << (i & 7));
        const nb::object items = iterator_of(user, "an iterable of items for each user");
        for (nb::object item = next_of(items); item.is_valid(); item = next_of(items)) {
          builder.add(item.ptr());
          if (builder.size() % kChunk == 0 && PyErr_CheckSignals() != 0) nb::raise_python_error();
        }
      }
      offsets->push_back(static_cast<int64_t>(builder.size()));
    }
    useful_.note(builder);
    if (offsets->size() == 1) {
      useful_.check();
      return false;
    }
    list = ListColumn();
    list.length = static_cast<int64_t>(offsets->size()) - 1;
    list.items = builder.finish();
    list.wide = true;
    list.offsets = offsets->data();
    if (has_null) list.validity = validity->data();
    list.owner = std::make_shared<std::pair<decltype(offsets), decltype(validity)>>(offsets, validity);
    return true;
  }

 private:
  nb::object iterator_;
  BadItems bad_;
  Usefulness useful_;
};

// ---- Arrow ---------------------------------------------------------------------------------------------------------

struct SchemaHolder {
  ArrowSchema schema{};
  ~SchemaHolder() {
    if (schema.release) schema.release(&schema);
  }
};
struct ArrayHolder {
  ArrowArray array{};
  std::shared_ptr<SchemaHolder> schema;
  ~ArrayHolder() {
    if (array.release) array.release(&array);
  }
};
struct StreamHolder {
  ArrowArrayStream stream{};
  ~StreamHolder() {
    if (stream.release) stream.release(&stream);
  }
};

// Takes the structure out of a capsule: the capsule's copy is marked released.
template <class T>
T take(nb::handle capsule, const char* name) {
  T* held = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!held) nb::raise_python_error();
  if (!held->release) throw DataError("the Arrow data was already consumed");
  T out = *held;
  held->release = nullptr;
  return out;
}

// Yields the arrays of a stream; Chunk is Column or ListColumn, made by `convert`.
template <class Source, class Chunk, Chunk (*convert)(const ArrowSchema&, const ArrowArray&, std::shared_ptr<void>)>
class ArrowStreamSource : public Source {
 public:
  explicit ArrowStreamSource(nb::handle capsule) : schema_(std::make_shared<SchemaHolder>()) {
    holder_.stream = take<ArrowArrayStream>(capsule, "arrow_array_stream");
    if (!holder_.stream.get_schema || !holder_.stream.get_next) throw DataError("the Arrow stream has no callbacks");
  }
  bool next(Chunk& chunk) override {
    if (!schema_->schema.release && holder_.stream.get_schema(&holder_.stream, &schema_->schema) != 0) fail();
    if (!schema_->schema.release) fail();
    auto array = std::make_shared<ArrayHolder>();
    array->schema = schema_;
    if (holder_.stream.get_next(&holder_.stream, &array->array) != 0) fail();
    if (!array->array.release) return false;
    check_arrow(schema_->schema, array->array);
    chunk = convert(schema_->schema, array->array, array);
    return true;
  }

 private:
  // The stream's own message may quote the data, so it is not passed on.
  [[noreturn]] void fail() { throw DataError("the Arrow stream failed while it was read"); }
  StreamHolder holder_;
  std::shared_ptr<SchemaHolder> schema_;
};

template <class Source, class Chunk, Chunk (*convert)(const ArrowSchema&, const ArrowArray&, std::shared_ptr<void>)>
class ArrowArraySource : public Source {
 public:
  explicit ArrowArraySource(const nb::object& capsules) : array_(std::make_shared<ArrayHolder>()) {
    if (!PyTuple_Check(capsules.ptr()) || PyTuple_GET_SIZE(capsules.ptr()) != 2)
      throw DataError("__arrow_c_array__ must return a schema and an array capsule");
    array_->schema = std::make_shared<SchemaHolder>();
    array_->schema->schema = take<ArrowSchema>(PyTuple_GET_ITEM(capsules.ptr(), 0), "arrow_schema");
    array_->array = take<ArrowArray>(PyTuple_GET_ITEM(capsules.ptr(), 1), "arrow_array");
  }
  bool next(Chunk& chunk) override {
    if (!array_) return false;
    check_arrow(array_->schema->schema, array_->array);
    chunk = convert(array_->schema->schema, array_->array, array_);
    array_.reset();
    return true;
  }

 private:
  std::shared_ptr<ArrayHolder> array_;
};

// ---- buffers (NumPy) -----------------------------------------------------------------------------------------------

struct BufferHolder {
  Py_buffer view{};
  ~BufferHolder() {
    nb::gil_scoped_acquire gil;
    if (view.obj) PyBuffer_Release(&view);
  }
};

class BufferSource : public ColumnSource {
 public:
  explicit BufferSource(nb::handle data) : buffer_(std::make_shared<BufferHolder>()) {
    if (PyObject_GetBuffer(data.ptr(), &buffer_->view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
      PyErr_Clear();
      throw DataError("the array must be contiguous, of integers or fixed-width strings");
    }
    const Py_buffer& view = buffer_->view;
    if (view.ndim != 1) throw DataError("the array must have one dimension, not " + std::to_string(view.ndim));
    column_.length = view.shape[0];
    column_.values = view.buf;
    column_.owner = buffer_;
    std::string format = view.format && *view.format ? view.format : "B";
    if (std::strchr("@=<", format[0])) format.erase(0, 1);  // this machine's byte order
    const bool counted = format.find_first_not_of("0123456789") + 1 == format.size();  // as in "12s"
    const char code = counted ? format.back() : '\0';
    if (format.size() == 1 && code && std::strchr("bhilqn", code)) {
      column_.kind = KeyKind::int64;
      column_.layout = signed_layout(view.itemsize);
    } else if (format.size() == 1 && code && std::strchr("BHILQN", code)) {
      column_.layout = unsigned_layout(view.itemsize);
      column_.kind = column_.layout == Layout::u64 ? KeyKind::uint64 : KeyKind::int64;
    } else if (code == 's') {
      column_.kind = KeyKind::binary;
      column_.layout = Layout::fixed;
      column_.width = view.itemsize;
      column_.strip_zeros = true;
    } else if (code == 'w') {
      column_.kind = KeyKind::string;
      wide_ = true;
    } else {
      throw DataError("the array's element format is '" + format + "'; allowed are integers and fixed-width strings");
    }
  }

  bool next(Column& column) override {
    if (wide_) return next_wide(column);
    if (done_) return false;
    done_ = true;
    column = column_;
    return true;
  }

 private:
  static Layout signed_layout(Py_ssize_t size) {
    return size == 1 ? Layout::i8 : size == 2 ? Layout::i16 : size == 4 ? Layout::i32 : Layout::i64;
  }
  static Layout unsigned_layout(Py_ssize_t size) {
    return size == 1 ? Layout::u8 : size == 2 ? Layout::u16 : size == 4 ? Layout::u32 : Layout::u64;
  }

  // NumPy's fixed-width UCS-4, turned into UTF-8 a chunk at a time.
  bool next_wide(Column& column) {
    if (at_ >= column_.length) return false;
    struct Buffers {
      WipedVector<int64_t> offsets;
      WipedVector<char> bytes;
    };
    auto own = std::make_shared<Buffers>();
    const int64_t end = std::min<int64_t>(column_.length, at_ + static_cast<int64_t>(kChunk));
    const int64_t width = buffer_->view.itemsize / 4;
    own->offsets.push_back(0);
    for (; at_ < end; ++at_) {
      const uint32_t* first = static_cast<const uint32_t*>(column_.values) + at_ * width;
      int64_t n = width;
      while (n > 0 && first[n - 1] == 0) --n;
      for (int64_t i = 0; i < n; ++i) append_utf8(own->bytes, first[i]);
      own->offsets.push_back(static_cast<int64_t>(own->bytes.size()));
    }
    column = Column();
    column.kind = KeyKind::string;
    column.layout = Layout::offsets64;
    column.length = static_cast<int64_t>(own->offsets.size()) - 1;
    column.offsets = own->offsets.data();
    column.values = own->bytes.data();
    column.owner = own;
    return true;
  }

  static void append_utf8(WipedVector<char>& out, uint32_t c) {
    const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (c > 0x10ffff) {
      put(0xff);  // not a character: makes the string invalid UTF-8, which is refused
    } else if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6);
      put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12);
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    }
  }

  std::shared_ptr<BufferHolder> buffer_;
  Column column_;
  bool wide_ = false, done_ = false;
  int64_t at_ = 0;
};

// ---- what native code made -----------------------------------------------------------------------------------------

class MadeSource : public ColumnSource {
 public:
  explicit MadeSource(Column column) : column_(std::move(column)) {}
  bool next(Column& column) override {
    if (done_) return false;
    done_ = true;
    column = std::move(column_);
    return true;
  }

 private:
  Column column_;
  bool done_ = false;
};

// Calls an export method. Its own message may quote the data, so it is not passed on.
nb::object exported(nb::handle data, const char* method) {
  try {
    return data.attr(method)();
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_Exception) || error.matches(PyExc_MemoryError)) throw;
    throw DataError(std::string("the column cannot be read as Arrow data: ") + Py_TYPE(data.ptr())->tp_name +
                    " raised " + reinterpret_cast<PyTypeObject*>(error.type().ptr())->tp_name);
  }
}

// Arrays and streams share one way in; the type of chunk decides the rest.
template <class Source, class Chunk, Chunk (*convert)(const ArrowSchema&, const ArrowArray&, std::shared_ptr<void>)>
std::unique_ptr<Source> open_arrow(nb::handle data) {
  if (nb::hasattr(data, "__arrow_c_stream__"))
    return std::make_unique<ArrowStreamSource<Source, Chunk, convert>>(exported(data, "__arrow_c_stream__"));
  if (nb::hasattr(data, "__arrow_c_array__"))
    return std::make_unique<ArrowArraySource<Source, Chunk, convert>>(exported(data, "__arrow_c_array__"));
  return nullptr;
}

class CheckedSource : public ColumnSource {
 public:
  CheckedSource(const CheckedBatch& batch, BadItems bad) : chunks_(batch.chunks) {
    for (const Column& column : chunks_)
      if (bad == BadItems::error && column.passed->bad != BadItems::error)
        throw DataError("the batch was checked with bad_items=\"skip\": rows to be refused may have been left out");
  }
  bool next(Column& column) override {
    if (next_ == chunks_.size()) return false;
    column = std::move(chunks_[next_++]);
    return true;
  }

 private:
  std::vector<Column> chunks_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<ColumnSource> open_column(nb::handle data, BadItems bad) {
  if (nb::isinstance<MadeColumn>(data)) return std::make_unique<MadeSource>(nb::cast<const MadeColumn&>(data).column);
  if (nb::isinstance<PlainItems>(data)) return std::make_unique<MadeSource>(nb::cast<const PlainItems&>(data).column());
  if (nb::isinstance<CheckedBatch>(data))
    return std::make_unique<CheckedSource>(nb::cast<const CheckedBatch&>(data), bad);
  if (auto source = open_arrow<ColumnSource, Column, column_or_only_child>(data)) return source;
  if (PyObject_CheckBuffer(data.ptr()) && !PyBytes_Check(data.ptr()) && !PyByteArray_Check(data.ptr()))
    return std::make_unique<BufferSource>(data);
  return std::make_unique<IterableSource>(data, bad);
}

std::unique_ptr<ListSource> open_lists(nb::handle data, BadItems bad) {
  if (auto source = open_arrow<ListSource, ListColumn, list_from_arrow>(data)) return source;
  return std::make_unique<IterableListSource>(data, bad);
}

Column column_of_item(nb::handle item) {
  if (item.is_none()) throw DataError("an item must be int, str or bytes, not None");
  Builder builder(BadItems::error);
  builder.add(item.ptr());
  return builder.finish();
}

}  // namespace discreet
