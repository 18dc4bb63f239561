#include "tpu_optimizer.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>

namespace ete {
namespace {

constexpr int64_t kDisabled = 2;  // Of GradientAccumulationStatus.
constexpr int64_t kMostTags = 10000, kMost32 = std::numeric_limits<int32_t>::max();

// The number that somebody wrote, of which the message has a float: 0.999, not 0.9990000129. So
// 1 - 0.999 is what the other engines compute from it.
double written(float value) {
  double number = 0;
  for (int digits = 6; digits <= 9; ++digits) {  // Nine are always enough.
    char text[32];
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
    number = std::strtod(text, nullptr);
    if (static_cast<float>(number) == value) break;
  }
  return number;
}

double used(Use use, double value) {
  switch (use) {
    case Use::kOneMinus:
      return 1 - value;
    case Use::kNegative:
      return -value;
    case Use::kInverse:
      return 1 / value;
    case Use::kSquare:
      return value * value;
    default:
      return value;
  }
}

float finite(const std::string& where, const std::string& what, double value) {
  const float number = static_cast<float>(value);
  if (!std::isfinite(number)) {
    refuse_config(where, what + " must be finite", std::to_string(value));
  }
  return number;
}

// ClippingLimits; a bound that is absent stays as it is.
void read_bounds(const std::string& where, Bytes bytes, float* lower, float* upper) {
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number != 1 && field.number != 2) continue;
    float* bound = field.number == 1 ? lower : upper;
    *bound = 0;
    Message wrapped(field.bytes());
    for (Field value; wrapped.next(&value);) {
      if (value.number == 1) *bound = finite(where, "a clipping limit", value.real());
    }
  }
}

void read_rate(const std::string& where, Bytes bytes, TpuTable* table) {
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number == 1) {
      table->rate = field.real();
      table->rate_tag = -1;
    } else if (field.number == 2) {
      table->rate = 0;
      table->rate_tag = 0;
      Message dynamic(field.bytes());
      for (Field tag; dynamic.next(&tag);) {
        if (tag.number == 1) table->rate_tag = tag.integer();
      }
      bounded(where, "the tag of its rate", 0, table->rate_tag, kMostTags - 1);
    }
  }
}

void read_grid(const std::string& where, Bytes bytes, Grid* grid) {
  bool enabled = false;
  int64_t buckets = 0;
  float lower = 0, upper = 0;
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number == 1) enabled = field.integer() != 0;
    if (field.number == 2) read_bounds(where, field.bytes(), &lower, &upper);
    if (field.number == 3) buckets = field.integer();
  }
  if (!enabled) return;
  bounded(where, "num_buckets of its quantization", 2, buckets, kMost32);
  const double steps = static_cast<double>(buckets - 1);
  *grid = {lower, upper, finite(where, "the step of its quantization",
                                (written(upper) - written(lower)) / steps)};
}

// Reads the message of an optimizer, of whose fields all integers are flags.
void read_algorithm(const std::string& where, const Field& field, TpuTable* table) {
  size_t number = 0;
  while (number < kTpuAlgorithms && tpu_algorithm(number).field != field.number) ++number;
  if (number == kTpuAlgorithms) {
    refuse_config(where, "its optimizer must be one of the ten of TensorFlow 2.15's TPUEmbedding",
                  "field " + std::to_string(field.number) + " of its parameters",
                  Code::kUnimplemented);
  }
  if (table->algorithm != kTpuAlgorithms) refuse_config(where, "it must have one optimizer", "two");
  const TpuAlgorithm& algorithm = tpu_algorithm(number);
  std::map<uint64_t, double> values;
  Message message(field.bytes());
  for (Field own; message.next(&own);) {
    values[own.number] = own.is_integer() ? double(own.integer() != 0) : written(own.real());
  }
  table->algorithm = number;
  table->options[kUpdatesAllRows] = algorithm.all_rows != 0 && values[algorithm.all_rows] != 0;
  float* option = table->options + kOwnOptions;
  for (const OptionSource& source : algorithm.options) {
    *option++ = finite(where, "field " + std::to_string(source.field) + " of its optimizer",
                       used(source.use, values[source.field]));
  }
}

}  // namespace

