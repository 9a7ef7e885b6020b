// What a command does with its process, which it has for itself: memory, and libraries.
#include <dlfcn.h>
#include <unistd.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <thread>
#include <vector>

#if defined(__GLIBC__)  // which the headers above define
#include <malloc.h>
#endif

#include "module.hpp"

namespace discreet {
namespace {

// Blocks are made and freed without end. Where what is freed at the end of the heap goes back to the system, which clears
// its pages each time anew, that takes a third of the time of reading.
void keep_freed_memory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

// The system keeps what it has opened, and gives it to the import that asks for it. One that cannot be opened is for the
// import to report. It lives as long as the process.
struct Opening {
  std::thread thread;
  pid_t process;
};
Opening* opening = nullptr;

// A process that ends in the middle, in which libraries take themselves apart that are being put together, may wait for
// itself for ever. One that was forked has no such thread.
void libraries_opened() {
  if (opening && opening->process == getpid() && opening->thread.joinable()) opening->thread.join();
}

void open_libraries(const std::vector<std::string>& paths) {
  libraries_opened();
  opening = new Opening{std::thread([paths] {
                          for (const std::string& path : paths) dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
                        }),
                        getpid()};
}

}  // namespace

void bind_process(nb::module_& m) {
  m.def("keep_freed_memory", &keep_freed_memory,
        "Use memory that was freed again, up to 64 MiB of it, before giving it back to the system: for commands, which "
        "have the process for themselves.");
  m.def("open_libraries", &open_libraries, nb::arg("paths"),
        "Open the libraries of modules that will be imported in a thread of its own, while others are imported. A "
        "process may not end before they are open.");
  m.def("libraries_opened", &libraries_opened, nb::call_guard<nb::gil_scoped_release>(), "Wait until they are.");
}

}  // namespace discreet
