// The engine: holds the rows and slots of all tables of a plan, looks up and updates.
//
// An engine owns one block of memory per table and per slot; the blocks hold the parts of all
// hosts one after another. *Part number*: for each table, for its rows and then each slot, for
// each host that holds rows, counted from 0. All functions may be called from any thread.
#ifndef ETE_ENGINE_H_
#define ETE_ENGINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "access.h"
#include "disk.h"
#include "layout.h"
#include "layout_variants.h"
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
  // the process may use. Throws Error kResourceExhausted, which names the table, and the errors of
  // disk.h.
  Engine(Layout layout, int threads, Patience patience = Patience(),
         const TableMemory& memory = TableMemory());
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

  // Does the same, and counts a view until it is freed; until then updates wait. For savers.
  std::shared_ptr<const void> hold_view(int64_t number);

  // Whether `data` is the memory of the part.
  bool owns(int64_t number, const void* data) const { return part(number).data == data; }

  // How new values come into a part. A run that assigns gives the variable a buffer of its own. The
  // next run that needs the rows does three things, in this order:
  // 1. It *offers* the buffer to the part. From now on the offer is the value of the part, and its
  //    memory is not.
  // 2. It makes the variable a view of the part again.
  // 3. It *takes* the offer: its values are copied into the memory of the part.
  // If it ends before the third, the offer stays, and the next such run takes it. So a run that
  // fails, or that waits too long for a saver, loses no assignment.

  // Offers values to the part, in place of an offer that was not taken. Waits for nobody.
  void offer(int64_t number, Values values);

  // Returns the offer to the part; it has no data if there is no offer.
  Values offered(int64_t number) const;

  // Copies the offer, if there is one, into the memory of the part. First it waits until nobody
  // else uses the engine. If others do not end, it throws Error kFailedPrecondition, and the offer
  // stays. After that wait it cannot fail.
  //
  // A caller that keeps the offered values alive passes them as `kept`; then the engine lets go of
  // them. If `is_last`, which must not throw, says that the caller alone holds them, their memory
  // goes back to the system piece by piece while they are copied, except for the first and the last
  // page. So no more than one piece of them exists twice.
  void take(int64_t number, const float* kept = nullptr,
            const std::function<bool()>& is_last = nullptr);

  // The verbs. The caller checks pointers and sizes against the layout. The verbs check grouped
  // batches, which may have any of the layouts, and row numbers. Each may throw Error. `lookup` and
  // `update` take all offers first.

  // Asks for the rows of a grouped batch, which is trusted, where tables are on a disk, unless all
  // seem to be in memory: their pages are read while other steps run.
  void prefetch(const uint32_t* words, size_t count);

  // `activations` by feature: [samples, width] floats each; see combine.h for `lengths`.
  void lookup(const uint32_t* words, size_t count, const std::vector<float*>& activations,
              const int32_t* lengths = nullptr);

  // Counts what is not finite, by table; see update.h. It needs no row, so it waits for nobody.
  void count(const std::vector<CoreGradients>& cores, int32_t* nonfinite);

  // `rates` and `nonfinite` by table; see update.h. It waits until it is alone in the engine. If
  // others do not end, it throws Error kFailedPrecondition and changes nothing.
  void update(const std::vector<CoreGradients>& cores, const float* rates, int32_t* nonfinite);

  // Copies `count` rows of the part from `values` into its memory, after an offer. Waits as `take`
  // does. `rows` are row numbers in the part, untrusted. So large parts get their first values
  // without a buffer of their size.
  void write_rows(int64_t number, const int64_t* rows, size_t count, const float* values);

  // Copies the memory of a part to `out`, of its number of elements.
  void read(int64_t number, float* out);

  // Copies `count` rows of `value` to `out`. `value` has the shape of the part. If it is the part's
  // memory, an offer is used instead of it. `rows` are row numbers in the part, untrusted.
  void read_rows(int64_t number, const float* value, const int64_t* rows, size_t count,
                 float* out);

 private:
  struct Place {  // What is behind a part.
    size_t block;
    Part part;
  };

  void allocate(int table, const std::string& directory);
  void require_row(const Part& part, int64_t row) const;
  const Place& place(int64_t number) const;
  Values withdraw(int64_t number);
  void settle();  // Takes all offers.
  void require_rules() const;

  Layouts layouts_;
  Pool pool_;
  const std::shared_ptr<Access> access_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<TableState> states_;  // By table.
  const std::vector<bool> mapped_;  // By table: whether it is on a disk.
  std::atomic<int64_t> read_{-1};  // See disk::has_read.
  std::vector<Place> parts_;
  mutable std::mutex offers_mutex_;
  std::map<int64_t, Values> offers_;  // By part number; guarded.
};

// The engines of this process by handle, for operations that are given a number. The caller of
// `put` also removes the engine. An engine in use lives on until its last user ends. Handles are
// never used twice. They differ between processes too, so a handle of another process finds no
// engine, rather than a wrong one.
namespace registry {

int64_t put(std::shared_ptr<Engine> engine);

// Never null. Throws Error kInvalidArgument for a handle that `put` did not return, or that was
// removed.
std::shared_ptr<Engine> find(int64_t handle);

void remove(int64_t handle) noexcept;

}  // namespace registry

}  // namespace ete

#endif  // ETE_ENGINE_H_
