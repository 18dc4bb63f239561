// What a core of the model and the owners of rows, which are engines of hosts, have in common.
//
// A core splits its ids into one message for each owner (see message.h). In it the ids are in
// groups. Each owner sends back the sum of the rows of each group, and the core adds these *parts*.
// Owner o has host number o. It knows only the features whose table has rows there, in the order of
// the layout. Each feature has the way with fewer groups, for each owner and step by itself:
//
//   by sample  a group is a sample with an id at this owner
//   by row     a group is a distinct row, which is sent once with weight 1. Groups are numbered in
//              the order of their first ids.
//
// The core keeps:
//
//   links   of one owner: the number of groups m_f of all features, also of those that the owner
//           does not know. Then the groups of all links, then their positions and, if any feature
//           is weighted, their weights. By sample there is a link per group, by row a link per id.
//           Groups count on from feature to feature. A position is the sample plus all samples of
//           the features before; positions ascend.
//   scales  of all samples of each feature whose table has the combiner mean or sqrtn: one over
//           the norm of the sample's weights, 0 where that norm is 0
//   parts   of one owner: the [m_f, width] floats of each of its features
#ifndef ETE_EXCHANGE_H_
#define ETE_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout.h"

namespace ete {

// What all exchanges of a plan have in common.
class Exchange {
 public:
  // Takes the layout of the whole plan, its features in the order of the exchange. Throws Error
  // kResourceExhausted if 32 bits cannot count the samples or number the rows of a host.
  explicit Exchange(Layout layout);

  const Layout& layout() const { return layout_; }
  size_t owners() const { return owners_; }
  size_t features() const { return layout_.features.size(); }
  const TableLayout& table_of(size_t f) const {
    return layout_.tables[static_cast<size_t>(layout_.features[f].table)];
  }
  size_t width_of(size_t f) const { return static_cast<size_t>(table_of(f).width); }

  // Whether a feature is weighted, so that links are.
  bool weighted() const { return weighted_; }

  // Whether owner number `o` has rows for feature number `f`.
  bool knows(size_t o, size_t f) const { return o < table_of(f).part_rows.size(); }

  // The first position of a feature; of the number of features: how many positions there are.
  size_t first_position(size_t f) const { return first_positions_[f]; }

  // The same for scales.
  size_t first_scale(size_t f) const { return first_scales_[f]; }
  bool is_scaled(size_t f) const { return table_of(f).combiner != kSum; }

 private:
  const Layout layout_;
  size_t owners_ = 0;
  bool weighted_ = false;
  std::vector<size_t> first_positions_, first_scales_;
};

}  // namespace ete

#endif  // ETE_EXCHANGE_H_
