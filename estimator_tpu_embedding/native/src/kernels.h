// The inner loops, as a table of functions: one table for each instruction set.
//
// The loops trust their arguments: the code that fills a job has checked every index. All tables
// give the same bits. Objects of different instruction sets include this header, so it has plain
// data only; see lanes.h.
#ifndef ETE_KERNELS_H_
#define ETE_KERNELS_H_

#include <stddef.h>
#include <stdint.h>

#include "options.h"

namespace ete {

constexpr int kMaxSlots = 3;
constexpr int kRules = 13;

// How many slots a rule needs, by its number, which is its place in native/plan_attributes.py.
constexpr int kSlotsOfRule[kRules] = {0, 1, 2, 1, 2, 2, 1, 2, 2, 1, 2, 3, 1};

// How many further entries `SumJob::sources` must have after its last one. They point to any
// floats, which are prefetched and not read.
constexpr size_t kSourcesAhead = 48;

// out[o] = scales[o] * sum over i in [starts[o] - first, starts[o + 1] - first) of
// factors[i] * sources[i], where each source and each output is `width` floats; 0 for an empty sum.
struct SumJob {
  const float* const* sources;
  const float* factors;    // Null for factors of 1.
  const uint32_t* starts;  // [outputs + 1]
  uint32_t first;          // Is subtracted from all starts.
  const float* scales;     // Null for scales of 1.
  size_t outputs;
  int width;
  float* out;

  // Physical rows that will be changed soon, at most one per output. They are prefetched from each
  // of these tables in the meantime.
  const uint32_t* rows_ahead;
  size_t num_rows_ahead;
  const float* tables_ahead[1 + kMaxSlots];
  int num_tables_ahead;
};

// Applies a rule with its options to `count` rows in order; a row may come twice.
struct ApplyJob {
  const float* options;   // [kOptions], of the table.
  float rate;
  float* rows;
  float* slots[kMaxSlots];
  const uint32_t* which;   // [count] physical rows; null for the row 0 (then `count` is 1).
  const float* gradients;  // [count, width]; null for zeros.
  size_t count;
  size_t width;
};

// Clips numbers to two bounds, and then rounds each to the nearest `lowest + k * step`; of two that
// are equally near, to the larger one. out[i] comes from sources[i]; each is `width` floats.
struct RoundJob {
  const float* const* sources;
  size_t count;
  size_t width;
  float lowest, highest;
  float step;  // 0 for `lowest` alone.
  float* out;
};

struct Kernels {
  void (*sum)(const SumJob& job);
  void (*apply[kRules])(const ApplyJob& job);
  // The largest bit pattern of the magnitudes, which orders as the magnitudes do, infinity and
  // NaN above all others.
  uint32_t (*largest)(const float* values, size_t count);
  void (*round)(const RoundJob& job);
};

}  // namespace ete

#endif  // ETE_KERNELS_H_
