#include "exchange.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "error.h"

namespace ete {

Exchange::Exchange(Layout layout) : layout_(std::move(layout)) {
  const size_t most = std::numeric_limits<int32_t>::max();
  size_t position = 0, scale = 0;
  for (size_t f = 0; f < features(); ++f) {
    const TableLayout& table = table_of(f);
    const size_t samples = static_cast<size_t>(layout_.features[f].samples);
    weighted_ |= layout_.features[f].weighted;
    owners_ = std::max(owners_, table.part_rows.size());
    first_positions_.push_back(position);
    first_scales_.push_back(scale);
    position += samples;
    scale += is_scaled(f) ? samples : 0;
    if (position > most || table.part_rows[0] > most) {
      throw Error(Code::kResourceExhausted,
                  "Table \"" + table.name + "\": more than " + std::to_string(most) +
                      " rows on a host, or samples up to feature \"" + layout_.features[f].name +
                      "\", cannot be exchanged.");
    }
  }
  first_positions_.push_back(position);
  first_scales_.push_back(scale);
}

}  // namespace ete
