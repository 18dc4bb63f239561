#include "tpu_config.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "error.h"
#include "wire.h"

namespace ete {
namespace {

constexpr size_t kMostBytes = size_t{8} << 20;  // As in proto/reading.py.
constexpr size_t kMostTables = 10000, kMostFeatures = 100000, kLongestName = 1000;
constexpr size_t kMostExtents = 8;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max(), kWidest = 1 << 16;
constexpr int64_t kMostHosts = 4096, kMostCoresPerHost = 256;

constexpr int64_t kInference = 1, kTraining = 2;  // Of TPUEmbeddingConfiguration.Mode.
constexpr int64_t kDisabled = 2;                  // Of GradientAccumulationStatus.

[[noreturn]] void refuse(const std::string& where, const std::string& rule, const std::string& got,
                         Code code = Code::kInvalidArgument) {
  throw Error(code, "TPUEmbeddingConfiguration: " + where + ": " + rule + ", got " + got + ".");
}

int64_t bounded(const std::string& where, const char* what, int64_t least, int64_t number,
                int64_t most) {
  if (number < least || number > most) {
    refuse(where, std::string(what) + " must be from " + std::to_string(least) + " to " +
                      std::to_string(most), std::to_string(number));
  }
  return number;
}

void require_fewer(const char* what, size_t most, size_t number) {
  if (number >= most) {
    refuse(what, "there must be at most " + std::to_string(most), "more");
  }
}

// The number that somebody wrote, of which the message has a float: 0.999, not 0.9990000129. So
// 1 - 0.999 is what the other engines compute from it.
double written(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.7g", static_cast<double>(value));
  const double number = std::strtod(text, nullptr);
  return static_cast<float>(number) == value ? number : static_cast<double>(value);
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
  if (!std::isfinite(number)) refuse(where, what + " must be finite", std::to_string(value));
  return number;
}

// The lower and upper bound of ClippingLimits; infinite for none.
void read_bounds(const std::string& where, Bytes bytes, float* bounds) {
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number != 1 && field.number != 2) continue;
    float* bound = bounds + field.number - 1;
    *bound = 0;
    Message wrapped(field.bytes());
    for (Field value; wrapped.next(&value);) {
      if (value.number == 1) *bound = finite(where, "a clipping limit", value.real());
    }
  }
}

// Reads the parameters of one table; the name of the table is in `where`.
class Parameters {
 public:
  Parameters(const std::string& where, TpuConfig* config) : where_(where), config_(*config) {}

  void read(Bytes bytes) {
    float options[kOptions] = {};
    const float infinity = std::numeric_limits<float>::infinity();
    options[kLowestWeight] = options[kLowestGradient] = -infinity;
    options[kHighestWeight] = options[kHighestGradient] = infinity;
    float grid[] = {-infinity, infinity, 0};
    bool accumulates = true;
    TpuTable table{kTpuAlgorithms, -1};
    Message message(bytes);
    for (Field field; message.next(&field);) {
      switch (field.number) {
        case 13:
          read_rate(field.bytes(), &table);
          break;
        case 2:
          read_bounds(where_, field.bytes(), options + kLowestWeight);
          break;
        case 7:
          read_bounds(where_, field.bytes(), options + kLowestGradient);
          break;
        case 16:
          options[kDecay] = finite(where_, "weight_decay_factor", field.real());
          options[kHasDecay] = options[kDecay] != 0;
          break;
        case 22:
          options[kDecayTimesRate] = field.integer() != 0;
          break;
        case 17:
          accumulates = field.integer() != kDisabled;
          break;
        case 27:
          read_grid(field.bytes(), grid);
          break;
        default:
          read_algorithm(field, &table, options);
      }
    }
    options[kAccumulate] = accumulates;
    finish(table, options, grid);
  }

 private:
  void read_rate(Bytes bytes, TpuTable* table) {
    Message message(bytes);
    for (Field field; message.next(&field);) {
      if (field.number == 1) {
        *table = {table->algorithm, field.real()};
      } else if (field.number == 2) {
        *table = {table->algorithm, 0, 0};
        Message dynamic(field.bytes());
        for (Field tag; dynamic.next(&tag);) {
          if (tag.number == 1) table->rate_tag = tag.integer();
        }
        bounded(where_, "the tag of its rate", 0, table->rate_tag, kMostTables - 1);
      }
    }
  }

  void read_grid(Bytes bytes, float* grid) {
    bool enabled = false;
    int64_t buckets = 0;
    float bounds[] = {0, 0};
    Message message(bytes);
    for (Field field; message.next(&field);) {
      if (field.number == 1) enabled = field.integer() != 0;
      if (field.number == 2) read_bounds(where_, field.bytes(), bounds);
      if (field.number == 3) buckets = field.integer();
    }
    if (!enabled) return;
    bounded(where_, "num_buckets of its quantization", 2, buckets, kMostRows);
    const double lower = written(bounds[0]), upper = written(bounds[1]);
    grid[0] = bounds[0];
    grid[1] = bounds[1];
    grid[2] = finite(where_, "the step of its quantization",
                     (upper - lower) / static_cast<double>(buckets - 1));
  }

