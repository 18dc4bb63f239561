// Checks the lifetimes of engines, their lock and registry, and many threads on one engine.
#include <cstdlib>
#include <thread>

#include <sys/vfs.h>
#include <unistd.h>

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
          CHECK(part.rows == table.part_rows[host], "");
          const float* block = engine->part(static_cast<int64_t>(parts - host)).data;
          CHECK(part.data == block + table.part_starts[host] * static_cast<size_t>(part.width), "");
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

// What nobody else has is given back as it is copied. More than a slice of it.
void check_copies() {
  const auto engine = random_engine(4, one_table(300001, 20, 1), 2);
  const auto block = ete::Block::allocate(engine->part(0).elements() * sizeof(float), "values");
  const size_t count = engine->part(0).elements();
  float* values = block->data();
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000);
  for (const bool last : {false, true}) {
    std::fill_n(engine->part(0).data, count, 0.0f);
    auto owner = std::make_shared<int>(0);
    const std::weak_ptr<int> watched = owner;
    engine->offer(0, {values, std::move(owner)});
    engine->take(0, values, [&] {
      CHECK(watched.expired(), "the engine still has what it asks about");
      return last;
    });
    const float* found = engine->part(0).data;
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += found[i] != static_cast<float>(i % 1000);
    CHECK(wrong == 0, last ? "moved" : "copied");
    CHECK(engine->offered(0).data == nullptr, "");
    CHECK((values[count / 2] == 0) == last, "given back");
  }
}

// An offer counts at once, outlives who could not take it, and is taken by whoever needs it.
void check_offers() {
  const auto engine = std::make_shared<ete::Engine>(ete::Layout::make(one_table(10, 4, 1)), 2,
                                                    kShort);
  const std::vector<float> first(40, 1.0f), second(40, 2.0f);
  const Batch batch{{{0}}, {{7}}, {{}}};
  const auto words = batch.grouped(engine->layout(), engine->pool());
  std::vector<float> out(4);
  const auto look_up = [&] { engine->lookup(words.data(), words.size(), {out.data()}); };
  auto view = engine->hold_view(0);
  engine->offer(0, {first.data(), nullptr});
  engine->offer(0, {second.data(), nullptr});
  check_refused(ete::Code::kFailedPrecondition, "t0", [&] { engine->take(0); });
  check_refused(ete::Code::kFailedPrecondition, "t0", look_up);
  check_refused(ete::Code::kFailedPrecondition, "t0",
                [&] { Step{{words}, {{out}}}.update(*engine, 0.1f); });
  const int64_t row = 7;
  engine->read_rows(0, engine->part(0).data, &row, 1, out.data());
  CHECK(out[3] == 2 && engine->part(0).data[31] == 0, "what is offered is not read");
  engine->read_rows(0, first.data(), &row, 1, out.data());
  CHECK(out[3] == 1, "another value of the variable");
  view.reset();
  look_up();
  CHECK(out[3] == 2 && engine->part(0).data[31] == 2, "what is offered is not looked up");
  engine->part(0).data[31] = 3;
  engine->take(0, second.data());  // By the run that offered it: another one was first.
  CHECK(engine->part(0).data[31] == 3, "taken twice");
  check_refused(ete::Code::kInvalidArgument, "part", [&] { engine->offer(2, {}); });
}

