// The limits of the samples and ids of a feature, and the refusal of what is beyond.
#ifndef ETE_LIMITS_H_
#define ETE_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "id_packing.h"

namespace ete {

struct Limits {
  const std::string& feature;  // The names are for messages.
  const std::string& table;
  int64_t samples;
  int64_t vocabulary;
};

// Throws Error kInvalidArgument, which names the place and the value, unless the samples of
// ids [first, last) ascend, also from the id before, and are in [0, samples).
void check_samples(const Limits& limits, const FeatureIds& ids, size_t first, size_t last);

// Finds ids outside of [0, vocabulary). A comparison would not be vectorized.
class OutsideFinder {
 public:
  explicit OutsideFinder(int64_t vocabulary) : last_id_(static_cast<uint64_t>(vocabulary - 1)) {}

  // An id outside sets the sign of one of both.
  void add(uint64_t id) { seen_ |= id | (last_id_ - id); }

  bool found() const { return seen_ >> 63; }

 private:
  uint64_t last_id_, seen_ = 0;
};

// Throws Error kInvalidArgument, which names the first of ids [first, last) that is outside of
// [0, vocabulary). There must be one.
[[noreturn]] void refuse_ids(const Limits& limits, const FeatureIds& ids, size_t first,
                             size_t last);

}  // namespace ete

#endif  // ETE_LIMITS_H_
