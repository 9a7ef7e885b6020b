// The numbers of messages: what is read is within its bounds, and writes to the same bytes again.
#include <cstdlib>
#include <string>
#include <vector>

#include "discreet/sketches/message_codec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t n = data[0];
  const int64_t bound = data[1] & 128 ? INT64_MAX : data[1];
  const uint32_t width = 1 + data[2] % 31;
  const std::string_view message(reinterpret_cast<const char*>(data) + 3, size - 3);
  try {
    std::vector<int64_t> values(n);
    discreet::codec::read_integers(message, n, bound, values.data());
    for (const int64_t value : values)
      if (value > bound || value < -bound) std::abort();
    std::vector<int64_t> again(n);
    discreet::codec::read_integers(discreet::codec::write_integers(values.data(), n), n, bound, again.data());
    if (again != values) std::abort();
  } catch (const discreet::DataError&) {
  }
  try {
    const uint64_t limit = (uint64_t{1} << width) - 1;
    std::vector<uint32_t> values(n);
    discreet::codec::unpack(message, n, width, limit, values.data());
    for (const uint32_t value : values)
      if (value >= limit) std::abort();
    if (discreet::codec::pack(values.data(), n, width) != message) std::abort();
  } catch (const discreet::DataError&) {
  }
  return 0;
}
