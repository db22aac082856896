// Where isa/ enters the machine with a synchronising instruction: it is counted as a site, broken
// when it is the mutant of this run, and otherwise carried out as it is.
#include <bit>

#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

using Broken = Mutation::Kind;

bool is(const Mutation* mutation, Broken kind) {
  return mutation != nullptr && mutation->kind == kind;
}

bool dropped(const Mutation* mutation) {
  return is(mutation, Broken::drop) || is(mutation, Broken::drop_first) ||
         (is(mutation, Broken::lane_zero) && machine().current().lane() != 0);
}

bool repeated(const Mutation* mutation) {
  return is(mutation, Broken::repeat) || is(mutation, Broken::repeat_first);
}

bool flipped(const Mutation* mutation) {
  return is(mutation, Broken::flip_parity) || is(mutation, Broken::flip_first) ||
         is(mutation, Broken::initial_phase);
}

// What a mutation adds to a count.
int change(const Mutation* mutation) {
  return (is(mutation, Broken::count_up) ? 1 : 0) - (is(mutation, Broken::count_down) ? 1 : 0);
}

Scope weakened(const Mutation* mutation, Scope scope) {
  if (!is(mutation, Broken::weaken)) return scope;
  return scope == Scope::cluster ? Scope::cta : Scope::relaxed;
}

std::uint16_t changed_mask(const Mutation* mutation, unsigned mask) {
  if (is(mutation, Broken::clear_low)) mask &= mask - 1;
  if (is(mutation, Broken::clear_high)) mask &= ~std::bit_floor(mask);
  return static_cast<std::uint16_t>(mask);
}

// Carries out what a mutation leaves: for another lane, or twice, where it says so.
template <class Act>
void carry_out(const Mutation* broken, const Act& act) {
  Machine& m = machine();
  if (is(broken, Broken::other_lane)) return m.as_other(m.current().index ^ 1, act);
  act();
  if (repeated(broken)) act();
}

// The same where it may be dropped; others may run in its place.
template <class Act>
void unless_dropped(const Mutation* broken, const Act& act) {
  if (dropped(broken)) return machine().maybe_yield();
  carry_out(broken, act);
}

// The live barrier at `address`, or null.
const MBarrier* barrier_at(std::uint32_t address) {
  const Cluster& cluster = *machine().current().cta->cluster;
  const std::uint32_t rank = address >> 24;
  if (rank >= cluster.ctas.size()) return nullptr;
  const Cta& cta = *cluster.ctas[rank];
  const std::uint32_t at = (address & 0xffffffu) / 8;
  const int slot = at < cta.barrier_at.size() ? cta.barrier_at[at] : -1;
  if (slot < 0 || !cta.barriers[static_cast<std::size_t>(slot)].live) return nullptr;
  return &cta.barriers[static_cast<std::size_t>(slot)];
}

const char* barrier_name(std::uint32_t address) {
  const MBarrier* bar = barrier_at(address);
  return bar == nullptr ? "" : bar->name;
}

}  // namespace

const Mutation* Machine::sync(SyncKind kind, Site site, const char* barrier, int value,
                              bool cluster_scope) {
  if (!options_.count_sites && !options_.mutation) return nullptr;
  return sites_.visit(
      kind, site, barrier, value, cluster_scope,
      {.cta = current_->cta->index, .thread = current_->index, .role = current_->role});
}

void Machine::as_other(int index, const std::function<void()>& act) {
  Thread* const self = current_;
  const auto& threads = self->cta->threads;
  current_ = threads[static_cast<std::size_t>(index) % threads.size()].get();
  moved_ = true;
  try {
    act();
  } catch (...) {
    current_ = self;
    moved_ = false;
    throw;
  }
  current_ = self;
  moved_ = false;
}

void mbarrier_init(std::uint32_t address, int count, Site site) {
  const Mutation* broken = machine().sync(SyncKind::mbarrier_init, site, "", count);
  if (dropped(broken)) return;
  carry_out(broken, [&] { act::mbarrier_init(address, count + change(broken), site); });
}

void name_barrier(std::uint32_t address, const char* name, int index, const char* arrivers) {
  machine().name_site(name);
  // A mutant may have left the init out: what uses the barrier then speaks, not its name.
  if (barrier_at(address) != nullptr) act::name_barrier(address, name, index, arrivers);
}

