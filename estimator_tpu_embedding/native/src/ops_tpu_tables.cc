// Kernels of the operations that configure a TPU's embedding engine and shut it down, and that load
// and retrieve its tables, by optimizer. TensorFlow defines the operations.
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "ops_common.h"
#include "tpu_system.h"

namespace ete {
namespace {

class ConfigureKernel {
 public:
  explicit ConfigureKernel(const Attributes& attributes)
      : config_(attributes.text(attributes.has("embedding_config") ? "embedding_config"
                                                                   : "config")) {}

  // The topology of ConfigureDistributedTPU, if it has that output, stays an empty text.
  void compute(Context& context) {
    if (context.outputs() != 0) context.allocate(0, kTfString, {});
    clear_tuples();
    if (config_.empty()) {
      TpuSystem::shut_down();
    } else {
      TpuSystem::configure(config_);
    }
  }

 private:
  const std::string config_;
};

class ShutdownKernel {
 public:
  explicit ShutdownKernel(const Attributes&) {}
  void compute(Context&) { TpuSystem::shut_down(); }
};

// The rows, and the slots, of a table on a host.
class ShardOfTable {
 public:
  ShardOfTable(const Attributes& attributes, size_t algorithm)
      : algorithm_(algorithm),
        table_(attributes.text("table_name")),
        config_(attributes.text("config")),
        hosts_(attributes.number("num_shards")),
        host_(attributes.number("shard_id")) {}

 protected:
  // Calls body(i, part) for the rows, and then for each slot, with the number of the part.
  template <typename Body>
  void each(TpuSystem& system, const Body& body) const {
    system.require_config(config_);
    const Engine& engine = system.engine();
    const int64_t first = system.part(table_, algorithm_, hosts_, host_);
    const TableLayout& table =
        engine.layout().tables[static_cast<size_t>(engine.part(first).table)];
    for (int i = 0; i <= table.slots; ++i) {
      body(i, first + i * static_cast<int64_t>(table.part_rows.size()));
    }
  }

  static std::vector<int64_t> shape_of(const Part& part) {
    return {static_cast<int64_t>(part.rows), part.width};
  }

  const size_t algorithm_;
  const std::string table_, config_;
  const int64_t hosts_, host_;
};

template <size_t Algorithm>
class LoadKernel : ShardOfTable {
 public:
  explicit LoadKernel(const Attributes& attributes) : ShardOfTable(attributes, Algorithm) {}

  void compute(Context& context) {
    const std::shared_ptr<TpuSystem> system = TpuSystem::current();
    Engine& engine = system->engine();
    std::vector<std::pair<int64_t, Values>> values;
    each(*system, [&](int i, int64_t number) {
      const auto value = std::make_shared<const Tensor>(context.input(i, kTfFloat, "parameters"));
      const std::vector<int64_t> expected = shape_of(engine.part(number));
      if (value->shape() != expected) {
        throw Error(Code::kInvalidArgument, "Table \"" + table_ + "\": input " +
                                                std::to_string(i) + " of shard " +
                                                std::to_string(host_) + " has the shape " +
                                                shape_text(expected) + ", not " +
                                                shape_text(value->shape()) + ".");
      }
      values.push_back({number, {value->data<float>(), value}});
    });
    for (auto& [number, its] : values) {
      engine.offer(number, std::move(its));
      engine.take(number);
    }
  }
};

template <size_t Algorithm>
class RetrieveKernel : ShardOfTable {
 public:
  explicit RetrieveKernel(const Attributes& attributes) : ShardOfTable(attributes, Algorithm) {}

  void compute(Context& context) {
    const std::shared_ptr<TpuSystem> system = TpuSystem::current();
    Engine& engine = system->engine();
    each(*system, [&](int i, int64_t number) {
      const Tensor value = context.allocate(i, kTfFloat, shape_of(engine.part(number)));
      engine.read(number, value.data<float>());
    });
  }
};

// The name of an operation of an optimizer; TensorFlow keeps no copy.
const char* name_of(const char* verb, size_t algorithm) {
  static auto* const names = new std::list<std::string>;
  names->push_back(std::string(verb) + "TPUEmbedding" + tpu_algorithm(algorithm).name +
                   "Parameters");
  return names->back().c_str();
}

template <size_t... Algorithms>
void add_shards(std::vector<Operation>* found, std::index_sequence<Algorithms...>) {
  (found->push_back(kernel_of<LoadKernel<Algorithms>>(name_of("Load", Algorithms))), ...);
  (found->push_back(kernel_of<RetrieveKernel<Algorithms>>(name_of("Retrieve", Algorithms))), ...);
}

}  // namespace

std::vector<Operation> tpu_table_operations() {
  std::vector<Operation> found{
      kernel_of<ConfigureKernel>("ConfigureDistributedTPU"),
      kernel_of<ConfigureKernel>("ConfigureTPUEmbedding"),
      kernel_of<ShutdownKernel>("ShutdownDistributedTPU")};
  add_shards(&found, std::make_index_sequence<kTpuAlgorithms>());
  return found;
}

}  // namespace ete