// Memory lives as long as someone holds it, and a view counts until it is freed.
void check_lifetimes() {
  auto engine = std::make_shared<ete::Engine>(ete::Layout::make(one_table(100, 4, 1)), 2, kShort);
  const auto block = engine->hold(0);
  auto view = engine->hold_view(0);
  const std::vector<float> values(400, 1.0f);
  const auto write = [&] { assign(*engine, 0, values); };
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

// Only large tables are mapped; what they hold, and what a batch does, is the same in a file.
void check_disk() {
  const ete::LayoutNumbers numbers = one_table(100, 4, 1);
  const size_t bytes =  // Of rows and a slot.
      ete::Layout::make(numbers).tables[0].physical_rows * 4 * sizeof(float) * 2;
  char directory[] = "/tmp/etpe-driver-XXXXXX";
  CHECK(mkdtemp(directory) != nullptr, "");
  const auto mapped = [&](size_t resident) -> bool {
    return ete::disk::choose(ete::Layout::make(numbers), {directory, resident})[0];
  };
  if (struct statfs found {}; statfs(directory, &found) == 0 && found.f_type == 0x01021994) {
    rmdir(directory);  // It is in memory, which is refused.
    return;
  }
  CHECK(!mapped(bytes) && mapped(bytes - 1), "");
  const auto engine = std::make_shared<ete::Engine>(ete::Layout::make(numbers), 2, kShort,
                                                    ete::TableMemory{directory, 1});
  CHECK(rmdir(directory) == 0, "a file with a name is left");
  const int64_t rows[]{3, 99};
  const std::vector<float> values{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> offered(400, 9.0f);
  engine->offer(0, {offered.data(), nullptr});
  engine->write_rows(0, rows, 2, values.data());
  check_refused(ete::Code::kInvalidArgument, "row", [&] {
    const int64_t beyond = 100;
    engine->write_rows(0, &beyond, 1, values.data());
  });
  const Batch batch{{{0}}, {{99}}, {{}}};
  const auto words = batch.grouped(engine->layout(), engine->pool());
  engine->prefetch(words.data(), words.size());
  std::vector<float> out(4);
  engine->lookup(words.data(), words.size(), {out.data()});
  CHECK(out == std::vector<float>({5, 6, 7, 8}) && engine->part(0).data[12] == 1 &&
            engine->part(0).data[0] == 9, "");
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

// All floats that one user of an engine sees at once: whatever is done there, they are the same.
void check_uniform(const float* values, size_t count, float wanted, const char* what) {
  for (size_t i = 0; i < count; ++i) CHECK(values[i] == wanted, what);
}

// What several sessions' threads do at once on an engine whose rows are all the same before and
// after each write: each id is once in the batch, and has a gradient of ones.
struct Users {
  explicit Users(const std::shared_ptr<ete::Engine>& engine)
      : handle(ete::registry::put(engine)) {
    for (int32_t i = 0; i < kIds; ++i) {
      batch.samples[0].push_back(i);
      batch.ids[0].push_back(i);
    }
    words = batch.grouped(engine->layout(), engine->pool());
  }

  void use(int number) {
    const auto engine = ete::registry::find(handle);
    const size_t count = engine->part(0).elements();
    std::vector<float> found(count);
    if (number == 0) {
      const auto view = engine->hold_view(0);
      const float* rows = engine->part(0).data;
      const float first = rows[0];
      for (int look = 0; look < 3; ++look) check_uniform(rows, count, first, "a held view");
    }
    CHECK(batch.grouped(engine->layout(), engine->pool()) == words, "grouped");
    engine->lookup(words.data(), words.size(), {found.data()});
    check_uniform(found.data(), count, found[0], "looked up");
    engine->read(0, found.data());
    check_uniform(found.data(), count, found[0], "read");
    if (number == 1) assign(*engine, 0, std::vector<float>(count, 3.0f));
    if (number >= 2) Step{{words}, {{std::vector<float>(count, 1.0f)}}}.update(*engine, 0.1f);
    if (number == 3) random_engine(7, one_table(99, 5, 3), 2);
  }

  static constexpr int32_t kIds = 400;
  const int64_t handle;
  Batch batch{{{}}, {{}}, {{}}};
  std::vector<uint32_t> words;
};

void check_threads() {
  constexpr int kThreads = 6, kRounds = 30;
  const auto engine =
      std::make_shared<ete::Engine>(ete::Layout::make(one_table(Users::kIds, 8, Users::kIds)), 3);
  Users users(engine);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&users, number] {
      for (int round = 0; round < kRounds; ++round) users.use(number);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ete::registry::remove(users.handle);
  const ete::Part& slots = engine->part(1);  // Sums of squares: of all updates, each once.
  check_uniform(slots.data, slots.elements(), (kThreads - 2) * kRounds, "updates");
}

}  // namespace

void check_engine() {
  check_parts_of_engine();
  check_rows();
  check_copies();
  check_offers();
  check_lifetimes();
  check_disk();
  check_registry();
  check_inference();
  check_threads();
}

}  // namespace driver
