// Each kernel's binding file adds itself to the module through one of these.
#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_noise(nb::module_& m);
