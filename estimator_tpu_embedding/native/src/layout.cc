#include "layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "error.h"

namespace ete {

namespace {

constexpr uint32_t kPartUnit = 16;  // Physical rows: 64 bytes at the least width.
constexpr int64_t kWidest = int64_t{1} << 24;
constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();

void require(bool holds, const std::string& where, const std::string& rule, int64_t got) {
  if (!holds) {
    throw Error(Code::kInvalidArgument,
                where + ": " + rule + ", got " + std::to_string(got) + ".");
  }
}

template <typename T>
void require_size(const std::vector<T>& values, size_t size, const char* name) {
  require(values.size() == size, name, "must have " + std::to_string(size) + " entries",
          static_cast<int64_t>(values.size()));
}

void check_sizes(const LayoutNumbers& numbers) {
  const size_t tables = numbers.table_names.size(), features = numbers.feature_names.size();
  require(tables >= 1, "table_names", "must have entries", 0);
  require(features >= 1, "feature_names", "must have entries", 0);
  require_size(numbers.table_rows, tables, "table_rows");
  require_size(numbers.table_widths, tables, "table_widths");
  require_size(numbers.table_combiners, tables, "table_combiners");
  require_size(numbers.table_rules, tables, "table_rules");
  require_size(numbers.table_options, tables * kOptions, "table_options");
  require_size(numbers.slot_counts, tables, "slot_counts");
  if (!numbers.table_grids.empty()) require_size(numbers.table_grids, tables * 3, "table_grids");
  if (!numbers.table_ids.empty()) require_size(numbers.table_ids, tables * 2, "table_ids");
  require_size(numbers.feature_tables, features, "feature_tables");
  require_size(numbers.feature_samples, features, "feature_samples");
  require_size(numbers.feature_weighted, features, "feature_weighted");
  require(1 <= numbers.num_hosts && numbers.num_hosts <= kMost32, "num_hosts",
          "must be from 1 to 2147483647", numbers.num_hosts);
  require(numbers.strategy == kDiv || numbers.strategy == kMod, "strategy", "must be 0 or 1",
          numbers.strategy);
}

void check_table(const LayoutNumbers& numbers, size_t t) {
  const std::string where = "Table \"" + numbers.table_names[t] + '"';
  const int64_t rows = numbers.table_rows[t], width = numbers.table_widths[t];
  require(rows >= 1, where, "the vocabulary must be >= 1", rows);
  require(1 <= width && width <= kWidest, where, "the width must be from 1 to 16777216", width);
  const int64_t combiner = numbers.table_combiners[t];
  require(kSum <= combiner && combiner <= kSqrtn, where, "the combiner must be 0, 1 or 2",
          combiner);
  const int64_t rule = numbers.table_rules[t], slots = numbers.slot_counts[t];
  require(kNoRule <= rule && rule <= kMost32, where, "the rule must be >= -1", rule);
  require(0 <= slots && slots <= 64, where, "the number of slots must be from 0 to 64", slots);
}

// Of the whole table, which has less than 1 << 32 rows.
void place_ids(TableLayout& table, const LayoutNumbers& numbers, size_t t) {
  table.first_id = numbers.table_ids.empty() ? 0 : numbers.table_ids[t * 2];
  table.id_stride = numbers.table_ids.empty() ? 1 : numbers.table_ids[t * 2 + 1];
  const std::string where = "Table \"" + table.name + '"';
  const int64_t most = std::numeric_limits<uint32_t>::max();
  require(0 <= table.first_id && table.first_id < most, where,
          "the first id must be from 0 to " + std::to_string(most - 1), table.first_id);
  require(1 <= table.id_stride && table.id_stride <= kMost32, where,
          "the stride of ids must be from 1 to 2147483647", table.id_stride);
}

// Bits that numbers below `count` need.
int bits_below(uint64_t count) {
  int bits = 0;
  while (bits < 63 && (uint64_t{1} << bits) < count) ++bits;
  return bits;
}

// Gives the table its parts: the first hosts hold a row more where it does not divide.
void place_parts(TableLayout& table, int hosts) {
  const int64_t parts = std::min<int64_t>(table.vocabulary, hosts);
  const int64_t quotient = table.vocabulary / hosts, rest = table.vocabulary % hosts;
  const auto extent = [](int64_t rows) { return (rows + kPartUnit - 1) / kPartUnit * kPartUnit; };
  const int64_t fuller = std::min(rest, parts);
  const int64_t most = std::numeric_limits<uint32_t>::max();
  // Products of what is above `most` would be beyond 64 bits.
  if (table.vocabulary > most ||
      fuller * extent(quotient + 1) + (parts - fuller) * extent(quotient) > most) {
    throw Error(Code::kResourceExhausted,
                "Table \"" + table.name + "\": " + std::to_string(table.vocabulary) +
                    " rows on " + std::to_string(hosts) + " hosts are more than " +
                    std::to_string(most) + ".");
  }
  uint32_t start = 0;
  for (int64_t host = 0; host < parts; ++host) {
    const int64_t rows = quotient + (host < rest ? 1 : 0);
    table.part_rows.push_back(static_cast<uint32_t>(rows));
    table.part_starts.push_back(start);
    start += static_cast<uint32_t>(extent(rows));
  }
  table.physical_rows = start;
}

TableLayout make_table(const LayoutNumbers& numbers, size_t t) {
  check_table(numbers, t);
  TableLayout table;
  table.name = numbers.table_names[t];
  table.vocabulary = numbers.table_rows[t];
  table.width = static_cast<int>(numbers.table_widths[t]);
  table.combiner = static_cast<int>(numbers.table_combiners[t]);
  table.rule = static_cast<int>(numbers.table_rules[t]);
  table.slots = static_cast<int>(numbers.slot_counts[t]);
  std::copy_n(numbers.table_options.begin() + static_cast<int64_t>(t) * kOptions, kOptions,
              table.options);
  const float infinity = std::numeric_limits<float>::infinity();
  table.grid = {-infinity, infinity, 0.0f};
  if (!numbers.table_grids.empty()) {
    const float* grid = &numbers.table_grids[t * 3];
    table.grid = {grid[0], grid[1], grid[2]};
  }
  table.rounds = std::isfinite(table.grid.lowest);
  table.weighted = false;
  table.sample_bits = table.code_bits = 0;
  place_parts(table, static_cast<int>(numbers.num_hosts));
  place_ids(table, numbers, t);
  return table;
}

void add_feature(Layout& layout, const LayoutNumbers& numbers, size_t f) {
  const std::string where = "Feature \"" + numbers.feature_names[f] + '"';
  const int64_t number = numbers.feature_tables[f], samples = numbers.feature_samples[f];
  require(0 <= number && number < static_cast<int64_t>(layout.tables.size()), where,
          "the table must be below " + std::to_string(layout.tables.size()), number);
  require(1 <= samples && samples <= kMost32, where,
          "the number of samples must be from 1 to 2147483647", samples);
  TableLayout& table = layout.tables[static_cast<size_t>(number)];
  layout.features.push_back({numbers.feature_names[f], static_cast<int>(number), samples,
                             false, static_cast<int>(table.features.size())});
  table.features.push_back(static_cast<int>(f));
  table.sample_bits =
      std::max(table.sample_bits, bits_below(static_cast<uint64_t>(samples)));
}

void require_codes_fit(TableLayout& table) {
  table.code_bits = table.sample_bits + bits_below(table.features.size());
  if (table.code_bits > 32) {
    throw Error(Code::kResourceExhausted,
                "Table \"" + table.name + "\": " + std::to_string(table.features.size()) +
                    " features of up to " + std::to_string(uint64_t{1} << table.sample_bits) +
                    " samples need more than 32 bits to number.");
  }
}

// FNV-1a. It detects batches of another layout, but no forged ones: the content of a batch is
// checked where it is used.
class Hash {
 public:
  void add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) add_byte(number >> shift & 255);
  }
  void add(const std::string& text) {
    add(text.size());
    for (const unsigned char byte : text) add_byte(byte);
  }
  uint64_t value() const { return value_; }

