// Memory of tables that is mapped from files on a local disk, for tables larger than memory.
//
// A file has no name, so it is gone when the process ends, however it ends. The system keeps the
// pages that are used often in memory, and writes changed ones back. Which of them it keeps changes
// no result.
#ifndef ETE_DISK_H_
#define ETE_DISK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layout.h"
#include "memory.h"
#include "update.h"

namespace ete {

// Where the large tables of an engine are. Without a directory all are in memory.
struct TableMemory {
  std::string directory;
  size_t resident = 0;  // Bytes of memory for all tables.
};

namespace disk {

// Says of each table of an engine whether its memory is mapped. If all tables with their slots fit
// into `resident`, none is. Otherwise the largest are, so many that the others fit into half of it.
// The other half is for pages that are in use.
//
// Throws Error kFailedPrecondition if the directory cannot have the files: if it cannot be written,
// is not on a local disk, or the disk has no room.
std::vector<bool> choose(const Layout& layout, const TableMemory& memory);

// Maps a new file, all of whose bytes have room on the disk: zeros. They begin at a page, and no
// huge pages are asked for. A page that the disk cannot read or write ends the process with a line
// that names the directory. Throws Error kFailedPrecondition as `choose` does.
std::shared_ptr<Block> map(const std::string& directory, size_t bytes);

// Says that some of this memory is read from its beginning to its end until the result is freed, so
// that the system reads ahead. The result keeps `block` alive.
std::shared_ptr<const void> hold_in_order(std::shared_ptr<const void> block, const float* data,
                                          size_t elements);

// Whether this process has read from a disk since `before` was changed last, here. If a step and
// what was asked for it have read nothing, all pages are in memory, and to ask costs more than some
// steps. A page that is missing all the same is read when it is used.
bool has_read(std::atomic<int64_t>& before);

// Asks the system to read the pages of some rows and of their slots, and does not wait for them.
// `rows` ascend.
void prefetch(const TableState& table, int width, const uint32_t* rows, size_t count);

}  // namespace disk

}  // namespace ete

#endif  // ETE_DISK_H_
