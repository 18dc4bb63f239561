// Checks grouped batches against a naive grouping, their way back to ids, and refused ids.
#include <cmath>
#include <map>

#include "driver.h"
#include "grouped.h"
#include "layout_variants.h"

namespace driver {
namespace {

struct Occurrence {
  uint32_t row, code;
  float share;
};

// The shares of the ids [begin, end) of one feature, which are those of one sample.
std::vector<float> shares_of(const ete::FeatureIds& ids, int combiner, size_t begin, size_t end) {
  std::vector<float> shares(end - begin, 1.0f);
  for (size_t i = begin; ids.weights && i < end; ++i) shares[i - begin] = ids.weights[i];
  double sum = 0;
  for (const float weight : shares) sum += combiner == ete::kMean ? weight : weight * weight;
  const double norm = combiner == ete::kSqrtn ? std::sqrt(sum) : sum;
  for (float& share : shares) {
    if (combiner != ete::kSum) share = norm == 0 ? 0.0f : static_cast<float>(share / norm);
  }
  return shares;
}

// All of a table in the order (feature, sample, place), with the starts that it must have.
std::vector<Occurrence> occurrences_of(const ete::Layout& layout, const ete::TableLayout& table,
                                       const std::vector<ete::FeatureIds>& features,
                                       std::vector<uint32_t>* starts) {
  std::vector<Occurrence> all;
  for (size_t k = 0; k < table.features.size(); ++k) {
    const size_t f = static_cast<size_t>(table.features[k]);
    const ete::FeatureIds& ids = features[f];
    size_t i = 0;
    for (int64_t sample = 0; sample < layout.features[f].samples; ++sample) {
      starts->push_back(static_cast<uint32_t>(all.size()));
      size_t end = i;
      while (end < ids.count && ids.samples[end] == sample) ++end;
      const std::vector<float> shares = shares_of(ids, table.combiner, i, end);
      for (size_t begin = i; i < end; ++i) {
        const size_t code = (k << table.sample_bits) + static_cast<size_t>(sample);
        all.push_back({physical_row(layout, table, ids.ids[i]), static_cast<uint32_t>(code),
                       shares[i - begin]});
      }
    }
    starts->push_back(static_cast<uint32_t>(all.size()));
  }
  return all;
}

bool close(float got, float wanted) { return std::fabs(got - wanted) <= 1e-6f * std::fabs(wanted); }

void check_runs(const ete::TableGroup& group, const std::vector<Occurrence>& all) {
  std::map<uint32_t, std::vector<Occurrence>> by_row;
  for (const Occurrence& one : all) by_row[one.row].push_back(one);
  CHECK(group.u == by_row.size(), std::to_string(group.u));
  uint32_t run = 0, at = 0;
  for (const auto& [row, ones] : by_row) {
    CHECK(group.distinct[run] == row && group.run_starts[run] == at, std::to_string(run));
    for (const Occurrence& one : ones) {
      CHECK(group.codes[at] == one.code, std::to_string(at));
      CHECK(!group.sorted_shares || close(group.sorted_shares[at], one.share), "");
      ++at;
    }
    ++run;
  }
  CHECK(group.run_starts[run] == group.n, "");
}

void check_table(const ete::Layout& layout, const Batch& batch, int number,
                 const std::vector<uint32_t>& words) {
  const ete::TableLayout& table = layout.tables[static_cast<size_t>(number)];
  const ete::TableGroup group = ete::read_group(layout, words.data(), words.size(), number);
  std::vector<uint32_t> starts;
  const auto all = occurrences_of(layout, table, batch.features(layout), &starts);
  CHECK(group.n == all.size(), "");
  CHECK(std::equal(starts.begin(), starts.end(), group.starts), table.name);
  CHECK((group.shares != nullptr) == table.weighted, "");
  CHECK((group.scales != nullptr) == (!table.weighted && table.combiner != ete::kSum), "");
  for (size_t i = 0; i < all.size(); ++i) {
    CHECK(group.rows[i] == all[i].row, std::to_string(i));
    CHECK(!group.shares || close(group.shares[i], all[i].share), std::to_string(i));
  }
  for (int k = 0; group.scales && k < static_cast<int>(table.features.size()); ++k) {
    const float* scales = group.scales + ete::scales_before(layout, table, k);
    const uint32_t* own = group.starts + ete::starts_before(layout, table, k);
    const size_t feature = static_cast<size_t>(table.features[static_cast<size_t>(k)]);
    for (int64_t sample = 0; sample < layout.features[feature].samples; ++sample) {
      const bool empty = own[sample] == own[sample + 1];
      CHECK(close(scales[sample], empty ? 0.0f : all[own[sample]].share), std::to_string(sample));
    }
  }
  check_runs(group, all);
}

// `ungroup` gives back what `group` was given; weights only as far as shares tell them.
void check_back(const ete::Layout& layout, const Batch& batch,
                const std::vector<uint32_t>& words) {
  for (size_t f = 0; f < layout.features.size(); ++f) {
    const int number = static_cast<int>(f);
    const size_t count = ete::ungrouped_count(layout, words.data(), words.size(), number);
    CHECK(count == batch.ids[f].size(), "");
    std::vector<int32_t> samples(count);
    std::vector<int64_t> ids(count);
    std::vector<float> weights(count);
    const bool weighted = layout.features[f].weighted;
    ete::ungroup(layout, words.data(), words.size(), number,
                 {samples.data(), ids.data(), weighted ? weights.data() : nullptr, count});
    CHECK(samples == batch.samples[f] && ids == batch.ids[f], layout.features[f].name);
    const int combiner = layout.tables[static_cast<size_t>(layout.features[f].table)].combiner;
    if (weighted && combiner == ete::kSum) CHECK(weights == batch.weights[f], "");
    check_refused(ete::Code::kInternal, layout.features[f].name, [&] {
      ete::ungroup(layout, words.data(), words.size(), number,
                   {samples.data(), ids.data(), weights.data(), count + 1});
    });
  }
}

void check_batch(const ete::Layout& layout, const Batch& batch) {
  ete::Pool alone(1), pool(3);
  const std::vector<uint32_t> words = batch.grouped(layout, alone);
  for (int t = 0; t < static_cast<int>(layout.tables.size()); ++t) {
    check_table(layout, batch, t, words);
  }
  check_back(layout, batch, words);
  // Word by word where there are sections; gaps between them are left as they are, here as 0.
  CHECK(words == batch.grouped(layout, pool), "the number of threads shows");
}

// So many ids that several threads sort one table, with 32 and 64 bits per key.
void check_large(Random& random, int64_t rows, int64_t hosts, bool weighted) {
  ete::LayoutNumbers numbers = one_table(rows, 1, 4000);
  numbers.num_hosts = hosts;
  numbers.strategy = hosts % 2;
  numbers.table_combiners[0] = ete::kMean;
  numbers.feature_weighted[0] = weighted;
  const ete::Layout layout = ete::Layout::make(numbers);
  check_batch(layout, random_batch(random, layout, 20));
}

void check_refusals() {
  const ete::Layout layout = ete::Layout::make(one_table(10, 4, 8));
  ete::Pool pool(2);
  const auto refuse = [&](std::vector<int32_t> samples, std::vector<int64_t> ids,
                          const std::string& part) {
    const Batch batch{{samples}, {ids}, {{}}};
    check_refused(ete::Code::kInvalidArgument, part, [&] { batch.grouped(layout, pool); });
  };
  refuse({0, 1, 8}, {0, 0, 0}, "sample number 2 must be from 1 to 7, got 8");
  refuse({-1, 1}, {0, 0}, "sample number 0 must be from 0 to 7, got -1");
  refuse({0, 3, 2, 3}, {0, 0, 0, 0}, "sample number 2 must be from 3 to 7, got 2");
  refuse({0, 1, 2}, {0, 10, -1}, "id number 1 must be from 0 to 9, got 10");
  refuse({0, 1}, {0, INT64_MIN}, "Feature \"f0\" of table \"t0\"");
  refuse({0, 1}, {INT64_MAX, 0}, "id number 0");
  check_refused(ete::Code::kInvalidArgument, "1 features",
                [&] { ete::group_bound(layout, {}); });
  check_refused(ete::Code::kResourceExhausted, "words", [&] {
    ete::group_bound(layout, {{nullptr, nullptr, nullptr, SIZE_MAX}});
  });
  std::vector<int32_t> samples(40000, 0);
  samples[16384] = -5;  // The first one of a piece is compared to the last of the one before.
  refuse(samples, std::vector<int64_t>(40000, 1), "sample number 16384");
}

// Weights below 2**-126 count as 0, also on a thread that has no such rule of its own.
void check_denormals() {
#if defined(__SSE__) || defined(__aarch64__)
  ete::LayoutNumbers numbers = one_table(10, 4, 1);
  numbers.table_combiners[0] = ete::kMean;
  numbers.feature_weighted[0] = 1;
  const ete::Layout layout = ete::Layout::make(numbers);
  ete::Pool alone(1);
  const auto words = Batch{{{0, 0}}, {{3, 4}}, {{1e-40f, 2e-40f}}}.grouped(layout, alone);
  const ete::TableGroup group = ete::read_group(layout, words.data(), words.size(), 0);
  CHECK(group.shares[0] == 0 && group.shares[1] == 0, std::to_string(group.shares[1]));
#endif
}

// A batch says by which layout it was grouped, to those who have seen that one.
void check_layouts() {
  ete::Pool pool(1);
  ete::Layouts layouts(ete::Layout::make(one_table(10, 4, 1)));
  const ete::Layouts others(layouts.own());
  const ete::Layout& weighted = layouts.with({1});
  CHECK(&layouts.with({}) == &layouts.own() && &layouts.with({0}) == &layouts.own(), "");
  CHECK(&layouts.with({1}) == &weighted && &weighted != &layouts.own(), "made twice");
  const Batch batch{{{0}}, {{7}}, {{2.0f}}};
  const auto words = batch.grouped(weighted, pool), own = batch.grouped(layouts.own(), pool);
  CHECK(&layouts.of(words.data(), words.size()) == &weighted, "");
  CHECK(&layouts.of(own.data(), own.size()) == &layouts.own(), "");
  CHECK(&layouts.of(words.data(), ete::kHeaderWords - 1) == &layouts.own(), "not its own words");
  CHECK(&others.of(words.data(), words.size()) == &others.own(), "");
  check_refused(ete::Code::kInvalidArgument, "f0", [&] { layouts.with({2}); });
  check_refused(ete::Code::kInvalidArgument, "weighted", [&] { layouts.with({0, 0}); });
}

}  // namespace

void check_ids() {
  check_layouts();
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const ete::Layout layout = ete::Layout::make(random_numbers(random));
    check_batch(layout, random_batch(random, layout, round % 4));
  }
  check_large(random, 1000, 1, false);
  check_large(random, int64_t{1} << 23, 3, true);
  check_large(random, int64_t{1} << 31, 4, false);
  check_refusals();
  check_denormals();
}

}  // namespace driver
