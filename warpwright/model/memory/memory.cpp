// Shared and global memory as threads see them, and the exchanges inside a warp.
#include <algorithm>
#include <array>
#include <cstring>

#include "warpwright/atom/ldmatrix.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/polling.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

bool holds(const Allocation& a, std::uintptr_t address) {
  const auto base = reinterpret_cast<std::uintptr_t>(a.base);
  return address >= base && address < base + static_cast<std::uintptr_t>(a.bytes);
}

std::string range_text(std::uint32_t offset, int bytes) {
  return "offsets " + std::to_string(offset) + " to " + std::to_string(offset + bytes - 1) +
         " of shared memory";
}

struct ShuffleLane {
  std::uint32_t value;
  int source;
  std::uint32_t result;
};

struct MatrixLane {
  Thread* thread;
  std::uint32_t row;
  std::span<std::uint32_t> to;
  std::span<const std::uint32_t> from;
};

// Element e (0 or 1) of register j in `lane` is element (row, column) of 8x8 matrix j.
struct Element {
  int row;
  int column;
};
Element element_of(int lane, int e, bool transpose) {
  const Element plain{atom::matrix_row(lane, e), atom::matrix_col(lane, e)};
  return transpose ? Element{plain.column, plain.row} : plain;
}

}  // namespace

Cta& Machine::owner(std::uint32_t address, const char* operation, Site site) {
  Cluster& cluster = *current_->cta->cluster;
  const std::uint32_t rank = address >> 24;
  if (rank >= cluster.ctas.size()) {
    fatal(Check::shared_bounds,
          who(*current_) + ": " + operation + " names CTA rank " + std::to_string(rank) +
              " of a cluster of " + std::to_string(cluster.ctas.size()),
          site);
  }
  Cta& cta = *cluster.ctas[rank];
  if (&cta != current_->cta && cta.live_threads == 0) {
    fatal(Check::cluster_lifetime,
          who(*current_) + ": " + operation + " reaches CTA rank " + std::to_string(rank) +
              " of its cluster, which has exited",
          site);
  }
  return cta;
}

void Machine::check_shared(Cta& cta, std::uint32_t offset, int bytes, const char* operation,
                           Site site) {
  if (offset < shared_base_offset || offset + bytes > cta.shared.size()) {
    fatal(Check::shared_bounds,
          who(*current_) + ": " + operation + " touches " + range_text(offset, bytes) +
              "; the CTA owns " + range_text(shared_base_offset, cta.grid->shape().shared_bytes),
          site);
  }
}

void Machine::check_global(GridRun& grid, std::uintptr_t address, std::int64_t bytes, bool write,
                           const char* operation, Site site) {
  const std::vector<Allocation>& allocations = grid.launch->allocations;
  const auto holds = [&](const Allocation& a) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    return address >= base && address + static_cast<std::uintptr_t>(bytes) <=
                                  base + static_cast<std::uintptr_t>(a.bytes);
  };
  std::size_t& last = grid.last_allocation;
  if (last < allocations.size() && holds(allocations[last]) &&
      (!write || allocations[last].writable)) {
    return;
  }
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    if (!holds(allocations[i])) continue;
    if (write && !allocations[i].writable) {
      fatal(Check::global_bounds,
            std::string(operation) + " writes to " + allocations[i].name + ", which is an input",
            site);
    }
    last = i;
    return;
  }
  std::string nearest = "no tensor";
  std::uintptr_t best = UINTPTR_MAX;
  for (const Allocation& a : allocations) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    const auto end = base + static_cast<std::uintptr_t>(a.bytes);
    const std::uintptr_t distance =
        address < base ? base - address : address - std::min(address, end);
    if (distance < best) {
      best = distance;
      nearest = a.name;
    }
  }
  fatal(Check::global_bounds,
        std::string(operation) + " touches " + std::to_string(bytes) +
            " bytes outside every tensor; nearest is " + nearest +
            ". Mend: look at the coordinates or the length, and at what the launch declares",
        site);
}

