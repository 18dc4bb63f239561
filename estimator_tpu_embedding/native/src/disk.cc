#include "disk.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "error.h"

namespace ete {
namespace disk {

namespace {

// Kinds of file systems, as statfs tells them, that are not on a local disk.
struct Kind {
  uint32_t magic;
  const char* name;
};
constexpr Kind kNotLocal[] = {
    {0x6969, "NFS"},      {0xff534d42, "CIFS"},  {0xfe534d42, "SMB"},    {0x517b, "SMB"},
    {0x65735546, "FUSE"}, {0x01021997, "9P"},    {0x00c36400, "Ceph"},   {0x0bd00bd0, "Lustre"},
    {0x5346414f, "AFS"},  {0x6b414653, "AFS"},   {0x73757245, "Coda"},   {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"}, {0x01021994, "tmpfs"}, {0x858458f6, "ramfs"}};

// As `ops/checks.py` reads it from a message.
[[noreturn]] void refuse(const std::string& directory, const std::string& rule,
                         const std::string& got, const std::string& remedy) {
  const std::string separator = "|ete|";
  std::string text = "<<ete|E479" + separator + "table_memory " + directory + separator + rule +
                     separator + got + separator + separator + remedy + "|ete>>";
  for (size_t at = 0; (at = text.find('\\', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '\\');  // The reader expects that assertions have escaped it.
  }
  throw Error(Code::kFailedPrecondition, text);
}

[[noreturn]] void refuse_write(const std::string& directory, int error) {
  refuse(directory, "it must be a directory in which this process can write files",
         std::strerror(error), "Make it, let this user write there, or take another one.");
}

[[noreturn]] void refuse_size(const std::string& directory, size_t bytes) {
  struct statvfs found {};
  const bool known = statvfs(directory.c_str(), &found) == 0;
  const uint64_t free = known ? uint64_t{found.f_bavail} * found.f_frsize : 0;
  refuse(directory, "its disk must have room for the tables, " + std::to_string(bytes) + " bytes",
         std::to_string(free) + " bytes free", "Make room, or take a directory on another disk.");
}

// A range of addresses that is mapped from a file. They are never freed, because a signal may read
// them at any time, but used again.
struct Range {
  std::atomic<uintptr_t> begin{0}, end{0};  // Equal if it is not in use.
  std::atomic<const char*> line{nullptr};
  Range* next = nullptr;
};

std::atomic<Range*> ranges{nullptr};
std::mutex ranges_mutex;  // Of who changes them.
struct sigaction before;

// A signal says that a page cannot be had. May call only what is safe in a signal.
void on_bus_error(int number, siginfo_t* info, void* context) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Range* one = ranges.load(); one != nullptr; one = one->next) {
    if (at < one->begin.load() || at >= one->end.load()) continue;
    const char* line = one->line.load();
    const ssize_t written = write(STDERR_FILENO, line, std::strlen(line));
    static_cast<void>(written);
    signal(SIGBUS, SIG_DFL);  // The access is made again, and ends the process.
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    signal(SIGBUS, SIG_DFL);
  }
}

void watch_for_bus_errors() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &before) == 0;
  }();
  static_cast<void>(once);
}

// Guards a range until it is freed.
std::shared_ptr<const void> guard(void* data, size_t bytes, const std::string& directory) {
  watch_for_bus_errors();
  const std::string line = "estimator_tpu_embedding: E479 table_memory " + directory +
                           ": its disk cannot read or write a page of a table (SIGBUS), so this "
                           "process ends. What was saved stays.\n";
  const std::lock_guard<std::mutex> lock(ranges_mutex);
  Range* range = ranges.load();
  while (range != nullptr && range->begin.load() != range->end.load()) range = range->next;
  if (range == nullptr) {
    range = new Range;
    range->next = ranges.load();
    ranges.store(range);
  }
  std::free(const_cast<char*>(range->line.exchange(strdup(line.c_str()))));
  range->end.store(reinterpret_cast<uintptr_t>(data) + bytes);
  range->begin.store(reinterpret_cast<uintptr_t>(data));
  return std::shared_ptr<const void>(data, [range](const void*) {
    const std::lock_guard<std::mutex> unused(ranges_mutex);
    range->begin.store(range->end.load());
  });
}

// Returns the descriptor of a file without a name.
int open_file(const std::string& directory) {
  int file = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string name = directory + "/etpe-table-XXXXXX";  // Where the file system has no O_TMPFILE.
  file = mkostemp(&name[0], O_CLOEXEC);
  if (file >= 0) unlink(name.c_str());
  return file;
}

void require(const std::string& directory, size_t bytes) {
  struct statfs found {};
  if (statfs(directory.c_str(), &found) != 0) refuse_write(directory, errno);
  for (const Kind& kind : kNotLocal) {
    if (static_cast<uint32_t>(found.f_type) == kind.magic) {
      refuse(directory, "it must be on a local disk", kind.name,
             "Take a directory on an SSD of this machine.");
    }
  }
  const int file = open_file(directory);
  if (file < 0) refuse_write(directory, errno);
  close(file);
  const uint64_t blocks = found.f_bavail;
  if (blocks < bytes / static_cast<uint64_t>(found.f_bsize)) refuse_size(directory, bytes);
}

void prefetch_pages(const float* table, size_t width, const uint32_t* rows, size_t count) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t begin = 0, end = 0;  // Pages that follow one another.
  const auto ask = [&] {
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
  };
  for (size_t i = 0; i < count; ++i) {
    const uintptr_t row = reinterpret_cast<uintptr_t>(table + rows[i] * width);
    const uintptr_t first = row / page * page;
    if (first > end) {
      ask();
      begin = first;
    }
    end = (row + width * sizeof(float) + page - 1) / page * page;
  }
  ask();
}

}  // namespace

