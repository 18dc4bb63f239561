#include "summed.h"

#include <algorithm>
#include <vector>

#include "dispatch.h"

namespace ete {
namespace {

// So many rows are summed before they are used. Their gradients stay in the first cache, and the
// memory of the next rows has time to arrive.
constexpr size_t kRowsAtOnce = 32;

SumJob job_of(const GradientsOfTable& gradients, const Contributions& all,
              const TableState* state) {
  SumJob job{};
  job.sources = all.sources();
  job.factors = all.factors();
  job.first = all.size() > 0 ? all.starts()[0] : 0;
  job.width = gradients.table->width;
  if (state != nullptr) {
    job.tables_ahead[job.num_tables_ahead++] = state->rows;
    for (const float* slot : state->slots) job.tables_ahead[job.num_tables_ahead++] = slot;
  }
  return job;
}

}  // namespace

void for_summed(const GradientsOfTable& gradients, const RowRange& range, const TableState* state,
                const std::function<void(const SummedRows&)>& use) {
  const Contributions all(gradients, range);
  SumJob job = job_of(gradients, all, state);
  std::vector<float> sums(std::min(kRowsAtOnce, all.size()) * static_cast<size_t>(job.width));
  job.out = sums.data();
  for (size_t at = 0; at < all.size(); at += kRowsAtOnce) {
    const size_t next = std::min(at + kRowsAtOnce, all.size());
    job.starts = all.starts() + at;
    job.outputs = next - at;
    job.rows_ahead = all.rows() + next;
    job.num_rows_ahead = all.size() - next;
    kernels().sum(job);
    use({all.rows() + at, sums.data(), job.outputs});
  }
}

}  // namespace ete
