// A condition of rows of text, decided cell by cell where DuckDB of any version would say the same.
//
// A text that is compared with a number is cast to one by DuckDB: to DECIMAL(38, 9) beside a whole number, to DOUBLE
// beside a fraction. Here only plain digits are read, with a point inside or without; what begins with a letter is no
// number. Of anything else (blanks, underscores, exponents, 0x) nothing is said: a row is `unsure` then, and DuckDB has
// to be asked.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/errors.hpp"

namespace discreet {

// What a condition says of a row, or a part of it. `bad`: it cannot be computed.
enum class Said : uint8_t { no, yes, null, bad, unsure };

// ---- numbers
// ---------------------------------------------------------------------------------------------------------

struct PlainNumber {
  bool negative = false;
  int64_t whole = 0;  // before the point, without its sign
  int64_t after = 0;  // the digits behind it
  int digits = 0, decimals = 0;

  int64_t signed_whole() const { return negative ? -whole : whole; }
};

// Up to 18 digits, and as many behind a point; without leading or trailing points.
inline std::optional<PlainNumber> plain_number(std::string_view text) {
  constexpr int kMost = 18;
  PlainNumber out;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto digits = [&](int64_t& value) {
    const char* const begin = at;
    while (at != end && *at >= '0' && *at <= '9') {
      if (at - begin == kMost) return 0;
      value = 10 * value + (*at++ - '0');
    }
    return static_cast<int>(at - begin);
  };
  if (at != end && *at == '-') out.negative = true, ++at;
  if (!(out.digits = digits(out.whole))) return std::nullopt;
  if (at != end && *at == '.') {
    ++at;
    if (!(out.decimals = digits(out.after))) return std::nullopt;
  }
  if (at != end) return std::nullopt;
  return out;
}

// Whether a number is below (-1), at (0) or above (1) a whole one, as DECIMAL(38, 9).
inline std::optional<int> order_of(const PlainNumber& number, int64_t written) {
  constexpr int kDecimals = 9;
  const int64_t whole = number.signed_whole();
  if (number.decimals > kDecimals && std::abs(whole - written) <= 1) return std::nullopt;  // which is rounded
  if (whole != written) return whole < written ? -1 : 1;
  if (!number.after) return 0;
  return number.negative ? -1 : 1;
}

// The float of 64 bits that is nearest to a number, or with more than 15 digits one of those around it.
struct NearFloat {
  double value;
  bool exact;
};
inline std::optional<NearFloat> near_float(const PlainNumber& number) {
  constexpr int kMost = 18;
  constexpr int64_t kExact = int64_t{1} << 53;
  if (number.digits + number.decimals > kMost) return std::nullopt;
  int64_t digits = number.whole, power = 1;
  for (int i = 0; i < number.decimals; ++i) power *= 10;
  digits = digits * power + number.after;
  const double value = static_cast<double>(digits) / static_cast<double>(power);
  return NearFloat{number.negative ? -value : value, digits <= kExact};
}
inline std::optional<int> order_of(const PlainNumber& number, double written) {
  constexpr double kFar = 1e-12;  // more than what is lost by rounding twice
  const auto found = near_float(number);
  if (!found || (!found->exact && std::abs(found->value - written) <= kFar * std::abs(written))) return std::nullopt;
  return found->value < written ? -1 : found->value > written ? 1 : 0;
}

// Whether no version of DuckDB reads a number here: a dash alone, or words (of which floats know "inf" and "nan").
inline bool is_no_number(std::string_view text, bool as_float) {
  if (text.empty()) return false;
  const char first = static_cast<char>(text[0] | 0x20);
  if (as_float && (first == 'i' || first == 'n')) return false;
  return text == "-" || (first >= 'a' && first <= 'z');
}

// ---- conditions
// ------------------------------------------------------------------------------------------------------

// One test of a cell, or how two of them are joined: those before it, as in postfix notation.
struct CellStep {
  enum Kind : uint8_t { both, either, negated, missing, text, whole, fraction, has, begins, ends };
  Kind kind;
  size_t place = 0;     // of the cell, among those that the condition looks at
  uint8_t accepts = 0;  // of a comparison: bits for below, at and above
  std::string written;
  int64_t number = 0;
  double real = 0;

