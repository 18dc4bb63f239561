// Reads a TPUEmbeddingConfiguration, as the operations of a TPU's embedding engine are given it.
#ifndef ETE_TPU_CONFIG_H_
#define ETE_TPU_CONFIG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "layout.h"
#include "tpu_optimizer.h"

namespace ete {

struct TpuConfig {
  LayoutNumbers numbers;  // Each table has the combiner kSum, and each feature has weights.
  std::vector<TpuTable> tables;
  std::vector<std::vector<int64_t>> shapes;  // By feature: of its activations on a core.
  int64_t cores;                             // Of all hosts.
  bool trains;

  // Throws Error kInvalidArgument, which names the part, for what is no such message or has sizes
  // beyond those of core/limits.py (fewer hosts and cores), and kUnimplemented for what these
  // kernels do not compute.
  static TpuConfig read(const std::string& bytes);
};

}  // namespace ete

#endif  // ETE_TPU_CONFIG_H_
