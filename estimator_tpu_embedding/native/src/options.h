// The place of each option among the floats of a table, which native/plan_attributes.py makes.
//
// Included by the kernels of each instruction set: plain data only; see lanes.h.
#ifndef ETE_OPTIONS_H_
#define ETE_OPTIONS_H_

namespace ete {

enum Option : int {
  kAccumulate,      // Whether a row is updated once, with all gradients; otherwise per core.
  kUpdatesAllRows,  // Also rows without a look-up, with a gradient of 0.
  kHasDecay,        // Weights decay,
  kDecay,           // by this factor,
  kDecayTimesRate,  // times the rate.
  kLowestWeight,    // Bounds, infinite for none.
  kHighestWeight,
  kLowestGradient,
  kHighestGradient,
  kOwnOptions  // From here on the rule's own, as its struct in rules.h reads them.
};

constexpr int kOptions = 24;  // Floats per table.

}  // namespace ete

#endif  // ETE_OPTIONS_H_
