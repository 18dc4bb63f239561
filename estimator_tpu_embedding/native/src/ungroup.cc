#include <algorithm>
#include <string>

#include "error.h"
#include "grouped.h"
#include "id_packing.h"

namespace ete {

namespace {

// A feature whose occurrences are inside the arrays.
FeatureGroup checked_feature(const Layout& layout, const uint32_t* words, size_t count,
                             int number) {
  if (number < 0 || static_cast<size_t>(number) >= layout.features.size()) {
    throw Error(Code::kInvalidArgument,
                "There is no feature number " + std::to_string(number) + ".");
  }
  const int table = layout.features[static_cast<size_t>(number)].table;
  const FeatureGroup found(layout, read_group(layout, words, count, table), number);
  const uint32_t* end = found.starts + found.feature->samples;
  if (*end > found.group.n || !std::is_sorted(found.starts, end + 1)) {
    refuse_group(*found.table, "samples without an end");
  }
  return found;
}

size_t count_of(const FeatureGroup& feature) {
  return feature.starts[feature.feature->samples] - feature.starts[0];
}

}  // namespace

size_t ungrouped_count(const Layout& layout, const uint32_t* words, size_t count, int feature) {
  return count_of(checked_feature(layout, words, count, feature));
}

void ungroup(const Layout& layout, const uint32_t* words, size_t count, int feature,
             const UngroupedIds& to) {
  const FeatureGroup from = checked_feature(layout, words, count, feature);
  const size_t found = count_of(from);
  if (found != to.count) {
    throw Error(Code::kInternal, "Feature \"" + from.feature->name + "\" has " +
                                     std::to_string(found) + " ids, not " +
                                     std::to_string(to.count) + ".");
  }
  const uint32_t first = from.starts[0];
  for (int64_t sample = 0; sample < from.feature->samples; ++sample) {
    std::fill(to.samples + (from.starts[sample] - first),
              to.samples + (from.starts[sample + 1] - first), static_cast<int32_t>(sample));
  }
  for (size_t i = 0; i < found; ++i) {
    to.ids[i] = layout.id_of(*from.table, from.group.rows[first + i]);
  }
  if (to.weights) std::copy_n(from.group.shares + first, found, to.weights);
}

}  // namespace ete
