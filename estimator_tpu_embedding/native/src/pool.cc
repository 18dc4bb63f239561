#include "pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>
#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include "condition.h"
#include "error.h"

namespace ete {
namespace {

// How long a thread waits awake, since to wake one up costs about as much: the phases of an
// operation, and the operations of a step, often follow each other sooner.
constexpr std::chrono::microseconds kAwake(50);

// Waits until `ready()`, or for `kAwake`.
template <class Ready>
void wait_awake(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  while (!ready() && std::chrono::steady_clock::now() < end) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

// Keeps workers off the CPU of the thread that they help.
//
// Linux looks for an idle CPU when it wakes a worker up. Often there is none for some microseconds,
// since threads of TensorFlow wait awake. Then it may take the CPU of the caller, where the two
// share the time for milliseconds, while the other CPUs become idle.
class CpuOfCaller {
 public:
  // For as few CPUs as are likely to be all busy: each change takes a system call per worker.
  static constexpr size_t kMostWorkers = 8;

#ifdef __linux__
  // Call it in the thread of the caller: workers may use its other CPUs. A refusal is no error.
  void leave_by(std::vector<std::thread>& workers) {
    const int cpu = sched_getcpu();
    if (cpu == left_ || workers.size() > kMostWorkers) return;
    left_ = cpu;
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof(others), &others) != 0) return;
    CPU_CLR(static_cast<size_t>(cpu), &others);
    if (CPU_COUNT(&others) == 0) return;
    for (std::thread& worker : workers) {
      pthread_setaffinity_np(worker.native_handle(), sizeof(others), &others);
    }
  }

 private:
  int left_ = -1;
#else
  void leave_by(std::vector<std::thread>&) {}
#endif
};

}  // namespace

struct Pool::Job {
  Job(size_t chunks, const std::function<void(size_t)>& body) : chunks(chunks), body(body) {}

  bool has_more() const { return next.load(std::memory_order_relaxed) < chunks; }

  // Works on chunks until none is left; the first exception of anyone ends the job.
  void take_part(std::mutex& mutex) noexcept {
    try {
      for (size_t chunk; (chunk = next.fetch_add(1, std::memory_order_relaxed)) < chunks;) {
        body(chunk);
      }
    } catch (...) {
      next.store(chunks, std::memory_order_relaxed);
      std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
    }
  }

  const size_t chunks;
  const std::function<void(size_t)>& body;
  std::atomic<size_t> next{0};
  std::atomic<int> helpers{0};  // Workers that take part; changed under State::mutex only.
  std::exception_ptr error;     // Guarded by State::mutex.
};

struct Pool::State {
  const pid_t process = getpid();
  std::mutex mutex;
  Condition wake, left;
  std::vector<Job*> jobs;
  std::atomic<size_t> published{0};  // All jobs so far; changed under the mutex only.
  bool stopping = false;
  std::vector<std::thread> workers;
  CpuOfCaller cpu;  // Guarded by the mutex.

  // A job that wants help, or null.
  Job* wanting() const {
    const auto found =
        std::find_if(jobs.begin(), jobs.end(), [](const Job* job) { return job->has_more(); });
    return found == jobs.end() ? nullptr : *found;
  }
};

Pool::Pool(int threads)
    : threads_(threads < 1 ? usable_cores() : threads), scratch_(std::make_shared<Scratch>()) {
  if (threads_ > kMostThreads) {
    throw Error(Code::kInvalidArgument,
                "The number of threads must be at most " + std::to_string(kMostThreads) +
                    ", got " + std::to_string(threads_) + ".");
  }
  state_ = new State;
  try {
    for (int k = 1; k < threads_; ++k) state_->workers.emplace_back(work, state_);
  } catch (const std::system_error& error) {
    stop();
    throw Error(Code::kResourceExhausted, "Could not start " + std::to_string(threads_ - 1) +
                                              " threads: " + error.what());
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  // The workers of another process cannot be joined, and their locks may be held for ever.
  if (state_->process != getpid()) return;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
  delete state_;
}

void Pool::work(State* state) {
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    Job* job = nullptr;
    const auto due = [&] { return state->stopping || (job = state->wanting()); };
    if (!due()) {
      const size_t seen = state->published;
      lock.unlock();
      wait_awake([&] { return state->published != seen; });
      lock.lock();
    }
    state->wake.wait(lock, due);
    if (state->stopping) return;
    ++job->helpers;
    lock.unlock();
    job->take_part(state->mutex);
    lock.lock();
    if (--job->helpers == 0) state->left.notify_all();
  }
}

void Pool::publish(Job* job) {
  const size_t helpers = std::min(job->chunks, static_cast<size_t>(threads_)) - 1;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->jobs.push_back(job);
    ++state_->published;
    if (state_->jobs.size() == 1) state_->cpu.leave_by(state_->workers);
  }
  for (size_t k = 0; k < helpers; ++k) state_->wake.notify_one();
}

void Pool::withdraw(Job* job) {
  const auto alone = [job] { return job->helpers == 0; };
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->jobs.erase(std::find(state_->jobs.begin(), state_->jobs.end(), job));
  lock.unlock();
  wait_awake(alone);
  lock.lock();
  state_->left.wait(lock, alone);
}

void Pool::run(size_t chunks, const std::function<void(size_t)>& body) {
  if (threads_ == 1 || chunks <= 1 || state_->process != getpid()) {
    for (size_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    return;
  }
  Job job(chunks, body);
  publish(&job);
  job.take_part(state_->mutex);
  withdraw(&job);
  if (job.error) std::rethrow_exception(job.error);
}

Pool& shared_pool() {
  static Pool* const pool = new Pool(0);
  return *pool;
}

}  // namespace ete
