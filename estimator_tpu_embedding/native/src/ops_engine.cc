// EteEngine: makes the engine of a session, and gives its handle.
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
  numbers.num_hosts = attributes.number("num_hosts");
  numbers.strategy = attributes.number("strategy");
  numbers.feature_tables = attributes.numbers("feature_tables");
  numbers.feature_samples = attributes.numbers("feature_samples");
  numbers.feature_weighted = attributes.numbers("feature_weighted");
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

// TensorFlow keeps one kernel of a stateful node per session and deletes it with the session; so
// the engine lives as long as the session does.
class EngineKernel {
 public:
  explicit EngineKernel(const Attributes& attributes)
      : layout_(Layout::make(numbers_of(attributes))),
        threads_(static_cast<int>(bounded(attributes, "threads", kMostThreads))),  // 0: all cores.
        patience_(patience_of(attributes)) {}

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
    if (!handle_) handle_ = registry::put(std::make_shared<Engine>(layout_, threads_, patience_));
    return *handle_;
  }

  const Layout layout_;
  const int threads_;
  const Patience patience_;
  std::mutex mutex_;
  std::optional<int64_t> handle_;
};

}  // namespace

std::vector<Operation> engine_operations() {
  return {operation<EngineKernel>(
      "EteEngine", {}, {"engine: int64"},
      {"table_names: list(string)", "feature_names: list(string)", "table_rows: list(int)",
       "table_widths: list(int)", "table_combiners: list(int)", "table_rules: list(int)",
       "table_options: list(float)", "slot_counts: list(int)", "num_hosts: int", "strategy: int",
       "feature_tables: list(int)", "feature_samples: list(int)", "feature_weighted: list(int)",
       "threads: int = 0", "patience_ms: int = 120000"},
      scalar_shape)};
}

}  // namespace ete
