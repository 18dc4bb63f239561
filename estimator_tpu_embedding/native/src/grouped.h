// The grouped batch: the ids of one core and step, sorted both by sample and by row.
//
// It is a vector of 32-bit words, and an int32 tensor outside. It is untrusted when it is read.
// `read_group` checks that every array of a table lies inside the vector. Code that uses a number
// of such an array as an index checks it at that moment, because anything can be in it.
//
//   word 0 kMagic, 1..2 hash of the layout (low, high), 3 words used (the vector may be longer),
//   4 number of tables T, 5 zero, 6 .. 6+T-1 first word of the section of each table
//
// A section has the following arrays, without gaps; sections may have gaps between them. The
// table has n occurrences (one id of one sample), u distinct rows, and K features of S_k samples:
//
//   n, u
//   starts         S_k + 1 for each feature: where the occurrences of each sample begin, counted
//                  in the section; those of feature k + 1 go on where feature k ended
//   rows[n]        physical row of each occurrence, by feature, sample, place in the sample
//   shares[n]      float: how much each occurrence counts in its sample; if the table is weighted
//   scales         float, S_0 + S_1 + ...: the one share of all occurrences of a sample; if the
//                  table is not weighted, and its combiner is mean or sqrtn; 0 without occurrences
//   distinct[u]    physical rows, ascending
//   run_starts[u + 1]  where the occurrences of each distinct row begin in the next arrays
//   codes[n]       (k << sample_bits) | sample, by row, and for one row in the order of rows[]
//   sorted_shares[n]   float: the shares in that order; if the table is weighted
#ifndef ETE_GROUPED_H_
#define ETE_GROUPED_H_

#include <cstddef>
#include <cstdint>

#include "layout.h"

namespace ete {

constexpr uint32_t kMagic = 0x45544547;
constexpr size_t kHeaderWords = 6;  // Before the T first words of sections.

// The arrays of one table. Pointers to arrays that the table does not have are null.
struct TableGroup {
  uint32_t n, u;
  const uint32_t* starts;  // Of feature 0; those of feature k begin at starts_before().
  const uint32_t* rows;
  const uint32_t* distinct;
  const uint32_t* run_starts;
  const uint32_t* codes;
  const float* shares;
  const float* scales;
  const float* sorted_shares;
};

// Where the arrays of a section begin, in words after its first. Arrays that the table does not
// have are empty. 64 bits wide, so that sums of untrusted numbers do not wrap.
struct SectionExtents {
  uint64_t starts, rows, shares, scales, distinct, run_starts, codes, sorted_shares, end;
};

SectionExtents section_extents(const Layout& layout, const TableLayout& table, uint64_t n,
                               uint64_t u);

// How many words lie before the starts of the k-th feature of a table, counted from
// TableGroup::starts, and before its scales, counted from TableGroup::scales. `k` may be K.
size_t starts_before(const Layout& layout, const TableLayout& table, int k);
size_t scales_before(const Layout& layout, const TableLayout& table, int k);

// The hash of the layout that words[0 .. kHeaderWords) name, which may be anything.
uint64_t hash_of_group(const uint32_t* words);

// The arrays of table number `table`, all of which lie inside words[0 .. count). Throws Error
// kInvalidArgument, which names the table, for words that are no grouped batch of this layout.
TableGroup read_group(const Layout& layout, const uint32_t* words, size_t count, int table);

// The arrays of one feature.
struct FeatureGroup {
  // Feature number `number`, of the group of its table. Nothing in it is checked.
  FeatureGroup(const Layout& layout, const TableGroup& group, int number);

  const FeatureLayout* feature;
  const TableLayout* table;
  TableGroup group;
  const uint32_t* starts;  // [samples + 1]
  const float* scales;     // [samples], or null.
};

// Throws Error kInvalidArgument, because a table's arrays hold `what`: EteGroup never makes it.
[[noreturn]] void refuse_group(const TableLayout& table, const char* what);

}  // namespace ete

#endif  // ETE_GROUPED_H_
