#include "ops_inputs.h"

namespace ete {

void require_count(const std::string& what, size_t expected, size_t got) {
  if (expected != got) {
    throw Error(Code::kInvalidArgument, what + ": the engine expects " + std::to_string(expected) +
                                            ", not " + std::to_string(got) + ".");
  }
}

IdCounts::IdCounts(const Attributes& attributes)
    : features_(attributes.number("F")), weighted_(attributes.number("W")) {}

void IdCounts::check(const Layout& layout) const {
  size_t weighted = 0;
  for (const FeatureLayout& feature : layout.features) weighted += feature.weighted;
  require_count("Attribute F, the number of features", layout.features.size(),
                static_cast<size_t>(features_));
  require_count("Attribute W, the number of weighted features", weighted,
                static_cast<size_t>(weighted_));
}

Tensor vector_input(const Context& context, int i, int type, const char* name) {
  Tensor vector = context.input(i, type, name);
  if (TF_NumDims(vector.get()) != 1) {
    throw Error(Code::kInvalidArgument, std::string("Input ") + name +
                                            " must be a vector, not of shape " +
                                            shape_text(vector.shape()) + ".");
  }
  return vector;
}

Tensor grouped_input(const Context& context, int i) {
  return vector_input(context, i, kTfInt32, "grouped");
}

const uint32_t* words_of(const Tensor& grouped) {
  return reinterpret_cast<const uint32_t*>(grouped.data<int32_t>());
}

IdInputs::IdInputs(const Context& context, int first, const Layout& layout) {
  const int features = static_cast<int>(layout.features.size());
  int next_weights = first + 2 * features;
  for (int i = 0; i < features; ++i) {
    const FeatureLayout& feature = layout.features[static_cast<size_t>(i)];
    FeatureIds found{};
    found.count = add(context, first + features + i, kTfInt64, "ids", feature, nullptr);
    found.ids = tensors_.back().data<int64_t>();
    add(context, first + i, kTfInt32, "samples", feature, &found.count);
    found.samples = tensors_.back().data<int32_t>();
    if (feature.weighted) {
      add(context, next_weights++, kTfFloat, "weights", feature, &found.count);
      found.weights = tensors_.back().data<float>();
      // Null would mean that there are none; without ids nothing is read from it.
      if (found.weights == nullptr) found.weights = &nothing_;
    }
    features_.push_back(found);
  }
}

size_t IdInputs::add(const Context& context, int i, int type, const char* name,
                     const FeatureLayout& feature, const size_t* expected) {
  tensors_.push_back(context.input(i, type, name));
  const size_t count = tensors_.back().elements();
  if (TF_NumDims(tensors_.back().get()) != 1 || (expected && count != *expected)) {
    throw Error(Code::kInvalidArgument,
                "Feature \"" + feature.name + "\": its " + name + " must be a vector" +
                    (expected ? " of " + std::to_string(*expected) + " elements, as its ids are"
                              : std::string()) +
                    ", not of shape " + shape_text(tensors_.back().shape()) + ".");
  }
  return count;
}

Tensor rates_input(const Context& context, int i, const Layout& layout) {
  Tensor rates = context.input(i, kTfFloat, "rates");
  require_count("Input rates, one per table", layout.tables.size(), rates.elements());
  return rates;
}

}  // namespace ete
