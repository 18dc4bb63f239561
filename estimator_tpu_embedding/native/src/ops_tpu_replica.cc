// Kernels of the operations around the one replica of a TPU with one core: what marks its
// computation passes values on, and tuples wait in the queues of infeed and outfeed.
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "condition.h"
#include "ops_common.h"
#include "tpu_system.h"

namespace ete {
namespace {

constexpr size_t kMostTuples = 1000;
constexpr std::chrono::seconds kPatience(60);

// A queue of tuples between the host and the core.
class Tuples {
 public:
  void put(std::vector<Tensor> tuple) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.size() == kMostTuples) {
      throw Error(Code::kResourceExhausted, std::to_string(kMostTuples) + " tuples wait already.");
    }
    waiting_.push_back(std::move(tuple));
    changed_.notify_one();
  }

  std::vector<Tensor> take() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_until(lock, std::chrono::steady_clock::now() + kPatience,
                             [&] { return !waiting_.empty(); })) {
      throw Error(Code::kDeadlineExceeded, "No tuple came within a minute.");
    }
    std::vector<Tensor> tuple = std::move(waiting_.front());
    waiting_.pop_front();
    return tuple;
  }

  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.clear();
  }

 private:
  std::mutex mutex_;
  Condition changed_;
  std::deque<std::vector<Tensor>> waiting_;
};

// Those of the process. Never freed: operations may still end while the process does.
Tuples& tuples(bool out) {
  static Tuples* const both = new Tuples[2];
  return both[out];
}

template <bool Out>
class PutKernel {
 public:
  explicit PutKernel(const Attributes&) {}

  void compute(Context& context) {
    std::vector<Tensor> tuple;
    for (int i = 0; i < context.inputs(); ++i) tuple.push_back(context.input(i));
    tuples(Out).put(std::move(tuple));
  }
};

template <bool Out>
class TakeTupleKernel {
 public:
  explicit TakeTupleKernel(const Attributes&) {}

  void compute(Context& context) {
    const std::vector<Tensor> tuple = tuples(Out).take();
    if (tuple.size() != static_cast<size_t>(context.outputs())) {
      throw Error(Code::kInvalidArgument, "A tuple of " + std::to_string(context.outputs()) +
                                              " was expected, and one of " +
                                              std::to_string(tuple.size()) + " came.");
    }
    for (int i = 0; i < context.outputs(); ++i) {
      context.set_output(i, tuple[static_cast<size_t>(i)]);
    }
  }
};

// Makes input number `Input` every output, of which there are none or some.
template <int Input>
class PassKernel {
 public:
  explicit PassKernel(const Attributes& attributes) {
    for (const char* name : {"num_replicas", "N"}) {
      if (attributes.has(name) && attributes.number(name) != 1) {
        throw Error(Code::kUnimplemented, "These kernels compute one replica, not " +
                                              std::to_string(attributes.number(name)) + ".");
      }
    }
  }

  void compute(Context& context) {
    for (int i = 0; i < context.outputs(); ++i) context.set_output(i, context.input(Input));
  }
};

// Says that the computation was compiled, by an empty message.
class CompiledKernel {
 public:
  explicit CompiledKernel(const Attributes&) {}
  void compute(Context& context) { context.allocate(0, kTfString, {}); }
};

}  // namespace

void clear_tuples() {
  for (const bool out : {false, true}) tuples(out).clear();
}

std::vector<Operation> tpu_replica_operations() {
  return {kernel_of<PassKernel<0>>("TPUReplicateMetadata"),
          kernel_of<PassKernel<0>>("TPUReplicatedInput"),
          kernel_of<PassKernel<0>>("TPUReplicatedOutput"),
          kernel_of<PassKernel<0>>("CrossReplicaSum"),
          kernel_of<PassKernel<1>>("TPUEmbeddingActivations"),
          kernel_of<CompiledKernel>("TPUCompilationResult"),
          kernel_of<PutKernel<false>>("InfeedEnqueueTuple"),
          kernel_of<TakeTupleKernel<false>>("InfeedDequeueTuple"),
          kernel_of<PutKernel<true>>("OutfeedEnqueueTuple"),
          kernel_of<TakeTupleKernel<true>>("OutfeedDequeueTuple")};
}

}  // namespace ete
