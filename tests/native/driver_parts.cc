// Checks layout, pool, memory, access and the order of rows, each by itself.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "access.h"
#include "cores.h"
#include "driver.h"
#include "memory.h"
#include "pool.h"
#include "row_order.h"

namespace driver {
namespace {

using std::chrono::milliseconds;

// Where each id lives by the definition: dealt out one by one.
void check_partition(int64_t rows, int64_t hosts, int64_t strategy) {
  ete::LayoutNumbers numbers = one_table(rows, 1, 1);
  numbers.num_hosts = hosts;
  numbers.strategy = strategy;
  const ete::Layout layout = ete::Layout::make(numbers);
  const ete::TableLayout& table = layout.tables[0];
  const std::string where = std::to_string(rows) + " rows on " + std::to_string(hosts) +
                            " hosts by strategy " + std::to_string(strategy);
  uint32_t start = 0;
  int64_t next = 0, seen = 0;
  for (int64_t host = 0; host < std::min(rows, hosts); ++host) {
    const int64_t own = rows / hosts + (host < rows % hosts ? 1 : 0);
    CHECK(table.part_rows[static_cast<size_t>(host)] == own, where);
    CHECK(table.part_starts[static_cast<size_t>(host)] == start, where);
    for (int64_t row = 0; row < own; ++row, ++seen) {
      const int64_t id = strategy == ete::kMod ? row * hosts + host : next++;
      const uint32_t physical = start + static_cast<uint32_t>(row);
      CHECK(physical_row(layout, table, id) == physical, where + ", id " + std::to_string(id));
      CHECK(layout.id_of(table, physical) == id, where + ", id " + std::to_string(id));
    }
    start += static_cast<uint32_t>((own + 15) / 16 * 16);
  }
  CHECK(seen == rows && table.physical_rows == start, where);
  check_refused(ete::Code::kInvalidArgument, "t0", [&] { layout.id_of(table, start); });
}

void check_layout() {
  for (int64_t rows = 1; rows < 60; ++rows) {
    for (int64_t hosts = 1; hosts <= 9; ++hosts) {
      check_partition(rows, hosts, ete::kDiv);
      check_partition(rows, hosts, ete::kMod);
    }
  }
  for (uint32_t divisor : {1u, 2u, 3u, 7u, 641u, 65537u, 0x7fffffffu, 0xffffffffu}) {
    for (uint32_t number : {0u, 1u, 2u, 640u, 641u, 0x7ffffffeu, 0x80000000u, 0xffffffffu}) {
      CHECK(ete::Divider(divisor).divide(number) == number / divisor, std::to_string(divisor));
    }
  }
  const auto refuse = [](ete::Code code, const std::string& part, auto change) {
    ete::LayoutNumbers numbers = one_table(10, 4, 8);
    change(numbers);
    check_refused(code, part, [&] { ete::Layout::make(numbers); });
  };
  const ete::Code invalid = ete::Code::kInvalidArgument, much = ete::Code::kResourceExhausted;
  refuse(invalid, "table_widths", [](auto& numbers) { numbers.table_widths.clear(); });
  refuse(invalid, "t0", [](auto& numbers) { numbers.table_rows[0] = 0; });
  refuse(invalid, "t0", [](auto& numbers) { numbers.table_widths[0] = 1 << 30; });
  refuse(invalid, "t0", [](auto& numbers) { numbers.table_combiners[0] = 3; });
  refuse(invalid, "t0", [](auto& numbers) { numbers.slot_counts[0] = -1; });
  refuse(invalid, "num_hosts", [](auto& numbers) { numbers.num_hosts = 0; });
  refuse(invalid, "strategy", [](auto& numbers) { numbers.strategy = 2; });
  refuse(invalid, "f0", [](auto& numbers) { numbers.feature_tables[0] = 1; });
  refuse(invalid, "f0", [](auto& numbers) { numbers.feature_samples[0] = 0; });
  refuse(much, "t0", [](auto& numbers) { numbers.table_rows[0] = int64_t{1} << 32; });
  refuse(much, "t0", [](auto& numbers) {
    numbers.feature_names.assign(3, "f");
    numbers.feature_tables.assign(3, 0);
    numbers.feature_samples.assign(3, INT32_MAX);
    numbers.feature_weighted.assign(3, 0);
  });
}

void check_cores() {
  const std::vector<std::pair<const char*, int>> expected = {
      {"max 100000", 0}, {"-1 100000", 0}, {"", 0}, {" ", 0}, {"200000", 0}, {"no numbers", 0},
      {"0 100000", 0}, {"100000 0", 0}, {"100000 100000", 1}, {"1000 100000", 1},
      {"150000 100000", 2}, {"200001 100000", 3}, {"99999999999999 1", ete::kMostThreads}};
  for (const auto& [text, cores] : expected) CHECK(ete::cores_of_quota(text) == cores, text);
  const int cores = ete::usable_cores();
  CHECK(cores >= 1 && cores <= ete::kMostThreads, std::to_string(cores));
}

// Each chunk of many callers is done once, also those that call again from inside.
void check_pool_counts(int threads) {
  ete::Pool pool(threads);
  CHECK(pool.threads() == threads, "");
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&pool] {
      for (size_t chunks = 0; chunks < 40; ++chunks) {
        std::vector<int> done(chunks);
        pool.run(chunks, [&](size_t chunk) {
          std::atomic<int> inner{0};
          pool.run(3, [&](size_t) { ++inner; });
          done[chunk] += inner;
        });
        CHECK(std::count(done.begin(), done.end(), 3) == static_cast<ptrdiff_t>(chunks), "");
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

void check_pool_errors(int threads) {
  ete::Pool pool(threads);
  for (size_t bad = 0; bad < 20; ++bad) {
    std::string message;
    try {
      pool.run(20, [bad](size_t chunk) {
        if (chunk >= bad) throw std::runtime_error("chunk");
      });
    } catch (const std::runtime_error& error) {
      message = error.what();
    }
    CHECK(message == "chunk", "an exception got lost");
  }
}

void check_fork() {
#ifndef __SANITIZE_THREAD__  // It does not support a fork while there are threads.
  auto pool = std::make_unique<ete::Pool>(4);
  std::atomic<int> done{0};
  pool->run(8, [&](size_t) { ++done; });
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    pool->run(8, [&](size_t) { ++done; });
    pool.reset();
    _exit(done == 16 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0, "the child of a fork failed");
#endif
}

void check_memory() {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{5000}, size_t{5} << 20}) {
    const auto block = ete::Block::allocate(bytes, "a test");
    CHECK(block->bytes() == bytes, "");
    CHECK(reinterpret_cast<uintptr_t>(block->data()) % (1 << 21) == 0, "");
    for (size_t i = 0; i < bytes / 4; i += 512) CHECK(block->data()[i]++ == 0.0f, "not zero");
  }
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2 - 1, size_t{1} << 50}) {
    check_refused(ete::Code::kResourceExhausted, "a test",
                  [&] { ete::Block::allocate(bytes, "a test"); });
  }
  auto scratch = std::make_shared<ete::Scratch>();
  char* first = scratch->borrow(1000, "a test").as<char>();
  CHECK(scratch->borrow(900, "a test").as<char>() == first, "memory is not used again");
  const ete::Scratch::Lease lease = scratch->borrow(1000, "a test");
  CHECK(scratch->borrow(1000, "a test").as<char>() != lease.as<char>(), "given away twice");
  char* const large = scratch->borrow(size_t{1} << 20, "a test").as<char>();
  CHECK(scratch->borrow(1000, "a test").as<char>() != large, "wasted on little");
  CHECK(scratch->borrow(size_t{1} << 20, "a test").as<char>() == large, "dropped");
  scratch.reset();
  lease.as<char>()[999] = 1;
}

