#include "cores.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace ete {

namespace {

// The first line, or nothing.
std::string line_of(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

int cores_of_group() {
  const int cores = cores_of_quota(line_of("/sys/fs/cgroup/cpu.max"));
  if (cores > 0) return cores;
  return cores_of_quota(line_of("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") + ' ' +  // Version 1.
                        line_of("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
}

int cores_of_affinity() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  return static_cast<int>(
      std::min(std::thread::hardware_concurrency(), static_cast<unsigned>(kMostThreads)));
}

}  // namespace

int cores_of_quota(const std::string& text) {
  std::istringstream words(text);
  double quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min(std::ceil(quota / period), double{kMostThreads}));
}

int usable_cores() {
  const int all = std::clamp(cores_of_affinity(), 1, kMostThreads), group = cores_of_group();
  return group > 0 ? std::min(all, group) : all;
}

}  // namespace ete
