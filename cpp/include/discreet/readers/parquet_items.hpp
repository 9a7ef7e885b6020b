// One column of texts or bytes of a Parquet file, from its pages to columns that kernels count.
//
// The pages of a row group are found first (`runs_of`), so that a group that is written in another way than is known here
// can be left to another reader before any of its rows was counted. Runs are then decoded in any order, by any thread
// (`decode`): each is a column of items that were checked, in the order of the rows.
//
// The Parquet decoder is this file, parquet_footer, parquet_pages, snappy and thrift. It is FENCED: it reads bytes that
// nobody vouches for, so it uses nothing of the other readers but page_memory, no other reader and no kernel uses it, and
// only bindings/parquet_footer.cpp opens it (tests/unit/test_kernel_layout.py). It is FROZEN: it knows flat columns of
// texts and bytes, PLAIN or by a dictionary, uncompressed or Snappy, and nothing new is added. Everything else is read
// by pyarrow (events/pages.py). What may change is what is wrong: with a test, and a run of `make fuzz`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "discreet/column.hpp"
#include "discreet/readers/page_memory.hpp"
#include "discreet/readers/parquet_footer.hpp"
#include "discreet/readers/parquet_pages.hpp"

namespace discreet {

// The bytes of a file. read() is called by several threads, and throws DataError where there are fewer.
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;
  virtual void read(uint64_t at, char* to, size_t n) const = 0;
  virtual uint64_t size() const = 0;
};

class ParquetItems {
 public:
  // Larger ones are left to a reader that goes through them in pieces.
  static constexpr int64_t kLargestPage = 1 << 25, kMostRows = 1 << 23;

  struct Dictionary;
  // Pages that are decoded together.
  struct Run {
    std::vector<ParquetPage> pages;
    std::shared_ptr<Dictionary> dictionary;  // of pages of indices
    bool compressed = false;
    int64_t rows = 0, bytes = 0;
  };

  ParquetItems(std::shared_ptr<const RandomAccess> file, ParquetField field)
      : file_(std::move(file)), field_(std::move(field)), memory_(std::make_shared<PageMemory>()) {
    if (field_.kind == ParquetField::other) throw DataError("the column holds neither texts nor bytes");
  }

  bool is_text() const { return field_.kind == ParquetField::text; }
  KeyKind kind() const { return is_text() ? KeyKind::string : KeyKind::binary; }

  // The runs of a row group; nothing if its pages are not as they are known here, damaged ones among them.
  std::optional<std::vector<Run>> runs_of(const ParquetGroup& group) const {
    if (group.chunks.size() != 1 || !is_known(group.chunks[0]) || group.chunks[0].values != group.rows)
      return std::nullopt;
    try {
      return find_runs(group.chunks[0]);
    } catch (const DataError&) {
      return std::nullopt;
    }
  }

  MadeColumn decode(const Run& run) const {
    MadeColumn made;
    made.column.kind = kind();
    if (run.dictionary) {
      decode_indices(run, made);
    } else if (run.pages.size() == 1) {
      decode_page(run, made);
    } else {
      Copies copies(*memory_, run);
      for (const ParquetPage& page : run.pages) {
        const Values values = values_of(page, run.compressed, made);
        const auto places = find_places(values);
        copies.add(values, as_places(places), is_text(), made);
      }
      copies.finish(made.column);
    }
    made.column.checked = kLongestItem;
    return made;
  }

 private:
  // The values of a page, with what keeps them in memory.
  struct Values {
    std::shared_ptr<char> owner;
    std::string_view data;
    uint64_t count = 0;
  };

