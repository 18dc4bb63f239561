// The operations of a core of the model that uses the rows of several owners: EteSplit makes
// messages of its ids, EteMerge adds what the owners send, and EteSpread takes gradients apart for
// them.
#include <string>
#include <vector>

#include "exchange.h"
#include "ops_inputs.h"
#include "owner_parts.h"
#include "split.h"

namespace ete {
namespace {

// The attributes of the whole plan, in the order of the exchange. What they lack matters to engines
// only.
Exchange exchange_of(const Attributes& attributes) {
  LayoutNumbers numbers;
  numbers.table_names = attributes.strings("table_names");
  numbers.table_rows = attributes.numbers("table_rows");
  numbers.table_widths = attributes.numbers("table_widths");
  numbers.table_combiners = attributes.numbers("table_combiners");
  numbers.feature_names = attributes.strings("feature_names");
  numbers.feature_tables = attributes.numbers("feature_tables");
  numbers.feature_samples = attributes.numbers("feature_samples");
  numbers.feature_weighted = attributes.numbers("feature_weighted");
  numbers.num_hosts = attributes.number("num_hosts");
  numbers.strategy = attributes.number("strategy");
  const size_t tables = numbers.table_names.size();
  numbers.table_rules.assign(tables, kNoRule);
  numbers.table_options.assign(tables * kOptions, 0.0f);
  numbers.slot_counts.assign(tables, 0);
  return Exchange(Layout::make(numbers));
}

// An exchange whose node has inputs or outputs for all owners and all features.
class Declared {
 public:
  explicit Declared(const Attributes& attributes) : exchange_(exchange_of(attributes)) {
    require_count("Attribute H, the number of owners", exchange_.owners(),
                  static_cast<size_t>(attributes.number("H")));
    require_count("Attribute F, the number of features", exchange_.features(),
                  static_cast<size_t>(attributes.number("F")));
  }

  const Exchange* operator->() const { return &exchange_; }
  const Exchange& operator*() const { return exchange_; }
  int owners() const { return static_cast<int>(exchange_.owners()); }
  int features() const { return static_cast<int>(exchange_.features()); }

 private:
  const Exchange exchange_;
};

class SplitKernel {
 public:
  explicit SplitKernel(const Attributes& attributes) : exchange_(attributes) {
    IdCounts(attributes).check(exchange_->layout());
  }

  void compute(Context& context) {
    const std::shared_ptr<Scratch>& scratch = shared_pool().scratch();
    const IdInputs ids(context, 0, exchange_->layout());
    const Split split(*exchange_, ids.features(), shared_pool());
    std::vector<Tensor> tensors;
    std::vector<int32_t*> messages, links;
    for (int o = 0; o < exchange_.owners(); ++o) {
      const size_t owner = static_cast<size_t>(o);
      tensors.push_back(context.allocate_again(
          o, kTfInt32, {static_cast<int64_t>(split.message_words(owner))}, scratch));
      messages.push_back(tensors.back().data<int32_t>());
      tensors.push_back(context.allocate_again(
          exchange_.owners() + o, kTfInt32, {static_cast<int64_t>(split.link_words(owner))},
          scratch));
      links.push_back(tensors.back().data<int32_t>());
    }
    const int64_t scales = static_cast<int64_t>(exchange_->first_scale(exchange_->features()));
    tensors.push_back(
        context.allocate_again(2 * exchange_.owners(), kTfFloat, {scales}, scratch));
    split.write(messages, links, tensors.back().data<float>());
  }

 private:
  const Declared exchange_;
};

// The links of all owners, and the scales of all samples; keeps their tensors.
class LinkInputs {
 public:
  // `first` is the number of the first of these inputs.
  LinkInputs(const Context& context, int first, const Exchange& exchange) {
    for (size_t o = 0; o < exchange.owners(); ++o) {
      tensors_.push_back(vector_input(context, first++, kTfInt32, "links"));
      links_.emplace_back(exchange, o, tensors_.back().data<int32_t>(),
                              tensors_.back().elements());
    }
    tensors_.push_back(vector_input(context, first, kTfFloat, "scales"));
    require_count("Input scales", exchange.first_scale(exchange.features()),
                  tensors_.back().elements());
  }

