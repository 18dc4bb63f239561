#include "tpu_system.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "error.h"

namespace ete {
namespace {

// The one of this process. Never freed: operations may still end while the process does.
struct Current {
  std::mutex mutex;
  std::shared_ptr<TpuSystem> system;
};

Current& current_system() {
  static Current* const current = new Current;
  return *current;
}

void replace(std::shared_ptr<TpuSystem> next) {
  {
    const std::lock_guard<std::mutex> lock(current_system().mutex);
    std::swap(current_system().system, next);
  }
  if (next != nullptr) next->close();
}

}  // namespace

TpuSystem::TpuSystem(const std::string& bytes, TpuConfig config,
                     std::chrono::milliseconds patience)
    : bytes_(bytes),
      config_(std::move(config)),
      patience_(patience),
      engine_(Layout::make(config_.numbers), 0),
      cores_(static_cast<size_t>(config_.cores)) {}

void TpuSystem::require_config(const std::string& bytes) const {
  if (!bytes.empty() && bytes != bytes_) {
    throw Error(Code::kInvalidArgument,
                "The config of this operation is not that with which the embedding engine was "
                "configured; run ConfigureDistributedTPU with it first.");
  }
}

int64_t TpuSystem::part(const std::string& table, size_t algorithm, int64_t hosts,
                        int64_t host) const {
  const std::vector<TableLayout>& tables = engine_.layout().tables;
  int64_t number = 0;
  for (size_t t = 0; t < tables.size(); ++t) {
    const int64_t parts = static_cast<int64_t>(tables[t].part_rows.size());
    if (tables[t].name != table) {
      number += parts * (1 + tables[t].slots);
      continue;
    }
    const char* trained = tpu_algorithm(config_.tables[t].algorithm).name;
    if (config_.tables[t].algorithm != algorithm) {
      throw Error(Code::kInvalidArgument, "Table \"" + table + "\" is trained by " + trained +
                                              ", not by " + tpu_algorithm(algorithm).name + ".");
    }
    if (hosts != config_.numbers.num_hosts || host < 0 || host >= hosts || host >= parts) {
      throw Error(Code::kInvalidArgument,
                  "Table \"" + table + "\": there is no shard " + std::to_string(host) + " of " +
                      std::to_string(hosts) + "; it has " + std::to_string(parts) + ".");
    }
    return number + host;
  }
  throw Error(Code::kInvalidArgument, "There is no table \"" + table + "\" in the config.");
}

TpuSystem::Core& TpuSystem::core(int64_t number) {
  if (number == -1 && config_.cores == 1) number = 0;
  if (number < 0 || number >= config_.cores) {
    throw Error(Code::kInvalidArgument,
                "The core must be from 0 to " + std::to_string(config_.cores - 1) + ", got " +
                    std::to_string(number) +
                    ". The attribute device_ordinal says it, or _ete_core.");
  }
  return cores_[static_cast<size_t>(number)];
}

bool TpuSystem::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& ready) {
  const bool done = changed_.wait_until(lock, std::chrono::steady_clock::now() + patience_,
                                        [&] { return closed_ || ready(); });
  if (closed_) {
    throw Error(Code::kCancelled,
                "The embedding engine was shut down or configured anew meanwhile.");
  }
  return done;
}

void TpuSystem::refuse_wait(const Core& core, const std::string& what) const {
  throw Error(Code::kDeadlineExceeded, "Core " + std::to_string(&core - cores_.data()) + ": " +
                                           what + " within " +
                                           std::to_string(patience_.count()) + " ms.");
}

void TpuSystem::enqueue(int64_t number, const std::vector<FeatureIds>& features, bool trains) {
  Core& of_core = core(number);
  if (trains && !config_.trains) {
    throw Error(Code::kInvalidArgument, "The mode of the config is not TRAINING.");
  }
  const size_t bound = group_bound(engine_.layout(), features);
  auto batch = std::make_shared<Batch>(Batch{
      engine_.pool().scratch()->borrow(bound * sizeof(uint32_t), "a batch"), bound, trains});
  group(engine_.layout(), features, engine_.pool(), batch->words.as<uint32_t>(), bound);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!wait(lock, [&] { return of_core.waiting.size() < kTpuQueue; })) {
    refuse_wait(of_core, "its queue is full, and nothing was taken from it");
  }
  of_core.waiting.push_back(std::move(batch));
  changed_.notify_all();
}

