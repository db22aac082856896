#include "warpwright/model/explore/recorder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "warpwright/model/explore/names.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

constexpr std::int64_t most_refusals = 64;  // of one thread, before a question becomes a wait

// What the names of objects begin with, and those of agents.
enum class Named : std::uint8_t { mbarrier = 1, meeting, word, shared, queue, tensor, sum };
enum class Actor : std::uint8_t { thread = 1, operation, launcher };

template <class Kind>
std::uint64_t name_of(Kind kind, std::uint64_t a, std::uint64_t b = 0) {
  return mix_names(mix_names(static_cast<std::uint64_t>(kind), a), b);
}

std::uint64_t number_of_cta(const Cta& cta) {
  return cta.grid->first_number + static_cast<std::uint64_t>(cta.index) * cta.grid->threads_per_cta;
}

std::string cta_text(const Cta& cta) {
  return cta.grid->shape().ctas > 1 ? " of CTA " + std::to_string(cta.index) : "";
}

}  // namespace

Recorder::Recorder(Machine& machine, Exploration& io) : machine_(machine), io_(io) {
  const std::uint32_t numbers = machine.end_of_numbers();
  agents_.resize(numbers);
  threads_.resize(numbers);
  for (std::uint32_t i = 0; i < numbers; ++i) {
    agents_[i].component = i;
    agents_[i].name = name_of(Actor::thread, i);
  }
  next_component_ = numbers;
  if (io_.all == nullptr) return;
  gated_ = true;
  for (std::size_t i = 0; i < io_.all->size(); ++i) {
    if (io_.kept.empty() || io_.kept[i]) demand((*io_.all)[i]);
  }
  for (const Demand& moved : io_.moved) demand(moved);
}

void Recorder::demand(const Demand& d) {
  Gate& gate = gates_[d.object];
  ++gate.left;
  const std::uint64_t who = mix_names(d.agent, d.turn);
  if (d.kind == SyncEvent::Kind::read || d.kind == SyncEvent::Kind::write) {
    gate.line.push_back(who);
    return;
  }
  const bool observes = d.kind == SyncEvent::Kind::observation;
  std::uint32_t& observers = gate.observers[d.state];
  gate.needs[who] = {d.state, observes, observers};
  if (observes) ++observers;
}

std::uint32_t Recorder::number_of(const Thread& thread) const {
  return static_cast<std::uint32_t>(number_of_cta(*thread.cta)) +
         static_cast<std::uint32_t>(thread.index);
}

Recorder::Agent& Recorder::agent_of(const Thread& thread) {
  Agent& agent = agents_[number_of(thread)];
  agent.thread = &thread;
  return agent;
}

Recorder::Agent& Recorder::actor() {
  return acting_ == none ? agent_of(machine_.current()) : operations_[acting_];
}

std::uint32_t Recorder::make_object(std::uint64_t name, bool phased, std::string text) {
  const auto [at, is_new] = by_name_.try_emplace(name, static_cast<std::uint32_t>(objects_.size()));
  if (!is_new) return at->second;
  Object object;
  object.component = next_component_++;
  const auto gate = gates_.find(name);
  if (gate != gates_.end()) object.gate = std::move(gate->second);
  objects_.push_back(std::move(object));
  io_.trace.objects.push_back({name, phased, objects_.back().component, std::move(text)});
  return at->second;
}

// --- whose turn ---------------------------------------------------------------------------------

std::uint32_t Recorder::turn_of(const Agent& agent, std::uint32_t object) const {
  const auto at = turns_.find(mix_names(agent.name, io_.trace.objects[object].name));
  return at == turns_.end() ? 0 : at->second;
}

bool Recorder::allowed(const Agent& agent, std::uint32_t object) const {
  if (!gated_ || abandoned_) return true;
  const Object& o = objects_[object];
  if (o.gate.left == 0) return true;
  const std::uint64_t who = mix_names(agent.name, turn_of(agent, object));
  if (!io_.trace.objects[object].phased) {
    return o.gate.next < o.gate.line.size() && o.gate.line[o.gate.next] == who;
  }
  const auto need = o.gate.needs.find(who);
  if (need == o.gate.needs.end() || need->second.state != o.state) return false;
  if (need->second.observes || need->second.behind == 0) return true;
  const auto observed = o.gate.observed.find(o.state);
  return observed != o.gate.observed.end() && observed->second >= need->second.behind;
}

