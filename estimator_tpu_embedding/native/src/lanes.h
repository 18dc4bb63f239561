// Vectors of N floats and the few functions on them that the update rules and sums need.
//
// Included by kernels_per_isa.cc only, which is compiled once per instruction set. Everything here
// is in an anonymous namespace and uses no header of the standard library: an inline function that
// two objects share could be kept in the version for the newer processor, and run on the older.
//
// A function on vectors gives in each lane what the same C++ operation gives on a float, so all
// instruction sets agree bit for bit (with -ffp-contract=off).
#ifndef ETE_LANES_H_
#define ETE_LANES_H_

#include <stddef.h>
#include <stdint.h>

namespace ete {
namespace {

// How many floats a register of this instruction set holds.
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

constexpr int lanes_for(int width) { return width < kLanes ? width : kLanes; }

template <int N>
struct VectorsOf {
  typedef float Float __attribute__((vector_size(N * sizeof(float))));
  typedef int32_t Int __attribute__((vector_size(N * sizeof(int32_t))));
};

// One lane is a plain number, of which compilers make better code than of a vector of one.
template <>
struct VectorsOf<1> {
  typedef float Float;
  typedef int32_t Int;
};

template <int N>
using FloatVector = typename VectorsOf<N>::Float;

template <class V>
using IntVector = typename VectorsOf<sizeof(V) / sizeof(float)>::Int;

#define ETE_INLINE inline __attribute__((always_inline))

// Addresses need no alignment.
template <class V>
ETE_INLINE V load(const float* from) {
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <class V>
ETE_INLINE void store(float* to, const V& value) {
  __builtin_memcpy(to, &value, sizeof value);
}

template <class V>
ETE_INLINE V splat(float value) {
  return value - V{};  // x - 0 is x for every x, also for -0.
}

template <class V>
ETE_INLINE V select(const IntVector<V>& where, const V& yes, const V& no) {
  return where ? yes : no;
}

// Is a vector instruction only with -fno-math-errno; the build sets that.
template <class V>
ETE_INLINE V root(const V& value) {
  if constexpr (sizeof(V) == sizeof(float)) {
    return __builtin_sqrtf(value);
  } else {
    V result;
    for (size_t lane = 0; lane < sizeof(V) / sizeof(float); ++lane) {
      result[lane] = __builtin_sqrtf(value[lane]);
    }
    return result;
  }
}

// One call of the mathematical library per lane: slow, for general powers only.
template <class V>
ETE_INLINE V power(const V& value, float exponent) {
  if constexpr (sizeof(V) == sizeof(float)) {
    return __builtin_powf(value, exponent);
  } else {
    V result;
    for (size_t lane = 0; lane < sizeof(V) / sizeof(float); ++lane) {
      result[lane] = __builtin_powf(value[lane], exponent);
    }
    return result;
  }
}

// The next two keep a NaN in `value`, as TensorFlow does.
template <class V>
ETE_INLINE V at_least(const V& value, float bound) {
  const V limit = splat<V>(bound);
  return select<V>(value < limit, limit, value);
}

template <class V>
ETE_INLINE V at_most(const V& value, float bound) {
  const V limit = splat<V>(bound);
  return select<V>(value > limit, limit, value);
}

// A quotient that is 0 where the divisor is 0.
template <class V>
ETE_INLINE V over(const V& value, const V& divisor) {
  return select<V>(divisor == 0.0f, V{}, value / divisor);
}

// -1, 0 or 1; NaN for NaN.
template <class V>
ETE_INLINE V sign(const V& value) {
  const V one = select<V>(value > 0.0f, splat<V>(1.0f), splat<V>(-1.0f));
  return select<V>(value == 0.0f, V{}, select<V>(value == value, one, value));
}

template <class V>
ETE_INLINE V magnitude(const V& value) {
  IntVector<V> bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  bits &= 0x7fffffff;
  V result;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace
}  // namespace ete

#endif  // ETE_LANES_H_
