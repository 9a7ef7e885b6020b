// The envelope of states, and keys in payloads. What is sealed opens, what is not is refused.
// (The payloads of every class are fuzzed through Python: tests/sanitize/fuzz_states.py.)
#include <cstdlib>

#include "discreet/state.hpp"

using namespace discreet;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const OpenState state = open_state(bytes);
    if (state.payload.size() + kHeaderBytes != size) std::abort();
  } catch (const CorruptStateError&) {
  }
  StateWriter out;
  out.bytes(bytes.data(), bytes.size());
  const std::string sealed = out.seal(100, 1, KeyKind::none);
  if (open_state(sealed).payload != bytes) std::abort();
  StateReader in(bytes);
  try {
    const uint64_t n = in.records(5);
    for (uint64_t i = 0; i < n; ++i) {
      StrKey key;
      in.key(key, KeyKind::mixed);
      if (key.data < bytes.data() || key.data + key.size > bytes.data() + size) std::abort();
    }
    in.finish();
  } catch (const CorruptStateError&) {
  }
  return 0;
}