  // Texts that are copied one after the other: those of small pages, and those of pages with rows that are left out.
  struct Copies {
    std::shared_ptr<char> bytes, offsets;
    int64_t count = 0;
    int32_t end = 0;
    Copies(PageMemory& memory, const Run& run)
        : bytes(memory.take(static_cast<size_t>(run.bytes))),
          offsets(memory.take(4 * static_cast<size_t>(run.rows + 1))) {
      as_places(offsets)[0] = 0;
    }
    void add(const Values& values, const int32_t* places, bool text, MadeColumn& made) {
      for (uint64_t i = 0; i < values.count; ++i) {
        const std::string_view item = values.data.substr(static_cast<size_t>(places[i]), length(places, i));
        if (!is_item(item, text)) {
          ++made.bad;
          continue;
        }
        std::memcpy(bytes.get() + end, item.data(), item.size());
        end += static_cast<int32_t>(item.size());
        as_places(offsets)[++count] = end;
      }
    }
    void finish(Column& column) const {
      set_texts(column, bytes.get(), as_places(offsets), count, 0);
      column.owner = std::make_shared<std::pair<std::shared_ptr<char>, std::shared_ptr<char>>>(bytes, offsets);
    }
  };

 public:
  // The texts of a chunk that its rows refer to. It is read by the first who needs it.
  struct Dictionary {
    ParquetPage page;
    std::once_flag once;
    std::shared_ptr<Column> texts;
    std::vector<uint8_t> bad;  // by index, if some are no items
  };

 private:
  static int32_t* as_places(const std::shared_ptr<char>& memory) { return reinterpret_cast<int32_t*>(memory.get()); }
  static size_t length(const int32_t* places, uint64_t i) { return static_cast<size_t>(places[i + 1] - places[i]) - 4; }
  static bool is_item(std::string_view item, bool text) {
    return item.size() <= kLongestItem && (!text || is_utf8(item));
  }
  static void set_texts(Column& column, const char* bytes, const int32_t* offsets, int64_t count, int32_t gap) {
    column.layout = Layout::offsets32;
    column.length = count;
    column.values = bytes;
    column.offsets = offsets;
    column.gap = gap;
  }

  static bool is_known(const ParquetChunk& chunk) {
    constexpr int64_t kByteArray = 6, kUncompressed = 0, kSnappy = 1;
    constexpr uint64_t kKnown = 1u << ParquetPage::plain | 1u << ParquetPage::plain_dictionary | 1u << ParquetPage::rle |
                                1u << 4 | 1u << ParquetPage::rle_dictionary;  // 4: of levels, in old files
    return !chunk.elsewhere && chunk.depth == 1 && chunk.type == kByteArray && chunk.values >= 0 &&
           (chunk.codec == kUncompressed || chunk.codec == kSnappy) && (chunk.encodings & ~kKnown) == 0;
  }

  // ---- where the pages are ---------------------------------------------------------------------------------------------

  std::vector<Run> find_runs(const ParquetChunk& chunk) const {
    constexpr int64_t kRunRows = 1 << 18, kRunBytes = 1 << 18;  // small pages are put together
    const bool compressed = chunk.codec != 0;
    const bool dictionary_first = chunk.dictionary_at > 0 && chunk.dictionary_at < chunk.data_at;
    const int64_t first = dictionary_first ? chunk.dictionary_at : chunk.data_at;
    if (first < 0 || chunk.compressed_bytes < 0) parquet::damaged();
    uint64_t at = static_cast<uint64_t>(first);
    const uint64_t end = at + static_cast<uint64_t>(chunk.compressed_bytes);
    if (end > file_->size()) parquet::damaged();
    std::vector<Run> runs;
    std::shared_ptr<Dictionary> dictionary;
    for (int64_t left = chunk.values; left > 0;) {
      const ParquetPage page = page_at(at, end);
      at = page.at + static_cast<uint64_t>(page.compressed);
      if (page.type == ParquetPage::index) continue;
      check_sizes(page, compressed);
      if (page.type == ParquetPage::dictionary) {
        if (dictionary || !runs.empty() || (page.encoding != ParquetPage::plain && page.encoding != ParquetPage::plain_dictionary))
          parquet::damaged();
        dictionary = std::make_shared<Dictionary>();
        dictionary->page = page;
        continue;
      }
      check_data(page, left);
      if (page.has_indices() && !dictionary) parquet::damaged();
      left -= page.values;
      const auto& meant = page.has_indices() ? dictionary : nullptr;
      const bool same = !runs.empty() && runs.back().dictionary == meant;
      const bool joins = same && runs.back().rows + page.values <= kRunRows &&
                         (meant || runs.back().bytes + page.uncompressed <= kRunBytes);
      if (!joins) runs.push_back({{}, meant, compressed});
      runs.back().pages.push_back(page);
      runs.back().rows += page.values;
      runs.back().bytes += page.uncompressed;
    }
    return runs;
  }

