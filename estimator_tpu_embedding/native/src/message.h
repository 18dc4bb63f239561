// The ids that a core of the model sends to one owner of rows: the engine of another host.
//
// It is a vector of 32-bit words, and an int32 tensor outside. It comes from another process, so
// anything can be in it. The engine has F features; feature f has n_f ids here, in m_f samples:
//
//   n_f for each feature, then m_f for each feature
//   rows      n_f row numbers for each feature, in this engine
//   samples   n_f for each feature: from 0 to m_f - 1, each at least once, ascending
//   weights   n_f floats for each feature that is weighted
#ifndef ETE_MESSAGE_H_
#define ETE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "id_packing.h"
#include "layout.h"
#include "memory.h"

namespace ete {

class Message {
 public:
  // Reads words[0 .. count), which must outlive it. Throws Error kInvalidArgument, which names the
  // feature, for words that are no message by this layout. Rows are not checked: `group` does that.
  Message(const Layout& layout, const int32_t* words, size_t count, Scratch& scratch);

  // For `group`: the samples are those of the message, from 0 on.
  const std::vector<FeatureIds>& features() const { return features_; }

  const int32_t* lengths() const { return lengths_; }  // [F]: m_f.

 private:
  Scratch::Lease rows_;
  std::vector<FeatureIds> features_;
  const int32_t* lengths_;
};

// Returns how many floats the sums or the gradients of `lengths` samples are together: the m_f rows
// of each feature, feature by feature. Throws Error kInvalidArgument unless there is a length for
// each feature, and none is beyond the samples of the feature.
size_t floats_of_parts(const Layout& layout, const int32_t* lengths, size_t count);

}  // namespace ete

#endif  // ETE_MESSAGE_H_