void mbarrier_expect(std::uint32_t address, int bytes, Site site) {
  const Mutation* broken =
      machine().sync(SyncKind::mbarrier_expect, site, barrier_name(address), bytes);
  if (dropped(broken)) return;
  if (is(broken, Broken::bytes_up) || is(broken, Broken::bytes_first)) bytes += 16;
  if (is(broken, Broken::bytes_down)) bytes -= 16;
  carry_out(broken, [&] { act::mbarrier_expect(address, bytes, site); });
}

void mbarrier_arrive(std::uint32_t address, int count, bool drop, Scope scope, Site site) {
  Machine& m = machine();
  const Mutation* broken = m.sync(SyncKind::mbarrier_arrive, site, barrier_name(address), count,
                                  scope == Scope::cluster);
  int times = repeated(broken) ? 2 : 1;
  if (dropped(broken)) times = 0;
  // The even one of two warpgroups side by side does it for both.
  if (is(broken, Broken::other_warpgroup)) {
    times = m.current().index / warpgroup_threads % 2 == 0 ? 2 : 0;
  }
  if (times == 0) return m.maybe_yield();
  if (is(broken, Broken::stranger)) {
    return m.as_other(m.current().index + warpgroup_threads,
                      [&] { act::mbarrier_arrive(address, count, drop, scope, site); });
  }
  for (int i = 0; i < times; ++i) {
    act::mbarrier_arrive(address, count, drop, weakened(broken, scope), site);
  }
}

bool mbarrier_test(std::uint32_t address, int parity, bool may_suspend, Scope scope, Site site) {
  Machine& m = machine();
  const Mutation* broken =
      m.sync(SyncKind::mbarrier_try_wait, site, barrier_name(address), 0, scope == Scope::cluster);
  if (dropped(broken)) {
    m.maybe_yield();
    return true;
  }
  return act::mbarrier_test(address, flipped(broken) ? parity ^ 1 : parity, may_suspend,
                            weakened(broken, scope), site);
}

void mbarrier_wait(std::uint32_t address, int parity, Scope scope, Site site) {
  Machine& m = machine();
  const Mutation* broken =
      m.sync(SyncKind::mbarrier_wait, site, barrier_name(address), 0, scope == Scope::cluster);
  if (dropped(broken)) return m.maybe_yield();
  act::mbarrier_wait(address, flipped(broken) ? parity ^ 1 : parity, weakened(broken, scope), site);
}

void fence_mbarrier_init(Site site) {
  const Mutation* broken = machine().sync(SyncKind::fence_mbarrier_init, site);
  if (!dropped(broken)) carry_out(broken, [&] { act::fence_mbarrier_init(site); });
}

void fence_proxy_async(Space space, Site site) {
  unless_dropped(machine().sync(SyncKind::fence_proxy_async, site),
                 [&] { act::fence_proxy_async(space, site); });
}

void tensor_load(const TensorMap& map, std::span<const int> coords, CopyMode mode,
                 std::uint32_t destination, std::uint32_t barrier, std::uint16_t multicast,
                 int ctas, Site site) {
  const Mutation* broken =
      multicast == 0 ? nullptr : machine().sync(SyncKind::multicast, site, "", multicast);
  // Dropped: no multicast, only to the own CTA.
  const std::uint16_t mask = dropped(broken) ? 0 : changed_mask(broken, multicast);
  if (broken != nullptr && !dropped(broken) && mask == 0) return;
  act::tensor_load(map, coords, mode, destination, barrier, mask, ctas, site);
}

void bulk_commit(Site site) {
  const Mutation* broken = machine().sync(SyncKind::bulk_commit, site);
  if (!dropped(broken)) carry_out(broken, [&] { act::bulk_commit(site); });
}

void bulk_wait(int pending, bool read_only, Site site) {
  const Mutation* broken = machine().sync(SyncKind::bulk_wait, site, "", pending);
  if (dropped(broken)) return;
  act::bulk_wait(pending + (is(broken, Broken::wait_more) ? 1 : 0), read_only, site);
}

void copy_async_commit(Site site) {
  if (dropped(machine().sync(SyncKind::copy_commit, site))) return;
  act::copy_async_commit();
}