std::vector<bool> choose(const Layout& layout, const TableMemory& memory) {
  std::vector<bool> mapped(layout.tables.size(), false);
  if (memory.directory.empty()) return mapped;
  std::vector<size_t> bytes, order;
  for (const TableLayout& table : layout.tables) {
    order.push_back(bytes.size());
    bytes.push_back(table.physical_rows * static_cast<size_t>(table.width) * sizeof(float) *
                    (1 + static_cast<size_t>(table.slots)));
  }
  const size_t all = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t one, size_t other) { return bytes[one] > bytes[other]; });
  size_t left = all;
  for (size_t i = 0; all > memory.resident && left > memory.resident / 2; ++i) {
    mapped[order[i]] = true;
    left -= bytes[order[i]];
  }
  require(memory.directory, all - left);
  return mapped;
}

std::shared_ptr<Block> map(const std::string& directory, size_t bytes) {
  const int file = open_file(directory);
  if (file < 0) refuse_write(directory, errno);
  const size_t all = mapped_bytes(bytes);
  const int failed = posix_fallocate(file, 0, static_cast<off_t>(all));
  void* data = failed ? MAP_FAILED
                      : mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = failed ? failed : errno;
  close(file);  // The mapping keeps it.
  if (failed == ENOSPC || failed == EDQUOT || failed == EFBIG) refuse_size(directory, all);
  if (data == MAP_FAILED) refuse_write(directory, error);
  madvise(data, all, MADV_RANDOM);  // Of a page that is read, its neighbours are not needed.
  madvise(data, all, MADV_DONTFORK);  // A child must not keep the room on the disk.
  return Block::adopt(data, bytes, guard(data, all, directory));
}

std::shared_ptr<const void> hold_in_order(std::shared_ptr<const void> block, const float* data,
                                          size_t elements) {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(data);
  void* const begin = reinterpret_cast<void*>(first / page * page);
  const size_t bytes = first % page + elements * sizeof(float);
  madvise(begin, bytes, MADV_SEQUENTIAL);
  return std::shared_ptr<const void>(begin, [block = std::move(block), bytes](const void* from) {
    madvise(const_cast<void*>(from), bytes, MADV_RANDOM);
  });
}

bool has_read(std::atomic<int64_t>& before) {
  struct rusage used {};
  getrusage(RUSAGE_SELF, &used);
  const int64_t now = used.ru_majflt + used.ru_inblock;
  return before.exchange(now) != now;
}

void prefetch(const TableState& table, int width, const uint32_t* rows, size_t count) {
  prefetch_pages(table.rows, static_cast<size_t>(width), rows, count);
  for (const float* slot : table.slots) {
    prefetch_pages(slot, static_cast<size_t>(width), rows, count);
  }
}

}  // namespace disk
}  // namespace ete
