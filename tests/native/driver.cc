// Runs all checks of the engine's functions without TensorFlow. tools/sanitize_native.py runs it
// with the sanitizers, which find faults that a test of the operations cannot.
#include "driver.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>

namespace driver {

void fail(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message.c_str());
  std::exit(1);
}

void check_refused(ete::Code code, const std::string& part, const std::function<void()>& body) {
  try {
    body();
  } catch (const ete::Error& error) {
    CHECK(error.code() == code, error.what());
    CHECK(std::string(error.what()).find(part) != std::string::npos,
          "\"" + part + "\" is not in: " + error.what());
    return;
  }
  CHECK(false, "nothing was refused that should say \"" + part + "\"");
}

void may_refuse(const std::function<void()>& body) {
  try {
    body();
  } catch (const ete::Error&) {
  }
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

std::vector<ete::FeatureIds> Batch::features(const ete::Layout& layout) const {
  std::vector<ete::FeatureIds> result;
  for (size_t f = 0; f < ids.size(); ++f) {
    const float* own = layout.features[f].weighted ? weights[f].data() : nullptr;
    result.push_back({samples[f].data(), ids[f].data(), own, ids[f].size()});
  }
  return result;
}

std::vector<uint32_t> Batch::grouped(const ete::Layout& layout, ete::Pool& pool) const {
  std::vector<uint32_t> words(ete::group_bound(layout, features(layout)));
  ete::group(layout, features(layout), pool, words.data(), words.size());
  return {words.begin(), words.begin() + words[3]};
}

namespace {

void add_table(ete::LayoutNumbers& numbers, int64_t rows, int64_t width, int64_t combiner,
               int64_t rule, bool accumulate) {
  const float infinity = std::numeric_limits<float>::infinity();
  numbers.table_names.push_back("t" + std::to_string(numbers.table_names.size()));
  numbers.table_rows.push_back(rows);
  numbers.table_widths.push_back(width);
  numbers.table_combiners.push_back(combiner);
  numbers.table_rules.push_back(rule);
  numbers.slot_counts.push_back(rule == kAdagradRule);
  std::vector<float> options(ete::kOptions, 0.0f);
  options[ete::kAccumulate] = accumulate;
  options[ete::kLowestWeight] = options[ete::kLowestGradient] = -infinity;
  options[ete::kHighestWeight] = options[ete::kHighestGradient] = infinity;
  numbers.table_options.insert(numbers.table_options.end(), options.begin(), options.end());
}

void add_feature(ete::LayoutNumbers& numbers, int64_t table, int64_t samples, bool weighted) {
  numbers.feature_names.push_back("f" + std::to_string(numbers.feature_names.size()));
  numbers.feature_tables.push_back(table);
  numbers.feature_samples.push_back(samples);
  numbers.feature_weighted.push_back(weighted);
}

}  // namespace

ete::LayoutNumbers one_table(int64_t rows, int64_t width, int64_t samples) {
  ete::LayoutNumbers numbers;
  add_table(numbers, rows, width, ete::kSum, kAdagradRule, true);
  add_feature(numbers, 0, samples, false);
  return numbers;
}

ete::LayoutNumbers random_numbers(Random& random) {
  const std::vector<int64_t> widths = {1, 3, 4, 8, 16, 20, 32, 64, 70, 128};
  ete::LayoutNumbers numbers;
  numbers.num_hosts = between(random, 1, 5);
  numbers.strategy = between(random, 0, 1);
  const int64_t tables = between(random, 1, 4);
  for (int64_t t = 0; t < tables; ++t) {
    const int64_t rows = between(random, 0, 1) ? between(random, 1, 9) : between(random, 1, 3000);
    add_table(numbers, rows, widths[static_cast<size_t>(between(random, 0, 9))],
              between(random, 0, 2), between(random, 0, 1), between(random, 0, 2) > 0);
  }
  const int64_t features = between(random, 1, 6);
  for (int64_t f = 0; f < features; ++f) {
    add_feature(numbers, between(random, 0, tables - 1), between(random, 1, 40),
                between(random, 0, 3) == 0);
  }
  return numbers;
}

uint32_t physical_row(const ete::Layout& layout, const ete::TableLayout& table, int64_t id) {
  return ete::Locator(layout, table)(static_cast<uint32_t>(id));
}

Batch random_batch(Random& random, const ete::Layout& layout, int mean) {
  Batch batch;
  for (const ete::FeatureLayout& feature : layout.features) {
    const int64_t rows = layout.tables[static_cast<size_t>(feature.table)].vocabulary;
    std::vector<int32_t> samples;
    std::vector<int64_t> ids;
    std::vector<float> weights;
    for (int32_t sample = 0; sample < feature.samples; ++sample) {
      for (int64_t left = between(random, 0, 2 * mean); left > 0; --left) {
        const int64_t most = between(random, 0, 1) ? rows - 1 : std::min<int64_t>(rows - 1, 3);
        samples.push_back(sample);
        ids.push_back(between(random, 0, most));
        weights.push_back(static_cast<float>(between(random, 0, 8)) / 4);
      }
    }
    batch.samples.push_back(samples);
    batch.ids.push_back(ids);
    batch.weights.push_back(weights);
  }
  return batch;
}

void assign(ete::Engine& engine, int64_t number, const std::vector<float>& values) {
  engine.offer(number, {values.data(), nullptr});
  engine.take(number);
}

std::shared_ptr<ete::Engine> random_engine(uint64_t seed, const ete::LayoutNumbers& numbers,
                                           int threads) {
  Random random(seed);
  auto engine = std::make_shared<ete::Engine>(ete::Layout::make(numbers), threads);
  for (size_t number = 0; number < engine->parts(); ++number) {
    const ete::Part& part = engine->part(static_cast<int64_t>(number));
    std::vector<float> values(part.elements(), 0.1f);
    for (size_t i = 0; part.slot == 0 && i < values.size(); ++i) {
      values[i] = static_cast<float>(between(random, -1000, 1000)) / 1000;
    }
    assign(*engine, static_cast<int64_t>(number), values);
  }
  return engine;
}

std::vector<std::vector<float>> random_gradients(Random& random, const ete::Layout& layout) {
  std::vector<std::vector<float>> gradients;
  for (const ete::FeatureLayout& feature : layout.features) {
    const int width = layout.tables[static_cast<size_t>(feature.table)].width;
    gradients.emplace_back(static_cast<size_t>(feature.samples * width));
    for (float& value : gradients.back()) {
      value = static_cast<float>(between(random, -1000, 1000)) / 1000;
    }
  }
  return gradients;
}

std::vector<int32_t> Step::update(ete::Engine& engine, float rate) const {
  std::vector<std::vector<const float*>> pointers;
  for (const auto& core : gradients) {
    pointers.emplace_back();
    for (const auto& one : core) pointers.back().push_back(one.data());
  }
  std::vector<ete::CoreGradients> cores;
  for (size_t core = 0; core < words.size(); ++core) {
    cores.push_back({words[core].data(), words[core].size(), pointers[core].data()});
  }
  const size_t tables = engine.layout().tables.size();
  std::vector<int32_t> nonfinite(tables);
  engine.update(cores, std::vector<float>(tables, rate).data(), nonfinite.data());
  return nonfinite;
}

}  // namespace driver

int main() {
  const std::vector<std::pair<const char*, void (*)()>> checks = {
      {"layout, pool, memory, access", driver::check_parts},
      {"ids", driver::check_ids},
      {"engine", driver::check_engine},
      {"results", driver::check_results},
      {"rules", driver::check_rules},
      {"fuzzed batches", driver::check_fuzzed},
      {"owners", driver::check_owners},
      {"messages", driver::check_messages},
      {"a TPU's operations", driver::check_tpu}};
  for (const auto& [name, check] : checks) {
    const auto begin = std::chrono::steady_clock::now();
    check();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %.1f s\n", name, took.count());
    std::fflush(stdout);
  }
  return 0;
}
