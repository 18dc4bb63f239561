#include "memory.h"

#include <algorithm>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

#include "error.h"

namespace ete {

namespace {

constexpr size_t kHugePage = size_t{1} << 21;

// A block of scratch is not used for less than its size divided by this. Otherwise a small result
// that lives long could occupy a large block, and the large result would need another one.
constexpr size_t kMostTooLarge = 4;

size_t round_up(size_t number, size_t unit) { return (number + unit - 1) / unit * unit; }

[[noreturn]] void refuse(size_t bytes, const std::string& what) {
  throw Error(Code::kResourceExhausted,
              "Could not allocate " + std::to_string(bytes) + " bytes for " + what + ".");
}

}  // namespace

size_t mapped_bytes(size_t bytes) {
  return round_up(std::max<size_t>(bytes, 1), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
}

std::shared_ptr<Block> Block::allocate(size_t bytes, const std::string& what) {
  if (bytes > SIZE_MAX / 2) refuse(bytes, what);
  const size_t wanted = mapped_bytes(bytes), all = wanted + kHugePage;
  void* mapped = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) refuse(bytes, what);
  char* const begin = static_cast<char*>(mapped);
  const size_t before = round_up(reinterpret_cast<uintptr_t>(begin), kHugePage) -
                        reinterpret_cast<uintptr_t>(begin);
  if (before) munmap(begin, before);
  munmap(begin + before + wanted, kHugePage - before);
#ifdef MADV_HUGEPAGE
  madvise(begin + before, wanted, MADV_HUGEPAGE);  // A wish; it works without.
#endif
  Block* block = new (std::nothrow) Block(begin + before, bytes);
  if (block == nullptr) {
    munmap(begin + before, wanted);
    refuse(bytes, what);
  }
  return std::shared_ptr<Block>(block);
}

std::shared_ptr<Block> Block::adopt(void* data, size_t bytes, std::shared_ptr<const void> guard) {
  const std::shared_ptr<Block> block(new Block(data, bytes));
  block->guard_ = std::move(guard);
  return block;
}

Block::~Block() { munmap(data_, mapped_bytes(bytes_)); }

void give_back(void* data, size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t from = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = round_up(from, page), end = (from + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Scratch::Lease Scratch::borrow(size_t bytes, const std::string& what) {
  // A quarter more than needed, so that batches that differ a little do not allocate again.
  const size_t wanted = round_up(bytes + bytes / 4, size_t{1} << 16);
  std::shared_ptr<Block> block;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = std::find_if(
        free_.begin(), free_.end(),
        [bytes](const std::shared_ptr<Block>& one) { return one->bytes() >= bytes; });
    if (found != free_.end() && (*found)->bytes() / kMostTooLarge <= wanted) {
      block = *found;
      free_.erase(found);
    } else if (found != free_.begin()) {
      free_.erase(--found);  // The largest that is too small: the new one takes its place.
    }
  }
  if (!block) block = Block::allocate(wanted, what);
  return Lease(shared_from_this(), std::move(block));
}

Scratch::Lease::~Lease() {
  if (!block_) return;  // It was moved from.
  std::lock_guard<std::mutex> lock(owner_->mutex_);
  try {
    const auto place = std::upper_bound(
        owner_->free_.begin(), owner_->free_.end(), block_->bytes(),
        [](size_t bytes, const std::shared_ptr<Block>& one) { return bytes < one->bytes(); });
    owner_->free_.insert(place, std::move(block_));
  } catch (const std::bad_alloc&) {
    block_.reset();  // Then it is just not used again.
  }
}

}  // namespace ete
