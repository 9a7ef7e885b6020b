// JSON lines: one object a line, and of it the values of the keys that are wanted.
//
// What is JSON is what Python's parser takes: RFC 8259 and the words NaN, Infinity and -Infinity, integers of at most
// 4,300 digits; of a key that comes twice the last value. Lines are valid UTF-8, and nesting goes 900 deep.
//
// A key inside of an object has the name of that object before it, and a dot: "user.id" is the key "id" of the object
// "user", as well as a key that is written so.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/readers/text_rows.hpp"

namespace discreet {

class JsonLinesReader {
 public:
  // A key that is not named (at most one) is the only one of its line beside the others. With `lists` the values of the
  // first column are lists: out.columns[0] has their elements, `list_kinds` and `list_offsets` are of the rows.
  JsonLinesReader(std::vector<std::optional<std::string>> wanted, bool lists)
      : wanted_(std::move(wanted)), slots_(wanted_.size()), lists_(lists) {
    for (int c = 0; c < 0x20; ++c) stops_[c] = true;
    for (const unsigned char c : {'"', '\\'}) stops_[c] = true;
  }

  std::vector<uint8_t> list_kinds;
  std::vector<int32_t> list_offsets{0};

  void read(std::string_view text, TextRows& out) {
    const char* const begin = text.data();
    const bool ascii = !has_high_bit(text.data(), text.size());
    end_ = begin + text.size();
    out.expect(text, std::max<size_t>(1, wanted_.size()));
    for (const char* at = begin; at != end_;) {
      const char* next = after_blank(at, end_);
      RecordKind kind = RecordKind::blank;
      if (next == at) {
        const bool good = (ascii || is_utf8({at, static_cast<size_t>(line_end(at) - at)})) && read_line(at);
        kind = good ? RecordKind::row : RecordKind::unreadable;
        if (good) keep(out);
        next = good ? at_ : line_end(at);
        if (next != end_) ++next;
      }
      // Nothing was kept of other records, so there is nothing to cut, and lists have columns of other lengths.
      out.records.push_back(static_cast<uint8_t>(kind));
      out.ends.push_back(next - begin);
      at = next;
    }
  }

 private:
  static constexpr int kDeepest = 900;
  static constexpr std::ptrdiff_t kMostDigits = 4300;

  // The value of a wanted key.
  struct Slot {
    std::string_view written;  // in the line, or in `own` if that has it with escapes
    std::string own;
    TextColumn values;  // of a list: its elements
    bool is_list = false;
    ValueKind kind = ValueKind::null;
  };

  const char* line_end(const char* at) const {
    const void* const found = std::memchr(at, '\n', static_cast<size_t>(end_ - at));
    return found ? static_cast<const char*>(found) : end_;
  }

  void keep(TextRows& out) {
    for (size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      TextColumn& column = out.columns[i];
      if (lists_ && i == 0) {
        const ValueKind kind = list_kind(slot);
        if (kind != ValueKind::other && kind != ValueKind::null) {
          const auto base = static_cast<int32_t>(column.data.size());
          column.data.append(slot.values.data.view());
          for (size_t k = 1; k < slot.values.offsets.size(); ++k)
            column.offsets.push_back(base + slot.values.offsets[k]);
          column.kinds.insert(column.kinds.end(), slot.values.kinds.begin(), slot.values.kinds.end());
        }
        list_kinds.push_back(static_cast<uint8_t>(kind));
        list_offsets.push_back(static_cast<int32_t>(column.kinds.size()));
      } else {
        put(slot.written, slot.own, column.data);
        column.end_value(slot.kind);
      }
    }
    ++out.rows;
  }

  // Text that is a part of the line, or `own`.
  void put(std::string_view text, const std::string& own, TextBytes& out) const {
    if (text.empty()) return;
    if (text.data() == own.data()) {
      out.append(text);
    } else {
      out.append(text, end_);
    }
  }

  // The one kind of a list's elements that are not null, `number` if there are none (which a list's is never else).
  static ValueKind list_kind(const Slot& slot) {
    if (!slot.is_list) return slot.kind == ValueKind::null ? ValueKind::null : ValueKind::other;
    bool seen[6] = {}, negative = false;
    for (size_t k = 0; k < slot.values.kinds.size(); ++k) {
      seen[slot.values.kinds[k]] = true;
      negative |= slot.values.kinds[k] == static_cast<uint8_t>(ValueKind::integer) &&
                  slot.values.data.data()[slot.values.offsets[k]] == '-';
    }
    const bool text = seen[1], integer = seen[2], large = seen[3];
    if (seen[4] || seen[5] || (text && (integer || large)) || (large && negative)) return ValueKind::other;
    return text ? ValueKind::text : large ? ValueKind::large : integer ? ValueKind::integer : ValueKind::number;
  }

