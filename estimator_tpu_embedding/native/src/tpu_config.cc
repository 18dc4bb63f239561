#include "tpu_config.h"

#include <limits>
#include <set>
#include <utility>

namespace ete {
namespace {

constexpr size_t kMostBytes = size_t{8} << 20;  // As in proto/reading.py.
constexpr size_t kMostTables = 10000, kMostFeatures = 100000, kLongestName = 1000;
constexpr size_t kMostExtents = 8;
constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max(), kWidest = 1 << 16;
constexpr int64_t kMostHosts = 64, kMostCores = 1024;  // All are in this process.

constexpr int64_t kInference = 1, kTraining = 2;  // Of TPUEmbeddingConfiguration.Mode.

void require_fewer(const char* what, size_t most, size_t number) {
  if (number >= most) {
    refuse_config(what, "there must be at most " + std::to_string(most), "more");
  }
}

// What counted features before a config described them.
void refuse_feature_counts(const Field& field) {
  if (field.integer() != 0) {
    refuse_config("config", "it must describe features, by feature_descriptor",
                  "a number of features or samples for each table", Code::kUnimplemented);
  }
}

void read_table(Bytes bytes, TpuConfig* config) {
  LayoutNumbers& numbers = config->numbers;
  require_fewer("tables", kMostTables, numbers.table_names.size());
  std::string name;
  int64_t rows = 0, width = 0;
  std::string parameters;  // Those of a field that is repeated are merged, as protobuf does.
  Message message(bytes);
  for (Field field; message.next(&field);) {
    if (field.number == 1) name = field.bytes().text();
    if (field.number == 2) rows = field.integer();
    if (field.number == 3) width = field.integer();
    if (field.number == 4) refuse_feature_counts(field);
    if (field.number == 5) parameters += field.bytes().text();
  }
  const size_t number = numbers.table_names.size();
  bounded("table " + std::to_string(number), "the length of its name", 1,
          static_cast<int64_t>(name.size()), kLongestName);
  const std::string where = "table \"" + name + '"';
  numbers.table_names.push_back(name);
  numbers.table_rows.push_back(bounded(where, "vocabulary_size", 1, rows, kMostRows));
  numbers.table_widths.push_back(bounded(where, "dimension", 1, width, kWidest));
  numbers.table_combiners.push_back(kSum);
  const TpuTable table = TpuTable::read(where, {parameters.data(), parameters.size()});
  numbers.table_rules.push_back(tpu_algorithm(table.algorithm).rule);
  numbers.slot_counts.push_back(tpu_algorithm(table.algorithm).slots);
  numbers.table_options.insert(numbers.table_options.end(), table.options,
                               table.options + kOptions);
  for (const float part : {table.grid.lowest, table.grid.highest, table.grid.step}) {
    numbers.table_grids.push_back(part);
  }
  config->tables.push_back(table);
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
  if (shape.empty()) {
    refuse_config("feature " + name, "input_shape must have an extent", "none");
  }
  numbers.feature_names.push_back(name);
  numbers.feature_tables.push_back(table);
  numbers.feature_samples.push_back(samples);
  numbers.feature_weighted.push_back(1);
  config->shapes.push_back(std::move(shape));
}

void require_different(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      refuse_config("table \"" + name + '"', "names must differ", "two");
    }
  }
}

}  // namespace

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
      case 3:
        refuse_feature_counts(field);
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
          refuse_config("pipeline_execution_with_tensor_core",
                        "it must be false: these kernels look up after the update before", "true",
                        Code::kUnimplemented);
        }
        break;
      case 9:  // Where to write statistics.
        break;
      case 10:
        read_feature(field.bytes(), &config);
        break;
      default:
        refuse_config("config", "it must have the fields of TensorFlow 2.15's TF1 API alone",
                      "field " + std::to_string(field.number), Code::kUnimplemented);
    }
  }
  config.numbers.num_hosts = bounded("config", "num_hosts", 1, hosts, kMostHosts);
  bounded("config", "num_tensor_cores", 1, config.cores, kMostCores);
  if (config.cores % hosts != 0) {
    refuse_config("num_hosts",
                  "it must divide num_tensor_cores, " + std::to_string(config.cores),
                  std::to_string(hosts));
  }
  bounded("config", "mode", kInference, mode, kTraining);
  config.trains = mode == kTraining;
  require_different(config.numbers.table_names);
  const LayoutNumbers& numbers = config.numbers;
  for (size_t f = 0; f < config.shapes.size(); ++f) {
    const int64_t table = numbers.feature_tables[f];
    config.shapes[f].push_back(numbers.table_widths[static_cast<size_t>(bounded(
        "feature " + numbers.feature_names[f], "table_id", 0, table,
        static_cast<int64_t>(config.tables.size()) - 1))]);
  }
  return config;
}

}  // namespace ete
