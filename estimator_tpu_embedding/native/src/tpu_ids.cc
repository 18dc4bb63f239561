#include "tpu_ids.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>

#include "error.h"
#include "shares.h"

namespace ete {
namespace {

constexpr int32_t kCut = -1;

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

}  // namespace

TpuIds::TpuIds(const std::string& feature, const std::vector<int64_t>& shape, Where form,
               TpuIdsInput input, const std::string& combiner)
    : feature_(feature),
      shape_(shape.begin(), shape.end() - 1),
      ids_(std::move(input.ids)),
      weights_(std::move(input.weights)) {
  const std::vector<int64_t>& extents = input.where_shape;
  if (weights_.empty()) weights_.assign(ids_.size(), 1.0f);
  if (weights_.size() != ids_.size()) {
    refuse("there must be a weight for each of " + std::to_string(ids_.size()) + " ids, or none",
           std::to_string(weights_.size()));
  }
  samples_.resize(ids_.size());
  if (form == Where::kArbitrary && extents == std::vector<int64_t>{0}) {
    by_number(std::accumulate(shape_.begin(), shape_.end(), int64_t{1},
                              std::multiplies<int64_t>()));
  } else if (form != Where::kIndices && extents.size() == 1) {
    by_split(input.where);
  } else if (form != Where::kSplits) {
    by_index(form, input);
  } else {
    refuse("its row splits must be a vector", text_of(extents));
  }
  order();
  const int number = combiner == "mean" ? kMean : combiner == "sqrtn" ? kSqrtn : kSum;
  if (number == kSum && combiner != "sum") {
    refuse("its combiner must be sum, mean or sqrtn", combiner);
  }
  if (number != kSum) share_out(number);
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
  std::iota(samples_.begin(), samples_.end(), 0);
}

void TpuIds::by_index(Where form, const TpuIdsInput& input) {
  const std::vector<int64_t>& extents = input.where_shape;
  const int64_t used = static_cast<int64_t>(shape_.size());
  const int64_t columns = extents.size() == 2 ? extents[1] : extents.size() == 1 ? 1 : 0;
  const bool fits = form == Where::kArbitrary
                        ? columns == used + 1
                        : columns == used || (used == 1 && columns == 2);
  if (!fits || static_cast<size_t>(extents[0]) != ids_.size()) {
    refuse("there must be an index of " + std::to_string(used + (form == Where::kArbitrary)) +
               " numbers for each of " + std::to_string(ids_.size()) + " ids", text_of(extents));
  }
  for (size_t i = 0; i < ids_.size(); ++i) {
    place(i, input.where.data() + i * static_cast<size_t>(columns));
  }
}

void TpuIds::by_split(const std::vector<int64_t>& where) {
  if (static_cast<int64_t>(where.size()) != shape_[0] + 1 || where.front() != 0 ||
      where.back() != static_cast<int64_t>(ids_.size()) ||
      !std::is_sorted(where.begin(), where.end()) || shape_.size() > 2) {
    refuse("its row splits must be " + std::to_string(shape_[0] + 1) + " ascending numbers from "
               "0 to " + std::to_string(ids_.size()), std::to_string(where.size()) + " numbers");
  }
  for (int64_t row = 0; row < shape_[0]; ++row) {
    const int64_t begin = where[static_cast<size_t>(row)];
    for (int64_t i = begin; i < where[static_cast<size_t>(row) + 1]; ++i) {
      const int64_t index[] = {row, i - begin};
      place(static_cast<size_t>(i), index);
    }
  }
}

void TpuIds::place(size_t i, const int64_t* index) {
  int64_t sample = 0;
  for (size_t column = 0; column < shape_.size(); ++column) {
    const bool is_cut = column > 0 && index[column] >= shape_[column];
    if (index[column] < 0 || (column == 0 && index[column] >= shape_[column])) {
      refuse("number " + std::to_string(column) + " of an index must be from 0 to " +
                 std::to_string(shape_[column] - 1), std::to_string(index[column]));
    }
    if (is_cut || sample == kCut) {
      sample = kCut;
    } else {
      sample = sample * shape_[column] + index[column];
    }
  }
  samples_[i] = static_cast<int32_t>(sample);
}

// Ids may come in any order, and those that are cut leave.
void TpuIds::order() {
  if (std::is_sorted(samples_.begin(), samples_.end()) &&
      (samples_.empty() || samples_.front() != kCut)) {
    return;
  }
  std::vector<size_t> places;
  for (size_t i = 0; i < samples_.size(); ++i) {
    if (samples_[i] != kCut) places.push_back(i);
  }
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return samples_[a] < samples_[b]; });
  const auto arrange = [&](auto& values) {
    std::remove_reference_t<decltype(values)> arranged;
    for (const size_t i : places) arranged.push_back(values[i]);
    values = std::move(arranged);
  };
  arrange(ids_);
  arrange(weights_);
  arrange(samples_);
}

void TpuIds::share_out(int combiner) {
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
