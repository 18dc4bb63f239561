#include "parts.h"

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
              "The positions of owner " + std::to_string(o) + " " + what + ".");
}

bool ascends(const int32_t* values, size_t count) {
  bool result = count == 0 || values[0] >= 0;
  for (size_t i = 1; i < count; ++i) result &= values[i - 1] < values[i];
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
  Sources(const Exchange& exchange, const std::vector<Positions>& positions,
          const std::vector<const float*>& parts, const Chunk& chunk) {
    const size_t f = chunk.feature, width = exchange.width_of(f);
    const size_t base = exchange.first_position(f);
    std::vector<Reader> readers;
    for (size_t o = 0; o < positions.size(); ++o) {
      const Positions& own = positions[o];
      const size_t from = own.lower_bound(f, base + chunk.from);
      const size_t end = own.lower_bound(f, base + chunk.end);
      if (from == end) continue;
      readers.push_back({own.all() + from, own.all() + end,
                         parts[o] + own.first_float(f) + (from - own.first(f)) * width});
    }
    starts.reserve(chunk.end - chunk.from + 1);
    for (size_t position = base + chunk.from; position < base + chunk.end; ++position) {
      starts.push_back(static_cast<uint32_t>(all.size()));
      for (Reader& reader : readers) {
        if (reader.at == reader.end || static_cast<size_t>(*reader.at) != position) continue;
        all.push_back(reader.part);
        reader.part += width;
        ++reader.at;
      }
    }
    starts.push_back(static_cast<uint32_t>(all.size()));
    all.insert(all.end(), kSourcesAhead, all.empty() ? nullptr : all.back());
  }

  struct Reader {
    const int32_t *at, *end;
    const float* part;  // Of `at`.
  };

  std::vector<const float*> all;
  std::vector<uint32_t> starts;
};

void multiply(const float* from, float factor, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i] * factor;
}

}  // namespace

Positions::Positions(const Exchange& exchange, size_t o, const int32_t* positions, size_t count)
    : positions_(positions) {
  if (!ascends(positions, count)) refuse(o, "do not ascend");
  size_t at = 0, floats = 0;
  for (size_t f = 0; f < exchange.features(); ++f) {
    firsts_.push_back(at);
    first_floats_.push_back(floats);
    const int32_t end = static_cast<int32_t>(exchange.first_position(f + 1));
    const size_t next =
        static_cast<size_t>(std::lower_bound(positions + at, positions + count, end) - positions);
    if (next > at && !exchange.knows(o, f)) {
      refuse(o, "name feature \"" + exchange.layout().features[f].name +
                    "\", of which it has no rows");
    }
    floats += (next - at) * exchange.width_of(f);
    at = next;
  }
  if (at < count) {
    refuse(o, "go beyond " + std::to_string(exchange.first_position(exchange.features())));
  }
  firsts_.push_back(at);
  first_floats_.push_back(floats);
}

size_t Positions::lower_bound(size_t f, size_t position) const {
  const int32_t* found = std::lower_bound(positions_ + firsts_[f], positions_ + firsts_[f + 1],
                                          static_cast<int64_t>(position));
  return static_cast<size_t>(found - positions_);
}

void merge(const Exchange& exchange, const std::vector<Positions>& positions,
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
    const Sources sources(exchange, positions, parts, chunk);
    const size_t width = exchange.width_of(chunk.feature);
    SumJob job{};
    job.sources = sources.all.data();
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

void spread(const Exchange& exchange, const std::vector<Positions>& positions,
            const std::vector<const float*>& gradients, const float* scales, Pool& pool,
            const std::vector<float*>& parts) {
  std::vector<Chunk> chunks;
  for (size_t o = 0; o < positions.size(); ++o) {
    for (size_t f = 0; f < exchange.features(); ++f) {
      add_chunks(o, f, positions[o].first(f), positions[o].first(f + 1), exchange.width_of(f),
                 &chunks);
    }
  }
  pool.run(chunks.size(), [&](size_t i) {
    const FlushDenormals flush;
    const auto [o, f, from, end] = chunks[i];
    const Positions& own = positions[o];
    const size_t width = exchange.width_of(f);
    float* to = parts[o] + own.first_float(f) + (from - own.first(f)) * width;
    for (size_t at = from; at < end; ++at, to += width) {
      const size_t sample = static_cast<size_t>(own.all()[at]) - exchange.first_position(f);
      const float* gradient = gradients[f] + sample * width;
      if (exchange.is_scaled(f)) {
        multiply(gradient, scales[exchange.first_scale(f) + sample], width, to);
      } else {
        std::copy_n(gradient, width, to);
      }
    }
  });
}

}  // namespace ete
