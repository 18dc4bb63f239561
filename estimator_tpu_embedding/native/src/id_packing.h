// Packs the ids of one core and step as a grouped batch (see grouped.h), and unpacks them.
#ifndef ETE_ID_PACKING_H_
#define ETE_ID_PACKING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.h"
#include "pool.h"

namespace ete {

// The ids of one feature, untrusted: id number i belongs to sample samples[i].
struct FeatureIds {
  const int32_t* samples;  // Ascending, in [0, FeatureLayout::samples).
  const int64_t* ids;      // In [0, vocabulary).
  const float* weights;    // Null exactly if the feature is not weighted.
  size_t count;
};

// Returns how many words `group` may need. It reads only the counts of `features`, which has one
// entry per feature in plan order. Throws Error kInvalidArgument for another number of entries, and
// kResourceExhausted if 32 bits cannot count the words.
size_t group_bound(const Layout& layout, const std::vector<FeatureIds>& features);

// Writes the grouped batch of `features` to out[0 .. words), where `words` is at least
// `group_bound`. The result does not depend on the number of threads. Words between sections and
// behind the last one are left as they are.
//
// Throws Error kInvalidArgument, which names the feature, the place and the value, for samples or
// ids that contradict FeatureIds. The content of `out` then means nothing.
void group(const Layout& layout, const std::vector<FeatureIds>& features, Pool& pool,
           uint32_t* out, size_t words);

// Returns how many ids feature number `feature` has in a grouped batch. Throws Error
// kInvalidArgument for a batch that `group` did not make.
size_t ungrouped_count(const Layout& layout, const uint32_t* words, size_t count, int feature);

// Room for the ids of one feature, which `ungroup` writes as `group` was given them. Each array has
// `ungrouped_count` elements, which is also `count`. `weights` is null exactly if the feature is
// not weighted. It gets the shares: the same combiner makes the same shares of them again.
// `ungroup` throws Error kInvalidArgument as `ungrouped_count` does.
struct UngroupedIds {
  int32_t* samples;
  int64_t* ids;
  float* weights;
  size_t count;
};
void ungroup(const Layout& layout, const uint32_t* words, size_t count, int feature,
             const UngroupedIds& to);

}  // namespace ete

#endif  // ETE_ID_PACKING_H_
