#include "grouped.h"

#include <string>

#include "error.h"

namespace ete {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kInvalidArgument, "This is not a grouped batch of this engine: " + what + ".");
}

// Also that the table is one of the layout's.
void check_header(const Layout& layout, const uint32_t* words, size_t count, int table) {
  const size_t tables = layout.tables.size();
  if (table < 0 || static_cast<size_t>(table) >= tables) {
    refuse("there is no table number " + std::to_string(table));
  }
  if (count < kHeaderWords + tables) refuse("it has " + std::to_string(count) + " words");
  if (words[0] != kMagic) refuse("it does not begin as one");
  if (hash_of_group(words) != layout.hash || words[4] != tables) refuse("it was made for other tables or features");
  if (words[3] > count) {
    refuse("of " + std::to_string(words[3]) + " words there are " + std::to_string(count));
  }
}

bool has_scales(const TableLayout& table) {
  return !table.weighted && table.combiner != kSum;
}

}  // namespace

uint64_t hash_of_group(const uint32_t* words) {
  return words[1] | static_cast<uint64_t>(words[2]) << 32;
}

size_t scales_before(const Layout& layout, const TableLayout& table, int k) {
  size_t samples = 0;
  for (int before = 0; before < k; ++before) {
    const int feature = table.features[static_cast<size_t>(before)];
    samples += static_cast<size_t>(layout.features[static_cast<size_t>(feature)].samples);
  }
  return samples;
}

size_t starts_before(const Layout& layout, const TableLayout& table, int k) {
  return scales_before(layout, table, k) + static_cast<size_t>(k);  // One more each.
}

SectionExtents section_extents(const Layout& layout, const TableLayout& table, uint64_t n,
                               uint64_t u) {
  const int features = static_cast<int>(table.features.size());
  SectionExtents extents;
  extents.starts = 2;
  extents.rows = extents.starts + starts_before(layout, table, features);
  extents.shares = extents.rows + n;
  extents.scales = extents.shares + (table.weighted ? n : 0);
  extents.distinct =
      extents.scales + (has_scales(table) ? scales_before(layout, table, features) : 0);
  extents.run_starts = extents.distinct + u;
  extents.codes = extents.run_starts + u + 1;
  extents.sorted_shares = extents.codes + n;
  extents.end = extents.sorted_shares + (table.weighted ? n : 0);
  return extents;
}

TableGroup read_group(const Layout& layout, const uint32_t* words, size_t count, int table) {
  check_header(layout, words, count, table);
  const TableLayout& one = layout.tables[static_cast<size_t>(table)];
  const uint64_t used = words[3], first = words[kHeaderWords + static_cast<size_t>(table)];
  if (first < kHeaderWords + layout.tables.size() || first + 2 > used) {
    refuse("table \"" + one.name + "\" begins at word " + std::to_string(first));
  }
  const uint32_t* section = words + first;
  TableGroup group{};
  group.n = section[0];
  group.u = section[1];
  const SectionExtents at = section_extents(layout, one, group.n, group.u);
  if (group.u > group.n || first + at.end > used) {
    refuse("table \"" + one.name + "\" has " + std::to_string(group.n) + " ids of " +
           std::to_string(group.u) + " rows in " + std::to_string(used - first) + " words");
  }
  group.starts = section + at.starts;
  group.rows = section + at.rows;
  group.distinct = section + at.distinct;
  group.run_starts = section + at.run_starts;
  group.codes = section + at.codes;
  if (one.weighted) {
    group.shares = reinterpret_cast<const float*>(section + at.shares);
    group.sorted_shares = reinterpret_cast<const float*>(section + at.sorted_shares);
  }
  if (has_scales(one)) group.scales = reinterpret_cast<const float*>(section + at.scales);
  return group;
}

FeatureGroup::FeatureGroup(const Layout& layout, const TableGroup& group, int number)
    : feature(&layout.features[static_cast<size_t>(number)]),
      table(&layout.tables[static_cast<size_t>(feature->table)]),
      group(group),
      starts(group.starts + starts_before(layout, *table, feature->place_in_table)),
      scales(group.scales == nullptr
                 ? nullptr
                 : group.scales + scales_before(layout, *table, feature->place_in_table)) {}

void refuse_group(const TableLayout& table, const char* what) {
  throw Error(Code::kInvalidArgument,
              "Table \"" + table.name +
                  "\": the grouped batch was not made by EteGroup: it holds " + what + ".");
}

}  // namespace ete
