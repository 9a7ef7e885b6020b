// Lines of the logs of web servers: the common log format, and the combined one, which has two fields more.
//
//   host ident user [10/Oct/2000:13:55:36 -0700] "GET /page HTTP/1.1" 200 2326 "referrer" "agent"
//
// Quoted fields are taken as they are written; a quote inside of one has a backslash before it. What comes after the
// last field is passed over, so lines with more fields can be read, too; but not a carriage return, which servers escape.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/readers/text_rows.hpp"

namespace discreet {

class WebLogReader {
 public:
  enum Field { ip, time, method, path, status, bytes, referrer, agent, kFields };

  // `places[field]` is the place of a field among the wanted columns, or -1.
  WebLogReader(bool combined, const std::array<int, kFields>& places) : combined_(combined), places_(places) {}

  void read(std::string_view text, TextRows& out) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    for (const char* at = begin; at != end;) {
      const char* next = after_blank(at, end);
      RecordKind kind = RecordKind::blank;
      if (next == at) {
        next = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
        const char* line_end = next ? next : end;
        next = next ? next + 1 : end;
        if (line_end[-1] == '\r') --line_end;
        kind = read_line(at, line_end) ? RecordKind::row : RecordKind::unreadable;
        if (kind == RecordKind::row) keep(out);
      }
      out.end_record(kind, next - begin);
      at = next;
    }
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  bool wanted(Field field) const { return places_[field] >= 0; }

  void keep(TextRows& out) const {
    for (size_t field = 0; field < kFields; ++field) {
      if (places_[field] < 0) continue;
      TextColumn& column = out.columns[static_cast<size_t>(places_[field])];
      column.data.append(found_[field]);
      column.end_value(ValueKind::text);
    }
  }

  bool read_line(const char* at, const char* end) {
    at_ = at, end_ = end;
    const char* const space = find(' ');
    if (!space || space == at_) return false;
    found_[ip] = between(at_, space);
    at_ = space;
    const char* open = nullptr;  // of the time; who logged in comes before, and may be anything
    do {
      open = find('[');
      if (!open) return false;
      at_ = open + 1;
    } while (open[-1] != ' ' || open - space < 4);
    const char* const close = find(']');
    if (!close) return false;
    if (wanted(time) && !read_time(between(at_, close))) return false;
    at_ = close + 1;
    std::string_view request;
    if (!read_quoted(request) || !take(' ')) return false;
    if ((wanted(method) || wanted(path)) && !read_request(request)) return false;
    const char* const code = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    if (at_ - code != 3 || !take(' ')) return false;
    found_[status] = between(code, code + 3);
    const char* const size = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    found_[bytes] = between(size, at_);
    if (at_ == size) {  // a dash stands for none
      if (!take('-')) return false;
      found_[bytes] = "0";
    }
    if (combined_ && (!read_quoted(found_[referrer]) || !read_quoted(found_[agent]))) return false;
    return at_ == end_ || (*at_ == ' ' && !find('\r'));  // lines that end with carriage returns alone are not one
  }

  // GET /page HTTP/1.1; the protocol may be missing, and the page may have blanks.
  bool read_request(std::string_view request) {
    const size_t space = request.find(' ');
    if (space == std::string_view::npos || space == 0 || space > 32) return false;
    found_[method] = request.substr(0, space);
    for (const char c : found_[method])
      if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_')) return false;
    request.remove_prefix(space + 1);
    const size_t last = request.rfind(' ');
    if (last != std::string_view::npos && request.substr(last + 1, 5) == "HTTP/") request = request.substr(0, last);
    found_[path] = request;
    return !request.empty();
  }

  // A blank, and what is inside of quotes.
  bool read_quoted(std::string_view& out) {
    if (!take(' ') || !take('"')) return false;
    const char* const start = at_;
    for (;;) {
      const char* const quote = find('"');
      if (!quote) return false;
      const char* before = quote;
      while (before != start && before[-1] == '\\') --before;
      at_ = quote + 1;
      if ((quote - before) % 2 == 0) {
        out = between(start, quote);
        return true;
      }
    }
  }

