#include "row_order.h"

#include <algorithm>

#include "sort.h"

namespace ete {
namespace {

// The bits of numbers below `end`, at least one; 1 <= end <= 1 << 32.
int bits_below(uint64_t end) {
  int bits = 1;
  while ((end - 1) >> bits != 0) ++bits;
  return bits;
}

template <typename Key>
RowOrder order_keys(const std::vector<RowList>& lists, size_t n, uint32_t first_row,
                    int number_bits, int row_bits) {
  const std::unique_ptr<Key[]> keys(new Key[n]), other(new Key[n]);
  size_t number = 0;
  for (const RowList& list : lists) {
    Key* to = keys.get() + number;
    for (size_t i = 0; i < list.count; ++i) {
      to[i] = static_cast<Key>(list.rows[i] - first_row) << number_bits |
              static_cast<Key>(number + i);
    }
    number += list.count;
  }
  const Key* sorted = sort_keys(keys.get(), other.get(), n, number_bits, row_bits);
  const size_t runs = count_runs(sorted, n, number_bits);
  RowOrder made{std::vector<uint32_t>(runs), std::vector<uint32_t>(runs + 1),
                std::unique_ptr<uint32_t[]>(new uint32_t[n])};
  write_runs<Key>({sorted, n, number_bits, first_row, 0, 0, runs},
                  {made.rows.data(), made.starts.data(), made.order.get(), nullptr, nullptr,
                   nullptr});
  made.starts[runs] = static_cast<uint32_t>(n);
  return made;
}

}  // namespace

RowOrder order_rows(const std::vector<RowList>& lists, uint32_t first_row, uint32_t end_row) {
  size_t n = 0;
  for (const RowList& list : lists) n += list.count;
  const int number_bits = bits_below(std::max<uint64_t>(n, 1));
  const int row_bits = bits_below(std::max<uint64_t>(end_row - first_row, 1));
  // Half as much memory, where it is enough.
  return number_bits + row_bits <= 32
             ? order_keys<uint32_t>(lists, n, first_row, number_bits, row_bits)
             : order_keys<uint64_t>(lists, n, first_row, number_bits, row_bits);
}

}  // namespace ete
