// Changes rows and slots by the optimizers, from the gradients of activations.
#ifndef ETE_UPDATE_H_
#define ETE_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layouts.h"
#include "pool.h"

namespace ete {

// What one core has to say: its grouped batch (untrusted), by any of the layouts, and by feature
// the gradient of the activations, [samples, width] floats of any alignment.
struct CoreGradients {
  const uint32_t* words;
  size_t count;
  const float* const* gradient_of_feature;
};

// The memory of one table, by physical row.
struct TableState {
  float* rows;
  std::vector<float*> slots;
};

// Updates all tables. `rates` by table; `nonfinite` by table: how many elements of the summed
// gradients (of the sums of each core where a table does not accumulate) are not finite; if there
// are any, no table is changed.
//
// A row's gradients are summed in the order (feature, core, sample), or within each core, and the
// sums applied in the order that contributions.h states. The result is the same for any number of
// threads, and however rows are spread over hosts. Where a table accumulates, it is also the same
// however samples are spread over cores.
//
// Throws Error kInvalidArgument if there is no core, and, naming the table, for a rule that does
// not exist or does not fit the slots, and for what is not a grouped batch. If it is indices of a
// batch that are wrong, rows may have been changed by then; memory outside the tables never is.
void update(const Layouts& layouts, const std::vector<CoreGradients>& cores,
            const std::vector<TableState>& states, const float* rates, Pool& pool,
            int32_t* nonfinite);

}  // namespace ete

#endif  // ETE_UPDATE_H_