void Recorder::park(std::uint32_t object) {
  objects_[object].parked.push_back(&machine_.current());
  ++held_;
  machine_.block({});
}

void Recorder::wake_parked(Object& object) {
  held_ -= object.parked.size();
  machine_.wake_all(object.parked);
}

void Recorder::turn() {
  if (!io_.chooses) return;
  turn_.push_back(&machine_.current());
  machine_.block({});
}

std::uint32_t Recorder::choose(std::size_t count) {
  if (count < 2) return 0;
  const std::size_t at = io_.widths.size();
  io_.widths.push_back(static_cast<std::uint32_t>(count));
  return at < io_.choices.size() ? io_.choices[at] : 0;
}

bool Recorder::let_go() {
  if (!hinted_.empty()) {
    const auto first =
        std::min_element(hinted_.begin(), hinted_.end(), [this](const auto& a, const auto& b) {
          return number_of(*a.thread) < number_of(*b.thread);
        });
    const std::uint64_t hint = first->hint;
    refused_.insert(hint);
    std::vector<Thread*> gone;
    for (const Hinted& h : hinted_) {
      if (h.hint != hint) continue;
      std::erase(h.barrier->waiting, h.thread);
      gone.push_back(h.thread);
    }
    std::erase_if(hinted_, [hint](const Hinted& h) { return h.hint == hint; });
    held_ -= gone.size();
    machine_.wake_all(gone);
    return true;
  }
  if (!gated_ || abandoned_) return false;
  abandoned_ = true;
  io_.repeated = false;
  for (Object& o : objects_) wake_parked(o);
  return true;
}

void Recorder::ends(bool stopped) {
  if (std::exchange(over_, true)) return;
  if (stopped) io_.beyond = "a finding ended a run before its end";
  if (!stopped && !abandoned_) {
    for (const Object& o : objects_) io_.repeated = io_.repeated && o.gate.left == 0;
    for (const auto& [name, gate] : gates_) {
      io_.repeated = io_.repeated && (gate.left == 0 || by_name_.contains(name));
    }
  }
  for (std::uint32_t i = 0; i < objects_.size(); ++i) {
    Object& o = objects_[i];
    if (!io_.trace.objects[i].phased) continue;
    io_.trace.phases.push_back(
        {i, o.state, false, std::move(o.arrivals), std::move(o.observations), o.arriving});
  }
  std::vector<SyncPending> left;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].pending == none) continue;
    SyncPending& wait = io_.trace.pending[threads_[i].pending];
    wait.wait.state = objects_[wait.wait.object].state;
    left.push_back(wait);
  }
  io_.trace.pending = std::move(left);
}

// --- events -------------------------------------------------------------------------------------

SyncEvent& Recorder::note(Agent& agent, std::uint32_t object, SyncEvent::Kind kind,
                          const char* what, Site site) {
  Object& o = objects_[object];
  const std::uint64_t object_name = io_.trace.objects[object].name;
  const std::uint32_t turn = turns_[mix_names(agent.name, object_name)]++;
  SyncEvent event;
  event.kind = kind;
  event.object = object;
  event.agent = agent.component;
  event.time = ++agent.time;
  event.turn = turn;
  event.name = agent.name;
  event.state = o.state;
  event.before = agent.knows;
  event.what = what;
  event.site = site;
  if (agent.thread != nullptr) {
    event.role = agent.thread->role;
    event.cta = agent.thread->cta->index;
    event.thread = agent.thread->index;
  }
  agent.knows.raise(agent.component, agent.time);
  io_.hash += name_of_event(object_name, event);
  Gate& gate = o.gate;
  if (gated_ && !abandoned_ && gate.left > 0) {
    const std::uint64_t who = mix_names(agent.name, turn);
    const auto need = gate.needs.find(who);
    if (need != gate.needs.end()) {
      if (need->second.observes) ++gate.observed[need->second.state];
      gate.needs.erase(need);
      --gate.left;
    } else if (gate.next < gate.line.size() && gate.line[gate.next] == who) {
      ++gate.next;
      --gate.left;
    }
    wake_parked(o);
  }
  io_.trace.events.push_back(std::move(event));
  return io_.trace.events.back();
}