std::string Machine::copies_into(const Cta& cta, std::uint32_t offset, int bytes) const {
  for (const auto& copy : copies_) {
    if (copy->cta != &cta) continue;
    if (offset < copy->offset + copy->reach && copy->offset < offset + bytes) {
      return std::string("the ") + copy->instruction() + " issued by " + who(*copy->issuer) +
             " at " + copy->site.file + ":" + std::to_string(copy->site.line);
    }
  }
  for (const auto& thread : cta.threads) {
    const auto find = [&](const std::vector<ThreadCopy>& copies) {
      return std::find_if(copies.begin(), copies.end(), [&](const ThreadCopy& copy) {
        return offset < copy.offset + copy.bytes && copy.offset < offset + bytes;
      });
    };
    const ThreadCopy* found = nullptr;
    for (const auto& group : thread->copy_groups) {
      if (const auto at = find(group); at != group.end()) found = &*at;
    }
    if (const auto at = find(thread->open_copies); at != thread->open_copies.end()) found = &*at;
    if (found != nullptr) {
      return "the cp.async issued by " + who(*thread) + " at " + found->site.file + ":" +
             std::to_string(found->site.line);
    }
  }
  return "an MMA";
}

std::byte* Machine::bytes_at(std::uintptr_t address) {
  if (guard_ != nullptr) {
    for (const Allocation& a : allocations_) {
      if (a.memory == nullptr || !holds(a, address)) continue;
      return a.memory + (address - reinterpret_cast<std::uintptr_t>(a.base));
    }
  }
  return reinterpret_cast<std::byte*>(address);
}

std::string Machine::memory_text(std::uintptr_t at, int bytes) const {
  for (const Allocation& a : allocations_) {
    if (!holds(a, at)) continue;
    const auto first = at - reinterpret_cast<std::uintptr_t>(a.base);
    return "bytes " + std::to_string(first) + " to " + std::to_string(first + bytes - 1) + " of " +
           a.name;
  }
  return range_text(static_cast<std::uint32_t>(at) & 0xffffffu, bytes);
}

std::uint32_t shared_base() {
  return static_cast<std::uint32_t>(machine().current().cta->rank) << 24 | shared_base_offset;
}

namespace {

// What loads and stores of shared memory have in common; returns the CTA and the offset.
// `far`: the instruction reaches the whole cluster.
enum class Touch : std::uint8_t { load, store, add };
std::pair<Cta*, std::uint32_t> access(Thread& by, std::uint32_t address, int bytes, Touch touch,
                                      bool far, Site site) {
  Machine& m = machine();
  const bool write = touch != Touch::load;
  const char* operation = touch == Touch::load    ? "a load from shared memory"
                          : touch == Touch::store ? "a store to shared memory"
                                                  : "an addition to shared memory";
  Cta& cta = m.owner(address, operation, site);
  const std::uint32_t offset = address & 0xffffffu;
  if (!far && &cta != m.current().cta) {
    m.fatal(Check::shared_bounds,
            m.who(m.current()) + ": " + operation + " names CTA rank " + std::to_string(cta.rank) +
                "; ld.shared and st.shared reach the own CTA only",
            site);
  }
  m.check_shared(cta, offset, bytes, operation, site);
  if (offset % static_cast<std::uint32_t>(bytes) != 0) {
    m.fatal(Check::misaligned,
            m.who(m.current()) + ": " + operation + " of " + std::to_string(bytes) +
                " bytes at offset " + std::to_string(offset) + " is not aligned",
            site);
  }
  if (write) by.stores_to(address);
  if (m.order) m.order->generic(by, cta, offset, bytes, write, site, touch == Touch::add);
  for (std::uint32_t g = offset / 16; g <= (offset + bytes - 1) / 16; ++g) {
    if (cta.writers[g] > 0 || (write && cta.readers[g] > 0)) {
      m.finding(Check::in_flight_access,
                m.who(m.current()) + ": " + operation + " at " + range_text(offset, bytes) +
                    (cta.writers[g] > 0 ? " meets bytes that are still being written by "
                                        : " meets bytes that are still being read by ") +
                    m.copies_into(cta, offset, bytes) + m.in_flight_text(),
                site);
    }
  }
  for (std::uint32_t b = offset / 8; b <= (offset + bytes - 1) / 8; ++b) {
    const int slot = cta.barrier_at[b];
    if (slot >= 0 && cta.barriers[static_cast<std::size_t>(slot)].live) {
      m.finding(Check::barrier_storage,
                m.who(m.current()) + ": " + operation + " touches the storage of " +
                    m.barrier_text(cta, cta.barriers[static_cast<std::size_t>(slot)]),
                site);
    }
  }
  return {&cta, offset};
}

void check_defined(const Cta& cta, std::uint32_t offset, int bytes, Site site) {
  if (std::find(cta.defined.begin() + offset, cta.defined.begin() + offset + bytes, 0) ==
      cta.defined.begin() + offset + bytes) {
    return;
  }
  machine().finding(Check::uninitialised_read,
                    machine().who(machine().current()) + " reads " + range_text(offset, bytes) +
                        ", which nothing has written" + machine().fresh_wait_text(),
                    site);
}

void load_by(Thread& by, std::uint32_t address, void* to, int bytes, bool far, Site site) {
  const auto [cta, offset] = access(by, address, bytes, Touch::load, far, site);
  check_defined(*cta, offset, bytes, site);
  std::memcpy(to, cta->shared.data() + offset, static_cast<std::size_t>(bytes));
}

// The first `used` of `bytes` that are touched: the others may have no value.
void load_part(Thread& by, std::uint32_t address, void* to, int bytes, int used, Site site) {
  const auto [cta, offset] = access(by, address, bytes, Touch::load, false, site);
  check_defined(*cta, offset, used, site);
  std::memcpy(to, cta->shared.data() + offset, static_cast<std::size_t>(used));
}

void store_by(Thread& by, std::uint32_t address, const void* from, int bytes, bool far, Site site) {
  const auto [cta, offset] = access(by, address, bytes, Touch::store, far, site);
  std::memcpy(cta->shared.data() + offset, from, static_cast<std::size_t>(bytes));
  std::fill_n(cta->defined.begin() + offset, bytes, std::uint8_t{1});
}

template <class T>
void add_by(Thread& by, std::uint32_t address, T value, Site site) {
  const auto [cta, offset] = access(by, address, sizeof value, Touch::add, true, site);
  check_defined(*cta, offset, sizeof value, site);
  T sum{};
  std::memcpy(&sum, cta->shared.data() + offset, sizeof sum);
  sum += value;
  std::memcpy(cta->shared.data() + offset, &sum, sizeof sum);
}

}  // namespace

