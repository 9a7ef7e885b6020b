// The two kinds of keys a summary can hold, as views (what a batch offers) and as stored copies (what a table keeps).
#pragma once

#include <cstdint>
#include <cstring>

#include "discreet/hash.hpp"

namespace discreet {

// What a summary holds. The numbers are part of the state format.
//
// Items of different kinds are different items: "1", b"1" and 1 are three. A summary that has met one kind only is of
// that kind, and becomes `mixed` when another comes. That changes how keys are written and nothing else: an item has
// the same hash, the same place in the order and the same cells in both, so that a row of another kind is for the rest
// of the stream what a row of any other item is.
enum class KeyKind : uint8_t { none = 0, int64 = 1, uint64 = 2, string = 3, binary = 4, mixed = 5 };

// What one key is, where a summary may hold several kinds; integers from 2^63 on are `large`.
enum class Tag : uint8_t { text = 0, bytes = 1, integer = 2, large = 3 };

inline const char* name_of(KeyKind kind) {
  switch (kind) {
    case KeyKind::int64: return "int64";
    case KeyKind::uint64: return "uint64";
    case KeyKind::string: return "string";
    case KeyKind::binary: return "binary";
    case KeyKind::mixed: return "mixed";
    default: return "none";
  }
}
inline Tag tag_of(uint64_t pattern, KeyKind kind) {
  return kind == KeyKind::uint64 && pattern >> 63 ? Tag::large : Tag::integer;
}
inline bool is_integer(KeyKind kind) { return kind == KeyKind::int64 || kind == KeyKind::uint64; }

// An integer key: the 64-bit pattern of an int64 or uint64.
struct IntKey {
  uint64_t value = 0;
  uint64_t hash(const HashKey& key) const { return hash_int(value, key.seed); }
};

// A string or bytes key, borrowed from a batch; in mixed summaries also the 8 bytes of an integer.
struct StrKey {
  const char* data = nullptr;
  uint32_t size = 0;
  Tag tag = Tag::text;
  bool is_number() const { return tag >= Tag::integer; }
  uint64_t hash(const HashKey& key) const {
    return is_number() ? hash_int(load64(data), key.seed) : hash_bytes(data, size, key);
  }
};

inline bool equal_bytes(const char* a, const char* b, uint32_t n) {
  while (n > 16) {
    if (load64(a) != load64(b) || load64(a + 8) != load64(b + 8)) return false;
    a += 16;
    b += 16;
    n -= 16;
  }
  uint64_t a0, a1, b0, b1;
  short_words(a, n, a0, a1);
  short_words(b, n, b0, b1);
  return a0 == b0 && a1 == b1;
}

// Stands for a key whose bytes are copied into the table later: see DictionaryFeed.
struct LaterKey {};

// What a table keeps of a key: for integers the value, for strings a copy (short ones inline) and the hash.
struct StoredInt {
  uint64_t value = 0;
  void set(IntKey key, uint64_t) { value = key.value; }
  bool equals(IntKey key, uint64_t) const { return value == key.value; }
  IntKey view() const { return {value}; }
  uint64_t hash(const HashKey& key) const { return hash_int(value, key.seed); }
  void clear() { value = 0; }
  void replace(StoredInt& old, IntKey key, uint64_t hash) {
    old.clear();
    set(key, hash);
  }
  uint64_t heap_bytes() const { return 0; }
  void prefetch_apart() const {}
};

class StoredString {
 public:
  StoredString() = default;
  StoredString(const StoredString& other) { set(other.view(), other.hash_); }
  StoredString(StoredString&& other) noexcept { take(other); }
  StoredString& operator=(const StoredString& other) {
    if (this != &other) set(other.view(), other.hash_);
    return *this;
  }
  StoredString& operator=(StoredString&& other) noexcept {
    if (this != &other) {
      clear();
      take(other);
    }
    return *this;
  }
  ~StoredString() { clear(); }

  void set(StrKey key, uint64_t hash) {
    char* fresh = key.size > kInline ? new char[room(key.size)] : nullptr;
    clear();
    fill(key, hash, fresh);
  }
  void set(LaterKey, uint64_t hash) {
    clear();
    hash_ = hash;
  }
  // Takes the place of `old`, which is cleared, and its memory where the key fits there: most keys that come and go are
  // about as long, and would be allocated and freed without end.
  void replace(StoredString& old, StrKey key, uint64_t hash) {
    if (key.size <= kInline || old.size_ <= kInline || room(key.size) != room(old.size_)) {
      set(key, hash);
      old.clear();
      return;
    }
    char* taken = old.heap();
    old.size_ = 0;
    old.clear();
    clear();
    fill(key, hash, taken);
  }
  void replace(StoredString& old, LaterKey key, uint64_t hash) {
    old.clear();
    set(key, hash);
  }
  bool equals(StrKey key, uint64_t hash) const {
    return hash_ == hash && size_ == key.size && tag_ == key.tag && equal_bytes(data(), key.data, key.size);
  }
  StrKey view() const { return {data(), size_, tag_}; }
  uint64_t hash(const HashKey&) const { return hash_; }
  uint64_t heap_bytes() const { return size_ > kInline ? size_ : 0; }
  // The bytes that lie elsewhere, for whoever is about to compare them.
  void prefetch_apart() const {
    if (size_ > kInline) __builtin_prefetch(heap());
  }
  void clear() {
    if (size_ > kInline) delete[] heap();
    size_ = 0;
    hash_ = 0;
    tag_ = Tag::text;
  }

 private:
  static constexpr uint32_t kInline = 19;
  static size_t room(uint32_t size) { return (static_cast<size_t>(size) + 15) & ~size_t{15}; }
  // The key in an empty place; what does not fit inline goes to `apart`.
  void fill(StrKey key, uint64_t hash, char* apart) {
    hash_ = hash;
    size_ = key.size;
    tag_ = key.tag;
    if (apart) {
      std::memcpy(apart, key.data, key.size);
      std::memcpy(bytes_, &apart, sizeof apart);
    } else if (key.size) {
      std::memcpy(bytes_, key.data, key.size);
    }
  }
  char* heap() const {
    char* p;
    std::memcpy(&p, bytes_, sizeof p);
    return p;
  }
  const char* data() const { return size_ > kInline ? heap() : bytes_; }
  void take(StoredString& other) {
    hash_ = other.hash_;
    size_ = other.size_;
    tag_ = other.tag_;
    std::memcpy(bytes_, other.bytes_, kInline);
    other.size_ = 0;
    other.hash_ = 0;
  }
  uint64_t hash_ = 0;
  uint32_t size_ = 0;
  char bytes_[kInline] = {};
  Tag tag_ = Tag::text;
};
static_assert(sizeof(StoredString) == 32);

template <class Key>
struct StoredFor;
template <>
struct StoredFor<IntKey> {
  using type = StoredInt;
};
template <>
struct StoredFor<StrKey> {
  using type = StoredString;
};

// A key with its counter, as merges and states see it.
template <class Key>
struct Counter {
  Key key;
  uint64_t hash = 0;
  uint64_t count = 0;
};

}  // namespace discreet
