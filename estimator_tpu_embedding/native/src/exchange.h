// The requester's part of an exchange with the owners of rows, which are engines of hosts.
//
// A core splits its ids into one message for each owner (see message.h). Each owner sends back the
// sum of its rows for each sample of the message, and the requester adds these *parts*. Owner o has
// host number o. It knows only the features whose table has rows there, in the order of the layout.
//
//   positions  of one owner: where its samples belong, by feature. It is the sample plus all
//              samples of the features before, also of those that the owner does not know.
//   scales     of all samples of each feature whose table has the combiner mean or sqrtn: one over
//              the norm of the sample's weights, 0 where that norm is 0
//   parts      of one owner: the [m_f, width] floats of each of its features
#ifndef ETE_EXCHANGE_H_
#define ETE_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ids.h"
#include "layout.h"
#include "pool.h"

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
  std::vector<size_t> first_positions_, first_scales_;
};

// The ids of one core and step, to be split.
class Split {
 public:
  // Counts what each owner gets. All arguments must outlive it. Throws Error kInvalidArgument,
  // which names the feature, the place and the value, for ids that contradict FeatureIds.
  Split(const Exchange& exchange, const std::vector<FeatureIds>& features, Pool& pool);

  // How many words the message for an owner has, and how many positions.
  size_t words(size_t o) const { return words_[o]; }
  size_t positions(size_t o) const { return positions_[o]; }

  // Writes the messages and positions by owner, and all scales.
  void write(const std::vector<int32_t*>& messages, const std::vector<int32_t*>& positions,
             float* scales) const;

 private:
  struct Count {
    uint32_t ids, samples;
  };
  // Where the ids of one feature for one owner go next.
  struct Cursor {
    int32_t *rows, *samples, *weights, *positions;
    int32_t last_sample, sample;  // Of the core; of the message.
  };

  const Count& count(size_t o, size_t f) const { return counts_[f * exchange_.owners() + o]; }
  void count_feature(size_t f);
  void write_counts(size_t o, int32_t* message) const;
  void add_cursors(size_t o, int32_t* message, int32_t* positions,
                   std::vector<Cursor>* cursors) const;
  void write_ids(size_t f, std::vector<Cursor> own) const;
  void write_scales(size_t f, float* scales) const;

  const Exchange& exchange_;
  const std::vector<FeatureIds>& features_;
  Pool& pool_;
  std::vector<Count> counts_;  // By feature, then owner.
  std::vector<size_t> words_, positions_;  // By owner.
};

}  // namespace ete

#endif  // ETE_EXCHANGE_H_
