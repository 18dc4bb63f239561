#include "split.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "denormals.h"
#include "error.h"
#include "limits.h"
#include "shares.h"

namespace ete {

namespace {

Partition partition_of(const Exchange& exchange, size_t f) {
  const Layout& layout = exchange.layout();
  return Partition(exchange.table_of(f).vocabulary, layout.hosts, layout.strategy);
}

// Calls use(i, host, row) for each id. Ids must be below the vocabulary.
template <typename Use>
void for_places(const Exchange& exchange, size_t f, const FeatureIds& ids, const Use& use) {
  const size_t count = ids.count;  // Copies, which cannot change while `use` writes.
  const int64_t* const all = ids.ids;
  const Partition partition = partition_of(exchange, f);
  for (size_t i = 0; i < count; ++i) {
    const Partition::Place place = partition(static_cast<uint32_t>(all[i]));
    use(i, place.host, place.row);
  }
}

void check_ids(const Exchange& exchange, size_t f, const FeatureIds& ids) {
  const FeatureLayout& feature = exchange.layout().features[f];
  const TableLayout& table = exchange.table_of(f);
  const Limits limits{feature.name, table.name, feature.samples, table.vocabulary};
  if (ids.count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error(Code::kResourceExhausted, "Feature \"" + feature.name + "\" has " +
                                              std::to_string(ids.count) + " ids in one batch.");
  }
  check_samples(limits, ids, 0, ids.count);
  OutsideFinder outside(table.vocabulary);
  for (size_t i = 0; i < ids.count; ++i) outside.add(static_cast<uint64_t>(ids.ids[i]));
  if (outside.found()) refuse_ids(limits, ids, 0, ids.count);
}

// Where the ids of each feature begin among all.
std::vector<size_t> first_ids(const std::vector<FeatureIds>& features) {
  std::vector<size_t> result{0};
  for (const FeatureIds& ids : features) result.push_back(result.back() + ids.count);
  return result;
}

// Spreads ids over 2**bits places.
class Places {
 public:
  // At least so many places.
  explicit Places(size_t least) {
    while (size() < least) --shift_;
  }

  size_t size() const { return size_t{1} << (64 - shift_); }
  size_t of(uint32_t id) const { return static_cast<size_t>((id * kGolden) >> shift_); }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2**64 over the golden ratio.

  int shift_ = 60;
};

// Numbers distinct ids.
class Numbering {
 public:
  // For at most so many. A quarter of the places is used, so that most ids find theirs at once.
  Numbering(size_t most, Scratch& scratch)
      : places_(4 * most),
        lease_(scratch.borrow(places_.size() * sizeof(Entry), "the rows of a feature")),
        entries_(lease_.as<Entry>()) {
    std::memset(entries_, 0xFF, places_.size() * sizeof(Entry));
  }

  // Returns the number of an id, which becomes `next` if it has none.
  int32_t number_of(uint32_t id, int32_t next) {
    size_t at = places_.of(id);
    while (entries_[at].number != kNone && entries_[at].id != id) {
      at = (at + 1) & (places_.size() - 1);
    }
    const int32_t found = entries_[at].number, number = found == kNone ? next : found;
    entries_[at] = {id, number};  // In any case: a branch could not be predicted.
    return number;
  }

 private:
  struct Entry {
    uint32_t id;
    int32_t number;
  };
  static constexpr int32_t kNone = -1;  // All bits are set, also in bytes.

