// Numbers and items in memory of Python alone: what a release is made of where neither NumPy nor Arrow is loaded.
#pragma once

#include <nanobind/ndarray.h>

#include <cstring>
#include <vector>

#include "discreet/column.hpp"
#include "ingest.hpp"

namespace discreet {

// A memoryview of writable numbers: it has a length, indices and tolist(), and NumPy wraps it without a copy.
class NumbersView : public nb::object {
 public:
  NB_OBJECT_DEFAULT(NumbersView, nb::object, "memoryview", PyMemoryView_Check)
};

// So many numbers of a format of Python's `struct`, yet to be written, and where.
template <class T>
NumbersView unwritten_numbers(size_t size, const char* format, T*& data) {
  // Grown from nothing: where memory is lacking, CPython destroys a bytearray of that size before it has set all of it.
  const nb::object bytes = nb::steal(PyByteArray_FromStringAndSize(nullptr, 0));
  if (!bytes.is_valid() || PyByteArray_Resize(bytes.ptr(), static_cast<Py_ssize_t>(size * sizeof(T))) < 0)
    nb::raise_python_error();
  data = reinterpret_cast<T*>(PyByteArray_AS_STRING(bytes.ptr()));
  const nb::object view = nb::steal(PyMemoryView_FromObject(bytes.ptr()));
  if (!view.is_valid()) nb::raise_python_error();
  return nb::borrow<NumbersView>(view.attr("cast")(format));
}
inline NumbersView unwritten_integers(size_t size, int64_t*& data) {
  return unwritten_numbers(size, "q", data);
}

using Integers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A column of texts, bytes or whole numbers without nulls. Made, used and let go of with the GIL.
struct PlainItems {
  KeyKind kind;
  int64_t length = 0;
  nb::bytes values, offsets;

  PlainItems(KeyKind kind, nb::bytes values, nb::bytes offsets);
  // For as long as the items are there.
  Column column() const {
    Column out;
    out.kind = kind;
    out.layout = is_integer(kind) ? Layout::i64 : Layout::offsets64;
    out.length = length;
    out.values = values.c_str();
    out.offsets = offsets.c_str();
    return out;
  }
};

}  // namespace discreet