  const std::vector<Links>& of_owners() const { return links_; }
  const float* scales() const { return tensors_.back().data<float>(); }

 private:
  std::vector<Tensor> tensors_;
  std::vector<Links> links_;
};

class MergeKernel {
 public:
  explicit MergeKernel(const Attributes& attributes) : exchange_(attributes) {}

  void compute(Context& context) {
    const LinkInputs links(context, exchange_.owners(), *exchange_);
    std::vector<Tensor> tensors;
    std::vector<const float*> sums;
    for (int o = 0; o < exchange_.owners(); ++o) {
      tensors.push_back(vector_input(context, o, kTfFloat, "sums"));
      require_count("Input sums of owner " + std::to_string(o) + ", floats",
                    links.of_owners()[static_cast<size_t>(o)].floats(),
                    tensors.back().elements());
      sums.push_back(tensors.back().data<float>());
    }
    std::vector<float*> activations;
    for (int f = 0; f < exchange_.features(); ++f) {
      const size_t feature = static_cast<size_t>(f);
      tensors.push_back(context.allocate_again(
          f, kTfFloat,
          {exchange_->layout().features[feature].samples, exchange_->table_of(feature).width},
          shared_pool().scratch()));
      activations.push_back(tensors.back().data<float>());
    }
    merge(*exchange_, links.of_owners(), sums, links.scales(), shared_pool(),
          activations);
  }

 private:
  const Declared exchange_;
};

class SpreadKernel {
 public:
  explicit SpreadKernel(const Attributes& attributes) : exchange_(attributes) {}

  void compute(Context& context) {
    const LinkInputs links(context, exchange_.features(), *exchange_);
    std::vector<Tensor> tensors;
    std::vector<const float*> gradients;
    for (int f = 0; f < exchange_.features(); ++f) {
      const size_t feature = static_cast<size_t>(f);
      const FeatureLayout& own = exchange_->layout().features[feature];
      tensors.push_back(context.input(f, kTfFloat, "gradients"));
      require_count("Gradient of feature \"" + own.name + "\", floats",
                    static_cast<size_t>(own.samples) * exchange_->width_of(feature),
                    tensors.back().elements());
      gradients.push_back(tensors.back().data<float>());
    }
    std::vector<float*> parts;
    for (int o = 0; o < exchange_.owners(); ++o) {
      const size_t floats = links.of_owners()[static_cast<size_t>(o)].floats();
      tensors.push_back(context.allocate_again(o, kTfFloat, {static_cast<int64_t>(floats)},
                                               shared_pool().scratch()));
      parts.push_back(tensors.back().data<float>());
    }
    spread(*exchange_, links.of_owners(), gradients, links.scales(), shared_pool(),
           parts);
  }

 private:
  const Declared exchange_;
};

}  // namespace

std::vector<Operation> exchange_operations() {
  const std::vector<const char*> declared{
      "H: int >= 1", "F: int >= 1", "table_names: list(string)", "table_rows: list(int)",
      "table_widths: list(int)", "table_combiners: list(int)", "feature_names: list(string)",
      "feature_tables: list(int)", "feature_samples: list(int)", "feature_weighted: list(int)",
      "num_hosts: int", "strategy: int"};
  std::vector<const char*> with_weights = declared;
  with_weights.push_back("W: int >= 0");
  return {
      operation<SplitKernel>("EteSplit",
                             {"samples: F * int32", "ids: F * int64", "weights: W * float"},
                             {"messages: H * int32", "links: H * int32", "scales: float"},
                             with_weights, unknown_shapes),
      operation<MergeKernel>("EteMerge",
                             {"sums: H * float", "links: H * int32", "scales: float"},
                             {"activations: F * float"}, declared, unknown_shapes),
      operation<SpreadKernel>("EteSpread",
                              {"gradients: F * float", "links: H * int32", "scales: float"},
                              {"parts: H * float"}, declared, unknown_shapes)};
}

}  // namespace ete
