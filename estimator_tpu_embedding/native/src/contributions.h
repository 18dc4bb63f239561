// Brings the occurrences of the rows of one table, from the batches of all cores, into one order.
//
// If a table accumulates gradients, the occurrences of a row come in the order (feature, core,
// sample). So sums are formed alike for any number of cores and threads. If it does not, the
// occurrences come core by core, and within a core in the order (feature, sample). The first of n
// cores is the one on which the row resides, id % n by both strategies, of ids of the whole table.
// The next cores ascend from there, and core 0 follows core n - 1.
#ifndef ETE_CONTRIBUTIONS_H_
#define ETE_CONTRIBUTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "grouped.h"
#include "layout_variants.h"
#include "row_order.h"
#include "row_ranges.h"
#include "update.h"

namespace ete {

// One feature of a table on one core.
struct FeatureGradient {
  const float* values;  // [samples, width]
  uint64_t samples;
  const float* scales;  // [samples], or null for factors of 1 or of each occurrence.
};

struct CoreOfTable {
  TableGroup group;
  std::vector<FeatureGradient> features;  // In the order of TableLayout::features.
};

struct GradientsOfTable {
  const Layout* layout;      // The engine's own; the others number and place alike.
  const TableLayout* table;  // Of that.
  std::vector<CoreOfTable> cores;
  bool has_factors;  // Whether any core has scales or shares; then others have factors of 1.

  // Throws Error kInvalidArgument for words that are no grouped batch.
  GradientsOfTable(const Layouts& layouts, const std::vector<CoreGradients>& from, int number);

  uint64_t occurrences() const;
};

// The rows of one range to update, and where the gradient of each comes from.
class Contributions {
 public:
  // Collects the gradients of a range from all cores. Rows ascend. If the table accumulates, they
  // are distinct; otherwise there is one entry for each core that has the row. Throws Error
  // kInvalidArgument if anything in the groups contradicts grouped.h. The results may point into
  // the groups.
  Contributions(const GradientsOfTable& gradients, const RowRange& range);

  size_t size() const { return size_; }
  const uint32_t* rows() const { return rows_; }  // [size]

  // For SumJob, which then has one output per entry.
  const uint32_t* starts() const { return starts_; }
  const float* const* sources() const { return sources_.get(); }
  const float* factors() const { return factors_.get(); }

 private:
  void reserve(const RowRange& range);
  void check_runs(const CoreOfTable& core, uint32_t from, uint32_t end, const RowRange& range);
  void take_as_it_is(const RowRange& range);
  void merge_runs(const RowRange& range);
  void merge_features(const RowRange& range);
  std::vector<size_t> first_of_features(const RowRange& range) const;
  void give_each_core_an_entry(const RowRange& range, RowOrder* runs) const;
  void unfold(const std::vector<uint32_t>& firsts, RowOrder* runs) const;
  void append(const CoreOfTable& core, uint32_t at, uint32_t end);
  void append_of_one_feature(const CoreOfTable& core, uint32_t at, uint32_t end);
  void arrange(const uint32_t* numbers);
  void use(RowOrder merged);
  [[noreturn]] void refuse(const char* what) const;

  const GradientsOfTable& gradients_;
  const size_t width_;
  size_t size_ = 0, filled_ = 0;  // Entries; sources.
  const uint32_t* rows_ = nullptr;
  const uint32_t* starts_ = nullptr;
  RowOrder merged_;
  // No vectors, which would first write zeros.
  std::unique_ptr<const float*[]> sources_;
  std::unique_ptr<float[]> factors_;  // Null for factors of 1.
};

}  // namespace ete

#endif  // ETE_CONTRIBUTIONS_H_