void Machine::load_shared(Thread& by, std::uint32_t address, void* to, int bytes, Site site) {
  load_by(by, address, to, bytes, false, site);
}

void shared_load(std::uint32_t address, void* to, int bytes, Site site) {
  Machine& m = machine();
  m.spend(m.costs().shared_access);
  load_by(m.current(), address, to, bytes, false, site);
  m.watch_load(address, to, bytes, site);
}

void cluster_load(std::uint32_t address, void* to, int bytes, Site site) {
  Machine& m = machine();
  m.spend(m.costs().far_access(bytes));
  load_by(m.current(), address, to, bytes, true, site);
  if (m.order) Order::reads_peer(m.current());
  m.watch_load(address, to, bytes, site);
}

void shared_store(std::uint32_t address, const void* from, int bytes, Site site) {
  Machine& m = machine();
  m.settle_loads();
  m.spend(m.costs().shared_access);
  store_by(m.current(), address, from, bytes, false, site);
}

void leave_unwritten(std::uint32_t address, int bytes, Site site) {
  Machine& m = machine();
  const char* const what = "a promise that nothing depends on bytes";
  Cta& cta = m.owner(address, what, site);
  const std::uint32_t offset = address & 0xffffffu;
  m.check_shared(cta, offset, bytes, what, site);
  std::fill_n(cta.shared.begin() + offset, bytes, std::byte{0xff});
  std::fill_n(cta.defined.begin() + offset, bytes, std::uint8_t{1});
}

void cluster_store(std::uint32_t address, const void* from, int bytes, Site site) {
  Machine& m = machine();
  m.settle_loads();
  m.spend(m.costs().shared_access);
  store_by(m.current(), address, from, bytes, true, site);
}

void cluster_add(std::uint32_t address, std::uint32_t value, Site site) {
  machine().spend(machine().costs().shared_access);
  add_by(machine().current(), address, value, site);
}

void cluster_add(std::uint32_t address, float value, Site site) {
  // (Sums of integers are the same in every order.)
  if (Machine& m = machine(); m.explore) {
    const Cta& cta = m.owner(address, "an addition to shared memory", site);
    m.explore->may_add(cta, address & 0xffffffu);
    m.explore->adds(cta, address & 0xffffffu, site);
  }
  machine().spend(machine().costs().shared_access);
  add_by(machine().current(), address, value, site);
}

