#include "discreet/readers/parquet_footer.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <tuple>

#include "discreet/readers/parquet_items.hpp"
#include "module.hpp"

namespace discreet {
namespace {

// An open file, by a descriptor of its own: a task may read on when its owner has closed it.
class FileBytes : public RandomAccess {
 public:
  explicit FileBytes(int descriptor) : descriptor_(dup(descriptor)) {
    if (descriptor_ < 0) throw DataError("the file cannot be read");
    const off_t end = lseek(descriptor_, 0, SEEK_END);
    size_ = end < 0 ? 0 : static_cast<uint64_t>(end);
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes() override { close(descriptor_); }
  void read(uint64_t at, char* to, size_t n) const override {
    while (n > 0) {
      const ssize_t got = pread(descriptor_, to, n, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw DataError("the file ends too early");
      to += got;
      at += static_cast<uint64_t>(got);
      n -= static_cast<size_t>(got);
    }
  }
  uint64_t size() const override { return size_; }

 private:
  int descriptor_;
  uint64_t size_;
};

std::string_view view_of(const nb::bytes& data) { return {static_cast<const char*>(data.data()), data.size()}; }

// The pages of one column, and those of its row groups that can be read here.
struct Pages {
  std::shared_ptr<const ParquetItems> items;
  std::vector<ParquetGroup> groups;
};
struct RunOfPages {
  std::shared_ptr<const ParquetItems> items;
  ParquetItems::Run run;
};

std::optional<Pages> open_pages(int descriptor, const nb::bytes& footer, const std::string& column) {
  ParquetFooter read = parquet_footer(view_of(footer), {column});
  const auto field = std::find_if(read.fields.begin(), read.fields.end(), [&](auto& f) { return f.name == column; });
  if (read.odd_types || field == read.fields.end() || field->kind == ParquetField::other) return std::nullopt;
  auto file = std::make_shared<const FileBytes>(descriptor);
  return Pages{std::make_shared<const ParquetItems>(std::move(file), *field), std::move(read.groups)};
}

std::optional<std::vector<RunOfPages>> runs_of(const Pages& self, size_t group) {
  nb::gil_scoped_release release;
  if (group >= self.groups.size()) throw DataError("there is no such row group");
  auto runs = self.items->runs_of(self.groups[group]);
  if (!runs) return std::nullopt;
  std::vector<RunOfPages> out;
  for (auto& run : *runs) out.push_back({self.items, std::move(run)});
  return out;
}

void bind_pages(nb::module_& m) {
  nb::class_<RunOfPages>(m, "ParquetRun")
      .def(
          "decode",
          [](const RunOfPages& self) {
            nb::gil_scoped_release release;
            return self.items->decode(self.run);
          },
          "The items of these pages, in the order of the rows. Raises DataError.");
  nb::class_<Pages>(m, "ParquetPages")
      .def_prop_ro("is_text", [](const Pages& self) { return self.items->is_text(); })
      .def_prop_ro("groups", [](const Pages& self) { return self.groups.size(); })
      .def("runs", &runs_of, nb::arg("group"), "The runs of pages of a row group; None if they cannot be read here.");
  m.def("parquet_pages", &open_pages, nb::arg("descriptor"), nb::arg("footer"), nb::arg("column"),
        "The pages of a column of texts or bytes; None if it is none, or of a type that needs another reader.");
}

}  // namespace

void bind_parquet_footer(nb::module_& m) {
  bind_pages(m);
  m.def(
      "parquet_columns",
      [](const nb::bytes& footer) {
        std::vector<std::string> names;
        for (ParquetField& field : parquet_footer(view_of(footer), {}).fields) names.push_back(std::move(field.name));
        return names;
      },
      nb::arg("footer"), "The names of the columns of the table. Raises DataError.");
  m.def(
      "parquet_chunks",
      [](const nb::bytes& footer, const std::vector<std::string>& wanted) {
        std::vector<std::vector<std::tuple<uint64_t, uint64_t, int64_t, int64_t, bool>>> out;
        for (const auto& group : parquet_footer(view_of(footer), wanted).groups) {
          out.emplace_back();
          for (const ParquetChunk& c : group.chunks)
            out.back().emplace_back(c.column, c.depth, c.values, c.uncompressed_bytes, c.has_dictionary);
        }
        return out;
      },
      nb::arg("footer"), nb::arg("wanted"),
      "For every row group the chunks of the wanted columns: which of them, the depth of its path, the number of values, "
      "the uncompressed bytes, whether there is a dictionary. Raises DataError.");
}

}  // namespace discreet
