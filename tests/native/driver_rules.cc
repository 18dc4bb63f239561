// Checks that the inner loops give the same bits with every instruction set, and that updates
// follow the options of a table: core by core, all rows, gradients that are not finite.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "dispatch.h"
#include "driver.h"

namespace driver {
namespace {

constexpr float kRate = 0.05f;
constexpr size_t kRows = 5;

std::vector<float> random_floats(Random& random, size_t count, float low, float high) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = low + (high - low) * static_cast<float>(between(random, 0, 1000)) / 1000;
  }
  return values;
}

// Rows and slots after one step of a rule, whose options are any numbers.
std::vector<float> applied(uint64_t seed, int rule, size_t width) {
  Random random(seed);
  std::vector<float> options = random_floats(random, ete::kOptions, 0, 1);
  options[ete::kLowestWeight] = options[ete::kLowestGradient] = -0.5f;
  const std::vector<uint32_t> which = {3, 0, 3, 4};
  const std::vector<float> gradients = random_floats(random, which.size() * width, -1, 1);
  const size_t elements = kRows * width;
  std::vector<float> all = random_floats(random, 4 * elements + 1, 0, 1);
  ete::ApplyJob job{options.data(), kRate, all.data() + 1, {}, which.data(), gradients.data(),
                    which.size(), width};
  for (size_t slot = 0; slot < ete::kMaxSlots; ++slot) {
    job.slots[slot] = job.rows + (slot + 1) * elements;
  }
  ete::kernels().apply[rule](job);
  return all;
}

// Sums of 0, 1, 2, 300 and 3 occurrences, the largest magnitude behind them.
std::vector<float> summed(uint64_t seed, int width, bool factors) {
  Random random(seed);
  const std::vector<uint32_t> starts = {7, 7, 8, 10, 310, 313};
  const size_t columns = static_cast<size_t>(width), count = starts.back() - starts.front();
  const std::vector<float> table = random_floats(random, 20 * columns + 1, -1, 1);
  std::vector<const float*> sources(count + ete::kSourcesAhead, table.data());
  for (size_t i = 0; i < count; ++i) {
    sources[i] = table.data() + 1 + static_cast<size_t>(between(random, 0, 19)) * columns;
  }
  const std::vector<float> shares = random_floats(random, count, 0, 1);
  std::vector<float> out(kRows * columns + 1);
  ete::SumJob job{};
  job.sources = sources.data();
  job.factors = factors ? shares.data() : nullptr;
  job.scales = factors ? nullptr : shares.data();
  job.starts = starts.data();
  job.first = starts.front();
  job.outputs = kRows;
  job.width = width;
  job.out = out.data();
  ete::kernels().sum(job);
  const uint32_t bits = ete::kernels().largest(out.data(), out.size() - 1);
  std::memcpy(&out.back(), &bits, sizeof bits);
  return out;
}

// Rows on a grid of 5 numbers; also from what is beyond it, on a number and between two.
std::vector<float> rounded(uint64_t seed, size_t width) {
  Random random(seed);
  std::vector<float> values = random_floats(random, kRows * width + 1, -2, 2);
  std::vector<const float*> sources;
  for (size_t row = 0; row < kRows; ++row) sources.push_back(values.data() + 1 + row * width);
  std::vector<float> out(kRows * width);
  ete::kernels().round({sources.data(), kRows, width, -1.0f, 1.0f, 0.5f, out.data()});
  for (size_t i = 0; i < out.size(); ++i) {
    const float kept = std::min(std::max(values[i + 1], -1.0f), 1.0f);
    CHECK(out[i] == std::floor(kept * 2 + 0.5f) / 2, std::to_string(values[i + 1]));
  }
  return out;
}

