// Memory that held items or secrets is zeroed before it is given back.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace discreet {

// Zeroes memory although nobody reads it afterwards: the compiler may not drop the stores.
inline void wipe(void* memory, std::size_t count) {
  if (count == 0) return;
  std::memset(memory, 0, count);
  asm volatile("" : : "r"(memory) : "memory");
}

template <class T>
struct WipingAllocator {
  using value_type = T;
  WipingAllocator() = default;
  template <class U>
  WipingAllocator(const WipingAllocator<U>&) {}
  T* allocate(std::size_t n) { return std::allocator<T>().allocate(n); }
  void deallocate(T* p, std::size_t n) {
    wipe(p, n * sizeof(T));
    std::allocator<T>().deallocate(p, n);
  }
  template <class U>
  bool operator==(const WipingAllocator<U>&) const {
    return true;
  }
};

// A vector that zeroes what it frees, also when it grows.
template <class T>
using WipedVector = std::vector<T, WipingAllocator<T>>;

}  // namespace discreet
