#include "combine.h"

#include <algorithm>
#include <memory>

#include "denormals.h"
#include "dispatch.h"
#include "grouped.h"

namespace ete {
namespace {

constexpr uint64_t kWork = 1 << 15;  // Floats that a chunk reads, about.

// Samples [from, end) of one feature.
struct Chunk {
  int feature;
  size_t from, end;
};

std::vector<FeatureGroup> features_of(const Layout& layout, const uint32_t* words, size_t count) {
  std::vector<TableGroup> groups;
  for (size_t number = 0; number < layout.tables.size(); ++number) {
    groups.push_back(read_group(layout, words, count, static_cast<int>(number)));
  }
  std::vector<FeatureGroup> features;
  for (size_t number = 0; number < layout.features.size(); ++number) {
    features.emplace_back(layout, groups[layout.features[number].table],
                          static_cast<int>(number));
  }
  return features;
}

// How many samples of a feature are looked up.
uint64_t length_of(const FeatureGroup& feature, const int32_t* lengths, size_t number) {
  const uint64_t samples = static_cast<uint64_t>(feature.feature->samples);
  if (lengths == nullptr) return samples;
  const uint64_t length = static_cast<uint64_t>(lengths[number]);
  if (feature.starts[length] != feature.starts[samples]) {
    refuse_group(*feature.table, "ids of more samples than were announced");
  }
  return length;
}

std::vector<Chunk> chunks_of(const std::vector<FeatureGroup>& features, const int32_t* lengths) {
  std::vector<Chunk> chunks;
  for (size_t number = 0; number < features.size(); ++number) {
    const FeatureGroup& feature = features[number];
    const uint64_t samples = length_of(feature, lengths, number);
    if (samples == 0) continue;
    const uint64_t occurrences = std::min(feature.starts[samples] - feature.starts[0],
                                          feature.group.n);
    const uint64_t floats = (occurrences + samples) * static_cast<uint64_t>(feature.table->width);
    const uint64_t pieces = std::clamp<uint64_t>(floats / kWork, 1, samples);
    for (uint64_t piece = 0; piece < pieces; ++piece) {
      chunks.push_back({static_cast<int>(number), samples * piece / pieces,
                        samples * (piece + 1) / pieces});
    }
  }
  return chunks;
}

// After this the occurrences of a chunk are inside the arrays.
void check_starts(const FeatureGroup& feature, const Chunk& chunk) {
  for (size_t sample = chunk.from; sample < chunk.end; ++sample) {
    if (feature.starts[sample] > feature.starts[sample + 1]) {
      refuse_group(*feature.table, "samples that do not ascend");
    }
  }
  if (feature.starts[chunk.end] > feature.group.n) {
    refuse_group(*feature.table, "a sample beyond its occurrences");
  }
}

// The rows of the occurrences of a chunk, and the kSourcesAhead that a sum wants behind them.
std::unique_ptr<const float*[]> sources_of(const FeatureGroup& feature, const Chunk& chunk,
                                           const float* rows) {
  const TableLayout& table = *feature.table;
  const uint32_t* numbers = feature.group.rows + feature.starts[chunk.from];
  const size_t count = feature.starts[chunk.end] - feature.starts[chunk.from];
  const size_t width = static_cast<size_t>(table.width);
  uint32_t last = 0;
  for (size_t i = 0; i < count; ++i) last = std::max(last, numbers[i]);
  if (count > 0 && last >= table.physical_rows) {
    refuse_group(table, "a row that the table does not have");
  }
  std::unique_ptr<const float*[]> sources(new const float*[count + kSourcesAhead]);
  for (size_t i = 0; i < count; ++i) sources[i] = rows + numbers[i] * width;
  std::fill_n(sources.get() + count, kSourcesAhead, rows);
  return sources;
}

// Rounds the rows into memory of their own, which is returned, and makes them the sources.
std::unique_ptr<float[]> round_rows(const FeatureGroup& feature, const Chunk& chunk,
                                    const float** sources) {
  const Grid& grid = feature.table->grid;
  const size_t count = feature.starts[chunk.end] - feature.starts[chunk.from];
  const size_t width = static_cast<size_t>(feature.table->width);
  std::unique_ptr<float[]> rounded(new float[count * width]);
  kernels().round({sources, count, width, grid.lowest, grid.highest, grid.step, rounded.get()});
  for (size_t i = 0; i < count; ++i) sources[i] = rounded.get() + i * width;
  return rounded;
}

void combine_chunk(const FeatureGroup& feature, const Chunk& chunk, const float* rows,
                   float* out) {
  constexpr size_t kSamplesAtOnce = 32;  // What wide rows are read for twice stays in the cache.
  check_starts(feature, chunk);
  const std::unique_ptr<const float*[]> sources = sources_of(feature, chunk, rows);
  std::unique_ptr<float[]> rounded;
  if (feature.table->rounds) rounded = round_rows(feature, chunk, sources.get());
  SumJob job{};
  job.sources = sources.get();
  job.first = feature.starts[chunk.from];
  if (feature.group.shares != nullptr) job.factors = feature.group.shares + job.first;
  job.width = feature.table->width;
  for (size_t sample = chunk.from; sample < chunk.end; sample += kSamplesAtOnce) {
    job.starts = feature.starts + sample;
    job.outputs = std::min(kSamplesAtOnce, chunk.end - sample);
    job.out = out + sample * static_cast<size_t>(job.width);
    if (feature.scales != nullptr) job.scales = feature.scales + sample;
    kernels().sum(job);
  }
}

}  // namespace

void combine(const Layout& layout, const uint32_t* words, size_t count, const int32_t* lengths,
             const std::vector<const float*>& rows_of_table, Pool& pool,
             const std::vector<float*>& out_of_feature) {
  const std::vector<FeatureGroup> features = features_of(layout, words, count);
  const std::vector<Chunk> chunks = chunks_of(features, lengths);
  pool.run(chunks.size(), [&](size_t i) {
    const FlushDenormals flush;
    const Chunk& chunk = chunks[i];
    combine_chunk(features[chunk.feature], chunk,
                  rows_of_table[layout.features[chunk.feature].table],
                  out_of_feature[chunk.feature]);
  });
}

}  // namespace ete
