// Frequency oracles of local privacy: what a report says of an item, and the sums over many reports.
//
// Nothing here is random or secret. Every report has a public number, and its hash function or Hadamard row comes from
// Philox4x64-10 (Salmon, Moraes, Dror, Shaw 2011) keyed by the round, at that number: both sides compute it.
//
// A hash value is the upper half of (a0 + x1)(a1 + x0) + b for the halves x1, x0 of a word, which for two different
// words is a uniform pair of 32-bit numbers (see row_hash.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace discreet::oracle {

struct Key {
  uint64_t k0, k1;
};

using Words = std::array<uint64_t, 4>;

inline Words philox(Key key, uint64_t number) {
  Words c{number, 0, 0, 0};
  for (int round = 0; round < 10; ++round) {
    const unsigned __int128 p0 = static_cast<unsigned __int128>(0xD2E7470EE14C6C93ull) * c[0];
    const unsigned __int128 p1 = static_cast<unsigned __int128>(0xCA5A826395121157ull) * c[2];
    c = {static_cast<uint64_t>(p1 >> 64) ^ c[1] ^ key.k0, static_cast<uint64_t>(p1),
         static_cast<uint64_t>(p0 >> 64) ^ c[3] ^ key.k1, static_cast<uint64_t>(p0)};
    key.k0 += 0x9E3779B97F4A7C15ull;
    key.k1 += 0xBB67AE8584CAA73Bull;
  }
  return c;
}

// One strongly universal function from words to 32 bits.
struct Function {
  uint64_t a0, a1, b;
  static Function of(Key key, uint64_t number) {
    const Words w = philox(key, number);
    return {w[0], w[1], w[2]};
  }
  uint32_t operator()(uint64_t x) const {
    return static_cast<uint32_t>(((a0 + (x >> 32)) * (a1 + (x & 0xffffffff)) + b) >> 32);
  }
};

constexpr size_t kReports = 1024;  // reports whose functions are at hand while all items pass by

// ---- Hadamard response ---------------------------------------------------------------------------------------------

// The entry of the Hadamard matrix at (row, column) is -1 to the power of this.
inline uint8_t parity(uint64_t row, uint64_t column) {
  return static_cast<uint8_t>(__builtin_parityll(row & column));
}

inline uint64_t hadamard_row(Key key, uint64_t number, int order) {
  return order == 0 ? 0 : philox(key, number)[0] >> (64 - order);
}

inline void hadamard_bits(Key key, int order, const uint64_t* numbers, const uint64_t* words, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) out[i] = parity(hadamard_row(key, numbers[i], order), words[i]);
}

// In place: out[x] = sum over r of (-1)^parity(r & x) in[r].
inline void walsh_hadamard(std::vector<int64_t>& table) {
  for (size_t half = 1; half < table.size(); half *= 2)
    for (size_t first = 0; first < table.size(); first += 2 * half)
      for (size_t i = first; i < first + half; ++i) {
        const int64_t a = table[i], b = table[i + half];
        table[i] = a + b;
        table[i + half] = a - b;
      }
}

// For every item the sum over the reports of +1 where the bit agrees with the item's entry and -1 where not.
inline void hadamard_sums(Key key, int order, const uint64_t* numbers, const uint8_t* bits, size_t n,
                          const uint64_t* items, size_t m, int64_t* out) {
  // All columns at once by the fast transform, when the matrix is small beside the work of one by one.
  if (order <= 24 && static_cast<double>(n) * m > 4.0 * order * (1ull << order)) {
    std::vector<int64_t> table(1ull << order, 0);
    for (size_t i = 0; i < n; ++i) table[hadamard_row(key, numbers[i], order)] += bits[i] ? -1 : 1;
    walsh_hadamard(table);
    for (size_t j = 0; j < m; ++j) out[j] = table[items[j]];
    return;
  }
  std::fill(out, out + m, static_cast<int64_t>(n));
  uint64_t rows[kReports];
  for (size_t first = 0; first < n; first += kReports) {
    const size_t count = std::min(kReports, n - first);
    for (size_t i = 0; i < count; ++i) rows[i] = hadamard_row(key, numbers[first + i], order);
    for (size_t j = 0; j < m; ++j) {
      uint32_t against = 0;
      for (size_t i = 0; i < count; ++i) against += parity(rows[i], items[j]) ^ bits[first + i];
      out[j] -= 2 * static_cast<int64_t>(against);
    }
  }
}

