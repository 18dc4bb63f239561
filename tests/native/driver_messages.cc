// Checks that messages, lengths and links of any content are refused or do no harm.
#include <utility>

#include "driver_exchange.h"

namespace driver {
namespace {

void check_refusals() {
  ete::LayoutNumbers numbers = one_table(4, 1, 3);
  const ete::Layout layout = ete::Layout::make(numbers);
  ete::Pool pool(1);
  const auto refuse = [&](const Words& words, const std::string& part) {
    check_refused(ete::Code::kInvalidArgument, part, [&] {
      const ete::Message message(layout, words.data(), words.size(), *pool.scratch());
      std::vector<uint32_t> out(ete::group_bound(layout, message.features()));
      ete::group(layout, message.features(), pool, out.data(), out.size());
    });
  };
  refuse({}, "0 words");
  refuse({2}, "1 words");
  refuse({2, 1, 0, 3, 0}, "5 words instead of 6");
  refuse({2, 1, 0, 3, 0, 0, 0}, "7 words instead of 6");
  refuse({-1, 1}, "-1 ids in 1 samples");
  refuse({1, -1, 0, 0}, "1 ids in -1 samples");
  refuse({1, 2, 0, 0}, "1 ids in 2 samples");
  refuse({1, 0, 0, 0}, "1 ids in 0 samples");
  refuse({4, 4, 0, 0, 0, 0, 0, 1, 2, 3}, "up to 3 samples");
  refuse({INT32_MAX, 3, 0, 0}, "4 words instead of 4294967296");
  refuse({1, 1, 4, 0}, "id number 0 must be from 0 to 3, got 4");
  refuse({1, 1, -1, 0}, "got -1");
  refuse({2, 2, 0, 1, 0, 2}, "not those from 0 to 1");
  refuse({2, 2, 0, 1, 1, 0}, "not those from 0 to 1");
  refuse({2, 1, 0, 1, 0, 1}, "not those from 0 to 0");
  refuse({3, 2, 0, 1, 2, 0, INT32_MIN, 1}, "not those from 0 to 1");
  for (const Words& lengths : {Words{}, Words{-1}, Words{4}, Words{1, 1}}) {
    check_refused(ete::Code::kInvalidArgument, "length", [&] {
      ete::floats_of_parts(layout, lengths.data(), lengths.size());
    });
  }
}

void check_refused_links() {
  ete::LayoutNumbers numbers = one_table(2, 1, 3);
  numbers.num_hosts = 4;
  numbers.feature_names.push_back("f1");
  numbers.feature_tables.push_back(1);
  numbers.feature_samples.push_back(2);
  numbers.feature_weighted.push_back(0);
  numbers.table_names.push_back("t1");
  for (auto* list : {&numbers.table_rows, &numbers.table_widths, &numbers.table_combiners,
                     &numbers.table_rules, &numbers.slot_counts}) {
    list->push_back(list->front());
  }
  numbers.table_rows[1] = 4;
  const Floats options = numbers.table_options;
  numbers.table_options.insert(numbers.table_options.end(), options.begin(), options.end());
  const ete::Exchange exchange(ete::Layout::make(numbers));
  const auto refuse = [&](size_t o, const Words& words, const std::string& part) {
    check_refused(ete::Code::kInvalidArgument, part, [&] {
      ete::Links(exchange, o, words.data(), words.size());
    });
  };
  CHECK(exchange.owners() == 4, "");
  const Words by_sample{3, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
  CHECK(ete::Links(exchange, 1, by_sample.data(), by_sample.size()).floats() == 5, "");
  const Words by_row{1, 0, 0, 0, 0, 0, 1, 1};
  const ete::Links links(exchange, 1, by_row.data(), by_row.size());
  CHECK(links.floats() == 1 && links.first(1) == 3 && !links.one_each(0), "");
  refuse(1, {}, "0 words");
  refuse(1, {1, 0, 0}, "3 words");
  refuse(1, {4, 0}, "4 groups of feature \"f0\" instead of up to 3");
  refuse(1, {-1, 0}, "-1 groups");
  refuse(2, {1, 0}, "1 groups of feature \"f0\" instead of up to 0");
  refuse(1, {1, 0, 0, 0, 1, 0}, "do not ascend");
  refuse(1, {1, 0, 0, -1}, "do not ascend");
  refuse(1, {0, 1, 0, 5}, "beyond 5");
  refuse(1, {1, 0, 1, 0}, "groups that feature \"f0\" does not have");
  refuse(1, {1, 1, 0, 3}, "groups that feature \"f1\" does not have");
  refuse(2, {0, 1, 0, 2}, "groups that feature \"f0\" does not have");
}

Words corrupted(Random& random, Words words) {
  for (int64_t left = between(random, 1, 3); left > 0 && !words.empty(); --left) {
    int32_t& word = words[random() % words.size()];
    switch (between(random, 0, 3)) {
      case 0: word = static_cast<int32_t>(random()); break;
      case 1: word = static_cast<int32_t>(words.size()) - static_cast<int32_t>(
          between(random, 0, 8)); break;
      case 2: word ^= 1 << between(random, 0, 30); break;
      default: word += static_cast<int32_t>(between(random, -2, 2));
    }
  }
  if (between(random, 0, 5) == 0) words.resize(random() % (words.size() + 1));
  words.shrink_to_fit();  // So that a sanitizer sees what is read beyond the end.
  return words;
}

// One byte, or a few of them, again and again: 64 KiB.
Words repeated(Random& random) {
  Words words(1 << 14);
  const uint64_t pattern = random() >> between(random, 0, 63);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<int32_t>(pattern >> 32 * (i % 2));
  }
  return words;
}

void use_links(Random& random, const Owners& owners, const Exchanged& good,
               const std::vector<Floats>& gradients) {
  const size_t o = random() % owners.engines.size();
  const Words words = corrupted(random, good.kept[o]);
  ete::Pool pool(2);
  may_refuse([&] {
    std::vector<ete::Links> links = good.links;
    links[o] = ete::Links(owners.exchange, o, words.data(), words.size());
    std::vector<Floats> parts, out = gradients;
    for (const ete::Links& own : links) parts.emplace_back(own.floats());
    ete::spread(owners.exchange, links, pointers_to(gradients), good.scales.data(), pool,
                pointers_to(parts));
    ete::merge(owners.exchange, links, pointers_to(std::as_const(parts)), good.scales.data(), pool,
               pointers_to(out));
  });
}

void check_garbage(Random& random) {
  const ete::LayoutNumbers numbers = exchange_numbers(random);
  const auto whole = random_engine(random(), numbers, 2);
  const Owners owners(numbers, *whole);
  const Exchanged good(owners, random_batch(random, whole->layout(), 2), whole->pool());
  const std::vector<Floats> gradients = random_gradients(random, whole->layout());
  for (int round = 0; round < 40; ++round) {
    const size_t o = random() % owners.engines.size();
    Exchanged bad = good;
    may_refuse([&] { bad.receive(*owners.engines[o], corrupted(random, good.messages[o])); });
    may_refuse([&] { bad.receive(*owners.engines[o], repeated(random)); });
    bad.lengths[o] = bad.lengths.back().size() == good.lengths[o].size() ? bad.lengths.back()
                                                                         : good.lengths[o];
    bad.grouped[o] = bad.grouped.back();
    const Words lengths = corrupted(random, bad.lengths[o]);
    if (lengths.size() == bad.lengths[o].size()) bad.lengths[o] = lengths;
    may_refuse([&] {
      const ete::Layout& layout = owners.engines[o]->layout();
      Floats part(ete::floats_of_parts(layout, bad.lengths[o].data(), bad.lengths[o].size()));
      const std::vector<float*> places = places_in(layout, bad.lengths[o], part.data());
      may_refuse([&] {
        owners.engines[o]->lookup(bad.grouped[o].data(), bad.grouped[o].size(), places,
                                  bad.lengths[o].data());
      });
      const std::vector<const float*> own(places.begin(), places.end());
      const ete::CoreGradients core{bad.grouped[o].data(), bad.grouped[o].size(), own.data(),
                                    bad.lengths[o].data()};
      const Floats rates(layout.tables.size(), kRate);
      may_refuse([&] { owners.engines[o]->update({core}, rates.data(), nullptr); });
    });
    use_links(random, owners, good, gradients);
  }
}

}  // namespace

void check_messages() {
  Random random(12);
  check_refusals();
  check_refused_links();
  for (int world = 0; world < 15; ++world) check_garbage(random);
}

}  // namespace driver
