// The optimizers of a TPU, and how a table is trained by its OptimizationParameters.
#ifndef ETE_TPU_OPTIMIZER_H_
#define ETE_TPU_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "error.h"
#include "layout.h"
#include "wire.h"

namespace ete {

// How an option of a rule comes from a field of the optimizer's message.
enum class Use { kAsIs, kOneMinus, kNegative, kInverse, kSquare };

struct OptionSource {
  uint64_t field;
  Use use = Use::kAsIs;
};

struct TpuAlgorithm {
  const char* name;  // A part of the names of its operations.
  uint64_t field;    // Of its message in OptimizationParameters.
  int rule, slots;
  std::vector<OptionSource> options;  // As native/plan_attributes.py orders them.
  uint64_t all_rows = 0;              // The field that says whether all rows are updated.
};

constexpr size_t kTpuAlgorithms = 10;

// `number` < kTpuAlgorithms.
const TpuAlgorithm& tpu_algorithm(size_t number);

struct TpuTable {
  size_t algorithm = kTpuAlgorithms;  // None.
  float rate = -1;                    // None.
  int64_t rate_tag = -1;  // Of the rates that come with the gradients; < 0: `rate` is constant.
  float options[kOptions] = {};
  Grid grid;

  // Reads the parameters of a table, which `where` names. Numbers must be finite, and otherwise may
  // be any. Throws Error kInvalidArgument for what is no such message, and kUnimplemented for an
  // optimizer that is none of kTpuAlgorithms.
  static TpuTable read(const std::string& where, Bytes parameters);
};

// Throws an Error about a part of the config.
[[noreturn]] void refuse_config(const std::string& where, const std::string& rule,
                                const std::string& got, Code code = Code::kInvalidArgument);

// Returns the number. Throws Error kInvalidArgument unless it is in [least, most].
int64_t bounded(const std::string& where, const char* what, int64_t least, int64_t number,
                int64_t most);

}  // namespace ete

#endif  // ETE_TPU_OPTIMIZER_H_
