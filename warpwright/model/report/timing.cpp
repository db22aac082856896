// Mode::timed: who runs next by a virtual clock, when asynchronous operations happen, and the hooks
// that record the timeline.
#include "warpwright/model/report/timing.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "warpwright/facts/machines.h"
#include "warpwright/model/memory/box.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

std::int64_t whole(double clocks) {
  return std::llround(clocks);
}

// Of an instruction that a device lacks it is what it is on the first device that has it.
double known(double number, const MachineNumbers& kin, double MachineNumbers::*of) {
  return number > 0 ? number : kin.*of;
}

}  // namespace

// In clocks of the device at its highest clock. What an SM gets of L2 is its own port's rate, or
// its share of what L2 gives all SMs at work, whichever is less; of memory's rate its share.
Costs::Costs(const MachineNumbers& n, double cold_share) : numbers(&n) {
  const MachineNumbers& hopper = machine_of_architecture(90);
  const MachineNumbers& blackwell = machine_of_architecture(100);
  const auto of = [&](double MachineNumbers::*number) { return known(n.*number, hopper, number); };
  const auto later = [&](double MachineNumbers::*number) {
    return known(n.*number, blackwell, number);
  };
  using N = MachineNumbers;
  arrive = whole(of(&N::arrive_clocks));
  wait = whole(of(&N::wait_clocks));
  wake = whole(of(&N::wake_clocks));
  remote_wake = wake + whole(of(&N::remote_arrive_clocks));
  named_barrier = whole(n.named_barrier_clocks);
  cluster_barrier = whole(of(&N::cluster_barrier_clocks));
  warp = whole(n.warp_clocks);
  warpgroup = whole(of(&N::warpgroup_clocks));
  proxy_fence = whole(of(&N::proxy_fence_clocks));
  tma_issue = whole(of(&N::tma_issue_clocks));
  shared_access = whole(n.shared_issue_clocks);
  global_access = whole(n.global_issue_clocks);
  atomic = whole(n.atomic_clocks);
  element = whole(n.element_clocks);
  set_registers = whole(of(&N::set_registers_clocks));
  far_rate = of(&N::dsmem_bytes_per_clock);

  const double an_sm = n.sms * n.clock_hz;
  const double l2 = n.l2_bytes_per_second / an_sm;
  const double memory = n.hbm_bytes_per_second / an_sm;
  const auto fed = [&](double port) {
    const double rate = std::min(port, l2);
    return cold_share > 0 ? std::min(rate, memory / cold_share) : rate;
  };
  const std::int64_t miss = whole(cold_share * (n.l2_miss_clocks - n.l2_hit_clocks));
  read_rate = fed(n.read_bytes_per_clock);
  write_rate = std::min(n.write_bytes_per_clock, l2);
  tma_rate = fed(of(&N::tma_bytes_per_clock));
  cp_async_rate = fed(of(&N::cp_async_bytes_per_clock));
  load_latency = whole(n.l2_hit_clocks) + miss;
  tma_latency = whole(of(&N::tma_load_clocks)) + miss;
  multicast = whole(of(&N::tma_multicast_clocks));
  tma_copy = of(&N::tma_copy_clocks);
  tma_row = of(&N::tma_row_clocks);
  tma_outside_row = of(&N::tma_outside_row_clocks);
  store_latency = whole(of(&N::tma_store_clocks));
  store_done = whole(of(&N::tma_store_done_clocks));
  store_async = whole(of(&N::dsmem_clocks));
  cp_async_issue = of(&N::cp_async_issue_clocks);
  cp_async_latency = whole(of(&N::cp_async_clocks)) + miss;
  shared_rate = n.shared_bytes_per_clock;

  wgmma_latency = whole(of(&N::wgmma_clocks));
  umma_issue = whole(later(&N::tcgen05_issue_clocks));
  umma_latency = whole(later(&N::tcgen05_clocks));
  commit_latency = whole(later(&N::tcgen05_commit_clocks));
  tmem_copy = whole(later(&N::tcgen05_copy_clocks));
  tmem_latency = whole(later(&N::tmem_clocks));
  tmem_register = later(&N::tmem_register_clocks);
  launch_answer = whole(later(&N::launch_answer_clocks));
  next_cta = whole(n.exit_clocks);
}

