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
  kSplits,    // [samples + 1], as the rows of a RaggedTensor.
  kArbitrary  // [ids, extents + 1], of which the last column is ignored; or kSplits; or [0]: the
              // k-th id is of sample k.
};

struct TpuIdsInput {
  std::vector<int64_t> where, where_shape, ids;
  std::vector<float> weights;  // Empty for none.
};

class TpuIds {
 public:
  // `shape` is that of the samples. The shares of a sample replace its weights, so nothing is left
  // to do for `combiner`, which is sum, mean or sqrtn. Throws Error kInvalidArgument, which names
  // `feature`.
  TpuIds(const std::string& feature, const std::vector<int64_t>& shape, Where form,
         TpuIdsInput input, const std::string& combiner);

  bool weighted() const { return weighted_; }
  FeatureIds ids() const;

 private:
  [[noreturn]] void refuse(const std::string& rule, const std::string& got) const;
  void by_number(int64_t samples);
  void by_index(const std::vector<int64_t>& shape, Where form, const TpuIdsInput& input);
  void by_split(int64_t samples, const std::vector<int64_t>& where);
  void share_out(int combiner);

  const std::string feature_;
  bool weighted_ = false;
  std::vector<int32_t> samples_;
  std::vector<int64_t> ids_;
  std::vector<float> weights_;
};

}  // namespace ete

#endif  // ETE_TPU_IDS_H_