void global_load(const void* address, void* to, int bytes, Site site) {
  Machine& m = machine();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  m.use_global(bytes, false);
  GridRun& grid = *m.current().cta->grid;
  m.check_global(grid, at, bytes, false, "a load from global memory", site);
  m.check_prerequisites(at, false, "a load", site);
  if (at % static_cast<std::uintptr_t>(bytes) != 0) {
    m.fatal(Check::misaligned,
            "a load of " + std::to_string(bytes) + " bytes from global memory is not aligned",
            site);
  }
  if (m.order) m.order->generic_global(m.current(), at, bytes, false, site);
  std::memcpy(to, m.bytes_at(at), static_cast<std::size_t>(bytes));
  m.watch_load(at, to, bytes, site);
}

void global_store(void* address, const void* from, int bytes, Site site) {
  Machine& m = machine();
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  m.use_global(bytes, true);
  GridRun& grid = *m.current().cta->grid;
  m.check_global(grid, at, bytes, true, "a store to global memory", site);
  m.check_prerequisites(at, true, "a store", site);
  if (at % static_cast<std::uintptr_t>(bytes) != 0) {
    m.fatal(Check::misaligned,
            "a store of " + std::to_string(bytes) + " bytes to global memory is not aligned", site);
  }
  if (m.order) m.order->generic_global(m.current(), at, bytes, true, site);
  m.current().stores_to(at);
  std::memcpy(m.bytes_at(at), from, static_cast<std::size_t>(bytes));
}

Flag& Machine::flag(void* address, const char* operation, Site site) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  check_global(*current_->cta->grid, at, sizeof(std::uint32_t), true, operation, site);
  check_prerequisites(at, true, operation, site);
  if (at % sizeof(std::uint32_t) != 0) {
    fatal(Check::misaligned, std::string(operation) + " is not aligned to 4 bytes", site);
  }
  return flags_[at];
}

void Machine::flag_written(Flag& flag, Site site) {
  flag.writer = who(*current_);
  flag.written = site;
}

// Where orders are explored: the current thread is about to write a word that others wait for or
// draw from, when its turn has come.
static void note_write(std::uintptr_t word, const char* what, Site site) {
  Machine& m = machine();
  if (!m.explore) return;
  m.explore->may_touch(word);
  std::uint32_t before = 0;
  std::memcpy(&before, m.bytes_at(word), sizeof before);
  m.explore->writes(word, before, what, site);
}

void act::flag_set(void* flag, std::uint32_t value, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().global_access);
  Flag& f = m.flag(flag, "a flag in global memory", site);
  const auto at = reinterpret_cast<std::uintptr_t>(flag);
  note_write(at, "flag_set", site);
  if (m.order) m.order->flag_set(m.current(), f.order);
  std::memcpy(m.bytes_at(at), &value, sizeof value);
  m.flag_written(f, site);
  m.wake_all(f.waiting);
}

void act::flag_clear(void* flag, Site site) {
  Machine& m = machine();
  const std::uint32_t zero = 0;
  note_write(reinterpret_cast<std::uintptr_t>(flag), "flag_clear", site);
  global_store(flag, &zero, sizeof zero, site);
  m.flag_written(m.flag(flag, "a flag in global memory", site), site);
}

std::uint32_t act::flag_wait(void* flag, std::uint32_t value, std::uint32_t mask, Site site) {
  return wait_for_word(flag, value, mask, false, "flag_wait", site);
}

std::uint32_t act::flag_count(void* flag, std::uint32_t by, Counted how, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().atomic);
  const auto at = reinterpret_cast<std::uintptr_t>(flag);
  Flag& f = m.flag(flag, "a count in global memory", site);
  note_write(at, "flag_count", site);
  std::uint32_t before = 0;
  if (m.order) {
    m.order->atomic_global(m.current(), at, sizeof before, site);
    if (how == Counted::in_order) {
      // What is acquired here is released with the rest: who counts next knows all before.
      m.order->flag_waited(m.current(), f.order);
      m.order->flag_set(m.current(), f.order);
    } else if (how == Counted::released) {
      m.order->flag_added(m.current(), f.order);
    }
  }
  std::memcpy(&before, m.bytes_at(at), sizeof before);
  const std::uint32_t next = before + by;
  std::memcpy(m.bytes_at(at), &next, sizeof next);
  m.flag_written(f, site);
  m.wake_all(f.waiting);
  return before;
}

