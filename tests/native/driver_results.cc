// Checks lookups and updates of whole engines against a naive reference in double precision. They
// are bit for bit equal for any number of threads, any spread over cores, every instruction set.
#include <cmath>
#include <cstring>

#include "dispatch.h"
#include "driver.h"

namespace driver {
namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr float kRate = 0.05f;

// Tables by id, in double.
struct Reference {
  explicit Reference(const ete::Engine& engine) : layout(engine.layout()) {
    int64_t number = 0;
    for (const ete::TableLayout& table : layout.tables) {
      for (int slot = 0; slot <= table.slots; ++slot) {
        tables.emplace_back(static_cast<size_t>(table.vocabulary));
        const float* block = engine.part(number).data;
        for (size_t id = 0; id < tables.back().size(); ++id) {
          const float* row = block + static_cast<size_t>(table.width) *
                                         physical_row(layout, table, static_cast<int64_t>(id));
          tables.back()[id].assign(row, row + table.width);
        }
        number += static_cast<int64_t>(table.part_rows.size());
      }
      slots.push_back(tables.size() - 1);
      rows.push_back(tables.size() - 1 - static_cast<size_t>(table.slots));
    }
  }

  const ete::Layout& layout;
  std::vector<Matrix> tables;
  std::vector<size_t> rows, slots;  // By table: index of its rows, of its last slot.
};

// How much each id of a feature counts in its sample.
std::vector<double> shares_of(const Batch& batch, size_t f, const ete::Layout& layout) {
  const ete::FeatureLayout& feature = layout.features[f];
  const int combiner = layout.tables[static_cast<size_t>(feature.table)].combiner;
  std::vector<double> sums(static_cast<size_t>(feature.samples)), shares;
  for (size_t i = 0; i < batch.ids[f].size(); ++i) {
    const double weight = feature.weighted ? batch.weights[f][i] : 1.0;
    shares.push_back(weight);
    sums[static_cast<size_t>(batch.samples[f][i])] +=
        combiner == ete::kSqrtn ? weight * weight : weight;
  }
  for (size_t i = 0; combiner != ete::kSum && i < shares.size(); ++i) {
    double norm = sums[static_cast<size_t>(batch.samples[f][i])];
    if (combiner == ete::kSqrtn) norm = std::sqrt(norm);
    shares[i] = norm == 0 ? 0 : shares[i] / norm;
  }
  return shares;
}

// Of a batch by any layout of the engine.
void lookup(const Reference& from, const Batch& batch, const ete::Layout& layout, size_t f,
            std::vector<double>* out) {
  const size_t t = static_cast<size_t>(from.layout.features[f].table);
  const size_t width = static_cast<size_t>(from.layout.tables[t].width);
  const std::vector<double> shares = shares_of(batch, f, layout);
  out->assign(static_cast<size_t>(from.layout.features[f].samples) * width, 0);
  for (size_t i = 0; i < shares.size(); ++i) {
    const auto& row = from.tables[from.rows[t]][static_cast<size_t>(batch.ids[f][i])];
    const size_t at = static_cast<size_t>(batch.samples[f][i]) * width;
    for (size_t d = 0; d < width; ++d) (*out)[at + d] += shares[i] * row[d];
  }
}

void update_row(Reference& to, size_t t, size_t id, const std::vector<double>& gradient) {
  const ete::TableLayout& table = to.layout.tables[t];
  for (size_t d = 0; d < gradient.size(); ++d) {
    double& weight = to.tables[to.rows[t]][id][d];
    double& slot = to.tables[to.slots[t]][id][d];
    if (table.rule == kAdagradRule) slot += gradient[d] * gradient[d];
    weight -= kRate * gradient[d] / (table.rule == kAdagradRule ? std::sqrt(slot) : 1.0);
  }
}

// With one sum for all cores, or one for each, from that of the row on.
void update_table(Reference& to, size_t t, const std::vector<Batch>& batches,
                  const std::vector<const ete::Layout*>& layouts, const Step& step) {
  const ete::TableLayout& table = to.layout.tables[t];
  const size_t width = static_cast<size_t>(table.width);
  const size_t vocabulary = static_cast<size_t>(table.vocabulary);
  const bool accumulate = table.options[ete::kAccumulate] != 0.0f;
  std::vector<Matrix> sums(accumulate ? 1 : batches.size(), Matrix(vocabulary));
  for (size_t core = 0; core < batches.size(); ++core) {
    for (const int feature : table.features) {
      const size_t f = static_cast<size_t>(feature);
      const std::vector<double> shares = shares_of(batches[core], f, *layouts[core]);
      for (size_t i = 0; i < shares.size(); ++i) {
        auto& sum = sums[core % sums.size()][static_cast<size_t>(batches[core].ids[f][i])];
        sum.resize(width);
        const size_t at = static_cast<size_t>(batches[core].samples[f][i]) * width;
        for (size_t d = 0; d < width; ++d) sum[d] += shares[i] * step.gradients[core][f][at + d];
      }
    }
  }
  for (size_t id = 0; id < vocabulary; ++id) {
    for (size_t turn = 0; turn < sums.size(); ++turn) {
      update_row(to, t, id, sums[(id + turn) % sums.size()][id]);
    }
  }
}

void check_close(double got, double wanted, const std::string& what) {
  CHECK(std::fabs(got - wanted) <= 2e-5 * (1 + std::fabs(wanted)),
        what + ": " + std::to_string(got) + ", wanted " + std::to_string(wanted));
}

void check_lookup(ete::Engine& engine, const Reference& wanted, const Batch& batch,
                  const ete::Layout& layout, const std::vector<uint32_t>& words) {
  std::vector<std::vector<float>> out;
  std::vector<std::vector<double>> sums(batch.ids.size());
  std::vector<float*> pointers;
  for (size_t f = 0; f < batch.ids.size(); ++f) {
    lookup(wanted, batch, layout, f, &sums[f]);
    out.emplace_back(sums[f].size(), 99.0f);
  }
  for (auto& one : out) pointers.push_back(one.data());
  engine.lookup(words.data(), words.size(), pointers);
  for (size_t f = 0; f < out.size(); ++f) {
    for (size_t i = 0; i < out[f].size(); ++i) check_close(out[f][i], sums[f][i], "activation");
  }
}

// The layout of an engine, or one with weights for other features.
const ete::Layout& some_layout(Random& random, ete::Engine& engine) {
  std::vector<int64_t> weighted;
  for (size_t f = 0; f < engine.layout().features.size(); ++f) {
    weighted.push_back(between(random, 0, 1));
  }
  return engine.layouts().with(between(random, 0, 1) ? weighted : std::vector<int64_t>());
}

void check_world(Random& random) {
  const ete::LayoutNumbers numbers = random_numbers(random);
  const auto engine = random_engine(random(), numbers, static_cast<int>(between(random, 1, 4)));
  Reference wanted(*engine);
  for (int round = 0; round < 3; ++round) {
    std::vector<Batch> batches;
    std::vector<const ete::Layout*> layouts;
    Step step;
    for (int64_t cores = between(random, 1, 3); cores > 0; --cores) {
      batches.push_back(random_batch(random, engine->layout(), 2));
      layouts.push_back(&some_layout(random, *engine));
      step.words.push_back(batches.back().grouped(*layouts.back(), engine->pool()));
      step.gradients.push_back(random_gradients(random, engine->layout()));
    }
    check_lookup(*engine, wanted, batches[0], *layouts[0], step.words[0]);
    for (const int32_t count : step.update(*engine, kRate)) CHECK(count == 0, "");
    for (size_t t = 0; t < numbers.table_rows.size(); ++t) {
      update_table(wanted, t, batches, layouts, step);
    }
    const Reference got(*engine);
    for (size_t table = 0; table < got.tables.size(); ++table) {
      for (size_t id = 0; id < got.tables[table].size(); ++id) {
        for (size_t d = 0; d < got.tables[table][id].size(); ++d) {
          check_close(got.tables[table][id][d], wanted.tables[table][id][d], "row");
        }
      }
    }
  }
}

std::vector<float> bytes_of(const ete::Engine& engine) {
  std::vector<float> bytes;
  for (size_t number = 0; number < engine.parts(); ++number) {
    const ete::Part& part = engine.part(static_cast<int64_t>(number));
    bytes.insert(bytes.end(), part.data, part.data + part.elements());
  }
  return bytes;
}

// All bytes of an engine after some steps.
std::vector<float> trained(uint64_t seed, int threads) {
  Random random(seed);
  const auto engine = random_engine(seed, random_numbers(random), threads);
  for (int round = 0; round < 2; ++round) {
    Step step;
    for (int core = 0; core < 2; ++core) {
      const Batch batch = random_batch(random, engine->layout(), 3);
      step.words.push_back(batch.grouped(engine->layout(), engine->pool()));
      step.gradients.push_back(random_gradients(random, engine->layout()));
    }
    step.update(*engine, kRate);
  }
  return bytes_of(*engine);
}

// What a core of `layout` has of the batch of one core that holds all samples.
Batch part_of(const Batch& all, const ete::Layout& layout, int64_t core) {
  Batch part;
  part.weights = all.weights;
  for (size_t f = 0; f < all.ids.size(); ++f) {
    const int64_t first = core * layout.features[f].samples;
    part.samples.emplace_back();
    part.ids.emplace_back();
    part.weights[f].clear();
    for (size_t i = 0; i < all.ids[f].size(); ++i) {
      const int64_t sample = all.samples[f][i] - first;
      if (sample < 0 || sample >= layout.features[f].samples) continue;
      part.samples[f].push_back(static_cast<int32_t>(sample));
      part.ids[f].push_back(all.ids[f][i]);
      if (layout.features[f].weighted) part.weights[f].push_back(all.weights[f][i]);
    }
  }
  return part;
}

// Tables that accumulate have the same bytes however samples are spread over cores.
void check_spread(uint64_t seed) {
  constexpr int64_t kCores = 4;
  Random random(seed);
  ete::LayoutNumbers numbers = random_numbers(random);
  for (size_t t = 0; t < numbers.table_rows.size(); ++t) {
    numbers.table_options[t * ete::kOptions + ete::kAccumulate] = 1.0f;
  }
  const auto spread = random_engine(seed, numbers, 2);
  for (int64_t& samples : numbers.feature_samples) samples *= kCores;
  const auto alone = random_engine(seed, numbers, 2);
  const Batch all = random_batch(random, alone->layout(), 3);
  const auto gradients = random_gradients(random, alone->layout());
  Step parts;
  for (int64_t core = 0; core < kCores; ++core) {
    const Batch part = part_of(all, spread->layout(), core);
    parts.words.push_back(part.grouped(spread->layout(), spread->pool()));
    parts.gradients.emplace_back();
    for (const auto& one : gradients) {
      const auto size = static_cast<std::ptrdiff_t>(one.size()) / kCores;
      parts.gradients.back().emplace_back(one.begin() + core * size,
                                          one.begin() + (core + 1) * size);
    }
  }
  Step{{all.grouped(alone->layout(), alone->pool())}, {gradients}}.update(*alone, kRate);
  parts.update(*spread, kRate);
  const std::vector<float> got = bytes_of(*spread), wanted = bytes_of(*alone);
  CHECK(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)) == 0,
        "the number of cores shows");
}

