// The loops of `Kernels` for one instruction set. Compiled once for each: -DETE_ISA=baseline
// without further flags, and on x86 -DETE_ISA=avx2 -mavx2 and -DETE_ISA=avx512 -mavx512f
// -mavx512vl -mavx512bw -mavx512dq; always with -ffp-contract=off -fno-math-errno
// -fno-trapping-math.
//
// See lanes.h for why nothing of the standard library may be included here.
#ifndef ETE_ISA
#define ETE_ISA baseline
#endif
#ifndef __NO_MATH_ERRNO__
#error "compile with -fno-math-errno: without it no square root is a vector instruction"
#endif

#include "kernels.h"
#include "rules.h"

#define ETE_JOINED_OF(left, right) left##right
#define ETE_JOINED(left, right) ETE_JOINED_OF(left, right)

namespace ete {
namespace {

constexpr size_t kLineFloats = 16;  // 64 bytes.

// So many occurrences are added up by themselves, so that the rounding error of a row that a
// tenth of all ids name does not grow with their number.
constexpr uint32_t kBlock = 256;

ETE_INLINE void prefetch(const float* from, size_t width) {
  for (size_t at = 0; at < width; at += kLineFloats) __builtin_prefetch(from + at, 0, 2);
}

// Always inline: g++ 12 takes a function that only prefetches for one without effect, and drops
// the calls.
ETE_INLINE void prefetch_rows_ahead(const SumJob& job, size_t output) {
  if (output >= job.num_rows_ahead) return;
  const size_t width = static_cast<size_t>(job.width), offset = job.rows_ahead[output] * width;
  for (int table = 0; table < job.num_tables_ahead; ++table) {
    prefetch(job.tables_ahead[table] + offset, width);
  }
}

// Adds occurrences [from, end) of columns [column, column + kWidth).
template <int kWidth, bool kFactors, class V>
ETE_INLINE void add_block(const SumJob& job, uint32_t from, uint32_t end, size_t column, V* sums) {
  constexpr int kVectors = kWidth * sizeof(float) / sizeof(V);
  constexpr int kFloats = sizeof(V) / sizeof(float);
  for (uint32_t at = from; at < end; ++at) {
    prefetch(job.sources[at + kSourcesAhead] + column, kWidth);
    const float* source = job.sources[at] + column;
    const float factor = kFactors ? job.factors[at] : 1.0f;
    for (int i = 0; i < kVectors; ++i) {
      const V value = load<V>(source + i * kFloats);
      sums[i] += kFactors ? V(factor * value) : value;
    }
  }
}

template <int kWidth, bool kFactors>
void sum_columns(const SumJob& job, size_t column) {
  typedef FloatVector<lanes_for(kWidth)> V;
  constexpr int kFloats = sizeof(V) / sizeof(float), kVectors = kWidth / kFloats;
  for (size_t output = 0; output < job.outputs; ++output) {
    if (column == 0) prefetch_rows_ahead(job, output);
    uint32_t from = job.starts[output] - job.first;
    const uint32_t end = job.starts[output + 1] - job.first;
    V sums[kVectors] = {};
    add_block<kWidth, kFactors>(job, from, end - from < kBlock ? end : from + kBlock, column,
                                sums);
    while (end - from > kBlock) {
      from += kBlock;
      V more[kVectors] = {};
      add_block<kWidth, kFactors>(job, from, end - from < kBlock ? end : from + kBlock, column,
                                  more);
      for (int i = 0; i < kVectors; ++i) sums[i] += more[i];
    }
    float* out = job.out + output * job.width + column;
    for (int i = 0; i < kVectors; ++i) {
      if (job.scales != nullptr) sums[i] = job.scales[output] * sums[i];
      store(out + i * kFloats, sums[i]);
    }
  }
}

// As many groups of kWidth columns as there are from `column` on; gives the first column left.
template <int kWidth>
size_t sum_groups(const SumJob& job, size_t column) {
  for (; column + kWidth <= static_cast<size_t>(job.width); column += kWidth) {
    if (job.factors != nullptr) {
      sum_columns<kWidth, true>(job, column);
    } else {
      sum_columns<kWidth, false>(job, column);
    }
  }
  return column;
}

void sum(const SumJob& job) {
  size_t column = sum_groups<128>(job, 0);
  column = sum_groups<64>(job, column);
  column = sum_groups<32>(job, column);
  column = sum_groups<16>(job, column);
  column = sum_groups<8>(job, column);
  column = sum_groups<4>(job, column);
  column = sum_groups<2>(job, column);
  sum_groups<1>(job, column);
}

// As many vectors of kFloats as fit from `column` on; gives the first column left.
template <int kFloats, class Rule>
ETE_INLINE size_t change_columns(const WholeRule<Rule>& rule, const ApplyJob& job, size_t offset,
                                 const float* gradient, size_t column) {
  for (; column + kFloats <= job.width; column += kFloats) {
    rule.template change<FloatVector<kFloats>>(
        job, offset + column, gradient != nullptr ? gradient + column : nullptr);
  }
  return column;
}

template <class Rule>
void apply(const ApplyJob& job) {
  const WholeRule<Rule> rule(job);
  for (size_t i = 0; i < job.count; ++i) {
    const size_t offset = job.which != nullptr ? job.which[i] * job.width : 0;
    const float* gradient = job.gradients != nullptr ? job.gradients + i * job.width : nullptr;
    size_t column = change_columns<kLanes>(rule, job, offset, gradient, 0);
    column = change_columns<lanes_for(8)>(rule, job, offset, gradient, column);
    column = change_columns<4>(rule, job, offset, gradient, column);
    column = change_columns<2>(rule, job, offset, gradient, column);
    change_columns<1>(rule, job, offset, gradient, column);
  }
}

void apply_adagrad_momentum(const ApplyJob& job) {
  const AdagradMomentum<true> general(job.options + kOwnOptions, job.rate);
  general.inverse_exponent == 0.5f ? apply<AdagradMomentum<false>>(job)
                                   : apply<AdagradMomentum<true>>(job);
}

void apply_ftrl(const ApplyJob& job) {
  const Ftrl<true> general(job.options + kOwnOptions, job.rate);
  general.minus_power == 0.5f ? apply<Ftrl<false>>(job) : apply<Ftrl<true>>(job);
}

uint32_t largest(const float* values, size_t count) {
  typedef IntVector<FloatVector<kLanes>> Bits;
  constexpr int kChains = 4;
  Bits most[kChains] = {};
  size_t at = 0;
  for (; at + kChains * kLanes <= count; at += kChains * kLanes) {
    for (int i = 0; i < kChains; ++i) {
      Bits bits;
      __builtin_memcpy(&bits, values + at + i * kLanes, sizeof bits);
      bits &= 0x7fffffff;
      most[i] = bits > most[i] ? bits : most[i];
    }
  }
  int32_t result = 0;
  for (; at < count; ++at) {
    int32_t bits;
    __builtin_memcpy(&bits, values + at, sizeof bits);
    bits &= 0x7fffffff;
    result = bits > result ? bits : result;
  }
  for (int i = 0; i < kChains; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      result = most[i][lane] > result ? most[i][lane] : result;
    }
  }
  return static_cast<uint32_t>(result);
}

void round(const RoundJob& job) {
  for (size_t i = 0; i < job.count; ++i) {
    const float* source = job.sources[i];
    float* out = job.out + i * job.width;
    for (size_t column = 0; column < job.width; ++column) {
      const float value = at_most<float>(at_least<float>(source[column], job.lowest), job.highest);
      const float steps = over<float>(value - job.lowest, job.step);
      out[column] = __builtin_floorf(steps + 0.5f) * job.step + job.lowest;
    }
  }
}

}  // namespace

extern const Kernels ETE_JOINED(kernels_, ETE_ISA);
const Kernels ETE_JOINED(kernels_, ETE_ISA) = {
    sum,
    {apply<StochasticGradientDescent>, apply<Adagrad>, apply_adagrad_momentum,
     apply<ProximalAdagrad>, apply<Adam>, apply_ftrl, apply<Momentum>, apply<RMSProp>,
     apply<ProximalYogi>, apply<FrequencyEstimator>, apply<Adadelta>, apply<CenteredRMSProp>,
     apply<Lion>},
    largest,
    round};

}  // namespace ete
