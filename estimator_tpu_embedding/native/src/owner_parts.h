// Adds the parts that owners sent for the groups of a core, and takes gradients apart for them.
#ifndef ETE_OWNER_PARTS_H_
#define ETE_OWNER_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange.h"
#include "pool.h"

namespace ete {

// The links of one owner; see exchange.h. Anything can be in them.
class Links {
 public:
  // Of owner number `o`. `words` must outlive it. Throws Error kInvalidArgument, which names the
  // owner, unless positions ascend and all belongs to features that the owner knows.
  Links(const Exchange& exchange, size_t o, const int32_t* words, size_t count);

  // By link; weights are null if the exchange has none.
  const int32_t* groups() const { return groups_; }
  const int32_t* positions() const { return positions_; }
  const float* weights() const { return weights_; }

  // Where the links of a feature begin; of the number of features: how many there are.
  size_t first(size_t f) const { return firsts_[f]; }

  // The same for groups, and for the floats of the owner's part.
  size_t first_group(size_t f) const { return first_groups_[f]; }
  size_t first_float(size_t f) const { return first_floats_[f]; }
  size_t floats() const { return first_floats_.back(); }

  // Whether each group of a feature has one link, in order.
  bool one_each(size_t f) const { return one_each_[f]; }

  // The place of the first link from `position` on among those of a feature.
  size_t lower_bound(size_t f, size_t position) const;

 private:
  void add_feature(const Exchange& exchange, size_t o, size_t f, int32_t groups, size_t end);

  const int32_t *groups_, *positions_;
  const float* weights_;
  std::vector<size_t> firsts_{0}, first_groups_{0}, first_floats_{0};  // By feature, and the end.
  std::vector<bool> one_each_;
};

// Adds the parts of each sample in the order of owners and then of links, times the weights of
// links, and multiplies the sum by its scale. `parts` has Links::floats() floats for each owner.
// `out` gets [samples, width] floats for each feature: exact zeros where no owner has a part.
void merge(const Exchange& exchange, const std::vector<Links>& links,
           const std::vector<const float*>& parts, const float* scales, Pool& pool,
           const std::vector<float*>& out);

// The reverse for gradients, [samples, width] floats for each feature: each owner gets for each
// group the sum over its links in their order, of the gradient times its scale times the weight.
void spread(const Exchange& exchange, const std::vector<Links>& links,
            const std::vector<const float*>& gradients, const float* scales, Pool& pool,
            const std::vector<float*>& parts);

}  // namespace ete

#endif  // ETE_OWNER_PARTS_H_
