#include "engine.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>

#include "combine.h"
#include "error.h"
#include "grouped.h"

namespace ete {

namespace {

constexpr size_t kCopyFloats = size_t{1} << 20;  // By one thread at a time: 4 MiB.
constexpr size_t kMovedFloats = size_t{1} << 22;
constexpr size_t kGatherFloats = size_t{1} << 14;

std::vector<std::string> table_names(const Layout& layout) {
  std::vector<std::string> names;
  for (const TableLayout& table : layout.tables) names.push_back(table.name);
  return names;
}

// Calls body(first, last) for ranges of at most `unit` numbers below `count`.
void in_ranges(Pool& pool, size_t count, size_t unit,
               const std::function<void(size_t, size_t)>& body) {
  pool.run((count + unit - 1) / unit, [&](size_t number) {
    body(number * unit, std::min(count, (number + 1) * unit));
  });
}

// Cannot fail: where there is no memory for a job, this thread does all of it.
void copy_floats(Pool& pool, const float* from, float* to, size_t elements) noexcept {
  try {
    in_ranges(pool, elements, kCopyFloats, [=](size_t first, size_t last) {
      std::memcpy(to + first, from + first, (last - first) * sizeof(float));
    });
  } catch (const std::bad_alloc&) {
    std::memcpy(to, from, elements * sizeof(float));
  }
}

}  // namespace

Engine::Engine(Layout layout, int threads, Patience patience, const TableMemory& memory)
    : layouts_(std::move(layout)),
      pool_(threads),
      access_(std::make_shared<Access>(table_names(layouts_.own()), patience)),
      mapped_(disk::choose(layouts_.own(), memory)) {
  for (size_t t = 0; t < mapped_.size(); ++t) {
    allocate(static_cast<int>(t), mapped_[t] ? memory.directory : "");
  }
}

void Engine::allocate(int number, const std::string& directory) {
  const TableLayout& table = layout().tables[static_cast<size_t>(number)];
  const size_t width = static_cast<size_t>(table.width);
  TableState state{nullptr, {}};
  for (int slot = 0; slot <= table.slots; ++slot) {
    const size_t bytes = table.physical_rows * width * sizeof(float);
    blocks_.push_back(!directory.empty() ? disk::map(directory, bytes) : Block::allocate(
        bytes,
        (slot ? "slot " + std::to_string(slot) + " of table \"" : "table \"") + table.name + '"'));
    float* data = blocks_.back()->data();
    if (slot == 0) {
      state.rows = data;
    } else {
      state.slots.push_back(data);
    }
    for (size_t host = 0; host < table.part_rows.size(); ++host) {
      parts_.push_back({blocks_.size() - 1,
                        {number, slot, data + table.part_starts[host] * width,
                         table.part_rows[host], table.width}});
    }
  }
  states_.push_back(std::move(state));
}

const Engine::Place& Engine::place(int64_t number) const {
  if (number < 0 || static_cast<size_t>(number) >= parts_.size()) {
    throw Error(Code::kInvalidArgument, "The part must be from 0 to " +
                                            std::to_string(parts_.size() - 1) + ", got " +
                                            std::to_string(number) + ".");
  }
  return parts_[static_cast<size_t>(number)];
}

const Part& Engine::part(int64_t number) const { return place(number).part; }

std::shared_ptr<const void> Engine::hold(int64_t number) const {
  return blocks_[place(number).block];
}

std::shared_ptr<const void> Engine::hold_view(int64_t number) {
  const Part& own = part(number);
  const auto block = !mapped_[static_cast<size_t>(own.table)] ? hold(number) :
      disk::hold_in_order(hold(number), own.data, own.elements());
  access_->add_view(own.table);
  // If there is no memory for the count, the deleter is called at once.
  return std::shared_ptr<const void>(
      block.get(), [access = access_, block, table = own.table](const void*) {
        access->remove_view(table);
      });
}

void Engine::offer(int64_t number, Values values) {
  place(number);  // Refuses what is no part.
  std::lock_guard<std::mutex> lock(offers_mutex_);
  std::swap(offers_[number], values);  // What it replaces is freed after the lock.
}

Values Engine::offered(int64_t number) const {
  std::lock_guard<std::mutex> lock(offers_mutex_);
  const auto found = offers_.find(number);
  return found == offers_.end() ? Values() : found->second;
}

Values Engine::withdraw(int64_t number) {
  std::lock_guard<std::mutex> lock(offers_mutex_);
  const auto found = offers_.find(number);
  if (found == offers_.end()) return {};
  Values values = std::move(found->second);
  offers_.erase(found);
  return values;
}

void Engine::take(int64_t number, const float* kept, const std::function<bool()>& is_last) {
  const Part& to = part(number);
  if (offered(number).data == nullptr) return;
  const Access::Exclusive turn(*access_, to.table);
  Values from = withdraw(number);
  if (from.data == nullptr) return;  // Another run was first.
  bool last = false;
  if (from.data == kept) {
    from.owner.reset();
    last = is_last();
  }
  for (size_t first = 0; first < to.elements(); first += kMovedFloats) {
    const size_t count = std::min(kMovedFloats, to.elements() - first);
    copy_floats(pool_, from.data + first, to.data + first, count);
    if (last) give_back(const_cast<float*>(from.data + first), count * sizeof(float));
  }
}

void Engine::settle() {
  for (;;) {
    int64_t number = 0;
    {
      std::lock_guard<std::mutex> lock(offers_mutex_);
      if (offers_.empty()) return;
      number = offers_.begin()->first;
    }
    take(number);
  }
}

void Engine::prefetch(const uint32_t* words, size_t count) {
  if (std::count(mapped_.begin(), mapped_.end(), true) == 0 || !disk::has_read(read_)) return;
  for (size_t t = 0; t < mapped_.size(); ++t) {
    if (!mapped_[t]) continue;
    const auto group = read_group(layouts_.of(words, count), words, count, static_cast<int>(t));
    disk::prefetch(states_[t], layout().tables[t].width, group.distinct, group.u);
  }
}

void Engine::lookup(const uint32_t* words, size_t count, const std::vector<float*>& activations,
                    const int32_t* lengths) {
  std::vector<const float*> rows;
  for (const TableState& state : states_) rows.push_back(state.rows);
  settle();
  const Access::Shared turn(*access_);
  combine(layouts_.of(words, count), words, count, lengths, rows, pool_, activations);
}

void Engine::require_rules() const {
  for (const TableLayout& table : layout().tables) {
    if (table.rule == kNoRule) {
      throw Error(Code::kFailedPrecondition,
                  "Table \"" + table.name + "\" has no optimizer: its engine only looks up.");
    }
  }
}

void Engine::count(const std::vector<CoreGradients>& cores, int32_t* nonfinite) {
  require_rules();
  ete::count(layouts_, cores, pool_, nonfinite);
}

void Engine::update(const std::vector<CoreGradients>& cores, const float* rates,
                    int32_t* nonfinite) {
  require_rules();
  settle();
  const Access::Exclusive turn(*access_, -1);
  ete::update(layouts_, cores, states_, rates, pool_, nonfinite);
}

void Engine::read(int64_t number, float* out) {
  const Part& from = part(number);
  const Access::Shared turn(*access_);
  copy_floats(pool_, from.data, out, from.elements());
}

void Engine::require_row(const Part& part, int64_t row) const {
  if (row >= 0 && static_cast<uint64_t>(row) < part.rows) return;
  throw Error(Code::kInvalidArgument,
              "Table \"" + layout().tables[static_cast<size_t>(part.table)].name +
                  "\": a row must be from 0 to " + std::to_string(part.rows - 1) + ", got " +
                  std::to_string(row) + ".");
}

void Engine::write_rows(int64_t number, const int64_t* rows, size_t count, const float* values) {
  const Part& to = part(number);
  const size_t width = static_cast<size_t>(to.width);
  for (size_t i = 0; i < count; ++i) require_row(to, rows[i]);
  take(number);
  const Access::Exclusive turn(*access_, to.table);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(to.data + static_cast<size_t>(rows[i]) * width, values + i * width,
                width * sizeof(float));
  }
}