void copy_async_wait(int pending, Site site) {
  const Mutation* broken = machine().sync(SyncKind::copy_wait, site, "", pending);
  unless_dropped(broken,
                 [&] { act::copy_async_wait(pending + (is(broken, Broken::wait_more) ? 1 : 0)); });
}

void copy_async_arrive(std::uint32_t barrier, Site site) {
  unless_dropped(machine().sync(SyncKind::copy_arrive, site, barrier_name(barrier)),
                 [&] { act::copy_async_arrive(barrier, site); });
}

void replace_map_base(std::uint32_t map, std::uint64_t base, Site site) {
  if (dropped(machine().sync(SyncKind::map_replace, site))) return;
  act::replace_map_base(map, base, site);
}

void replace_map_extent(std::uint32_t map, int dimension, std::uint32_t extent, Site site) {
  if (dropped(machine().sync(SyncKind::map_replace, site))) return;
  act::replace_map_extent(map, dimension, extent, site);
}

void release_map(TensorMap* to, std::uint32_t from, Site site) {
  const Mutation* broken = machine().sync(SyncKind::map_release, site);
  if (dropped(broken)) return;
  act::release_map(to, from, !is(broken, Broken::weaken), site);
}

void acquire_map(const TensorMap* map, Site site) {
  unless_dropped(machine().sync(SyncKind::map_acquire, site), [&] { act::acquire_map(map, site); });
}

void wgmma_fence(Site site) {
  machine().current().leaves_registers = false;
  if (dropped(machine().sync(SyncKind::wgmma_fence, site))) return;
  act::wgmma_fence(site);
}

void wgmma_commit(Site site) {
  if (dropped(machine().sync(SyncKind::wgmma_commit, site))) return;
  act::wgmma_commit(site);
}

void wgmma_wait(int pending, bool registers, Site site) {
  Machine& m = machine();
  const Mutation* broken =
      m.sync(SyncKind::wgmma_wait, site, "", pending + (registers ? SyncSite::registers : 0));
  m.current().leaves_registers = is(broken, Broken::no_registers);
  if (dropped(broken)) return;
  act::wgmma_wait(pending + (is(broken, Broken::wait_more) ? 1 : 0), site);
}

void tcgen05_allocate(std::uint32_t to, int columns, int ctas, Site site) {
  if (dropped(machine().sync(SyncKind::tmem_alloc, site, "", columns))) return;
  act::tcgen05_allocate(to, columns, ctas, site);
}

void tcgen05_deallocate(std::uint32_t address, int columns, int ctas, Site site) {
  if (dropped(machine().sync(SyncKind::tmem_dealloc, site, "", columns))) return;
  act::tcgen05_deallocate(address, columns, ctas, site);
}

void tcgen05_relinquish(int ctas, Site site) {
  // Dropped, the lanes still meet: a mutant that changes nothing should not change the schedule.
  const bool effective = !dropped(machine().sync(SyncKind::tmem_relinquish, site));
  act::tcgen05_relinquish(ctas, effective, site);
}

void tcgen05_copy(const TmemCopyRequest& request, Site site) {
  unless_dropped(machine().sync(SyncKind::tmem_copy, site),
                 [&] { act::tcgen05_copy(request, site); });
}

void tcgen05_shift(std::uint32_t address, int ctas, Site site) {
  unless_dropped(machine().sync(SyncKind::tmem_shift, site),
                 [&] { act::tcgen05_shift(address, ctas, site); });
}

void tcgen05_commit(std::uint32_t barrier, std::uint16_t multicast, int ctas, Site site) {
  Machine& m = machine();
  const Mutation* broken =
      m.sync(multicast == 0 ? SyncKind::umma_commit : SyncKind::umma_commit_mask, site,
             barrier_name(barrier), multicast);
  if (dropped(broken)) return m.maybe_yield();
  const std::uint16_t mask = changed_mask(broken, multicast);
  if (mask == 0 && multicast != 0) return m.maybe_yield();
  carry_out(broken, [&] { act::tcgen05_commit(barrier, mask, ctas, site); });
}

void tcgen05_fence(bool before, Site site) {
  const SyncKind kind = before ? SyncKind::tensor_fence_before : SyncKind::tensor_fence_after;
  unless_dropped(machine().sync(kind, site), [&] { act::tcgen05_fence(before, site); });
}

