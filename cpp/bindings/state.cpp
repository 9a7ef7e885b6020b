// State envelopes for classes written in Python: the same header, checksum and checks as the native summaries.
#include "discreet/state.hpp"

#include <nanobind/stl/tuple.h>

#include "module.hpp"

namespace discreet {

void bind_state(nb::module_& m) {
  m.def(
      "seal_state",
      [](uint16_t family, uint16_t version, const nb::bytes& payload) {
        if (family < static_cast<uint16_t>(StateFamily::python))
          throw ParameterError("families below 100 belong to the native summaries");
        StateWriter out;
        out.bytes(static_cast<const char*>(payload.data()), payload.size());
        const std::string state = out.seal(family, version, KeyKind::none);
        return nb::bytes(state.data(), state.size());
      },
      nb::arg("family"), nb::arg("version"), nb::arg("payload"));
  m.def(
      "open_state",
      [](const nb::bytes& data) {
        const OpenState state = open_state({static_cast<const char*>(data.data()), data.size()});
        return std::make_tuple(state.family, state.version, nb::bytes(state.payload.data(), state.payload.size()));
      },
      nb::arg("data"), "The family, version and payload of a state; raises CorruptStateError.");
}

}  // namespace discreet
