// How many values can be credited, each to one of the people who have it, at most so many to each person: the size of a
// largest matching of people and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "discreet/errors.hpp"

namespace discreet {

// Most values can be decided one after the other, in time that is linear in the pairs. Anyone who has room for all of
// their values takes them: from any largest matching, moving these values here makes one of the same size. A value that
// one person alone has is theirs while there is room: a largest matching without it has another value there instead.
// What is left then is for a flow, and nothing in most data.
class Credits {
 public:
  struct Left {
    uint64_t credited = 0;                  // values that are decided
    std::vector<int64_t> people, values;    // the pairs that are not
    std::vector<int64_t> room;              // how many values a person can still take, by person
  };

  // Pairs of a person (upper 32 bits) and a value (lower ones), in ascending order, each once. Both are numbers from 0.
  Credits(const int64_t* pairs, size_t n) {
    if (n >= UINT32_MAX) throw ParameterError("too many pairs of people and values");
    for (size_t i = 0; i < n; ++i) {
      const int64_t value = pairs[i] & 0xffffffff;
      if (pairs[i] < 0 || value > INT32_MAX || (i > 0 && pairs[i] <= pairs[i - 1]))
        throw ParameterError("pairs must be in ascending order, of numbers from 0");
      if (static_cast<size_t>(value) >= different_) different_ = static_cast<size_t>(value) + 1;
    }
    const size_t many = n == 0 ? 0 : static_cast<size_t>(pairs[n - 1] >> 32) + 1;
    begins_.assign(many + 1, 0);
    owned_begins_.assign(different_ + 1, 0);
    values_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      values_[i] = static_cast<int32_t>(pairs[i]);
      ++begins_[static_cast<size_t>(pairs[i] >> 32) + 1];
    }
    for (size_t i = 0; i < n; ++i) {
      ask_ahead(i, owned_begins_);
      ++owned_begins_[static_cast<size_t>(values_[i]) + 1];
    }
    for (size_t p = 0; p < many; ++p) begins_[p + 1] += begins_[p];
    for (size_t v = 0; v < different_; ++v) owned_begins_[v + 1] += owned_begins_[v];
    owners_.resize(n);
    std::vector<uint32_t> next(owned_begins_.begin(), owned_begins_.end());
    for (size_t p = 0; p < many; ++p)
      for (uint32_t i = begins_[p]; i < begins_[p + 1]; ++i) {
        ask_ahead(i, next);
        owners_[next[static_cast<size_t>(values_[i])]++] = static_cast<int32_t>(p);
      }
    open_.resize(many);
    for (size_t p = 0; p < many; ++p) open_[p] = begins_[p + 1] - begins_[p];
    there_.resize(different_);
    owned_.resize(different_);
    for (size_t v = 0; v < different_; ++v) {
      for (uint32_t j = owned_begins_[v]; j < owned_begins_[v + 1]; ++j) owned_[v].only ^= owners_[j];
      owned_[v].owners = owned_begins_[v + 1] - owned_begins_[v];
      there_[v] = owned_[v].owners > 0;
    }
  }

  // To be asked for numbers in ascending order: anyone who has room for all of their values has it for larger numbers.
  Left credited(uint32_t most) {
    if (most < before_) throw ParameterError("credits are counted in ascending order");
    before_ = most;
    std::vector<int32_t> waiting;
    for (size_t p = 0; p < open_.size(); ++p)
      if (open_[p] > 0 && open_[p] <= most) waiting.push_back(static_cast<int32_t>(p));
    const std::vector<uint32_t> same(open_.size(), most);
    credited_ += take_all(waiting, open_, same, there_);
    return decide(most);
  }

 private:
  // People who have room for all of their values take them; others may have room for all of what is left then.
  uint64_t take_all(std::vector<int32_t>& waiting, std::vector<uint32_t>& open, const std::vector<uint32_t>& room,
                    std::vector<uint8_t>& there) const {
    uint64_t taken = 0;
    while (!waiting.empty()) {
      const auto p = static_cast<size_t>(waiting.back());
      waiting.pop_back();
      if (open[p] == 0) continue;
      for (uint32_t i = begins_[p]; i < begins_[p + 1]; ++i) {
        ask_ahead(i, there);
        const auto v = static_cast<size_t>(values_[i]);
        if (!there[v]) continue;
        there[v] = 0;
        ++taken;
        for (uint32_t j = owned_begins_[v]; j < owned_begins_[v + 1]; ++j) {
          const auto q = static_cast<size_t>(owners_[j]);
          if (open[q] > 0 && --open[q] <= room[q] && q != p) waiting.push_back(owners_[j]);
        }
      }
      open[p] = 0;
    }
    return taken;
  }

  // Of a value: its owners who are not out, combined by xor (of one owner it is this one), and how many they are.
  struct Owned {
    int32_t only = 0;
    uint32_t owners = 0;
  };

