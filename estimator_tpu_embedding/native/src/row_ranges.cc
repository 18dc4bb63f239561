#include "row_ranges.h"

#include <algorithm>

#include "contributions.h"

namespace ete {
namespace {

// Rows at which ranges of about `work` floats may begin, ascending, the last one the end.
std::vector<uint32_t> borders_of(const GradientsOfTable& gradients, bool all_rows, uint64_t work) {
  const TableLayout& table = *gradients.table;
  const uint64_t step = std::max<uint64_t>(1, work / static_cast<uint64_t>(table.width));
  std::vector<uint32_t> borders;
  for (const CoreOfTable& core : gradients.cores) {
    const TableGroup& group = core.group;
    for (uint64_t at = step; group.u > 0 && at < group.n; at += step) {
      const uint32_t* run = std::upper_bound(group.run_starts, group.run_starts + group.u,
                                             static_cast<uint32_t>(at));
      if (run == group.run_starts) continue;
      borders.push_back(group.distinct[run - group.run_starts - 1]);
    }
  }
  for (uint64_t row = step; all_rows && row < table.physical_rows; row += step) {
    borders.push_back(static_cast<uint32_t>(row));
  }
  // Anything could be in the groups: no border but the last is at or beyond the end.
  borders.erase(std::remove_if(borders.begin(), borders.end(), [&](uint32_t row) {
    return row == 0 || row >= table.physical_rows; }), borders.end());
  borders.push_back(table.physical_rows);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace

void cut(const GradientsOfTable& gradients, size_t table, bool all_rows, uint64_t work,
         std::vector<RowRange>* ranges) {
  const uint64_t width = static_cast<uint64_t>(gradients.table->width);
  std::vector<uint32_t> from(gradients.cores.size(), 0);
  uint32_t first_row = 0;
  for (uint32_t end_row : borders_of(gradients, all_rows, work)) {
    RowRange range{table, first_row, end_row, from, from, all_rows ? end_row - first_row : 0};
    const bool last = end_row == gradients.table->physical_rows;
    for (size_t core = 0; core < from.size(); ++core) {
      const TableGroup& group = gradients.cores[core].group;
      range.end[core] = last ? group.u : static_cast<uint32_t>(
          std::lower_bound(group.distinct + from[core], group.distinct + group.u, end_row) -
          group.distinct);
      // Whatever is there, no work is negative: the wrapped one only makes a poor order.
      range.work += range.end[core] - from[core] +
                    (group.u > 0 ? group.run_starts[range.end[core]] -
                     group.run_starts[from[core]] : 0);
    }
    range.work *= width;
    from = range.end;
    first_row = end_row;
    if (range.work > 0) ranges->push_back(std::move(range));
  }
}

}  // namespace ete
