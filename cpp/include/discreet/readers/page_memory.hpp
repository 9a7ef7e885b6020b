// Memory for pages of a file and blocks of text, one after the other.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

namespace discreet {

inline constexpr size_t kSlack = 64;  // bytes after the end of a buffer that may be read and written

// Memory that is used again for the next page: the system clears fresh memory, which takes as long as filling it.
class PageMemory : public std::enable_shared_from_this<PageMemory> {
 public:
  // `n` bytes that hold anything, with slack after them.
  std::shared_ptr<char> take(size_t n) {
    std::unique_ptr<Piece> piece;
    {
      const std::lock_guard lock(mutex_);
      auto best = free_.end();
      for (auto at = free_.begin(); at != free_.end(); ++at)
        if ((*at)->size >= n && (*at)->size / 4 <= n && (best == free_.end() || (*at)->size < (*best)->size)) best = at;
      if (best != free_.end()) {
        piece = std::move(*best);
        free_.erase(best);
      }
    }
    if (!piece) piece = std::make_unique<Piece>(n);
    char* const data = piece->data.get();
    return {data, [home = shared_from_this(), back = piece.release()](char*) { home->give(back); }};
  }

 private:
  struct Piece {
    explicit Piece(size_t n) : size(n), data(new char[n + kSlack]) { std::memset(data.get() + n, 0, kSlack); }
    size_t size;
    std::unique_ptr<char[]> data;
  };
  static constexpr size_t kKept = 8, kLargestKept = 1 << 22;
  void give(Piece* piece) {
    std::unique_ptr<Piece> held(piece);
    if (held->size > kLargestKept) return;
    const std::lock_guard lock(mutex_);
    if (free_.size() == kKept) free_.erase(free_.begin());
    free_.push_back(std::move(held));
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<Piece>> free_;
};

}  // namespace discreet
