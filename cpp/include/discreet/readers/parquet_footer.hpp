// What the footer of a Parquet file says about its columns and their chunks, read without trusting it.
//
// pyarrow's own accessors end the process when some numbers of a damaged footer do not fit together. Only a few are needed
// here, to choose how a chunk is read and to find its pages: all other fields are passed over.
//
// A footer that lost row groups, or rows of them, must not pass as a shorter file. So what the format requires has to be
// there, every group has a chunk of every leaf of the schema, a leaf that is not repeated has a value or a null for every
// row, and the rows of all groups are as many as the file says.
//
// Part of the Parquet decoder, which is fenced and frozen: see parquet_items.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "discreet/readers/thrift.hpp"

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
  enum Kind : uint8_t { other, text, bytes };  // other: nested, or of a type that parquet_pages.hpp does not read
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
  in.fields({{4, Type::binary}}, [&](int64_t id, Type type) {
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

// A column of values, below any number of structures and lists.
struct Leaf {
  int64_t type = -1;
  bool repeated = false;  // there may be no value, or several, for a row
};

// The leaves below an element, which is at `at`; where the next one is.
inline size_t add_leaves(const std::vector<Element>& elements, size_t at, bool repeated, int depth,
                         std::vector<Leaf>& leaves) {
  constexpr int kMaxDepth = 1000;
  constexpr int64_t kRepeated = 2;
  if (at >= elements.size() || depth > kMaxDepth) ThriftReader::fail();
  const Element& one = elements[at++];
  repeated |= depth > 0 && one.repetition == kRepeated;
  if (one.children == 0 && depth > 0) leaves.push_back({one.type, repeated});
  for (int64_t child = 0; child < one.children; ++child) at = add_leaves(elements, at, repeated, depth + 1, leaves);
  return at;
}

inline std::vector<Leaf> leaves_of(const std::vector<Element>& elements) {
  std::vector<Leaf> leaves;
  if (add_leaves(elements, 0, false, 0, leaves) != elements.size()) ThriftReader::fail();
  return leaves;
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
  const auto field = [&](int64_t id, Type type) {
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
  };
  in.fields({{1, Type::i32}, {2, Type::list}, {3, Type::list}, {4, Type::i32}, {5, Type::i64}, {6, Type::i64},
             {7, Type::i64}, {9, Type::i64}},
            field);
}

inline ParquetChunk chunk_of_group(ThriftReader& in, const std::vector<std::string>& wanted) {
  ParquetChunk chunk;
  std::string_view root;
  chunk.column = wanted.size();
  in.fields({{2, Type::i64}}, [&](int64_t id, Type type) {
    if (id == 3 && type == Type::structure) return chunk_metadata(in, chunk, root);
    chunk.elsewhere |= id == 1 || id == 8 || id == 9;  // a file's name, or keys
    in.skip(type);
  });
  if (chunk.depth) chunk.column = static_cast<uint64_t>(std::find(wanted.begin(), wanted.end(), root) - wanted.begin());
  return chunk;
}

inline ParquetGroup group_of(ThriftReader& in, const std::vector<std::string>& wanted) {
  ParquetGroup group;
  in.fields({{1, Type::list}, {2, Type::i64}, {3, Type::i64}}, [&](int64_t id, Type type) {
    if (id == 1) {
      structures(in, [&] { group.chunks.push_back(chunk_of_group(in, wanted)); });
    } else if (id == 3) {
      group.rows = in.integer();
    } else {
      in.skip(type);
    }
  });
  return group;
}

// Refuses groups that are not what the schema and the number of rows say.
inline void check_groups(const std::vector<ParquetGroup>& groups, const std::vector<Leaf>& leaves, int64_t rows) {
  for (const ParquetGroup& group : groups) {
    if (group.rows < 0 || group.rows > rows || group.chunks.size() != leaves.size()) ThriftReader::fail();
    rows -= group.rows;
    for (size_t i = 0; i < leaves.size(); ++i) {
      const ParquetChunk& chunk = group.chunks[i];
      if (chunk.depth == 0 && chunk.elsewhere) continue;  // encrypted
      if (chunk.type != leaves[i].type || (!leaves[i].repeated && chunk.values != group.rows)) ThriftReader::fail();
    }
  }
  if (rows != 0) ThriftReader::fail();
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
  int64_t rows = 0;
  in.fields({{1, Type::i32}, {2, Type::list}, {3, Type::i64}, {4, Type::list}}, [&](int64_t id, Type type) {
    if (id == 3) {
      rows = in.integer();
    } else if (id == 2) {
      parquet::structures(in, [&] { elements.push_back(parquet::element(in)); });
    } else if (id == 4) {
      parquet::structures(in, [&] { out.groups.push_back(parquet::group_of(in, wanted)); });
    } else if (id == 5 && type == Type::list) {
      parquet::structures(in, [&] { out.odd_types |= parquet::has_odd_types(in); });
    } else {
      out.odd_types |= id == 8;  // keys of an encrypted file
      in.skip(type);
    }
  });
  out.fields = parquet::fields_of(elements);
  parquet::check_groups(out.groups, parquet::leaves_of(elements), rows);
  for (ParquetGroup& group : out.groups) std::erase_if(group.chunks, [&](auto& c) { return c.column == wanted.size(); });
  return out;
}

}  // namespace discreet
