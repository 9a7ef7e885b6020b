// discreet._native: the kernels, one binding file each.
#include "module.hpp"

NB_MODULE(_native, m) {
  m.doc() = "Native kernels of discreet. Not private by themselves; use the classes of the package.";
}
