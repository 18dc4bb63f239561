#include "update.h"

#include <algorithm>
#include <string>

#include "contributions.h"
#include "denormals.h"
#include "dispatch.h"
#include "error.h"
#include "finite.h"
#include "summed.h"

namespace ete {
namespace {

bool updates_all_rows(const TableLayout& table) { return table.options[kUpdatesAllRows] != 0.0f; }

void check_rule(const TableLayout& table, const TableState& state) {
  if (table.rule >= 0 && table.rule < kRules &&
      state.slots.size() == static_cast<size_t>(kSlotsOfRule[table.rule]) &&
      (table.options[kAccumulate] != 0.0f || !updates_all_rows(table))) {
    return;
  }
  throw Error(Code::kInvalidArgument,
              "Table \"" + table.name + "\": expected a rule of 0 to " +
                  std::to_string(kRules - 1) + " with its slots, got rule " +
                  std::to_string(table.rule) + " with " + std::to_string(state.slots.size()) + ".");
}

// Of one range of one table.
class RangeUpdate {
 public:
  RangeUpdate(const GradientsOfTable& gradients, const RowRange& range, const TableState& state,
              float rate)
      : gradients_(gradients), range_(range), state_(state), table_(*gradients.table),
        width_(static_cast<size_t>(table_.width)), untouched_(range.first_row) {
    job_.options = table_.options;
    job_.rate = rate;
  }

  void run() {
    const bool all_rows = updates_all_rows(table_);
    for_summed(gradients_, range_, &state_, [&](const SummedRows& summed) {
      apply_to(0);
      job_.which = summed.rows;
      job_.gradients = summed.gradients;
      job_.count = summed.count;
      job_.width = width_;
      kernels().apply[table_.rule](job_);
      for (size_t i = 0; all_rows && i < summed.count; ++i) {
        apply_zeros(summed.rows[i]);
        untouched_ = summed.rows[i] + 1;
      }
    });
    if (all_rows) apply_zeros(range_.end_row);
  }

 private:
  void apply_to(size_t offset) {
    job_.rows = state_.rows + offset;
    for (size_t slot = 0; slot < state_.slots.size(); ++slot) {
      job_.slots[slot] = state_.slots[slot] + offset;
    }
  }

  // To the rows before `end` that no batch names, which lie together.
  void apply_zeros(uint32_t end) {
    if (untouched_ >= end) return;
    apply_to(untouched_ * width_);
    job_.which = nullptr;
    job_.gradients = nullptr;
    job_.count = 1;
    job_.width = (end - untouched_) * width_;
    kernels().apply[table_.rule](job_);
  }

  const GradientsOfTable& gradients_;
  const RowRange& range_;
  const TableState& state_;
  const TableLayout& table_;
  const size_t width_;
  uint32_t untouched_;  // The first row of which nothing is known yet.
  ApplyJob job_{};
};

// The ranges of very frequent rows first, so that none of them begins when all others have ended.
// The rest table by table, so that the gradients of one table stay in the cache.
std::vector<RowRange> ranges_of(const std::vector<GradientsOfTable>& tables, int threads) {
  constexpr uint64_t kLeast = 1 << 13, kMost = 1 << 16;  // Floats.
  uint64_t work = 0;
  for (const GradientsOfTable& gradients : tables) {
    work += gradients.occurrences() * static_cast<uint64_t>(gradients.table->width);
  }
  work = std::clamp(work / (static_cast<uint64_t>(threads) * 8), kLeast, kMost);
  std::vector<RowRange> ranges;
  for (size_t number = 0; number < tables.size(); ++number) {
    cut(tables[number], number, updates_all_rows(*tables[number].table), work, &ranges);
  }
  std::stable_sort(ranges.begin(), ranges.end(), [](const RowRange& left, const RowRange& right) {
    return left.work > 2 * kMost && left.work > right.work; });
  return ranges;
}

std::vector<GradientsOfTable> gradients_of(const Layouts& layouts,
                                           const std::vector<CoreGradients>& cores) {
  if (cores.empty()) {
    throw Error(Code::kInvalidArgument, "Expected the gradients of at least one core, got none.");
  }
  std::vector<GradientsOfTable> tables;
  tables.reserve(layouts.own().tables.size());
  for (size_t number = 0; number < layouts.own().tables.size(); ++number) {
    tables.emplace_back(layouts, cores, static_cast<int>(number));
  }
  return tables;
}

}  // namespace

void count(const Layouts& layouts, const std::vector<CoreGradients>& cores, Pool& pool,
           int32_t* nonfinite) {
  const std::vector<GradientsOfTable> tables = gradients_of(layouts, cores);
  count_nonfinite(tables, ranges_of(tables, pool.threads()), pool, nonfinite);
}

void update(const Layouts& layouts, const std::vector<CoreGradients>& cores,
            const std::vector<TableState>& states, const float* rates, Pool& pool,
            int32_t* nonfinite) {
  for (size_t number = 0; number < states.size(); ++number) {
    check_rule(layouts.own().tables[number], states[number]);
  }
  const std::vector<GradientsOfTable> tables = gradients_of(layouts, cores);
  const std::vector<RowRange> ranges = ranges_of(tables, pool.threads());
  if (nonfinite != nullptr) {
    count_nonfinite(tables, ranges, pool, nonfinite);
    for (size_t number = 0; number < tables.size(); ++number) {
      if (nonfinite[number] > 0) return;
    }
  }
  pool.run(ranges.size(), [&](size_t i) {
    const FlushDenormals flush;
    const size_t number = ranges[i].table;
    RangeUpdate(tables[number], ranges[i], states[number], rates[number]).run();
  });
}

}  // namespace ete
