#include "sort.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ete {

namespace {

constexpr int kMostDigitBits = 12;  // More would not fit the first cache.
constexpr size_t kStreamKeys = 4;    // Keys per digit from which on more streams pay.

// How many bits to sort by at a time: each pass costs a step per key and one per digit value.
int digit_bits(size_t n, int row_bits) {
  int best = 0;
  size_t least = SIZE_MAX;
  for (int passes = 1; passes <= row_bits; ++passes) {
    const int bits = (row_bits + passes - 1) / passes;
    const size_t cost = static_cast<size_t>(passes) * (n + (size_t{1} << bits));
    if (bits <= kMostDigitBits && cost < least) {
      best = bits;
      least = cost;
    }
  }
  return best;
}

// Moves keys to `other`, ordered by the bits of one digit. False if all keys have the same, then
// nothing is moved.
//
// Ids of real data repeat. Each key of a digit waits for the place of the one before, so the keys
// are taken from several streams, consecutive parts of them, in turn.
template <size_t kStreams, typename Key>
bool sort_by_digit(const Key* keys, Key* other, size_t n, int shift, int bits) {
  uint32_t places[kStreams << kMostDigitBits];  // By digit, then by stream.
  const size_t digits = size_t{1} << bits, part = n / kStreams;
  const auto place_of = [&](size_t i, size_t stream) -> uint32_t& {
    return places[(keys[i] >> shift & (digits - 1)) * kStreams + stream];
  };
  std::fill_n(places, digits * kStreams, 0);
  for (size_t i = 0; i < part; ++i) {
    for (size_t stream = 0; stream < kStreams; ++stream) ++place_of(stream * part + i, stream);
  }
  for (size_t i = part * kStreams; i < n; ++i) ++place_of(i, kStreams - 1);
  if (std::accumulate(&place_of(0, 0), &place_of(0, 0) + kStreams, size_t{0}) == n) return false;
  uint32_t place = 0;
  for (size_t k = 0; k < digits * kStreams; ++k) place += std::exchange(places[k], place);
  for (size_t i = 0; i < part; ++i) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const size_t from = stream * part + i;
      other[place_of(from, stream)++] = keys[from];
    }
  }
  for (size_t i = part * kStreams; i < n; ++i) other[place_of(i, kStreams - 1)++] = keys[i];
  return true;
}

}  // namespace

template <typename Key>
Key* sort_keys(Key* keys, Key* other, size_t n, int payload_bits, int row_bits) {
  if (n < 2) return keys;
  const int bits = digit_bits(n, row_bits), end = payload_bits + row_bits;
  for (int shift = payload_bits; shift < end; shift += bits) {
    const int own = std::min(bits, end - shift);
    const bool moved = n >> own >= kStreamKeys ? sort_by_digit<4>(keys, other, n, shift, own)
                                               : sort_by_digit<1>(keys, other, n, shift, own);
    if (moved) std::swap(keys, other);
  }
  return keys;
}

template <typename Key>
size_t count_runs(const Key* keys, size_t n, int payload_bits) {
  uint32_t runs = n > 0;
  for (size_t i = 1; i < n; ++i) {
    runs += (keys[i] ^ keys[i - 1]) >> payload_bits != 0;
  }
  return runs;
}

template <typename Key>
void write_runs(const SortedKeys<Key>& sorted, const RunArrays& to) {
  const Key* keys = sorted.keys;
  const int bits = sorted.payload_bits;
  const Key next_row = Key{1} << bits;
  const auto begin_run = [&](size_t run, size_t i) {
    to.distinct[run] = static_cast<uint32_t>(keys[i] >> bits) + sorted.row_base;
    to.run_starts[run] = static_cast<uint32_t>(sorted.first + i);
  };
  size_t run = sorted.first_run;
  const size_t end_run = run + sorted.runs;
  if (run < end_run) begin_run(run++, 0);
  // Without a branch that no processor can predict: a place is written until its run begins.
  for (size_t i = 1; run < end_run; ++i) {
    begin_run(run, i);
    run += (keys[i] ^ keys[i - 1]) >= next_row;
  }
  const Key mask = (Key{1} << bits) - 1;
  uint32_t* codes = to.codes + sorted.first;
  if (to.sorted_shares == nullptr) {
    for (size_t i = 0; i < sorted.n; ++i) codes[i] = static_cast<uint32_t>(keys[i] & mask);
    return;
  }
  uint32_t* shares = to.sorted_shares + sorted.first;
  for (size_t i = 0; i < sorted.n; ++i) {
    const size_t occurrence = static_cast<size_t>(keys[i] & mask);
    codes[i] = to.code_of[occurrence];
    shares[i] = to.shares[occurrence];
  }
}

template uint32_t* sort_keys(uint32_t*, uint32_t*, size_t, int, int);
template uint64_t* sort_keys(uint64_t*, uint64_t*, size_t, int, int);
template size_t count_runs(const uint32_t*, size_t, int);
template size_t count_runs(const uint64_t*, size_t, int);
template void write_runs(const SortedKeys<uint32_t>&, const RunArrays&);
template void write_runs(const SortedKeys<uint64_t>&, const RunArrays&);

}  // namespace ete
