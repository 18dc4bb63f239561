#include "tpu_ids.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "error.h"
#include "shares.h"

namespace ete {
namespace {

template <typename To, typename From>
std::vector<To> copied(const Tensor& tensor) {
  const From* data = tensor.data<From>();
  return std::vector<To>(data, data + tensor.elements());
}

std::vector<int64_t> integers(const Tensor& tensor) {
  return tensor.type() == kTfInt32 ? copied<int64_t, int32_t>(tensor)
                                   : copied<int64_t, int64_t>(tensor);
}

std::vector<float> reals(const Tensor& tensor) {
  return tensor.type() == kTfDouble ? copied<float, double>(tensor)
                                    : copied<float, float>(tensor);
}

}  // namespace

TpuIds::TpuIds(const std::string& feature, const std::vector<int64_t>& shape, Where form,
               const Tensor& where, const Tensor& ids, const Tensor& weights,
               const std::string& combiner)
    : feature_(feature), ids_(integers(ids)), weights_(reals(weights)) {
  const std::vector<int64_t> extents = where.shape();
  const int64_t samples =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  const size_t used = shape.size();
  if (ids.shape().size() != 1) refuse("its ids must be a vector", shape_text(ids.shape()));
  if (form == Where::kArbitrary && extents == std::vector<int64_t>{0}) {
    if (!ids_.empty() && static_cast<int64_t>(ids_.size()) != samples) {
      refuse("without indices there must be an id for each of " + std::to_string(samples) +
                 " samples", std::to_string(ids_.size()));
    }
    samples_.resize(ids_.size());
    std::iota(samples_.begin(), samples_.end(), 0);
  } else if (extents.size() == 1 && form != Where::kIndices) {
    by_split(samples, integers(where));
  } else {
    const bool flat = extents.size() == 1 && used == 1;
    const size_t columns = form == Where::kSplits || (extents.size() != 2 && !flat) ? 0
                           : flat ? 1 : static_cast<size_t>(extents[1]);
    const bool fits = form == Where::kArbitrary ? columns == used + 1
                      : columns == used || (used == 1 && columns == 2);
    if (columns == 0 || !fits || static_cast<size_t>(extents[0]) != ids_.size()) {
      const std::string numbers = std::to_string(used + (form == Where::kArbitrary));
      refuse(form == Where::kSplits ? "its row splits must be a vector"
                                    : "there must be an index of " + numbers +
                                          " numbers for each of " + std::to_string(ids_.size()) +
                                          " ids",
             shape_text(extents));
    }
    by_index(shape, columns, used, integers(where));
  }
  if (!weights_.empty() && weights_.size() != ids_.size()) {
    refuse("there must be a weight for each of " + std::to_string(ids_.size()) + " ids, or none",
           std::to_string(weights_.size()));
  }
  const int number = combiner == "mean" ? kMean : combiner == "sqrtn" ? kSqrtn : kSum;
  if (number == kSum && combiner != "sum") {
    refuse("its combiner must be sum, mean or sqrtn", combiner);
  }
  // Also a feature without ids may be weighted.
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

void TpuIds::by_index(const std::vector<int64_t>& shape, size_t columns, size_t used,
                      const std::vector<int64_t>& where) {
  for (size_t i = 0; i < ids_.size(); ++i) {
    int64_t sample = 0;
    for (size_t column = 0; column < used; ++column) {
      const int64_t index = where[i * columns + column];
      if (index < 0 || index >= shape[column]) {
        refuse("number " + std::to_string(column) + " of an index must be from 0 to " +
                   std::to_string(shape[column] - 1), std::to_string(index));
      }
      sample = sample * shape[column] + index;
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
