// Threads that work on one job together.
//
// Workers with nothing to do wait awake for 50 us, then sleep on a condition variable. The thread
// that calls `run` takes part. So a pool of one thread has no workers at all, a call from inside a
// chunk cannot wait for ever, and several callers at once are served, each with its own job.
// On Linux a few workers keep off the CPU of their caller, so the two work at the same time.
// A process that was forked from the one that made the pool has no workers: there `run` does
// everything in the caller, and the destructor leaves the pool as it is.
#ifndef ETE_POOL_H_
#define ETE_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "cores.h"
#include "memory.h"

namespace ete {

class Pool {
 public:
  // `threads` in all, the caller of `run` among them; < 1 means `usable_cores()`.
  // Throws Error kInvalidArgument for more than kMostThreads, and kResourceExhausted if the
  // system refuses a thread.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  // Calls body(0) ... body(chunks - 1), each once, in any order and thread, and returns when all
  // have ended. The first exception of a body is thrown here; chunks not begun by then are left
  // out. What bodies wrote is visible to the caller afterwards.
  void run(size_t chunks, const std::function<void(size_t)>& body);

  // Memory that a call needs only while it runs, or for results of every step; never null.
  const std::shared_ptr<Scratch>& scratch() const { return scratch_; }

 private:
  struct Job;
  struct State;

  static void work(State* state);
  void publish(Job* job);
  void withdraw(Job* job);
  void stop();

  int threads_;
  std::shared_ptr<Scratch> scratch_;
  State* state_;  // Left alone in a forked process: its locks belong to threads that are not there.
};

// The pool of those who have no engine: made when it is first asked for, and never freed.
Pool& shared_pool();

}  // namespace ete

#endif  // ETE_POOL_H_
