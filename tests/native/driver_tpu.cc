// Checks what is read from a config and from ids of a TPU's operations, good, bad and at random.
// Also checks that cores of a step may run in any thread.
#include <algorithm>
#include <cmath>
#include <thread>

#include "driver.h"
#include "tpu_ids.h"
#include "tpu_system.h"

namespace driver {
namespace {

using ete::Code;
using ete::TpuConfig;

// The bytes of a message, field by field.
class Writer {
 public:
  Writer& integer(int field, uint64_t value) { return varint(uint64_t(field) << 3).varint(value); }
  Writer& real(int field, float value) {
    varint(uint64_t(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  Writer& text(int field, const std::string& value) {
    varint(uint64_t(field) << 3 | 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  Writer& varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  Writer& raw(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string table(const std::string& name, const Writer& parameters) {
  return Writer().text(1, name).integer(2, 7).integer(3, 2).text(5, parameters.bytes()).bytes();
}

Writer adam() {
  return Writer()
      .text(13, Writer().real(1, 0.1f).bytes())
      .text(6, Writer().real(3, 0.9f).real(4, 0.999f).real(5, 1e-8f).integer(10, 1).bytes())
      .text(2, Writer().text(1, Writer().real(1, -2.0f).bytes()).bytes())
      .real(16, 0.5f);
}

Writer sgd(float rate) {
  return Writer().text(13, Writer().real(1, rate).bytes()).text(4, "");
}

// Tables `adam` and `sgd` with a feature each, of 3 samples and of 3 sequences of 2.
Writer config(int64_t cores, uint64_t mode = 2) {
  return Writer()
      .text(1, table("adam", adam()))
      .text(1, table("sgd", sgd(1.0f)))
      .integer(2, mode).integer(4, 1).integer(5, static_cast<uint64_t>(cores))
      .text(10, Writer().integer(2, 0).integer(3, 3).bytes())
      .text(10, Writer().integer(2, 1).text(3, Writer().varint(3).varint(2).bytes()).bytes());
}

void read_a_config() {
  const TpuConfig read = TpuConfig::read(config(2).bytes());
  CHECK(read.cores == 2 && read.trains, "");
  CHECK(read.numbers.table_names == (std::vector<std::string>{"adam", "sgd"}), "");
  CHECK(read.numbers.feature_samples == (std::vector<int64_t>{3, 6}), "");
  CHECK(read.numbers.slot_counts == (std::vector<int64_t>{2, 0}), "");
  const std::vector<float> wanted{1, 0, 1, 0.5f, 0, -2, INFINITY, -INFINITY, INFINITY,
                                  0.9f, static_cast<float>(1 - 0.9), 0.999f,
                                  static_cast<float>(1 - 0.999), 1e-8f,
                                  static_cast<float>(1e-8 * 1e-8), 1};
  for (size_t i = 0; i < wanted.size(); ++i) {
    CHECK(read.numbers.table_options[i] == wanted[i], "option " + std::to_string(i));
  }
}

void refuse_configs() {
  const auto refused = [](const std::string& says, const Writer& writer,
                          Code code = Code::kInvalidArgument) {
    check_refused(code, says, [&] { TpuConfig::read(writer.bytes()); });
  };
  refused("number of bytes", Writer());
  refused("names must differ", config(1).text(1, table("sgd", sgd(1))));
  refused("\"other\": its learning rate", config(1).text(1, table("other", sgd(NAN))));
  refused("\"other\": its learning rate", config(1).text(1, table("other", sgd(-1))));
  refused("one of the ten", config(1).text(1, table("other", Writer().text(12, ""))),
          Code::kUnimplemented);
  refused("one optimizer, got two", config(1).text(1, table("other", adam().text(4, ""))));
  refused("must have an optimizer", config(1).text(1, table("other", Writer())));
  refused("must be accumulated", config(1).text(1, table("other", sgd(1).integer(17, 2).text(
      7, Writer().text(1, Writer().real(1, -1.0f).bytes()).bytes()))));
  refused("describe features", config(1).integer(3, 4), Code::kUnimplemented);
  refused("got field 11", config(1).text(11, ""), Code::kUnimplemented);
  refused("table_id must be from 0 to 1", config(1).text(
      10, Writer().integer(2, 2).integer(3, 1).bytes()));
  refused("length of its name", config(1).text(1, table("", sgd(1))));
  refused("length of its name", config(1).text(1, table(std::string(1001, 'x'), sgd(1))));
  refused("num_tensor_cores", config(0));
  refused("num_tensor_cores", config(1025));
  refused("num_hosts", config(3).integer(4, 2));
  refused("mode", config(1).integer(2, 3));
  refused("pipeline", config(1).integer(7, 1), Code::kUnimplemented);
  refused("input_shape", config(1).text(10, ""));
  refused("product of input_shape",
          config(1).text(10, Writer().integer(3, 1 << 20).integer(3, 1 << 20).bytes()));
  refused("extent of input_shape", config(1).text(10, Writer().integer(3, UINT64_MAX).bytes()));
  refused("clipping limit", config(1).text(1, table("other", adam().text(
      7, Writer().text(2, Writer().real(1, INFINITY).bytes()).bytes()))));
  refused("must be finite", config(1).text(1, table("other", Writer().text(26, ""))));
  refused("ends behind the end", Writer().varint(10).varint(UINT64_MAX));
  refused("more than 64 bits", Writer().raw(std::string(11, '\xff')));
}

void read_anything(Random& random) {
  const std::string good = config(2).bytes();
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int64_t left = between(random, 1, 3); left > 0; --left) {
      const size_t at = random() % bytes.size(), size = random() % 9;
      switch (between(random, 0, 3)) {
        case 0: bytes[at] = static_cast<char>(random()); break;
        case 1: bytes.erase(at, size + 1); break;
        case 2: bytes.insert(at, size, bytes[at]); break;  // The same again and again.
        default: bytes.insert(at, bytes.substr(random() % bytes.size(), size));
      }
      if (bytes.empty()) bytes = good;
    }
    bytes.shrink_to_fit();
    may_refuse([&] { ete::Layout::make(TpuConfig::read(bytes).numbers); });
  }
}

void place_ids(Random& random) {
  for (int round = 0; round < 20000; ++round) {
    const std::vector<int64_t> shape =
        round % 2 ? std::vector<int64_t>{3, 1} : std::vector<int64_t>{3, 2, 1};
    ete::TpuIdsInput input;
    const int64_t ids = between(random, 0, 6), columns = between(random, 0, 3);
    for (int64_t i = 0; i < ids; ++i) input.ids.push_back(between(random, -1, 7));
    for (int64_t i = between(random, 0, 1) * ids; i > 0; --i) input.weights.push_back(0.5f);
    input.where_shape = columns ? std::vector<int64_t>{ids, columns}
                                : std::vector<int64_t>{between(random, 0, 8)};
    const int64_t numbers = columns ? ids * columns : input.where_shape[0];
    for (int64_t i = 0; i < numbers; ++i) input.where.push_back(between(random, -1, 7));
    if (round % 3) std::sort(input.where.begin(), input.where.end());
    may_refuse([&] {
      const ete::TpuIds placed("f", shape, static_cast<ete::Where>(round % 5 % 3), input,
                               round % 7 ? "mean" : "sum");
      const ete::FeatureIds found = placed.ids();
      for (size_t i = 0; i < found.count; ++i) {
        CHECK(found.samples[i] >= (i ? found.samples[i - 1] : 0) && found.samples[i] < 6, "");
      }
    });
  }
}

// Each core adds 1 to the gradient of row 0 of `sgd` in each step.
void train_in_threads() {
  constexpr int kCores = 4, kSteps = 20;
  ete::TpuSystem system(config(kCores).bytes());
  const std::vector<float> zeros(6), ones(12, 1.0f);  // Until the last core has trained.
  const auto run = [&](int core) {
    const int32_t samples[] = {0};
    const int64_t ids[] = {0};
    const float weights[] = {1};
    for (int step = 0; step < kSteps; ++step) {
      system.enqueue(core, {{nullptr, nullptr, weights, 0}, {samples, ids, weights, 1}}, true);
      const auto batch = system.next(core);
      std::vector<float> adam(6), sgd(12);
      system.engine().lookup(batch->words.as<uint32_t>(), batch->count,
                             {adam.data(), sgd.data()});
      CHECK(sgd[0] == static_cast<float>(-kCores * step), std::to_string(sgd[0]));
      system.send(core, {{zeros.data(), ones.data()}, {}, nullptr});
    }
  };
  std::vector<std::thread> threads;
  for (int core = 0; core < kCores; ++core) threads.emplace_back(run, core);
  for (std::thread& thread : threads) thread.join();
}

void end_waits() {
  ete::TpuSystem impatient(config(1).bytes(), std::chrono::milliseconds(10));
  check_refused(Code::kDeadlineExceeded, "Core 0: no batch came within 10 ms",
                [&] { impatient.next(0); });
  const float weights[] = {1};
  const std::vector<ete::FeatureIds> nothing(2, {nullptr, nullptr, weights, 0});
  for (int batch = 0; batch < 2; ++batch) impatient.enqueue(0, nothing, true);
  check_refused(Code::kDeadlineExceeded, "its queue is full",
                [&] { impatient.enqueue(0, nothing, true); });
  impatient.next(0);
  check_refused(Code::kDeadlineExceeded, "the step before, which is over now",
                [&] { impatient.next(0); });
  impatient.next(0);
  ete::TpuSystem system(config(1).bytes());
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    system.close();
  });
  check_refused(Code::kCancelled, "shut down", [&] { system.next(0); });
  closer.join();
}

}  // namespace

void check_tpu() {
  Random random(11);
  read_a_config();
  refuse_configs();
  read_anything(random);
  place_ids(random);
  train_in_threads();
  end_waits();
}

}  // namespace driver
