// The rates at which a bare loop reaches random rows of this machine's memory: for `laws.py`.
//
//     random_access WIDTH...
//
// prints a line "WIDTH GATHERS CHANGES" for each number of floats per row, and a line "0 COPIED 0":
// rows per second that all threads together read, rows per second that they read, change and
// write, and bytes per second that copies read and write. The best of several distances of
// prefetching and of several windows counts.
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr size_t kBytes = size_t{1} << 30;  // Of the table: far beyond any cache.
constexpr size_t kMostVisits = size_t{1} << 20;  // By a thread in a window.
constexpr int kWindows = 3;

float* allocate(size_t bytes) {
  void* data = std::aligned_alloc(size_t{1} << 21, bytes);
  if (data == nullptr) std::exit(1);
  madvise(data, bytes, MADV_HUGEPAGE);
  std::memset(data, 1, bytes);
  return static_cast<float*>(data);
}

int threads() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

// Seconds that `body(thread)` takes on all threads.
template <class Body>
double seconds(Body body) {
  std::vector<std::thread> all;
  const auto began = std::chrono::steady_clock::now();
  for (int t = 0; t < threads(); ++t) all.emplace_back(body, t);
  for (std::thread& one : all) one.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

template <bool kChanges>
void visit(float* table, size_t width, const std::vector<uint32_t>& rows, size_t ahead,
           float* out) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + ahead < rows.size()) {
      const float* next = table + rows[i + ahead] * width;
      for (size_t at = 0; at < width; at += 16) __builtin_prefetch(next + at, kChanges, 2);
    }
    float* row = table + rows[i] * width;
    float* to = kChanges ? row : out + i % 16 * width;
    for (size_t at = 0; at < width; ++at) to[at] = row[at] + 1.0f;
  }
}

template <bool kChanges>
double rate(float* table, size_t width, const std::vector<std::vector<uint32_t>>& rows) {
  double best = 0;
  for (size_t ahead : {4, 8, 16, 32, 64}) {
    for (int window = 0; window < kWindows; ++window) {
      const double took = seconds([&](int t) {
        std::vector<float> out(16 * width);
        visit<kChanges>(table, width, rows[static_cast<size_t>(t)], ahead, out.data());
      });
      best = std::max(best, static_cast<double>(rows[0].size()) * threads() / took);
    }
  }
  return best;
}

// Each thread has rows of its own, each row once.
std::vector<std::vector<uint32_t>> places(size_t count) {
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  std::mt19937_64 random(1);
  std::vector<std::vector<uint32_t>> rows(static_cast<size_t>(threads()));
  const size_t visits = std::min(kMostVisits, count / rows.size());
  for (size_t i = 0; i < rows.size() * visits; ++i) {
    std::swap(all[i], all[i + random() % (count - i)]);
    rows[i / visits].push_back(all[i]);
  }
  return rows;
}

}  // namespace

int main(int count, char** arguments) {
  float* table = allocate(kBytes);
  for (int i = 1; i < count; ++i) {
    const size_t width = std::strtoull(arguments[i], nullptr, 10);
    const auto rows = places(kBytes / sizeof(float) / width);
    std::printf("%zu %.0f %.0f\n", width, rate<false>(table, width, rows),
                rate<true>(table, width, rows));
  }
  const size_t half = kBytes / 2 / static_cast<size_t>(threads());
  double best = 0;
  for (int window = 0; window < kWindows; ++window) {
    const double took = seconds([&](int t) {
      char* from = reinterpret_cast<char*>(table) + 2 * half * static_cast<size_t>(t);
      std::memcpy(from + half, from, half);
    });
    best = std::max(best, 2.0 * static_cast<double>(half) * threads() / took);
  }
  std::printf("0 %.0f 0\n", best);
}
