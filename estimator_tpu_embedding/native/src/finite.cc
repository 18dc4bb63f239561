#include "finite.h"

#include <algorithm>
#include <atomic>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <memory>

#include "denormals.h"
#include "dispatch.h"
#include "summed.h"

namespace ete {
namespace {

constexpr size_t kPiece = 1 << 15;  // Floats: 128 kB, so that a piece takes some microseconds.

struct Piece {
  size_t table;
  bool of_gradients;  // Else of factors.
  const float* values;
  size_t count;
};

// The largest bit patterns so far, of one table.
struct Largest {
  std::atomic<uint32_t> gradient{0}, factor{0};
};

void add_pieces(size_t table, bool of_gradients, const float* values, size_t count,
                std::vector<Piece>* pieces) {
  for (size_t at = 0; at < count; at += kPiece) {
    pieces->push_back({table, of_gradients, values + at, std::min(kPiece, count - at)});
  }
}

std::vector<Piece> pieces_of(const std::vector<GradientsOfTable>& tables) {
  std::vector<Piece> pieces;
  for (size_t number = 0; number < tables.size(); ++number) {
    for (const CoreOfTable& core : tables[number].cores) {
      if (core.group.n == 0) continue;
      for (const FeatureGradient& feature : core.features) {
        const size_t width = static_cast<size_t>(tables[number].table->width);
        add_pieces(number, true, feature.values, feature.samples * width, &pieces);
        if (feature.scales != nullptr) {
          add_pieces(number, false, feature.scales, feature.samples, &pieces);
        }
      }
      if (core.group.sorted_shares != nullptr) {
        add_pieces(number, false, core.group.sorted_shares, core.group.n, &pieces);
      }
    }
  }
  return pieces;
}

void raise(std::atomic<uint32_t>* largest, uint32_t value) {
  uint32_t seen = largest->load(std::memory_order_relaxed);
  while (seen < value && !largest->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

// Whether no sum of these can overflow, with room for rounding.
bool is_safe(const Largest& largest, bool has_factors, uint64_t occurrences) {
  float gradient, factor;
  const uint32_t gradient_bits = largest.gradient, factor_bits = largest.factor;
  std::memcpy(&gradient, &gradient_bits, sizeof gradient);
  std::memcpy(&factor, &factor_bits, sizeof factor);
  if (!std::isfinite(gradient) || !std::isfinite(factor)) return false;
  const double most = double{gradient} * (has_factors ? std::max(1.0f, factor) : 1.0f);
  return most * static_cast<double>(occurrences) < FLT_MAX / 4;
}

// Which tables have to be looked at more closely.
std::vector<bool> doubtful(const std::vector<GradientsOfTable>& tables, Pool& pool) {
  const std::vector<Piece> pieces = pieces_of(tables);
  const std::unique_ptr<Largest[]> largest(new Largest[tables.size()]);
  pool.run(pieces.size(), [&](size_t i) {
    const Piece& piece = pieces[i];
    Largest& own = largest[piece.table];
    raise(piece.of_gradients ? &own.gradient : &own.factor,
          kernels().largest(piece.values, piece.count));
  });
  std::vector<bool> result;
  for (size_t number = 0; number < tables.size(); ++number) {
    result.push_back(!is_safe(largest[number], tables[number].has_factors,
                              tables[number].occurrences()));
  }
  return result;
}

uint64_t count_in(const GradientsOfTable& gradients, const RowRange& range) {
  uint64_t count = 0;
  const size_t width = static_cast<size_t>(gradients.table->width);
  for_summed(gradients, range, nullptr, [&](const SummedRows& summed) {
    const float* end = summed.gradients + summed.count * width;
    count += static_cast<uint64_t>(std::count_if(
        summed.gradients, end, [](float value) { return !std::isfinite(value); }));
  });
  return count;
}

}  // namespace

void count_nonfinite(const std::vector<GradientsOfTable>& tables,
                     const std::vector<RowRange>& ranges, Pool& pool, int32_t* nonfinite) {
  std::fill(nonfinite, nonfinite + tables.size(), 0);
  const std::vector<bool> is_doubtful = doubtful(tables, pool);
  std::vector<const RowRange*> wanted;
  for (const RowRange& range : ranges) {
    if (is_doubtful[range.table]) wanted.push_back(&range);
  }
  const std::unique_ptr<std::atomic<uint64_t>[]> counts(
      new std::atomic<uint64_t>[tables.size()]());
  pool.run(wanted.size(), [&](size_t i) {
    const FlushDenormals flush;
    counts[wanted[i]->table] += count_in(tables[wanted[i]->table], *wanted[i]);
  });
  for (size_t number = 0; number < tables.size(); ++number) {
    nonfinite[number] = static_cast<int32_t>(std::min<uint64_t>(counts[number], INT32_MAX));
  }
}

}  // namespace ete
