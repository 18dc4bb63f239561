// The operations that make an engine and give its handle, EteEngine and EteOpen, and EteClose,
// which ends an engine of EteOpen.
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "ops_common.h"

namespace ete {
namespace {

LayoutNumbers numbers_of(const Attributes& attributes) {
  LayoutNumbers numbers;
  numbers.table_names = attributes.strings("table_names");
  numbers.feature_names = attributes.strings("feature_names");
  numbers.table_rows = attributes.numbers("table_rows");
  numbers.table_widths = attributes.numbers("table_widths");
  numbers.table_combiners = attributes.numbers("table_combiners");
  numbers.table_rules = attributes.numbers("table_rules");
  numbers.table_options = attributes.floats("table_options");
  numbers.slot_counts = attributes.numbers("slot_counts");
  numbers.table_grids = attributes.floats("table_grids");
  numbers.num_hosts = attributes.number("num_hosts");
  numbers.strategy = attributes.number("strategy");
  numbers.feature_tables = attributes.numbers("feature_tables");
  numbers.feature_samples = attributes.numbers("feature_samples");
  numbers.feature_weighted = attributes.numbers("feature_weighted");
  numbers.table_ids = attributes.numbers("table_ids");
  return numbers;
}

// An attribute in [0, most].
int64_t bounded(const Attributes& attributes, const char* name, int64_t most) {
  const int64_t number = attributes.number(name);
  if (number < 0 || number > most) {
    throw Error(Code::kInvalidArgument, std::string("The attribute ") + name +
                                            " must be from 0 to " + std::to_string(most) +
                                            ", not " + std::to_string(number) + ".");
  }
  return number;
}

Patience patience_of(const Attributes& attributes) {
  Patience patience;
  patience.for_views =
      std::chrono::milliseconds(bounded(attributes, "patience_ms", kLongestPatience));
  return patience;
}

TableMemory memory_of(const Attributes& attributes) {
  return {attributes.text("table_directory"),
          static_cast<size_t>(bounded(attributes, "resident", INT64_MAX))};
}

// The attributes of a node for its engines. Bad ones are refused when the kernel is made.
class Declaration {
 public:
  explicit Declaration(const Attributes& attributes)
      : layout_(Layout::make(numbers_of(attributes))),
        threads_(static_cast<int>(bounded(attributes, "threads", kMostThreads))),  // 0: all cores.
        patience_(patience_of(attributes)),
        memory_(memory_of(attributes)) {}

  // The handle of a new engine, which is registered.
  int64_t open() const {
    return registry::put(std::make_shared<Engine>(layout_, threads_, patience_, memory_));
  }

 private:
  const Layout layout_;
  const int threads_;
  const Patience patience_;
  const TableMemory memory_;
};

// TensorFlow keeps one kernel of a stateful node per session and deletes it with the session; so
// the engine lives as long as the session does.
class EngineKernel {
 public:
  explicit EngineKernel(const Attributes& attributes) : declaration_(attributes) {}

  ~EngineKernel() {
    if (handle_) registry::remove(*handle_);
  }

  void compute(Context& context) {
    *context.allocate(0, kTfInt64, {}).data<int64_t>() = handle();
  }

 private:
  // Made when it is first asked for: a kernel that is never run needs no threads and no memory.
  int64_t handle() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!handle_) handle_ = declaration_.open();
    return *handle_;
  }

  const Declaration declaration_;
  std::mutex mutex_;
  std::optional<int64_t> handle_;
};

// In eager mode TensorFlow shares kernels between equal nodes, and drops all of them when a seed is
// set. So an engine does not live as long as its kernel: the caller of EteOpen must close it.
class OpenKernel {
 public:
  explicit OpenKernel(const Attributes& attributes) : declaration_(attributes) {}

  void compute(Context& context) {
    const Tensor handle = context.allocate(0, kTfInt64, {});  // An engine without one is lost.
    *handle.data<int64_t>() = declaration_.open();
  }

 private:
  const Declaration declaration_;
};

class CloseKernel {
 public:
  explicit CloseKernel(const Attributes&) {}

  void compute(Context& context) { registry::remove(context.handle(0)); }
};

}  // namespace

std::vector<Operation> engine_operations() {
  const std::vector<const char*> declared{
      "table_names: list(string)", "feature_names: list(string)", "table_rows: list(int)",
      "table_widths: list(int)", "table_combiners: list(int)", "table_rules: list(int)",
      "table_options: list(float)", "slot_counts: list(int)", "num_hosts: int", "strategy: int",
      "feature_tables: list(int)", "feature_samples: list(int)", "feature_weighted: list(int)",
      "table_grids: list(float) = []", "table_ids: list(int) = []",
      "threads: int = 0", "patience_ms: int = 120000", "table_directory: string = ''",
      "resident: int = 0"};
  return {operation<EngineKernel>("EteEngine", {}, {"engine: int64"}, declared, scalar_shape),
          operation<OpenKernel>("EteOpen", {}, {"engine: int64"}, declared, scalar_shape),
          operation<CloseKernel>("EteClose", {"engine: int64"}, {}, {}, no_shapes)};
}

}  // namespace ete
