// The embedding engine of a TPU on this machine: what its operations configure, feed and train.
//
// A process has one at most, as it has one TPU. Each core of the config has a queue of batches. A
// step looks up one batch of each core. If it trains, the tables change when the gradients of all
// cores are there, and no core looks up its next batch before.
#ifndef ETE_TPU_SYSTEM_H_
#define ETE_TPU_SYSTEM_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "condition.h"
#include "engine.h"
#include "id_packing.h"
#include "tpu_config.h"

namespace ete {

constexpr size_t kTpuQueue = 2;  // Batches that may wait per core.

class TpuSystem {
 public:
  // A batch of one core, grouped.
  struct Batch {
    Scratch::Lease words;
    size_t count;
    bool trains;
  };

  // The gradients of one core, and what keeps them alive.
  struct Gradients {
    std::vector<const float*> of_feature;
    std::vector<float> rates;  // By tag.
    std::shared_ptr<const void> owner;
  };

  // `bytes` is a TPUEmbeddingConfiguration. A wait of more than `patience` is an error.
  explicit TpuSystem(const std::string& bytes,
                     std::chrono::milliseconds patience = std::chrono::seconds(60))
      : TpuSystem(bytes, TpuConfig::read(bytes), patience) {}

  const TpuConfig& config() const { return config_; }
  Engine& engine() { return engine_; }

  // Throws Error kInvalidArgument unless `bytes` is empty or the config of this engine.
  void require_config(const std::string& bytes) const;

  // The number of the part of a host in a table or slot; see Engine. Throws Error kInvalidArgument
  // for a table, algorithm or host that the config does not have.
  int64_t part(const std::string& table, size_t algorithm, int64_t hosts, int64_t host) const;

  // Appends a batch, whose features all have weights. Waits while the queue is full. Where there is
  // one core, its number may be -1; so it may be below.
  void enqueue(int64_t core, const std::vector<FeatureIds>& features, bool trains);

  // Takes the next batch, once it is there and the step before has trained. If that does not train
  // in time, it is over.
  std::shared_ptr<const Batch> next(int64_t core);

  // Takes the gradients of the batch that a core has looked up. The last core of a step trains.
  // Throws Error kInvalidArgument for gradients that are not finite, naming the table, and for
  // rates that differ from those of another core. Then nothing is changed, and the step is over.
  void send(int64_t core, Gradients gradients);

  // Ends all waits, now and later.
  void close();

  // That of the process; throws Error kFailedPrecondition if none is configured. `configure` closes
  // the one before, unless it refuses the config, and `shut_down` leaves none.
  static std::shared_ptr<TpuSystem> current();
  static void configure(const std::string& bytes);
  static void shut_down();

 private:
  struct Core {
    std::deque<std::shared_ptr<const Batch>> waiting;
    std::shared_ptr<const Batch> looked_up;  // Until the step has trained.
    std::shared_ptr<const Gradients> gradients;
  };

  TpuSystem(const std::string& bytes, TpuConfig config, std::chrono::milliseconds patience);

  Core& core(int64_t number);
  bool wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready);
  [[noreturn]] void refuse_wait(const Core& core, const std::string& what) const;
  void train();
  void end_step();

  const std::string bytes_;
  const TpuConfig config_;
  const std::chrono::milliseconds patience_;
  Engine engine_;
  std::mutex mutex_;
  Condition changed_;
  std::vector<Core> cores_;
  bool closed_ = false;
};

}  // namespace ete

#endif  // ETE_TPU_SYSTEM_H_
