// Mode::timed: who runs next by a virtual clock, when asynchronous operations happen, and the hooks
// that record the timeline.
#include "warpwright/model/report/timing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "warpwright/model/memory/box.h"
#include "warpwright/model/parts.h"

namespace warpwright::model {
namespace {

std::int64_t whole(double clocks) {
  return std::llround(clocks);
}

// The later of two.
Until later(Until a, Moment b) {
  return static_cast<double>(b.at) > a.at ? Until{static_cast<double>(b.at), b.step} : a;
}

Moment whole(Until until) {
  return {whole(until.at), until.step};
}

}  // namespace

CostCounts PathLog::path(Step to) const {
  std::map<CostKey, double> counts;
  for (; to != 0; to = steps_[to - 1].before) counts[steps_[to - 1].key] += steps_[to - 1].amount;
  return {counts.begin(), counts.end()};
}

CostCounts PathLog::all() const {
  std::map<CostKey, double> counts;
  for (const Entry& entry : steps_) counts[entry.key] += entry.amount;
  return {counts.begin(), counts.end()};
}

SmUnits& Machine::units_of_sm(int sm) {
  while (sm_units_.size() <= static_cast<std::size_t>(sm)) sm_units_.emplace_back();
  return sm_units_[static_cast<std::size_t>(sm)];
}

Cost Machine::wake_delay(const Thread& thread) const {
  if (thread.wait.kind == Wait::Kind::meeting) return {};
  const bool far = thread.wait.kind == Wait::Kind::mbarrier && current_ != nullptr &&
                   current_->cta != thread.cta;
  return far ? costs_.remote_wake : costs_.wake;
}

Cost Machine::together_cost(int members, const Together& together) const {
  if (together.queues) return costs_.clock;
  return members > warp_lanes ? costs_.warpgroup : costs_.warp;
}

Until Machine::busy(Until from, CostKey key, double amount, double clocks) {
  return {from.at + clocks, step(from.step, key, amount)};
}

Moment Machine::at_least_a_clock(Moment from, Until until) {
  const Moment stop = whole(until);
  return stop.at > from.at ? stop : after(from, costs_.clock);
}

void Machine::use_shared(int bytes) {
  if (!timed()) return;
  Until& shared = current_->cta->units->shared;
  shared = busy(later(shared, current_->clock), {CostKind::shared_byte}, bytes,
                bytes / costs_.shared_rate);
  current_->clock = at_least_a_clock(current_->clock, shared);
}

void Machine::read_fragments(int bytes) {
  const std::int64_t start = timed() ? current_->clock.at : 0;
  use_shared(bytes);
  Cta& cta = *current_->cta;
  if (!timed() || cta.fragments_track < 0 || current_->warp() != 0) return;
  const Thread& lane = *cta.threads.front();
  const std::string work = lane.track >= 0 ? builder_.open_text(lane.track) : "";
  builder_.begin(cta.fragments_track, start, work.empty() ? "fragments" : work);
  builder_.end(cta.fragments_track, current_->clock);
}

// Under the number of its group in the tile.
void Machine::show_copy(Thread& issuer, std::int64_t start, std::int64_t stop) {
  Cta& cta = *issuer.cta;
  if (cta.copies_track < 0 || issuer.warp() != 0) return;
  const Thread& lane = *cta.threads.front();
  std::string tile = lane.track >= 0 ? builder_.open_text(lane.track) : "";
  const bool is_tile = tile.starts_with("tile ") || tile.starts_with("group ");
  tile.resize(is_tile ? std::min(tile.size(), tile.find(',')) : 0);
  if (issuer.copies_tile != tile) {
    issuer.copies_tile = tile;
    issuer.groups_of_tile = 0;
  }
  const std::string copies = "copies " + std::to_string(issuer.groups_of_tile);
  builder_.lengthen(cta.copies_track, start, stop, tile.empty() ? copies : tile + ", " + copies);
}

void Machine::use_global(int bytes, bool store) {
  if (!timed()) return;
  Thread& self = *current_;
  SmUnits& units = *self.cta->units;
  if (store) {
    settle_loads();
    units.write = busy(later(units.write, self.clock), {CostKind::write_byte}, bytes,
                       bytes / costs_.write_rate);
  } else {
    units.read = busy(later(units.read, after(self.clock, costs_.load_latency)),
                      {CostKind::read_byte}, bytes, bytes / costs_.read_rate);
    self.loaded = std::max(self.loaded, whole(units.read));
  }
  spend(costs_.global_access);
}

void Machine::settle_loads() {
  if (!timed() || current_->loaded <= current_->clock) return;
  current_->clock = current_->loaded;
  maybe_yield();  // who is behind asks for its loads first
}

// Its path takes a warp's 32 copies at once, and holds up who comes too early.
Moment Machine::use_copy_path(int bytes) {
  if (!timed()) return {};
  Thread& self = *current_;
  SmUnits& units = *self.cta->units;
  units.lsu = busy(later(units.lsu, self.clock), {CostKind::cp_async_issue}, 1.0 / 32,
                   costs_.cp_async_issue / 32);
  self.clock = at_least_a_clock(self.clock, units.lsu);
  const Moment there = after(self.clock, costs_.cp_async_latency);
  if (bytes == 0) return there;
  const Until start = later(units.read, there);
  units.read = busy(start, {CostKind::cp_async_byte}, bytes, bytes / costs_.cp_async_rate);
  show_copy(self, whole(start), whole(units.read));
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
  Until& unit = cta.units->mma[warp % 4];
  Until start = later(unit, self.clock);
  if (ready.first == sums && ready.second.at > start.at) start = ready.second;
  unit = busy(start, mma_key(mma, false), 1, clocks);
  ready = {sums, busy(start, mma_key(mma, true), 1, latency)};
  self.clock = std::max(self.clock, whole(start));
  if (warp % 4 == 0 && cta.tensor_track >= 0) show_mma(cta, whole(start), whole(unit));
}

// The first of the four partitions is shown. What a warp multiplies without a pause is a slice.
void Machine::show_mma(const Cta& cta, std::int64_t start, std::int64_t stop) {
  const int first = current_->index - current_->lane();
  const Thread& lane = *cta.threads[static_cast<std::size_t>(first)];
  const std::string work = lane.track >= 0 ? builder_.open_text(lane.track) : "";
  builder_.begin(cta.tensor_track, start, lane.role + std::string(work.empty() ? "" : ": ") + work,
                 "mma.sync");
  builder_.end(cta.tensor_track, stop);
}

Moment Machine::now() const {
  if (!timed()) return {statistics.fiber_switches};
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
  const Moment first = timed() && time_ > 0 ? after(time_, costs_.next_cta) : time_;
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
  cta.copies_track = add_engine(TraceTrack::Kind::copies, "cp.async");
  cta.fragments_track = add_engine(TraceTrack::Kind::fragments, "ldmatrix");
  cta.stores_track = add_engine(TraceTrack::Kind::stores, "TMA: stores");
  cta.tensor_track = add_engine(TraceTrack::Kind::tensor_core, "tensor core");
  for (const int track : {cta.loads_track, cta.copies_track, cta.fragments_track, cta.stores_track,
                          cta.tensor_track}) {
    builder_.track(track).sm = cta.sm;
  }
}

bool Machine::step_timed() {
  const std::int64_t other =
      std::min(due_copies_.empty() ? INT64_MAX : due_copies_.top().time.at,
               due_threads_.empty() ? INT64_MAX : due_threads_.top().time.at);
  if (!due_tensor_.empty() && due_tensor_.top().time.at <= other) {
    const Due<Thread> due = due_tensor_.top();
    due_tensor_.pop();
    time_ = std::max(time_, due.time);
    look_again_ = look_again_ || due.what->cta->live_threads == 0;
    advance(*due.what);
    return true;
  }
  if (!due_copies_.empty() &&
      (due_threads_.empty() || due_copies_.top().time.at <= due_threads_.top().time.at)) {
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
    Moment next = copy.stop;
    if (copy.kind == Copy::Kind::store && stage == Copy::Stage::issued) {
      next = after(copy.stop, costs_.store_done);
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

void Machine::sleep_until(Moment time, const char* why) {
  if (!timed() || current_->clock >= time) return;
  Thread& self = *current_;
  if (self.track >= 0) builder_.begin(self.track, self.clock, why);
  self.clock = time;
  maybe_yield();
  if (self.track >= 0) builder_.end(self.track, self.clock);
}

// Rows of a load's box that lie outside its matrix.
static int rows_outside(const Copy& copy) {
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
        after(now(), copy.from == Copy::From::queue ? costs_.launch_answer : costs_.store_async);
    due_copies_.push({copy.start, orders_++, &copy});
    return;
  }
  SmUnits& units = *copy.cta->units;
  if (load) {
    // The issuer's engine makes the requests, once for all destinations.
    Until& engine = copy.issuer->cta->units->tma;
    const Until asked = later(engine, now());
    const double share = 1.0 / copy.destinations;
    const int rows = box_shape(copy).rows;
    const int outside = rows_outside(copy);
    engine = busy(asked, {CostKind::tma_copy}, share, costs_.tma_copy * share);
    engine = busy(engine, {CostKind::tma_row}, rows * share, rows * costs_.tma_row * share);
    if (outside > 0) {
      engine = busy(engine, {CostKind::tma_outside_row}, outside * share,
                    outside * costs_.tma_outside_row * share);
    }
    const auto arrives = [&](Until request) {
      request = busy(request, costs_.tma_latency.key, 1, static_cast<double>(costs_.tma_latency));
      if (copy.destinations == 1) return request;
      return busy(request, costs_.multicast.key, 1, static_cast<double>(costs_.multicast));
    };
    const Until first = arrives(asked);
    const Until start = first.at > units.read.at ? first : units.read;
    const Until last = arrives(engine);
    const Until moved = busy(start, {CostKind::tma_byte}, copy.bytes, copy.bytes / costs_.tma_rate);
    units.read = last.at > moved.at ? last : moved;
    copy.start = whole(start);
    copy.stop = whole(units.read);
  } else {
    const Until start = later(units.write, after(now(), costs_.store_latency));
    units.write = busy(start, {CostKind::write_byte}, copy.bytes, copy.bytes / costs_.write_rate);
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
  const Moment idle = after(now(), costs_.wgmma_latency);
  const Until start = later(units.tensor, idle);
  const bool in_turns = units.tensor > static_cast<double>(idle.at) && units.multiplies != &group;
  Until at = start;
  for (WgmmaOp& op : ops) {
    const bool from_registers = !op.registers_a.empty();
    at = busy(at, wgmma_key(op.shape.n, from_registers, in_turns), 1,
              costs_.wgmma(op.shape.n, from_registers, in_turns));
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
    op.done = after(std::max(now(), pipe.end), costs_.commit_latency);
    show(issuer);
  } else if (op.what != TensorOp::What::mma) {
    // It runs beside the MMAs; those behind it start no sooner than it ends.
    op.done = after(now(), costs_.tmem_copy);
  } else {
    Until start = later({}, after(now(), costs_.umma_latency));
    for (const Operand& a : op.a) {
      if (a.cta->units->tensor.at > start.at) start = a.cta->units->tensor;
    }
    const Until done = busy(start, umma_key(op.atom), 1, costs_.umma(op.atom));
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
