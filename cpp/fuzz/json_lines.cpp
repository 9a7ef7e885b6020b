// JSON lines: every line is a row, blank or unreadable, and texts that are read are valid UTF-8.
#include <cstdlib>
#include <vector>

#include "discreet/readers/json_lines.hpp"

using namespace discreet;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const bool lists = data[0] & 1;
  std::vector<std::optional<std::string>> wanted{"item"};
  if (data[0] & 2) wanted.emplace_back(std::nullopt);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  TextRows rows;
  rows.columns.resize(wanted.size());
  JsonLinesReader reader(wanted, lists);
  reader.read(text, rows);
  if (rows.records.size() != rows.ends.size()) std::abort();
  if (!rows.ends.empty() && rows.ends.back() != static_cast<int64_t>(text.size())) std::abort();
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    const TextColumn& column = rows.columns[i];
    if (column.offsets.size() != column.kinds.size() + 1) std::abort();
    if (!(lists && i == 0) && column.kinds.size() != rows.rows) std::abort();
    for (size_t k = 0; k < column.kinds.size(); ++k) {
      const auto begin = static_cast<size_t>(column.offsets[k]), end = static_cast<size_t>(column.offsets[k + 1]);
      if (begin > end || end > column.data.size()) std::abort();
      if (column.kinds[k] == static_cast<uint8_t>(ValueKind::text) &&
          !is_utf8({column.data.data() + begin, end - begin}))
        std::abort();
    }
  }
  if (lists && (reader.list_kinds.size() != rows.rows || reader.list_offsets.size() != rows.rows + 1)) std::abort();
  return 0;
}