void Recorder::learn(Agent& agent, SyncEvent& event, const Clock& what) {
  joins_.join(agent.knows, what);
  event.after = agent.knows;
}

void Recorder::write(Agent& agent, std::uint32_t object, const char* what, Site site,
                     std::uint32_t before) {
  SyncEvent& event = note(agent, object, SyncEvent::Kind::write, what, site);
  event.value_before = before;
  Object& o = objects_[object];
  Clock past = o.settled;
  past.join(o.seen);
  learn(agent, event, past);
  o.settled = event.after;
  o.seen = Clock();
  ++o.state;
}

void Recorder::flip(std::uint32_t object) {
  Object& o = objects_[object];
  Clock all = o.settled;
  all.join(o.arriving);
  Clock arrived = o.arriving;
  all.join(o.seen);
  io_.trace.phases.push_back({object, o.state, true, std::exchange(o.arrivals, {}),
                              std::exchange(o.observations, {}), std::move(arrived)});
  ++o.state;
  all.raise(o.component, static_cast<std::uint32_t>(o.state));
  o.settled = std::move(all);
  o.arriving = Clock();
  o.seen = Clock();
  wake_parked(o);
}

void Recorder::pend(Thread& thread, std::uint32_t object, SyncEvent::Kind kind, const char* what,
                    Site site) {
  const Agent& agent = agent_of(thread);
  SyncEvent event;
  event.kind = kind;
  event.object = object;
  event.agent = agent.component;
  event.time = agent.time + 1;
  event.turn = turn_of(agent, object);
  event.name = agent.name;
  event.before = agent.knows;
  event.role = thread.role;
  event.cta = thread.cta->index;
  event.thread = thread.index;
  event.what = what;
  event.site = site;
  std::uint32_t& at = threads_[number_of(thread)].pending;
  if (at == none) {
    at = static_cast<std::uint32_t>(io_.trace.pending.size());
    io_.trace.pending.emplace_back();
  }
  io_.trace.pending[at].wait = std::move(event);
}

// --- life ---------------------------------------------------------------------------------------

int Recorder::slots_of(const GridRun& grid) const {
  const int slots = std::max(1, machine_.options().sms / grid.shape().cluster_size);
  return machine_.options().occupied_sm >= 0 && slots > 1 ? slots - 1 : slots;
}

bool Recorder::queues(const GridRun& grid) const {
  return io_.queued && grid.shape().ctas > slots_of(grid) * grid.shape().cluster_size;
}

std::uint32_t Recorder::queue_of(const GridRun& grid) {
  return make_object(name_of(Named::queue, static_cast<std::uint64_t>(grid.index)), false,
                     "the queue of clusters");
}

bool Recorder::may_launch(const GridRun& grid) {
  GridClocks& clocks = grids_[grid.index];
  if (!queues(grid) || clocks.slots.empty()) return true;  // all that fits at first comes at once
  if (clocks.launcher.name == 0) {
    clocks.launcher.name = name_of(Actor::launcher, static_cast<std::uint64_t>(grid.index));
    clocks.launcher.component = next_component_++;
  }
  return allowed(clocks.launcher, queue_of(grid));
}

void Recorder::launched(Cluster& cluster) {
  const GridRun& grid = *cluster.grid;
  GridClocks& clocks = grids_[grid.index];
  Clock start;
  if (grid.launch->dependent && grid.index > 0) start = grids_[grid.index - 1].holding;
  for (int before = 0; before < grid.index && !grid.launch->dependent; ++before) {
    start.join(grids_[before].ended);
  }
  if (queues(grid) && !clocks.slots.empty()) {
    clocks.launcher.knows.join(clocks.slots[cluster.slot]);
    write(clocks.launcher, queue_of(grid), "the launch of the next cluster", {});
    start.join(clocks.launcher.knows);
  } else if (slots_of(grid) == 1 && !clocks.slots.empty()) {
    start.join(clocks.slots[cluster.slot]);
  }
  clocks_.erase(&cluster);
  completed_.erase(&cluster);
  for (const auto& cta : cluster.ctas) {
    clocks_.erase(cta.get());
    completed_.erase(cta.get());
    for (const auto& thread : cta->threads) {
      clocks_.erase(thread.get());
      agent_of(*thread).knows = start;
    }
  }
}

