// The numbers of a plan: its tables, its features, and the physical row of each id.
//
// A table is held by `part_rows.size()` hosts (never more than it has rows). The rows of one host
// lie together, in row order; each host begins at a multiple of 16 physical rows, so that its
// memory begins at a multiple of 64 bytes for any width.
#ifndef ETE_LAYOUT_H_
#define ETE_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "options.h"

namespace ete {

constexpr int kSum = 0, kMean = 1, kSqrtn = 2;  // Combiners; kSum also stands for none.
constexpr int kDiv = 0, kMod = 1;               // Strategies.
constexpr int kNoRule = -1;                     // Of tables that are only read.

// What a layout is made from: the attributes of the operation EteEngine, under the same names.
struct LayoutNumbers {
  std::vector<std::string> table_names, feature_names;  // T, F
  std::vector<int64_t> table_rows;       // T: vocabulary, >= 1
  std::vector<int64_t> table_widths;     // T: floats per row, >= 1
  std::vector<int64_t> table_combiners;  // T: kSum, kMean or kSqrtn
  std::vector<int64_t> table_rules;      // T: kNoRule or a rule's number
  std::vector<float> table_options;      // T * kOptions
  std::vector<int64_t> slot_counts;      // T: >= 0
  std::vector<float> table_grids;        // T * 3: as Grid has them; none if no table has one
  int64_t num_hosts = 1;                 // >= 1
  int64_t strategy = kDiv;
  std::vector<int64_t> feature_tables;    // F: index of a table
  std::vector<int64_t> feature_samples;   // F: samples per core, >= 1
  std::vector<int64_t> feature_weighted;  // F: 0 or 1
  // T * 2: the id of row 0 in the whole table, and how far the ids of neighbours are apart there;
  // none if the engine holds whole tables.
  std::vector<int64_t> table_ids;
};

// The numbers to which looked-up rows are rounded: `lowest`, and further steps up to `highest`. A
// table whose rows are not rounded has infinite bounds.
struct Grid {
  float lowest, highest, step;
};

struct TableLayout {
  std::string name;
  int64_t vocabulary;
  int width;
  int combiner;
  int rule;
  int slots;
  float options[kOptions];             // By Option.
  Grid grid;
  std::vector<int> features;           // Indices into Layout::features, in plan order.
  std::vector<uint32_t> part_rows;     // By host that holds rows: how many, never 0.
  std::vector<uint32_t> part_starts;   // By such host: its first physical row.
  uint32_t physical_rows;              // Of all hosts, with the gaps between them.
  bool rounds;                         // Whether there is a grid.
  bool weighted;                       // Whether any of its features is.
  int sample_bits;                     // Smallest s: no feature has more than 1 << s samples.
  int code_bits;                       // Of (feature in table << sample_bits) | sample: <= 32.
  int64_t first_id, id_stride;         // As LayoutNumbers::table_ids.
};

struct FeatureLayout {
  std::string name;
  int table;
  int64_t samples;
  bool weighted;
  int place_in_table;  // Its index in TableLayout::features.
};

struct Layout {
  std::vector<TableLayout> tables;
  std::vector<FeatureLayout> features;
  int hosts;
  int strategy;
  uint64_t hash;  // Of all that decides what a grouped batch means.

  // The id of a physical row; `Locator` is the inverse. Throws Error kInvalidArgument for a row in
  // a gap or beyond the end.
  int64_t id_of(const TableLayout& table, uint32_t physical) const;

  // The same in the whole table, of which this one may be a part.
  int64_t whole_id_of(const TableLayout& table, uint32_t physical) const {
    return table.first_id + table.id_stride * id_of(table, physical);
  }

  // Throws Error kInvalidArgument for numbers that contradict the comments above, or
  // kResourceExhausted for tables or batches beyond 32-bit rows and codes.
  static Layout make(const LayoutNumbers& numbers);

  // Returns the same layout with other weighted features: 0 or 1 for each. Throws Error
  // kInvalidArgument for other numbers.
  Layout weighted_as(const std::vector<int64_t>& weighted) const;
};

// Division by a number that is known only at run time, as a multiplication.
class Divider {
 public:
  // `divisor` >= 1.
  explicit Divider(uint32_t divisor)
      : magic_(divisor == 1 ? 0 : UINT64_MAX / divisor + 1) {}

  uint32_t divide(uint32_t number) const {
    const uint32_t high = static_cast<uint32_t>((static_cast<Wide>(magic_) * number) >> 64);
    return magic_ ? high : number;
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  uint64_t magic_;  // Exact for all numbers < 1 << 32; 0 stands for the divisor 1.
};

// Where an id of a table lives, by `div` or `mod`: core/partition.py for ids of one table. Ids must
// be below the vocabulary, which is not checked.
class Partition {
 public:
  struct Place {
    uint32_t host, row;
  };

  // `hosts` >= 1, `vocabulary` in [1, 1 << 32).
  Partition(int64_t vocabulary, int hosts, int strategy);

  uint32_t rest() const { return rest_; }          // How many hosts have a row more than others.
  uint32_t quotient() const { return quotient_; }  // Rows of the others.

  Place operator()(uint32_t id) const { return mod_ ? by_mod(id) : by_div(id); }

 private:
  Place by_mod(uint32_t id) const {
    const uint32_t row = hosts_divider_.divide(id);
    return {id - row * hosts_, row};
  }

  Place by_div(uint32_t id) const {
    const uint32_t above = id < rest_ ? 0 : id - rest_;
    const uint32_t in_fuller = fuller_divider_.divide(id), in_others = other_divider_.divide(above);
    const uint32_t host = in_fuller > in_others ? in_fuller : in_others;
    return {host, id - host * quotient_ - (host < rest_ ? host : rest_)};
  }

  uint32_t hosts_, quotient_, rest_;
  bool mod_;
  Divider hosts_divider_, fuller_divider_, other_divider_;
};

// Maps ids of one table to physical rows, without a branch. Ids must be below the vocabulary, which
// is not checked.
class Locator {
 public:
  Locator(const Layout& layout, const TableLayout& table);

  // Whether id and physical row are the same.
  bool is_identity() const { return identity_; }

  uint32_t operator()(uint32_t id) const {
    if (identity_) return id;
    const Partition::Place place = partition_(id);
    return place.row + start(place.host);
  }

 private:
  // Hosts with a row more come first, so where one begins needs no look-up.
  uint32_t start(uint32_t host) const {
    const uint32_t rest = partition_.rest();
    return host * other_extent_ + (host < rest ? host : rest) * (fuller_extent_ - other_extent_);
  }

  Partition partition_;
  uint32_t fuller_extent_, other_extent_;  // Physical rows of a host with and without a row more.
  bool identity_;
};

}  // namespace ete

#endif  // ETE_LAYOUT_H_
