// The ids of one feature as the operations of a TPU take them, made those of a grouped batch.
#ifndef ETE_TPU_IDS_H_
#define ETE_TPU_IDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "id_packing.h"

namespace ete {

// What says of which sample an id is.
enum class Where {
  kIndices,   // [ids, extents]; a feature of one extent also [ids], or [ids, 2] whose last column
              // is ignored.
  kSplits,    // [first extent + 1], as the rows of a RaggedTensor.
  kArbitrary  // [ids, extents + 1], of which the last column is ignored; or kSplits; or [0]: the
              // k-th id is of sample k.
};

struct TpuIdsInput {
  std::vector<int64_t> where, where_shape, ids;
  std::vector<float> weights;  // Empty for none.
};

class TpuIds {
 public:
  // `shape` is that of the activations. Ids beyond its second extent are left out: sequences are
  // cut. The shares of a sample replace its weights, so nothing is left to do for `combiner`, which
  // is sum, mean or sqrtn. Throws Error kInvalidArgument, which names `feature`.
  TpuIds(const std::string& feature, const std::vector<int64_t>& shape, Where form,
         TpuIdsInput input, const std::string& combiner);

  FeatureIds ids() const {
    static const float nothing = 0;  // Null would mean that there are no weights.
    return {samples_.data(), ids_.data(), weights_.empty() ? &nothing : weights_.data(),
            ids_.size()};
  }

 private:
  [[noreturn]] void refuse(const std::string& rule, const std::string& got) const;
  void by_number(int64_t samples);
  void by_index(Where form, const TpuIdsInput& input);
  void by_split(const std::vector<int64_t>& where);
  void place(size_t i, const int64_t* index);
  void order();
  void share_out(int combiner);

  const std::string feature_;
  const std::vector<int64_t> shape_;  // Of the samples.
  std::vector<int32_t> samples_;      // Of each id, or kCut.
  std::vector<int64_t> ids_;
  std::vector<float> weights_;
};

}  // namespace ete

#endif  // ETE_TPU_IDS_H_