// Where a word of so many bytes lies that the thread updates at once.
static std::byte* updated(void* word, int bytes, const std::string& operation, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  const auto at = reinterpret_cast<std::uintptr_t>(word);
  m.spend(m.costs().atomic);
  m.check_global(*m.current().cta->grid, at, bytes, true, operation.c_str(), site);
  m.check_prerequisites(at, true, operation.c_str(), site);
  if (at % static_cast<std::uintptr_t>(bytes) != 0) {
    m.fatal(Check::misaligned, operation + " is not aligned", site);
  }
  if (m.order) m.order->atomic_global(m.current(), at, bytes, site);
  return m.bytes_at(at);
}

std::uint32_t act::draw(std::uint32_t* counter, std::uint32_t last, Site site) {
  std::byte* const at = updated(counter, sizeof *counter, "an atomic increment", site);
  note_write(reinterpret_cast<std::uintptr_t>(counter), "draw", site);
  std::uint32_t number = 0;
  std::memcpy(&number, at, sizeof number);
  const std::uint32_t next = number >= last ? 0 : number + 1;
  std::memcpy(at, &next, sizeof next);
  return number;
}

void update_global(void* word, Update how, std::uint64_t value, int bytes, Site site) {
  std::byte* const at = updated(word, bytes, "an atomic update", site);
  std::uint64_t now = 0;  // (little-endian, as all of the machine)
  std::memcpy(&now, at, static_cast<std::size_t>(bytes));
  const std::uint64_t next = how == Update::add     ? now + value
                             : how == Update::least ? std::min(now, value)
                                                    : std::max(now, value);
  std::memcpy(at, &next, static_cast<std::size_t>(bytes));
}

int lanes_of_warp() {
  Machine& m = machine();
  return std::min(warp_lanes, m.shape().threads - m.current().warp() * warp_lanes);
}

void meet_warp(const Together& together, Site site, void* argument,
               const std::function<void(std::span<void*>)>& action) {
  Machine& m = machine();
  Thread& self = m.current();
  m.meet(self.cta->warp_meetings[static_cast<std::size_t>(self.warp())], lanes_of_warp(),
         self.lane(), site, together, argument, action);
}

void whole_warp(const char* what, Site site) {
  Machine& m = machine();
  if (m.shape().threads < (m.current().warp() + 1) * warp_lanes) {
    m.fatal(Check::divergence, std::string(what) + " needs a whole warp of 32 threads", site);
  }
}

std::uint32_t shuffle(std::uint32_t value, int source_lane, Site site) {
  ShuffleLane lane{value, source_lane, 0};
  meet_warp("shuffle", site, &lane, [](std::span<void*> lanes) {
    for (void* p : lanes) {
      auto& to = *static_cast<ShuffleLane*>(p);
      const auto from = static_cast<std::size_t>(to.source) % lanes.size();
      to.result = static_cast<const ShuffleLane*>(lanes[from])->value;
    }
  });
  return lane.result;
}

std::uint32_t ballot(bool says, Site site) {
  ShuffleLane lane{says ? 1U : 0U, 0, 0};
  meet_warp("warp_scan", site, &lane, [](std::span<void*> lanes) {
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      all |= static_cast<const ShuffleLane*>(lanes[i])->value << i;
    }
    for (void* p : lanes) static_cast<ShuffleLane*>(p)->result = all;
  });
  return lane.result;
}

std::uint32_t match_any(std::uint32_t value, Site site) {
  whole_warp("match.any", site);
  ShuffleLane lane{value, 0, 0};
  meet_warp("match", site, &lane, [](std::span<void*> lanes) {
    for (void* p : lanes) {
      auto& to = *static_cast<ShuffleLane*>(p);
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (static_cast<const ShuffleLane*>(lanes[i])->value == to.value) to.result |= 1U << i;
      }
    }
  });
  return lane.result;
}

void values_used() {
  Machine& m = machine();
  if (m.order) m.order->values_used(m.current());
}

bool elect_one(Site site) {
  meet_warp("elect", site, nullptr, [](std::span<void*>) {});
  Machine& m = machine();
  return m.current().lane() == m.elected() % lanes_of_warp();
}