  Said of(std::optional<std::string_view> cell) const {
    if (kind == missing) return cell ? Said::no : Said::yes;
    if (!cell) return Said::null;
    switch (kind) {
      case text: {
        const int order = cell->compare(written);
        return accepted((order > 0) - (order < 0));
      }
      case whole:
      case fraction: {
        const auto found = plain_number(*cell);
        if (!found) return is_no_number(*cell, kind == fraction) ? Said::bad : Said::unsure;
        const auto order = kind == whole ? order_of(*found, number) : order_of(*found, real);
        return order ? accepted(*order) : Said::unsure;
      }
      case has: return said(cell->find(written) != cell->npos);
      case begins: return said(cell->substr(0, written.size()) == written);
      case ends: return said(cell->size() >= written.size() && cell->substr(cell->size() - written.size()) == written);
      default: return Said::unsure;
    }
  }

 private:
  static Said said(bool holds) { return holds ? Said::yes : Said::no; }
  Said accepted(int order) const { return said(accepts >> (order + 1) & 1); }
};

// Conditions that are joined by AND. Each is asked only where those before it hold.
class CellCondition {
 public:
  static constexpr size_t kLongest = 1 << 20;  // bytes of a cell: a row with a longer one is left to DuckDB

  explicit CellCondition(std::vector<std::vector<CellStep>> conditions) : conditions_(std::move(conditions)) {
    for (const auto& steps : conditions_) {
      size_t waiting = 0;
      for (const CellStep& step : steps) {
        const size_t takes = step.kind <= CellStep::either ? 2 : step.kind == CellStep::negated;
        if (waiting < takes || waiting - takes == kWaiting) throw ParameterError("steps of a condition do not fit");
        waiting += 1 - takes;
        if (step.kind > CellStep::negated) places_ = std::max(places_, step.place + 1);
      }
      if (waiting != 1) throw ParameterError("steps of a condition do not fit");
    }
  }
  // The place after the last one that it looks at.
  size_t places() const { return places_; }
  bool looks_at(size_t place) const {
    for (const auto& steps : conditions_)
      for (const CellStep& step : steps)
        if (step.kind > CellStep::negated && step.place == place) return true;
    return false;
  }

  // `cell(place)` is the text of a cell, none where there is nothing.
  template <class Cell>
  Said of(Cell&& cell) const {
    for (const auto& steps : conditions_) {
      const Said said = steps.size() == 1 ? steps[0].of(cell(steps[0].place)) : joined(steps, cell);
      if (said != Said::yes) return said == Said::null ? Said::no : said;
    }
    return Said::yes;
  }

 private:
  static constexpr size_t kWaiting = 128;

  // Which of its tests DuckDB asks first, and whether it asks all, nobody knows: all of them cannot be computed, or
  // none.
  template <class Cell>
  static Said joined(const std::vector<CellStep>& steps, Cell&& cell) {
    std::array<Said, kWaiting> waiting;
    size_t count = 0, tests = 0, bad = 0;
    for (const CellStep& step : steps) {
      if (step.kind > CellStep::negated) {
        const Said said = step.of(cell(step.place));
        if (said == Said::unsure) return said;
        ++tests;
        bad += said == Said::bad;
        waiting[count++] = said == Said::bad ? Said::null : said;
      } else if (step.kind == CellStep::negated) {
        Said& last = waiting[count - 1];
        if (last != Said::null) last = last == Said::yes ? Said::no : Said::yes;
      } else {
        const Said last = waiting[--count];
        Said& first = waiting[count - 1];
        const Said wins = step.kind == CellStep::both ? Said::no : Said::yes;
        if (first == wins || last == wins) {
          first = wins;
        } else if (last == Said::null) {
          first = last;
        }
      }
    }
    return !bad ? waiting[0] : bad == tests ? Said::bad : Said::unsure;
  }

  std::vector<std::vector<CellStep>> conditions_;
  size_t places_ = 0;
};

}  // namespace discreet
