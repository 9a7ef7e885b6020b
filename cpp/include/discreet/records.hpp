// Where the records of delimited text end: at newlines that are not inside quotes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace discreet {

// A quote opens a cell at its start only; elsewhere in a cell without quotes it is an ordinary character. Inside a
// quoted cell two quotes in a row stand for one.
enum class Cell : uint8_t { start = 0, plain = 1, quoted = 2, after_quote = 3 };

// Reads text that goes on where the text before it left `cell`, each byte once. Appends the offset after each record.
inline Cell record_ends(std::string_view text, char delimiter, Cell cell, std::vector<int64_t>& ends) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char* at = begin; at != end; ++at) {
    if (cell == Cell::quoted) {
      at = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at)));
      if (!at) return cell;
      cell = Cell::after_quote;
    } else if (*at == '"' && cell != Cell::plain) {
      cell = Cell::quoted;
    } else if (*at == '\n') {
      ends.push_back(at - begin + 1);
      cell = Cell::start;
    } else {
      cell = *at == delimiter || *at == '\r' ? Cell::start : Cell::plain;
    }
  }
  return cell;
}

}  // namespace discreet
