// discreet._native: the kernels, one binding file each.
#include "module.hpp"

NB_MODULE(_native, m) {
  m.doc() = "Native kernels of discreet. Not private by themselves; use the classes of the package.";
  // Objects that live as long as the process (the system's random source, cached tables) are not leaks, and a report
  // about them at exit would land on the user's terminal.
  nb::set_leak_warnings(false);
  bind_noise(m);
}