double Costs::wgmma(int n, bool a_in_registers, bool in_turns) const {
  const MachineNumbers& m =
      numbers->wgmma_shared_one.points.empty() ? machine_of_architecture(90) : *numbers;
  return wgmma_clocks(m, n, a_in_registers, in_turns);
}

double Costs::umma(int rows, const atom::UmmaAtom& mma) const {
  const MachineNumbers& m =
      numbers->tcgen05_mma.points.empty() ? machine_of_architecture(100) : *numbers;
  const double k = mma.k * numeric::bits(mma.a) > 256 ? 1.5 : 1;  // K of 96, not 64
  if (!mma.pair) return tcgen05_clocks(m, rows, mma.n) * k;
  // Each CTA of a pair reads half of B.
  return std::max(m.tcgen05_mma.at(256) * mma.n / 256, m.tcgen05_mma.at(mma.n / 2)) * k;
}

std::pair<double, double> Costs::mma_sync(const atom::Mma& mma) const {
  for (const MachineNumbers* m : {numbers, &machine_of_architecture(90),
                                  &machine_of_architecture(120), &machine_of_architecture(70)}) {
    if (const MmaClocks* const entry = find_mma(*m, mma)) return {entry->clocks, entry->latency};
  }
  return {8, 32};
}

SmUnits& Machine::units_of_sm(int sm) {
  while (sm_units_.size() <= static_cast<std::size_t>(sm)) sm_units_.emplace_back();
  return sm_units_[static_cast<std::size_t>(sm)];
}

std::int64_t Machine::wake_delay(const Thread& thread) const {
  if (thread.wait.kind == Wait::Kind::meeting) return 0;
  const bool far = thread.wait.kind == Wait::Kind::mbarrier && current_ != nullptr &&
                   current_->cta != thread.cta;
  return far ? costs_.remote_wake : costs_.wake;
}

std::int64_t Machine::together_clocks(int members, const Together& together) const {
  if (together.queues) return 1;
  return members > warp_lanes ? costs_.warpgroup : costs_.warp;
}

void Machine::use_shared(int bytes) {
  if (!timed()) return;
  double& shared = current_->cta->units->shared;
  shared = std::max(shared, static_cast<double>(current_->clock)) + bytes / costs_.shared_rate;
  current_->clock = std::max(current_->clock + 1, whole(shared));
}

void Machine::use_global(int bytes, bool store) {
  if (!timed()) return;
  Thread& self = *current_;
  SmUnits& units = *self.cta->units;
  if (store) {
    settle_loads();
    units.write =
        std::max(units.write, static_cast<double>(self.clock)) + bytes / costs_.write_rate;
  } else {
    units.read = std::max(units.read, static_cast<double>(self.clock + costs_.load_latency)) +
                 bytes / costs_.read_rate;
    self.loaded = std::max(self.loaded, whole(units.read));
  }
  self.clock += costs_.global_access;
}

void Machine::settle_loads() {
  if (!timed() || current_->loaded <= current_->clock) return;
  current_->clock = current_->loaded;
  maybe_yield();  // who is behind asks for its loads first
}

// Its path takes a warp's 32 copies at once, and holds up who comes too early.
std::int64_t Machine::use_copy_path(int bytes) {
  if (!timed()) return 0;
  Thread& self = *current_;
  SmUnits& units = *self.cta->units;
  units.lsu = std::max(units.lsu, static_cast<double>(self.clock)) + costs_.cp_async_issue / 32;
  self.clock = std::max(self.clock + 1, whole(units.lsu));
  if (bytes == 0) return self.clock + costs_.cp_async_latency;
  units.read = std::max(units.read, static_cast<double>(self.clock + costs_.cp_async_latency)) +
               bytes / costs_.cp_async_rate;
  return whole(units.read);
}

// A warp hands its MMAs to its partition's tensor core in order. One whose sums another is still at
// waits for them.
void Machine::use_tensor_core(const atom::Mma& mma, const void* sums) {
  if (!timed()) return;
  Thread& self = *current_;
  Cta& cta = *self.cta;
  if (cta.sums_ready.empty()) cta.sums_ready.resize(cta.warp_meetings.size());
  const auto warp = static_cast<std::size_t>(self.warp());
  auto& ready = cta.sums_ready[warp][reinterpret_cast<std::uintptr_t>(sums) / 16 % 64];
  const auto [clocks, latency] = costs_.mma_sync(mma);
  double& unit = cta.units->mma[warp % 4];
  double start = std::max(unit, static_cast<double>(self.clock));
  if (ready.first == sums) start = std::max(start, ready.second);
  unit = start + clocks;
  ready = {sums, start + latency};
  self.clock = std::max(self.clock, whole(start));
  if (warp % 4 == 0 && cta.tensor_track >= 0) show_mma(cta, whole(start), whole(unit));
}

