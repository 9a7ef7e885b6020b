// State bytes: what every stored summary looks like.
//
//   offset  0  magic "DSCREET1"                       8 bytes
//           8  family                                 u16
//          10  version of the family's payload        u16
//          12  key kind                               u8
//          13  hash of bytes keys: 0 the first, 1 present u8
//          14  reserved, zero                         2 bytes
//          16  payload length                         u64
//          24  checksum of bytes 0..24 and payload    u64
//          32  payload
//
// Numbers are little-endian. A reader checks magic, length and checksum before it looks further, and allocates no
// more than the payload it was given justifies. The checksum finds damage, not forgery.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "discreet/errors.hpp"
#include "discreet/keys.hpp"

namespace discreet {

static_assert(std::endian::native == std::endian::little, "state bytes are written in little-endian order");

// Part of the format: never renumber.
enum class StateFamily : uint16_t {
  misra_gries = 1,
  space_saving = 2,
  user_misra_gries = 3,
  count_min = 4,
  count_sketch = 5,
  exact_counts = 6,
  sharded_misra_gries = 7,
  python = 100,  // payloads written by Python classes use 100 and up
};

inline constexpr char kMagic[9] = "DSCREET1";
inline constexpr size_t kHeaderBytes = 32;

inline uint64_t checksum(std::string_view header, std::string_view payload) {
  uint64_t h = 0x5bd1e995a3c59ac3ull;
  for (std::string_view part : {header, payload}) {
    while (!part.empty()) {
      const uint32_t n = static_cast<uint32_t>(part.size() > (1u << 20) ? (1u << 20) : part.size());
      h = first_hash_bytes(part.data(), n, h);
      part.remove_prefix(n);
    }
  }
  return h;
}

class StateWriter {
 public:
  void u8(uint8_t v) { put(&v, 1); }
  void u16(uint16_t v) { put(&v, 2); }
  void u32(uint32_t v) { put(&v, 4); }
  void u64(uint64_t v) { put(&v, 8); }
  void bytes(const char* p, size_t n) { out_.append(p, n); }
  // The seed of a summary; the envelope says which hash it is for.
  void seed(const HashKey& key) {
    u64(key.seed);
    hash_ = key.first_version ? 0 : 1;
  }
  const std::string& content() const { return out_; }
  void key(IntKey key, KeyKind) { u64(key.value); }
  void key(StrKey key, KeyKind kind) {
    if (kind == KeyKind::mixed) u8(static_cast<uint8_t>(key.tag));
    u32(key.size);
    bytes(key.data, key.size);
  }

  // What was written, without an envelope.
  const std::string& payload() const { return out_; }

  std::string seal(uint16_t family, uint16_t version, KeyKind kind) const {
    return head_of(family, version, kind, hash_, out_) + out_;
  }
  // The header of a payload.
  static std::string head_of(uint16_t family, uint16_t version, KeyKind kind, uint8_t hash, std::string_view payload) {
    StateWriter head;
    head.bytes(kMagic, 8);
    head.u16(family);
    head.u16(version);
    head.u8(static_cast<uint8_t>(kind));
    head.u8(hash);
    head.bytes("\0\0", 2);
    head.u64(payload.size());
    head.u64(checksum(head.out_, payload));
    return head.out_;
  }

 private:
  void put(const void* p, size_t n) { out_.append(static_cast<const char*>(p), n); }
  std::string out_;
  uint8_t hash_ = 0;
};

// The header of a state, checked, and the payload it covers.
struct OpenState {
  uint16_t family;
  uint16_t version;
  KeyKind kind;
  uint64_t sum;  // the checksum
  bool first_hash;  // keys are hashed as before the present hash
  std::string_view payload;
};

inline OpenState open_state(std::string_view data) {
  if (data.size() < kHeaderBytes) throw CorruptStateError("state is shorter than its header");
  if (std::memcmp(data.data(), kMagic, 8) != 0) throw CorruptStateError("state does not start with discreet's magic");
  OpenState state;
  std::memcpy(&state.family, data.data() + 8, 2);
  std::memcpy(&state.version, data.data() + 10, 2);
  const uint8_t kind = static_cast<uint8_t>(data[12]);
  uint64_t length;
  std::memcpy(&length, data.data() + 16, 8);
  std::memcpy(&state.sum, data.data() + 24, 8);
  state.payload = data.substr(kHeaderBytes);
  if (length != state.payload.size()) throw CorruptStateError("state is truncated or has trailing bytes");
  if (state.sum != checksum(data.substr(0, 24), state.payload)) throw CorruptStateError("state fails its checksum");
  if (kind > static_cast<uint8_t>(KeyKind::mixed)) throw CorruptStateError("state has an unknown key kind");
  state.kind = static_cast<KeyKind>(kind);
  const uint8_t hash = static_cast<uint8_t>(data[13]);
  if (hash > 1) throw CorruptStateError("state has keys of an unknown hash");
  state.first_hash = hash == 0;
  return state;
}

// The same, for a reader of one family that knows payload versions 1 to `newest`.
inline OpenState open_state(std::string_view data, StateFamily family, uint16_t newest) {
  const OpenState state = open_state(data);
  if (state.family != static_cast<uint16_t>(family)) throw CorruptStateError("state belongs to another class");
  if (state.version < 1 || state.version > newest)
    throw CorruptStateError("state has version " + std::to_string(state.version) + "; versions 1 to " +
                            std::to_string(newest) + " can be read");
  return state;
}

// Reads a payload; every read is checked against what is left.
class StateReader {
 public:
  explicit StateReader(std::string_view payload) : rest_(payload) {}
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  std::string_view bytes(size_t n) {
    if (n > rest_.size()) throw CorruptStateError("state ends inside a value");
    const std::string_view out = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return out;
  }
  // How many records of at least `each` bytes may follow: bounds an allocation before it is made.
  uint64_t records(size_t each) {
    const uint64_t n = u64();
    if (n > rest_.size() / each) throw CorruptStateError("state announces more records than it holds");
    return n;
  }
  void key(IntKey& key, KeyKind) { key.value = u64(); }
  void key(StrKey& key, KeyKind kind) {
    const uint8_t tag = kind == KeyKind::mixed ? u8() : static_cast<uint8_t>(kind == KeyKind::binary);
    if (tag > static_cast<uint8_t>(Tag::large)) throw CorruptStateError("state has a key of an unknown kind");
    key.tag = static_cast<Tag>(tag);
    key.size = u32();
    key.data = bytes(key.size).data();
  }
  void finish() const {
    if (!rest_.empty()) throw CorruptStateError("state has bytes after its last value");
  }

 private:
  template <class T>
  T number() {
    T v;
    std::memcpy(&v, bytes(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view rest_;
};

}  // namespace discreet
