// The operations of an engine that owns the rows of one host, for cores of other processes:
// EteGroupMessage, then EteLookupParts, EteCountParts and EteUpdateParts. See message.h.
#include <algorithm>
#include <string>
#include <vector>

#include "message.h"
#include "ops_inputs.h"

namespace ete {
namespace {

class GroupMessageKernel {
 public:
  explicit GroupMessageKernel(const Attributes& attributes)
      : weighted_(attributes.numbers("weighted")) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Layout& layout = engine->layouts().with(weighted_);
    const Tensor words = vector_input(context, 1, kTfInt32, "message");
    const std::shared_ptr<Scratch>& scratch = engine->pool().scratch();
    const Message message(layout, words.data<int32_t>(), words.elements(), *scratch);
    const size_t bound = group_bound(layout, message.features());
    const Tensor grouped =
        context.allocate_again(0, kTfInt32, {static_cast<int64_t>(bound)}, scratch);
    group(layout, message.features(), engine->pool(),
          reinterpret_cast<uint32_t*>(grouped.data<int32_t>()), bound);
    engine->prefetch(words_of(grouped), bound);
    const int64_t features = static_cast<int64_t>(layout.features.size());
    const Tensor lengths = context.allocate(1, kTfInt32, {features});
    std::copy_n(message.lengths(), features, lengths.data<int32_t>());
  }

 private:
  const std::vector<int64_t> weighted_;
};

// How many samples each feature of a message has; anything can be in it.
class LengthsInput {
 public:
  LengthsInput(const Context& context, int i, const Layout& layout)
      : tensor_(vector_input(context, i, kTfInt32, "lengths")),
        floats_(floats_of_parts(layout, data(), tensor_.elements())) {}

  const int32_t* data() const { return tensor_.data<int32_t>(); }
  size_t floats() const { return floats_; }  // Of all features together.

 private:
  Tensor tensor_;
  size_t floats_;
};

// Where the samples of each feature begin in a part.
template <typename Float>
std::vector<Float*> places_of(const Layout& layout, const int32_t* lengths, Float* part) {
  std::vector<Float*> places;
  for (size_t f = 0; f < layout.features.size(); ++f) {
    places.push_back(part);
    part += static_cast<size_t>(lengths[f]) *
            static_cast<size_t>(
                layout.tables[static_cast<size_t>(layout.features[f].table)].width);
  }
  return places;
}

class LookupPartsKernel {
 public:
  explicit LookupPartsKernel(const Attributes&) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Tensor grouped = grouped_input(context, 1);
    const LengthsInput lengths(context, 2, engine->layout());
    const Tensor sums =
        context.allocate_again(0, kTfFloat, {static_cast<int64_t>(lengths.floats())},
                               engine->pool().scratch());
    engine->lookup(words_of(grouped), grouped.elements(),
                   places_of(engine->layout(), lengths.data(), sums.data<float>()),
                   lengths.data());
  }
};

// The grouped batches, lengths and gradients of all cores; keeps their tensors.
class PartInputs {
 public:
  PartInputs(const Context& context, const Layout& layout, int cores) {
    for (int core = 0; core < cores; ++core) {
      tensors_.push_back(grouped_input(context, 1 + core));
      const Tensor& grouped = tensors_.back();
      CoreGradients own{words_of(grouped), grouped.elements(), nullptr, nullptr};
      lengths_.emplace_back(context, 1 + cores + core, layout);
      const LengthsInput& lengths = lengths_.back();
      own.lengths = lengths.data();
      tensors_.push_back(vector_input(context, 1 + 2 * cores + core, kTfFloat, "parts"));
      require_count("Input parts of core " + std::to_string(core) + ", floats", lengths.floats(),
                    tensors_.back().elements());
      places_.push_back(
          places_of<const float>(layout, own.lengths, tensors_.back().data<float>()));
      own.gradient_of_feature = places_.back().data();
      cores_.push_back(own);
    }
  }

  const std::vector<CoreGradients>& cores() const { return cores_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<LengthsInput> lengths_;
  std::vector<std::vector<const float*>> places_;
  std::vector<CoreGradients> cores_;
};

class CountPartsKernel {
 public:
  explicit CountPartsKernel(const Attributes& attributes)
      : cores_(static_cast<int>(attributes.number("C"))) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const PartInputs inputs(context, engine->layout(), cores_);
    const int64_t tables = static_cast<int64_t>(engine->layout().tables.size());
    const Tensor nonfinite = context.allocate(0, kTfInt32, {tables});
    engine->count(inputs.cores(), nonfinite.data<int32_t>());
  }

 private:
  const int cores_;
};

class UpdatePartsKernel {
 public:
  explicit UpdatePartsKernel(const Attributes& attributes)
      : cores_(static_cast<int>(attributes.number("C"))) {}

  void compute(Context& context) {
    const std::shared_ptr<Engine> engine = context.engine(0);
    const Layout& layout = engine->layout();
    const PartInputs inputs(context, layout, cores_);
    const Tensor rates = rates_input(context, 1 + 3 * cores_, layout);
    const Tensor counted = vector_input(context, 2 + 3 * cores_, kTfInt32, "counted");
    const int64_t tables = static_cast<int64_t>(layout.tables.size());
    const Tensor nonfinite = context.allocate(0, kTfInt32, {tables});
    if (counted.elements() == 0) {
      engine->update(inputs.cores(), rates.data<float>(), nonfinite.data<int32_t>());
      return;
    }
    std::fill_n(nonfinite.data<int32_t>(), tables, 0);
    const int32_t* counts = counted.data<int32_t>();
    if (std::all_of(counts, counts + counted.elements(), [](int32_t one) { return one == 0; })) {
      engine->update(inputs.cores(), rates.data<float>(), nullptr);
    }
  }

 private:
  const int cores_;
};

}  // namespace

// The `handles` of variables are not read; see ops_step.cc.
//
// `counted` of EteUpdateParts is what EteCountParts of all owners gave, for the same gradients, so
// that all owners refuse alike: a number other than 0 lets the update change nothing. The update
// then counts nothing itself and gives zeros. If `counted` is empty, it does as EteUpdate.
std::vector<Operation> parts_operations() {
  return {
      operation<GroupMessageKernel>("EteGroupMessage", {"engine: int64", "message: int32"},
                                    {"grouped: int32", "lengths: int32"},
                                    {"weighted: list(int) = []"}, unknown_shapes),
      operation<LookupPartsKernel>(
          "EteLookupParts",
          {"engine: int64", "grouped: int32", "lengths: int32", "handles: H * resource"},
          {"sums: float"}, {"H: int >= 0"}, unknown_shapes),
      operation<CountPartsKernel>(
          "EteCountParts",
          {"engine: int64", "grouped: C * int32", "lengths: C * int32", "parts: C * float"},
          {"nonfinite: int32"}, {"C: int >= 1"}, unknown_shapes),
      operation<UpdatePartsKernel>(
          "EteUpdateParts",
          {"engine: int64", "grouped: C * int32", "lengths: C * int32", "parts: C * float",
           "rates: float", "counted: int32", "handles: H * resource"},
          {"nonfinite: int32"}, {"C: int >= 1", "H: int >= 0"}, unknown_shapes)};
}

}  // namespace ete
