// Counts the summed gradients that are not finite, before anything is written.
#ifndef ETE_FINITE_H_
#define ETE_FINITE_H_

#include <cstdint>
#include <vector>

#include "contributions.h"
#include "pool.h"

namespace ete {

// By table, how many elements of the summed gradients are not finite (of the sums of each core
// where the options of the table say not to accumulate), at most INT32_MAX.
//
// Most often one pass over the gradients is enough: if the largest magnitude times the largest
// factor times the number of occurrences is small, no sum overflows. Only the tables where it is
// not are summed. `ranges` are all ranges of all tables. Throws as Contributions does.
void count_nonfinite(const std::vector<GradientsOfTable>& tables,
                     const std::vector<RowRange>& ranges, Pool& pool, int32_t* nonfinite);

}  // namespace ete

#endif  // ETE_FINITE_H_
