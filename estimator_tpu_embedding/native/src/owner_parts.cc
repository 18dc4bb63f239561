#include "owner_parts.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "denormals.h"
#include "dispatch.h"
#include "error.h"

namespace ete {

namespace {

constexpr size_t kFloats = size_t{1} << 15;  // That a chunk writes, about.

[[noreturn]] void refuse(size_t o, const std::string& what) {
  throw Error(Code::kInvalidArgument,
              "The links of owner " + std::to_string(o) + " " + what + ".");
}

bool ascends(const int32_t* values, size_t count) {
  bool result = count == 0 || values[0] >= 0;
  for (size_t i = 1; i < count; ++i) result &= values[i - 1] <= values[i];
  return result;
}

bool all_within(const int32_t* values, size_t count, size_t first, size_t end) {
  bool result = true;
  const int64_t low = static_cast<int64_t>(first), high = static_cast<int64_t>(end);
  for (size_t i = 0; i < count; ++i) result &= values[i] >= low && values[i] < high;
  return result;
}

bool counts_on(const int32_t* values, size_t count, size_t first) {
  bool result = true;
  for (size_t i = 0; i < count; ++i) result &= static_cast<size_t>(values[i]) == first + i;
  return result;
}

// A part of the numbers below some count that belong to one thing: a feature, or one of an owner.
struct Chunk {
  size_t owner, feature, from, end;
};

void add_chunks(size_t owner, size_t feature, size_t first, size_t end, size_t width,
                std::vector<Chunk>* chunks) {
  const size_t step = std::max<size_t>(1, kFloats / width);
  for (size_t from = first; from < end; from += step) {
    chunks->push_back({owner, feature, from, std::min(end, from + step)});
  }
}

// The parts of samples [from, end) of a feature, sample by sample and in the order of owners.
struct Sources {
  Sources(const Exchange& exchange, const std::vector<Links>& links,
          const std::vector<const float*>& parts, const Chunk& chunk) {
    const size_t f = chunk.feature, width = exchange.width_of(f);
    const size_t base = exchange.first_position(f);
    const bool weighted = exchange.layout().features[f].weighted;
    std::vector<Reader> readers;
    for (size_t o = 0; o < links.size(); ++o) {
      const size_t from = links[o].lower_bound(f, base + chunk.from);
      const size_t end = links[o].lower_bound(f, base + chunk.end);
      if (from < end) {
        readers.push_back({links[o].positions(), links[o].groups(), links[o].weights(), from, end,
                           links[o].first_group(f), parts[o] + links[o].first_float(f)});
      }
    }
    starts.reserve(chunk.end - chunk.from + 1);
    for (size_t position = base + chunk.from; position < base + chunk.end; ++position) {
      starts.push_back(static_cast<uint32_t>(all.size()));
      for (Reader& to : readers) {
        for (; to.at < to.end && static_cast<size_t>(to.positions[to.at]) == position; ++to.at) {
          const size_t group = static_cast<size_t>(to.groups[to.at]) - to.first_group;
          all.push_back(to.part + group * width);
          if (weighted) factors.push_back(to.weights[to.at]);
        }
      }
    }
    starts.push_back(static_cast<uint32_t>(all.size()));
    all.insert(all.end(), kSourcesAhead, all.empty() ? nullptr : all.back());
  }

  struct Reader {
    const int32_t *positions, *groups;
    const float* weights;
    size_t at, end, first_group;
    const float* part;  // Of the feature.
  };

  std::vector<const float*> all;
  std::vector<float> factors;  // Empty without weights.
  std::vector<uint32_t> starts;
};

// to = 0 or to, + from * scale * weight.
template <bool kAdd>
void accumulate(const float* from, float scale, float weight, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) {
    const float value = from[i] * scale * weight;
    to[i] = kAdd ? to[i] + value : value;
  }
}

}  // namespace

Links::Links(const Exchange& exchange, size_t o, const int32_t* words, size_t count) {
  const size_t features = exchange.features(), each = exchange.weighted() ? 3 : 2;
  if (count < features || (count - features) % each != 0) {
    refuse(o, "have " + std::to_string(count) + " words");
  }
  const size_t links = (count - features) / each;
  groups_ = words + features;
  positions_ = groups_ + links;
  weights_ = exchange.weighted() ? reinterpret_cast<const float*>(positions_ + links) : nullptr;
  if (!ascends(positions_, links)) refuse(o, "do not ascend");
  for (size_t f = 0; f < features; ++f) {
    const int32_t end = static_cast<int32_t>(exchange.first_position(f + 1));
    const int32_t* const from = positions_ + firsts_.back();
    add_feature(exchange, o, f, words[f], static_cast<size_t>(
        std::lower_bound(from, positions_ + links, end) - positions_));
  }
  if (firsts_.back() < links) {
    refuse(o, "go beyond " + std::to_string(exchange.first_position(features)));
  }
}