void check_access() {
  ete::Access access({"first", "second"}, {milliseconds(30), milliseconds(20)});
  const auto write = [&](int table) { const ete::Access::Exclusive turn(access, table); };
  write(-1);
  access.add_view(1);
  check_refused(ete::Code::kFailedPrecondition, "second", [&] { write(-1); });
  write(0);
  access.remove_view(1);
  {
    const ete::Access::Shared turn(access);
    check_refused(ete::Code::kFailedPrecondition, "first", [&] { write(0); });
    check_refused(ete::Code::kFailedPrecondition, "The tables", [&] { write(-1); });
  }
  write(1);
  ete::Access patient({"only"});
  patient.add_view(0);
  std::thread reader([&] {
    patient.add_view(0);  // A run that has a view gets another one while a writer waits.
    std::this_thread::sleep_for(milliseconds(20));
    patient.remove_view(0);
    patient.remove_view(0);
  });
  { const ete::Access::Exclusive turn(patient, -1); }
  reader.join();
}

// A writer that waited for a view, for longer than for a turn, has all of its time for that.
void check_two_waits() {
  ete::Access access({"only"}, {milliseconds(1000), milliseconds(60000)});
  access.add_view(0);
  std::thread saver([&] {
    std::this_thread::sleep_for(milliseconds(1200));
    std::unique_ptr<ete::Access::Shared> look_up(new ete::Access::Shared(access));
    access.remove_view(0);
    std::this_thread::sleep_for(milliseconds(5));
    look_up.reset();
  });
  { const ete::Access::Exclusive turn(access, -1); }
  saver.join();
}