  // In UTC, as ISO 8601 has it. Lines of one second follow one another, so the last one is kept.
  bool read_time(std::string_view written) {
    if (written.size() != 26) return false;
    if (!last_written_.empty() && written == last_written_) {
      found_[time] = last_time_;
      return true;
    }
    static constexpr std::string_view kForm = "00/AAA/0000:00:00:00 +0000";
    for (size_t i = 0; i < kForm.size(); ++i) {
      const char c = written[i];
      if (kForm[i] == '0' ? !is_digit(c) : kForm[i] == '+' ? c != '+' && c != '-' : kForm[i] != 'A' && c != kForm[i])
        return false;
    }
    const auto number = [written](size_t from, size_t digits) {
      int value = 0;
      for (size_t i = from; i < from + digits; ++i) value = value * 10 + (written[i] - '0');
      return value;
    };
    static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const size_t name = kMonths.find(written.substr(3, 3));
    if (name == std::string_view::npos || name % 3) return false;
    const int month = static_cast<int>(name / 3) + 1, day = number(0, 2), year = number(7, 4);
    const int hour = number(12, 2), minute = number(15, 2), second = number(18, 2);
    const int ahead = (number(22, 2) * 60 + number(24, 2)) * (written[21] == '-' ? -1 : 1);
    static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (day < 1 || day > kDays[month - 1] + (month == 2 && leap) || hour > 23 || minute > 59 || second > 60 ||
        number(22, 2) > 23 || number(24, 2) > 59)
      return false;
    const int64_t seconds = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - ahead * 60;
    const int64_t days = (seconds >= 0 ? seconds : seconds - 86399) / 86400;
    int y, m, d;
    civil_from_days(days, y, m, d);
    if (y < 1 || y > 9999) return false;
    const int rest = static_cast<int>(seconds - days * 86400);
    last_written_ = written;
    last_time_ = "0000-00-00T00:00:00Z";
    const auto put = [this](size_t at, int value) {
      last_time_[at] = static_cast<char>('0' + value / 10);
      last_time_[at + 1] = static_cast<char>('0' + value % 10);
    };
    put(0, y / 100), put(2, y % 100), put(5, m), put(8, d);
    put(11, rest / 3600), put(14, rest / 60 % 60), put(17, rest % 60);
    found_[time] = last_time_;
    return true;
  }

  // Days since 1970 in the Gregorian calendar, which begins a year with March here: the leap day is its last.
  static int64_t days_from_civil(int year, int month, int day) {
    const int64_t y = month <= 2 ? year - 1 : year;
    const int64_t days_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return y * 365 + floor_of(y, 4) - floor_of(y, 100) + floor_of(y, 400) + days_of_year - 719468;
  }
  static int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

  static void civil_from_days(int64_t days, int& year, int& month, int& day) {
    // The year by its length on average, set right by at most one; then the month.
    int64_t y = floor_of((days + 719468) * 400, 146097);
    while (days < days_from_civil(static_cast<int>(y), 3, 1)) --y;
    while (days >= days_from_civil(static_cast<int>(y + 1), 3, 1)) ++y;
    const auto of_year = static_cast<int>(days - days_from_civil(static_cast<int>(y), 3, 1));
    const int m = (5 * of_year + 2) / 153;
    day = of_year - (153 * m + 2) / 5 + 1;
    month = m < 10 ? m + 3 : m - 9;
    year = static_cast<int>(y) + (month <= 2);
  }

  const char* find(char c) const {
    return static_cast<const char*>(std::memchr(at_, c, static_cast<size_t>(end_ - at_)));
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  static std::string_view between(const char* from, const char* to) { return {from, static_cast<size_t>(to - from)}; }

  bool combined_;
  std::array<int, kFields> places_;
  std::array<std::string_view, kFields> found_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::string last_written_, last_time_;
};

}  // namespace discreet
