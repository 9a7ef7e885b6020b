// discreet._native: the kernels, one binding file each.
#include "module.hpp"

#include <exception>

#include "discreet/column.hpp"
#include "discreet/errors.hpp"
#include "ingest.hpp"

namespace {

void raise(const char* name, const std::exception& error) {
  PyObject* module = PyImport_ImportModule("discreet.errors");
  if (!module) return;
  PyObject* type = PyObject_GetAttrString(module, name);
  if (type) PyErr_SetString(type, error.what());
  Py_XDECREF(type);
  Py_DECREF(module);
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const discreet::ParameterError& error) {
    raise("ParameterError", error);
  } catch (const discreet::DataError& error) {
    raise("DataError", error);
  } catch (const discreet::IncompatibleSummaryError& error) {
    raise("IncompatibleSummaryError", error);
  } catch (const discreet::CorruptStateError& error) {
    raise("CorruptStateError", error);
  }
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Native kernels of discreet. Not private by themselves; use the classes of the package.";
  // Objects that live as long as the process (the system's random source, cached tables) are not leaks, and a report
  // about them at exit would land on the user's terminal.
  nb::set_leak_warnings(false);
  nb::register_exception_translator(translate);
  nb::enum_<discreet::BadItems>(m, "BadItems", "What becomes of rows that cannot be items.")
      .value("error", discreet::BadItems::error)
      .value("skip", discreet::BadItems::skip)
      .value("skip_all", discreet::BadItems::skip_all);
  nb::class_<discreet::CheckedBatch>(m, "CheckedBatch", "A batch that was checked and hashed, for update() to count.");
  discreet::bind_bins(m);
  discreet::bind_count_min(m);
  discreet::bind_count_sketch(m);
  discreet::bind_correlated_noise(m);
  discreet::bind_credits(m);
  discreet::bind_diagnostics(m);
  discreet::bind_exact_counts(m);
  discreet::bind_interner(m);
  discreet::bind_joined_rows(m);
  discreet::bind_made_columns(m);
  discreet::bind_misra_gries(m);
  discreet::bind_multiparty(m);
  discreet::bind_noise(m);
  discreet::bind_normal(m);
  discreet::bind_pairs(m);
  discreet::bind_pan(m);
  discreet::bind_parquet_footer(m);
  discreet::bind_plain_rows(m);
  discreet::bind_process(m);
  discreet::bind_records(m);
  discreet::bind_release_order(m);
  discreet::bind_sharded_misra_gries(m);
  discreet::bind_space_saving(m);
  discreet::bind_state(m);
  discreet::bind_user_misra_gries(m);
}
