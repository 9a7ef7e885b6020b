#include "discreet/readers/records.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "discreet/column.hpp"
#include "discreet/errors.hpp"
#include "discreet/readers/json_lines.hpp"
#include "discreet/readers/text_items.hpp"
#include "discreet/readers/web_log.hpp"
#include "ingest.hpp"
#include "module.hpp"

namespace discreet {
namespace {

template <class T>
using Values = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Buffers = std::tuple<Values<uint8_t>, Values<int32_t>, Values<uint8_t>, bool>;
using Read = std::tuple<Values<uint8_t>, Values<int64_t>, size_t, std::vector<Buffers>>;

template <class T>
nb::bytes as_bytes(const T& values) {
  return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
}

// The same memory with another owner.
template <class T>
Values<T> given(std::vector<T>&& values) {
  auto own = std::make_unique<std::vector<T>>(std::move(values));
  T* const first = own->data();
  const size_t size = own->size();
  nb::capsule owner(own.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Values<T>(first, {size}, owner);
}
Values<uint8_t> given(TextBytes&& bytes) {
  const size_t size = bytes.size();
  char* const first = bytes.take().release();
  nb::capsule owner(first ? first : new char[1], [](void* p) noexcept { delete[] static_cast<char*>(p); });
  return Values<uint8_t>(static_cast<uint8_t*>(owner.data()), {size}, owner);
}

// What read() finds in a text, without the GIL.
template <class F>
Read found(std::string_view text, TextRows& rows, F&& read) {
  std::vector<bool> ascii;
  size_t lines;
  {
    nb::gil_scoped_release release;
    read();
    lines = newlines(text);
    for (const TextColumn& column : rows.columns)
      ascii.push_back(!has_high_bit(column.data.data(), column.data.size()));
  }
  std::vector<Buffers> columns;
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    TextColumn& column = rows.columns[i];
    columns.emplace_back(given(std::move(column.kinds)), given(std::move(column.offsets)),
                         given(std::move(column.data)), ascii[i]);
  }
  return {given(std::move(rows.records)), given(std::move(rows.ends)), lines, std::move(columns)};
}

std::string_view checked(const nb::bytes& text) {
  if (text.size() > INT32_MAX) throw ParameterError("text must have less than 2 GiB");
  return {text.c_str(), text.size()};
}

CellMarks checked_marks(int delimiter, int quote) {
  if (delimiter < 1 || delimiter > 127) throw ParameterError("delimiter must be one character of ASCII");
  if (quote < 0 || quote > 127 || quote == delimiter) throw ParameterError("quote must be another character, or 0");
  return {static_cast<char>(delimiter), static_cast<char>(quote)};
}

// How many different places there are, from 0 on.
size_t places_in(const std::vector<int>& places) {
  int last = -1;
  for (const int place : places) last = std::max(last, place);
  std::vector<bool> seen(static_cast<size_t>(last) + 1);
  for (const int place : places) {
    if (place < 0) continue;
    if (seen[static_cast<size_t>(place)]) throw ParameterError("columns must be different");
    seen[static_cast<size_t>(place)] = true;
  }
  if (std::find(seen.begin(), seen.end(), false) != seen.end()) throw ParameterError("a column has no cell");
  return seen.size();
}
// As many columns.
void make_columns(TextRows& rows, const std::vector<int>& places) { rows.columns.resize(places_in(places)); }

std::tuple<nb::bytes, int> ends_of(const nb::bytes& text, int delimiter, int cell, int quote) {
  if (cell < 0 || cell > 3) throw ParameterError("cell must be 0 to 3");
  std::vector<int64_t> ends;
  const CellMarks marks = checked_marks(delimiter, quote);
  const Cell after = record_ends({text.c_str(), text.size()}, marks, static_cast<Cell>(cell), ends);
  return {as_bytes(ends), static_cast<int>(after)};
}

std::tuple<int64_t, int64_t, int> bounds_of(const nb::bytes& text, int delimiter, int cell, int quote) {
  if (cell < 0 || cell > 3) throw ParameterError("cell must be 0 to 3");
  const CellMarks marks = checked_marks(delimiter, quote);
  const std::string_view all{text.c_str(), text.size()};
  nb::gil_scoped_release release;
  const RecordBounds found = record_bounds(all, marks, static_cast<Cell>(cell));
  return {found.first, found.last, static_cast<int>(found.cell)};
}

Read delimited_rows(const nb::bytes& text, int delimiter, const std::vector<int>& columns, int quote, bool more) {
  const std::string_view all = checked(text);
  const DelimitedReader reader(checked_marks(delimiter, quote), columns, more);
  TextRows rows;
  make_columns(rows, columns);
  return found(all, rows, [&] { reader.read(all, rows); });
}

WebLogReader web_log_reader(bool combined, const std::vector<int>& places) {
  std::array<int, WebLogReader::kFields> at{};
  if (places.size() != at.size()) throw ParameterError("a line of a web server has eight columns");
  std::copy(places.begin(), places.end(), at.begin());
  if (!combined && (at[WebLogReader::referrer] >= 0 || at[WebLogReader::agent] >= 0))
    throw ParameterError("the common log format has no referrer and no agent");
  return {combined, at};
}

Read web_log_rows(const nb::bytes& text, bool combined, const std::vector<int>& places) {
  const std::string_view all = checked(text);
  WebLogReader reader = web_log_reader(combined, places);
  TextRows rows;
  make_columns(rows, places);
  return found(all, rows, [&] { reader.read(all, rows); });
}

std::tuple<Read, Values<uint8_t>, Values<int32_t>> json_rows(const nb::bytes& text,
                                                             std::vector<std::optional<std::string>> wanted,
                                                             bool lists) {
  const std::string_view all = checked(text);
  TextRows rows;
  rows.columns.resize(wanted.size());
  JsonLinesReader reader(std::move(wanted), lists);
  Read read = found(all, rows, [&] { reader.read(all, rows); });
  return {std::move(read), given(std::move(reader.list_kinds)), given(std::move(reader.list_offsets))};
}

// ---- blocks of text ------------------------------------------------------------------------------------------------

// A piece of a text, in memory that the next block can use when nobody holds this one and its items. It begins where a
// record does: with what the block before it has after its last one.
class TextBlock {
 public:
  TextBlock(size_t room, const TextBlock* before)
      : home_(before ? before->home_ : std::make_shared<PageMemory>()),
        filled_(before ? before->waiting().size() : 0),
        room_(room) {
    if (filled_ + room_ > INT32_MAX) throw ParameterError("a block must have less than 2 GiB");
    memory_ = block_memory(*home_, filled_ + room_);
    if (filled_) std::memcpy(memory_.get(), before->waiting().data(), filled_);
  }
  // Where to write.
  nb::ndarray<nb::memview, uint8_t, nb::ndim<1>> room() const {
    auto own = std::make_unique<std::shared_ptr<char>>(memory_);
    nb::capsule owner(own.release(), [](void* p) noexcept { delete static_cast<std::shared_ptr<char>*>(p); });
    return {reinterpret_cast<uint8_t*>(memory_.get()) + filled_, {room_}, owner};
  }
  // This many bytes were written, the last ones or not: the block has the records that end in it. Without a delimiter
  // these are lines.
  size_t cut(size_t count, bool last, int delimiter, int quote) {
    if (count > room_) throw ParameterError("the block has no room for this many bytes");
    const CellMarks marks = delimiter ? checked_marks(delimiter, quote) : CellMarks{};
    nb::gil_scoped_release release;
    filled_ += count;
    room_ -= count;
    const std::string_view all(memory_.get(), filled_);
    bool open = false;
    if (!delimiter) {
      whole_ = all.rfind('\n') + 1;
    } else if (ends_ = cell_ends(all, marks, *home_); ends_.regular) {
      whole_ = ends_.last;
      open = ends_.open;
    } else {
      const RecordBounds found = record_bounds(all, marks, Cell::start);
      whole_ = static_cast<size_t>(found.last);
      open = found.cell == Cell::quoted;
    }
    if (last && !open) whole_ = filled_;
    return filled_ - whole_;
  }
  void skip(size_t count) { begin_ = std::min(whole_, begin_ + count); }

