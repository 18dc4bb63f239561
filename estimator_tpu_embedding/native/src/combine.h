// Combines rows of tables into the activations of features.
#ifndef ETE_COMBINE_H_
#define ETE_COMBINE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.h"
#include "pool.h"

namespace ete {

// Looks up one grouped batch (see grouped.h; untrusted). `rows_of_table` has the physical rows of
// each table. `out_of_feature` gets the activations of each feature: [samples, width] floats, exact
// zeros for samples without ids. `lengths`, if it is not null, has for each feature how many
// samples there are, at most those of the layout; no other sample may have an id. Throws Error
// kInvalidArgument, which names the table, for words that are no such grouped batch.
void combine(const Layout& layout, const uint32_t* words, size_t count, const int32_t* lengths,
             const std::vector<const float*>& rows_of_table, Pool& pool,
             const std::vector<float*>& out_of_feature);

}  // namespace ete

#endif  // ETE_COMBINE_H_
