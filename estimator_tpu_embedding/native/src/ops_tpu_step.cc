// Kernels of the operations of every step of a TPU's embedding engine: three to enqueue ids, one to
// receive activations, and one to send gradients. TensorFlow defines the operations.
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "ops_common.h"
#include "tpu_ids.h"
#include "tpu_system.h"

namespace ete {
namespace {

// The content of a scalar string.
std::string text_of(const Tensor& tensor) {
  static const auto data =
      reinterpret_cast<const char* (*)(const void*)>(symbol("TF_StringGetDataPointer"));
  static const auto size = reinterpret_cast<size_t (*)(const void*)>(symbol("TF_StringGetSize"));
  if (data == nullptr || size == nullptr || tensor.type() != kTfString || tensor.elements() != 1) {
    return "";
  }
  return std::string(data(tensor.data<char>()), size(tensor.data<char>()));
}

bool trains(const Tensor& mode_override, bool by_config) {
  const std::string mode = text_of(mode_override);
  if (mode == "unspecified") return by_config;
  if (mode == "train" || mode == "training") return true;  // Documents of TensorFlow have both.
  if (mode == "inference") return false;
  throw Error(Code::kUnimplemented, "Input mode_override must be unspecified, train or "
                                    "inference, not \"" + mode + "\".");
}

template <typename To, typename From>
std::vector<To> copied(const Tensor& tensor) {
  const From* data = tensor.data<From>();
  return std::vector<To>(data, data + tensor.elements());
}

std::vector<int64_t> integers(const Tensor& tensor) {
  return tensor.type() == kTfInt32 ? copied<int64_t, int32_t>(tensor)
                                   : copied<int64_t, int64_t>(tensor);
}

std::vector<float> reals(const Tensor& tensor) {
  return tensor.type() == kTfDouble ? copied<float, double>(tensor)
                                    : copied<float, float>(tensor);
}

Tensor vector_of_ids(const Context& context, int i) {
  Tensor ids = context.input(i);
  if (TF_NumDims(ids.get()) != 1) {
    throw Error(Code::kInvalidArgument,
                "Input embedding_indices must be vectors, not of shape " + shape_text(ids.shape()));
  }
  return ids;
}

// By feature the length of its sequences, or 0.
std::vector<int64_t> lengths_of(const TpuConfig& config) {
  std::vector<int64_t> lengths;
  for (const auto& shape : config.shapes) lengths.push_back(shape.size() == 3 ? shape[1] : 0);
  return lengths;
}

template <Where Form>
class EnqueueKernel {
 public:
  explicit EnqueueKernel(const Attributes& attributes)
      : core_(attributes.number("device_ordinal")), combiners_(attributes.strings("combiners")) {
    if (attributes.has("table_ids")) tables_ = attributes.numbers("table_ids");
    if (attributes.has("max_sequence_lengths")) {
      lengths_ = attributes.numbers("max_sequence_lengths");
    }
  }

  // Inputs are what says where ids are, by feature; then ids; then weights; then the mode.
  void compute(Context& context) {
    const std::shared_ptr<TpuSystem> system = TpuSystem::current();
    const TpuConfig& config = system->config();
    const size_t features = config.shapes.size();
    const int count = static_cast<int>(features);
    if (context.inputs() != 3 * count + 1 ||
        (!combiners_.empty() && combiners_.size() != features) ||
        (!tables_.empty() && tables_ != config.numbers.feature_tables) ||
        (!lengths_.empty() && lengths_ != lengths_of(config))) {
      throw Error(Code::kInvalidArgument,
                  "The ids must be those of the " + std::to_string(features) +
                      " features of the config, in its order, with their tables, lengths and "
                      "combiners.");
    }
    std::list<TpuIds> kept;
    std::vector<FeatureIds> ids;
    for (int f = 0; f < count; ++f) {
      const size_t number = static_cast<size_t>(f);
      const Tensor where = context.input(f), values = vector_of_ids(context, count + f);
      kept.emplace_back(config.numbers.feature_names[number], config.shapes[number], Form,
                        TpuIdsInput{integers(where), where.shape(),
                                    integers(values),
                                    reals(context.input(2 * count + f))},
                        combiners_.empty() ? "sum" : combiners_[number]);
      ids.push_back(kept.back().ids());
    }
    const bool training = trains(context.input(3 * count), config.trains);
    system->enqueue(core_, ids, training);
  }