  // Who has what of the values that are there, while they are credited. A person is out when `open`, how many of their
  // values are there, is 0.
  struct State {
    std::vector<uint32_t> open, room;
    std::vector<Owned> owned;
    std::vector<uint8_t> there;
    std::vector<int32_t> alone;  // values that one person has who is not out
  };

  // Values lie all over memory: what a later pair will touch is asked for while those before are looked at.
  template <class T>
  void ask_ahead(size_t pair, const std::vector<T>& of_values) const {
    constexpr size_t kAhead = 16;
    if (pair + kAhead < values_.size())
      __builtin_prefetch(of_values.data() + static_cast<size_t>(values_[pair + kAhead]));
  }

  // All that can be decided for this number.
  Left decide(uint32_t most) const {
    Left left;
    State state{open_, std::vector<uint32_t>(open_.size(), most), owned_, there_, {}};
    for (size_t v = 0; v < different_; ++v)  // of a value that is there nobody is out yet
      if (state.there[v] && state.owned[v].owners == 1) state.alone.push_back(static_cast<int32_t>(v));
    left.credited = credited_ + take_alone(state);
    for (size_t p = 0; p < open_.size(); ++p)
      for (uint32_t i = begins_[p]; state.open[p] > 0 && i < begins_[p + 1]; ++i)
        if (state.there[static_cast<size_t>(values_[i])]) {
          left.people.push_back(static_cast<int64_t>(p));
          left.values.push_back(values_[i]);
        }
    left.room.assign(state.room.begin(), state.room.end());
    if (left.people.empty()) return left;
    // Nobody can take more than there is room for, nor more values than there are: where a guess gets so far, it is one
    // of the largest.
    uint64_t values = 0, room = 0;
    for (const uint8_t there : state.there) values += there;
    for (size_t p = 0; p < open_.size(); ++p) room += state.open[p] > 0 ? state.room[p] : 0;
    const uint64_t bound = values < room ? values : room;
    if (guess(state) == bound) {
      left.credited += bound;
      left.people.clear();
      left.values.clear();
    }
    return left;
  }

  uint64_t take_alone(State& state) const {
    uint64_t taken = 0;
    while (!state.alone.empty()) {
      const auto v = static_cast<size_t>(state.alone.back());
      state.alone.pop_back();
      if (!state.there[v] || state.owned[v].owners != 1) continue;
      const auto p = static_cast<size_t>(state.owned[v].only);
      state.there[v] = 0;
      ++taken;
      --state.open[p];
      if (--state.room[p] == 0) leave(state, p);
    }
    return taken;
  }

  // A person without room is out.
  void leave(State& state, size_t p) const {
    for (uint32_t i = begins_[p]; state.open[p] > 0 && i < begins_[p + 1]; ++i) {
      ask_ahead(i, state.there);
      ask_ahead(i, state.owned);
      const auto w = static_cast<size_t>(values_[i]);
      if (!state.there[w]) continue;
      Owned& owned = state.owned[w];
      owned.only ^= static_cast<int32_t>(p);
      --owned.owners;
      if (owned.owners == 1) state.alone.push_back(values_[i]);
      if (owned.owners == 0) state.there[w] = 0;
    }
    state.open[p] = 0;
  }

  // Credit what is left one value after the other, each to the person who has the fewest others to choose from.
  uint64_t guess(State& state) const {
    uint64_t taken = 0;
    std::vector<int32_t> waiting;
    for (size_t v = 0; v < different_; ++v) {
      if (!state.there[v]) continue;
      int64_t best = -1;
      for (uint32_t j = owned_begins_[v]; j < owned_begins_[v + 1]; ++j) {
        const auto q = static_cast<size_t>(owners_[j]);
        if (state.open[q] > 0 && (best < 0 || spare(state, q) < spare(state, static_cast<size_t>(best))))
          best = owners_[j];
      }
      state.there[v] = 0;
      if (best < 0) continue;
      ++taken;
      const auto p = static_cast<size_t>(best);
      for (uint32_t j = owned_begins_[v]; j < owned_begins_[v + 1]; ++j) {
        const auto q = static_cast<size_t>(owners_[j]);
        if (state.open[q] > 0 && --state.open[q] <= state.room[q] && q != p) waiting.push_back(owners_[j]);
      }
      if (--state.room[p] == 0) leave(state, p);
      taken += take_all(waiting, state.open, state.room, state.there);
      taken += take_alone(state);
    }
    return taken;
  }

  static int64_t spare(const State& state, size_t p) {
    return static_cast<int64_t>(state.open[p]) - static_cast<int64_t>(state.room[p]);
  }

  size_t different_ = 0;                         // values
  std::vector<uint32_t> begins_, owned_begins_;  // where the values of a person begin, and the owners of a value
  std::vector<int32_t> values_, owners_;
  std::vector<Owned> owned_;                     // while nobody is out
  std::vector<uint32_t> open_;                   // how many values of a person are there
  std::vector<uint8_t> there_;                   // values that nobody has taken in full
  uint64_t credited_ = 0;
  uint32_t before_ = 0;
};

}  // namespace discreet
