// A condition variable that needs no newer C or C++ library than the rest of this library does.
//
// std::condition_variable of GCC 12 would need GLIBCXX 3.4.30, which Red Hat 9 does not have.
#ifndef ETE_CONDITION_H_
#define ETE_CONDITION_H_

#include <chrono>
#include <mutex>

#include <pthread.h>
#include <time.h>

namespace ete {

// Like std::condition_variable. Waits always have a predicate, and deadlines a steady clock.
class Condition {
 public:
  Condition() {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);  // The one of std::steady_clock.
    pthread_cond_init(&condition_, &attributes);
    pthread_condattr_destroy(&attributes);
  }
  ~Condition() { pthread_cond_destroy(&condition_); }
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void notify_one() noexcept { pthread_cond_signal(&condition_); }
  void notify_all() noexcept { pthread_cond_broadcast(&condition_); }

  // Waits until `ready()`, which is called with the lock held.
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready ready) {
    while (!ready()) pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }

  // The same until `end` at most; returns the last result of `ready()`.
  template <class Ready>
  bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point end,
                  Ready ready) {
    const auto since_start =
        std::chrono::duration_cast<std::chrono::nanoseconds>(end.time_since_epoch()).count();
    timespec deadline;
    deadline.tv_sec = static_cast<time_t>(since_start / 1000000000);
    deadline.tv_nsec = static_cast<long>(since_start % 1000000000);
    while (!ready()) {
      if (pthread_cond_timedwait(&condition_, lock.mutex()->native_handle(), &deadline)) {
        return ready();
      }
    }
    return true;
  }

 private:
  pthread_cond_t condition_;
};

}  // namespace ete

#endif  // ETE_CONDITION_H_
