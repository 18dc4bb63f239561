// Reads a TPUEmbeddingConfiguration, as the operations of a TPU's embedding engine are given it.
#ifndef ETE_TPU_CONFIG_H_
#define ETE_TPU_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layout.h"

namespace ete {

// How an option of a rule comes from a field of the optimizer's message.
enum class Use { kAsIs, kOneMinus, kNegative, kInverse, kSquare };

struct OptionSource {
  uint64_t field;
  Use use = Use::kAsIs;
};

// An optimizer of a TPU.
struct TpuAlgorithm {
  const char* name;  // A part of the names of its operations.
  uint64_t field;    // Of its message in OptimizationParameters.
  int rule, slots;
  std::vector<OptionSource> options;  // As native/plan_attributes.py orders them.
  uint64_t all_rows = 0;              // The field that says whether all rows are updated.
};

constexpr size_t kTpuAlgorithms = 10;

const TpuAlgorithm& tpu_algorithm(size_t number);

// A table as the operations that load and train it see it.
struct TpuTable {
  size_t algorithm;
  float rate;
  int64_t rate_tag = -1;  // Of the rates that come with the gradients; < 0: `rate` is constant.
};

struct TpuConfig {
  LayoutNumbers numbers;  // Each table has the combiner kSum, and no feature has weights.
  std::vector<TpuTable> tables;
  std::vector<std::vector<int64_t>> shapes;  // By feature: of its samples on a core.
  int64_t cores;                             // Of all hosts.
  bool trains;

  // Throws Error kInvalidArgument, which names the part, for what is no such message or has sizes
  // beyond those of core/limits.py, and kUnimplemented for what these kernels do not compute.
  static TpuConfig read(const std::string& bytes);
};

}  // namespace ete

#endif  // ETE_TPU_CONFIG_H_
