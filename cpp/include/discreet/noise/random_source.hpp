// Random words: from the operating system's generator, or from a seeded one for tests and audits.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include <pthread.h>
#if defined(__linux__)
#include <sys/random.h>
#else
#include <stdlib.h>
#endif

namespace discreet {

// Fills memory from the operating system's generator; throws when it cannot, never returns anything weaker.
inline void system_random(void* memory, std::size_t count) {
#if defined(__linux__)
  auto* out = static_cast<unsigned char*>(memory);
  while (count > 0) {
    const ssize_t got = getrandom(out, count, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw std::system_error(errno, std::generic_category(), "the system's random source failed");
    }
    out += got;
    count -= static_cast<std::size_t>(got);
  }
#else
  arc4random_buf(memory, count);  // macOS and the BSDs: cannot fail
#endif
}

// A stream of 64-bit words, buffered while someone draws. Callers keep what draw() returns while they call next().
//
// Nothing that was read ahead outlives a draw: a copy of the process that no fork handler hears of (a raw system call, a
// snapshot of a virtual machine) would draw the same noise as the original from what is left in a buffer.
class RandomSource {
 public:
  // The lock of a source. When it goes, so do the words that were not used.
  class Drawing {
   public:
    Drawing(RandomSource& source, std::size_t words) : source_(source), lock_(source.mutex_) {
      source_.expected_ = words;
    }
    ~Drawing() {
      if (!source_.seeded()) source_.discard();
    }
    Drawing(const Drawing&) = delete;
    Drawing& operator=(const Drawing&) = delete;

   private:
    RandomSource& source_;
    std::unique_lock<std::mutex> lock_;
  };

  RandomSource() { ForkGuard::instance().add(this); }
  explicit RandomSource(std::uint64_t seed) : generator_(seed) { ForkGuard::instance().add(this); }
  // These words and then an error: lets a check run a sampler over every word there is.
  explicit RandomSource(std::vector<std::uint64_t> words) : replay_(std::move(words)) {
    ForkGuard::instance().add(this);
  }
  ~RandomSource() {
    ForkGuard::instance().remove(this);
    discard();
  }
  RandomSource(const RandomSource&) = delete;
  RandomSource& operator=(const RandomSource&) = delete;

  bool seeded() const { return generator_.has_value() || replay_.has_value(); }

  // To draw about this many words: it decides how much is read from the system at once, and nothing else.
  Drawing draw(std::size_t words) { return Drawing(*this, words); }

  std::uint64_t next() {
    if (position_ == buffer_.size()) refill();
    const std::uint64_t word = buffer_[position_];
    buffer_[position_++] = 0;  // a word that was used must not be found in memory, or used again
    return word;
  }

  // Unbiased in [0, high), high >= 1: multiply and reject (Lemire 2019), exact.
  std::uint64_t below(std::uint64_t high) {
    unsigned __int128 product = static_cast<unsigned __int128>(next()) * high;
    if (static_cast<std::uint64_t>(product) < high) {
      const std::uint64_t floor = -high % high;
      while (static_cast<std::uint64_t>(product) < floor) product = static_cast<unsigned __int128>(next()) * high;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  // A forked child must not continue from its parent's buffer, and must not inherit a lock that a thread which does
  // not exist in the child was holding. So fork waits for every source's lock, and the child drops its buffers.
  class ForkGuard {
   public:
    static ForkGuard& instance() {
      static ForkGuard* guard = new ForkGuard;  // never destroyed: fork handlers cannot be unregistered
      return *guard;
    }
    void add(RandomSource* source) {
      const std::lock_guard<std::mutex> hold(mutex_);
      sources_.insert(source);
    }
    void remove(RandomSource* source) {
      const std::lock_guard<std::mutex> hold(mutex_);
      sources_.erase(source);
    }

   private:
    ForkGuard() {
      const int error = pthread_atfork([] { instance().before(); }, [] { instance().after(false); },
                                       [] { instance().after(true); });
      if (error != 0) throw std::system_error(error, std::generic_category(), "cannot guard the random source");
    }
    void before() {
      mutex_.lock();
      for (RandomSource* source : sources_) source->mutex_.lock();
    }
    void after(bool in_child) {
      for (RandomSource* source : sources_) {
        if (in_child && !source->seeded()) source->discard();
        source->mutex_.unlock();
      }
      mutex_.unlock();
    }

    std::mutex mutex_;
    std::unordered_set<RandomSource*> sources_;
  };

  static constexpr std::size_t kFewWords = 8;

  // Leaves the buffer empty when it throws.
  void refill() {
    std::size_t first = 0;
    if (replay_) {
      first = buffer_.size() - std::min(buffer_.size(), replay_->size() - replayed_);
      if (first == buffer_.size()) throw std::out_of_range("no words are left to replay");
      for (std::size_t i = first; i < buffer_.size(); ++i) buffer_[i] = (*replay_)[replayed_++];
    } else if (generator_) {
      for (std::uint64_t& word : buffer_) word = (*generator_)();
    } else {
      first = buffer_.size() - std::clamp(expected_, kFewWords, buffer_.size());
      system_random(buffer_.data() + first, (buffer_.size() - first) * sizeof buffer_[0]);
      expected_ -= std::min(expected_, buffer_.size() - first);
    }
    position_ = first;
  }

  void discard() {
    std::fill(buffer_.begin(), buffer_.end(), 0);
    asm volatile("" : : "r"(buffer_.data()) : "memory");  // keep the stores although nobody reads them
    position_ = buffer_.size();
  }

  std::mutex mutex_;
  std::optional<std::mt19937_64> generator_;
  std::optional<std::vector<std::uint64_t>> replay_;
  std::size_t replayed_ = 0;
  std::size_t expected_ = 0;
  std::array<std::uint64_t, 512> buffer_{};
  std::size_t position_ = 512;
};

}  // namespace discreet
