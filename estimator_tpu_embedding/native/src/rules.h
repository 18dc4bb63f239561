// The update rules, one struct per optimizer: (rows, slots, gradient, rate) -> (rows, slots).
// `WholeRule` adds the options that all rules have.
//
// The formulas and the order of operations are those of ops/update_rules.py, in float32. `w` is a
// vector of weights, `s` the same elements of each slot, `g` of the gradient; all are changed in
// place or read lane by lane. Each struct is made once for many rows from the rule's own options,
// whose order native/plan_attributes.py documents, and the rate.
//
// Included by kernels_per_isa.cc only; see lanes.h.
#ifndef ETE_RULES_H_
#define ETE_RULES_H_

#include "kernels.h"
#include "lanes.h"

namespace ete {
namespace {

template <class V>
ETE_INLINE V decayed(const V& old, const V& fresh, float keep, float take) {
  return keep * old + take * fresh;
}

// The proximal step for L1 and L2 regularization.
template <class V>
ETE_INLINE V shrunk(const V& value, const V& rates, float l1, float l2) {
  return sign(value) * at_least<V>(magnitude(value) - rates * l1, 0.0f) / (1.0f + rates * l2);
}

struct StochasticGradientDescent {
  static constexpr int kSlots = 0;
  float rate;
  StochasticGradientDescent(const float*, float r) : rate(r) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V*, const V& g) const {
    w = w - rate * g;
  }
};

struct Adagrad {
  static constexpr int kSlots = 1;
  float rate;
  Adagrad(const float*, float r) : rate(r) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = s[0] + g * g;
    w = w - over<V>(rate * g, root(s[0]));
  }
};

template <bool kGeneralPower>
struct AdagradMomentum {
  static constexpr int kSlots = 2;
  float rate, momentum, nesterov, inverse_exponent, keep, take, epsilon;
  AdagradMomentum(const float* o, float r)
      : rate(r), momentum(o[0]), nesterov(o[1]), inverse_exponent(o[2]), keep(o[3]), take(o[4]),
        epsilon(o[5]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = keep == 1.0f ? V(s[0] + g * g) : decayed<V>(s[0], g * g, keep, take);
    const V sum = s[0] + epsilon;
    const V step = over<V>(g, kGeneralPower ? power(sum, inverse_exponent) : root(sum));
    s[1] = momentum * s[1] + step;
    w = w - rate * (nesterov != 0.0f ? V(momentum * s[1] + step) : s[1]);
  }
};

struct ProximalAdagrad {
  static constexpr int kSlots = 1;
  float rate, l1, l2;
  ProximalAdagrad(const float* o, float r) : rate(r), l1(o[0]), l2(o[1]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = s[0] + g * g;
    const V rates = over<V>(splat<V>(rate), root(s[0]));
    w = shrunk<V>(w - rates * g, rates, l1, l2);
  }
};

struct Adam {
  static constexpr int kSlots = 2;
  float rate, keep1, take1, keep2, take2, epsilon, epsilon_squared, inside;
  Adam(const float* o, float r)
      : rate(r), keep1(o[0]), take1(o[1]), keep2(o[2]), take2(o[3]), epsilon(o[4]),
        epsilon_squared(o[5]), inside(o[6]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = decayed<V>(s[0], g, keep1, take1);
    s[1] = decayed<V>(s[1], g * g, keep2, take2);
    if (inside != 0.0f) {
      w = w - rate * over<V>(s[0], root<V>(s[1] + epsilon_squared));
    } else {
      w = w - over<V>(rate * s[0], root(s[1]) + epsilon);
    }
  }
};

// A rate of 0 changes nothing, since the formula divides by the rate. With `times_rate` it divides
// by nothing: the second slot, `l1` and `l2` are multiplied by the rate instead.
template <bool kGeneralPower>
struct Ftrl {
  static constexpr int kSlots = 2;
  float rate, l1, l2_twice, minus_power, times_rate, beta;
  Ftrl(const float* o, float r)
      : rate(r), l1(o[0]), l2_twice(o[4] != 0.0f ? 2.0f * r * o[1] : 2.0f * o[1]),
        minus_power(o[2]), times_rate(o[4]), beta(o[3]) {}
  template <class V>
  ETE_INLINE V powered(const V& value) const {
    return kGeneralPower ? power(value, minus_power) : root(value);
  }
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    if (!(rate > 0.0f)) return;
    const V old = s[0];
    s[0] = old + g * g;
    const V now = powered(s[0]);
    const V change = now - powered(old);
    V divisor;
    float bound = l1;
    if (times_rate != 0.0f) {
      s[1] = s[1] + rate * g - change * w;
      bound = rate * l1;
      divisor = now + beta + l2_twice;
    } else {
      s[1] = s[1] + g - change * w / rate;
      divisor = (now + beta) / rate + l2_twice;
    }
    w = over<V>(at_least<V>(at_most<V>(s[1], bound), -bound) - s[1], divisor);
  }
};

struct Momentum {
  static constexpr int kSlots = 1;
  float rate, momentum, nesterov;
  Momentum(const float* o, float r) : rate(r), momentum(o[0]), nesterov(o[1]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = momentum * s[0] + g;
    w = w - rate * (nesterov != 0.0f ? V(g + momentum * s[0]) : s[0]);
  }
};

