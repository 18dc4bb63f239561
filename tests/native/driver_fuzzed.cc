// Checks that batches of random words give an error or a result, and no access out of bounds.
#include <algorithm>

#include "driver.h"
#include "grouped.h"

namespace driver {
namespace {

// A number that is likely to be at an edge of something.
uint32_t odd_number(Random& random, const std::vector<uint32_t>& words) {
  switch (between(random, 0, 5)) {
    case 0: return 0;
    case 1: return UINT32_MAX - static_cast<uint32_t>(between(random, 0, 2));
    case 2: return uint32_t{1} << between(random, 0, 31);
    case 3: return words[static_cast<size_t>(between(random, 0, 1 << 30)) % words.size()];
    case 4: return static_cast<uint32_t>(words.size()) - static_cast<uint32_t>(
        between(random, 0, 3));
    default: return static_cast<uint32_t>(random());
  }
}

std::vector<uint32_t> corrupted(Random& random, std::vector<uint32_t> words) {
  const size_t headers = std::min<size_t>(words.size(), 14);
  for (int64_t left = between(random, 1, 4); left > 0; --left) {
    const size_t most = between(random, 0, 1) ? headers : words.size();
    uint32_t& word = words[static_cast<size_t>(between(random, 0, 1 << 30)) % most];
    switch (between(random, 0, 2)) {
      case 0: word = odd_number(random, words); break;
      case 1: word ^= uint32_t{1} << between(random, 0, 31); break;
      default: word += static_cast<uint32_t>(between(random, -2, 2));
    }
  }
  if (between(random, 0, 7) == 0) words.resize(random() % (words.size() + 1));
  words.shrink_to_fit();  // So that a sanitizer sees what is read beyond the end.
  return words;
}

void read_all(const ete::Layout& layout, const std::vector<uint32_t>& words) {
  for (size_t t = 0; t <= layout.tables.size(); ++t) {
    may_refuse([&] {
      ete::read_group(layout, words.data(), words.size(), static_cast<int>(t));
    });
  }
  for (size_t f = 0; f <= layout.features.size(); ++f) {
    may_refuse([&] {
      const int number = static_cast<int>(f);
      const size_t count = ete::ungrouped_count(layout, words.data(), words.size(), number);
      std::vector<int32_t> samples(count);
      std::vector<int64_t> ids(count);
      std::vector<float> weights(count);
      const bool weighted = layout.features[f].weighted;
      ete::ungroup(layout, words.data(), words.size(), number,
                   {samples.data(), ids.data(), weighted ? weights.data() : nullptr, count});
    });
  }
}

void use_all(Random& random, ete::Engine& engine, const std::vector<uint32_t>& good) {
  const auto bad = corrupted(random, good);
  read_all(engine.layouts().of(bad.data(), bad.size()), bad);
  auto gradients = random_gradients(random, engine.layout());
  std::vector<float*> pointers;
  for (auto& one : gradients) pointers.push_back(one.data());
  may_refuse([&] { engine.lookup(bad.data(), bad.size(), pointers); });
  may_refuse([&] { Step{{bad}, {gradients}}.update(engine, 0.1f); });
  may_refuse([&] { Step{{good, bad}, {gradients, gradients}}.update(engine, 0.1f); });
  may_refuse([&] { Step{{bad, bad}, {gradients, gradients}}.update(engine, 0.1f); });
}

// Ids and samples of every kind, in batches of the right form.
void group_anything(Random& random, ete::Engine& engine) {
  Batch batch = random_batch(random, engine.layout(), 2);
  const size_t f = static_cast<size_t>(between(random, 0, 1000)) % batch.ids.size();
  for (int64_t left = between(random, 0, 2); left > 0 && !batch.ids[f].empty(); --left) {
    const size_t i = static_cast<size_t>(between(random, 0, 1000)) % batch.ids[f].size();
    batch.ids[f][i] = static_cast<int64_t>(random()) >> between(random, 0, 63);
    batch.samples[f][i] ^= 1 << between(random, 0, 31);
    batch.weights[f][i] = static_cast<float>(random()) * 1e20f;
  }
  may_refuse([&] { batch.grouped(engine.layout(), engine.pool()); });
}

}  // namespace

void check_fuzzed() {
  Random random(7);
  for (int world = 0; world < 25; ++world) {
    const auto engine = random_engine(random(), random_numbers(random), 2);
    const Batch batch = random_batch(random, engine->layout(), 2);
    const std::vector<int64_t> weighted(batch.ids.size(), world % 2);
    const auto good = batch.grouped(engine->layouts().with(weighted), engine->pool());
    for (int round = 0; round < 60; ++round) {
      use_all(random, *engine, good);
      group_anything(random, *engine);
    }
  }
}

}  // namespace driver