void Engine::read_rows(int64_t number, const float* value, const int64_t* rows, size_t count,
                       float* out) {
  const Part& from = part(number);
  const size_t width = static_cast<size_t>(from.width);
  const Values offer = owns(number, value) ? offered(number) : Values();
  if (offer.data != nullptr) value = offer.data;
  const auto gather = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      require_row(from, rows[i]);
      std::memcpy(out + i * width, value + static_cast<size_t>(rows[i]) * width,
                  width * sizeof(float));
    }
  };
  const Access::Shared turn(*access_);
  in_ranges(pool_, count, std::max<size_t>(1, kGatherFloats / width), gather);
}

namespace registry {

namespace {

// Never freed: engines may still be removed while the process ends.
struct Engines {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<Engine>> by_handle;
  // Random, so that engines of two processes never have one handle.
  const uint64_t salt = uint64_t{std::random_device{}()} << 32 | std::random_device{}();
  uint64_t count = 0;
};

Engines& engines() {
  static Engines* const all = new Engines;
  return *all;
}

}  // namespace

int64_t put(std::shared_ptr<Engine> engine) {
  Engines& all = engines();
  std::lock_guard<std::mutex> lock(all.mutex);
  // By an odd number, so all handles differ, and small numbers are not taken for one.
  const int64_t handle = static_cast<int64_t>((++all.count * 0x9e3779b97f4a7c15) ^ all.salt);
  all.by_handle.emplace(handle, std::move(engine));
  return handle;
}

std::shared_ptr<Engine> find(int64_t handle) {
  Engines& all = engines();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_handle.find(handle);
  if (found == all.by_handle.end()) {
    throw Error(Code::kInvalidArgument,
                "There is no engine " + std::to_string(handle) +
                    " in this process; it, or its session, may have been closed.");
  }
  return found->second;
}

void remove(int64_t handle) noexcept {
  Engines& all = engines();
  std::shared_ptr<Engine> last;  // Freed after the lock.
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_handle.find(handle);
  if (found == all.by_handle.end()) return;
  last = std::move(found->second);
  all.by_handle.erase(found);
}

}  // namespace registry

}  // namespace ete