// ---- local hashing -------------------------------------------------------------------------------------------------

inline uint32_t bucket_of(uint32_t hash, uint32_t buckets) {
  return static_cast<uint32_t>((static_cast<uint64_t>(hash) * buckets) >> 32);
}
// The smallest hash of a bucket; that of `buckets` is 2^32.
inline uint64_t first_hash(uint64_t bucket, uint32_t buckets) { return ((bucket << 32) + buckets - 1) / buckets; }

inline void hash_buckets(Key key, uint32_t buckets, const uint64_t* numbers, const uint64_t* words, size_t n,
                         uint32_t* out) {
  for (size_t i = 0; i < n; ++i) out[i] = bucket_of(Function::of(key, numbers[i])(words[i]), buckets);
}

// For every item the number of reports whose bucket is the item's. Reports are below `buckets`.
inline void bucket_counts(Key key, uint32_t buckets, const uint64_t* numbers, const uint32_t* reports, size_t n,
                          const uint64_t* items, size_t m, int64_t* out) {
  std::fill(out, out + m, 0);
  Function functions[kReports];
  uint32_t low[kReports], last[kReports];  // the reported bucket is the hashes from low to low + last
  for (size_t first = 0; first < n; first += kReports) {
    const size_t count = std::min(kReports, n - first);
    for (size_t i = 0; i < count; ++i) {
      functions[i] = Function::of(key, numbers[first + i]);
      const uint64_t begin = first_hash(reports[first + i], buckets);
      low[i] = static_cast<uint32_t>(begin);
      last[i] = static_cast<uint32_t>(first_hash(reports[first + i] + 1ull, buckets) - begin - 1);
    }
    for (size_t j = 0; j < m; ++j) {
      const uint64_t x1 = items[j] >> 32, x0 = items[j] & 0xffffffff;
      uint32_t agree = 0;
      for (size_t i = 0; i < count; ++i) {
        const Function& f = functions[i];
        const uint32_t hash = static_cast<uint32_t>(((f.a0 + x1) * (f.a1 + x0) + f.b) >> 32);
        agree += static_cast<uint32_t>(hash - low[i]) <= last[i];
      }
      out[j] += agree;
    }
  }
}

// ---- one row of a count sketch -------------------------------------------------------------------------------------

// A hash chooses one of 2 * columns places: the column, and in the last bit whether the sign is negative. For two different
// words both columns and both signs are independent.
inline uint32_t place_of(uint32_t hash, uint32_t columns) { return bucket_of(hash, 2 * columns); }

// Adds every report's item to its own row of `columns` cells.
inline void add_to_rows(Key key, uint32_t columns, const uint64_t* numbers, const uint64_t* words, size_t n,
                        int64_t* cells) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t place = place_of(Function::of(key, numbers[i])(words[i]), columns);
    cells[i * columns + (place >> 1)] += place & 1 ? -1 : 1;
  }
}

// For every item the sum over the reports of sign times cell.
inline void row_sums(Key key, uint32_t columns, const uint64_t* numbers, const int32_t* cells, size_t n,
                     const uint64_t* items, size_t m, int64_t* out) {
  std::fill(out, out + m, 0);
  const size_t block = std::clamp<size_t>(4096 / columns, 16, kReports);
  const uint32_t places = 2 * columns;
  std::vector<int32_t> signed_cells(block * places);  // by place: the cell, and the cell with the other sign
  Function functions[kReports];
  for (size_t first = 0; first < n; first += block) {
    const size_t count = std::min(block, n - first);
    for (size_t i = 0; i < count; ++i) functions[i] = Function::of(key, numbers[first + i]);
    for (size_t c = 0; c < count * columns; ++c) {
      signed_cells[2 * c] = cells[first * columns + c];
      signed_cells[2 * c + 1] = -cells[first * columns + c];
    }
    for (size_t j = 0; j < m; ++j) {
      const uint64_t x1 = items[j] >> 32, x0 = items[j] & 0xffffffff;
      const int32_t* row = signed_cells.data();
      int64_t sum = 0;
      for (size_t i = 0; i < count; ++i, row += places) {
        const Function& f = functions[i];
        const uint32_t hash = static_cast<uint32_t>(((f.a0 + x1) * (f.a1 + x0) + f.b) >> 32);
        sum += row[bucket_of(hash, places)];
      }
      out[j] += sum;
    }
  }
}

}  // namespace discreet::oracle