  const Places places_;
  const Scratch::Lease lease_;
  Entry* const entries_;
};

void fill(int32_t* words, size_t count, float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  std::fill_n(words, count, bits);
}

}  // namespace

Split::Split(const Exchange& exchange, const std::vector<FeatureIds>& features, Pool& pool)
    : exchange_(exchange),
      features_(features),
      pool_(pool),
      first_ids_(first_ids(features)),
      numbers_(pool.scratch()->borrow(first_ids_.back() * sizeof(int32_t), "numbers of rows")),
      counts_(features.size() * exchange.owners()),
      message_words_(exchange.owners()),
      link_words_(exchange.owners(), features.size()) {
  pool_.run(features.size(), [this](size_t f) { count_feature(f); });
  for (size_t o = 0; o < exchange.owners(); ++o) {
    for (size_t f = 0; f < features.size(); ++f) {
      if (!exchange.knows(o, f)) continue;
      message_words_[o] += 2 + (weighted(f) ? 3 : 2) * size_t{count(o, f).sent()};
      link_words_[o] += (exchange.weighted() ? 3 : 2) * size_t{count(o, f).links()};
    }
  }
}

void Split::count_feature(size_t f) {
  const FeatureIds& ids = features_[f];
  check_ids(exchange_, f, ids);
  struct Counter {
    Count count;
    int32_t last_sample;
  };
  // Of its own: threads that write close to each other are slow.
  std::vector<Counter> counters(exchange_.owners(), Counter{{0, 0, 0}, -1});
  // Distinct rows are first counted from below, since two may have one place. That is quick, and
  // enough for most features with many ids in a sample.
  const size_t samples_of_core = static_cast<size_t>(exchange_.layout().features[f].samples);
  const uint32_t most = ids.count > samples_of_core ? static_cast<uint32_t>(samples_of_core) : 0;
  const Places places(4 * std::min(ids.count, most * exchange_.owners()));
  std::vector<uint8_t> taken(places.size());
  const int64_t* const all = ids.ids;
  for_places(exchange_, f, ids, [=, own = counters.data(), samples = ids.samples,
                                 seen = taken.data()](size_t i, uint32_t host, uint32_t) {
    Counter& to = own[host];
    ++to.count.ids;
    to.count.samples += samples[i] != to.last_sample;
    to.last_sample = samples[i];
    if (to.count.rows >= most) return;
    uint8_t& place = seen[places.of(static_cast<uint32_t>(all[i]))];
    to.count.rows += 1 - place;
    place = 1;
  });
  Count* const counts = counts_.data() + f * exchange_.owners();
  for (size_t o = 0; o < counters.size(); ++o) counts[o] = counters[o].count;
  number_rows(f, counts);
}

void Split::number_rows(size_t f, Count* counts) {
  struct Counter {
    uint32_t rows, most;
  };
  std::vector<Counter> counters;
  size_t most = 0;
  for (size_t o = 0; o < exchange_.owners(); ++o) {
    counters.push_back({0, counts[o].by_row() ? counts[o].samples : 0});
    most += counters.back().most;
  }
  if (most == 0) return;
  Numbering numbering(most, *pool_.scratch());
  int32_t* const numbers = numbers_.as<int32_t>() + first_ids_[f];
  for_places(exchange_, f, features_[f], [&numbering, numbers, own = counters.data(),
                                          all = features_[f].ids](size_t i, uint32_t host,
                                                                  uint32_t) {
    Counter& to = own[host];
    if (to.rows >= to.most) return;  // It is not by row.
    const int32_t next = static_cast<int32_t>(to.rows);
    numbers[i] = numbering.number_of(static_cast<uint32_t>(all[i]), next);
    to.rows += numbers[i] == next;
  });
  for (size_t o = 0; o < exchange_.owners(); ++o) {
    if (counters[o].most > 0) counts[o].rows = counters[o].rows;
  }
}

void Split::write(const std::vector<int32_t*>& messages, const std::vector<int32_t*>& links,
                  float* scales) const {
  std::vector<Cursor> cursors(counts_.size());
  for (size_t o = 0; o < exchange_.owners(); ++o) {
    add_cursors(o, write_counts(o, messages[o]), links[o], &cursors);
  }
  pool_.run(features_.size(), [&](size_t f) {
    const auto own = cursors.begin() + static_cast<int64_t>(f * exchange_.owners());
    write_ids(f, std::vector<Cursor>(own, own + static_cast<int64_t>(exchange_.owners())));
    if (exchange_.weighted()) write_weights(f, &*own);
    if (exchange_.is_scaled(f)) write_scales(f, scales + exchange_.first_scale(f));
  });
}

int32_t* Split::write_counts(size_t o, int32_t* message) const {
  for (const bool of_groups : {false, true}) {
    for (size_t f = 0; f < features_.size(); ++f) {
      if (!exchange_.knows(o, f)) continue;
      *message++ = static_cast<int32_t>(of_groups ? count(o, f).groups() : count(o, f).sent());
    }
  }
  return message;
}

void Split::add_cursors(size_t o, int32_t* message, int32_t* links,
                        std::vector<Cursor>* cursors) const {
  size_t sent = 0, linked = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    sent += count(o, f).sent();
    linked += count(o, f).links();
    *links++ = static_cast<int32_t>(count(o, f).groups());
  }
  int32_t* weights = message + 2 * sent;
  int32_t first_group = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    const Count& own = count(o, f);
    (*cursors)[f * exchange_.owners() + o] = {
        message, message + sent, weights, links, links + linked, links + 2 * linked, first_group,
        own.by_row(), -1, -1, 0};
    message += own.sent();
    weights += weighted(f) ? own.sent() : 0;
    links += own.links();
    first_group += static_cast<int32_t>(own.groups());
  }
}

