// Delimited text: records end in the same places wherever it is cut, every row has one value a column, and items that
// are found at once are those of the rows.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "discreet/readers/records.hpp"
#include "discreet/readers/text_items.hpp"

using namespace discreet;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t cut = data[0] % (size - 1);
  const int cells = 1 + data[1] % 3;
  const CellMarks marks{',', data[1] & 4 ? '\0' : '"'};
  const bool more = data[1] & 8;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  std::vector<int64_t> whole, ends, later;
  const Cell last = record_ends(text, marks, Cell::start, whole);
  const size_t at = cut < text.size() ? cut : text.size();
  const Cell middle = record_ends(text.substr(0, at), marks, Cell::start, ends);
  if (record_ends(text.substr(at), marks, middle, later) != last) std::abort();
  for (const int64_t end : later) ends.push_back(end + static_cast<int64_t>(at));
  if (ends != whole) std::abort();

  if (newlines(text) != static_cast<size_t>(std::count(text.begin(), text.end(), '\n'))) std::abort();

  std::vector<int> columns(static_cast<size_t>(cells), -1);
  columns.back() = 0;
  TextRows rows;
  rows.columns.resize(1);
  DelimitedReader(marks, columns, more).read(text, rows);
  const TextColumn& column = rows.columns[0];
  if (column.kinds.size() != rows.rows || column.offsets.size() != rows.rows + 1) std::abort();
  if (column.data.size() != static_cast<size_t>(column.offsets.back())) std::abort();
  if (rows.records.size() != rows.ends.size()) std::abort();
  if (!rows.ends.empty() && rows.ends.back() != static_cast<int64_t>(text.size())) std::abort();

  static const auto home = std::make_shared<PageMemory>();
  const CellEnds found = cell_ends(text, marks, *home);
  if (found.regular && found.last != static_cast<size_t>(whole.empty() ? 0 : whole.back())) std::abort();
  if (found.regular && found.open != (last == Cell::quoted)) std::abort();
  if (last == Cell::quoted) return 0;
  const std::shared_ptr<char> owner(const_cast<char*>(text.data()), [](char*) {});
  columns.front() = columns.size() > 1 ? 1 : 0;
  const CellCondition condition({{CellStep{CellStep::whole, columns.size() > 1 ? size_t{1} : 0, 2, "", 404, 404}}});
  const auto chosen = rows_of_cells(text, found, 0, marks, columns, more, &condition);
  if (chosen && (chosen->rows.ends != rows.ends || chosen->rows.rows > rows.rows)) std::abort();
  columns.assign(columns.size(), -1);
  columns.back() = 0;
  const auto items = delimited_items({text, owner, home}, found, 0, marks, columns, more);
  if (!items) return 0;
  if (items->column.length != static_cast<int64_t>(rows.rows)) std::abort();
  for (size_t i = 0; i < rows.rows; ++i)
    if (bytes_at(items->column, static_cast<int64_t>(i)) !=
        column.data.view().substr(static_cast<size_t>(column.offsets[i]),
                                  static_cast<size_t>(column.offsets[i + 1] - column.offsets[i])))
      std::abort();
  return 0;
}
