// The lock on the rows of an engine: lookups share them, an update has them alone, and nobody
// writes rows that a saver still reads.
//
// A *view* is memory of a table that TensorFlow holds beyond the operation that gave it, such as
// the value that a saver writes to disk. Views are counted by table. Nobody waits for a view
// while holding up others, because the run that has a view may need more of them before it ends.
#ifndef ETE_ACCESS_H_
#define ETE_ACCESS_H_

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "condition.h"

namespace ete {

// How long a writer waits for others before it fails: first for views, then for its turn.
struct Patience {
  std::chrono::milliseconds for_turn{60000};  // For look-ups and other writers.
  std::chrono::milliseconds for_views{120000};  // To save some 50 GB takes so long.
};

constexpr int64_t kLongestPatience = 86400000;  // Milliseconds: a day.

// Safe to use from any thread. It is kept alive by views, which may outlive the engine.
class Access {
 public:
  explicit Access(std::vector<std::string> table_names, Patience patience = Patience());
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // Opened by threads that only read. Waiting writers go first, so one thread must not hold two.
  class Shared {
   public:
    explicit Shared(Access& access);
    ~Shared();
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    Access& access_;
  };

  // Opened by a thread that writes. `table` is the table to write; < 0 is all of them. Throws Error
  // kFailedPrecondition when patience ends; the error names the table if it is one.
  class Exclusive {
   public:
    Exclusive(Access& access, int table);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    Access& access_;
  };

  // Counts a view of a table; waits for a writer that is at work.
  void add_view(int table);
  void remove_view(int table) noexcept;

 private:
  std::string written(int table) const;  // The table or tables, for messages.
  int viewed(int table) const;  // The first table with views among those asked for, or -1.

  const std::vector<std::string> names_;
  const Patience patience_;
  std::mutex mutex_;
  Condition changed_;
  int readers_ = 0;
  int waiting_ = 0;  // Writers that wait for readers and other writers, not for views.
  bool writing_ = false;
  std::vector<int64_t> views_;  // By table.
};

}  // namespace ete

#endif  // ETE_ACCESS_H_
