// The pages of a Parquet file: every item of every run lies in memory and was checked, or they are refused.
#include <cstdlib>

#include "discreet/readers/parquet_items.hpp"

namespace {

class Memory : public discreet::RandomAccess {
 public:
  Memory(const uint8_t* data, size_t size) : data_(reinterpret_cast<const char*>(data), size) {}
  void read(uint64_t at, char* to, size_t n) const override {
    if (at > data_.size() || n > data_.size() - at) throw discreet::DataError("the file ends too early");
    std::memcpy(to, data_.data() + at, n);
  }
  uint64_t size() const override { return data_.size(); }

 private:
  std::string data_;
};

void look_at(const discreet::MadeColumn& made, bool text) {
  const discreet::Column& rows = made.column;
  for (int64_t i = 0; i < rows.length; ++i) {
    const auto item =
        rows.dictionary ? bytes_at(*rows.dictionary, static_cast<int64_t>(integer_at(rows, i))) : bytes_at(rows, i);
    if (item.size() > discreet::kLongestItem || (text && !discreet::is_utf8(item))) std::abort();
  }
}

}  // namespace

// The first bytes say what the footer would: the codec and the kind of the column, and the number of rows.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  using discreet::ParquetField;
  const bool text = data[0] & 2;
  ParquetField field{"item", text ? ParquetField::text : ParquetField::bytes, (data[0] & 4) != 0};
  discreet::ParquetChunk chunk;
  chunk.depth = 1;
  chunk.type = 6;
  chunk.codec = data[0] & 1;
  chunk.values = data[1] | data[2] << 8;
  chunk.data_at = 0;
  chunk.compressed_bytes = static_cast<int64_t>(size - 3);
  const discreet::ParquetItems items(std::make_shared<const Memory>(data + 3, size - 3), field);
  const auto runs = items.runs_of({chunk.values, {chunk}});
  if (!runs) return 0;
  int64_t rows = 0;
  try {
    for (const auto& run : *runs) {
      const discreet::MadeColumn made = items.decode(run);
      look_at(made, text);
      rows += made.column.length + made.nulls + made.bad;
    }
  } catch (const discreet::DataError&) {
    return 0;
  }
  if (rows != chunk.values) std::abort();
  return 0;
}
