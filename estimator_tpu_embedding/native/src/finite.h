// Counts the summed gradients that are not finite, before anything is written.
#ifndef ETE_FINITE_H_
#define ETE_FINITE_H_

#include <cstdint>
#include <vector>

#include "contributions.h"
#include "pool.h"

namespace ete {

// Writes to `nonfinite`, for each table, how many elements of the summed gradients are not finite,
// at most INT32_MAX. If the options of a table say not to accumulate, the sums are of each core.
//
// Most often one pass over the gradients is enough: if the largest magnitude times the largest
// factor times the number of occurrences is small, no sum overflows. Only the other tables are
// summed. `ranges` are all ranges of all tables. Throws as Contributions does.
void count_nonfinite(const std::vector<GradientsOfTable>& tables,
                     const std::vector<RowRange>& ranges, Pool& pool, int32_t* nonfinite);

}  // namespace ete

#endif  // ETE_FINITE_H_
