#include "message.h"

#include <string>

#include "error.h"

namespace ete {

namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kInvalidArgument, "This is not a message to this engine: " + what + ".");
}

[[noreturn]] void refuse_counts(const FeatureLayout& feature, int64_t ids, int64_t samples) {
  refuse("feature \"" + feature.name + "\" has up to " + std::to_string(feature.samples) +
         " samples, and the message says " + std::to_string(ids) + " ids in " +
         std::to_string(samples) + " samples");
}

// Checks how many ids and samples there are. Returns how many ids all features have.
size_t check_counts(const Layout& layout, const int32_t* words, size_t count) {
  const size_t features = layout.features.size();
  if (count < 2 * features) refuse("it has " + std::to_string(count) + " words");
  uint64_t ids = 0, weights = 0;
  for (size_t f = 0; f < features; ++f) {
    const FeatureLayout& feature = layout.features[f];
    const int64_t n = words[f], m = words[features + f];
    if (n < 0 || m < 0 || m > n || (m == 0) != (n == 0) || m > feature.samples) {
      refuse_counts(feature, n, m);
    }
    ids += static_cast<uint64_t>(n);
    weights += feature.weighted ? static_cast<uint64_t>(n) : 0;
  }
  const uint64_t expected = 2 * features + 2 * ids + weights;
  if (count != expected) {
    refuse("it has " + std::to_string(count) + " words instead of " + std::to_string(expected));
  }
  return static_cast<size_t>(ids);
}

// That there is no gap between samples, which begin with 0.
void check_dense(const FeatureLayout& feature, const int32_t* samples, size_t count,
                 int32_t length) {
  if (count == 0) return;
  uint32_t steps = 0;  // Any bit above the lowest is one of a step other than 0 or 1.
  for (size_t i = 1; i < count; ++i) {
    steps |= static_cast<uint32_t>(samples[i]) - static_cast<uint32_t>(samples[i - 1]);
  }
  if (samples[0] != 0 || samples[count - 1] != length - 1 || steps > 1) {
    refuse("the samples of feature \"" + feature.name + "\" are not those from 0 to " +
           std::to_string(length - 1));
  }
}

}  // namespace

Message::Message(const Layout& layout, const int32_t* words, size_t count, Scratch& scratch)
    : rows_(scratch.borrow(check_counts(layout, words, count) * sizeof(int64_t),
                           "the rows of a message")) {
  const size_t features = layout.features.size();
  lengths_ = words + features;
  const int32_t* row = words + 2 * features;
  int64_t* to = rows_.as<int64_t>();
  for (size_t f = 0; f < features; ++f) {
    const size_t n = static_cast<size_t>(words[f]);
    for (size_t i = 0; i < n; ++i) to[i] = row[i];
    features_.push_back({nullptr, to, nullptr, n});
    to += n;
    row += n;
  }
  const int32_t* next = row;  // Samples, then weights.
  for (size_t f = 0; f < features; ++f) {
    check_dense(layout.features[f], next, features_[f].count, lengths_[f]);
    features_[f].samples = next;
    next += features_[f].count;
  }
  for (size_t f = 0; f < features; ++f) {
    if (!layout.features[f].weighted) continue;
    features_[f].weights = reinterpret_cast<const float*>(next);
    next += features_[f].count;
  }
}

size_t floats_of_parts(const Layout& layout, const int32_t* lengths, size_t count) {
  if (count != layout.features.size()) {
    throw Error(Code::kInvalidArgument,
                "There must be lengths of " + std::to_string(layout.features.size()) +
                    " features, got " + std::to_string(count) + ".");
  }
  size_t floats = 0;
  for (size_t f = 0; f < count; ++f) {
    const FeatureLayout& feature = layout.features[f];
    if (lengths[f] < 0 || lengths[f] > feature.samples) {
      throw Error(Code::kInvalidArgument,
                  "Feature \"" + feature.name + "\": its length must be from 0 to " +
                      std::to_string(feature.samples) + ", got " + std::to_string(lengths[f]) +
                      ".");
    }
    floats += static_cast<size_t>(lengths[f]) *
              static_cast<size_t>(layout.tables[static_cast<size_t>(feature.table)].width);
  }
  return floats;
}

}  // namespace ete
