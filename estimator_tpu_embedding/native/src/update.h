// Changes rows and slots by the optimizers, from the gradients of activations.
#ifndef ETE_UPDATE_H_
#define ETE_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout_variants.h"
#include "pool.h"

namespace ete {

// The part of one core in an update: its grouped batch (untrusted), by any of the layouts, and for
// each feature the gradient of its activations, [samples, width] floats of any alignment.
// `lengths`, if it is not null, has for each feature how many samples have a gradient, at most
// those of the layout; no other sample may have an id.
struct CoreGradients {
  const uint32_t* words;
  size_t count;
  const float* const* gradient_of_feature;
  const int32_t* lengths = nullptr;
};

// The memory of one table, by physical row.
struct TableState {
  float* rows;
  std::vector<float*> slots;
};

// Counts for each table how many elements of the summed gradients are not finite. If a table does
// not accumulate, these are the sums of each core. Throws as `update` does.
void count(const Layouts& layouts, const std::vector<CoreGradients>& cores, Pool& pool,
           int32_t* nonfinite);

// Updates all tables. `rates` has a number for each table. `nonfinite` gets what `count` gives; if
// any element is not finite, no table is changed. If `nonfinite` is null, nothing is counted: the
// caller did that, and found none.
//
// A row's gradients are summed in the order (feature, core, sample), or within each core, and the
// sums applied in the order that contributions.h states. The result is the same for any number of
// threads, and however rows are spread over hosts. Where a table accumulates, it is also the same
// however samples are spread over cores.
//
// Throws Error kInvalidArgument if there is no core. It also throws, and names the table, for a
// rule that does not exist or does not fit the slots, and for words that are no grouped batch. If
// indices in a batch are wrong, rows may have been changed by then, but no memory outside the
// tables.
void update(const Layouts& layouts, const std::vector<CoreGradients>& cores,
            const std::vector<TableState>& states, const float* rates, Pool& pool,
            int32_t* nonfinite);

}  // namespace ete

#endif  // ETE_UPDATE_H_
