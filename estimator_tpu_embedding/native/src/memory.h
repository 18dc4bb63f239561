// Large memory: blocks for tables, and scratch that is used again in every step.
#ifndef ETE_MEMORY_H_
#define ETE_MEMORY_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ete {

// Memory of its own mapping: zeros, which use no physical memory until they are written. It
// begins at a multiple of 2 MiB and asks for huge pages, which are worth 1.5x where rows are read
// in random order. Freed with the last shared_ptr.
class Block {
 public:
  // Throws Error kResourceExhausted, which names `what` and the size. `bytes` may be 0.
  static std::shared_ptr<Block> allocate(size_t bytes, const std::string& what);

  // Takes over memory that mmap gave, of mapped_bytes(bytes). `guard` is freed after it.
  static std::shared_ptr<Block> adopt(void* data, size_t bytes, std::shared_ptr<const void> guard);

  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  float* data() const { return static_cast<float*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  Block(void* data, size_t bytes) : data_(data), bytes_(bytes) {}

  void* data_;
  size_t bytes_;  // As asked for.
  std::shared_ptr<const void> guard_;
};

// Of a block's memory as it is mapped: whole pages.
size_t mapped_bytes(size_t bytes);

// Gives the whole pages of some memory of malloc back to the system. The memory stays allocated,
// and its content is undefined.
void give_back(void* data, size_t bytes);

// Blocks that are used again and again, because the page faults of fresh memory cost more than the
// work that is done in it. It keeps as many blocks as were ever borrowed at once; their sizes do
// not differ much. Safe to use from any thread. A lease may outlive the owner of the Scratch.
class Scratch : public std::enable_shared_from_this<Scratch> {
 public:
  // A borrowed block, which the destructor gives back. It begins at a multiple of 2 MiB, and holds
  // leftovers of earlier uses.
  class Lease {
   public:
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    template <typename T>
    T* as() const {
      return reinterpret_cast<T*>(block_->data());
    }

   private:
    friend class Scratch;
    Lease(std::shared_ptr<Scratch> owner, std::shared_ptr<Block> block)
        : owner_(std::move(owner)), block_(std::move(block)) {}

    std::shared_ptr<Scratch> owner_;
    std::shared_ptr<Block> block_;
  };

  // Lends a block of at least `bytes`. Throws Error kResourceExhausted, which names `what`.
  Lease borrow(size_t bytes, const std::string& what);

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Block>> free_;  // Small ones first.
};

}  // namespace ete

#endif  // ETE_MEMORY_H_