void refuse_config(const std::string& where, const std::string& rule, const std::string& got,
                   Code code) {
  throw Error(code, "TPUEmbeddingConfiguration: " + where + ": " + rule + ", got " + got + ".");
}

int64_t bounded(const std::string& where, const char* what, int64_t least, int64_t number,
                int64_t most) {
  if (number < least || number > most) {
    refuse_config(where, std::string(what) + " must be from " + std::to_string(least) + " to " +
                             std::to_string(most), std::to_string(number));
  }
  return number;
}

const TpuAlgorithm& tpu_algorithm(size_t number) {
  static const auto* const all = new std::vector<TpuAlgorithm>{
      {"StochasticGradientDescent", 4, 0, 0, {}},
      {"Adagrad", 3, 1, 1, {}},
      {"AdagradMomentum", 26, 2, 2,
       {{1}, {2}, {3, Use::kInverse}, {4}, {4, Use::kOneMinus}, {5}}},
      {"ProximalAdagrad", 14, 3, 1, {{1}, {2}}},
      {"ADAM", 6, 4, 2,
       {{3}, {3, Use::kOneMinus}, {4}, {4, Use::kOneMinus}, {5}, {5, Use::kSquare}, {10}}, 8},
      {"FTRL", 5, 5, 2, {{1}, {2}, {3, Use::kNegative}, {7}, {6}}},
      {"Momentum", 8, 6, 1, {{1}, {2}}},
      {"RMSProp", 9, 7, 2, {{1}, {1, Use::kOneMinus}, {2}, {3}}},
      {"ProximalYogi", 21, 8, 2, {{1}, {2}, {3}, {3, Use::kOneMinus}, {4, Use::kOneMinus}, {5}}},
      {"FrequencyEstimator", 23, 9, 1, {{1}, {1, Use::kOneMinus}, {2}, {3}}}};
  return (*all)[number];
}

TpuTable TpuTable::read(const std::string& where, Bytes parameters) {
  const float infinity = std::numeric_limits<float>::infinity();
  TpuTable table;
  float* options = table.options;
  table.grid = {-infinity, infinity, 0};
  options[kAccumulate] = 1;
  options[kLowestWeight] = options[kLowestGradient] = -infinity;
  options[kHighestWeight] = options[kHighestGradient] = infinity;
  Message message(parameters);
  for (Field field; message.next(&field);) {
    switch (field.number) {
      case 13:
        read_rate(where, field.bytes(), &table);
        break;
      case 2:
        read_bounds(where, field.bytes(), options + kLowestWeight, options + kHighestWeight);
        break;
      case 7:
        read_bounds(where, field.bytes(), options + kLowestGradient, options + kHighestGradient);
        break;
      case 16:
        options[kDecay] = finite(where, "weight_decay_factor", field.real());
        options[kHasDecay] = options[kDecay] != 0;
        break;
      case 22:
        options[kDecayTimesRate] = field.integer() != 0;
        break;
      case 17:
        options[kAccumulate] = field.integer() != kDisabled;
        break;
      case 27:
        read_grid(where, field.bytes(), &table.grid);
        break;
      case 18:  // How the hardware stores rows.
      case 28:
        break;
      default:
        read_algorithm(where, field, &table);
    }
  }
  if (table.algorithm == kTpuAlgorithms) refuse_config(where, "it must have an optimizer", "none");
  if (options[kAccumulate] == 0 && (options[kUpdatesAllRows] != 0 ||
                                    options[kLowestGradient] > -infinity ||
                                    options[kHighestGradient] < infinity)) {
    refuse_config(where, "gradients must be accumulated to be clipped, or to update all rows",
                  "gradient_accumulation_status DISABLED");
  }
  if (!(table.rate >= 0 && std::isfinite(table.rate))) {
    refuse_config(where, "its learning rate must be dynamic, or a finite number >= 0",
                  table.rate == -1 ? "none" : std::to_string(table.rate));
  }
  return table;
}

}  // namespace ete