struct RMSProp {
  static constexpr int kSlots = 2;
  float rate, keep, take, momentum, epsilon;
  RMSProp(const float* o, float r)
      : rate(r), keep(o[0]), take(o[1]), momentum(o[2]), epsilon(o[3]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = decayed<V>(s[0], g * g, keep, take);
    s[1] = momentum * s[1] + rate * over<V>(g, root<V>(s[0] + epsilon));
    w = w - s[1];
  }
};

struct ProximalYogi {
  static constexpr int kSlots = 2;
  float rate, l1, l2, keep1, take1, take2, epsilon;
  ProximalYogi(const float* o, float r)
      : rate(r), l1(o[0]), l2(o[1]), keep1(o[2]), take1(o[3]), take2(o[4]), epsilon(o[5]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    const V squared = g * g;
    s[0] = s[0] + take2 * sign<V>(squared - s[0]) * squared;
    s[1] = decayed<V>(s[1], g, keep1, take1);
    const V rates = over<V>(splat<V>(rate), root(s[0]) + epsilon);
    w = shrunk<V>(w - rates * s[1], rates, l1, l2);
  }
};

// The "rate" of this one is the global step, and it has no use for a gradient.
struct FrequencyEstimator {
  static constexpr int kSlots = 1;
  float step, tau, keep, max_delta, threshold;
  FrequencyEstimator(const float* o, float r)
      : step(r), tau(o[0]), keep(o[1]), max_delta(o[2]), threshold(o[3]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V&) const {
    const V gap = step - s[0];
    const V capped = at_most<V>(gap, max_delta);
    const V smoothed = w * keep + capped * tau;
    w = select<V>(gap >= threshold * w, capped, smoothed);
    s[0] = splat<V>(step);
  }
};

struct Adadelta {
  static constexpr int kSlots = 2;
  float rate, keep, take, epsilon;
  Adadelta(const float* o, float r) : rate(r), keep(o[0]), take(o[1]), epsilon(o[2]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = decayed<V>(s[0], g * g, keep, take);
    const V update = g * over<V>(root<V>(s[1] + epsilon), root<V>(s[0] + epsilon));
    w = w - rate * update;
    s[1] = decayed<V>(s[1], update * update, keep, take);
  }
};

struct CenteredRMSProp {
  static constexpr int kSlots = 3;
  float rate, keep, take, momentum, epsilon;
  CenteredRMSProp(const float* o, float r)
      : rate(r), keep(o[0]), take(o[1]), momentum(o[2]), epsilon(o[3]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    s[0] = decayed<V>(s[0], g * g, keep, take);
    s[2] = decayed<V>(s[2], g, keep, take);
    const V variance = at_least<V>(s[0] - s[2] * s[2], 0.0f);
    s[1] = momentum * s[1] + over<V>(rate * g, root<V>(variance + epsilon));
    w = w - s[1];
  }
};

struct Lion {
  static constexpr int kSlots = 1;
  float rate, keep1, take1, keep2, take2;
  Lion(const float* o, float r)
      : rate(r), keep1(o[0]), take1(o[1]), keep2(o[2]), take2(o[3]) {}
  template <class V>
  ETE_INLINE void operator()(V& w, V* s, const V& g) const {
    w = w - rate * sign(decayed<V>(s[0], g, keep1, take1));
    s[0] = decayed<V>(s[0], g, keep2, take2);
  }
};

// A rule with the options that all rules have, in the documented order: the gradient is clipped,
// the weights decay, the rule is applied, the weights are clipped.
template <class Rule>
class WholeRule {
 public:
  explicit WholeRule(const ApplyJob& job)
      : rule_(job.options + kOwnOptions, job.rate), decays_(job.options[kHasDecay] != 0.0f),
        decay_(job.options[kDecayTimesRate] != 0.0f ? job.options[kDecay] * job.rate
                                                    : job.options[kDecay]),
        lowest_(job.options[kLowestWeight]), highest_(job.options[kHighestWeight]),
        lowest_gradient_(job.options[kLowestGradient]),
        highest_gradient_(job.options[kHighestGradient]) {}

  // Changes sizeof(V) bytes at `offset` of rows and slots; `gradient` is null for zeros.
  template <class V>
  ETE_INLINE void change(const ApplyJob& job, size_t offset, const float* gradient) const {
    V weights = load<V>(job.rows + offset), slots[kMaxSlots];
    V wanted = gradient != nullptr ? load<V>(gradient) : V{};
    for (int slot = 0; slot < Rule::kSlots; ++slot) {
      slots[slot] = load<V>(job.slots[slot] + offset);
    }
    wanted = at_most<V>(at_least<V>(wanted, lowest_gradient_), highest_gradient_);
    if (decays_) weights = weights - decay_ * weights;
    rule_(weights, slots, wanted);
    store(job.rows + offset, at_most<V>(at_least<V>(weights, lowest_), highest_));
    for (int slot = 0; slot < Rule::kSlots; ++slot) store(job.slots[slot] + offset, slots[slot]);
  }

 private:
  const Rule rule_;
  const bool decays_;
  const float decay_, lowest_, highest_, lowest_gradient_, highest_gradient_;
};

}  // namespace
}  // namespace ete

#endif  // ETE_RULES_H_
