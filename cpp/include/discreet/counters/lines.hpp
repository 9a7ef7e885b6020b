// Arrays that begin with a cache line, so that a group of places or a stored key lies in as few lines as it can. Large ones
// are in large pages where the system has them: places are found anywhere in them, and each page has to be found too.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace discreet {

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    void* const memory = ::operator new(bytes, start(bytes));
#if defined(MADV_HUGEPAGE)
    if (bytes >= kLarge) madvise(memory, bytes, MADV_HUGEPAGE);  // where it is refused, pages stay as they are
#endif
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t n) { ::operator delete(memory, start(n * sizeof(T))); }
  template <class U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }

 private:
  static constexpr size_t kLine = 64, kLarge = 1 << 21;
  static std::align_val_t start(size_t bytes) { return std::align_val_t{bytes < kLarge ? kLine : kLarge}; }
};

template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

}  // namespace discreet