 private:
  void add_byte(uint64_t byte) { value_ = (value_ ^ byte) * 0x100000001b3; }

  uint64_t value_ = 0xcbf29ce484222325;
};

uint64_t hash_of(const Layout& layout) {
  Hash hash;
  hash.add(static_cast<uint64_t>(layout.hosts));
  hash.add(static_cast<uint64_t>(layout.strategy));
  hash.add(layout.tables.size());
  for (const TableLayout& table : layout.tables) {
    hash.add(table.name);
    hash.add(static_cast<uint64_t>(table.vocabulary));
    hash.add(static_cast<uint64_t>(table.width));
    hash.add(static_cast<uint64_t>(table.combiner));
    hash.add(static_cast<uint64_t>(table.first_id));
    hash.add(static_cast<uint64_t>(table.id_stride));
  }
  for (const FeatureLayout& feature : layout.features) {
    hash.add(feature.name);
    hash.add(static_cast<uint64_t>(feature.table));
    hash.add(static_cast<uint64_t>(feature.samples));
    hash.add(feature.weighted);
  }
  return hash.value();
}

// Also decides the hash.
void set_weighted(Layout& layout, const std::vector<int64_t>& weighted) {
  for (TableLayout& table : layout.tables) table.weighted = false;
  for (size_t f = 0; f < weighted.size(); ++f) {
    FeatureLayout& feature = layout.features[f];
    require(weighted[f] == 0 || weighted[f] == 1, "Feature \"" + feature.name + '"',
            "weighted must be 0 or 1", weighted[f]);
    feature.weighted = weighted[f] == 1;
    TableLayout& table = layout.tables[static_cast<size_t>(feature.table)];
    table.weighted = table.weighted || feature.weighted;
  }
  layout.hash = hash_of(layout);
}

}  // namespace