 private:
  const int64_t core_;  // Among those of all hosts, as all of them are in this process.
  const std::vector<std::string> combiners_;
  std::vector<int64_t> tables_, lengths_;
};

// The core that receives and sends. In a replica of a TPU that is the core that executes it; here
// the attribute says it. One core needs none.
constexpr char kCore[] = "_ete_core";

class ForCore {
 public:
  explicit ForCore(const Attributes& attributes)
      : core_(attributes.has(kCore) ? attributes.number(kCore) : -1),
        config_(attributes.text("config")) {}

 protected:
  const int64_t core_;
  const std::string config_;
};

class ReceiveKernel : ForCore {
 public:
  using ForCore::ForCore;

  void compute(Context& context) {
    const std::shared_ptr<TpuSystem> system = TpuSystem::current();
    system->require_config(config_);
    const auto& shapes = system->config().shapes;
    if (static_cast<size_t>(context.outputs()) != shapes.size()) {
      throw Error(Code::kInvalidArgument, "Attribute num_outputs must be " +
                                              std::to_string(shapes.size()) + ", not " +
                                              std::to_string(context.outputs()) + ".");
    }
    const std::shared_ptr<const TpuSystem::Batch> batch = system->next(core_);
    const std::vector<Tensor> tensors =
        context.allocate_floats(shapes, system->engine().pool().scratch());
    std::vector<float*> activations;
    for (const Tensor& tensor : tensors) activations.push_back(tensor.data<float>());
    system->engine().lookup(batch->words.as<uint32_t>(), batch->count, activations);
  }
};

class SendKernel : ForCore {
 public:
  explicit SendKernel(const Attributes& attributes)
      : ForCore(attributes), rates_(attributes.number("NN")) {}

  void compute(Context& context) {
    const std::shared_ptr<TpuSystem> system = TpuSystem::current();
    system->require_config(config_);
    const TpuConfig& config = system->config();
    const int features = static_cast<int>(config.shapes.size());
    if (context.inputs() != features + rates_) {
      throw Error(Code::kInvalidArgument, "There must be a gradient for each of " +
                                              std::to_string(features) + " features.");
    }
    auto kept = std::make_shared<std::vector<Tensor>>();
    TpuSystem::Gradients gradients;
    for (int i = 0; i < features; ++i) {
      const size_t f = static_cast<size_t>(i);
      kept->push_back(context.input(i, kTfFloat, "inputs"));
      if (kept->back().shape() != config.shapes[f]) {
        throw Error(Code::kInvalidArgument, "Feature \"" + config.numbers.feature_names[f] +
                                                "\": its gradient must have the shape " +
                                                shape_text(config.shapes[f]) + ", not " +
                                                shape_text(kept->back().shape()) + ".");
      }
      gradients.of_feature.push_back(kept->back().data<float>());
    }
    gradients.owner = std::move(kept);
    for (int i = features; i < context.inputs(); ++i) {
      const Tensor rate = context.input(i, kTfFloat, "learning_rates");
      if (rate.elements() != 1) {
        throw Error(Code::kInvalidArgument, "Each of learning_rates must be a scalar, not " +
                                                shape_text(rate.shape()) + ".");
      }
      gradients.rates.push_back(*rate.data<float>());
    }
    system->send(core_, std::move(gradients));
  }

 private:
  const int64_t rates_;
};

}  // namespace

std::vector<Operation> tpu_step_operations() {
  return {kernel_of<EnqueueKernel<Where::kIndices>>("EnqueueTPUEmbeddingSparseTensorBatch"),
          kernel_of<EnqueueKernel<Where::kSplits>>("EnqueueTPUEmbeddingRaggedTensorBatch"),
          kernel_of<EnqueueKernel<Where::kArbitrary>>("EnqueueTPUEmbeddingArbitraryTensorBatch"),
          kernel_of<ReceiveKernel>("RecvTPUEmbeddingActivations"),
          kernel_of<SendKernel>("SendTPUEmbeddingGradients")};
}

}  // namespace ete
