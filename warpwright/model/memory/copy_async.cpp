// cp.async: copies by threads, in groups that each thread counts for itself (PTX ISA 9.7.9.25.3).
#include <algorithm>
#include <cstring>

#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {

void Machine::mark(Cta& cta, const ThreadCopy& copy, int change) {
  // Smaller copies share their piece with neighbours that may be in use: the order checker, which
  // knows bytes, watches these.
  if (copy.bytes < 16) return;
  std::uint16_t& count = cta.writers[copy.offset / 16];
  count = static_cast<std::uint16_t>(count + change);
}

void Machine::land(Cta& cta, const ThreadCopy& copy) {
  std::byte* const to = cta.shared.data() + copy.offset;
  std::fill_n(to, copy.bytes, std::byte{0});
  if (copy.from_bytes > 0) {
    std::memcpy(to, bytes_at(copy.from), static_cast<std::size_t>(copy.from_bytes));
  }
  mark(cta, copy, -1);
}

void Machine::land_some(Thread& thread) {
  const auto take = [&](std::vector<ThreadCopy>& copies, std::size_t at) {
    land(*thread.cta, copies[at]);
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const bool at_once =
      options_.mode == Mode::eager || (options_.mode == Mode::starve && options_.seed % 3 != 2);
  if (at_once) {
    for (const ThreadCopy& copy : thread.open_copies) land(*thread.cta, copy);
    thread.open_copies.clear();
    return;
  }
  if (options_.mode != Mode::random || !chance(landing_percent_)) return;
  // Any of them, of any group: groups are what waits count, not how copies land.
  std::size_t all = thread.open_copies.size();
  for (const auto& group : thread.copy_groups) all += group.size();
  if (all == 0) return;
  std::size_t at = pick(all);
  note("a cp.async of " + who(thread) + " lands");
  for (auto& group : thread.copy_groups) {
    if (at < group.size()) return take(group, at);
    at -= group.size();
  }
  take(thread.open_copies, at);
}

void Machine::copies_exit(Thread& thread) {
  const ThreadCopy* late = thread.open_copies.empty() ? nullptr : &thread.open_copies.front();
  for (const auto& group : thread.copy_groups) {
    if (!group.empty()) late = &group.front();
  }
  if (late == nullptr) return;
  finding(Check::undrained_exit,
          who(thread) +
              " exited with a cp.async on its way. Mend: wait for all groups (copy_async_wait<0>) "
              "before the end",
          late->site);
  for (const auto& group : thread.copy_groups) {
    for (const ThreadCopy& copy : group) land(*thread.cta, copy);
  }
  for (const ThreadCopy& copy : thread.open_copies) land(*thread.cta, copy);
  thread.copy_groups.clear();
  thread.open_copies.clear();
}

void copy_async(std::uint32_t to, const void* from, int bytes, int from_bytes, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  constexpr const char* operation = "a cp.async";
  Cta& cta = m.owner(to, operation, site);
  const std::uint32_t offset = to & 0xffffffu;
  if (&cta != self.cta) {
    m.fatal(Check::shared_bounds, m.who(self) + ": a cp.async writes its own CTA's memory only",
            site);
  }
  m.check_shared(cta, offset, bytes, operation, site);
  const auto at = reinterpret_cast<std::uintptr_t>(from);
  if (offset % static_cast<std::uint32_t>(bytes) != 0 ||
      at % static_cast<std::uintptr_t>(bytes) != 0) {
    m.fatal(
        Check::misaligned,
        m.who(self) + ": a cp.async of " + std::to_string(bytes) +
            " bytes needs both of its addresses aligned to them. Mend: copy no more bytes at once "
            "than the addresses are aligned to",
        site);
  }
  if (from_bytes < 0 || from_bytes > bytes) {
    m.fatal(Check::global_bounds,
            m.who(self) + ": a cp.async of " + std::to_string(bytes) + " bytes reads " +
                std::to_string(from_bytes),
            site);
  }
  if (from_bytes > 0) {
    m.check_global(*cta.grid, at, from_bytes, false, operation, site);
    m.check_prerequisites(at, false, operation, site);
  }
  ThreadCopy copy{offset, at, bytes, from_bytes, site, m.use_copy_path(from_bytes)};
  if (m.order) m.order->copy_async(self, copy);
  if (bytes == 16 && (cta.writers[offset / 16] > 0 || cta.readers[offset / 16] > 0)) {
    m.finding(Check::in_flight_access,
              m.who(self) + ": a cp.async meets shared memory at offset " + std::to_string(offset) +
                  " that is still in use by " + m.copies_into(cta, offset, bytes),
              site);
  }
  for (std::uint32_t b = offset / 8; b <= (offset + bytes - 1) / 8; ++b) {
    const int slot = cta.barrier_at[b];
    if (slot >= 0 && cta.barriers[static_cast<std::size_t>(slot)].live) {
      m.finding(Check::barrier_storage,
                m.who(self) + ": a cp.async touches the storage of " +
                    m.barrier_text(cta, cta.barriers[static_cast<std::size_t>(slot)]),
                site);
    }
  }
  std::fill_n(cta.shared.begin() + offset, bytes, std::byte{0xff});
  std::fill_n(cta.defined.begin() + offset, bytes, std::uint8_t{1});
  m.mark(cta, copy, +1);
  copy.number = ++self.copies_started;
  self.open_copies.push_back(copy);
  m.land_some(self);
}

void act::copy_async_commit() {
  Thread& self = machine().current();
  self.copy_groups.push_back(std::move(self.open_copies));
  self.open_copies.clear();
  ++self.groups_of_tile;
  if (machine().order) Order::copies_committed(self);
  machine().land_some(self);
}

void act::copy_async_wait(int pending) {
  Machine& m = machine();
  m.maybe_yield();
  Thread& self = m.current();
  Moment done;
  while (self.copy_groups.size() > static_cast<std::size_t>(pending)) {
    for (const ThreadCopy& copy : self.copy_groups.front()) {
      done = std::max(done, copy.done);
      m.land(*self.cta, copy);
    }
    self.copy_groups.pop_front();
  }
  if (m.timed() && done > m.now()) m.sleep_until(done, "wait copies");
  if (m.order) Order::copies_waited(self, pending);
}

void act::copy_async_arrive(std::uint32_t barrier, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().arrive);
  Thread& self = m.current();
  (void)m.barrier(barrier, "cp.async.mbarrier.arrive", false, site);
  auto arrival = std::make_unique<Copy>();
  arrival->from = Copy::From::thread;
  arrival->cta = arrival->signals = self.cta;
  arrival->barrier = barrier & 0xffffffu;
  arrival->issuer = arrival->copier = &self;
  arrival->site = site;
  arrival->copies = self.copies_started;
  arrival->start = m.now();
  for (const ThreadCopy& copy : self.open_copies) {
    arrival->start = std::max(arrival->start, copy.done);
  }
  for (const auto& group : self.copy_groups) {
    for (const ThreadCopy& copy : group) arrival->start = std::max(arrival->start, copy.done);
  }
  if (m.order) arrival->handed = m.order->copies_arrive(self);
  m.send(std::move(arrival));
}

void Machine::arrive_behind_copies(const Copy& arrival) {
  Thread& by = *arrival.copier;
  const auto land_all = [&](std::vector<ThreadCopy>& copies) {
    std::erase_if(copies, [&](const ThreadCopy& copy) {
      if (copy.number > arrival.copies) return false;
      land(*by.cta, copy);
      return true;
    });
  };
  for (auto& group : by.copy_groups) land_all(group);
  land_all(by.open_copies);
  MBarrier& bar =
      barrier_of(*arrival.signals, arrival.barrier, "a cp.async.mbarrier.arrive", arrival.site);
  if (order) order->copies_arrived(by, arrival.handed, *arrival.signals, bar, arrival.site);
  arrive(*arrival.signals, bar, by, 1, false, arrival.site, false);
}

}  // namespace warpwright::model
