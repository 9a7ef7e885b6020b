// Pan-private tables: at every moment the law of the whole table is almost the same whatever one element did.
//
// An entry has one cell in every layer. A cell is a counter that runs modulo a number known in advance, a bit, or both;
// the bit is drawn afresh from the coin of "seen" each time the counter passes zero. A density cell is a bit whose
// counter has modulus 1. Nothing else is kept: no item, no number of updates, no kind of key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "discreet/errors.hpp"
#include "discreet/noise/random_source.hpp"
#include "discreet/wipe.hpp"

namespace discreet::pan {

// Random bytes for one call. Words not used up are zeroed: an intruder must not find the noise of tomorrow.
class RandomBytes {
 public:
  explicit RandomBytes(RandomSource& source) : source_(source) {}
  ~RandomBytes() { wipe(&word_, sizeof word_); }
  uint8_t next() {
    if (left_ == 0) {
      word_ = source_.next();
      left_ = 8;
    }
    const uint8_t byte = static_cast<uint8_t>(word_);
    word_ >>= 8;
    --left_;
    return byte;
  }
  uint64_t word() { return source_.next(); }
  uint64_t below(uint64_t high) { return source_.below(high); }

 private:
  RandomSource& source_;
  uint64_t word_ = 0;
  int left_ = 0;
};

// 1 with probability threshold / 2^64, exactly. U < threshold is decided byte by byte, nearly always by the first.
struct Coin {
  uint64_t threshold = 0;
  uint8_t toss(RandomBytes& random) const {
    for (int shift = 56; shift >= 0; shift -= 8) {
      const uint8_t mine = static_cast<uint8_t>(threshold >> shift), drawn = random.next();
      if (drawn != mine) return drawn < mine;
    }
    return 0;
  }
};

// Whether x is a nonzero square modulo an odd prime: the Jacobi symbol is +1.
inline int legendre(uint64_t x, uint64_t prime) {
  uint64_t a = x % prime, n = prime;
  int sign = 1;
  while (a) {
    const int twos = __builtin_ctzll(a);
    a >>= twos;
    if ((twos & 1) && ((n & 7) == 3 || (n & 7) == 5)) sign = -sign;
    if ((a & 3) == 3 && (n & 3) == 3) sign = -sign;
    std::swap(a, n);
    a %= n;
  }
  return n == 1 ? sign : 0;
}

// What is added to a counter before any data, and again after an announced intrusion.
struct Shift {
  enum class Law : uint8_t {
    uniform = 0,  // over the whole cycle: the counter alone says nothing, and is drawn anew after an intrusion
    weights = 1,  // value v with probability weights[v] / 2^64; cumulative sums, the last of which is 2^64 and left out
    squares = 2,  // a nonzero square modulo the prime with the coin's probability, else one of the other residues
  };
  Law law = Law::uniform;
  std::vector<uint64_t> cumulative;
  Coin coin;

  uint64_t draw(uint64_t modulus, RandomBytes& random) const {
    if (law == Law::uniform) return random.below(modulus);
    if (law == Law::weights)
      return static_cast<uint64_t>(std::upper_bound(cumulative.begin(), cumulative.end(), random.word()) -
                                   cumulative.begin());
    const bool square = coin.toss(random);
    uint64_t value;
    do value = random.below(modulus);
    while ((legendre(value, modulus) == 1) != square);
    return value;
  }
};

// The two coins of randomised response, and how often the table was re-randomised: a bit of "seen" is drawn from the
// second coin and then sent through the response once for each announced intrusion, as the bits in the table were.
struct Response {
  Coin unseen, seen;
  uint32_t rounds = 0;
  uint8_t draw_seen(RandomBytes& random) const {
    uint8_t bit = seen.toss(random);
    for (uint32_t i = 0; i < rounds; ++i) bit = again(bit, random);
    return bit;
  }
  uint8_t again(uint8_t bit, RandomBytes& random) const { return (bit ? seen : unseen).toss(random); }
};

// One cell for every entry.
class Layer {
 public:
  // `modulus` and `step` have one number for all entries, or one for each.
  Layer(uint32_t entries, std::vector<uint64_t> modulus, std::vector<uint64_t> step, bool has_bits, Shift shift)
      : entries_(entries), modulus_(std::move(modulus)), step_(std::move(step)), shift_(std::move(shift)) {
    for (const auto* numbers : {&modulus_, &step_}) {
      if (numbers->size() != 1 && numbers->size() != entries)
        throw ParameterError("one modulus and step for all entries, or one for each");
      for (const uint64_t number : *numbers)
        if (number < 1 || number >> 62) throw ParameterError("a modulus or step must be from 1 to 2**62 - 1");
    }
    const bool counts = modulus_.size() > 1 || modulus_[0] > 1;
    if (shift_.law != Shift::Law::uniform && (has_bits || modulus_.size() != 1))
      throw ParameterError("only a counter without bits, with one modulus, takes a law of its own");
    if (shift_.law == Shift::Law::weights && shift_.cumulative.size() + 1 != modulus_[0])
      throw ParameterError("one weight for each residue");
    if (!counts && !has_bits) throw ParameterError("a cell has a counter or a bit");
    if (counts) counters_.assign(entries, 0);
    if (has_bits) bits_.assign(entries, 0);
  }

  // Every entry is drawn, whether its element will ever come or not.
  void start(const Response& response, RandomBytes& random) {
    for (uint32_t i = 0; i < entries_; ++i) {
      if (!counters_.empty()) counters_[i] = shift_.draw(modulus(i), random);
      if (!bits_.empty()) bits_[i] = response.unseen.toss(random);
    }
  }

  void occur(uint32_t i, const Response& response, RandomBytes& random) {
    if (!counters_.empty()) {
      const uint64_t modulus_i = modulus(i), next = counters_[i] + step(i);
      if (next < modulus_i) {
        counters_[i] = next;
        return;
      }
      counters_[i] = next % modulus_i;
    }
    if (!bits_.empty()) bits_[i] = response.draw_seen(random);
  }

  void rerandomise(const Response& response, RandomBytes& random) {
    for (uint32_t i = 0; i < entries_; ++i) {
      if (!counters_.empty()) {
        const uint64_t drawn = shift_.draw(modulus(i), random);
        counters_[i] = shift_.law == Shift::Law::uniform ? drawn : (counters_[i] + drawn) % modulus(i);
      }
      if (!bits_.empty()) bits_[i] = response.again(bits_[i], random);
    }
  }

  void erase() {
    wipe(counters_.data(), counters_.size() * sizeof(uint64_t));
    wipe(bits_.data(), bits_.size());
  }

  uint32_t entries() const { return entries_; }
  bool only_bits() const { return counters_.empty(); }
  const std::vector<uint64_t>& moduli() const { return modulus_; }
  const std::vector<uint64_t>& steps() const { return step_; }
  const Shift& shift() const { return shift_; }
  WipedVector<uint64_t>& counters() { return counters_; }
  WipedVector<uint8_t>& bits() { return bits_; }
  const WipedVector<uint64_t>& counters() const { return counters_; }
  const WipedVector<uint8_t>& bits() const { return bits_; }
  uint64_t modulus(uint32_t i) const { return modulus_.size() == 1 ? modulus_[0] : modulus_[i]; }
  uint64_t step(uint32_t i) const { return step_.size() == 1 ? step_[0] : step_[i]; }

 private:
  uint32_t entries_;
  std::vector<uint64_t> modulus_, step_;
  Shift shift_;
  WipedVector<uint64_t> counters_;  // empty when the modulus is 1
  WipedVector<uint8_t> bits_;       // empty for counters alone
};

}  // namespace discreet::pan
