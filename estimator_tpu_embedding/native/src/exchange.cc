#include "exchange.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "denormals.h"
#include "error.h"
#include "limits.h"
#include "shares.h"

namespace ete {

Exchange::Exchange(Layout layout) : layout_(std::move(layout)) {
  const size_t most = std::numeric_limits<int32_t>::max();
  size_t position = 0, scale = 0;
  for (size_t f = 0; f < features(); ++f) {
    const TableLayout& table = table_of(f);
    const size_t samples = static_cast<size_t>(layout_.features[f].samples);
    owners_ = std::max(owners_, table.part_rows.size());
    first_positions_.push_back(position);
    first_scales_.push_back(scale);
    position += samples;
    scale += is_scaled(f) ? samples : 0;
    if (position > most || table.part_rows[0] > most) {
      throw Error(Code::kResourceExhausted,
                  "Table \"" + table.name + "\": more than " + std::to_string(most) +
                      " rows on a host, or samples up to feature \"" + layout_.features[f].name +
                      "\", cannot be exchanged.");
    }
  }
  first_positions_.push_back(position);
  first_scales_.push_back(scale);
}

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

}  // namespace

Split::Split(const Exchange& exchange, const std::vector<FeatureIds>& features, Pool& pool)
    : exchange_(exchange),
      features_(features),
      pool_(pool),
      counts_(features.size() * exchange.owners()),
      words_(exchange.owners()),
      positions_(exchange.owners()) {
  pool_.run(features.size(), [this](size_t f) { count_feature(f); });
  for (size_t o = 0; o < exchange.owners(); ++o) {
    for (size_t f = 0; f < features.size(); ++f) {
      if (!exchange.knows(o, f)) continue;
      words_[o] += 2 + (exchange.layout().features[f].weighted ? 3 : 2) * size_t{count(o, f).ids};
      positions_[o] += count(o, f).samples;
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
  std::vector<Counter> counters(exchange_.owners(), Counter{{0, 0}, -1});
  const int32_t* const samples = ids.samples;
  for_places(exchange_, f, ids, [own = counters.data(), samples](size_t i, uint32_t host,
                                                                uint32_t) {
    ++own[host].count.ids;
    own[host].count.samples += samples[i] != own[host].last_sample;
    own[host].last_sample = samples[i];
  });
  for (size_t o = 0; o < counters.size(); ++o) {
    counts_[f * exchange_.owners() + o] = counters[o].count;
  }
}

void Split::write(const std::vector<int32_t*>& messages, const std::vector<int32_t*>& positions,
                  float* scales) const {
  std::vector<Cursor> cursors(counts_.size());
  for (size_t o = 0; o < exchange_.owners(); ++o) {
    write_counts(o, messages[o]);
    add_cursors(o, messages[o], positions[o], &cursors);
  }
  pool_.run(features_.size(), [&](size_t f) {
    const auto own = cursors.begin() + static_cast<int64_t>(f * exchange_.owners());
    write_ids(f, std::vector<Cursor>(own, own + static_cast<int64_t>(exchange_.owners())));
    if (exchange_.is_scaled(f)) write_scales(f, scales + exchange_.first_scale(f));
  });
}

void Split::write_counts(size_t o, int32_t* message) const {
  for (const bool of_samples : {false, true}) {
    for (size_t f = 0; f < features_.size(); ++f) {
      if (!exchange_.knows(o, f)) continue;
      *message++ = static_cast<int32_t>(of_samples ? count(o, f).samples : count(o, f).ids);
    }
  }
}

void Split::add_cursors(size_t o, int32_t* message, int32_t* positions,
                        std::vector<Cursor>* cursors) const {
  size_t known = 0, ids = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    known += exchange_.knows(o, f);
    ids += count(o, f).ids;
  }
  int32_t* rows = message + 2 * known;
  int32_t* weights = rows + 2 * ids;
  for (size_t f = 0; f < features_.size(); ++f) {
    const bool weighted = exchange_.layout().features[f].weighted;
    (*cursors)[f * exchange_.owners() + o] = {rows, rows + ids, weighted ? weights : nullptr,
                                              positions, -1, -1};
    rows += count(o, f).ids;
    weights += weighted ? count(o, f).ids : 0;
    positions += count(o, f).samples;
  }
}

void Split::write_ids(size_t f, std::vector<Cursor> own) const {
  const FeatureIds& ids = features_[f];
  const int32_t* const samples = ids.samples;
  Cursor* const cursors = own.data();
  const int32_t first = static_cast<int32_t>(exchange_.first_position(f));
  for_places(exchange_, f, ids, [=](size_t i, uint32_t host, uint32_t row) {
    Cursor& to = cursors[host];
    to.sample += samples[i] != to.last_sample;
    to.last_sample = samples[i];
    to.positions[to.sample] = first + samples[i];
    *to.rows++ = static_cast<int32_t>(row);
    *to.samples++ = to.sample;
  });
  if (!exchange_.layout().features[f].weighted) return;
  for_places(exchange_, f, ids, [=](size_t i, uint32_t host, uint32_t) {
    std::memcpy(cursors[host].weights++, ids.weights + i, sizeof(float));
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
