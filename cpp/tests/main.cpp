// The unit tests of the kernels, without Python: `make sanitize` builds and runs them.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
