// Streams of keys for the tests, and how kernels take them.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "discreet/keys.hpp"

namespace discreet::test {

inline StrKey str(const std::string& text, Tag tag = Tag::text) {
  return {text.data(), static_cast<uint32_t>(text.size()), tag};
}

// A skewed stream over `distinct` numbers: small ones are frequent.
inline std::vector<uint64_t> skewed(size_t length, uint64_t distinct, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> out(length);
  for (uint64_t& x : out) x = random() % (1 + random() % distinct);
  return out;
}

// The same as texts of 0 to 59 bytes, on both sides of what a table keeps inline.
inline std::vector<std::string> texts(const std::vector<uint64_t>& numbers) {
  std::vector<std::string> out;
  for (const uint64_t x : numbers) out.push_back(x == 0 ? "" : std::string(x % 50, 'x') + std::to_string(x));
  return out;
}

template <class T>
std::map<T, uint64_t> tally(const std::vector<T>& stream) {
  std::map<T, uint64_t> out;
  for (const T& x : stream) ++out[x];
  return out;
}

inline std::vector<IntKey> keys_of(const std::vector<uint64_t>& stream) {
  std::vector<IntKey> out;
  for (const uint64_t x : stream) out.push_back({x});
  return out;
}
inline std::vector<StrKey> keys_of(const std::vector<std::string>& stream) {
  std::vector<StrKey> out;
  for (const std::string& x : stream) out.push_back(str(x));
  return out;
}

inline uint64_t plain(IntKey key) { return key.value; }
inline std::string plain(StrKey key) { return {key.data, key.size}; }

template <class Kernel, class Key>
void feed(Kernel& kernel, const std::vector<Key>& keys) {
  std::vector<uint64_t> hashes;
  for (const Key& key : keys) hashes.push_back(key.hash(kernel.seed()));
  kernel.add_block(keys.data(), hashes.data(), keys.size());
}

template <class Kernel>
auto counts_of(const Kernel& kernel) {
  using Item = decltype(plain(kernel.counters()[0].key));
  std::map<Item, uint64_t> out;
  for (const auto& c : kernel.counters()) out[plain(c.key)] = c.count;
  return out;
}

}  // namespace discreet::test
