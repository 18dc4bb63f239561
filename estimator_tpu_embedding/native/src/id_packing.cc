#include "id_packing.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "error.h"
#include "grouped.h"
#include "section.h"
#include "section_sort.h"

namespace ete {

namespace {

constexpr size_t kFewIds = 4096;    // Not worth waking a thread.
constexpr size_t kManyIds = 65536;  // Of one table, worth more than one.

// The most words a section may need. Sections begin that far apart, so that tables need not wait
// for each other.
size_t section_bound(const Layout& layout, const TableLayout& table,
                     const std::vector<FeatureIds>& features) {
  uint64_t n = 0;
  for (const int feature : table.features) n += features[static_cast<size_t>(feature)].count;
  return section_extents(layout, table, n, std::min<uint64_t>(n, table.physical_rows)).end;
}

void write_header(const Layout& layout, size_t used, const std::vector<size_t>& firsts,
                  uint32_t* out) {
  out[0] = kMagic;
  out[1] = static_cast<uint32_t>(layout.hash);
  out[2] = static_cast<uint32_t>(layout.hash >> 32);
  out[3] = static_cast<uint32_t>(used);
  out[4] = static_cast<uint32_t>(firsts.size());
  out[5] = 0;
  for (size_t t = 0; t < firsts.size(); ++t) {
    out[kHeaderWords + t] = static_cast<uint32_t>(firsts[t]);
  }
}

// All threads together sort a table with more than one thread's fair part of the ids. Each of the
// other tables is sorted by one thread, side by side, large tables first.
void fill(std::vector<std::unique_ptr<Section>>& sections, Pool& pool) {
  size_t all = 0;
  for (const auto& section : sections) all += section->n();
  if (all < kFewIds) {
    for (const auto& section : sections) fill_alone(*section, *pool.scratch());
    return;
  }
  std::vector<Section*> alone;
  for (const auto& section : sections) {
    const size_t n = section->n();
    if (n >= kManyIds && n * static_cast<size_t>(pool.threads()) >= all) {
      fill_together(*section, pool);
    } else {
      alone.push_back(section.get());
    }
  }
  std::stable_sort(alone.begin(), alone.end(),
                   [](const Section* one, const Section* two) { return one->n() > two->n(); });
  pool.run(alone.size(),
           [&](size_t number) { fill_alone(*alone[number], *pool.scratch()); });
}

}  // namespace

size_t group_bound(const Layout& layout, const std::vector<FeatureIds>& features) {
  if (features.size() != layout.features.size()) {
    throw Error(Code::kInvalidArgument, "There must be ids of " +
                                            std::to_string(layout.features.size()) +
                                            " features, got " +
                                            std::to_string(features.size()) + ".");
  }
  const size_t most = std::numeric_limits<int32_t>::max();
  size_t words = kHeaderWords + layout.tables.size(), ids = 0;
  for (const FeatureIds& one : features) ids += std::min(one.count, most + 1 - ids);
  if (ids <= most) {
    for (const TableLayout& table : layout.tables) words += section_bound(layout, table, features);
  }
  if (ids > most || words > most) {
    throw Error(Code::kResourceExhausted,
                "The ids of one batch need more than " + std::to_string(most) + " words.");
  }
  return words;
}

void group(const Layout& layout, const std::vector<FeatureIds>& features, Pool& pool,
           uint32_t* out, size_t words) {
  if (words < group_bound(layout, features)) {
    throw Error(Code::kInternal, "There is too little room for a grouped batch.");
  }
  std::vector<size_t> firsts;
  std::vector<std::unique_ptr<Section>> sections;
  size_t first = kHeaderWords + layout.tables.size();
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    sections.push_back(
        std::make_unique<Section>(layout, static_cast<int>(t), features, out + first));
    firsts.push_back(first);
    first += section_bound(layout, layout.tables[t], features);
  }
  fill(sections, pool);
  write_header(layout, firsts.back() + sections.back()->words(), firsts, out);
}

}  // namespace ete