  // Reads the field if it is the message of an optimizer.
  void read_algorithm(const Field& field, TpuTable* table, float* options) {
    for (size_t number = 0; number < kTpuAlgorithms; ++number) {
      const TpuAlgorithm& algorithm = tpu_algorithm(number);
      if (algorithm.field != field.number) continue;
      table->algorithm = number;
      std::map<uint64_t, double> values;
      Message message(field.bytes());
      for (Field own; message.next(&own);) {
        values[own.number] = own.is_integer() ? double(own.integer() != 0) : written(own.real());
      }
      options[kUpdatesAllRows] = algorithm.all_rows != 0 && values[algorithm.all_rows] != 0;
      float* option = options + kOwnOptions;
      for (const OptionSource& source : algorithm.options) {
        *option++ = finite(where_, "field " + std::to_string(source.field) + " of its optimizer",
                           used(source.use, values[source.field]));
      }
    }
  }

  void finish(const TpuTable& table, const float* options, const float* grid) {
    if (table.algorithm == kTpuAlgorithms) {
      refuse(where_, "its optimizer must be one of those with operations to load it",
             "another or none", Code::kUnimplemented);
    }
    if (!(table.rate >= 0 && std::isfinite(table.rate))) {
      refuse(where_, "its learning rate must be dynamic or a finite number >= 0",
             table.rate == -1 ? "none" : std::to_string(table.rate));
    }
    const TpuAlgorithm& algorithm = tpu_algorithm(table.algorithm);
    config_.tables.push_back(table);
    LayoutNumbers& numbers = config_.numbers;
    numbers.table_rules.push_back(algorithm.rule);
    numbers.slot_counts.push_back(algorithm.slots);
    numbers.table_options.insert(numbers.table_options.end(), options, options + kOptions);
    numbers.table_grids.insert(numbers.table_grids.end(), grid, grid + 3);
  }

  const std::string where_;
  TpuConfig& config_;
};

void read_table(Bytes bytes, TpuConfig* config) {
  LayoutNumbers& numbers = config->numbers;
  require_fewer("tables", kMostTables, numbers.table_names.size());
  std::string name;
  int64_t rows = 0, width = 0;
  Bytes parameters;
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number == 1) name = field.bytes().text();
    if (field.number == 2) rows = field.integer();
    if (field.number == 3) width = field.integer();
    if (field.number == 5) parameters = field.bytes();
  }
  const size_t number = numbers.table_names.size();
  bounded("table " + std::to_string(number), "the length of its name", 1,
          static_cast<int64_t>(name.size()), kLongestName);
  const std::string where = "table \"" + name + '"';
  numbers.table_names.push_back(name);
  numbers.table_rows.push_back(bounded(where, "vocabulary_size", 1, rows, kMostRows));
  numbers.table_widths.push_back(bounded(where, "dimension", 1, width, kWidest));
  numbers.table_combiners.push_back(kSum);
  Parameters(where, config).read(parameters);
}

void read_feature(Bytes bytes, TpuConfig* config) {
  LayoutNumbers& numbers = config->numbers;
  const size_t number = numbers.feature_names.size();
  require_fewer("features", kMostFeatures, number);
  std::string name = std::to_string(number);
  int64_t table = 0;
  std::vector<int64_t> shape;
  const auto add = [&](int64_t extent) {
    require_fewer("input_shape", kMostExtents, shape.size());
    shape.push_back(extent);
  };
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number == 1 && field.bytes().size != 0) name = field.bytes().text();
    if (field.number == 2) table = field.integer();
    if (field.number == 3 && field.is_integer()) add(field.integer());
    if (field.number == 3 && !field.is_integer()) {
      Message packed(field.bytes());
      while (!packed.at_end()) add(static_cast<int64_t>(packed.varint()));
    }
  }
  int64_t samples = 1;
  for (const int64_t extent : shape) {
    // Neither factor is above 32 bits, so the product is exact.
    samples *= bounded("feature " + name, "an extent of input_shape", 1, extent, kMostRows);
    bounded("feature " + name, "the product of input_shape", 1, samples, kMostRows);
  }
  if (shape.empty()) refuse("feature " + name, "input_shape must have an extent", "none");
  numbers.feature_names.push_back(name);
  numbers.feature_tables.push_back(table);
  numbers.feature_samples.push_back(samples);
  numbers.feature_weighted.push_back(0);
  config->shapes.push_back(std::move(shape));
}

void require_different(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) refuse("table \"" + name + '"', "names must differ", "two");
  }
}

}  // namespace

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

TpuConfig TpuConfig::read(const std::string& bytes) {
  bounded("config", "its number of bytes", 1, static_cast<int64_t>(bytes.size()), kMostBytes);
  TpuConfig config{};
  int64_t mode = 0, hosts = 0;
  Message message({bytes.data(), bytes.size()});
  for (Field field; message.next(&field);) {
    switch (field.number) {
      case 1:
        read_table(field.bytes(), &config);
        break;
      case 2:
        mode = field.integer();
        break;
      case 4:
        hosts = field.integer();
        break;
      case 5:
        config.cores = field.integer();
        break;
      case 6:
        config.numbers.strategy = field.integer();
        break;
      case 7:
        if (field.integer() != 0) {
          refuse("pipeline_execution_with_tensor_core", "it must be false: these kernels look up "
                 "after the update before", "true", Code::kUnimplemented);
        }
        break;
      case 10:
        read_feature(field.bytes(), &config);
        break;
    }
  }
  config.numbers.num_hosts = bounded("config", "num_hosts", 1, hosts, kMostHosts);
  bounded("config", "num_tensor_cores", 1, config.cores, hosts * kMostCoresPerHost);
  if (config.cores % hosts != 0) {
    refuse("num_hosts", "it must divide num_tensor_cores, " + std::to_string(config.cores),
           std::to_string(hosts));
  }
  bounded("config", "mode", kInference, mode, kTraining);
  config.trains = mode == kTraining;
  require_different(config.numbers.table_names);
  return config;
}

}  // namespace ete