// Of the four partitions the first one is shown. What a warp multiplies without a pause is a slice.
void Machine::show_mma(const Cta& cta, std::int64_t start, std::int64_t stop) {
  const int first = current_->index - current_->lane();
  const Thread& lane = *cta.threads[static_cast<std::size_t>(first)];
  const std::string work = lane.track >= 0 ? builder_.open_text(lane.track) : "";
  builder_.begin(cta.tensor_track, start, lane.role + std::string(work.empty() ? "" : ": ") + work,
                 "mma.sync");
  builder_.end(cta.tensor_track, stop);
}

std::int64_t Machine::now() const {
  if (!timed()) return statistics.fiber_switches;
  return current_ != nullptr ? current_->clock : time_;
}

void Machine::make_ready(Thread& thread) {
  if (timed()) {
    due_threads_.push({thread.clock, orders_++, &thread});
  } else {
    (held_back(thread) ? starving_ : ready_).push_back(&thread);
  }
}

// The threads of a CTA that starts now.
void Machine::start_clock(Cta& cta) {
  const std::int64_t first = timed() && time_ > 0 ? time_ + costs_.next_cta : time_;
  for (const auto& thread : cta.threads) {
    thread->clock = first;
    if (options_.trace != nullptr && thread->lane() == 0) {
      thread->track = builder_.add_track(TraceTrack::Kind::role, cta.index, thread->role,
                                         thread->index, cta.grid->index);
      builder_.track(thread->track).sm = cta.sm;
    }
  }
  if (options_.trace == nullptr || !timed()) return;
  const auto add_engine = [&](TraceTrack::Kind kind, const char* name) {
    return builder_.add_track(kind, cta.index, name, 0, cta.grid->index);
  };
  cta.loads_track = add_engine(TraceTrack::Kind::loads, "TMA: loads");
  cta.stores_track = add_engine(TraceTrack::Kind::stores, "TMA: stores");
  cta.tensor_track = add_engine(TraceTrack::Kind::tensor_core, "tensor core");
  for (const int track : {cta.loads_track, cta.stores_track, cta.tensor_track}) {
    builder_.track(track).sm = cta.sm;
  }
}

bool Machine::step_timed() {
  const std::int64_t other = std::min(due_copies_.empty() ? INT64_MAX : due_copies_.top().time,
                                      due_threads_.empty() ? INT64_MAX : due_threads_.top().time);
  if (!due_tensor_.empty() && due_tensor_.top().time <= other) {
    const Due<Thread> due = due_tensor_.top();
    due_tensor_.pop();
    time_ = std::max(time_, due.time);
    look_again_ = look_again_ || due.what->cta->live_threads == 0;
    advance(*due.what);
    return true;
  }
  if (!due_copies_.empty() &&
      (due_threads_.empty() || due_copies_.top().time <= due_threads_.top().time)) {
    const Due<Copy> due = due_copies_.top();
    due_copies_.pop();
    time_ = std::max(time_, due.time);
    Copy& copy = *due.what;
    const Copy::Stage stage = copy.stage;
    if (advance(copy)) {
      look_again_ = look_again_ || copy.cta->live_threads == 0;
      std::erase_if(copies_, [&](const auto& c) { return c.get() == &copy; });
      return true;
    }
    std::int64_t next = copy.stop;
    if (copy.kind == Copy::Kind::store && stage == Copy::Stage::issued) {
      next = copy.stop + costs_.store_done;
    } else if (copy.kind == Copy::Kind::store) {
      next = due.time;
    }
    due_copies_.push({next, orders_++, &copy});
    return true;
  }
  if (due_threads_.empty()) return false;
  Thread& thread = *due_threads_.top().what;
  due_threads_.pop();
  resume(thread);
  return true;
}

