// Inputs that several operations have: ids by feature, vectors, grouped batches.
#ifndef ETE_OPS_INPUTS_H_
#define ETE_OPS_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "id_packing.h"
#include "ops_common.h"

namespace ete {

// Throws Error kInvalidArgument, which names `what`, if the two differ.
void require_count(const std::string& what, size_t expected, size_t got);

// How many features, and weighted ones, a node has inputs or outputs for. TensorFlow checks no
// type of an output that is allocated, so their sum is not enough.
class IdCounts {
 public:
  // Reads the attributes F and W.
  explicit IdCounts(const Attributes& attributes);

  void check(const Layout& layout) const;

 private:
  const int64_t features_, weighted_;
};

// Input number i, which must be a vector.
Tensor vector_input(const Context& context, int i, int type, const char* name);

// A grouped batch; anything can be in it.
Tensor grouped_input(const Context& context, int i);
const uint32_t* words_of(const Tensor& grouped);

// The ids of all features: the samples of each, then the ids of each, then the weights of each
// weighted one. Keeps their tensors.
class IdInputs {
 public:
  // `first` is the number of the first of these inputs.
  IdInputs(const Context& context, int first, const Layout& layout);

  const std::vector<FeatureIds>& features() const { return features_; }

 private:
  size_t add(const Context& context, int i, int type, const char* name,
             const FeatureLayout& feature, const size_t* expected);

  const float nothing_ = 0;
  std::vector<Tensor> tensors_;
  std::vector<FeatureIds> features_;
};

// The rates of an update: input number i, a number for each table.
Tensor rates_input(const Context& context, int i, const Layout& layout);

}  // namespace ete

#endif  // ETE_OPS_INPUTS_H_