void act::sync_warp(Site site) {
  const Together anywhere{.what = "syncwarp", .aligned = false};
  meet_warp(anywhere, site, &machine().current(), [](std::span<void*> lanes) {
    Order* order = machine().order.get();
    if (order == nullptr) return;
    MeetingOrder meeting;
    std::array<Thread*, warp_lanes> threads{};
    std::size_t n = 0;
    for (void* lane : lanes) threads[n++] = static_cast<Thread*>(lane);
    for (Thread* t : std::span(threads.data(), n)) order->meets(*t, meeting);
    order->met(meeting, std::span(threads.data(), n));
  });
}

static Together together_with_unit(const char* what) {
  return {.what = what, .queues = true};
}

void load_matrix(std::uint32_t row, std::span<std::uint32_t> to, bool transpose, Site site) {
  MatrixLane self{&machine().current(), row, to, {}};
  whole_warp("ldmatrix", site);
  meet_warp(together_with_unit("ldmatrix"), site, &self, [&](std::span<void*> lanes) {
    machine().read_fragments(static_cast<int>(to.size()) * 128);
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::array<std::array<std::uint16_t, 8>, 8> matrix{};
      for (std::size_t r = 0; r < 8; ++r) {
        const auto& giver = *static_cast<const MatrixLane*>(lanes[8 * j + r]);
        load_by(*giver.thread, giver.row, matrix[r].data(), 16, false, site);
      }
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        std::uint32_t packed = 0;
        for (int e = 0; e < 2; ++e) {
          const Element at = element_of(static_cast<int>(lane), e, transpose);
          packed |= static_cast<std::uint32_t>(matrix[at.row][at.column]) << (16 * e);
        }
        static_cast<MatrixLane*>(lanes[lane])->to[j] = packed;
      }
    }
  });
}

void load_matrix_padded(std::uint32_t row, std::span<std::uint32_t> to, int bits, Site site) {
  MatrixLane self{&machine().current(), row, to, {}};
  whole_warp("ldmatrix", site);
  meet_warp(together_with_unit("ldmatrix"), site, &self, [&](std::span<void*> lanes) {
    machine().read_fragments(static_cast<int>(to.size()) * 128);
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::array<std::array<std::uint8_t, 16>, 8> matrix{};
      for (std::size_t r = 0; r < 8; ++r) {
        const auto& giver = *static_cast<const MatrixLane*>(lanes[8 * j + r]);
        std::array<std::uint8_t, 16> row_bytes{};  // of which the padding has no value
        load_part(*giver.thread, giver.row, row_bytes.data(), 16, 2 * bits, site);
        for (int i = 0; i < 16; ++i) {
          const auto byte = static_cast<std::size_t>(i * bits / 8);
          const int both = row_bytes[byte] | row_bytes[byte + 1] << 8;
          matrix[r][static_cast<std::size_t>(i)] =
              static_cast<std::uint8_t>(both >> i * bits % 8 & ((1 << bits) - 1));
        }
      }
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        std::memcpy(&static_cast<MatrixLane*>(lanes[lane])->to[j],
                    matrix[lane / 4].data() + lane % 4 * 4, 4);
      }
    }
  });
}

void store_matrix(std::uint32_t row, std::span<const std::uint32_t> from, bool transpose,
                  Site site) {
  MatrixLane self{&machine().current(), row, {}, from};
  whole_warp("stmatrix", site);
  machine().settle_loads();
  meet_warp(together_with_unit("stmatrix"), site, &self, [&](std::span<void*> lanes) {
    machine().use_shared(static_cast<int>(from.size()) * 128);
    for (std::size_t j = 0; j < from.size(); ++j) {
      std::array<std::array<std::uint16_t, 8>, 8> matrix{};
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        for (int e = 0; e < 2; ++e) {
          const Element at = element_of(static_cast<int>(lane), e, transpose);
          matrix[at.row][at.column] = static_cast<std::uint16_t>(
              static_cast<MatrixLane*>(lanes[lane])->from[j] >> (16 * e));
        }
      }
      for (std::size_t r = 0; r < 8; ++r) {
        const auto& giver = *static_cast<const MatrixLane*>(lanes[8 * j + r]);
        store_by(*giver.thread, giver.row, matrix[r].data(), 16, false, site);
      }
    }
  });
}

}  // namespace warpwright::model