void Machine::sleep_until(std::int64_t time, const char* why) {
  if (!timed() || current_->clock >= time) return;
  Thread& self = *current_;
  if (self.track >= 0) builder_.begin(self.track, self.clock, why);
  self.clock = time;
  maybe_yield();
  if (self.track >= 0) builder_.end(self.track, self.clock);
}

namespace {

// Rows of a load's box that lie outside its matrix.
int rows_outside(const Copy& copy) {
  if (copy.mode == CopyMode::rows) return 0;
  std::int64_t inside = 1;
  int rows = 1;
  for (int d = 1; d < copy.map.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::int64_t box = copy.map.box[i];
    const auto extent = static_cast<std::int64_t>(copy.map.extents[i]);
    const std::int64_t first = std::clamp<std::int64_t>(copy.coords[i], 0, extent);
    inside *= std::clamp<std::int64_t>(copy.coords[i] + box, first, extent) - first;
    rows *= static_cast<int>(box);
  }
  return rows - static_cast<int>(inside);
}

}  // namespace

// A pipe takes its operations in the order in which they come and moves one at a time. A load's
// data arrive between start and stop; a store reads shared memory at stop.
void Machine::schedule(Copy& copy) {
  const bool load = copy.kind == Copy::Kind::load;
  if (copy.from == Copy::From::thread) {
    due_copies_.push({copy.start, orders_++, &copy});
    return;
  }
  if (!copy.by_engine()) {
    copy.start = copy.stop =
        now() + (copy.from == Copy::From::queue ? costs_.launch_answer : costs_.store_async);
    due_copies_.push({copy.start, orders_++, &copy});
    return;
  }
  SmUnits& units = *copy.cta->units;
  if (load) {
    // The issuer's engine makes the requests, once for all destinations.
    double& engine = copy.issuer->cta->units->tma;
    const double asked = std::max(engine, static_cast<double>(now()));
    const double takes = costs_.tma_copy + box_shape(copy).rows * costs_.tma_row +
                         rows_outside(copy) * costs_.tma_outside_row;
    engine = asked + takes / copy.destinations;
    const double latency =
        static_cast<double>(costs_.tma_latency + (copy.destinations > 1 ? costs_.multicast : 0));
    const double start = std::max(units.read, asked + latency);
    units.read = std::max(start + copy.bytes / costs_.tma_rate, engine + latency);
    copy.start = whole(start);
    copy.stop = whole(units.read);
  } else {
    const double start = std::max(units.write, static_cast<double>(now() + costs_.store_latency));
    units.write = start + copy.bytes / costs_.write_rate;
    copy.start = whole(start);
    copy.stop = whole(units.write);
  }
  due_copies_.push({load ? copy.start : copy.stop, orders_++, &copy});
  const int track = load ? copy.cta->loads_track : copy.cta->stores_track;
  if (track < 0) return;
  std::string name = copy.issuer->track >= 0 ? builder_.open_text(copy.issuer->track) : "";
  if (name.empty()) name = load ? "load" : "store";
  std::string detail = std::to_string(copy.bytes) + " bytes";
  if (load) {
    const MBarrier& bar = barrier_of(*copy.signals, copy.barrier, "a load's signal", copy.site);
    detail += ", signals " + std::string(bar.name) + "[" + std::to_string(bar.index) + "]";
  }
  detail += ", issued by " + who(*copy.issuer);
  builder_.begin(track, copy.start, name, detail);
  builder_.end(track, copy.stop);
}

// The tensor cores take the groups in the order in which they are committed. Those of warpgroups in
// turns hide each other's latencies.
void Machine::schedule(Cta& cta, const Thread& leader, Warpgroup& group) {
  std::deque<WgmmaOp>& ops = group.open;
  if (ops.empty()) return;
  SmUnits& units = *cta.units;
  const double idle = static_cast<double>(now() + costs_.wgmma_latency);
  const double start = std::max(units.tensor, idle);
  const bool in_turns = units.tensor > idle && units.multiplies != &group;
  double at = start;
  for (WgmmaOp& op : ops) {
    at += costs_.wgmma(op.shape.n, !op.registers_a.empty(), in_turns);
    op.done = whole(at);
  }
  units.tensor = at;
  units.multiplies = &group;
  if (cta.tensor_track < 0) return;
  // The issuer stands first: warpgroups share the tensor core, and names are cut at their ends.
  const std::string work = leader.track >= 0 ? builder_.open_text(leader.track) : "";
  const std::string name = leader.role + std::string(work.empty() ? "" : ": ") + work;
  builder_.begin(cta.tensor_track, whole(start), name,
                 std::to_string(ops.size()) + " wgmma m64n" + std::to_string(ops.front().shape.n));
  builder_.end(cta.tensor_track, whole(at));
}

