#include "contributions.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

Contributions::Contributions(const GradientsOfTable& gradients, const RowRange& range)
    : gradients_(gradients), width_(static_cast<size_t>(gradients.table->width)) {
  reserve(range);
  if (gradients.cores.size() == 1) {
    take_as_it_is(range);
  } else if (gradients.table->options[kAccumulate] != 0.0f &&
             gradients.table->features.size() > 1) {
    merge_features(range);
  } else {
    merge_runs(range);
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

// The occurrences of a row on one core are a run. If they have one feature, or each core has an
// entry, runs stay as they are, and only they are sorted.
void Contributions::merge_runs(const RowRange& range) {
  std::vector<RowList> lists;
  std::vector<uint32_t> firsts{0};  // Where runs begin, core by core.
  bool has_long = false;            // Whether a run is more than an occurrence, or less.
  for (size_t core = 0; core < gradients_.cores.size(); ++core) {
    const uint32_t from = range.from[core], count = range.end[core] - from;
    if (count == 0) continue;
    const TableGroup& group = gradients_.cores[core].group;
    const uint32_t* const starts = group.run_starts + from;
    lists.push_back({group.distinct + from, count});
    const uint32_t before = static_cast<uint32_t>(filled_) - starts[0];
    firsts.resize(firsts.size() + count);
    uint32_t* const own = firsts.data() + firsts.size() - count;
    for (uint32_t run = 0; run < count; ++run) {
      own[run] = before + starts[run + 1];
      has_long |= starts[run + 1] - starts[run] != 1;
    }
    append(gradients_.cores[core], starts[0], starts[count]);
  }
  RowOrder runs = order_rows(lists, range.first_row, range.end_row);
  if (gradients_.table->options[kAccumulate] == 0.0f) give_each_core_an_entry(range, &runs);
  if (has_long) unfold(firsts, &runs);
  arrange(runs.order.get());
  use(std::move(runs));
}

// Makes an order of occurrences from an order of runs.
void Contributions::unfold(const std::vector<uint32_t>& firsts, RowOrder* runs) const {
  std::unique_ptr<uint32_t[]> numbers(new uint32_t[filled_]);
  std::vector<uint32_t> placed(firsts.size());
  uint32_t place = 0;
  for (size_t i = 0; i + 1 < firsts.size(); ++i) {
    const uint32_t run = runs->order[i], end = firsts[run + 1];
    for (uint32_t number = firsts[run]; number < end; ++number) numbers[place++] = number;
    placed[i + 1] = place;
  }
  for (uint32_t& start : runs->starts) start = placed[start];
  runs->order = std::move(numbers);
}

// The occurrences are listed by feature, core and sample. Then each of them is sorted by its row.
void Contributions::merge_features(const RowRange& range) {
  for (size_t core = 0; core < gradients_.cores.size(); ++core) {
    const uint32_t from = range.from[core], end = range.end[core];
    if (from == end) continue;
    const uint32_t* starts = gradients_.cores[core].group.run_starts;
    append(gradients_.cores[core], starts[from], starts[end]);
  }
  std::vector<size_t> places = first_of_features(range);
  const std::unique_ptr<uint32_t[]> rows(new uint32_t[filled_]), numbers(new uint32_t[filled_]);
  const int bits = gradients_.table->sample_bits;
  uint32_t number = 0;
  for (size_t core = 0; core < gradients_.cores.size(); ++core) {
    const TableGroup& group = gradients_.cores[core].group;
    for (uint32_t at = range.from[core]; at < range.end[core]; ++at) {
      const uint32_t row = group.distinct[at], end = group.run_starts[at + 1];
      for (uint32_t i = group.run_starts[at]; i < end; ++i) {
        const size_t place = places[uint64_t{group.codes[i]} >> bits]++;
        rows[place] = row;
        numbers[place] = number++;
      }
    }
  }
  RowOrder sorted = order_rows({{rows.get(), filled_}}, range.first_row, range.end_row);
  for (size_t i = 0; i < filled_; ++i) sorted.order[i] = numbers[sorted.order[i]];
  arrange(sorted.order.get());
  use(std::move(sorted));
}

// Where the occurrences of each feature begin, if they come feature by feature.
std::vector<size_t> Contributions::first_of_features(const RowRange& range) const {
  const int bits = gradients_.table->sample_bits;
  std::vector<size_t> places(gradients_.table->features.size(), 0);
  for (size_t core = 0; core < gradients_.cores.size(); ++core) {
    if (range.from[core] == range.end[core]) continue;
    const TableGroup& group = gradients_.cores[core].group;
    const uint32_t end = group.run_starts[range.end[core]];
    for (uint32_t i = group.run_starts[range.from[core]]; i < end; ++i) {
      ++places[uint64_t{group.codes[i]} >> bits];
    }
  }
  size_t place = 0;
  for (size_t& first : places) place += std::exchange(first, place);
  return places;
}

// Makes an entry of each run. The runs of a row begin with that of the core of the row.
void Contributions::give_each_core_an_entry(const RowRange& range, RowOrder* runs) const {
  std::vector<uint32_t> ends;  // By core: the number of its runs and those of all before it.
  uint32_t end = 0;
  for (size_t core = 0; core < range.from.size(); ++core) {
    ends.push_back(end += range.end[core] - range.from[core]);
  }
  std::vector<uint32_t> rows, starts;
  for (size_t i = 0; i < runs->rows.size(); ++i) {
    uint32_t* const first = runs->order.get() + runs->starts[i];
    uint32_t* const last = runs->order.get() + runs->starts[i + 1];
    if (last - first > 1) {
      const int64_t id = gradients_.layout->whole_id_of(*gradients_.table, runs->rows[i]);
      const size_t home = static_cast<size_t>(id) % ends.size();
      const uint32_t least = home == 0 ? 0 : ends[home - 1];
      std::rotate(first, std::lower_bound(first, last, least), last);
    }
    rows.insert(rows.end(), static_cast<size_t>(last - first), runs->rows[i]);
  }
  starts.resize(rows.size() + 1);
  std::iota(starts.begin(), starts.end(), 0);
  runs->rows = std::move(rows);
  runs->starts = std::move(starts);
}

// Room for all occurrences of a range, whose runs are checked on the way.
void Contributions::reserve(const RowRange& range) {
  size_t occurrences = 0;
  for (size_t core = 0; core < gradients_.cores.size(); ++core) {
    const uint32_t from = range.from[core], end = range.end[core];
    if (from == end) continue;
    const CoreOfTable& own = gradients_.cores[core];
    check_runs(own, from, end, range);
    occurrences += own.group.run_starts[end] - own.group.run_starts[from];
  }
  if (occurrences > UINT32_MAX) refuse("more occurrences than 32 bits can count");
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

// Brings what was appended into another order: [filled_] numbers of occurrences.
void Contributions::arrange(const uint32_t* numbers) {
  std::unique_ptr<const float*[]> sources(new const float*[filled_ + kSourcesAhead]);
  for (size_t i = 0; i < filled_; ++i) sources[i] = sources_[numbers[i]];
  sources_ = std::move(sources);
  if (factors_ == nullptr) return;
  std::unique_ptr<float[]> factors(new float[filled_]);
  for (size_t i = 0; i < filled_; ++i) factors[i] = factors_[numbers[i]];
  factors_ = std::move(factors);
}

void Contributions::use(RowOrder merged) {
  merged_ = std::move(merged);
  rows_ = merged_.rows.data();
  starts_ = merged_.starts.data();
  size_ = merged_.rows.size();
}

void Contributions::refuse(const char* what) const { refuse_group(*gradients_.table, what); }

}  // namespace ete
