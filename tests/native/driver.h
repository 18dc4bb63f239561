// The common part of the checks: a failure that says where it is, and random plans.
#ifndef ETE_TESTS_DRIVER_H_
#define ETE_TESTS_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine.h"
#include "error.h"
#include "id_packing.h"
#include "layout.h"

namespace driver {

[[noreturn]] void fail(const char* file, int line, const std::string& message);

#define CHECK(condition, message) \
  ((condition) ? void()           \
               : driver::fail(__FILE__, __LINE__, std::string(#condition) + ": " + (message)))

// Checks that `body` throws an ete::Error of this code whose message has `part` in it.
void check_refused(ete::Code code, const std::string& part, const std::function<void()>& body);

// Calls `body`, which may throw an ete::Error and nothing else.
void may_refuse(const std::function<void()>& body);

using Random = std::mt19937_64;

// A whole number in [low, high].
int64_t between(Random& random, int64_t low, int64_t high);

// The ids of all features on one core.
struct Batch {
  std::vector<std::vector<int32_t>> samples;
  std::vector<std::vector<int64_t>> ids;
  std::vector<std::vector<float>> weights;

  std::vector<ete::FeatureIds> features(const ete::Layout& layout) const;

  // As long as it has words, so that a sanitizer sees what is read beyond.
  std::vector<uint32_t> grouped(const ete::Layout& layout, ete::Pool& pool) const;
};

constexpr int kSgdRule = 0, kAdagradRule = 1;  // As in native/plan_attributes.py.

// Some tables, features, hosts and combiners. Tables train by Adagrad or SGD.
ete::LayoutNumbers random_numbers(Random& random);

// One table of these rows with one feature.
ete::LayoutNumbers one_table(int64_t rows, int64_t width, int64_t samples);

// Where an id of a table lives.
uint32_t physical_row(const ete::Layout& layout, const ete::TableLayout& table, int64_t id);

// About `mean` ids for each sample, many of them the same.
Batch random_batch(Random& random, const ete::Layout& layout, int mean);

// An engine whose rows are random, from -1 to 1, and whose slots are 0.1.
std::shared_ptr<ete::Engine> random_engine(uint64_t seed, const ete::LayoutNumbers& numbers,
                                           int threads);

// Makes `values`, of the number of elements of a part, those of the part.
void assign(ete::Engine& engine, int64_t number, const std::vector<float>& values);

// By feature [samples, width].
std::vector<std::vector<float>> random_gradients(Random& random, const ete::Layout& layout);

// Grouped batches of some cores with their gradients, as `update` wants them.
struct Step {
  std::vector<std::vector<uint32_t>> words;
  std::vector<std::vector<std::vector<float>>> gradients;  // By core, then feature.

  // Nothing if it is refused. Gives the counts of what is not finite.
  std::vector<int32_t> update(ete::Engine& engine, float rate) const;
};

// The checks, by what they are about; each ends or fails.
void check_parts();    // layout, pool, memory, access, order of rows
void check_ids();      // group, ungroup, what they refuse
void check_engine();   // lifetimes, lock, registry, many threads at once
void check_results();  // look-ups and updates against a naive reference
void check_rules();    // inner loops of all instruction sets, options of updates
void check_fuzzed();   // corrupted batches
void check_owners();   // owners of rows and cores against one engine
void check_messages();  // what owners and cores refuse
void check_tpu();      // a TPU's config, ids and steps

}  // namespace driver

#endif  // ETE_TESTS_DRIVER_H_