void Recorder::may_exit(Thread& thread) {
  if (!queues(*thread.cta->grid)) return;
  const std::uint32_t queue = queue_of(*thread.cta->grid);
  turn();
  while (!allowed(agent_of(thread), queue)) park(queue);
}

void Recorder::exits(Thread& thread) {
  const Clock& knows = agent_of(thread).knows;
  completed_[thread.cta].join(knows);  // of a CTA: its threads that have exited
  clocks_[thread.cta->cluster].join(knows);
}

void Recorder::cta_exits(const Cta& cta) {
  GridClocks& clocks = grids_[cta.grid->index];
  Clock& whole = completed_[&cta];
  if (queues(*cta.grid)) {
    Agent& last = agent_of(machine_.current());
    last.knows.join(whole);
    write(last, queue_of(*cta.grid), "the exit of the CTA", {});
    whole = last.knows;
  }
  clocks.ended.join(whole);
  clocks.slots[cta.cluster->slot].join(whole);
  if (cta.holds) clocks.holding.join(whole);
}

void Recorder::lets_next_start(const Cta& cta) {
  if (cta.holds) grids_[cta.grid->index].holding.join(agent_of(machine_.current()).knows);
}

void Recorder::waited_for_grids(Thread& thread) {
  for (int before = 0; before < thread.cta->grid->index; ++before) {
    agent_of(thread).knows.join(grids_[before].ended);
  }
}

// --- threads together ---------------------------------------------------------------------------

void Recorder::converged(std::span<Thread* const> others, Thread& last) {
  Clock all = agent_of(last).knows;
  for (Thread* other : others) joins_.join(all, agent_of(*other).knows);
  for (Thread* other : others) agent_of(*other).knows = all;
  agent_of(last).knows = std::move(all);
}

void Recorder::cluster_arrives(Thread& thread) {
  joins_.join(clocks_[thread.cta->cluster], agent_of(thread).knows);
}

void Recorder::cluster_completed(Cluster& cluster) {
  completed_[&cluster] = clocks_[&cluster];
}

void Recorder::cluster_waited(Thread& thread) {
  joins_.join(agent_of(thread).knows, completed_[thread.cta->cluster]);
}

// --- mbarriers ----------------------------------------------------------------------------------

void Recorder::initialised(const Cta& cta, const MBarrier& bar) {
  const std::uint64_t place = number_of_cta(cta) << 20 | bar.offset / 8;
  const std::uint32_t times = turns_[name_of(Named::mbarrier, place)]++;
  by_place_[&bar] = make_object(name_of(Named::mbarrier, place, times + 1), true,
                                "mbarrier at offset " + std::to_string(bar.offset) + cta_text(cta));
}

std::uint32_t Recorder::object_of(const MBarrier& bar) {
  return by_place_.at(&bar);
}

void Recorder::may_arrive(const MBarrier& bar) {
  turn();
  const std::uint32_t object = object_of(bar);
  while (!allowed(agent_of(machine_.current()), object)) park(object);
}

void Recorder::arrived(const MBarrier& bar, SyncEvent::Kind kind, const char* what, Site site) {
  Agent& agent = actor();
  const std::uint32_t object = object_of(bar);
  SyncEvent& event = note(agent, object, kind, what, site);
  Object& o = objects_[object];
  learn(agent, event, o.settled);
  joins_.join(o.arriving, event.after);
  o.arrivals.push_back(static_cast<std::uint32_t>(io_.trace.events.size() - 1));
}

void Recorder::flipped(const MBarrier& bar) {
  flip(object_of(bar));
}

void Recorder::observe(MBarrier& bar, Site site) {
  Thread& self = machine_.current();
  Agent& agent = agent_of(self);
  const std::uint32_t object = object_of(bar);
  SyncEvent& event = note(agent, object, SyncEvent::Kind::observation, "wait", site);
  Object& o = objects_[object];
  learn(agent, event, o.settled);
  joins_.join(o.seen, event.after);
  o.observations.push_back(static_cast<std::uint32_t>(io_.trace.events.size() - 1));
  not_pending(self);
}

