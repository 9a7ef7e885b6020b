// The footer of a Parquet file: chunks are of wanted columns, or it is refused.
#include <cstdlib>

#include "discreet/readers/parquet_footer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto footer = discreet::parquet_footer({reinterpret_cast<const char*>(data), size}, {"item", "user"});
    for (const auto& group : footer.groups)
      for (const auto& chunk : group.chunks)
        if (chunk.column > 1) std::abort();
  } catch (const discreet::DataError&) {
  }
  return 0;
}