// The tensor cores take MMAs in the order of their issue, those of a pair together.
void Machine::schedule(TensorOp& op) {
  Thread& issuer = *op.issuer;
  TensorPipe& pipe = issuer.tensor_pipe;
  if (op.what == TensorOp::What::commit) {
    op.done = std::max(now(), pipe.end) + costs_.commit_latency;
    show(issuer);
  } else if (op.what == TensorOp::What::copy) {
    // It runs beside the MMAs; those behind it start no sooner than it ends.
    op.done = now() + costs_.tmem_copy;
  } else {
    double start = static_cast<double>(now() + costs_.umma_latency);
    for (const Operand& a : op.a) start = std::max(start, a.cta->units->tensor);
    const double done = start + costs_.umma(atom::umma_cta_rows(op.atom), op.atom);
    for (const Operand& a : op.a) a.cta->units->tensor = done;
    op.done = whole(done);
    if (pipe.mmas.empty()) pipe.start = whole(start);
    pipe.end = op.done;
    pipe.mmas.push_back(op.atom);
    pipe.ctas.clear();
    for (const Operand& a : op.a) pipe.ctas.push_back(a.cta);
  }
  op.done = pipe.due = std::max(pipe.due, op.done);  // they end in order
  due_tensor_.push({op.done, orders_++, &issuer});
}

// The MMAs of a thread since its last commit, as one slice of the timeline of each CTA.
void Machine::show(Thread& issuer) {
  TensorPipe& pipe = issuer.tensor_pipe;
  if (pipe.mmas.empty()) return;
  const atom::UmmaAtom& atom = pipe.mmas.front();
  const std::string detail = std::to_string(pipe.mmas.size()) + " tcgen05.mma m" +
                             std::to_string(atom.m) + "n" + std::to_string(atom.n);
  std::string name = issuer.track >= 0 ? builder_.open_text(issuer.track) : "";
  if (name.empty()) name = issuer.role;
  for (const Cta* cta : pipe.ctas) {
    if (cta->tensor_track < 0) continue;
    builder_.begin(cta->tensor_track, pipe.start, name, detail);
    builder_.end(cta->tensor_track, pipe.end);
  }
  pipe.mmas.clear();
}

// Marks may come while a stopped kernel unwinds; there is no current thread then.
void Machine::mark_begin(const std::string& name) {
  if (current_ != nullptr && current_->track >= 0) builder_.begin(current_->track, now(), name);
}

void Machine::mark_end() {
  if (current_ != nullptr && current_->track >= 0) builder_.end(current_->track, now());
}

void Machine::rename_track(const Thread& thread) {
  if (thread.track >= 0) builder_.track(thread.track).name = thread.role;
}

std::string Machine::wait_name(const Wait& wait) const {
  switch (wait.kind) {
    case Wait::Kind::mbarrier: {
      const int slot = wait.cta->barrier_at[wait.offset / 8];
      if (slot < 0) return "wait mbarrier";
      const MBarrier& bar = wait.cta->barriers[static_cast<std::size_t>(slot)];
      return std::string("wait ") + bar.name + "[" + std::to_string(bar.index) + "]";
    }
    case Wait::Kind::named:
      return "wait barrier[" + std::to_string(wait.id) + "]";
    case Wait::Kind::cluster:
      return "wait cluster";
    case Wait::Kind::bulk:
      return "wait stores";
    case Wait::Kind::registers:
      return "wait registers";
    case Wait::Kind::tensor_memory:
      return std::string("wait ") + wait.what;
    case Wait::Kind::flag:
      return "wait flag";
    case Wait::Kind::grids:
      return "wait grids";
    case Wait::Kind::meeting:
    case Wait::Kind::none:
      break;
  }
  return "wait";
}

void mark_begin(const char* label, int a, int b, int c) {
  Machine& m = machine();
  if (m.options().trace != nullptr) m.mark_begin(label_text(label, a, b, c));
}

void mark_end() {
  Machine& m = machine();
  if (m.options().trace != nullptr) m.mark_end();
}

}  // namespace warpwright::model
