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
#include "layouts.h"
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

// Rows [first_row, end_row) of a table, and which of the distinct rows of each core these are.
struct RowRange {
  size_t table;
  uint32_t first_row, end_row;
  std::vector<uint32_t> from, end;  // By core: indices into TableGroup::distinct.
  uint64_t work;                    // About how many floats are read.
};

// Cuts the rows of a table into ranges of about `work` each, and appends them to `ranges`. A row
// is never cut, so a row with very many occurrences makes a long range. With `all_rows` the ranges
// hold every row of the table. Nothing in the groups is trusted.
void cut(const GradientsOfTable& gradients, size_t table, bool all_rows, uint64_t work,
         std::vector<RowRange>* ranges);

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
  struct Run {
    const CoreOfTable* core;
    uint32_t at, end;
  };

  void reserve(const RowRange& range);
  void check_runs(const CoreOfTable& core, uint32_t from, uint32_t end, const RowRange& range);
  void take_as_it_is(const RowRange& range);
  void merge(const RowRange& range);
  void append_by_feature(std::vector<Run>* runs);
  void append_by_core(uint32_t row, std::vector<Run>* runs);
  void append(const CoreOfTable& core, uint32_t at, uint32_t end);
  void append_of_one_feature(const CoreOfTable& core, uint32_t at, uint32_t end);
  void close_entry(uint32_t row);
  [[noreturn]] void refuse(const char* what) const;

  const GradientsOfTable& gradients_;
  const size_t width_;
  size_t size_ = 0, filled_ = 0;  // Entries; sources.
  const uint32_t* rows_ = nullptr;
  const uint32_t* starts_ = nullptr;
  std::vector<uint32_t> merged_rows_, merged_starts_;
  // No vectors, which would first write zeros.
  std::unique_ptr<const float*[]> sources_;
  std::unique_ptr<float[]> factors_;  // Null for factors of 1.
};

}  // namespace ete

#endif  // ETE_CONTRIBUTIONS_H_
