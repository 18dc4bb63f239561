#include "dispatch.h"

#include <atomic>
#include <initializer_list>

namespace ete {

extern const Kernels kernels_baseline;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

namespace {

// Null if this processor or this build does not have it.
const Kernels* kernels_of(Isa isa) {
  if (isa == Isa::kBaseline) return &kernels_baseline;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (isa == Isa::kAvx2) return __builtin_cpu_supports("avx2") ? &kernels_avx2 : nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) {
    return &kernels_avx512;
  }
#endif
  return nullptr;
}

const Kernels* best() {
  for (Isa isa : {Isa::kAvx512, Isa::kAvx2}) {
    if (const Kernels* found = kernels_of(isa)) return found;
  }
  return &kernels_baseline;
}

std::atomic<const Kernels*>& chosen() {
  static std::atomic<const Kernels*> kernels{best()};
  return kernels;
}

}  // namespace

const Kernels& kernels() { return *chosen().load(std::memory_order_relaxed); }

bool force_isa(Isa isa) {
  const Kernels* found = kernels_of(isa);
  if (found != nullptr) chosen().store(found, std::memory_order_relaxed);
  return found != nullptr;
}

}  // namespace ete
