// Checks that owners of rows and cores together do what one engine of the whole plan does.
#include <cmath>
#include <map>

#include "driver_exchange.h"

namespace driver {
namespace {

// The plan of one owner: combiner sum, and only the features that it knows.
ete::LayoutNumbers numbers_of(const ete::LayoutNumbers& whole, const ete::Exchange& exchange,
                              size_t o) {
  const int hosts = exchange.layout().hosts;
  ete::LayoutNumbers own;
  std::map<int64_t, int64_t> places;  // Of its tables.
  for (size_t t = 0; t < whole.table_names.size(); ++t) {
    const ete::TableLayout& table = exchange.layout().tables[t];
    if (o >= table.part_rows.size()) continue;
    places[static_cast<int64_t>(t)] = static_cast<int64_t>(own.table_names.size());
    own.table_names.push_back(whole.table_names[t]);
    own.table_rows.push_back(table.part_rows[o]);
    own.table_widths.push_back(whole.table_widths[t]);
    own.table_combiners.push_back(ete::kSum);
    own.table_rules.push_back(whole.table_rules[t]);
    own.slot_counts.push_back(whole.slot_counts[t]);
    const auto options = whole.table_options.begin() + static_cast<int64_t>(t * ete::kOptions);
    own.table_options.insert(own.table_options.end(), options, options + ete::kOptions);
    const bool mod = whole.strategy == ete::kMod;
    own.table_ids.push_back(mod ? static_cast<int64_t>(o)
                                : exchange.layout().id_of(table, table.part_starts[o]));
    own.table_ids.push_back(mod ? hosts : 1);
  }
  for (size_t f = 0; f < whole.feature_names.size(); ++f) {
    if (!exchange.knows(o, f)) continue;
    own.feature_names.push_back(whole.feature_names[f]);
    own.feature_tables.push_back(places[whole.feature_tables[f]]);
    own.feature_samples.push_back(whole.feature_samples[f]);
    own.feature_weighted.push_back(whole.feature_weighted[f]);
  }
  return own;
}

}  // namespace

ete::LayoutNumbers exchange_numbers(Random& random) {
  ete::LayoutNumbers numbers = random_numbers(random);
  for (size_t t = 0; t < numbers.table_names.size(); ++t) {
    numbers.feature_names.push_back("g" + std::to_string(t));
    numbers.feature_tables.push_back(static_cast<int64_t>(t));
    numbers.feature_samples.push_back(between(random, 1, 9));
    numbers.feature_weighted.push_back(0);
  }
  return numbers;
}

Owners::Owners(const ete::LayoutNumbers& numbers, const ete::Engine& whole)
    : exchange(ete::Layout::make(numbers)) {
  for (size_t o = 0; o < exchange.owners(); ++o) {
    engines.push_back(std::make_shared<ete::Engine>(
        ete::Layout::make(numbers_of(numbers, exchange, o)), 2));
  }
  for_parts(whole, [](ete::Engine& engine, int64_t number, const ete::Part& part) {
    assign(engine, number, Floats(part.data, part.data + part.elements()));
  });
}

Exchanged::Exchanged(const Owners& owners, const Batch& batch, ete::Pool& pool) {
  const auto features = batch.features(owners.exchange.layout());
  const ete::Split split(owners.exchange, features, pool);
  for (size_t o = 0; o < owners.engines.size(); ++o) {
    messages.emplace_back(split.message_words(o));
    kept.emplace_back(split.link_words(o));
  }
  scales.resize(owners.exchange.first_scale(owners.exchange.features()));
  split.write(pointers_to(messages), pointers_to(kept), scales.data());
  for (size_t o = 0; o < owners.engines.size(); ++o) {
    links.emplace_back(owners.exchange, o, kept[o].data(), kept[o].size());
    receive(*owners.engines[o], messages[o]);
  }
}

void Exchanged::receive(ete::Engine& engine, const Words& words) {
  const ete::Layout& layout = engine.layout();
  const ete::Message message(layout, words.data(), words.size(), *engine.pool().scratch());
  grouped.emplace_back(ete::group_bound(layout, message.features()));
  ete::group(layout, message.features(), engine.pool(), grouped.back().data(),
             grouped.back().size());
  grouped.back().resize(grouped.back()[3]);
  lengths.emplace_back(message.lengths(), message.lengths() + layout.features.size());
}

std::vector<std::vector<int32_t>> update(const Owners& owners,
                                         const std::vector<Exchanged>& cores,
                                         const std::vector<std::vector<Floats>>& gradients,
                                         ete::Pool& pool, bool only_count) {
  std::vector<std::vector<Floats>> parts(cores.size());
  for (size_t core = 0; core < cores.size(); ++core) {
    for (const ete::Links& own : cores[core].links) parts[core].emplace_back(own.floats());
    ete::spread(owners.exchange, cores[core].links, pointers_to(gradients[core]),
                cores[core].scales.data(), pool, pointers_to(parts[core]));
  }
  std::vector<std::vector<int32_t>> nonfinite;
  for (size_t o = 0; o < owners.engines.size(); ++o) {
    ete::Engine& engine = *owners.engines[o];
    std::vector<std::vector<const float*>> pointers;
    std::vector<ete::CoreGradients> from;
    for (size_t core = 0; core < cores.size(); ++core) {
      const float* part = parts[core][o].data();
      pointers.push_back(places_in(engine.layout(), cores[core].lengths[o], part));
    }
    for (size_t core = 0; core < cores.size(); ++core) {
      const std::vector<uint32_t>& words = cores[core].grouped[o];
      from.push_back({words.data(), words.size(), pointers[core].data(),
                      cores[core].lengths[o].data()});
    }
    nonfinite.emplace_back(engine.layout().tables.size(), 0);
    engine.count(from, nonfinite.back().data());
    const Floats rates(nonfinite.back().size(), kRate);
    if (!only_count) engine.update(from, rates.data(), nullptr);
  }
  return nonfinite;
}

namespace {

std::vector<Floats> look_up(const Owners& owners, const Exchanged& core, ete::Pool& pool) {
  std::vector<Floats> sums, out;
  for (size_t o = 0; o < owners.engines.size(); ++o) {
    ete::Engine& engine = *owners.engines[o];
    const Words& lengths = core.lengths[o];
    sums.emplace_back(ete::floats_of_parts(engine.layout(), lengths.data(), lengths.size()));
    CHECK(sums.back().size() == core.links[o].floats(), "");
    engine.lookup(core.grouped[o].data(), core.grouped[o].size(),
                  places_in(engine.layout(), lengths, sums.back().data()), lengths.data());
  }
  for (size_t f = 0; f < owners.exchange.features(); ++f) {
    out.emplace_back(static_cast<size_t>(owners.exchange.layout().features[f].samples) *
                     owners.exchange.width_of(f), 99.0f);
  }
  const auto& given = sums;
  ete::merge(owners.exchange, core.links, pointers_to(given), core.scales.data(), pool,
             pointers_to(out));
  return out;
}

void check_same(const Floats& got, const Floats& wanted, const char* what) {
  CHECK(got.size() == wanted.size(), what);
  for (size_t i = 0; i < got.size(); ++i) {
    CHECK(std::fabs(got[i] - wanted[i]) <= 2e-5f * (1 + std::fabs(wanted[i])),
          std::string(what) + ": " + std::to_string(got[i]) + ", not " +
              std::to_string(wanted[i]));
  }
}

// All tables of the owners have the rows of the whole engine, except for the order of additions.
void check_tables(Owners& owners, const ete::Engine& whole) {
  owners.for_parts(whole, [&](ete::Engine& engine, int64_t number, const ete::Part& part) {
    const float* data = engine.part(number).data;
    check_same(Floats(data, data + part.elements()),
               Floats(part.data, part.data + part.elements()), "rows");
  });
}

void check_steps(Random& random) {
  const ete::LayoutNumbers numbers = exchange_numbers(random);
  const auto whole = random_engine(random(), numbers, 2);
  Owners owners(numbers, *whole);
  ete::Pool pool(static_cast<int>(between(random, 1, 3)));
  for (int round = 0; round < 3; ++round) {
    std::vector<Exchanged> cores;
    Step step;
    for (int64_t left = between(random, 1, 3); left > 0; --left) {
      const Batch batch = random_batch(random, whole->layout(), round);
      cores.emplace_back(owners, batch, pool);
      step.words.push_back(batch.grouped(whole->layout(), whole->pool()));
      step.gradients.push_back(random_gradients(random, whole->layout()));
    }
    std::vector<Floats> wanted = step.gradients[0];  // Of that size.
    whole->lookup(step.words[0].data(), step.words[0].size(), pointers_to(wanted));
    const std::vector<Floats> got = look_up(owners, cores[0], pool);
    for (size_t f = 0; f < got.size(); ++f) check_same(got[f], wanted[f], "activations");
    step.update(*whole, kRate);
    for (const auto& counts : update(owners, cores, step.gradients, pool, false)) {
      for (const int32_t count : counts) CHECK(count == 0, "");
    }
    check_tables(owners, *whole);
  }
}

// What is not finite is counted where its ids are, and nowhere else.
void check_counts() {
  ete::LayoutNumbers numbers = one_table(4, 1, 2);
  numbers.num_hosts = 2;
  const auto whole = random_engine(1, numbers, 1);
  const Owners owners(numbers, *whole);
  ete::Pool pool(1);
  const Batch batch{{{0, 0, 1}}, {{0, 3, 1}}, {{}}};  // Ids 0 and 1 are on host 0.
  std::vector<Exchanged> cores;
  cores.emplace_back(owners, batch, pool);
  const float nan = std::nanf("");
  CHECK((update(owners, cores, {{{nan, 1}}}, pool, true) ==
         std::vector<std::vector<int32_t>>{{1}, {1}}), "sample 0 has an id on both");
  CHECK((update(owners, cores, {{{1, nan}}}, pool, true) ==
         std::vector<std::vector<int32_t>>{{1}, {0}}), "sample 1 has one on host 0");
}

}  // namespace

void check_owners() {
  Random random(11);
  for (int world = 0; world < 40; ++world) check_steps(random);
  check_counts();
}

}  // namespace driver
