// The layouts of one engine: its own, and one for each other choice of features with weights.
#ifndef ETE_LAYOUTS_H_
#define ETE_LAYOUTS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "layout.h"

namespace ete {

// All functions may be called from any thread. What they give lives as long as this does.
class Layouts {
 public:
  explicit Layouts(Layout own) : own_(std::move(own)) {}

  const Layout& own() const { return own_; }

  // That by which batches are grouped whose weighted features are these: 0 or 1 by feature, none
  // for those of the engine's own. It is remembered, for `of`. Throws Error kInvalidArgument, as
  // Layout::weighted_as does.
  const Layout& with(const std::vector<int64_t>& weighted);

  // That by which words[0 .. count) were grouped, if it is one that `with` gave; else the engine's
  // own, by which `read_group` refuses what is not grouped by it.
  const Layout& of(const uint32_t* words, size_t count) const;

 private:
  const Layout own_;
  mutable std::mutex mutex_;
  std::list<Layout> others_;  // Guarded; what is in it never changes or moves.
};

}  // namespace ete

#endif  // ETE_LAYOUTS_H_
