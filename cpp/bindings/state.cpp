// State envelopes for classes written in Python: the same header, checksum and checks as the native summaries.
#include "discreet/state.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <vector>

#include "ingest.hpp"
#include "module.hpp"

namespace discreet {
namespace {

// The bytes of an object that has some, for as long as this is there.
class BufferView {
 public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  BufferView(BufferView&& other) noexcept : view_(other.view_) { other.view_.obj = nullptr; }
  ~BufferView() {
    if (view_.obj) PyBuffer_Release(&view_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(view_.buf), static_cast<size_t>(view_.len)}; }

 private:
  Py_buffer view_{};
};

// States may be large: they are copied once, and other threads of Python go on meanwhile.
nb::bytes seal(uint16_t family, uint16_t version, const std::vector<nb::object>& parts) {
  if (family < static_cast<uint16_t>(StateFamily::python))
    throw ParameterError("families below 100 belong to the native summaries");
  std::vector<BufferView> views;
  size_t size = 0;
  for (const nb::object& part : parts) {
    views.emplace_back(part);
    size += views.back().bytes().size();
  }
  nb::bytes state = unwritten(kHeaderBytes + size);
  char* const out = written(state);
  {
    nb::gil_scoped_release release;
    char* next = out + kHeaderBytes;
    for (const BufferView& view : views) {
      const std::string_view part = view.bytes();
      if (!part.empty()) std::memcpy(next, part.data(), part.size());
      next += part.size();
    }
    const std::string head =
        StateWriter::head_of(family, version, KeyKind::none, 0, {out + kHeaderBytes, size});
    std::memcpy(out, head.data(), kHeaderBytes);
  }
  return state;
}

}  // namespace

void bind_state(nb::module_& m) {
  m.def("seal_state", &seal, nb::arg("family"), nb::arg("version"), nb::arg("parts"),
        nb::sig("def seal_state(family: int, version: int, parts: Sequence[object]) -> bytes"),
        "The state with the bytes of these parts, one after the other.");
  m.def(
      "open_state",
      [](const nb::bytes& data) {
        const std::string_view bytes(static_cast<const char*>(data.data()), data.size());
        const OpenState state = [&] {
          nb::gil_scoped_release release;
          return open_state(bytes);
        }();
        return std::make_tuple(state.family, state.version, nb::bytes(state.payload.data(), state.payload.size()));
      },
      nb::arg("data"), "The family, version and payload of a state; raises CorruptStateError.");
}

}  // namespace discreet