void Recorder::wait(MBarrier& bar, int parity, Scope scope, Site site) {
  Thread& self = machine_.current();
  const std::uint32_t object = object_of(bar);
  std::int64_t awaited = -1;
  const auto incomplete = [&] { return (bar.phase & 1) == parity; };
  for (;;) {
    turn();
    const bool mine = allowed(agent_of(self), object);
    if (mine && !incomplete()) break;
    pend(self, object, SyncEvent::Kind::observation, "wait", site);
    if (incomplete() && awaited < 0) awaited = bar.phase;
    if (!mine && !incomplete()) {
      park(object);
    } else {
      bar.waiting.push_back(&self);
      machine_.block(machine_.wait_for(bar, site));
    }
    if (awaited >= 0 && machine_.look_for_stale_parity(bar, awaited, site)) awaited = -1;
  }
  self.failed_polls = 0;
  observe(bar, site);
  machine_.observe(bar, bar.phase - 1, scope, site);
}

// True where it has observed the phase, false where nothing else could go on.
bool Recorder::wait_as_hint(MBarrier& bar, int parity, Site site) {
  Thread& self = machine_.current();
  const std::uint32_t object = object_of(bar);
  const std::uint64_t hint =
      mix_names(number_of(self) / warp_lanes, ++threads_[number_of(self)].hints);
  for (;;) {
    const bool mine = allowed(agent_of(self), object);
    if (mine && (bar.phase & 1) != parity) {
      observe(bar, site);
      return true;
    }
    if (refused_.contains(hint)) return false;
    hinted_.push_back({&self, &bar, hint});
    ++held_;
    bar.waiting.push_back(&self);
    machine_.block(machine_.wait_for(bar, site));
    const auto at = std::find_if(hinted_.begin(), hinted_.end(),
                                 [&self](const Hinted& h) { return h.thread == &self; });
    if (at == hinted_.end()) continue;
    hinted_.erase(at);
    --held_;
  }
}

bool Recorder::test(MBarrier& bar, int parity, bool may_suspend, Scope scope, Site site) {
  Thread& self = machine_.current();
  turn();
  Agent& agent = agent_of(self);
  ThreadState& state = threads_[number_of(self)];
  std::erase_if(state.asked, [&](const Asked& a) { return a.time != agent.time; });
  const bool again = std::any_of(state.asked.begin(), state.asked.end(), [&](const Asked& a) {
    return a.barrier == &bar && a.parity == parity;
  });
  if (again || ++self.failed_polls > most_refusals) {
    if (state.asked.size() > 1) polls("a thread asks several mbarriers in turn");
    wait(bar, parity, scope, site);
    return true;
  }
  const bool complete = (bar.phase & 1) != parity;
  const Object& o = objects_[object_of(bar)];
  // What the thread knows to be complete test_wait cannot deny.
  const bool known =
      complete && !may_suspend && agent.knows[o.component] >= static_cast<std::uint32_t>(bar.phase);
  if (known) {
    wait(bar, parity, scope, site);
    return true;
  }
  io_.asked = true;
  bool yes = false;
  if (io_.chooses) {
    yes = complete && choose(2) == 0;
    if (yes) observe(bar, site);
  } else if (io_.patient) {
    yes = wait_as_hint(bar, parity, site);
  }
  if (!yes) {
    state.asked.push_back({&bar, parity, agent_of(self).time});
    return false;
  }
  self.failed_polls = 0;
  machine_.observe(bar, bar.phase - 1, scope, site);
  return true;
}

// --- named barriers -----------------------------------------------------------------------------

std::uint32_t Recorder::named_object(const Cta& cta, const NamedBarrier& bar, int id) {
  const std::uint32_t object =
      make_object(name_of(Named::meeting, number_of_cta(cta), static_cast<std::uint64_t>(id)), true,
                  "named barrier " + std::to_string(id) + cta_text(cta));
  by_place_[&bar] = object;
  return object;
}

void Recorder::may_meet(const Cta& cta, const NamedBarrier& bar, int id) {
  const std::uint32_t object = named_object(cta, bar, id);
  turn();
  const Thread& self = machine_.current();
  const Agent& agent = agent_of(*cta.threads[static_cast<std::size_t>(self.warp()) * warp_lanes]);
  while (!allowed(agent, object)) park(object);
}

