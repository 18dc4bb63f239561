#include "limits.h"

#include <algorithm>

#include "error.h"

namespace ete {

namespace {

[[noreturn]] void refuse(const Limits& limits, const char* what, size_t place,
                         const std::string& rule, int64_t got) {
  throw Error(Code::kInvalidArgument,
              "Feature \"" + limits.feature + "\" of table \"" + limits.table + "\": " + what +
                  " number " + std::to_string(place) + " must be " + rule + ", got " +
                  std::to_string(got) + ".");
}

[[noreturn]] void refuse_samples(const Limits& limits, const int32_t* samples, size_t first,
                                 size_t last) {
  int64_t least = first ? std::max(samples[first - 1], 0) : 0;
  size_t i = first;
  while (i + 1 < last && samples[i] >= least && samples[i] < limits.samples) {
    least = samples[i++];
  }
  refuse(limits, "sample", i,
         "from " + std::to_string(least) + " to " + std::to_string(limits.samples - 1),
         samples[i]);
}

}  // namespace

void check_samples(const Limits& limits, const FeatureIds& ids, size_t first, size_t last) {
  if (first == last) return;
  const int32_t* samples = ids.samples;
  int descends = samples[first ? first - 1 : 0] < 0;
  for (size_t i = std::max<size_t>(first, 1); i < last; ++i) {
    descends |= samples[i] < samples[i - 1];
  }
  if (descends || samples[last - 1] >= limits.samples) {
    refuse_samples(limits, samples, first, last);
  }
}

void refuse_ids(const Limits& limits, const FeatureIds& ids, size_t first, size_t last) {
  size_t i = first;
  while (i + 1 < last && ids.ids[i] >= 0 && ids.ids[i] < limits.vocabulary) ++i;
  refuse(limits, "id", i, "from 0 to " + std::to_string(limits.vocabulary - 1), ids.ids[i]);
}

}  // namespace ete
