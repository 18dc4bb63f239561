#include "tpu_ids.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "error.h"
#include "shares.h"

namespace ete {
namespace {

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

}  // namespace

TpuIds::TpuIds(const std::string& feature, const std::vector<int64_t>& shape, Where form,
               TpuIdsInput input, const std::string& combiner)
    : feature_(feature), ids_(std::move(input.ids)), weights_(std::move(input.weights)) {
  const std::vector<int64_t>& extents = input.where_shape;
  const int64_t samples =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  if (form == Where::kArbitrary && extents == std::vector<int64_t>{0}) {
    by_number(samples);
  } else if (form != Where::kIndices && extents.size() == 1) {
    by_split(samples, input.where);
  } else if (form != Where::kSplits) {
    by_index(shape, form, input);
  } else {
    refuse("its row splits must be a vector", text_of(extents));
  }
  if (!weights_.empty() && weights_.size() != ids_.size()) {
    refuse("there must be a weight for each of " + std::to_string(ids_.size()) + " ids, or none",
           std::to_string(weights_.size()));
  }
  const int number = combiner == "mean" ? kMean : combiner == "sqrtn" ? kSqrtn : kSum;
  if (number == kSum && combiner != "sum") {
    refuse("its combiner must be sum, mean or sqrtn", combiner);
  }
  weighted_ = number != kSum || !weights_.empty();
  if (number != kSum) share_out(number);
}

FeatureIds TpuIds::ids() const {
  static const float nothing = 0;  // Null would mean that there are no weights.
  const float* weights = weights_.empty() ? &nothing : weights_.data();
  return {samples_.data(), ids_.data(), weighted_ ? weights : nullptr, ids_.size()};
}

void TpuIds::refuse(const std::string& rule, const std::string& got) const {
  throw Error(Code::kInvalidArgument,
              "Feature \"" + feature_ + "\": " + rule + ", got " + got + ".");
}

void TpuIds::by_number(int64_t samples) {
  if (!ids_.empty() && static_cast<int64_t>(ids_.size()) != samples) {
    refuse("without indices there must be an id for each of " + std::to_string(samples) +
               " samples, or none", std::to_string(ids_.size()));
  }
  samples_.resize(ids_.size());
  std::iota(samples_.begin(), samples_.end(), 0);
}

void TpuIds::by_index(const std::vector<int64_t>& shape, Where form, const TpuIdsInput& input) {
  const std::vector<int64_t>& extents = input.where_shape;
  const int64_t used = static_cast<int64_t>(shape.size());
  const int64_t columns = extents.size() == 2 ? extents[1] : extents.size() == 1 ? 1 : 0;
  const bool fits = form == Where::kArbitrary
                        ? columns == used + 1
                        : columns == used || (used == 1 && columns == 2);
  if (!fits || static_cast<size_t>(extents[0]) != ids_.size()) {
    refuse("there must be an index of " + std::to_string(used + (form == Where::kArbitrary)) +
               " numbers for each of " + std::to_string(ids_.size()) + " ids", text_of(extents));
  }
  for (size_t i = 0; i < ids_.size(); ++i) {
    const int64_t* const row = input.where.data() + i * static_cast<size_t>(columns);
    int64_t sample = 0;
    for (size_t column = 0; column < shape.size(); ++column) {
      if (row[column] < 0 || row[column] >= shape[column]) {
        refuse("number " + std::to_string(column) + " of an index must be from 0 to " +
                   std::to_string(shape[column] - 1), std::to_string(row[column]));
      }
      sample = sample * shape[column] + row[column];
    }
    samples_.push_back(static_cast<int32_t>(sample));
  }
}

void TpuIds::by_split(int64_t samples, const std::vector<int64_t>& where) {
  if (static_cast<int64_t>(where.size()) != samples + 1 || where.front() != 0 ||
      where.back() != static_cast<int64_t>(ids_.size()) ||
      !std::is_sorted(where.begin(), where.end())) {
    refuse("its row splits must be " + std::to_string(samples + 1) + " ascending numbers from 0 "
               "to " + std::to_string(ids_.size()), std::to_string(where.size()) + " numbers");
  }
  for (size_t sample = 0; sample + 1 < where.size(); ++sample) {
    samples_.resize(static_cast<size_t>(where[sample + 1]), static_cast<int32_t>(sample));
  }
}

void TpuIds::share_out(int combiner) {
  if (weights_.empty()) weights_.assign(ids_.size(), 1.0f);
  for (size_t begin = 0, end; begin < ids_.size(); begin = end) {
    float sum = 0.0f;
    for (end = begin; end < ids_.size() && samples_[end] == samples_[begin]; ++end) {
      sum += norm_part(combiner, weights_[end]);
    }
    const float norm = norm_of(combiner, sum);
    for (size_t i = begin; i < end; ++i) weights_[i] = share_of(weights_[i], norm);
  }
}

}  // namespace ete
