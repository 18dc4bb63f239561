// The engine: holds the rows and slots of all tables of a plan, looks up and updates.
//
// An engine owns one block of memory per table and per slot; the blocks hold the parts of all
// hosts one after another. *Part number*: for each table, for its rows and then each slot, for
// each host that holds rows, counted from 0. All functions may be called from any thread.
#ifndef ETE_ENGINE_H_
#define ETE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "access.h"
#include "layout.h"
#include "layouts.h"
#include "memory.h"
#include "pool.h"
#include "update.h"

namespace ete {

// One part: `rows * width` floats in row order, 64-byte aligned.
struct Part {
  int table;
  int slot;  // 0 for the rows of the table, k + 1 for its k-th slot.
  float* data;
  size_t rows;
  int width;

  size_t elements() const { return rows * static_cast<size_t>(width); }
};

// The floats of a part somewhere else, and what keeps them alive.
struct Values {
  const float* data = nullptr;
  std::shared_ptr<const void> owner;
};

class Engine {
 public:
  // Allocates zeros, which use no memory before they are written. `threads` < 1: all cores that
  // the process may use. Throws Error kResourceExhausted, which names the table.
  Engine(Layout layout, int threads, Patience patience = Patience());
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Layout& layout() const { return layouts_.own(); }
  Layouts& layouts() { return layouts_; }
  Pool& pool() { return pool_; }

  size_t parts() const { return parts_.size(); }

  // Throws Error kInvalidArgument for a number that is not in [0, parts()).
  const Part& part(int64_t number) const;

  // Keeps the memory of a part alive, also beyond the engine: for the variable's own value.
  std::shared_ptr<const void> hold(int64_t number) const;

  // Also counts a view until it is freed; until then updates wait. For savers.
  std::shared_ptr<const void> hold_view(int64_t number);

  // Whether `data` is the memory of the part.
  bool owns(int64_t number, const void* data) const { return part(number).data == data; }

  // What the variable of a part was assigned is *offered* before the variable becomes a view of
  // the part, and *taken* afterwards, which copies it. In between the offer is what the part
  // counts as, whatever its memory holds. It is taken by whoever needs the rows first, so a run
  // that ends in between, or that waits too long for a saver, loses nothing.

  // Replaces what was offered to the part and not taken. Waits for nobody.
  void offer(int64_t number, Values values);

  // What is offered to the part; no data if nothing is.
  Values offered(int64_t number) const;

  // Copies what is offered to the part, if anything, into its memory. Alone in the engine; throws
  // Error kFailedPrecondition, and the offer stays, if others do not end. Cannot fail later.
  // `kept` are values that the caller keeps alive. If they are the offer, `is_last` is asked,
  // which must not throw, once the engine has let go of them: whether nobody else has them. If
  // so, their memory goes back to the system, but for the first and last page, as they are
  // copied: no more than a slice of them is there twice.
  void take(int64_t number, const float* kept = nullptr,
            const std::function<bool()>& is_last = nullptr);

  // The verbs. Pointers and sizes are checked by the caller against the layout; grouped batches,
  // by any of the layouts, and row numbers are checked here. Each throws Error. They take what is
  // offered first.

  // `activations` by feature: [samples, width] floats each.
  void lookup(const uint32_t* words, size_t count, const std::vector<float*>& activations);

  // `rates` and `nonfinite` by table; see update.h. Alone in the engine; nothing is changed if it
  // throws Error kFailedPrecondition because others do not end.
  void update(const std::vector<CoreGradients>& cores, const float* rates, int32_t* nonfinite);

  // Copies the memory of a part to `out`, of its number of elements.
  void read(int64_t number, float* out);

  // Copies rows of `value` to `out`, `count` of them. `value` has the shape of the part; if it is
  // its memory, what is offered goes first. Row numbers are those of the part, untrusted.
  void read_rows(int64_t number, const float* value, const int64_t* rows, size_t count,
                 float* out);

 private:
  struct Place {  // What is behind a part.
    size_t block;
    Part part;
  };

  void allocate(int table);
  const Place& place(int64_t number) const;
  Values withdraw(int64_t number);
  void settle();  // Takes all offers.

  Layouts layouts_;
  Pool pool_;
  const std::shared_ptr<Access> access_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<TableState> states_;  // By table.
  std::vector<Place> parts_;
  mutable std::mutex offers_mutex_;
  std::map<int64_t, Values> offers_;  // By part number; guarded.
};

// The engines of this process by handle, for operations that are given a number. Whoever puts an
// engine in removes it; one that is in use lives on until its last user ends. Handles are never
// used twice.
namespace registry {

int64_t put(std::shared_ptr<Engine> engine);

// Never null. Throws Error kInvalidArgument for what `put` did not give or was removed.
std::shared_ptr<Engine> find(int64_t handle);

void remove(int64_t handle) noexcept;

}  // namespace registry

}  // namespace ete

#endif  // ETE_ENGINE_H_