  std::string_view records() const { return {memory_.get() + begin_, whole_ - begin_}; }
  std::string_view waiting() const { return {memory_.get() + whole_, filled_ - whole_}; }
  TextMemory memory() const { return {records(), memory_, home_}; }
  std::optional<TextItems> items(CellMarks marks, const std::vector<int>& columns, bool more,
                                 const CellCondition* condition) const {
    return delimited_items(memory(), ends_, begin_, marks, columns, more, condition);
  }
  std::optional<ChosenRows> rows(CellMarks marks, const std::vector<int>& columns, bool more,
                                 const CellCondition* condition) const {
    return rows_of_cells(records(), ends_, begin_, marks, columns, more, condition);
  }

 private:
  std::shared_ptr<PageMemory> home_;
  std::shared_ptr<char> memory_;
  size_t filled_, room_, begin_ = 0, whole_ = 0;
  CellEnds ends_;
};

using MadeItems = std::optional<std::pair<MadeColumn, size_t>>;

// What find() finds, without the GIL.
template <class F>
MadeItems made(F&& find) {
  nb::gil_scoped_release release;
  std::optional<TextItems> found = find();
  if (!found) return std::nullopt;
  return std::pair(MadeColumn{std::move(found->column)}, found->lines);
}

MadeItems delimited_items_of(const TextBlock& self, int delimiter, const std::vector<int>& columns, int quote,
                             bool more, const CellCondition* condition) {
  const CellMarks marks = checked_marks(delimiter, quote);
  if (std::count(columns.begin(), columns.end(), 0) != 1) throw ParameterError("items are in one column");
  if (places_in(columns) > (condition ? std::max<size_t>(condition->places(), 1) : 1))
    throw ParameterError("items are in one column");
  return made([&] { return self.items(marks, columns, more, condition); });
}

std::optional<std::pair<Read, bool>> delimited_rows_of(const TextBlock& self, int delimiter,
                                                       const std::vector<int>& columns, int quote, bool more,
                                                       const CellCondition* condition) {
  const CellMarks marks = checked_marks(delimiter, quote);
  if (!places_in(columns)) throw ParameterError("a column has no cell");
  std::optional<ChosenRows> chosen;
  {
    nb::gil_scoped_release release;
    chosen = self.rows(marks, columns, more, condition);
  }
  if (!chosen) return std::nullopt;
  return std::pair(found(self.records(), chosen->rows, [] {}), chosen->sure);
}

// Parts of a condition by their names, as `engines/cell_conditions.py` has them.
using Steps = std::vector<std::vector<std::tuple<std::string, size_t, std::string, std::string>>>;

CellCondition cell_condition(const Steps& given) {
  static constexpr std::string_view kKinds[] = {"and",   "or",       "not", "null",   "text",
                                                "whole", "fraction", "has", "begins", "ends"};
  static constexpr std::pair<std::string_view, uint8_t> kSigns[] = {{"", 0},  {"<", 1},  {"=", 2}, {"<=", 3},
                                                                    {">", 4}, {"<>", 5}, {">=", 6}};
  std::vector<std::vector<CellStep>> conditions;
  for (const auto& steps : given) {
    auto& made = conditions.emplace_back();
    for (const auto& [kind, place, sign, written] : steps) {
      const auto which = std::find(std::begin(kKinds), std::end(kKinds), kind);
      const auto accepts =
          std::find_if(std::begin(kSigns), std::end(kSigns), [&](auto& each) { return each.first == sign; });
      if (which == std::end(kKinds) || accepts == std::end(kSigns) || place > 0xffff)
        throw ParameterError("a step of a condition is not known");
      CellStep step{static_cast<CellStep::Kind>(which - std::begin(kKinds)), place, accepts->second, written};
      if (step.kind == CellStep::whole || step.kind == CellStep::fraction) {
        const auto number = plain_number(written);
        const auto real = number ? near_float(*number) : std::nullopt;
        if (!number || (step.kind == CellStep::whole ? number->decimals != 0 : !real || !real->exact))
          throw ParameterError("a number of a condition is too long");
        step.number = number->signed_whole();
        step.real = real ? real->value : 0;
      }
      made.push_back(std::move(step));
    }
  }
  return CellCondition(std::move(conditions));
}

// The only column of rows that a reader reads.
template <class Reader>
MadeItems items_of_rows(const TextBlock& self, Reader& reader) {
  return made([&]() -> std::optional<TextItems> {
    TextRows rows;
    rows.columns.resize(1);
    reader.read(self.records(), rows);
    auto column = text_items::of_rows(std::move(rows));
    if (!column) return std::nullopt;
    return TextItems{std::move(*column), newlines(self.records())};
  });
}

MadeItems web_log_items_of(const TextBlock& self, bool combined, const std::vector<int>& places) {
  if (std::count(places.begin(), places.end(), 0) != 1 || std::count(places.begin(), places.end(), -1) != 7)
    throw ParameterError("items are in one column");
  WebLogReader reader = web_log_reader(combined, places);
  return items_of_rows(self, reader);
}

MadeItems json_items_of(const TextBlock& self, std::optional<std::string> wanted) {
  JsonLinesReader reader({std::move(wanted)}, false);
  return items_of_rows(self, reader);
}

// What a condition says of rows of Arrow, whose columns of text are in their places; None is one that it does not look
// at.
nb::bytes said_of(const CellCondition& self, const std::vector<nb::object>& given) {
  std::vector<std::optional<Column>> columns;
  std::vector<std::unique_ptr<ColumnSource>> sources;
  std::optional<int64_t> rows;
  for (const nb::object& each : given) {
    auto& column = columns.emplace_back();
    if (each.is_none()) continue;
    sources.push_back(open_column(each));
    column.emplace();
    Column after;
    if (!sources.back()->next(*column) || sources.back()->next(after))
      throw ParameterError("a column must be one array");
    if (column->kind != KeyKind::string || column->dictionary) throw ParameterError("a column must be of text");
    if (rows.value_or(column->length) != column->length)
      throw ParameterError("columns must have the same number of rows");
    rows = column->length;
  }
  for (size_t place = 0; place < self.places(); ++place)
    if (self.looks_at(place) && (place >= columns.size() || !columns[place]))
      throw ParameterError("a condition looks at a column that is not given");
  const nb::bytes out = unwritten(static_cast<size_t>(rows.value_or(0)));
  char* const said = written(out);
  nb::gil_scoped_release release;
  for (int64_t row = 0; row < rows.value_or(0); ++row) {
    bool all_text = true;
    const Said found = self.of([&](size_t place) -> std::optional<std::string_view> {
      const Column& column = *columns[place];
      if (!column.valid(row)) return std::nullopt;
      const std::string_view text = bytes_at(column, row);
      all_text = all_text && is_utf8(text);
      return text;
    });
    said[row] = static_cast<char>(all_text ? found : Said::unsure);
  }
  return out;
}

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

void bind_blocks(nb::module_& m) {
  nb::class_<CellCondition>(m, "CellCondition",
                            "A condition of rows of text: lists of steps in postfix notation, each (kind, place of its "
                            "column, sign, what is written), that are joined by AND.")
      .def(
          "__init__", [](CellCondition* self, const Steps& steps) { new (self) CellCondition(cell_condition(steps)); },
          nb::arg("conditions"))
      .def("said", &said_of, nb::arg("columns"),
           "What it says of rows of Arrow columns of text, a byte each: 0 no, 1 yes, 2 null, 3 that it cannot be "
           "computed, 4 "
           "that it does not know. None stands for a column that it does not look at.");
  nb::class_<TextBlock>(
      m, "TextBlock",
      "A piece of a text, in memory that is used again. It begins with what the one before it has after "
      "its last record. NOT PRIVATE.")
      .def(nb::init<size_t, const TextBlock*>(), nb::arg("room"), nb::arg("before").none() = nb::none())
      .def("room", &TextBlock::room, "Where its next bytes are to be written.")
      .def(
          "cut", &TextBlock::cut, nb::arg("count"), nb::arg("last"), nb::arg("delimiter"), nb::arg("quote"),
          "This many bytes were written, and with last no more will come: how many are after the last record that ends "
          "there. Without a delimiter (0) records are lines; a quote of 0 is none.")
      .def("__len__", [](const TextBlock& self) { return self.records().size(); })
      .def("skip", &TextBlock::skip, nb::arg("count"), "Leave out this many bytes at its start.")
      .def(
          "records", [](const TextBlock& self) { return bytes_of(self.records()); }, "The bytes of its records.")
      .def(
          "waiting", [](const TextBlock& self) { return bytes_of(self.waiting()); }, "The bytes after them.")
      .def(
          "line_items", [](const TextBlock& self) { return made([&] { return line_items(self.memory()); }); },
          "Its lines as items, and how many newlines there are; None if a line is no item.")
      .def("delimited_items", &delimited_items_of, nb::arg("delimiter"), nb::arg("columns"), nb::arg("quote"),
           nb::arg("more"), nb::arg("condition").none() = nb::none(),
           "The same of the cells of one column, as for delimited_rows; None if a row has no item. With a condition, "
           "which "
           "looks at the columns by their places, of the rows for which it holds; None if it does not know that of a "
           "row.")
      .def("delimited_rows", &delimited_rows_of, nb::arg("delimiter"), nb::arg("columns"), nb::arg("quote"),
           nb::arg("more"), nb::arg("condition").none() = nb::none(),
           "As delimited_rows, and whether the condition knows of all rows whether it holds; None if a record is bad, "
           "or "
           "text is not UTF-8. Rows for which it does not hold are blank, and those for which it cannot be computed "
           "are of "
           "the kind 9; the others, of which some may stay that it knows nothing of, have their columns.")
      .def("web_log_items", &web_log_items_of, nb::arg("combined"), nb::arg("places"),
           "The same of one column of web_log_rows.")
      .def("json_items", &json_items_of, nb::arg("wanted").none(),
           "The same of one column of json_rows; None if a row has no text.");
}

}  // namespace

void bind_records(nb::module_& m) {
  bind_blocks(m);
  m.def("record_ends", &ends_of, nb::arg("text"), nb::arg("delimiter"), nb::arg("cell"), nb::arg("quote") = '"' + 0,
        "The offsets (int64) after the records of delimited text, and how its last cell goes on: 0 at its start, 1 "
        "plain, 2 inside quotes, 3 after a quote that may have closed it.");
  m.def("record_bounds", &bounds_of, nb::arg("text"), nb::arg("delimiter"), nb::arg("cell"), nb::arg("quote") = '"' + 0,
        "The offsets after the first and after the last of them, 0 where none ends, and how its last cell goes on.");
  m.def("delimited_rows", &delimited_rows, nb::arg("text"), nb::arg("delimiter"), nb::arg("columns"),
        nb::arg("quote") = '"' + 0, nb::arg("more") = false,
        "The kind of every record (uint8: 0 a row, 1 blank, 2 another number of cells, 3 unreadable), the offset after "
        "it (int64), how many newlines there are, and of the rows the wanted columns as text: kinds (uint8: 0 an empty "
        "cell without quotes, 1 text), offsets (int32), bytes, and whether these are ASCII. columns[i] is the place of "
        "cell i among them, or -1; with more a "
        "row may have cells after these. A quote of 0 is none.");
  m.def("web_log_rows", &web_log_rows, nb::arg("text"), nb::arg("combined"), nb::arg("places"),
        "The same of lines of the common or the combined log format. places are those of ip, time, method, path, "
        "status, bytes, referrer and agent among the wanted columns, or -1.");
  m.def("json_rows", &json_rows, nb::arg("text"), nb::arg("wanted"), nb::arg("lists"),
        "The same of JSON lines. Kinds of values: 0 null, 1 text, 2 an integer of 64 bits with a sign, 3 without, 4 "
        "another number, 5 something else (true and false have "
        "their names as text). None is the only key beside the others. With lists the values of the first "
        "column are their elements, and two more arrays are the kinds (4 for a list without one) and offsets of the "
        "lists.");
}

}  // namespace discreet
