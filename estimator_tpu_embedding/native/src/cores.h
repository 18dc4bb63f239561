// Counts the threads that can work at the same time in this process.
#ifndef ETE_CORES_H_
#define ETE_CORES_H_

#include <string>

namespace ete {

constexpr int kMostThreads = 1024;  // MAX_THREADS of core/kernels.py.

// How many cores this process may use, in [1, kMostThreads]: by its affinity, and by the time
// that its container may use (the control group of Linux at the root that it sees).
int usable_cores();

// The cores of a control group, rounded up, at least 1, or 0 if it has no limit, from what its
// file cpu.max says: "<quota> <period>" in microseconds. A quota of "max", or -1, is no limit, and
// so is any other text.
int cores_of_quota(const std::string& text);

}  // namespace ete

#endif  // ETE_CORES_H_
