// Lifetimes, the lock, the registry, and many threads on one engine.
#include <atomic>
#include <thread>

#include "driver.h"

namespace driver {
namespace {

constexpr ete::Patience kShort{std::chrono::milliseconds(50), std::chrono::milliseconds(20)};

void check_parts_of_engine() {
  Random random(2);
  for (int round = 0; round < 20; ++round) {
    const auto engine = random_engine(1, random_numbers(random), 2);
    size_t parts = 0;
    for (size_t t = 0; t < engine->layout().tables.size(); ++t) {
      const ete::TableLayout& table = engine->layout().tables[t];
      for (int slot = 0; slot <= table.slots; ++slot) {
        for (size_t host = 0; host < table.part_rows.size(); ++host, ++parts) {
          const ete::Part& part = engine->part(static_cast<int64_t>(parts));
          CHECK(part.table == static_cast<int>(t) && part.slot == slot, "");
          CHECK(part.host == static_cast<int>(host) && part.rows == table.part_rows[host], "");
          CHECK(reinterpret_cast<uintptr_t>(part.data) % 64 == 0, "TensorFlow would copy it");
          std::vector<float> values(part.elements());
          engine->read(static_cast<int64_t>(parts), values.data());
          CHECK(std::equal(values.begin(), values.end(), part.data), "");
        }
      }
    }
    CHECK(parts == engine->parts(), "");
    check_refused(ete::Code::kInvalidArgument, "part",
                  [&] { engine->part(static_cast<int64_t>(parts)); });
  }
}

void check_rows() {
  const auto engine = random_engine(3, one_table(100, 20, 4), 2);
  const float* data = engine->part(0).data;
  const std::vector<int64_t> rows = {99, 0, 7, 7};
  std::vector<float> out(rows.size() * 20);
  engine->read_rows(0, data, rows.data(), rows.size(), out.data());
  for (size_t i = 0; i < out.size(); ++i) CHECK(out[i] == data[rows[i / 20] * 20 + i % 20], "");
  for (const int64_t row : {int64_t{-1}, int64_t{100}, INT64_MIN, INT64_MAX}) {
    check_refused(ete::Code::kInvalidArgument, "t0",
                  [&] { engine->read_rows(0, data, &row, 1, out.data()); });
  }
}

// What is copied is left as it is, what is moved is not needed any more. More than a slice of it.
void check_copies() {
  const auto engine = random_engine(4, one_table(300001, 20, 1), 2);
  const auto block = ete::Block::allocate(engine->part(0).elements() * sizeof(float), "values");
  const size_t count = engine->part(0).elements();
  float* values = block->data();
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000);
  engine->copy(0, values);
  for (const bool moved : {false, true}) {
    const float* found = engine->part(0).data;
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += found[i] != static_cast<float>(i % 1000);
    CHECK(wrong == 0, moved ? "moved" : "copied");
    if (moved) break;
    std::fill_n(engine->part(0).data, count, 0.0f);
    engine->move(0, values);
  }
}

// Memory lives as long as someone holds it, and a view counts until it is freed.
void check_lifetimes() {
  auto engine = std::make_shared<ete::Engine>(ete::Layout::make(one_table(100, 4, 1)), 2, kShort);
  const auto block = engine->hold(0);
  auto view = engine->hold_view(0);
  const std::vector<float> values(400, 1.0f);
  const auto write = [&] { engine->copy(0, values.data()); };
  check_refused(ete::Code::kFailedPrecondition, "t0", write);
  view.reset();
  write();
  view = engine->hold_view(1);  // A slot of the same table.
  check_refused(ete::Code::kFailedPrecondition, "t0", write);
  float* data = engine->part(0).data;
  engine.reset();
  data[399] = 2;
  view.reset();
}

void check_registry() {
  auto engine = random_engine(1, one_table(10, 4, 1), 1);
  const int64_t handle = ete::registry::put(engine), other = ete::registry::put(engine);
  CHECK(handle != other && ete::registry::find(handle) == engine, "");
  ete::registry::remove(handle);
  ete::registry::remove(handle);
  for (const int64_t unknown : {handle, int64_t{0}, int64_t{-1}, INT64_MAX}) {
    check_refused(ete::Code::kInvalidArgument, "no engine",
                  [&] { ete::registry::find(unknown); });
  }
  ete::registry::remove(other);
  std::weak_ptr<ete::Engine> last = engine;
  engine.reset();
  CHECK(last.expired(), "an engine that nobody uses is not freed");
}

void check_inference() {
  ete::LayoutNumbers numbers = one_table(10, 4, 2);
  numbers.table_rules[0] = ete::kNoRule;
  numbers.slot_counts[0] = 0;
  const auto engine = random_engine(1, numbers, 1);
  check_refused(ete::Code::kFailedPrecondition, "t0", [&] { Step().update(*engine, 0.1f); });
}

// What several sessions' threads would do at once, while others use engines of their own.
void check_threads() {
  Random random(5);
  const ete::LayoutNumbers numbers = random_numbers(random);
  const auto engine = random_engine(6, numbers, 3);
  const int64_t handle = ete::registry::put(engine);
  const Batch batch = random_batch(random, engine->layout(), 3);
  const auto gradients = random_gradients(random, engine->layout());
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int number = 0; number < 6; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < 15; ++round, ++done) {
        const auto found = ete::registry::find(handle);
        const auto words = batch.grouped(found->layout(), found->pool());
        auto out = gradients;
        std::vector<float*> pointers;
        for (auto& one : out) pointers.push_back(one.data());
        const auto view = number == 0 ? found->hold_view(0) : found->hold(0);
        found->lookup(words.data(), words.size(), pointers);
        std::vector<float> values(found->part(0).elements());
        found->read(0, values.data());
        if (number == 1) found->copy(0, values.data());
        if (number == 2) Step{{words, words}, {gradients, gradients}}.update(*found, 0.1f);
        if (number == 3) random_engine(7, numbers, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ete::registry::remove(handle);
  CHECK(done == 90, "");
}

}  // namespace

void check_engine() {
  check_parts_of_engine();
  check_rows();
  check_copies();
  check_lifetimes();
  check_registry();
  check_inference();
  check_threads();
}

}  // namespace driver
