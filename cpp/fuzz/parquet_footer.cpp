// The footer of a Parquet file: chunks are of wanted columns, or it is refused.
#include <cstdlib>

#include "discreet/parquet_footer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    for (const auto& group : discreet::parquet_chunks({reinterpret_cast<const char*>(data), size}, {"item", "user"}))
      for (const auto& chunk : group)
        if (chunk.column > 1) std::abort();
  } catch (const discreet::DataError&) {
  }
  return 0;
}
