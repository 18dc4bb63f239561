// The layouts of one engine: its own, and one for each other choice of features with weights.
#ifndef ETE_LAYOUT_VARIANTS_H_
#define ETE_LAYOUT_VARIANTS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "layout.h"

namespace ete {

// All functions may be called from any thread. The references that they return live as long as
// this object.
class Layouts {
 public:
  explicit Layouts(Layout own) : own_(std::move(own)) {}

  const Layout& own() const { return own_; }

  // Returns the layout of batches with these weighted features, 0 or 1 by feature; if `weighted`
  // is empty, the engine's own layout. Remembers it for `of`. Throws Error kInvalidArgument, as
  // Layout::weighted_as does.
  const Layout& with(const std::vector<int64_t>& weighted);

  // Returns the layout by which words[0 .. count) were grouped, if `with` has returned it before.
  // Otherwise returns the engine's own; `read_group` then refuses words that do not fit it.
  const Layout& of(const uint32_t* words, size_t count) const;

 private:
  const Layout own_;
  mutable std::mutex mutex_;
  std::list<Layout> others_;  // Guarded; its elements never change or move.
};

}  // namespace ete

#endif  // ETE_LAYOUT_VARIANTS_H_