void Recorder::meets(std::span<Thread* const> others, Thread& last, const NamedBarrier& bar,
                     Site site) {
  const Cta& cta = *last.cta;
  Agent& agent = agent_of(*cta.threads[static_cast<std::size_t>(last.warp()) * warp_lanes]);
  const std::uint32_t object = by_place_.at(&bar);
  SyncEvent& event = note(agent, object, SyncEvent::Kind::arrival, "arrival", site);
  Object& o = objects_[object];
  learn(agent, event, o.settled);
  o.arriving.join(event.after);
  o.arrivals.push_back(static_cast<std::uint32_t>(io_.trace.events.size() - 1));
  for (Thread* other : others) joins_.join(agent_of(*other).knows, event.after);
  joins_.join(agent_of(last).knows, event.after);
}

void Recorder::met(const NamedBarrier& bar, std::span<Thread* const> waiting) {
  const std::uint32_t object = by_place_.at(&bar);
  flip(object);
  for (Thread* thread : waiting) joins_.join(agent_of(*thread).knows, objects_[object].settled);
}

// --- words --------------------------------------------------------------------------------------

std::uint32_t Recorder::word_object(std::uintptr_t word) {
  const auto [at, is_new] = by_word_.try_emplace(word, 0);
  if (!is_new) return at->second;
  const std::vector<Allocation>& all = machine_.allocations();
  std::uint64_t which = all.size();
  std::uint64_t offset = word;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto base = reinterpret_cast<std::uintptr_t>(all[i].base);
    if (word < base || word >= base + static_cast<std::uintptr_t>(all[i].bytes)) continue;
    which = i;
    offset = word - base;
  }
  at->second = make_object(name_of(Named::word, which, offset), false,
                           machine_.memory_text(word, sizeof(std::uint32_t)));
  return at->second;
}

void Recorder::may_touch(std::uintptr_t word) {
  const std::uint32_t object = word_object(word);
  turn();
  while (!allowed(agent_of(machine_.current()), object)) {
    park(object);
  }
}

void Recorder::reads(std::uintptr_t word, const Wanted* wanted, const char* what, Site site) {
  Thread& self = machine_.current();
  const std::uint32_t object = word_object(word);
  Agent& agent = agent_of(self);
  SyncEvent& event = note(agent, object, SyncEvent::Kind::read, what, site);
  if (wanted != nullptr) {
    event.waits = true;
    event.wanted = wanted->value;
    event.mask = wanted->mask;
    event.any_other = wanted->any_other;
  }
  Object& o = objects_[object];
  learn(agent, event, o.settled);
  o.seen.join(event.after);
  not_pending(self);
}

void Recorder::writes(std::uintptr_t word, std::uint32_t before, const char* what, Site site) {
  write(actor(), word_object(word), what, site, before);
}

void Recorder::blocks(std::uintptr_t word, const Wanted& wanted, const char* what, Site site) {
  Thread& self = machine_.current();
  pend(self, word_object(word), SyncEvent::Kind::read, what, site);
  SyncEvent& event = io_.trace.pending[threads_[number_of(self)].pending].wait;
  event.waits = true;
  event.wanted = wanted.value;
  event.mask = wanted.mask;
  event.any_other = wanted.any_other;
}

// --- what CTAs share otherwise ------------------------------------------------------------------

std::uint32_t Recorder::tmem_of(const Cta& cta) {
  return make_object(name_of(Named::tensor, number_of_cta(cta)), false,
                     "tensor memory" + cta_text(cta));
}

void Recorder::may_allocate(std::span<Cta* const> ctas) {
  turn();
  const auto held = [&] {
    return std::any_of(ctas.begin(), ctas.end(), [&](Cta* cta) {
      return !allowed(agent_of(machine_.current()), tmem_of(*cta));
    });
  };
  while (held()) park(tmem_of(*ctas.front()));
}

void Recorder::allocates(std::span<Cta* const> ctas, const char* what, Site site) {
  for (Cta* cta : ctas) write(actor(), tmem_of(*cta), what, site);
}