// Lists of rows from `first` on against a stable sort; a wide range needs keys of 64 bits.
void check_row_order(Random& random, uint32_t first, uint32_t range) {
  std::vector<std::vector<uint32_t>> lists(static_cast<size_t>(between(random, 0, 9)));
  std::vector<ete::RowList> given;
  std::vector<std::pair<uint32_t, uint32_t>> wanted;  // Rows with the numbers of their items.
  for (auto& list : lists) {
    for (int64_t left = between(random, 0, 600); left > 0; --left) {
      list.push_back(first + static_cast<uint32_t>(between(random, 0, range - 1)));
      wanted.emplace_back(list.back(), wanted.size());
    }
    given.push_back({list.data(), list.size()});
  }
  std::stable_sort(wanted.begin(), wanted.end(), [](const auto& left, const auto& right) {
    return left.first < right.first; });
  const ete::RowOrder got = ete::order_rows(given, first, first + range);
  CHECK(got.starts.size() == got.rows.size() + 1, "a row without a start");
  CHECK(got.starts.back() == wanted.size(), "another number of items");
  for (size_t row = 0; row < got.rows.size(); ++row) {
    CHECK(row == 0 || got.rows[row - 1] < got.rows[row], "rows that do not ascend");
    CHECK(got.starts[row] < got.starts[row + 1], "a row without an item");
    for (uint32_t i = got.starts[row]; i < got.starts[row + 1]; ++i) {
      CHECK(got.rows[row] == wanted[i].first && got.order[i] == wanted[i].second, "an item");
    }
  }
}

}  // namespace

void check_parts() {
  check_layout();
  check_cores();
  for (int threads = 1; threads <= 8; ++threads) {
    check_pool_counts(threads);
    check_pool_errors(threads);
  }
  check_refused(ete::Code::kInvalidArgument, "threads", [] { ete::Pool pool(100000); });
  check_fork();
  check_memory();
  check_access();
  check_two_waits();
  Random random(9);
  for (const uint32_t range : {1u, 7u, 3000u, 1u << 31}) {
    for (int round = 0; round < 10; ++round) check_row_order(random, 5, range);
  }
}

}  // namespace driver
