// Radix sort of (row, payload) keys, and the runs of equal rows in the sorted keys.
//
// A key is an unsigned integer whose low `payload_bits` are a payload and whose bits above are a
// row. Sorting looks at the row only and is stable. Keys have 32 bits if both fit, otherwise 64.
#ifndef ETE_SORT_H_
#define ETE_SORT_H_

#include <cstddef>
#include <cstdint>

namespace ete {

// Sorts keys[0 .. n), n < 1 << 32, by `row_bits` bits above the payload. `other` has room for n
// keys too. Returns the one of the two that holds the result; the content of the other is lost.
template <typename Key>
Key* sort_keys(Key* keys, Key* other, size_t n, int payload_bits, int row_bits);

// Returns how many different rows are in n sorted keys.
template <typename Key>
size_t count_runs(const Key* keys, size_t n, int payload_bits);

// Where runs are written: the arrays of a section (see grouped.h), and what payloads mean.
struct RunArrays {
  uint32_t* distinct;
  uint32_t* run_starts;
  uint32_t* codes;
  uint32_t* sorted_shares;    // Float bits; null if there are no shares: a payload is a code.
  const uint32_t* code_of;    // Otherwise a payload is an occurrence. This is its code,
  const uint32_t* shares;     // and this is its share.
};

// A range of sorted keys: the occurrences from `first` on, which begin the run number `first_run`.
template <typename Key>
struct SortedKeys {
  const Key* keys;
  size_t n;
  int payload_bits;
  uint32_t row_base;  // Added to the row of every key.
  size_t first, first_run, runs;
};

// Writes `runs` distinct rows and run starts, and n codes; nothing beyond these, so that
// several threads can write ranges side by side.
template <typename Key>
void write_runs(const SortedKeys<Key>& sorted, const RunArrays& to);

}  // namespace ete

#endif  // ETE_SORT_H_
