// Grids that follow each other: when one starts, what is complete by then, what it may touch before
// it waits, when it ends.
#include <algorithm>
#include <string>
#include <utility>

#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

bool covers(const Allocation& a, std::uintptr_t address) {
  const auto base = reinterpret_cast<std::uintptr_t>(a.base);
  return address >= base && address < base + static_cast<std::uintptr_t>(a.bytes);
}

const Allocation* allocation_at(const GridRun& grid, std::uintptr_t address) {
  const std::vector<Allocation>& all = grid.launch->allocations;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Allocation& a) { return covers(a, address); });
  return found == all.end() ? nullptr : &*found;
}

// May an access of another grid meet one that this grid makes there?
bool may_conflict(const GridRun& grid, std::uintptr_t address, bool write) {
  const Allocation* const memory = allocation_at(grid, address);
  return memory != nullptr && (write || memory->writable);
}

}  // namespace

bool Machine::may_start(const GridRun& grid) const {
  if (grid.next_cta >= grid.shape().ctas) return false;
  if (grid.index == 0) return true;
  const GridRun& before = grids_[static_cast<std::size_t>(grid.index) - 1];
  return before.ended || (grid.launch->dependent && before.holding == 0);
}

// By what the grid before is, not by what has happened to end: so it is the same in all schedules.
int Machine::complete_before(const GridRun& grid) const {
  if (!grid.launch->dependent) return grid.index - 1;
  if (grid.index == 0) return GridRun::nothing;
  const GridRun& before = grid_before(grid);
  return before.lets_next_early ? before.complete : grid.index - 2;
}

void Machine::let_next_start(Cta& cta) {
  if (std::exchange(cta.holds, false)) --cta.grid->holding;
}

void Machine::launch_dependents(bool as_if_early, Site site) {
  Thread& self = *current_;
  GridRun& grid = *self.cta->grid;
  const auto same = [&](const Site& s) { return s.line == site.line && s.file == site.file; };
  if (std::none_of(grid.lets_next_at.begin(), grid.lets_next_at.end(), same)) {
    grid.lets_next_at.push_back(site);
  }
  if (order && (as_if_early || !Order::knows_prerequisites(self))) lets_next_early(grid, site);
  if (explore) explore->lets_next_start(*self.cta);
  let_next_start(*self.cta);
}

void Machine::lets_next_early(GridRun& grid, Site site) {
  if (!std::exchange(grid.lets_next_early, true)) grid.early_at = site;
  if (!grid.relied_on) return;
  finding(Check::before_prerequisites,
          who(*current_) +
              ": launch_dependents comes before this thread knows that the grids before its own "
              "have ended, and the next grid, which relies on that, has begun. Mend: "
              "launch_dependents() behind wait_for_prerequisites() in every CTA",
          site);
}

bool Machine::is_complete(const GridRun& grid, int complete, std::uintptr_t address,
                          bool write) const {
  return complete != GridRun::nothing &&
         std::none_of(grids_.begin(), grids_.end(), [&](const GridRun& other) {
           return other.index > complete && other.index < grid.index - 1 &&
                  may_conflict(other, address, write);
         });
}

// Where the grid before let this one start early, what it knew itself when it began would count.
void Machine::rely_on_grid_before(const GridRun& grid, std::uintptr_t address, bool write) {
  GridRun& before = grids_[static_cast<std::size_t>(grid.index) - 1];
  if (before.relied_on || before.lets_next_early) return;
  if (is_complete(grid, before.complete, address, write)) return;
  before.relied_on = true;
  for (const Site& site : before.lets_next_at) sites_.rely_on(SyncKind::grid_launch, site);
}

void Machine::check_prerequisites(std::uintptr_t address, bool write, const char* operation,
                                  Site site) {
  const GridRun& grid = *current_->cta->grid;
  if (!order || !grid.launch->dependent || Order::knows_prerequisites(*current_)) return;
  const Allocation* const memory = allocation_at(grid, address);
  if (memory == nullptr || memory->constant) return;
  const bool meets_before = grid.index > 0 && may_conflict(grid_before(grid), address, write);
  if (!meets_before && is_complete(grid, grid.complete, address, write)) {
    return rely_on_grid_before(grid, address, write);
  }
  std::string cause;
  if (grid.index > 0 && !meets_before && grid_before(grid).lets_next_early) {
    const Site at = grid_before(grid).early_at;
    cause =
        " The grid before lets this one start before it knows itself that those before it have "
        "ended";
    if (at.line > 0) cause += std::string(", at ") + at.file + ":" + std::to_string(at.line);
    cause += ".";
  }
  finding(Check::before_prerequisites,
          who(*current_) + ": " + operation + " touches " + memory->name +
              " before the grids that this one depends on have ended." + cause +
              " Missing: griddepcontrol.wait. Mend: call wait_for_prerequisites() in this thread, "
              "or let it meet one that has, before" +
              (cause.empty() ? "" : "; or launch_dependents() behind its wait in the grid before"),
          site);
}

void Machine::wait_for_grids(Site site) {
  Thread& self = *current_;
  const GridRun& grid = *self.cta->grid;
  if (grid.index > 0) {
    GridRun& before = grids_[static_cast<std::size_t>(grid.index) - 1];
    if (!before.ended) {
      before.waiting.push_back(&self);
      block({.kind = Wait::Kind::grids, .site = site, .cta = self.cta});
    }
  }
  if (order) order->waited_for_grids(self);
  if (explore) explore->waited_for_grids(self);
}

// Grids end in their order: one that depends on another may be through before it, where it never
// waits.
void Machine::end_grids() {
  for (GridRun& grid : grids_) {
    if (grid.ended) continue;
    const bool in_flight = std::any_of(clusters_.begin(), clusters_.end(),
                                       [&](const auto& c) { return c->grid == &grid; });
    if (grid.next_cta < grid.shape().ctas || grid.running > 0 || in_flight) return;
    grid.ended = true;
    if (grid.launch->ended) {
      if (guard_ != nullptr) guard_->lift();
      if (auto wrong = grid.launch->ended()) report(std::move(*wrong));
      if (guard_ != nullptr) guard_->lower();
    }
    wake_all(grid.waiting);
  }
}

void act::launch_dependents(bool as_if_early, Site site) {
  machine().maybe_yield();
  machine().launch_dependents(as_if_early, site);
}

void act::wait_for_grids(Site site) {
  machine().maybe_yield();
  machine().wait_for_grids(site);
}

}  // namespace warpwright::model
