// Splits the ids of a core into messages for owners of rows; see exchange.h.
#ifndef ETE_SPLIT_H_
#define ETE_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange.h"
#include "id_packing.h"
#include "memory.h"
#include "pool.h"

namespace ete {

// The ids of one core and step, to be split.
class Split {
 public:
  // Counts what each owner gets. All arguments must outlive it. Throws Error kInvalidArgument,
  // which names the feature, the place and the value, for ids that contradict FeatureIds.
  Split(const Exchange& exchange, const std::vector<FeatureIds>& features, Pool& pool);

  // How many words the message for an owner has, and its links.
  size_t message_words(size_t o) const { return message_words_[o]; }
  size_t link_words(size_t o) const { return link_words_[o]; }

  // Writes the messages and links by owner, and all scales.
  void write(const std::vector<int32_t*>& messages, const std::vector<int32_t*>& links,
             float* scales) const;

 private:
  // Of one feature for one owner. `rows` are distinct; not all are counted if they are not fewer
  // than the samples.
  struct Count {
    uint32_t ids, samples, rows;

    bool by_row() const { return rows < samples; }
    uint32_t sent() const { return by_row() ? rows : ids; }
    uint32_t groups() const { return by_row() ? rows : samples; }
    uint32_t links() const { return by_row() ? ids : samples; }
  };
  // Where the ids of one feature for one owner go. Arrays begin with those of the feature.
  struct Cursor {
    int32_t *rows, *groups, *weights;
    int32_t *link_groups, *link_positions, *link_weights;
    int32_t first_group;
    bool by_row;
    int32_t last_sample, sample, id;  // Of the core; of the owner, as the next.
  };

  const Count& count(size_t o, size_t f) const { return counts_[f * exchange_.owners() + o]; }
  bool weighted(size_t f) const { return exchange_.layout().features[f].weighted; }
  void count_feature(size_t f);
  void number_rows(size_t f, Count* counts);
  int32_t* write_counts(size_t o, int32_t* message) const;
  void add_cursors(size_t o, int32_t* message, int32_t* links, std::vector<Cursor>* cursors) const;
  void write_ids(size_t f, std::vector<Cursor> own) const;
  void write_weights(size_t f, const Cursor* cursors) const;
  void write_scales(size_t f, float* scales) const;

  const Exchange& exchange_;
  const std::vector<FeatureIds>& features_;
  Pool& pool_;
  std::vector<size_t> first_ids_;  // By feature, and the end.
  Scratch::Lease numbers_;         // Of the row of each id, where an owner gets rows.
  std::vector<Count> counts_;      // By feature, then owner.
  std::vector<size_t> message_words_, link_words_;  // By owner.
};

}  // namespace ete

#endif  // ETE_SPLIT_H_
