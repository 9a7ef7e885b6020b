// Each kernel's binding file adds itself to the module through one of these.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace discreet {
void bind_bins(nb::module_& m);
void bind_count_min(nb::module_& m);
void bind_count_sketch(nb::module_& m);
void bind_correlated_noise(nb::module_& m);
void bind_credits(nb::module_& m);
void bind_diagnostics(nb::module_& m);
void bind_exact_counts(nb::module_& m);
void bind_interner(nb::module_& m);
void bind_joined_rows(nb::module_& m);
void bind_made_columns(nb::module_& m);
void bind_misra_gries(nb::module_& m);
void bind_multiparty(nb::module_& m);
void bind_noise(nb::module_& m);
void bind_normal(nb::module_& m);
void bind_pairs(nb::module_& m);
void bind_pan(nb::module_& m);
void bind_parquet_footer(nb::module_& m);
void bind_plain_rows(nb::module_& m);
void bind_process(nb::module_& m);
void bind_records(nb::module_& m);
void bind_release_order(nb::module_& m);
void bind_sharded_misra_gries(nb::module_& m);
void bind_space_saving(nb::module_& m);
void bind_state(nb::module_& m);
void bind_user_misra_gries(nb::module_& m);
}  // namespace discreet
