#include "layout_variants.h"

#include "grouped.h"

namespace ete {

namespace {

bool is_weighted_as(const Layout& layout, const std::vector<int64_t>& weighted) {
  if (weighted.size() != layout.features.size()) return false;
  for (size_t f = 0; f < weighted.size(); ++f) {
    if (weighted[f] != static_cast<int64_t>(layout.features[f].weighted)) return false;
  }
  return true;
}

}  // namespace

const Layout& Layouts::with(const std::vector<int64_t>& weighted) {
  if (weighted.empty() || is_weighted_as(own_, weighted)) return own_;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Layout& other : others_) {
    if (is_weighted_as(other, weighted)) return other;
  }
  others_.push_back(own_.weighted_as(weighted));
  return others_.back();
}

const Layout& Layouts::of(const uint32_t* words, size_t count) const {
  if (count < kHeaderWords) return own_;
  const uint64_t hash = hash_of_group(words);
  if (hash == own_.hash) return own_;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Layout& other : others_) {
    if (hash == other.hash) return other;
  }
  return own_;
}

}  // namespace ete