  // ---- the grammar: each moves past what it reads, and is false where that is not JSON ---------------------------
  //
  // Nothing passes over a newline, so that nothing goes past the end of its line.

  bool read_line(const char* at) {
    at_ = at;
    for (Slot& slot : slots_) clear(slot);
    other_key_.reset();
    several_ = false;
    key_.clear();
    space();
    if (!read_object(1)) return false;
    space();
    return at_ == end_ || *at_ == '\n';
  }

  // An object whose keys follow what is in `key_`, which is as before afterwards.
  bool read_object(int depth) {
    const size_t before = key_.size();
    if (depth > kDeepest || !take('{')) return false;
    space();
    if (take('}')) return true;
    do {
      space();
      std::string_view key;
      bool unicode = true;
      if (!read_string(escaped_, key, unicode)) return false;
      if (before) {
        key_.resize(before);
        key_ += key;
        key = key_;
      }
      space();
      if (!take(':')) return false;
      space();
      const bool around = holds_wanted(key);
      Slot* const slot = slot_of(key, before == 0 && !around);
      if (slot) {
        if (!read_into(*slot)) return false;
      } else if (around && at_ != end_ && *at_ == '{') {
        if (!before) key_ = key;
        key_.push_back('.');
        if (!read_object(depth + 1)) return false;
      } else if (!skip_value(depth)) {
        return false;
      }
      space();
    } while (take(','));
    key_.resize(before);
    return take('}');
  }

  // Whether a wanted key may be inside of this one.
  bool holds_wanted(std::string_view key) const {
    for (const auto& name : wanted_)
      if (name && name->size() > key.size() && (*name)[key.size()] == '.' && name->compare(0, key.size(), key) == 0)
        return true;
    return false;
  }

  static void clear(Slot& slot) {
    slot.written = {};
    if (slot.is_list) slot.values.cut(0);
    slot.is_list = false;
    slot.kind = ValueKind::null;
  }

  Slot* slot_of(std::string_view key, bool may_be_unnamed) {
    Slot* unnamed = nullptr;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i])
        unnamed = &slots_[i];
      else if (*wanted_[i] == key)
        return &slots_[i];
    }
    if (!unnamed || !may_be_unnamed) return nullptr;
    if (!other_key_) other_key_.emplace(key);
    several_ |= *other_key_ != key;
    if (!several_) return unnamed;
    clear(*unnamed);
    return nullptr;
  }

  bool read_into(Slot& slot) {
    clear(slot);
    space();
    slot.is_list = lists_ && &slot == slots_.data() && at_ != end_ && *at_ == '[';
    if (!slot.is_list) return read_value(slot.own, slot.written, slot.kind);
    ++at_;
    space();
    if (take(']')) return true;
    do {
      ValueKind kind = ValueKind::null;
      std::string_view written;
      if (!read_value(slot.own, written, kind)) return false;
      put(written, slot.own, slot.values.data);
      slot.values.end_value(kind);
      space();
    } while (take(','));
    return take(']');
  }

  // A value, and its text: a part of the line, or `own`.
  bool read_value(std::string& own, std::string_view& text, ValueKind& kind) {
    space();
    if (at_ == end_) return false;
    const char* const start = at_;
    text = {};
    if (*at_ == '"') {
      bool unicode = true;
      if (!read_string(own, text, unicode)) return false;
      kind = unicode ? ValueKind::text : ValueKind::other;
      if (!unicode) text = {};
      return true;
    }
    bool whole = false;
    if (*at_ == '-' || *at_ == 'N' || *at_ == 'I' || (*at_ >= '0' && *at_ <= '9')) {
      if (!read_number(whole)) return false;
      text = {start, static_cast<size_t>(at_ - start)};
      if (text == "-0") text.remove_prefix(1);
      kind = whole ? size_of(text) : ValueKind::number;
      return true;
    }
    if (!skip_value(1)) return false;
    kind = *start == 'n' ? ValueKind::null : ValueKind::other;
    if (*start == 't' || *start == 'f') text = {start, static_cast<size_t>(at_ - start)};
    return true;
  }

  static ValueKind size_of(std::string_view digits) {
    const bool negative = digits.front() == '-';
    if (negative) digits.remove_prefix(1);
    const auto within = [digits](std::string_view most) {
      return digits.size() < most.size() || (digits.size() == most.size() && digits <= most);
    };
    if (within(negative ? "9223372036854775808" : "9223372036854775807")) return ValueKind::integer;
    return !negative && within("18446744073709551615") ? ValueKind::large : ValueKind::number;
  }

  bool skip_value(int depth) {
    space();
    if (at_ == end_) return false;
    bool ignored = true;
    std::string_view text;
    switch (*at_) {
      case '"':
        return read_string(escaped_, text, ignored);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      case '[':
      case '{':
        return skip_nested(depth + 1);
      default:
        return read_number(ignored);
    }
  }

  bool skip_nested(int depth) {
    if (depth > kDeepest) return false;
    const bool is_object = *at_++ == '{';
    const char closing = is_object ? '}' : ']';
    space();
    if (take(closing)) return true;
    do {
      if (is_object) {
        bool ignored = true;
        std::string_view text;
        space();
        if (!read_string(escaped_, text, ignored)) return false;
        space();
        if (!take(':')) return false;
      }
      if (!skip_value(depth)) return false;
      space();
    } while (take(','));
    return take(closing);
  }

  bool read_number(bool& whole) {
    whole = false;
    if (*at_ == 'N') return word("NaN");
    if (*at_ == 'I') return word("Infinity");
    if (take('-') && at_ != end_ && *at_ == 'I') return word("Infinity");
    const char* const first = at_;
    if (!digits()) return false;
    if (*first == '0' && at_ - first > 1) return false;
    whole = true;
    if (at_ != end_ && *at_ == '.') {
      ++at_, whole = false;
      if (!digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_, whole = false;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!digits()) return false;
    }
    return !whole || at_ - first <= kMostDigits;
  }

  bool digits() {
    const char* const first = at_;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
    return at_ != first;
  }

  // Up to what ends a string, or is not of it as it is written: a quote, a backslash, a control character.
  void pass_plain() {
#if defined(__SSE2__)
    for (; end_ - at_ >= 16; at_ += 16) {
      const __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
      const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(there, _mm_set1_epi8(0x1f)), there);
      const __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(there, _mm_set1_epi8('"')),
                                         _mm_cmpeq_epi8(there, _mm_set1_epi8('\\')));
      const int found = _mm_movemask_epi8(_mm_or_si128(control, marks));
      if (found) {
        at_ += std::countr_zero(static_cast<unsigned>(found));
        return;
      }
    }