  // The header at a place of the file. It says its own length only by its end.
  ParquetPage page_at(uint64_t at, uint64_t end) const {
    constexpr uint64_t kFirst = 256, kLongest = 1 << 24;
    std::string data;
    for (uint64_t n = kFirst;; n *= 16) {
      if (at >= end) parquet::damaged();
      data.resize(static_cast<size_t>(std::min(n, end - at)));
      file_->read(at, data.data(), data.size());
      ThriftReader in(data);
      try {
        ParquetPage page = parquet_page(in);
        page.at = at + data.size() - in.left();
        if (page.compressed < 0 || static_cast<uint64_t>(page.compressed) > end - page.at) parquet::damaged();
        return page;
      } catch (const DataError&) {
        if (data.size() < n || n >= kLongest) throw;
      }
    }
  }

  // Whether a page is compressed. Only the header of one of version 2 may say otherwise than the chunk: one that has the
  // fields of several types says nothing.
  static bool is_packed(const ParquetPage& page, bool compressed) {
    return compressed && (page.type != ParquetPage::data_2 || page.is_compressed);
  }

  void check_sizes(const ParquetPage& page, bool compressed) const {
    // Three bytes of Snappy make 64 at most, and what cannot be made smaller grows by little.
    const bool fits = is_packed(page, compressed)
                          ? page.uncompressed / 22 <= page.compressed && page.compressed <= 2 * kLargestPage
                          : page.uncompressed == page.compressed;
    if (!fits || page.uncompressed < 0 || page.uncompressed > kLargestPage || page.values < 0 || page.values > kMostRows)
      parquet::damaged();
    if (page.type == ParquetPage::dictionary && page.values > page.uncompressed / 4) parquet::damaged();
  }

  void check_data(const ParquetPage& page, int64_t left) const {
    if (page.values > left || (page.encoding != ParquetPage::plain && !page.has_indices())) parquet::damaged();
    if (page.type == ParquetPage::data) {
      if (field_.optional && page.levels_encoding != ParquetPage::rle) parquet::damaged();
    } else if (page.type == ParquetPage::data_2) {
      if (page.repetition_bytes != 0 || page.definition_bytes < 0 || page.definition_bytes > page.compressed ||
          page.definition_bytes > page.uncompressed || (!field_.optional && page.definition_bytes != 0))
        parquet::damaged();
    } else {
      parquet::damaged();
    }
  }

  // ---- what is in them -------------------------------------------------------------------------------------------------

  std::shared_ptr<char> bytes_of(const ParquetPage& page, bool compressed) const {
    const auto size = static_cast<size_t>(page.compressed), whole = static_cast<size_t>(page.uncompressed);
    const size_t levels = page.type == ParquetPage::data_2 ? static_cast<size_t>(page.definition_bytes) : 0;
    auto read = memory_->take(size);
    file_->read(page.at, read.get(), size);
    if (page.checksum && crc32(read.get(), size) != *page.checksum) parquet::damaged();
    if (!is_packed(page, compressed)) return read;
    auto out = memory_->take(whole);
    std::memcpy(out.get(), read.get(), levels);  // of pages of version 2 they are as they are
    if (size > levels || whole > levels)
      snappy_decompress(read.get() + levels, size - levels, out.get() + levels, whole - levels);
    return out;
  }

