// Packs the ids of one core and step as a grouped batch (see grouped.h), and unpacks them.
#ifndef ETE_IDS_H_
#define ETE_IDS_H_

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

// How many words `group` may need for these counts; it reads nothing but them. `features` has one
// entry per feature in plan order. Throws Error kInvalidArgument if it has not, kResourceExhausted
// if that is more than 32 bits can count.
size_t group_bound(const Layout& layout, const std::vector<FeatureIds>& features);

// Writes the grouped batch of `features` to out[0 .. words), where `words` is at least
// `group_bound`. What it writes does not depend on the number of threads; words between sections
// and behind the last one are left as they are.
//
// Throws Error kInvalidArgument, which names the feature, the place and the value, for samples
// or ids that are not as FeatureIds says; what is in `out` then means nothing.
void group(const Layout& layout, const std::vector<FeatureIds>& features, Pool& pool,
           uint32_t* out, size_t words);

// How many ids feature number `feature` has in a grouped batch. Throws Error kInvalidArgument for
// one that was not made by `group`.
size_t ungrouped_count(const Layout& layout, const uint32_t* words, size_t count, int feature);

// The ids of one feature from a grouped batch, as `group` was given them, each array
// `ungrouped_count` long (`ids` says how long they are). `weights`, null exactly if the feature
// is not weighted, are the shares: by the same combiner they give the same shares again.
// Throws Error kInvalidArgument as `ungrouped_count` does.
struct UngroupedIds {
  int32_t* samples;
  int64_t* ids;
  float* weights;
  size_t count;
};
void ungroup(const Layout& layout, const uint32_t* words, size_t count, int feature,
             const UngroupedIds& to);

}  // namespace ete

#endif  // ETE_IDS_H_
