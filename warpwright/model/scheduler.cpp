// Threads, clusters, the order in which everything happens, and what is said when nothing can.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "warpwright/facts/machines.h"
#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

// Loads in a row without a new value after which a thread is taken to wait by them.
constexpr std::int64_t patience = 64;

thread_local Machine* running = nullptr;
thread_local Interruptible* interruptible = nullptr;

// Mostly two copies of one literal's address.
bool same_text(const char* a, const char* b) {
  return a == b || std::strcmp(a, b) == 0;
}
std::string site_text(Site site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}

bool same_site(Site a, Site b) {
  return a.line == b.line && same_text(a.file, b.file);
}

std::string hex(std::uint32_t value) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

constexpr std::chrono::milliseconds between_questions{50};

}  // namespace

Interruptible::Interruptible(std::function<bool()> wanted)
    : wanted_(std::move(wanted)),
      next_(std::chrono::steady_clock::now() + between_questions),
      outer_(std::exchange(interruptible, this)) {}
Interruptible::~Interruptible() {
  interruptible = outer_;
}

bool Interruptible::is_interrupted() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return false;
  next_ = now + between_questions;
  return wanted_();
}

Machine& machine() {
  if (running == nullptr) {
    throw std::logic_error(
        "an instruction of isa/ ran outside a kernel: launch it with model::run");
  }
  return *running;
}

Machine::Machine(const std::vector<GridLaunch>& grids, const Options& options)
    : options_(options),
      sites_(options.mutation),
      costs_(options.machine != nullptr ? *options.machine : machine_of_architecture(90),
             options.cold_share) {
  reads_in_flight = 0;
  // Small numbers stand for the ends of grids (Order::ended).
  std::uint32_t number =
      static_cast<std::uint32_t>(grids.size() + warp_lanes) / warp_lanes * warp_lanes;
  for (const GridLaunch& launch : grids) {
    GridRun grid;
    grid.launch = &launch;
    grid.index = static_cast<int>(grids_.size());
    grid.holding = launch.shape.ctas;
    grid.first_number = number;
    grid.threads_per_cta = static_cast<std::uint32_t>((launch.shape.threads + warp_lanes - 1) /
                                                      warp_lanes * warp_lanes);
    number += grid.threads_per_cta * static_cast<std::uint32_t>(launch.shape.ctas);
    grids_.push_back(std::move(grid));
    for (const Allocation& a : launch.allocations) {
      const auto known = std::find_if(allocations_.begin(), allocations_.end(), [&](const auto& k) {
        return k.base == a.base && k.bytes == a.bytes;
      });
      if (known == allocations_.end()) {
        allocations_.push_back(a);
      } else {
        known->writable = known->writable || a.writable;
      }
    }
  }
  if (options_.check_order) order = std::make_unique<Order>(*this);
  if (options_.exploration == nullptr) return;
  options_.mode = Mode::latest;
  explore = std::make_unique<Recorder>(*this, *options_.exploration);
}

bool Machine::chance(int percent) {
  const auto number = decide();
  return number && static_cast<int>(*number % 100) < percent;
}

std::size_t Machine::pick(std::size_t count) {
  const auto number = decide();
  return number ? static_cast<std::size_t>(*number % count) : 0;
}