void tcgen05_wait(bool loads, bool registers, Site site) {
  Machine& m = machine();
  const Mutation* broken = m.sync(loads ? SyncKind::tmem_wait_load : SyncKind::tmem_wait_store,
                                  site, "", registers ? SyncSite::registers : 0);
  m.current().leaves_registers = is(broken, Broken::no_registers);
  if (dropped(broken)) return;
  act::tcgen05_wait(loads, site);
}

void try_cancel(std::uint32_t answer, std::uint32_t barrier, bool multicast, Site site) {
  unless_dropped(
      machine().sync(SyncKind::try_cancel, site, barrier_name(barrier), multicast ? 1 : 0),
      [&] { act::try_cancel(answer, barrier, multicast, site); });
}

void named_barrier(int id, int threads, bool wait, Site site) {
  const Mutation* broken = machine().sync(SyncKind::named_barrier, site, "", threads);
  if (dropped(broken)) return;
  act::named_barrier(id, threads + warp_lanes * change(broken),
                     wait && !is(broken, Broken::no_wait), site);
}

void cluster_arrive(bool release, Site site) {
  const Mutation* broken = machine().sync(SyncKind::cluster_arrive, site, "", 0, release);
  if (dropped(broken)) return;
  act::cluster_arrive(release && !is(broken, Broken::weaken), site);
}

void cluster_wait(Site site) {
  if (dropped(machine().sync(SyncKind::cluster_wait, site, "", 0, true))) return;
  act::cluster_wait(site);
}

void sync_warp(Site site) {
  unless_dropped(machine().sync(SyncKind::warp_sync, site), [&] { act::sync_warp(site); });
}

std::uint32_t draw(std::uint32_t* counter, std::uint32_t last, Site site) {
  const Mutation* broken = machine().sync(SyncKind::draw, site, "", static_cast<int>(last));
  if (dropped(broken)) return last;  // as if all others were given away
  if (repeated(broken)) act::draw(counter, last, site);
  // One more: the word is not as it was when the last number has been drawn.
  return act::draw(counter, last + static_cast<std::uint32_t>(change(broken)), site);
}

void store_async(std::uint32_t to, const void* value, std::uint32_t barrier, Site site) {
  unless_dropped(machine().sync(SyncKind::store_async, site, barrier_name(barrier)),
                 [&] { act::store_async(to, value, barrier, site); });
}

void launch_dependents(Site site) {
  const Mutation* const broken = machine().sync(SyncKind::grid_launch, site);
  act::launch_dependents(is(broken, Broken::too_early), site);
}

void wait_for_grids(Site site) {
  unless_dropped(machine().sync(SyncKind::grid_wait, site), [&] { act::wait_for_grids(site); });
}

void flag_clear(void* flag, Site site) {
  unless_dropped(machine().sync(SyncKind::flag_clear, site), [&] { act::flag_clear(flag, site); });
}

void flag_set(void* flag, std::uint32_t value, Site site) {
  unless_dropped(machine().sync(SyncKind::flag_set, site),
                 [&] { act::flag_set(flag, value, site); });
}

static std::uint32_t counted(void* flag, std::uint32_t by, act::Counted how, Site site) {
  const Mutation* broken = machine().sync(SyncKind::flag_count, site, "", 0, true);
  if (dropped(broken)) {
    machine().maybe_yield();
    return 0;
  }
  if (is(broken, Broken::weaken)) how = act::Counted::relaxed;
  if (repeated(broken)) act::flag_count(flag, by, how, site);
  return act::flag_count(flag, by, how, site);
}

std::uint32_t flag_count(void* flag, std::uint32_t by, Site site) {
  return counted(flag, by, act::Counted::in_order, site);
}

void flag_add(void* flag, std::uint32_t by, Site site) {
  counted(flag, by, act::Counted::released, site);
}

std::uint32_t flag_wait(void* flag, std::uint32_t value, std::uint32_t mask, Site site) {
  Machine& m = machine();
  if (dropped(m.sync(SyncKind::flag_wait, site))) {
    m.maybe_yield();
    return value;
  }
  return act::flag_wait(flag, value, mask, site);
}

}  // namespace warpwright::model
