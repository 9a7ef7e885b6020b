// From Python objects to columns: Arrow streams and arrays, buffers (NumPy), and plain iterables.
#pragma once

#include <memory>
#include <vector>

#include "discreet/column.hpp"
#include "module.hpp"

namespace discreet {

// Bytes of Python that are yet to be written, and where.
inline nb::bytes unwritten(size_t size) {
  PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (!made) nb::raise_python_error();
  return nb::steal<nb::bytes>(made);
}
inline char* written(const nb::bytes& bytes) { return PyBytes_AS_STRING(bytes.ptr()); }

// Chunks of a column, in order. next() is called without the GIL.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  virtual bool next(Column& column) = 0;
};

// Chunks of a column of lists, one list a user.
class ListSource {
 public:
  virtual ~ListSource() = default;
  virtual bool next(ListColumn& column) = 0;
};

// A batch that was checked and hashed for a summary, perhaps by another thread than the one that counts it.
struct CheckedBatch {
  std::vector<Column> chunks;
};

// Both are called with the GIL and throw DataError for what they cannot read.
std::unique_ptr<ColumnSource> open_column(nb::handle data, BadItems bad = BadItems::error);
std::unique_ptr<ListSource> open_lists(nb::handle data, BadItems bad = BadItems::error);

// One Python item as a one-element column.
Column column_of_item(nb::handle item);

}  // namespace discreet