void Recorder::takes_registers(const Cta& cta, int change, int free_before) {
  // An increase that had room without any decrease needs none of them.
  Clock& given = clocks_[&cta];
  const std::uint64_t key = name_of(Named::sum, number_of_cta(cta));
  if (change < 0) {
    given.join(agent_of(machine_.current()).knows);
    turns_[key] += static_cast<std::uint32_t>(-change);
  } else if (free_before - static_cast<int>(turns_[key]) < change) {
    agent_of(machine_.current()).knows.join(given);
  }
}

std::uint32_t Recorder::shared_word(const Cta& cta, std::uint32_t offset) {
  return make_object(name_of(Named::shared, number_of_cta(cta), offset), false,
                     "shared memory at offset " + std::to_string(offset) + cta_text(cta));
}

void Recorder::may_add(const Cta& cta, std::uint32_t offset) {
  const std::uint32_t object = shared_word(cta, offset);
  turn();
  while (!allowed(agent_of(machine_.current()), object)) {
    park(object);
  }
}

void Recorder::adds(const Cta& cta, std::uint32_t offset, Site site) {
  write(actor(), shared_word(cta, offset), "addition", site);
}

// --- asynchronous operations --------------------------------------------------------------------

std::uint32_t Recorder::issued() {
  Thread& self = machine_.current();
  Agent agent;
  agent.component = next_component_++;
  agent.name = name_of(Actor::operation, number_of(self), threads_[number_of(self)].operations++);
  agent.knows = agent_of(self).knows;
  agent.thread = &self;
  operations_.push_back(std::move(agent));
  return static_cast<std::uint32_t>(operations_.size() - 1);
}

bool Recorder::is_told(const Copy& copy) {
  return copy.kind == Copy::Kind::load || copy.reduce_add;
}

bool Recorder::may_advance(const Copy& copy) {
  const Agent& agent = operations_[copy.explored];
  if (copy.from == Copy::From::queue && copy.stage == Copy::Stage::issued && copy.data->empty()) {
    return allowed(agent, queue_of(*copy.cta->grid));
  }
  if (copy.reduce_add) {
    if (copy.stage != Copy::Stage::read) return true;
    return allowed(agent, word_object(static_cast<std::uintptr_t>(copy.map.base)));
  }
  const int slot = copy.signals->barrier_at[copy.barrier / 8];
  if (slot < 0) return true;
  const MBarrier& bar = copy.signals->barriers[static_cast<std::size_t>(slot)];
  return allowed(agent, object_of(bar));
}

bool Recorder::is_awaited(const Copy& copy) {
  if (copy.kind != Copy::Kind::load) return false;
  const int slot = copy.signals->barrier_at[copy.barrier / 8];
  if (slot < 0) return false;
  const MBarrier& bar = copy.signals->barriers[static_cast<std::size_t>(slot)];
  return !bar.waiting.empty() || !objects_[object_of(bar)].parked.empty();
}

bool Recorder::may_advance(const TensorOp& op) {
  if (op.what != TensorOp::What::commit) return true;
  const int slot = op.cta->barrier_at[op.barrier / 8];
  if (slot < 0) return true;
  const MBarrier& bar = op.cta->barriers[static_cast<std::size_t>(slot)];
  return allowed(operations_[op.explored], object_of(bar));
}

void Recorder::acts(const Copy& copy) {
  acting_ = copy.explored;
}

void Recorder::acts(const TensorOp& op) {
  acting_ = op.explored;
  operations_[acting_].knows.join(clocks_[op.issuer]);
}

void Recorder::acted(const Thread* in_line) {
  if (in_line != nullptr) clocks_[in_line] = operations_[acting_].knows;
  acting_ = none;
}

void Recorder::takes_from_queue(const Copy& copy) {
  Agent& agent = operations_[copy.explored];
  io_.cancels = true;
  write(agent, queue_of(*copy.cta->grid), "try_cancel", copy.site);
  clocks_[copy.data.get()] = agent.knows;
}

void Recorder::shares_data(const Copy& copy) {
  const auto at = clocks_.find(copy.data.get());
  if (at != clocks_.end()) operations_[copy.explored].knows.join(at->second);
}

void Recorder::adds_to_memory(const Copy& copy) {
  write(operations_[copy.explored], word_object(static_cast<std::uintptr_t>(copy.map.base)),
        "reduce-add", copy.site);
}

}  // namespace warpwright::model