void check_bits(uint64_t seed) {
  const std::vector<float> wanted = trained(seed, 1);
  const auto check = [&](int threads, const char* what) {
    const std::vector<float> got = trained(seed, threads);
    CHECK(std::memcmp(got.data(), wanted.data(), wanted.size() * sizeof(float)) == 0, what);
  };
  for (int threads = 2; threads <= 8; threads += 3) check(threads, "the number of threads shows");
  for (const ete::Isa isa : {ete::Isa::kBaseline, ete::Isa::kAvx2, ete::Isa::kAvx512}) {
    if (ete::force_isa(isa)) check(1, "the instruction set shows");
  }
}

// Gradients that are not finite change nothing, in any table. Gives whether there was any.
bool check_nonfinite(uint64_t seed) {
  Random random(seed);
  const auto engine = random_engine(seed, random_numbers(random), 2);
  const Reference before(*engine);
  const Batch batch = random_batch(random, engine->layout(), 4);
  if (batch.ids.back().empty()) return false;
  Step step{{batch.grouped(engine->layout(), engine->pool())},
            {random_gradients(random, engine->layout())}};
  for (float& value : step.gradients[0].back()) value = std::nanf("");
  const std::vector<int32_t> counts = step.update(*engine, kRate);
  const size_t last = static_cast<size_t>(engine->layout().features.back().table);
  for (size_t t = 0; t < counts.size(); ++t) CHECK((counts[t] > 0) == (t == last), "counts");
  CHECK(Reference(*engine).tables == before.tables, "written");
  return true;
}

}  // namespace

void check_results() {
  Random random(3);
  for (int round = 0; round < 40; ++round) check_world(random);
  for (uint64_t seed = 0; seed < 12; ++seed) check_bits(seed);
  for (uint64_t seed = 0; seed < 12; ++seed) check_spread(seed);
  int checked = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) checked += check_nonfinite(seed);
  CHECK(checked > 6, std::to_string(checked));
}

}  // namespace driver