void check_same(const std::function<std::vector<float>()>& compute, const std::string& what) {
  ete::force_isa(ete::Isa::kBaseline);
  const std::vector<float> wanted = compute();
  for (const auto& [isa, name] : {std::pair(ete::Isa::kAvx2, " by AVX2"),
                                  std::pair(ete::Isa::kAvx512, " by AVX-512")}) {
    if (!ete::force_isa(isa)) continue;
    const std::vector<float> got = compute();
    CHECK(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)) == 0,
          what + name);
  }
}

void check_instruction_sets() {
  for (const int width : {1, 3, 4, 8, 15, 16, 21, 32, 64, 100, 128, 259}) {
    const std::string of_width = " of width " + std::to_string(width);
    for (int rule = 0; rule < ete::kRules; ++rule) {
      const auto one = [&] { return applied(17, rule, static_cast<size_t>(width)); };
      check_same(one, "rule " + std::to_string(rule) + of_width);
    }
    for (const bool factors : {false, true}) {
      check_same([&] { return summed(18, width, factors); }, "sum" + of_width);
    }
    check_same([&] { return rounded(19, static_cast<size_t>(width)); }, "grid" + of_width);
  }
}

// A table of 40 rows with two features of 6 samples.
ete::LayoutNumbers numbers_of(int rule, int slots, float accumulate, float all_rows) {
  ete::LayoutNumbers numbers = one_table(40, 3, 6);
  numbers.num_hosts = 3;
  numbers.table_rules[0] = rule;
  numbers.slot_counts[0] = slots;
  numbers.table_options[ete::kAccumulate] = accumulate;
  numbers.table_options[ete::kUpdatesAllRows] = all_rows;
  numbers.feature_names.push_back("f1");
  numbers.feature_tables.push_back(0);
  numbers.feature_samples.push_back(6);
  numbers.feature_weighted.push_back(0);
  return numbers;
}

Step random_step(Random& random, ete::Engine& engine, std::vector<Batch>* batches) {
  Step step;
  for (int core = 0; core < 3; ++core) {
    batches->push_back(random_batch(random, engine.layout(), 3));
    step.words.push_back(batches->back().grouped(engine.layout(), engine.pool()));
    step.gradients.push_back(random_gradients(random, engine.layout()));
  }
  return step;
}

// What one core says about one number of a row.
float sum_of(const Batch& batch, const std::vector<std::vector<float>>& gradients, int64_t id,
             size_t d) {
  float sum = 0;
  for (size_t f = 0; f < batch.ids.size(); ++f) {
    for (size_t i = 0; i < batch.ids[f].size(); ++i) {
      const size_t sample = static_cast<size_t>(batch.samples[f][i]);
      if (batch.ids[f][i] == id) sum += gradients[f][sample * 3 + d];
    }
  }
  return sum;
}

// Without accumulation: sums of each core in the order (feature, sample), applied from core
// id % 3 on, in float, to the last bit.
void check_core_by_core() {
  Random random(21);
  const auto engine = random_engine(21, numbers_of(kAdagradRule, 1, 0, 0), 3);
  const ete::TableLayout& table = engine->layout().tables[0];
  const size_t elements = static_cast<size_t>(table.physical_rows) * 3;
  float* rows = engine->part(0).data;
  float* slots = engine->part(3).data;  // After the three parts of the rows.
  std::vector<float> wanted(rows, rows + elements), sums(slots, slots + elements);
  std::vector<Batch> batches;
  const Step step = random_step(random, *engine, &batches);
  for (int64_t id = 0; id < 40; ++id) {
    const size_t row = physical_row(engine->layout(), table, id);
    for (int64_t turn = 0; turn < 3; ++turn) {
      const size_t core = static_cast<size_t>((id + turn) % 3);
      for (size_t d = 0; d < 3; ++d) {
        const float gradient = sum_of(batches[core], step.gradients[core], id, d);
        sums[row * 3 + d] += gradient * gradient;
        wanted[row * 3 + d] -= kRate * gradient / std::sqrt(sums[row * 3 + d]);
      }
    }
  }
  step.update(*engine, kRate);
  CHECK(std::memcmp(rows, wanted.data(), elements * sizeof(float)) == 0, "rows");
  CHECK(std::memcmp(slots, sums.data(), elements * sizeof(float)) == 0, "slots");
}