std::shared_ptr<const TpuSystem::Batch> TpuSystem::next(int64_t number) {
  Core& of_core = core(number);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!wait(lock, [&] { return of_core.looked_up == nullptr && !of_core.waiting.empty(); })) {
    if (of_core.looked_up == nullptr) refuse_wait(of_core, "no batch came");
    end_step();
    refuse_wait(of_core, "the step before, which is over now, did not get all gradients");
  }
  std::shared_ptr<const Batch> batch = std::move(of_core.waiting.front());
  of_core.waiting.pop_front();
  if (batch->trains) of_core.looked_up = batch;
  changed_.notify_all();
  return batch;
}

void TpuSystem::send(int64_t number, Gradients gradients) {
  Core& of_core = core(number);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (of_core.looked_up == nullptr || of_core.gradients != nullptr) {
    throw Error(Code::kFailedPrecondition,
                "The core has looked up no batch that waits for gradients. The operation that "
                "sends them must run after the one that receives activations.");
  }
  of_core.gradients = std::make_shared<const Gradients>(std::move(gradients));
  if (std::any_of(cores_.begin(), cores_.end(),
                  [](const Core& one) { return one.gradients == nullptr; })) {
    return;
  }
  try {
    train();
  } catch (...) {
    end_step();
    throw;
  }
  end_step();
}

void TpuSystem::train() {
  const std::vector<float>& rates = cores_.front().gradients->rates;
  std::vector<CoreGradients> cores;
  for (const Core& one : cores_) {
    if (one.gradients->rates != rates) {
      throw Error(Code::kInvalidArgument, "All cores must send the same learning rates.");
    }
    cores.push_back({one.looked_up->words.as<uint32_t>(), one.looked_up->count,
                     one.gradients->of_feature.data()});
  }
  std::vector<float> of_table;
  for (size_t t = 0; t < config_.tables.size(); ++t) {
    const TpuTable& table = config_.tables[t];
    const std::string where = "Table \"" + config_.numbers.table_names[t] + '"';
    const size_t tag = static_cast<size_t>(table.rate_tag);
    if (table.rate_tag >= 0 && tag >= rates.size()) {
      throw Error(Code::kInvalidArgument, where + ": there is no learning rate of tag " +
                                              std::to_string(tag) + " among " +
                                              std::to_string(rates.size()) + ".");
    }
    of_table.push_back(table.rate_tag < 0 ? table.rate : rates[tag]);
    if (!(of_table.back() >= 0 && std::isfinite(of_table.back()))) {
      throw Error(Code::kInvalidArgument, where + ": its learning rate must be a finite number "
                                                  ">= 0, got " +
                                              std::to_string(of_table.back()) + ".");
    }
  }
  std::vector<int32_t> nonfinite(config_.tables.size());
  engine_.update(cores, of_table.data(), nonfinite.data());
  for (size_t t = 0; t < nonfinite.size(); ++t) {
    if (nonfinite[t] != 0) {
      throw Error(Code::kInvalidArgument,
                  "Table \"" + config_.numbers.table_names[t] + "\": " +
                      std::to_string(nonfinite[t]) +
                      " elements of its gradients are not finite; no table was changed.");
    }
  }
}

void TpuSystem::end_step() {
  for (Core& one : cores_) {
    one.looked_up = nullptr;
    one.gradients = nullptr;
  }
  changed_.notify_all();
}

void TpuSystem::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::shared_ptr<TpuSystem> TpuSystem::current() {
  const std::lock_guard<std::mutex> lock(current_system().mutex);
  if (current_system().system == nullptr) {
    throw Error(Code::kFailedPrecondition,
                "No embedding engine is configured; run ConfigureDistributedTPU with its config.");
  }
  return current_system().system;
}

void TpuSystem::configure(const std::string& bytes) {
  Layout::make(TpuConfig::read(bytes).numbers);
  replace(nullptr);  // The memory of its tables is freed before there are new ones.
  replace(std::make_shared<TpuSystem>(bytes));
}

void TpuSystem::shut_down() { replace(nullptr); }

}  // namespace ete