void Links::add_feature(const Exchange& exchange, size_t o, size_t f, int32_t groups,
                        size_t end) {
  const FeatureLayout& feature = exchange.layout().features[f];
  const int64_t most = exchange.knows(o, f) ? feature.samples : 0;
  if (groups < 0 || groups > most) {
    refuse(o, "have " + std::to_string(groups) + " groups of feature \"" + feature.name +
                  "\" instead of up to " + std::to_string(most));
  }
  const size_t first = firsts_.back(), first_group = first_groups_.back();
  const size_t own = static_cast<size_t>(groups);
  if (!all_within(groups_ + first, end - first, first_group, first_group + own)) {
    refuse(o, "name groups that feature \"" + feature.name + "\" does not have");
  }
  one_each_.push_back(end - first == own && counts_on(groups_ + first, own, first_group));
  firsts_.push_back(end);
  first_groups_.push_back(first_group + own);
  first_floats_.push_back(first_floats_.back() + own * exchange.width_of(f));
}

size_t Links::lower_bound(size_t f, size_t position) const {
  const int32_t* found = std::lower_bound(positions_ + firsts_[f], positions_ + firsts_[f + 1],
                                          static_cast<int64_t>(position));
  return static_cast<size_t>(found - positions_);
}

void merge(const Exchange& exchange, const std::vector<Links>& links,
           const std::vector<const float*>& parts, const float* scales, Pool& pool,
           const std::vector<float*>& out) {
  std::vector<Chunk> chunks;
  for (size_t f = 0; f < exchange.features(); ++f) {
    add_chunks(0, f, 0, static_cast<size_t>(exchange.layout().features[f].samples),
               exchange.width_of(f), &chunks);
  }
  pool.run(chunks.size(), [&](size_t i) {
    const FlushDenormals flush;
    const Chunk& chunk = chunks[i];
    const Sources sources(exchange, links, parts, chunk);
    const size_t width = exchange.width_of(chunk.feature);
    SumJob job{};
    job.sources = sources.all.data();
    if (!sources.factors.empty()) job.factors = sources.factors.data();
    job.starts = sources.starts.data();
    job.outputs = chunk.end - chunk.from;
    job.width = static_cast<int>(width);
    job.out = out[chunk.feature] + chunk.from * width;
    if (exchange.is_scaled(chunk.feature)) {
      job.scales = scales + exchange.first_scale(chunk.feature) + chunk.from;
    }
    kernels().sum(job);
  });
}

namespace {

// The links of an owner to a feature, in chunks that write to different groups.
void add_link_chunks(const Exchange& exchange, const Links& links, size_t o, size_t f,
                     std::vector<Chunk>* chunks) {
  const size_t first = links.first(f), end = links.first(f + 1);
  if (links.one_each(f)) {
    add_chunks(o, f, first, end, exchange.width_of(f), chunks);
  } else {
    chunks->push_back({o, f, first, end});
  }
}

void spread_chunk(const Exchange& exchange, const Links& links, const Chunk& chunk,
                  const float* gradients, const float* scales, float* part) {
  const size_t f = chunk.feature, width = exchange.width_of(f);
  const float* const own = exchange.is_scaled(f) ? scales + exchange.first_scale(f) : nullptr;
  const bool adds = !links.one_each(f);
  float* const to = part + links.first_float(f);
  if (adds) std::fill(to, part + links.first_float(f + 1), 0.0f);
  for (size_t at = chunk.from; at < chunk.end; ++at) {
    const size_t sample = static_cast<size_t>(links.positions()[at]) - exchange.first_position(f);
    const size_t group = static_cast<size_t>(links.groups()[at]) - links.first_group(f);
    const auto put = adds ? accumulate<true> : accumulate<false>;
    put(gradients + sample * width, own ? own[sample] : 1.0f,
        links.weights() ? links.weights()[at] : 1.0f, width, to + group * width);
  }
}

}  // namespace

void spread(const Exchange& exchange, const std::vector<Links>& links,
            const std::vector<const float*>& gradients, const float* scales, Pool& pool,
            const std::vector<float*>& parts) {
  std::vector<Chunk> chunks;
  for (size_t o = 0; o < links.size(); ++o) {
    for (size_t f = 0; f < exchange.features(); ++f) {
      add_link_chunks(exchange, links[o], o, f, &chunks);
    }
  }
  pool.run(chunks.size(), [&](size_t i) {
    const FlushDenormals flush;
    const Chunk& chunk = chunks[i];
    spread_chunk(exchange, links[chunk.owner], chunk, gradients[chunk.feature], scales,
                 parts[chunk.owner]);
  });
}

}  // namespace ete
