// What the footer of a Parquet file says about its columns and their chunks, read without trusting it.
//
// pyarrow's own accessors end the process when some numbers of a damaged footer do not fit together. Only a few are needed
// here, to choose how a chunk is read and to find its pages: all other fields are passed over.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/thrift.hpp"

namespace discreet {

struct ParquetChunk {
  uint64_t column = 0;  // which of the wanted ones
  uint64_t depth = 0;   // how many names its path has: 1 unless it is nested
  int64_t values = 0;
  int64_t uncompressed_bytes = 0;
  bool has_dictionary = false;
  // Where its pages are, and how they are written.
  int64_t compressed_bytes = 0, data_at = -1, dictionary_at = -1, codec = -1, type = -1;
  uint64_t encodings = 0;  // a bit for each
  bool elsewhere = false;  // in another file, or encrypted
};

struct ParquetGroup {
  int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // of the wanted columns
};

// A column of the table: a child of the schema's root.
struct ParquetField {
  enum Kind : uint8_t { other, text, bytes };  // other: nested, or of a type that pages.hpp does not read
  std::string name;
  Kind kind = other;
  bool optional = false;
};

struct ParquetFooter {
  std::vector<ParquetField> fields;
  std::vector<ParquetGroup> groups;
  bool odd_types = false;  // Arrow's schema, which the writer put beside Parquet's, has types of extensions
};

namespace parquet {

using Type = ThriftReader::Type;

template <class F>
void structures(ThriftReader& in, F&& each) {
  const auto [n, type] = in.elements();
  if (n > 0 && type != Type::structure) ThriftReader::fail();
  for (uint64_t i = 0; i < n; ++i) each();
}

inline std::string from_base64(std::string_view text) {
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : text) {
    const int v = c >= 'A' && c <= 'Z'   ? c - 'A'
                  : c >= 'a' && c <= 'z' ? c - 'a' + 26
                  : c >= '0' && c <= '9' ? c - '0' + 52
                  : c == '+'             ? 62
                  : c == '/'             ? 63
                                         : -1;
    if (v < 0) break;
    word = word << 6 | static_cast<uint32_t>(v);
    if ((bits += 6) >= 8) out.push_back(static_cast<char>(word >> (bits -= 8)));
  }
  return out;
}

// One element of the schema, which is a tree, written depth first.
struct Element {
  std::string_view name;
  int64_t type = -1, repetition = 0, children = 0, converted = -1, logical = -1;
};

inline Element element(ThriftReader& in) {
  Element out;
  in.fields([&](int64_t id, Type type) {
    if (type == Type::i32 && (id == 1 || id == 3 || id == 5 || id == 6)) {
      (id == 1 ? out.type : id == 3 ? out.repetition : id == 5 ? out.children : out.converted) = in.integer();
    } else if (id == 4 && type == Type::binary) {
      out.name = in.bytes();
    } else if (id == 10 && type == Type::structure) {
      in.fields([&](int64_t which, Type inner) {
        out.logical = which;
        in.skip(inner);
      });
    } else {
      in.skip(type);
    }
  });
  return out;
}

inline ParquetField field_of(const Element& one) {
  constexpr int64_t kByteArray = 6, kOptional = 1, kUtf8 = 0, kString = 1;
  ParquetField field{std::string(one.name)};
  field.optional = one.repetition == kOptional;
  if (one.children != 0 || one.type != kByteArray || one.repetition < 0 || one.repetition > kOptional) return field;
  if (one.logical == -1 && one.converted == -1) field.kind = ParquetField::bytes;
  const bool text = (one.logical == kString || one.logical == -1) && (one.converted == kUtf8 || one.converted == -1);
  if (text && one.logical + one.converted > -2) field.kind = ParquetField::text;
  return field;
}

inline std::vector<ParquetField> fields_of(const std::vector<Element>& elements) {
  std::vector<ParquetField> fields;
  for (size_t at = 1; at < elements.size();) {
    fields.push_back(field_of(elements[at]));
    for (uint64_t left = 1; left > 0; --left, ++at) {  // with all that is below it
      if (at == elements.size()) ThriftReader::fail();
      const int64_t children = elements[at].children;
      if (children < 0 || static_cast<uint64_t>(children) > elements.size()) ThriftReader::fail();
      left += static_cast<uint64_t>(children);
    }
  }
  return fields;
}

inline void chunk_metadata(ThriftReader& in, ParquetChunk& chunk, std::string_view& root) {
  in.fields([&](int64_t id, Type type) {
    if ((id == 1 || id == 4) && type == Type::i32) {
      (id == 1 ? chunk.type : chunk.codec) = in.integer();
    } else if (id == 2 && type == Type::list) {
      const auto [n, each] = in.elements();
      if (n > 0 && each != Type::i32) ThriftReader::fail();
      for (uint64_t i = 0; i < n; ++i) chunk.encodings |= uint64_t{1} << (static_cast<uint64_t>(in.integer()) & 63);
    } else if (id == 3 && type == Type::list) {
      const auto [n, each] = in.elements();
      if (n > 0 && each != Type::binary) ThriftReader::fail();
      chunk.depth = n;
      for (uint64_t i = 0; i < n; ++i) {
        const std::string_view name = in.bytes();
        if (i == 0) root = name;
      }
    } else if ((id == 5 || id == 6 || id == 7 || id == 9 || id == 11) && type == Type::i64) {
      const int64_t value = in.integer();
      if (id == 5) chunk.values = value;
      if (id == 6) chunk.uncompressed_bytes = value;
      if (id == 7) chunk.compressed_bytes = value;
      if (id == 9) chunk.data_at = value;
      if (id == 11) chunk.dictionary_at = value;
      if (id == 11) chunk.has_dictionary = true;
    } else {
      in.skip(type);
    }
  });
}

inline void chunk_of_group(ThriftReader& in, const std::vector<std::string>& wanted, ParquetGroup& group) {
  ParquetChunk chunk;
  std::string_view root;
  in.fields([&](int64_t id, Type type) {
    if (id == 3 && type == Type::structure) return chunk_metadata(in, chunk, root);
    chunk.elsewhere |= id == 1 || id == 8 || id == 9;  // a file's name, or keys
    in.skip(type);
  });
  const auto at = std::find(wanted.begin(), wanted.end(), root);
  if (at == wanted.end()) return;
  chunk.column = static_cast<uint64_t>(at - wanted.begin());
  group.chunks.push_back(chunk);
}

inline bool has_odd_types(ThriftReader& in) {
  std::string_view key, value;
  in.fields([&](int64_t id, Type type) {
    if ((id == 1 || id == 2) && type == Type::binary) {
      (id == 1 ? key : value) = in.bytes();
    } else {
      in.skip(type);
    }
  });
  return key == "ARROW:schema" && from_base64(value).find("ARROW:extension:name") != std::string::npos;
}

}  // namespace parquet

// The fields, and in every row group the chunks of the columns whose first name is `wanted`.
inline ParquetFooter parquet_footer(std::string_view footer, const std::vector<std::string>& wanted) {
  using parquet::Type;
  ThriftReader in(footer);
  ParquetFooter out;
  std::vector<parquet::Element> elements;
  in.fields([&](int64_t id, Type type) {
    if (type != Type::list || (id != 2 && id != 4 && id != 5)) {
      out.odd_types |= id == 8;  // keys of an encrypted file
      return in.skip(type);
    }
    parquet::structures(in, [&] {
      if (id == 2) elements.push_back(parquet::element(in));
      if (id == 5) out.odd_types |= parquet::has_odd_types(in);
      if (id != 4) return;
      ParquetGroup group;
      in.fields([&](int64_t inner, Type t) {
        if (inner == 1 && t == Type::list) {
          parquet::structures(in, [&] { parquet::chunk_of_group(in, wanted, group); });
        } else if (inner == 3 && t == Type::i64) {
          group.rows = in.integer();
        } else {
          in.skip(t);
        }
      });
      out.groups.push_back(std::move(group));
    });
  });
  out.fields = parquet::fields_of(elements);
  return out;
}

}  // namespace discreet
