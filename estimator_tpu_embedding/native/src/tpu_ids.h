// The ids of one feature as the operations of a TPU take them, made those of a grouped batch.
#ifndef ETE_TPU_IDS_H_
#define ETE_TPU_IDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "id_packing.h"
#include "ops_common.h"

namespace ete {

// What says of which sample an id is.
enum class Where {
  kIndices,   // [ids, 2] or, of a feature with two extents or more, as many columns as extents; or
              // [ids], of samples.
  kSplits,    // [samples + 1], as the rows of a RaggedTensor.
  kArbitrary  // [ids, extents + 1], of which the last column is ignored; or kSplits. Nothing says
              // that the k-th id is of sample k.
};

class TpuIds {
 public:
  // `where` and `ids` are int32 or int64, `weights` float or double, and empty for none. `shape` is
  // that of the samples. The shares of a sample replace its weights; so `combiner`, which is sum,
  // mean or sqrtn, is done with. Throws Error kInvalidArgument, which names `feature`.
  TpuIds(const std::string& feature, const std::vector<int64_t>& shape, Where form,
         const Tensor& where, const Tensor& ids, const Tensor& weights,
         const std::string& combiner);

  bool weighted() const { return weighted_; }
  FeatureIds ids() const;

 private:
  [[noreturn]] void refuse(const std::string& rule, const std::string& got) const;
  void by_index(const std::vector<int64_t>& shape, size_t columns, size_t used,
                const std::vector<int64_t>& where);
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
