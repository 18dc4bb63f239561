// How much each id counts in its sample: the arithmetic of combiners.
#ifndef ETE_SHARES_H_
#define ETE_SHARES_H_

#include <cmath>

#include "layout.h"

namespace ete {

// What the weight of an id adds to the sum that `norm_of` takes.
inline float norm_part(int combiner, float weight) {
  return combiner == kSqrtn ? weight * weight : weight;
}

// The divisor of a sample's weights, made from their sum or, for kSqrtn, the sum of their squares.
inline float norm_of(int combiner, float sum) {
  return combiner == kSqrtn ? std::sqrt(sum) : sum;
}

// A weight over its norm; 0 where that is 0.
inline float share_of(float weight, float norm) { return norm == 0.0f ? 0.0f : weight / norm; }

}  // namespace ete

#endif  // ETE_SHARES_H_
