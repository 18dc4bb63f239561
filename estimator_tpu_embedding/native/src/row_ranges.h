// Cuts the rows of a table into ranges, which threads update side by side.
#ifndef ETE_ROW_RANGES_H_
#define ETE_ROW_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ete {

struct GradientsOfTable;  // Of contributions.h.

// Rows [first_row, end_row) of a table, and which of the distinct rows of each core these are.
struct RowRange {
  size_t table;
  uint32_t first_row, end_row;
  std::vector<uint32_t> from, end;  // By core: indices into TableGroup::distinct.
  uint64_t work;                    // About how many floats are read.
};

// Cuts the rows of a table into ranges of about `work` each, and appends them to `ranges`. A row
// is never cut, so a row with very many occurrences makes a long range. With `all_rows` the ranges
// hold every row of the table. Nothing in the groups is trusted.
void cut(const GradientsOfTable& gradients, size_t table, bool all_rows, uint64_t work,
         std::vector<RowRange>* ranges);

}  // namespace ete

#endif  // ETE_ROW_RANGES_H_
