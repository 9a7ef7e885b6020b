// The errors kernels throw; the bindings turn them into the classes of discreet/errors.py.
// Messages say what was given and what is allowed, never an item or a count.
#pragma once

#include <stdexcept>
#include <string>

namespace discreet {

struct ParameterError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct IncompatibleSummaryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct CorruptStateError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace discreet