Layout Layout::make(const LayoutNumbers& numbers) {
  check_sizes(numbers);
  Layout layout;
  layout.hosts = static_cast<int>(numbers.num_hosts);
  layout.strategy = static_cast<int>(numbers.strategy);
  for (size_t t = 0; t < numbers.table_names.size(); ++t) {
    layout.tables.push_back(make_table(numbers, t));
  }
  for (size_t f = 0; f < numbers.feature_names.size(); ++f) add_feature(layout, numbers, f);
  for (TableLayout& table : layout.tables) require_codes_fit(table);
  set_weighted(layout, numbers.feature_weighted);
  return layout;
}

Layout Layout::weighted_as(const std::vector<int64_t>& weighted) const {
  require_size(weighted, features.size(), "weighted");
  Layout other = *this;
  set_weighted(other, weighted);
  return other;
}

int64_t Layout::id_of(const TableLayout& table, uint32_t physical) const {
  const auto after =
      std::upper_bound(table.part_starts.begin(), table.part_starts.end(), physical);
  const int64_t host = after - table.part_starts.begin() - 1;  // The first part starts at 0.
  const int64_t row = physical - table.part_starts[static_cast<size_t>(host)];
  if (row >= table.part_rows[static_cast<size_t>(host)]) {
    throw Error(Code::kInvalidArgument, "Table \"" + table.name + "\": there is no physical row " +
                                            std::to_string(physical) + ".");
  }
  if (strategy == kMod) return row * hosts + host;
  const int64_t quotient = table.vocabulary / hosts, rest = table.vocabulary % hosts;
  return host * quotient + std::min(host, rest) + row;
}

Partition::Partition(int64_t vocabulary, int hosts, int strategy)
    : hosts_(static_cast<uint32_t>(hosts)),
      quotient_(static_cast<uint32_t>(vocabulary / hosts)),
      rest_(static_cast<uint32_t>(vocabulary % hosts)),
      // With fewer rows than hosts each has one by both strategies; `div` would divide by 0.
      mod_(strategy == kMod || quotient_ == 0),
      hosts_divider_(hosts_),
      fuller_divider_(quotient_ + 1),
      other_divider_(std::max(quotient_, 1u)) {}

Locator::Locator(const Layout& layout, const TableLayout& table)
    : partition_(table.vocabulary, layout.hosts, layout.strategy),
      fuller_extent_((partition_.quotient() + kPartUnit) / kPartUnit * kPartUnit),
      other_extent_((partition_.quotient() + kPartUnit - 1) / kPartUnit * kPartUnit),
      identity_(layout.hosts == 1) {}

}  // namespace ete
