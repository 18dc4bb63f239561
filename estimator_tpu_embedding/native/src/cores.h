// Counts the threads that can work at the same time in this process.
#ifndef ETE_CORES_H_
#define ETE_CORES_H_

#include <string>

namespace ete {

constexpr int kMostThreads = 1024;  // MAX_THREADS of core/specs.py.

// Returns how many cores this process may use, in [1, kMostThreads]. Its affinity limits them, and
// so does the CPU time of its container (the control group of Linux at the root that it sees).
int usable_cores();

// Returns the cores of a control group, rounded up and at least 1, or 0 if it has no limit. `text`
// is the content of its file cpu.max: "<quota> <period>" in microseconds. A quota of "max", or -1,
// is no limit, and neither is any other text.
int cores_of_quota(const std::string& text);

}  // namespace ete

#endif  // ETE_CORES_H_
