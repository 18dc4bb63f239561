// Sums the gradients of the rows of a range, some rows at a time.
#ifndef ETE_SUMMED_H_
#define ETE_SUMMED_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "contributions.h"
#include "update.h"

namespace ete {

struct SummedRows {
  const uint32_t* rows;     // [count]
  const float* gradients;   // [count, width]
  size_t count;
};

// Calls `use` with all rows of a range, in the order of Contributions. If `state` is not null, the
// memory of the next rows in it is prefetched. Throws as Contributions does.
void for_summed(const GradientsOfTable& gradients, const RowRange& range, const TableState* state,
                const std::function<void(const SummedRows&)>& use);

}  // namespace ete

#endif  // ETE_SUMMED_H_
