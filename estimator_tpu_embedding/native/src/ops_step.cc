// The operations of every step: EteGroup in the infeed, then EteLookup and EteUpdate. EteUngroup
// unpacks ids for statistics.
#include <string>
#include <vector>

#include "id_packing.h"
#include "ops_inputs.h"

namespace ete {
namespace {

class GroupKernel {
 public:
  explicit GroupKernel(const Attributes& attributes)
      : counts_(attributes), weighted_(attributes.numbers("weighted")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Layout& layout = engine->layouts().with(weighted_);
    counts_.check(layout);
    const IdInputs ids(context, 1, layout);
    const size_t words = group_bound(layout, ids.features());
    const Tensor grouped = context.allocate_again(0, kTfInt32, {static_cast<int64_t>(words)},
                                                  engine->pool().scratch());
    group(layout, ids.features(), engine->pool(),
          reinterpret_cast<uint32_t*>(grouped.data<int32_t>()), words);
    engine->prefetch(words_of(grouped), words);
  }

 private:
  const IdCounts counts_;
  const std::vector<int64_t> weighted_;
};

class UngroupKernel {
 public:
  explicit UngroupKernel(const Attributes& attributes) : counts_(attributes) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Tensor grouped = grouped_input(context, 1);
    const Layout& layout = engine->layouts().of(words_of(grouped), grouped.elements());
    counts_.check(layout);
    const int features = static_cast<int>(layout.features.size());
    int next_weights = 2 * features;
    for (int i = 0; i < features; ++i) {
      const size_t count = ungrouped_count(layout, words_of(grouped), grouped.elements(), i);
      const std::vector<int64_t> shape{static_cast<int64_t>(count)};
      const Tensor samples = context.allocate(i, kTfInt32, shape);
      const Tensor ids = context.allocate(features + i, kTfInt64, shape);
      UngroupedIds to{samples.data<int32_t>(), ids.data<int64_t>(), nullptr, count};
      std::vector<Tensor> weights;  // One, if any.
      float nothing = 0;
      if (layout.features[static_cast<size_t>(i)].weighted) {
        weights.push_back(context.allocate(next_weights++, kTfFloat, shape));
        to.weights = count ? weights.back().data<float>() : &nothing;
      }
      ungroup(layout, words_of(grouped), grouped.elements(), i, to);
    }
  }

 private:
  const IdCounts counts_;
};

class LookupKernel {
 public:
  explicit LookupKernel(const Attributes&) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Layout& layout = engine->layout();
    const Tensor grouped = grouped_input(context, 1);
    require_count("Outputs activations", layout.features.size(),
                  static_cast<size_t>(context.outputs()));
    std::vector<std::vector<int64_t>> shapes;
    for (const FeatureLayout& feature : layout.features) {
      shapes.push_back({feature.samples, layout.tables[static_cast<size_t>(feature.table)].width});
    }
    const std::vector<Tensor> tensors = context.allocate_floats(shapes, engine->pool().scratch());
    std::vector<float*> activations;
    for (const Tensor& tensor : tensors) activations.push_back(tensor.data<float>());
    engine->lookup(words_of(grouped), grouped.elements(), activations);
  }
};

// The grouped batches and gradients of all cores; keeps their tensors.
class CoreInputs {
 public:
  CoreInputs(const Context& context, const Layout& layout, int cores) {
    const size_t features = layout.features.size();
    pointers_.reserve(static_cast<size_t>(cores) * features);
    for (int core = 0; core < cores; ++core) {
      tensors_.push_back(grouped_input(context, 1 + core));
      const Tensor& grouped = tensors_.back();
      const float* const* gradients = pointers_.data() + pointers_.size();
      const CoreGradients of_core{words_of(grouped), grouped.elements(), gradients};
      for (size_t i = 0; i < features; ++i) {
        const size_t number = static_cast<size_t>(core) * features + i;
        add_gradient(context, 1 + cores + static_cast<int>(number), layout, i);
      }
      cores_.push_back(of_core);
    }
  }

  const std::vector<CoreGradients>& cores() const { return cores_; }

 private:
  void add_gradient(const Context& context, int i, const Layout& layout, size_t number) {
    const FeatureLayout& feature = layout.features[number];
    const int width = layout.tables[static_cast<size_t>(feature.table)].width;
    tensors_.push_back(context.input(i, kTfFloat, "gradients"));
    const size_t expected = static_cast<size_t>(feature.samples) * static_cast<size_t>(width);
    if (tensors_.back().elements() != expected) {
      throw Error(Code::kInvalidArgument,
                  "Feature \"" + feature.name + "\": its gradient must have " +
                      std::to_string(feature.samples) + " rows of " + std::to_string(width) +
                      " numbers, not the shape " + shape_text(tensors_.back().shape()) + ".");
    }
    pointers_.push_back(tensors_.back().data<float>());
  }

  std::vector<Tensor> tensors_;
  std::vector<const float*> pointers_;  // Of all cores; never grows beyond what was reserved.
  std::vector<CoreGradients> cores_;
};

class UpdateKernel {
 public:
  explicit UpdateKernel(const Attributes& attributes)
      : cores_(static_cast<int>(attributes.number("C"))),
        handles_(static_cast<int>(attributes.number("H"))) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Layout& layout = engine->layout();
    const size_t tables = layout.tables.size();
    const int last = context.inputs() - 1 - handles_;
    require_count("Inputs grouped, gradients and rates",
                  static_cast<size_t>(cores_) * (1 + layout.features.size()) + 1,
                  static_cast<size_t>(last));
    const CoreInputs inputs(context, layout, cores_);
    const Tensor rates = rates_input(context, last, layout);
    const Tensor nonfinite = context.allocate(0, kTfInt32, {static_cast<int64_t>(tables)});
    engine->update(inputs.cores(), rates.data<float>(), nonfinite.data<int32_t>());
  }

 private:
  const int cores_, handles_;
};

}  // namespace

// The `handles` of variables are not read: a tf.function keeps the order of operations that have
// one in common.
std::vector<Operation> step_operations() {
  return {
      operation<GroupKernel>(
          "EteGroup",
          {"engine: int64", "samples: F * int32", "ids: F * int64", "weights: W * float"},
          {"grouped: int32"}, {"F: int >= 1", "W: int >= 0", "weighted: list(int) = []"},
          unknown_shapes),
      operation<UngroupKernel>(
          "EteUngroup", {"engine: int64", "grouped: int32"},
          {"samples: F * int32", "ids: F * int64", "weights: W * float"},
          {"F: int >= 1", "W: int >= 0"}, unknown_shapes),
      operation<LookupKernel>(
          "EteLookup", {"engine: int64", "grouped: int32", "handles: H * resource"},
          {"activations: F * float"}, {"F: int >= 1", "H: int >= 0"}, unknown_shapes),
      operation<UpdateKernel>(
          "EteUpdate",
          {"engine: int64", "grouped: C * int32", "gradients: G * float", "rates: float",
           "handles: H * resource"},
          {"nonfinite: int32"}, {"C: int >= 1", "G: int >= 1", "H: int >= 0"}, unknown_shapes)};
}

}  // namespace ete
