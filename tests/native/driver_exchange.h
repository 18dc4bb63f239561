// Owners of rows and the cores that use them, as tasks of a cluster would be.
#ifndef ETE_TESTS_DRIVER_EXCHANGE_H_
#define ETE_TESTS_DRIVER_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "driver.h"
#include "exchange.h"
#include "message.h"
#include "owner_parts.h"
#include "split.h"

namespace driver {

constexpr float kRate = 0.05f;

using Floats = std::vector<float>;
using Words = std::vector<int32_t>;

template <typename T>
std::vector<T*> pointers_to(std::vector<std::vector<T>>& arrays) {
  std::vector<T*> result;
  for (auto& one : arrays) result.push_back(one.data());
  return result;
}

template <typename T>
std::vector<const T*> pointers_to(const std::vector<std::vector<T>>& arrays) {
  std::vector<const T*> result;
  for (const auto& one : arrays) result.push_back(one.data());
  return result;
}

// Random numbers of a plan: each table has a feature.
ete::LayoutNumbers exchange_numbers(Random& random);

// The engines of all hosts, with the rows and slots of an engine of the whole plan.
struct Owners {
  Owners(const ete::LayoutNumbers& numbers, const ete::Engine& whole);

  // Calls use(engine, number of the part there, the part of the whole plan).
  template <typename Use>
  void for_parts(const ete::Engine& whole, const Use& use) {
    std::vector<int64_t> counts(engines.size());
    int64_t number = 0;
    for (const ete::TableLayout& table : whole.layout().tables) {
      for (int slot = 0; slot <= table.slots; ++slot) {
        for (size_t host = 0; host < table.part_rows.size(); ++host) {
          use(*engines[host], counts[host]++, whole.part(number++));
        }
      }
    }
  }

  const ete::Exchange exchange;
  std::vector<std::shared_ptr<ete::Engine>> engines;
};

// What one core exchanges in one step. Links point to its other members: it may be moved, and a
// copy must not outlive it.
struct Exchanged {
  Exchanged(const Owners& owners, const Batch& batch, ete::Pool& pool);

  // Appends what an owner makes of a message.
  void receive(ete::Engine& engine, const Words& words);

  std::vector<Words> messages, kept, lengths;  // By owner, as the next two.
  std::vector<std::vector<uint32_t>> grouped;
  std::vector<ete::Links> links;
  Floats scales;
};

// Where the samples of each feature begin in a part.
template <typename T>
std::vector<T*> places_in(const ete::Layout& layout, const Words& lengths, T* part) {
  std::vector<T*> result;
  for (size_t f = 0; f < layout.features.size(); ++f) {
    result.push_back(part);
    part += lengths[f] * layout.tables[static_cast<size_t>(layout.features[f].table)].width;
  }
  return result;
}

// Sends the gradients of some cores to all owners. Gives what is not finite, by owner and table.
std::vector<std::vector<int32_t>> update(const Owners& owners,
                                         const std::vector<Exchanged>& cores,
                                         const std::vector<std::vector<Floats>>& gradients,
                                         ete::Pool& pool, bool only_count);

}  // namespace driver

#endif  // ETE_TESTS_DRIVER_EXCHANGE_H_
