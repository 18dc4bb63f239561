#include "section_sort.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ete {

namespace {

constexpr size_t kBucketIds = 4096;  // Keys and their copies fit the first cache.
constexpr int kMostBucketBits = 10;

template <typename Key>
struct Memory {
  // `counts`: how many numbers are needed besides keys.
  Memory(const Section& section, size_t counts, Scratch& scratch)
      : lease(scratch.borrow(2 * section.n() * sizeof(Key) +
                                 (counts + (section.weighted() ? section.n() : 0)) * 4,
                             "sorting ids")),
        keys(lease.as<Key>()),
        other(keys + section.n()),
        places(reinterpret_cast<uint32_t*>(other + section.n())),
        code_of(places + counts) {}

  Scratch::Lease lease;
  Key *keys, *other;
  uint32_t* places;
  uint32_t* code_of;  // Of weighted tables.
};

template <typename Key>
void fill_alone(Section& section, Scratch& scratch) {
  const Memory<Key> memory(section, 0, scratch);
  const int bits = section.payload_bits();
  for (const Piece& piece : section.pieces()) {
    section.read(piece);
    if (section.weighted()) section.write_codes(piece, memory.code_of);
    for (size_t i = piece.first; i < piece.last; ++i) {
      const size_t at = piece.offset + i;
      memory.keys[at] = static_cast<Key>(section.rows()[at]) << bits | section.payload(piece, i);
    }
  }
  for (const Piece& piece : section.pieces()) section.share_out(piece);
  const size_t n = section.n();
  const Key* sorted = sort_keys(memory.keys, memory.other, n, bits, section.row_bits());
  const size_t runs = count_runs(sorted, n, bits);
  write_runs(SortedKeys<Key>{sorted, n, bits, 0, 0, 0, runs},
             section.finish(runs, memory.code_of));
}

// The high bits of a row say in which bucket its keys go, the low ones are sorted there. Buckets
// are independent of each other, and small.
int bucket_bits(const Section& section) {
  int bits = 1;
  while (bits < kMostBucketBits && section.n() >> bits > kBucketIds) ++bits;
  return std::min(bits, section.row_bits() - 1);
}

template <typename Key>
class Together {
 public:
  Together(Section& section, Pool& pool, int bucket_bits)
      : section_(section),
        pool_(pool),
        pieces_(section.pieces()),
        low_bits_(section.row_bits() - bucket_bits),
        buckets_(size_t{1} << bucket_bits),
        memory_(section, pieces_.size() << bucket_bits, *pool.scratch()),
        sorted_(buckets_) {}

  void run() {
    pool_.run(pieces_.size(), [this](size_t piece) { read(piece); });
    place_buckets();
    pool_.run(pieces_.size(), [this](size_t piece) { scatter(piece); });
    pool_.run(buckets_, [this](size_t bucket) { sort(sorted_[bucket]); });
    size_t runs = 0;
    for (SortedKeys<Key>& bucket : sorted_) {
      bucket.first_run = runs;
      runs += bucket.runs;
    }
    const RunArrays arrays = section_.finish(runs, memory_.code_of);
    pool_.run(buckets_, [&](size_t bucket) { write_runs(sorted_[bucket], arrays); });
  }

 private:
  uint32_t* places(size_t piece) const { return memory_.places + piece * buckets_; }

  // Also counts how many keys of the piece each bucket gets.
  void read(size_t number) {
    const Piece& piece = pieces_[number];
    section_.read(piece);
    if (section_.weighted()) section_.write_codes(piece, memory_.code_of);
    uint32_t* counts = places(number);
    std::fill_n(counts, buckets_, 0);
    const uint32_t* rows = section_.rows() + piece.offset;
    for (size_t i = piece.first; i < piece.last; ++i) ++counts[rows[i] >> low_bits_];
  }

  // Turns counts into the places of the first keys: by bucket, then by piece, so stable.
  void place_buckets() {
    uint32_t place = 0;
    for (size_t bucket = 0; bucket < buckets_; ++bucket) {
      const uint32_t first = place;
      for (size_t piece = 0; piece < pieces_.size(); ++piece) {
        place += std::exchange(places(piece)[bucket], place);
      }
      sorted_[bucket] = {memory_.keys + first,          place - first, section_.payload_bits(),
                         static_cast<uint32_t>(bucket) << low_bits_, first, 0, 0};
    }
  }

  void scatter(size_t number) {
    const Piece& piece = pieces_[number];
    section_.share_out(piece);
    uint32_t* next = places(number);
    const uint32_t* rows = section_.rows() + piece.offset;
    const uint32_t mask = (uint32_t{1} << low_bits_) - 1;
    const int bits = section_.payload_bits();
    for (size_t i = piece.first; i < piece.last; ++i) {
      memory_.keys[next[rows[i] >> low_bits_]++] =
          static_cast<Key>(rows[i] & mask) << bits | section_.payload(piece, i);
    }
  }

  void sort(SortedKeys<Key>& bucket) {
    bucket.keys = sort_keys(memory_.keys + bucket.first, memory_.other + bucket.first, bucket.n,
                            bucket.payload_bits, low_bits_);
    bucket.runs = count_runs(bucket.keys, bucket.n, bucket.payload_bits);
  }

  Section& section_;
  Pool& pool_;
  const std::vector<Piece>& pieces_;
  const int low_bits_;
  const size_t buckets_;
  const Memory<Key> memory_;
  std::vector<SortedKeys<Key>> sorted_;  // By bucket.
};

}  // namespace

void fill_alone(Section& section, Scratch& scratch) {
  if (section.payload_bits() + section.row_bits() <= 32) {
    fill_alone<uint32_t>(section, scratch);
  } else {
    fill_alone<uint64_t>(section, scratch);
  }
}

void fill_together(Section& section, Pool& pool) {
  const int bits = bucket_bits(section);
  if (section.payload_bits() + section.row_bits() - bits <= 32) {
    Together<uint32_t>(section, pool, bits).run();
  } else {
    Together<uint64_t>(section, pool, bits).run();
  }
}

}  // namespace ete
