#include "contributions.h"

#include <algorithm>

#include "kernels.h"

namespace ete {

GradientsOfTable::GradientsOfTable(const Layouts& layouts, const std::vector<CoreGradients>& from,
                                   int number)
    : layout(&layouts.own()), table(&layout->tables[number]), has_factors(false) {
  for (const CoreGradients& core : from) {
    const Layout& of_batch = layouts.of(core.words, core.count);
    CoreOfTable own;
    own.group = read_group(of_batch, core.words, core.count, number);
    for (size_t k = 0; k < table->features.size(); ++k) {
      const int feature = table->features[k];
      const float* scales = own.group.scales;
      if (scales != nullptr) scales += scales_before(of_batch, *table, static_cast<int>(k));
      const int64_t samples =
          core.lengths != nullptr ? core.lengths[feature] : of_batch.features[feature].samples;
      own.features.push_back(
          {core.gradient_of_feature[feature], static_cast<uint64_t>(samples), scales});
    }
    has_factors = has_factors || own.group.sorted_shares != nullptr || own.group.scales != nullptr;
    cores.push_back(std::move(own));
  }
}

uint64_t GradientsOfTable::occurrences() const {
  uint64_t sum = 0;
  for (const CoreOfTable& core : cores) sum += core.group.n;
  return sum;
}

namespace {

// Rows at which ranges of about `work` floats may begin, ascending, the last one the end.
std::vector<uint32_t> borders_of(const GradientsOfTable& gradients, bool all_rows, uint64_t work) {
  const TableLayout& table = *gradients.table;
  const uint64_t step = std::max<uint64_t>(1, work / static_cast<uint64_t>(table.width));
  std::vector<uint32_t> borders;
  for (const CoreOfTable& core : gradients.cores) {
    const TableGroup& group = core.group;
    for (uint64_t at = step; group.u > 0 && at < group.n; at += step) {
      const uint32_t* run = std::upper_bound(group.run_starts, group.run_starts + group.u,
                                             static_cast<uint32_t>(at));
      if (run == group.run_starts) continue;
      borders.push_back(group.distinct[run - group.run_starts - 1]);
    }
  }
  for (uint64_t row = step; all_rows && row < table.physical_rows; row += step) {
    borders.push_back(static_cast<uint32_t>(row));
  }
  // Anything could be in the groups: no border but the last is at or beyond the end.
  borders.erase(std::remove_if(borders.begin(), borders.end(), [&](uint32_t row) {
    return row == 0 || row >= table.physical_rows; }), borders.end());
  borders.push_back(table.physical_rows);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace

void cut(const GradientsOfTable& gradients, size_t table, bool all_rows, uint64_t work,
         std::vector<RowRange>* ranges) {
  const uint64_t width = static_cast<uint64_t>(gradients.table->width);
  std::vector<uint32_t> from(gradients.cores.size(), 0);
  uint32_t first_row = 0;
  for (uint32_t end_row : borders_of(gradients, all_rows, work)) {
    RowRange range{table, first_row, end_row, from, from, all_rows ? end_row - first_row : 0};
    const bool last = end_row == gradients.table->physical_rows;
    for (size_t core = 0; core < from.size(); ++core) {
      const TableGroup& group = gradients.cores[core].group;
      range.end[core] = last ? group.u : static_cast<uint32_t>(
          std::lower_bound(group.distinct + from[core], group.distinct + group.u, end_row) -
          group.distinct);
      // Whatever is there, no work is negative: the wrapped one only makes a poor order.
      range.work += range.end[core] - from[core] +
                    (group.u > 0 ? group.run_starts[range.end[core]] -
                     group.run_starts[from[core]] : 0);
    }
    range.work *= width;
    from = range.end;
    first_row = end_row;
    if (range.work > 0) ranges->push_back(std::move(range));
  }
}

Contributions::Contributions(const GradientsOfTable& gradients, const RowRange& range)
    : gradients_(gradients), width_(static_cast<size_t>(gradients.table->width)) {
  reserve(range);
  if (gradients.cores.size() == 1) {
    take_as_it_is(range);
  } else {
    merge(range);
  }
  const float* any = filled_ > 0 ? sources_[filled_ - 1] : nullptr;
  std::fill(sources_.get() + filled_, sources_.get() + filled_ + kSourcesAhead, any);
}

// One core has its occurrences in the right order.
void Contributions::take_as_it_is(const RowRange& range) {
  const CoreOfTable& core = gradients_.cores[0];
  rows_ = core.group.distinct + range.from[0];
  starts_ = core.group.run_starts + range.from[0];
  size_ = range.end[0] - range.from[0];
  append(core, starts_[0], starts_[size_]);
}

void Contributions::merge(const RowRange& range) {
  const bool accumulate = gradients_.table->options[kAccumulate] != 0.0f;
  std::vector<uint32_t> at = range.from;
  std::vector<Run> runs;
  merged_starts_.push_back(0);
  for (;;) {
    uint32_t row = range.end_row;
    for (size_t core = 0; core < at.size(); ++core) {
      if (at[core] == range.end[core]) continue;
      row = std::min(row, gradients_.cores[core].group.distinct[at[core]]);
    }
    if (row == range.end_row) break;
    runs.clear();
    for (size_t core = 0; core < at.size(); ++core) {
      const TableGroup& group = gradients_.cores[core].group;
      if (at[core] == range.end[core] || group.distinct[at[core]] != row) continue;
      runs.push_back({&gradients_.cores[core], group.run_starts[at[core]],
                      group.run_starts[at[core] + 1]});
      ++at[core];
    }
    if (accumulate) {
      append_by_feature(&runs);
      close_entry(row);
    } else {
      append_by_core(row, &runs);
    }
  }
  rows_ = merged_rows_.data();
  starts_ = merged_starts_.data();
  size_ = merged_rows_.size();
}

// Room for all occurrences of a range, whose runs are checked on the way.
void Contributions::reserve(const RowRange& range) {
  size_t occurrences = 0, distinct = 0;
  for (size_t core = 0; core < gradients_.cores.size(); ++core) {
    const uint32_t from = range.from[core], end = range.end[core];
    if (from == end) continue;
    const CoreOfTable& own = gradients_.cores[core];
    check_runs(own, from, end, range);
    occurrences += own.group.run_starts[end] - own.group.run_starts[from];
    distinct += end - from;
  }
  if (occurrences > UINT32_MAX) refuse("more occurrences than 32 bits can count");
  merged_rows_.reserve(distinct);
  merged_starts_.reserve(distinct + 1);
  sources_.reset(new const float*[occurrences + kSourcesAhead]);
  if (gradients_.has_factors) factors_.reset(new float[occurrences]);
}

// After this, rows of the range are ascending and inside it, and so are runs inside the arrays.
void Contributions::check_runs(const CoreOfTable& core, uint32_t from, uint32_t end,
                               const RowRange& range) {
  const TableGroup& group = core.group;
  uint64_t lowest = range.first_row;
  for (uint32_t at = from; at < end; ++at) {
    const uint32_t row = group.distinct[at];
    if (row < lowest || row >= range.end_row) refuse("distinct rows that do not ascend");
    lowest = uint64_t{row} + 1;
    if (group.run_starts[at] > group.run_starts[at + 1]) refuse("runs that do not ascend");
  }
  if (group.run_starts[end] > group.n) refuse("a run beyond its occurrences");
}

// The occurrences of one row, whose runs come core by core, each in the order (feature, sample).
void Contributions::append_by_feature(std::vector<Run>* runs) {
  if (runs->size() == 1) {
    append(*runs->front().core, runs->front().at, runs->front().end);
    return;
  }
  const int bits = gradients_.table->sample_bits;
  for (;;) {
    uint64_t feature = UINT64_MAX;
    for (const Run& run : *runs) {
      if (run.at == run.end) continue;
      feature = std::min(feature, uint64_t{run.core->group.codes[run.at]} >> bits);
    }
    if (feature == UINT64_MAX) return;
    for (Run& run : *runs) {
      uint32_t end = run.at;
      while (end < run.end && uint64_t{run.core->group.codes[end]} >> bits == feature) ++end;
      append(*run.core, run.at, end);
      run.at = end;
    }
  }
}

// The same by core, with an entry for each, from the core of the row on.
void Contributions::append_by_core(uint32_t row, std::vector<Run>* runs) {
  if (runs->size() > 1) {
    const int64_t id = gradients_.layout->whole_id_of(*gradients_.table, row);
    const CoreOfTable* home =
        &gradients_.cores[static_cast<size_t>(id) % gradients_.cores.size()];
    std::rotate(runs->begin(),
                std::find_if(runs->begin(), runs->end(),
                             [home](const Run& run) { return run.core >= home; }),
                runs->end());
  }
  for (const Run& run : *runs) {
    append(*run.core, run.at, run.end);
    close_entry(row);
  }
}

void Contributions::append(const CoreOfTable& core, uint32_t at, uint32_t end) {
  if (core.features.size() == 1) {
    append_of_one_feature(core, at, end);
    return;
  }
  const uint32_t* codes = core.group.codes;
  const float* shares = core.group.sorted_shares;
  const FeatureGradient* features = core.features.data();
  const size_t count = core.features.size(), width = width_;
  const int bits = gradients_.table->sample_bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  const float** source = sources_.get() + filled_;
  float* factor = factors_ != nullptr ? factors_.get() + filled_ : nullptr;
  if (factor != nullptr && shares == nullptr && core.group.scales == nullptr) {
    std::fill_n(factor, end - at, 1.0f);
    factor = nullptr;
  }
  filled_ += end - at;
  for (; at < end; ++at) {
    const uint64_t code = codes[at], place = code >> bits, sample = code & mask;
    if (place >= count) refuse("a feature that the table does not have");
    const FeatureGradient& feature = features[place];
    if (sample >= feature.samples) refuse("a sample that the feature does not have");
    *source++ = feature.values + sample * width;
    if (factor != nullptr) {
      *factor++ = feature.scales != nullptr ? feature.scales[sample] : shares[at];
    }
  }
}

// The same where codes are samples: simple loops, which compilers turn into vector instructions.
void Contributions::append_of_one_feature(const CoreOfTable& core, uint32_t at, uint32_t end) {
  const FeatureGradient& feature = core.features[0];
  const uint32_t* samples = core.group.codes + at;
  const size_t count = end - at;
  uint32_t last = 0;
  for (size_t i = 0; i < count; ++i) last = std::max(last, samples[i]);
  if (last >= feature.samples) refuse("a sample that the feature does not have");
  const float** sources = sources_.get() + filled_;
  for (size_t i = 0; i < count; ++i) sources[i] = feature.values + samples[i] * width_;
  if (feature.scales != nullptr) {
    float* factors = factors_.get() + filled_;
    for (size_t i = 0; i < count; ++i) factors[i] = feature.scales[samples[i]];
  } else if (core.group.sorted_shares != nullptr) {
    std::copy_n(core.group.sorted_shares + at, count, factors_.get() + filled_);
  } else if (factors_ != nullptr) {
    std::fill_n(factors_.get() + filled_, count, 1.0f);
  }
  filled_ += count;
}

// Makes an entry of what was appended since the last call.
void Contributions::close_entry(uint32_t row) {
  merged_rows_.push_back(row);
  merged_starts_.push_back(static_cast<uint32_t>(filled_));
}

void Contributions::refuse(const char* what) const { refuse_group(*gradients_.table, what); }

}  // namespace ete