  Values values_of(const ParquetPage& page, bool compressed, MadeColumn& made) const {
    Values out;
    out.owner = bytes_of(page, compressed);
    out.count = static_cast<uint64_t>(page.values);
    std::string_view levels, rest(out.owner.get(), static_cast<size_t>(page.uncompressed));
    if (page.type == ParquetPage::data_2) {
      levels = rest.substr(0, static_cast<size_t>(page.definition_bytes));
      rest.remove_prefix(levels.size());
    } else if (page.type == ParquetPage::data && field_.optional) {
      if (rest.size() < 4) parquet::damaged();
      const uint32_t bytes = load32(rest.data());
      if (bytes > rest.size() - 4) parquet::damaged();
      levels = rest.substr(4, bytes);
      rest.remove_prefix(4 + bytes);
    }
    if (page.type != ParquetPage::dictionary && field_.optional) {
      out.count = parquet::count_present(levels, out.count);
      made.nulls += page.values - static_cast<int64_t>(out.count);
    }
    out.data = rest;
    return out;
  }

  // Where the texts begin, with one place more.
  std::shared_ptr<char> find_places(const Values& values, bool* all_items = nullptr) const {
    if (values.count > values.data.size() / 4) parquet::damaged();
    auto out = memory_->take(4 * (values.count + 1));
    const uint32_t longest = parquet::places(values.data, values.count, as_places(out));
    if (!all_items) return out;
    *all_items = longest <= kLongestItem;
    if (!is_text() || !has_high_bit(values.data.data(), values.data.size())) return out;
    for (uint64_t i = 0; i < values.count && *all_items; ++i)
      *all_items = is_utf8(values.data.substr(static_cast<size_t>(as_places(out)[i]), length(as_places(out), i)));
    return out;
  }

  void decode_page(const Run& run, MadeColumn& made) const {
    const Values values = values_of(run.pages[0], run.compressed, made);
    bool all_items;
    const auto places = find_places(values, &all_items);
    if (all_items) return set_page(values, places, made.column);
    Copies copies(*memory_, run);
    copies.add(values, as_places(places), is_text(), made);
    copies.finish(made.column);
  }

  static void set_page(const Values& values, const std::shared_ptr<char>& places, Column& column) {
    set_texts(column, values.data.data(), as_places(places), static_cast<int64_t>(values.count), 4);
    column.owner = std::make_shared<std::pair<std::shared_ptr<char>, std::shared_ptr<char>>>(values.owner, places);
  }

  const Dictionary& ready(const Run& run) const {
    Dictionary& dictionary = *run.dictionary;
    std::call_once(dictionary.once, [&] {
      MadeColumn unused;
      const Values values = values_of(dictionary.page, run.compressed, unused);
      bool all_items;
      const auto places = find_places(values, &all_items);
      auto texts = std::make_shared<Column>();
      texts->kind = kind();
      set_page(values, places, *texts);
      if (!all_items) {
        dictionary.bad.resize(values.count);
        for (uint64_t i = 0; i < values.count; ++i)
          dictionary.bad[i] = !is_item(bytes_at(*texts, static_cast<int64_t>(i)), is_text());
      }
      dictionary.texts = std::move(texts);
    });
    return dictionary;
  }

  void decode_indices(const Run& run, MadeColumn& made) const {
    const Dictionary& dictionary = ready(run);
    const auto codes = memory_->take(4 * static_cast<size_t>(run.rows));
    auto* const first = reinterpret_cast<uint32_t*>(codes.get());
    uint32_t* next = first;
    for (const ParquetPage& page : run.pages) {
      const Values values = values_of(page, run.compressed, made);
      parquet::indices(values.data, values.count, static_cast<uint64_t>(dictionary.texts->length), next);
      next += values.count;
    }
    if (!dictionary.bad.empty()) {
      uint32_t* const end = next;
      next = std::remove_if(first, end, [&](uint32_t code) { return dictionary.bad[code] != 0; });
      made.bad += end - next;
    }
    Column& column = made.column;
    column.kind = KeyKind::int64;
    column.layout = Layout::u32;
    column.length = next - first;
    column.values = first;
    column.dictionary = dictionary.texts;
    column.owner = codes;
  }

  std::shared_ptr<const RandomAccess> file_;
  ParquetField field_;
  std::shared_ptr<PageMemory> memory_;
};

}  // namespace discreet