std::optional<std::uint64_t> Machine::decide() {
  // A decision is named by who makes it, a thread or the scheduler, and how many it made before:
  // its random number (splitmix64) is the same whatever became of the others, so that a replay may
  // let most of them take their default.
  ++statistics.decisions;
  const std::size_t who =
      current_ == nullptr
          ? 0
          : static_cast<std::size_t>(current_->cta->grid->first_number) +
                static_cast<std::size_t>(current_->cta->index * shape().threads + current_->index);
  if (decisions_.size() <= who) decisions_.resize(who + 1);
  const std::int64_t name = static_cast<std::int64_t>(who) << 32 | decisions_[who]++;
  if (options_.record_decisions) made_.push_back(name);
  if (options_.only) {
    kept_ = std::binary_search(options_.only->begin(), options_.only->end(), name);
    if (!kept_) return std::nullopt;
  }
  std::uint64_t z = options_.seed * 0xd1342543de82ef95U +
                    (static_cast<std::uint64_t>(name) + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

void Machine::note(const std::string& what) {
  if (options_.only && kept_) decided_.push_back(what);
}

namespace {

// Do they say that bytes are, or may be, other than the kernel's author thinks?
bool is_garbling(Check check) {
  switch (check) {
    case Check::uninitialised_read:
    case Check::data_race:
    case Check::in_flight_access:
    case Check::weak_scope:
    case Check::missing_proxy_fence:
    case Check::misplaced_proxy_fence:
      return true;
    default:
      return false;
  }
}

// What wrong bytes lead to, when a kernel takes them for addresses, coordinates, maps or counts.
bool may_be_garbled(Check check) {
  switch (check) {
    case Check::exception:
    case Check::tensor_map:
    case Check::shared_bounds:
    case Check::global_bounds:
    case Check::misaligned:
    case Check::multicast_mask:
    case Check::bad_descriptor:
    case Check::clc:
    case Check::tmem_allocation:
    case Check::tmem_lanes:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Machine::finding(Check check, const std::string& said, Site site, bool follows) {
  stopped_ = stopped_ || options_.stop_at_finding;
  std::string sentence = said;
  if (garbled_ && may_be_garbled(check)) {
    follows = true;
    sentence += ". It may follow from bytes that this run has read too early or without an order";
  }
  follows = follows || (left_behind_ && check != Check::left_behind);
  garbled_ = garbled_ || is_garbling(check);
  left_behind_ = left_behind_ || check == Check::left_behind;
  for (Finding& f : findings_) {
    if (f.check == check && same_site(f.site, site)) {
      if (f.follows && !follows) f.sentence = sentence;
      f.follows = f.follows && follows;
      ++f.count;
      return;
    }
  }
  findings_.push_back({.check = check, .sentence = sentence, .site = site, .follows = follows});
}

void Machine::report(Finding finding) {
  stopped_ = stopped_ || options_.stop_at_finding;
  // The grids behind begin with what one has left them.
  finding.follows = finding.follows || (left_behind_ && finding.check != Check::left_behind);
  garbled_ = garbled_ || is_garbling(finding.check);
  left_behind_ = left_behind_ || finding.check == Check::left_behind;
  const auto place = [](const Finding& f) {
    return f.accesses.empty() ? Site{} : f.accesses.front().site;
  };
  for (Finding& f : findings_) {
    if (f.check == finding.check && same_site(f.site, finding.site) &&
        same_site(place(f), place(finding))) {
      finding.count = f.count + 1;
      if (f.follows && !finding.follows) {
        f = std::move(finding);
      } else {
        ++f.count;
      }
      return;
    }
  }
  findings_.push_back(std::move(finding));
}

void Machine::fatal(Check check, const std::string& sentence, Site site) {
  finding(check, sentence, site);
  stopped_ = true;
  throw Stop{};
}

std::string Machine::who(const Thread& t) const {
  return std::string(t.role) + " (" +
         place_text(*t.cta->grid, static_cast<std::uint32_t>(t.cta->index),
                    static_cast<std::uint32_t>(t.index)) +
         ")";
}

const GridRun& Machine::grid_of(std::uint32_t number) const {
  std::size_t at = grids_.size() - 1;
  while (at > 0 && number < grids_[at].first_number) --at;
  return grids_[at];
}

std::string Machine::place_text(const GridRun& grid, std::uint32_t cta,
                                std::uint32_t thread) const {
  std::string text;
  if (grids_.size() > 1) text += "grid " + std::to_string(grid.index + 1) + ", ";
  if (grid.shape().ctas > 1) text += "CTA " + std::to_string(cta) + ", ";
  return text + "warp " + std::to_string(thread / warp_lanes) + ", lane " +
         std::to_string(thread % warp_lanes);
}

void Machine::block(const Wait& wait) {
  Thread& self = *current_;
  self.loads = 0;
  self.wait = wait;
  if (wait.kind != Wait::Kind::meeting) show_wait(self);
  self.fiber.suspend();
  if (stopped_) throw Stop{};
  if (self.wait_shown) builder_.end(self.track, now());
  self.wait_shown = false;
}

void Machine::show_wait(Thread& thread) {
  if (thread.track < 0) return;
  builder_.begin(thread.track, now(), wait_name(thread.wait));
  thread.wait_shown = true;
}

void Machine::wait_on(Thread& thread, const Wait& wait) {
  thread.wait = wait;
  show_wait(thread);
}

int Machine::elected() const {
  if (explore) return options_.exploration->elected;
  if (options_.mode != Mode::random && options_.mode != Mode::starve) return 0;
  return static_cast<int>(options_.seed * 0x9e3779b97f4a7c15ULL >> 59);
}

void Machine::wake(Thread& thread) {
  if (timed()) {
    thread.clock = after(std::max(thread.clock, now()), wake_delay(thread));
  }
  thread.wait = {};
  make_ready(thread);
}

void Machine::wake_all(std::vector<Thread*>& threads) {
  for (Thread* t : threads) wake(*t);
  threads.clear();
}

void Machine::maybe_yield() {
  if (moved_) return;
  if (timed()) {
    // Effects happen in the order of time: whoever is behind goes first.
    const bool behind = (!due_threads_.empty() && due_threads_.top().time.at < current_->clock) ||
                        (!due_copies_.empty() && due_copies_.top().time.at <= current_->clock) ||
                        (!due_tensor_.empty() && due_tensor_.top().time.at <= current_->clock);
    if (!behind) return;
  } else if (options_.mode == Mode::starve) {
    if (!held_back(*current_)) return;
  } else if (options_.mode != Mode::random || !chance(12)) {
    return;
  } else if (options_.only) {
    note(who(*current_) + " lets others go first");
  }
  make_ready(*current_);
  current_->fiber.suspend();
  if (stopped_) throw Stop{};
}

bool Machine::gather(Meeting& meeting, int members, Site site, const Together& together) {
  if (meeting.arrived == 0) {
    meeting.what = together.what;
    meeting.site = site;
    meeting.call = current_->call;
    meeting.path = path_of(current_->call);
  } else if ((together.aligned && !same_site(meeting.site, site)) ||
             !same_text(meeting.what, together.what)) {
    fatal(Check::divergence,
          who(*current_) + " came to " + together.what + " while other lanes wait at " +
              meeting.what + " (" + site_text(meeting.site) +
              "); all lanes must execute the same instruction",
          site);
  } else if (together.aligned && meeting.path != path_of(current_->call)) {
    const Parting calls = parting(current_->call, meeting.call);
    fatal(Check::divergence,
          who(*current_) + " came to " + together.what + " by the call at " + site_text(calls.one) +
              " while other lanes wait there by that at " + site_text(calls.other) +
              "; all lanes must execute the same instruction, and each call has its own",
          site);
  }
  if (++meeting.arrived < members) {
    meeting.waiting.push_back(current_);
    block({.kind = Wait::Kind::meeting, .site = site, .cta = current_->cta, .what = together.what});
    return false;
  }
  meeting.arrived = 0;
  if (order) order->converged(meeting.waiting, *current_);
  if (explore) explore->converged(meeting.waiting, *current_);
  return true;
}

void Machine::meet(Meeting& meeting, int members, int slot, Site site, const Together& together,
                   void* argument, const std::function<void(std::span<void*>)>& action) {
  maybe_yield();
  meeting.arguments[static_cast<std::size_t>(slot)] = argument;
  if (timed()) spend(together_cost(members, together));
  if (!gather(meeting, members, site, together)) return;
  action(std::span(meeting.arguments.data(), static_cast<std::size_t>(members)));
  let_go(meeting);
}

void Machine::let_go(Meeting& meeting) {
  if (options_.mode != Mode::latest && options_.mode != Mode::eager) {
    return wake_all(meeting.waiting);
  }
  // Before all others: the stacks of one warp stay in the caches.
  for (auto t = meeting.waiting.rbegin(); t != meeting.waiting.rend(); ++t) {
    (*t)->wait = {};
    ready_.push_front(*t);
  }
  meeting.waiting.clear();
}

void Machine::launch_cluster(GridRun& grid, int slot) {
  const LaunchShape& shape = grid.shape();
  const int first_cta = grid.next_cta;
  if (first_cta == 0) grid.complete = complete_before(grid);
  grid.next_cta += shape.cluster_size;
  grid.running += shape.cluster_size;
  auto cluster = std::make_unique<Cluster>();
  cluster->grid = &grid;
  cluster->slot = slot;
  const auto bytes = static_cast<std::size_t>(shared_base_offset) + shape.shared_bytes;
  for (int rank = 0; rank < shape.cluster_size; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->grid = &grid;
    cta->cluster = cluster.get();
    cta->index = first_cta + rank;
    cta->rank = rank;
    cta->shared.assign(bytes, std::byte{0xff});  // poison: NaN in every float format
    cta->defined.assign(bytes, 0);
    cta->readers.assign(bytes / 16 + 1, 0);
    cta->writers.assign(bytes / 16 + 1, 0);
    cta->barrier_at.assign(bytes / 8 + 1, -1);
    const int warps = (shape.threads + warp_lanes - 1) / warp_lanes;
    const int groups = (shape.threads + warpgroup_threads - 1) / warpgroup_threads;
    cta->warp_meetings.resize(static_cast<std::size_t>(warps));
    cta->warp_calls.resize(static_cast<std::size_t>(warps));
    cta->tmem_ops.resize(static_cast<std::size_t>(warps));
    cta->sm = slot % slots_of(grid) * shape.cluster_size + rank;
    if (timed()) cta->units = &units_of_sm(cta->sm);
    cta->warpgroup_meetings.resize(static_cast<std::size_t>(groups));
    cta->warpgroups.resize(static_cast<std::size_t>(groups));
    for (Warpgroup& group : cta->warpgroups) group.registers = shape.registers_per_thread;
    cta->live_threads = shape.threads;
    cluster->live_threads += shape.threads;
    for (int i = 0; i < shape.threads; ++i) {
      auto thread = std::make_unique<Thread>();
      thread->cta = cta.get();
      thread->index = i;
      thread->fiber.start([this, t = thread.get()] {
        try {
          t->cta->grid->launch->body();
          thread_exits(*t);
        } catch (const Stop&) {
          t->exited = true;
        } catch (const std::exception& error) {
          throws(*t, error.what());
        }
      });
      cta->threads.push_back(std::move(thread));
    }
    start_clock(*cta);
    for (const auto& thread : cta->threads) make_ready(*thread);
    cluster->ctas.push_back(std::move(cta));
  }
  if (order) order->launched(*cluster);
  if (explore) explore->launched(*cluster);
  clusters_.push_back(std::move(cluster));
}

void Machine::throws(Thread& thread, const char* what) {
  finding(Check::exception, who(thread) + " threw an exception: " + what, {});
  thread.exited = true;
  stopped_ = true;
}

void Machine::watch_load(std::uintptr_t at, const void* value, int bytes, Site site) {
  // A loop of loads lets the others go on, as one of tests of a barrier does. It is a hang when the
  // same few loads, or nothing but loads, go on for so long.
  const std::int64_t most_repeats = options_.mode == Mode::random ? 20000 : 4000;
  constexpr std::int64_t batch = 1 << 16;
  constexpr std::int64_t most_loads = 1 << 28;
  Thread& self = *current_;
  if (moved_) return;
  std::uint64_t bits = 0;
  std::memcpy(&bits, value, static_cast<std::size_t>(std::min(bytes, 8)));
  const Thread::Load load{at, bits};
  auto* known = std::ranges::find(self.latest_loads, at, &Thread::Load::first);
  if (known != self.latest_loads.end() && *known == load) {
    ++self.load_repeats;
  } else {
    // What the thread itself writes, a count of its rounds, is no news to it.
    const bool own = std::ranges::find(self.latest_stores, at) != self.latest_stores.end();
    if (!own) self.load_repeats = 0;
    if (known == self.latest_loads.end()) known = &self.latest_loads[self.next_load++ % 4];
    *known = load;
  }
  ++self.loads;
  if (self.load_repeats < patience && self.loads % batch != 0) return;
  if (self.load_repeats > patience && !in_vain()) self.load_repeats = patience;
  if (self.load_repeats > most_repeats || self.loads > most_loads) {
    fatal(Check::spin_budget,
          who(self) + " reads " + memory_text(at, bytes) + " again and again, " +
              std::to_string(self.load_repeats + 1) + " loads in a row without a new value, " +
              std::to_string(self.loads) +
              " in all, and waits for nothing else. Mend: wait for what another thread "
              "writes with flag_wait() or on an mbarrier",
          site);
  }
  if (timed()) return maybe_yield();
  ask_again_later();
}

bool Machine::in_vain() {
  return std::exchange(current_->progress, progress_) == progress_;
}

void Machine::ask_again_later() {
  Thread& self = *current_;
  if (explore) explore->polls("a thread waits by a loop of loads");
  if (options_.mode == Mode::random) {
    make_ready(self);
  } else {
    pollers_.push_back(&self);
  }
  self.fiber.suspend();
  if (stopped_) throw Stop{};
}

void Machine::stores_exit(const Thread& thread) {
  if (thread.open_group && thread.open_group->site.line > 0) {
    const Thread* other = bare_commit(thread, &Thread::bare_bulk_commit_site);
    std::string sentence = who(thread) + " exited with bulk stores that it never committed";
    if (other != nullptr) {
      const Site at = other->bare_bulk_commit_site;
      sentence += "; lane " + std::to_string(other->lane()) + " committed at " + at.file + ":" +
                  std::to_string(at.line) + ", but the stores are lane " +
                  std::to_string(thread.lane()) + "'s, and a commit is only of its own thread's";
    }
    report({.check = Check::undrained_exit,
            .sentence = sentence + ". Mend: bulk_commit() in the thread that stores",
            .site = thread.open_group->site,
            .cause = true});
  }
  for (const auto& g : thread.groups) {
    if (g->unread > 0) {
      finding(Check::undrained_exit,
              who(thread) +
                  " exited while bulk stores still read shared memory. Mend: wait for the group "
                  "(bulk_wait_read) in this thread before its end",
              g->site);
      break;
    }
  }
}

void Machine::executed_by_all(const char* what, Site site) {
  Thread& self = *current_;
  WarpCalls& calls = self.cta->warp_calls[static_cast<std::size_t>(self.warp())];
  const auto number = static_cast<std::size_t>(self.warp_calls++ - calls.first);
  if (number == calls.open.size()) calls.open.push_back({what, site});
  WarpCalls::Executed& call = calls.open[number];
  if (!same_site(call.site, site)) {
    fatal(Check::divergence,
          who(self) + " came to " + what + " while other lanes of its warp have executed that at " +
              site_text(call.site) + "; all lanes must execute the same one together",
          site);
  }
  if (++call.lanes < lanes_of_warp()) return;
  calls.open.pop_front();  // lanes execute them in one order, so the oldest is complete first
  ++calls.first;
}

void Machine::calls_exit(const Thread& thread) {
  const WarpCalls& calls = thread.cta->warp_calls[static_cast<std::size_t>(thread.warp())];
  const auto next = static_cast<std::size_t>(thread.warp_calls - calls.first);
  if (next >= calls.open.size()) return;
  const WarpCalls::Executed& call = calls.open[next];
  fatal(Check::divergence,
        who(thread) + " exited, and has not executed " + call.what +
            " as other lanes of its warp have; a GPU waits there for all lanes. Mend: let all of "
            "them execute it, and use what it gives where fewer go on",
        call.site);
}

void Machine::thread_exits(Thread& thread) {
  Cta& cta = *thread.cta;
  if (explore && cta.live_threads == 1) explore->may_exit(thread);
  calls_exit(thread);
  Meeting& warp = cta.warp_meetings[static_cast<std::size_t>(thread.warp())];
  if (warp.arrived > 0) {
    fatal(Check::divergence,
          who(thread) + " exited while other lanes of its warp wait at " + warp.what +
              ". Mend: let all lanes execute it, or none",
          warp.site);
  }
  Meeting& group = cta.warpgroup_meetings[static_cast<std::size_t>(thread.index / 128)];
  if (group.arrived > 0) {
    fatal(Check::divergence,
          who(thread) + " exited while other threads of its warpgroup wait at " + group.what +
              ". Mend: let all of them execute it, or none",
          group.site);
  }
  stores_exit(thread);
  copies_exit(thread);
  Warpgroup& wg = cta.warpgroups[static_cast<std::size_t>(thread.index / 128)];
  if (!wg.open.empty() || !wg.groups.empty()) {
    finding(
        Check::undrained_exit,
        who(thread) + " exited with wgmma groups in flight. Mend: wgmma_wait<0>() before the end",
        wg.groups.empty() ? wg.open.front().site : wg.groups.front().front().site);
    wg.open.clear();
    wg.groups.clear();
  }
  for (const TmemOp& op : cta.tmem_ops[static_cast<std::size_t>(thread.warp())]) {
    finding(Check::undrained_exit,
            who(thread) +
                " exited with accesses to tensor memory that no tcgen05.wait covers. Mend: "
                "tcgen05_wait_load() or tcgen05_wait_store() before the end",
            op.site);
  }
  cta.tmem_ops[static_cast<std::size_t>(thread.warp())].clear();
  thread.exited = true;
  if (order) order->exits(thread);
  if (explore) explore->exits(thread);
  Cluster& cluster = *cta.cluster;
  --cluster.live_threads;
  // An exited thread no longer counts for the cluster barrier.
  if (thread.cluster_generation == cluster.generation) --cluster.arrived;
  cluster_settle(cluster);
  if (--cta.live_threads == 0) cta_exits(cta);
}

void Machine::launch_what_fits() {
  for (GridRun& grid : grids_) {
    if (!may_start(grid)) continue;
    for (int slot = free_slot(grid); slot >= 0 && grid.next_cta < grid.shape().ctas;
         slot = free_slot(grid)) {
      if (explore && !explore->may_launch(grid)) break;
      launch_cluster(grid, slot);
    }
  }
}

void Machine::cta_exits(Cta& cta) {
  --cta.grid->running;
  if (order && cta.holds && !cta.knows_prerequisites) lets_next_early(*cta.grid, {});
  if (explore) explore->cta_exits(cta);
  let_next_start(cta);
  time_ = std::max(time_, now());
  look_again_ = true;
  for (const auto& copy : copies_) {
    if (copy->kind == Copy::Kind::load && (copy->cta == &cta || copy->signals == &cta)) {
      finding(Check::barrier_outlived,
              "CTA " + std::to_string(cta.index) + " exited while a " + copy->instruction() +
                  " issued by " + who(*copy->issuer) + " was still to " +
                  (copy->cta == &cta && copy->bytes > 0 ? "land in its shared memory"
                                                        : "signal its mbarrier"),
              copy->site);
    }
  }
  tensor_exits(cta);
  if (order) order->cta_exits(cta);
  for (const MBarrier& bar : cta.barriers) {
    if (!bar.live || bar.tx == 0) continue;
    report(bytes_finding(cta, bar,
                         barrier_text(cta, bar) + " was left with " + std::to_string(bar.tx) +
                             " transaction bytes outstanding at the CTA's end"));
  }
}

void Machine::resume(Thread& thread) {
  current_ = &thread;
  ++statistics.fiber_switches;
  thread.fiber.resume();
  current_ = nullptr;
  if (thread.failed_polls < 2 && thread.load_repeats < patience) ++progress_;
  for (std::uintptr_t at = guard_ == nullptr ? 0 : guard_->take(); at != 0; at = guard_->take()) {
    finding(Check::unchecked_access,
            who(thread) + " touches " + memory_text(at, 1) +
                " through a raw pointer: nothing of that is checked. Mend: isa::GlobalView",
            {});
  }
}

bool Machine::advance_one() {
  if (!in_flight()) return false;
  const std::size_t all = copies_.size() + tensor_issuers_.size();
  const std::size_t at = options_.mode == Mode::random ? pick(all) : std::size_t{0};
  if (at >= copies_.size()) {
    Thread& issuer = *tensor_issuers_[at - copies_.size()];
    const TensorOp& op = *issuer.tensor_ops.front();
    if (options_.only) {
      note(std::string("the ") + op.name() + " of " + who(issuer) + " at line " +
           std::to_string(op.site.line) +
           (op.what == TensorOp::What::commit ? " arrives" : " is carried out"));
    }
    advance(issuer);
    return true;
  }
  const Copy& copy = *copies_[at];
  if (options_.only && options_.mode == Mode::random) {
    note(std::string("the ") + copy.instruction() + " of " + who(*copy.issuer) + " at line " +
         std::to_string(copy.site.line) +
         (copy.stage == Copy::Stage::issued ? " reads its source"
          : copy.stage == Copy::Stage::read ? " writes its destination"
                                            : " is signalled"));
  }
  if (advance(*copies_[at])) copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(at));
  return true;
}

// Who is held back in Mode::starve, by the seed: one rank of every cluster (one CTA, where there
// are none), one warp of every CTA, or what the engines have in flight for a rank.
bool Machine::held_back(const Cta& cta) const {
  const auto at = static_cast<int>(options_.seed / 3 % 0x10000);
  const LaunchShape& shape = cta.grid->shape();
  if (shape.cluster_size > 1) return cta.rank == at % shape.cluster_size;
  return cta.index == at % shape.ctas;
}

bool Machine::held_back(const Thread& thread) const {
  if (options_.mode != Mode::starve || options_.seed % 3 == 2) return false;
  if (options_.seed % 3 == 1) return held_back(*thread.cta);
  const int warps = (thread.cta->grid->shape().threads + warp_lanes - 1) / warp_lanes;
  return thread.warp() == static_cast<int>(options_.seed / 3 % 0x10000) % warps;
}

// Lets what is not held back go on; for what is, one step when nothing else can.
bool Machine::step_starving() {
  const bool engines = options_.seed % 3 == 2;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (engines && held_back(*copies_[i]->cta)) continue;
    if (advance(*copies_[i])) copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  for (Thread* issuer : tensor_issuers_) {
    if (engines && held_back(*issuer->cta)) continue;
    advance(*issuer);
    return true;
  }
  std::deque<Thread*>& threads = ready_.empty() ? starving_ : ready_;
  if (!threads.empty()) {
    Thread* const next = threads.front();
    threads.pop_front();
    if (&threads == &starving_) wake_all(pollers_);
    resume(*next);
    return true;
  }
  if (!advance_one() && pollers_.empty()) return false;
  wake_all(pollers_);
  return true;
}

bool Machine::in_use(const Cluster& cluster) const {
  return std::any_of(copies_.begin(), copies_.end(),
                     [&](const auto& copy) { return copy->cta->cluster == &cluster; }) ||
         std::any_of(tensor_issuers_.begin(), tensor_issuers_.end(),
                     [&](const Thread* t) { return t->cta->cluster == &cluster; });
}

int Machine::slots_of(const GridRun& grid) const {
  return std::max(1, options_.sms / grid.shape().cluster_size);
}

int Machine::free_slot(const GridRun& grid) const {
  // A slot is a cluster's share of the SMs. One always exists, however few SMs there are. Every
  // grid has SMs of its own: those that follow each other overlap as much as they can.
  const int size = grid.shape().cluster_size;
  const int slots = slots_of(grid);
  const int held = options_.occupied_sm < 0 || slots == 1 ? -1 : options_.occupied_sm / size;
  // By the clock CTAs share an SM, as many as fit: the others come when each SM has one.
  const int layers = timed() ? grid.shape().ctas_per_sm : 1;
  for (int slot = 0; slot < slots * layers; ++slot) {
    const auto there = [&](const auto& cluster) {
      return cluster->grid == &grid && cluster->slot == slot;
    };
    if (slot % slots != held && std::none_of(clusters_.begin(), clusters_.end(), there))
      return slot;
  }
  return -1;
}

// The copy at this place goes on to its next instant that others can tell, or to its end.
bool Machine::advance_explored(std::size_t at) {
  Copy& copy = *copies_[at];
  explore->acts(copy);
  const bool answers = copy.from == Copy::From::queue && copy.stage == Copy::Stage::issued;
  const bool over = answers ? advance(copy) : [&] {
    while (!advance(copy)) {
      if (copy.reduce_add && copy.stage == Copy::Stage::read && !explore->may_advance(copy)) {
        return false;
      }
    }
    return true;
  }();
  explore->acted();
  if (over) std::erase_if(copies_, [&copy](const auto& c) { return c.get() == &copy; });
  return true;
}

// One operation that others can tell of, the oldest that may come now. Those that somebody waits
// for come first: what nobody waits for shows best when it comes late.
bool Machine::advance_explored() {
  for (const bool only_awaited : {true, false}) {
    for (std::size_t at = 0; at < copies_.size(); ++at) {
      const Copy& copy = *copies_[at];
      if (!Recorder::is_told(copy) || !explore->may_advance(copy)) continue;
      if (!only_awaited || explore->is_awaited(copy)) return advance_explored(at);
    }
  }
  for (Thread* issuer : tensor_issuers_) {
    const TensorOp& op = *issuer->tensor_ops.front();
    if (!explore->may_advance(op)) continue;
    explore->acts(op);
    advance(*issuer);
    explore->acted(issuer);
    return true;
  }
  return false;
}

// For brute force: one of the agents that could act does.
void Machine::choose_agent() {
  std::vector<Thread*>& threads = explore->waiting_for_turn();
  std::vector<std::size_t> told;
  for (std::size_t at = 0; at < copies_.size(); ++at) {
    if (Recorder::is_told(*copies_[at])) told.push_back(at);
  }
  const std::size_t all = threads.size() + told.size() + tensor_issuers_.size();
  std::size_t at = explore->choose(all);
  if (at < threads.size()) {
    std::ranges::sort(threads, {}, [](const Thread* t) {
      return std::tuple(t->cta->grid->index, t->cta->index, t->index);
    });
    Thread* const chosen = threads[at];
    threads.erase(threads.begin() + static_cast<std::ptrdiff_t>(at));
    wake(*chosen);
    return;
  }
  at -= threads.size();
  if (at < told.size()) {
    advance_explored(told[at]);
    return;
  }
  Thread& issuer = *tensor_issuers_[at - told.size()];
  explore->acts(*issuer.tensor_ops.front());
  advance(issuer);
  explore->acted(&issuer);
}

// Threads go on as long as any can; then one asynchronous operation completes. Where nothing can
// move, the residents are looked at before anybody is let go whom the exploration holds back.
bool Machine::step_exploring() {
  if (!ready_.empty()) {
    stuck_ = false;
    Thread* const next = ready_.front();
    ready_.pop_front();
    resume(*next);
    return true;
  }
  if (explore->chooses()) {
    const bool told = !tensor_issuers_.empty() ||
                      std::any_of(copies_.begin(), copies_.end(),
                                  [](const auto& copy) { return Recorder::is_told(*copy); });
    if (told || !explore->waiting_for_turn().empty()) {
      choose_agent();
      return true;
    }
  } else if (advance_explored()) {
    return true;
  }
  for (std::size_t at = 0; at < copies_.size(); ++at) {
    if (!Recorder::is_told(*copies_[at])) return advance_explored(at);
  }
  if (!std::exchange(stuck_, true)) return false;
  if (explore->let_go()) return true;
  if (pollers_.empty()) return false;
  wake_all(pollers_);
  return true;
}

bool Machine::step() {
  if (explore) return !look_again_ && step_exploring();
  if (timed()) return !look_again_ && step_timed();
  if (options_.mode == Mode::starve) return !look_again_ && step_starving();
  if (options_.mode == Mode::random && in_flight() && chance(landing_percent_)) {
    advance_one();
    return true;
  }
  if (ready_.empty()) {
    const bool moved = advance_one();
    if (!moved && pollers_.empty()) return false;
    wake_all(pollers_);  // something may have changed; if not, they count it
    return true;
  }
  Thread* next = ready_.front();
  if (options_.mode == Mode::random) {
    std::swap(ready_.front(), ready_[pick(ready_.size())]);
    next = ready_.front();
    if (options_.only) note(who(*next) + " goes first");
  }
  ready_.pop_front();
  resume(*next);
  return true;
}

void Machine::run_to_the_end() {
  while (!stopped_) {
    if (interruptible != nullptr && interruptible->is_interrupted()) {
      interrupted_ = stopped_ = true;
      return;
    }
    std::erase_if(clusters_, [&](const auto& c) { return c->live_threads == 0 && !in_use(*c); });
    end_grids();
    launch_what_fits();
    if (ready_.empty() && starving_.empty() && pollers_.empty() && due_threads_.empty() &&
        !in_flight() && !(explore && explore->holds_back())) {
      if (clusters_.empty()) return;
      report_deadlock();
      if (explore) explore->ends(false);
      stopped_ = true;
    }
    // A batch of steps before the residents are looked at again.
    look_again_ = false;
    for (int i = 0; i < 4096 && !stopped_; ++i) {
      if (!step()) break;
    }
  }
}

Report Machine::take_report() {
  Report report;
  report.findings = std::move(findings_);
  if (order) order->tell_overlaps(report.findings);
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
  report.statistics = statistics;
  if (options_.count_sites) report.sites = sites_.sites();
  report.decided = std::move(decided_);
  report.decisions = std::move(made_);
  if (order && order->relation) report.order_hash = order->relation->hash();
  if (options_.work != nullptr) *options_.work = {paths_.path(time_.step), paths_.all()};
  if (options_.barrier_events != nullptr) put_in_order(*options_.barrier_events);
  if (options_.trace != nullptr) {
    *options_.trace = builder_.finish();
    for (const GridRun& grid : grids_) {
      if (grids_.size() > 1) options_.trace->grids.push_back(grid.launch->name);
    }
    if (!timed()) options_.trace->clock = "scheduler steps";
  }
  return report;
}

Report Machine::run() {
  // Some seeds leave copies in flight for long, some hardly at all.
  constexpr int lazy_to_brisk[] = {1, 5, 20};
  landing_percent_ = lazy_to_brisk[options_.seed % 3];
  Machine* outer = std::exchange(running, this);
  std::optional<Guard> guard;
  if (std::any_of(allocations_.begin(), allocations_.end(),
                  [](const Allocation& a) { return a.memory != nullptr; })) {
    guard_ = &guard.emplace(allocations_);
  }
  try {
    run_to_the_end();
  } catch (const Stop&) {
    stopped_ = true;  // a copy hit a fatal finding outside any thread
  }
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      for (const auto& thread : cta->threads) thread->fiber.cancel();
    }
  }
  guard_ = nullptr;
  if (explore) explore->ends(stopped_);
  if (!stopped_) maps_at_end();
  running = outer;
  if (interrupted_) throw Interrupted();
  return take_report();
}

std::string Machine::barrier_text(const Cta& cta, const MBarrier& bar) const {
  std::string text = std::string("mbarrier ") + bar.name + "[" + std::to_string(bar.index) + "]";
  if (cta.cluster->ctas.size() > 1) text += " of CTA rank " + std::to_string(cta.rank);
  return text + " (offset " + hex(bar.offset) + ")";
}

static void check_shape(const LaunchShape& shape) {
  if (shape.threads < 1 || shape.threads > 1024) {
    throw std::invalid_argument("a CTA has 1 to 1024 threads, not " +
                                std::to_string(shape.threads));
  }
  if (shape.cluster_size < 1 || shape.cluster_size > 16) {
    throw std::invalid_argument("a cluster has 1 to 16 CTAs, not " +
                                std::to_string(shape.cluster_size));
  }
  if (shape.ctas % shape.cluster_size != 0) {
    throw std::invalid_argument("a grid of " + std::to_string(shape.ctas) +
                                " CTAs is not a whole number of clusters of " +
                                std::to_string(shape.cluster_size));
  }
  if (shape.shared_bytes < 0 || shape.shared_bytes > max_shared_bytes) {
    throw std::invalid_argument("a CTA has at most " + std::to_string(max_shared_bytes) +
                                " bytes of dynamic shared memory, not " +
                                std::to_string(shape.shared_bytes));
  }
}

Report run(const std::vector<GridLaunch>& grids, const Options& options) {
  if (grids.empty()) throw std::invalid_argument("no grid is launched");
  for (const GridLaunch& grid : grids) check_shape(grid.shape);
  return Machine(grids, options).run();
}

Report run(const LaunchShape& shape, const Options& options,
           const std::vector<Allocation>& allocations, const std::function<void()>& thread_body) {
  return run({{.shape = shape, .allocations = allocations, .body = thread_body, .ended = {}}},
             options);
}

// --- who am I -----------------------------------------------------------------------------------
int thread_index() {
  return machine().current().index;
}
void executed_by_all(const char* what, Site site) {
  machine().executed_by_all(what, site);
}
int warp_index(Site site) {
  executed_by_all("warp_index", site);
  return machine().current().warp();
}
int cta_index() {
  return machine().current().cta->index;
}
int cta_count() {
  return machine().shape().ctas;
}
int cluster_rank() {
  return machine().current().cta->rank;
}
int cluster_size() {
  return machine().shape().cluster_size;
}
void set_role(const char* role) {
  machine().current().role = role;
  machine().rename_track(machine().current());
}

void count_tile() {
  Machine& m = machine();
  ++m.statistics.tiles;
  if (m.options().on_tile) m.options().on_tile(m.statistics.tiles);
}

}  // namespace warpwright::model