// Momentum 0.5 moves rows without gradient too: those are at w - rate * 0.5 * 0.1.
void check_all_rows() {
  Random random(22);
  ete::LayoutNumbers numbers = numbers_of(6, 1, 1, 1);
  numbers.table_options[ete::kOwnOptions] = 0.5f;
  const auto engine = random_engine(22, numbers, 2);
  numbers.table_options[ete::kUpdatesAllRows] = 0;
  const auto lazy = random_engine(22, numbers, 2);
  std::vector<Batch> batches;
  const Step step = random_step(random, *engine, &batches);
  step.update(*engine, kRate);
  step.update(*lazy, kRate);
  int untouched = 0;
  for (int64_t id = 0; id < 40; ++id) {
    const size_t at = 3 * physical_row(engine->layout(), engine->layout().tables[0], id);
    const float got = engine->part(0).data[at], other = lazy->part(0).data[at];
    const bool touched = lazy->part(3).data[at] != 0.1f;
    untouched += !touched;
    CHECK(got == (touched ? other : other - kRate * (0.5f * 0.1f)), std::to_string(id));
  }
  CHECK(untouched > 0 && untouched < 40, std::to_string(untouched));
}

// Three ids, two of them the same row, of one core or one more; sample 5 has none.
void check_counts(float accumulate, size_t cores, float first, float second, float last,
                  int32_t wanted) {
  const auto engine = random_engine(23, numbers_of(kSgdRule, 0, accumulate, 0), 2);
  const size_t elements = size_t{3} * engine->layout().tables[0].physical_rows;
  const std::vector<float> before(engine->part(0).data, engine->part(0).data + elements);
  const std::vector<Batch> batches = {
      {{{0, 2}, {}}, {{7, 8}, {}}, {{}, {}}}, {{{1}, {}}, {{7}, {}}, {{}, {}}}};
  const Batch both{{{0, 1, 2}, {}}, {{7, 7, 8}, {}}, {{}, {}}};
  std::vector<float> gradient(18, 1.0f);
  gradient[0] = first;
  gradient[3] = second;
  gradient[16] = last;
  Step step;
  for (size_t core = 0; core < cores; ++core) {
    const Batch& batch = cores == 1 ? both : batches[core];
    step.words.push_back(batch.grouped(engine->layout(), engine->pool()));
    step.gradients.push_back({gradient, std::vector<float>(18, 1.0f)});
  }
  const int32_t got = step.update(*engine, kRate)[0];
  CHECK(got == wanted, std::to_string(got) + ", wanted " + std::to_string(wanted));
  const bool same =
      std::memcmp(before.data(), engine->part(0).data, elements * sizeof(float)) == 0;
  CHECK(same == (wanted > 0), "written");
}

}  // namespace

void check_rules() {
  check_instruction_sets();
  check_core_by_core();
  check_all_rows();
  const float infinity = std::numeric_limits<float>::infinity(), big = 3e38f;
  for (const size_t cores : {size_t{1}, size_t{2}}) {
    check_counts(1, cores, 1, 1, 1, 0);
    check_counts(1, cores, big, big, 1, 1);   // The sum overflows,
    check_counts(1, cores, big, -big, 1, 0);  // this one does not.
    check_counts(1, cores, infinity, 1, 1, 1);
    check_counts(1, cores, infinity, -infinity, 1, 1);
    check_counts(1, cores, 1, 1, std::nanf(""), 0);  // Of a sample without ids.
  }
  check_counts(0, 1, big, big, 1, 1);
  check_counts(0, 2, big, big, 1, 0);  // Alone neither core overflows.
  check_counts(0, 1, infinity, -infinity, 1, 1);
  check_counts(0, 2, infinity, -infinity, 1, 2);
}

}  // namespace driver
