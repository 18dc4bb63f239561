// Adds the parts that owners sent for the samples of a core, and takes gradients apart for them.
#ifndef ETE_PARTS_H_
#define ETE_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange.h"
#include "pool.h"

namespace ete {

// The positions of one owner. Anything can be in them.
class Positions {
 public:
  // Of owner number `o`. `positions` must outlive it. Throws Error kInvalidArgument, which names
  // the owner, unless positions ascend and belong to features that the owner knows.
  Positions(const Exchange& exchange, size_t o, const int32_t* positions, size_t count);

  const int32_t* all() const { return positions_; }

  // Where the positions of a feature begin; of the number of features: how many there are.
  size_t first(size_t f) const { return firsts_[f]; }

  // The same for the floats of the owner's part.
  size_t first_float(size_t f) const { return first_floats_[f]; }
  size_t floats() const { return first_floats_.back(); }

  // The place of the first position from `position` on among those of a feature.
  size_t lower_bound(size_t f, size_t position) const;

 private:
  const int32_t* positions_;
  std::vector<size_t> firsts_, first_floats_;  // By feature, and the end.
};

// Adds the parts of each sample in the order of owners, and multiplies the sum by its scale.
// `parts` has Positions::floats() floats for each owner. `out` gets [samples, width] floats for
// each feature: exact zeros where no owner has a part.
void merge(const Exchange& exchange, const std::vector<Positions>& positions,
           const std::vector<const float*>& parts, const float* scales, Pool& pool,
           const std::vector<float*>& out);

// The reverse for gradients, [samples, width] floats for each feature: each owner gets those of its
// positions, times their scales.
void spread(const Exchange& exchange, const std::vector<Positions>& positions,
            const std::vector<const float*>& gradients, const float* scales, Pool& pool,
            const std::vector<float*>& parts);

}  // namespace ete

#endif  // ETE_PARTS_H_
