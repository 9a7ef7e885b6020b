// Arrays that begin with a cache line, so that a group of places or a stored key lies in as few lines as it can.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace discreet {

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kLine); }
  template <class U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }

 private:
  static constexpr std::align_val_t kLine{64};
};

template <class T>
using LineVector = std::vector<T, LineAllocator<T>>;

}  // namespace discreet