#endif
    while (at_ != end_ && !stops_[static_cast<unsigned char>(*at_)]) ++at_;
  }

  // The text is a part of the line or, where that has escapes, `own`. `unicode` becomes false if the string has a
  // surrogate alone, which no text can have.
  bool read_string(std::string& own, std::string_view& text, bool& unicode) {
    if (!take('"')) return false;
    const char* const start = at_;
    pass_plain();
    if (at_ != end_ && *at_ == '"') {
      text = {start, static_cast<size_t>(at_ - start)};
      ++at_;
      return true;
    }
    own.assign(start, at_);
    if (!read_escaped(own, unicode)) return false;
    text = own;
    return true;
  }

  // The rest of a string, from what stopped pass_plain() on.
  [[gnu::noinline]] bool read_escaped(std::string& out, bool& unicode) {
    for (;;) {
      if (at_ == end_) return false;
      if (take('"')) return true;
      if (!take('\\') || at_ == end_) return false;
      static constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
      const char c = *at_++;
      if (c == 'u') {
        uint32_t code;
        if (!hex(code)) return false;
        if (code >= 0xd800 && code < 0xdc00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u') {
          const char* const second = at_;
          uint32_t low;
          at_ += 2;
          if (!hex(low)) return false;
          if (low >= 0xdc00 && low < 0xe000)
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          else
            at_ = second;
        }
        unicode &= code < 0xd800 || code >= 0xe000;
        append(out, code);
      } else {
        const size_t which = kEscapes.find(c);
        if (which == std::string_view::npos) return false;
        out.push_back(kMeanings[which]);
      }
      const char* const start = at_;
      pass_plain();
      out.append(start, at_);
    }
  }

  bool hex(uint32_t& code) {
    if (end_ - at_ < 4) return false;
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = *at_++;
      if (c >= '0' && c <= '9')
        code = code * 16 + static_cast<uint32_t>(c - '0');
      else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
        code = code * 16 + static_cast<uint32_t>((c | 0x20) - 'a' + 10);
      else
        return false;
    }
    return true;
  }

  // As UTF-8; of a surrogate alone the bytes that would be its, so that keys with different ones differ.
  static void append(std::string& out, uint32_t code) {
    const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xe0 | code >> 12);
      } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
      }
      put(0x80 | (code >> 6 & 0x3f));
    }
    put(0x80 | (code & 0x3f));
  }

  bool word(std::string_view expected) {
    const auto size = static_cast<std::ptrdiff_t>(expected.size());
    if (end_ - at_ < size || std::string_view(at_, expected.size()) != expected) return false;
    at_ += size;
    return true;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  std::vector<std::optional<std::string>> wanted_;
  std::vector<Slot> slots_;
  bool lists_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;  // of all lines
  std::string key_;            // of the object around, and a dot
  std::string escaped_;
  std::optional<std::string> other_key_;
  bool several_ = false;  // whether there are more keys that are not named
  bool stops_[256] = {};
};

}  // namespace discreet
