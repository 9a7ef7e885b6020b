#include "discreet/parquet_footer.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "module.hpp"

namespace discreet {

void bind_parquet_footer(nb::module_& m) {
  m.def(
      "parquet_chunks",
      [](const nb::bytes& footer, const std::vector<std::string>& wanted) {
        const std::string_view data(static_cast<const char*>(footer.data()), footer.size());
        std::vector<std::vector<std::tuple<uint64_t, uint64_t, int64_t, int64_t, bool>>> out;
        for (const auto& group : parquet_chunks(data, wanted)) {
          out.emplace_back();
          for (const ParquetChunk& c : group)
            out.back().emplace_back(c.column, c.depth, c.values, c.uncompressed_bytes, c.has_dictionary);
        }
        return out;
      },
      nb::arg("footer"), nb::arg("wanted"),
      "For every row group the chunks of the wanted columns: which of them, the depth of its path, the number of values, "
      "the uncompressed bytes, whether there is a dictionary. Raises DataError.");
}

}  // namespace discreet
