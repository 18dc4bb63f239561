#include "access.h"

#include <utility>

#include "error.h"

namespace ete {

Access::Access(std::vector<std::string> table_names, Patience patience)
    : names_(std::move(table_names)), patience_(patience), views_(names_.size()) {}

Access::Shared::Shared(Access& access) : access_(access) {
  std::unique_lock<std::mutex> lock(access_.mutex_);
  access_.changed_.wait(lock, [this] { return !access_.writing_ && access_.waiting_ == 0; });
  ++access_.readers_;
}

Access::Shared::~Shared() {
  std::lock_guard<std::mutex> lock(access_.mutex_);
  if (--access_.readers_ == 0) access_.changed_.notify_all();
}

int Access::viewed(int table) const {
  for (int t = 0; t < static_cast<int>(names_.size()); ++t) {
    if ((table < 0 || t == table) && views_[static_cast<size_t>(t)] > 0) return t;
  }
  return -1;
}

std::string Access::written(int table) const {
  if (table < 0) return "The tables";
  return "Table \"" + names_[static_cast<size_t>(table)] + "\"";
}

Access::Exclusive::Exclusive(Access& access, int table) : access_(access) {
  using Clock = std::chrono::steady_clock;
  const auto end_of_views = Clock::now() + access_.patience_.for_views;
  std::unique_lock<std::mutex> lock(access_.mutex_);
  for (;;) {
    if (!access_.changed_.wait_until(lock, end_of_views,
                                     [&] { return access_.viewed(table) < 0; })) {
      throw Error(Code::kFailedPrecondition,
                  "Table \"" + access_.names_[static_cast<size_t>(access_.viewed(table))] +
                      "\" is being read or saved by another run, which has not ended in " +
                      std::to_string(access_.patience_.for_views.count()) +
                      " ms; save it between steps, or wait for that run before the next step.");
    }
    ++access_.waiting_;
    // From now on: the time that went by for views is not taken off.
    const bool free =
        access_.changed_.wait_until(lock, Clock::now() + access_.patience_.for_turn, [this] {
          return !access_.writing_ && access_.readers_ == 0;
        });
    if (--access_.waiting_ == 0) access_.changed_.notify_all();
    if (!free) {
      throw Error(Code::kFailedPrecondition,
                  access_.written(table) +
                      " cannot be written: other runs that use the engine do not end.");
    }
    if (access_.viewed(table) < 0) break;  // Else a view came while others had their turn.
  }
  access_.writing_ = true;
}

Access::Exclusive::~Exclusive() {
  std::lock_guard<std::mutex> lock(access_.mutex_);
  access_.writing_ = false;
  access_.changed_.notify_all();
}

void Access::add_view(int table) {
  const Shared turn(*this);
  std::lock_guard<std::mutex> lock(mutex_);
  ++views_[static_cast<size_t>(table)];
}

void Access::remove_view(int table) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  --views_[static_cast<size_t>(table)];
  changed_.notify_all();
}

}  // namespace ete