void Split::write_ids(size_t f, std::vector<Cursor> own) const {
  const FeatureIds& ids = features_[f];
  const int32_t* const samples = ids.samples;
  const int32_t* const numbers = numbers_.as<int32_t>() + first_ids_[f];
  Cursor* const cursors = own.data();
  const int32_t first = static_cast<int32_t>(exchange_.first_position(f));
  for_places(exchange_, f, ids, [=](size_t i, uint32_t host, uint32_t row) {
    Cursor& to = cursors[host];
    to.sample += samples[i] != to.last_sample;
    to.last_sample = samples[i];
    const int32_t id = to.id++, group = to.by_row ? numbers[i] : to.sample;
    const int32_t sent = to.by_row ? group : id, link = to.by_row ? id : group;
    to.rows[sent] = static_cast<int32_t>(row);  // The same again for all ids of a row,
    to.groups[sent] = group;
    to.link_groups[link] = to.first_group + group;  // or for all of a sample.
    to.link_positions[link] = first + samples[i];
  });
}

void Split::write_weights(size_t f, const Cursor* cursors) const {
  std::vector<int32_t*> next;  // By owner, where the weights of ids go.
  for (size_t o = 0; o < exchange_.owners(); ++o) {
    const Cursor& to = cursors[o];
    fill(to.link_weights, count(o, f).links(), 1.0f);
    if (weighted(f)) fill(to.weights, count(o, f).sent(), 1.0f);
    next.push_back(to.by_row ? to.link_weights : to.weights);
  }
  if (!weighted(f)) return;
  const FeatureIds& ids = features_[f];
  for_places(exchange_, f, ids, [own = next.data(), &ids](size_t i, uint32_t host, uint32_t) {
    std::memcpy(own[host]++, ids.weights + i, sizeof(float));
  });
}

void Split::write_scales(size_t f, float* scales) const {
  const FlushDenormals flush;
  const FeatureIds& ids = features_[f];
  const int combiner = exchange_.table_of(f).combiner;
  const size_t samples = static_cast<size_t>(exchange_.layout().features[f].samples);
  std::fill_n(scales, samples, 0.0f);
  for (size_t i = 0; i < ids.count; ++i) {
    scales[ids.samples[i]] += norm_part(combiner, ids.weights ? ids.weights[i] : 1.0f);
  }
  for (size_t sample = 0; sample < samples; ++sample) {
    scales[sample] = share_of(1.0f, norm_of(combiner, scales[sample]));
  }
}

}  // namespace ete
