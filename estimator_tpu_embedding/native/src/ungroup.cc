#include <algorithm>
#include <string>

#include "error.h"
#include "grouped.h"
#include "ids.h"

namespace ete {

namespace {

[[noreturn]] void refuse(const FeatureLayout& feature) {
  throw Error(Code::kInvalidArgument, "This is not a grouped batch of this engine: feature \"" +
                                          feature.name + "\" has samples without an end.");
}

// What there is of one feature: its starts, and how many ids they speak of.
struct FeatureGroup {
  FeatureGroup(const Layout& layout, const uint32_t* words, size_t words_count, int number)
      : feature(layout.features[static_cast<size_t>(number)]),
        table(layout.tables[static_cast<size_t>(feature.table)]),
        group(read_group(layout, words, words_count, feature.table)),
        starts(group.starts + starts_before(layout, table, feature.place_in_table)) {
    const uint32_t* end = starts + feature.samples;
    if (*end > group.n || !std::is_sorted(starts, end + 1)) refuse(feature);
    count = *end - *starts;
  }

  const FeatureLayout& feature;
  const TableLayout& table;
  const TableGroup group;
  const uint32_t* starts;
  size_t count;
};

void require_feature(const Layout& layout, int feature) {
  if (feature < 0 || static_cast<size_t>(feature) >= layout.features.size()) {
    throw Error(Code::kInvalidArgument,
                "There is no feature number " + std::to_string(feature) + ".");
  }
}

}  // namespace

size_t ungrouped_count(const Layout& layout, const uint32_t* words, size_t count, int feature) {
  require_feature(layout, feature);
  return FeatureGroup(layout, words, count, feature).count;
}

void ungroup(const Layout& layout, const uint32_t* words, size_t count, int feature,
             const UngroupedIds& to) {
  require_feature(layout, feature);
  const FeatureGroup from(layout, words, count, feature);
  if (from.count != to.count) {
    throw Error(Code::kInternal, "Feature \"" + from.feature.name + "\" has " +
                                     std::to_string(from.count) + " ids, not " +
                                     std::to_string(to.count) + ".");
  }
  const uint32_t first = from.starts[0];
  for (int64_t sample = 0; sample < from.feature.samples; ++sample) {
    std::fill(to.samples + (from.starts[sample] - first),
              to.samples + (from.starts[sample + 1] - first), static_cast<int32_t>(sample));
  }
  for (size_t i = 0; i < from.count; ++i) {
    to.ids[i] = layout.id_of(from.table, from.group.rows[first + i]);
  }
  if (to.weights) std::copy_n(from.group.shares + first, from.count, to.weights);
}

}  // namespace ete
