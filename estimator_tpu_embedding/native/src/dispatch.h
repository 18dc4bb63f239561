// Chooses the instruction set of the kernels: the best that this processor has.
#ifndef ETE_DISPATCH_H_
#define ETE_DISPATCH_H_

#include "kernels.h"

namespace ete {

enum class Isa { kBaseline, kAvx2, kAvx512 };

// Asks the processor once per process. Safe to call from any thread.
const Kernels& kernels();

// For tests: what `kernels` gives from now on. False, and nothing is changed, if this processor
// or this build does not have it.
bool force_isa(Isa isa);

}  // namespace ete

#endif  // ETE_DISPATCH_H_
