// Gradients of activations -> rows and slots changed by the optimizers.
#ifndef ETE_UPDATE_H_
#define ETE_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.h"
#include "pool.h"

namespace ete {

// What one core has to say: its grouped batch (untrusted), and by feature the gradient of the
// activations, [samples, width] floats.
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
// gradients are not finite; if there are any, no table is changed. Throws Error kInvalidArgument,
// which names the table, for what is not a grouped batch.
void update(const Layout& layout, const std::vector<CoreGradients>& cores,
            const std::vector<TableState>& states, const float* rates, Pool& pool,
            int32_t* nonfinite);

}  // namespace ete

#endif  // ETE_UPDATE_H_
