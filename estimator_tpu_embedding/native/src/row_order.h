// Sorts the rows that several lists name.
#ifndef ETE_ROW_ORDER_H_
#define ETE_ROW_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ete {

struct RowList {
  const uint32_t* rows;
  size_t count;
};

// Items are the rows of all lists, numbered list by list.
struct RowOrder {
  std::vector<uint32_t> rows;         // Distinct, ascending.
  std::vector<uint32_t> starts;       // [rows + 1]: where the items of each row begin in `order`.
  std::unique_ptr<uint32_t[]> order;  // The numbers of all items by row; those of a row ascend.
};

// Sorts the rows of lists, all of which are in [first_row, end_row). There are less than 1 << 32
// items. It takes no decision per row, which a processor would guess wrong.
RowOrder order_rows(const std::vector<RowList>& lists, uint32_t first_row, uint32_t end_row);

}  // namespace ete

#endif  // ETE_ROW_ORDER_H_
