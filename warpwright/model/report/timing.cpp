// Mode::timed: who runs next by a virtual clock, when asynchronous operations happen, and the hooks
// that record the timeline.
#include "warpwright/model/report/timing.h"

#include <algorithm>
#include <string>

#include "warpwright/model/parts.h"

namespace warpwright::model {

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
  for (const auto& thread : cta.threads) {
    thread->clock = time_;
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
  cta.loads.track = add_engine(TraceTrack::Kind::loads, "TMA: loads");
  cta.stores.track = add_engine(TraceTrack::Kind::stores, "TMA: stores");
  cta.tensor_core.track = add_engine(TraceTrack::Kind::tensor_core, "tensor core");
  for (const Cta::Engine* engine : {&cta.loads, &cta.stores, &cta.tensor_core}) {
    builder_.track(engine->track).sm = cta.sm;
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
      next = copy.stop + nominal::store_to_global;
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
        now() + (copy.from == Copy::From::queue ? nominal::launch_answer : nominal::store_async);
    due_copies_.push({copy.start, orders_++, &copy});
    return;
  }
  Cta::Engine& engine = load ? copy.cta->loads : copy.cta->stores;
  copy.start =
      std::max(engine.free, now() + (load ? nominal::load_latency : nominal::store_latency));
  copy.stop =
      copy.start + (copy.bytes + nominal::copy_bytes_per_cycle - 1) / nominal::copy_bytes_per_cycle;
  engine.free = copy.stop;
  due_copies_.push({load ? copy.start : copy.stop, orders_++, &copy});
  if (engine.track < 0) return;
  std::string name = copy.issuer->track >= 0 ? builder_.open_text(copy.issuer->track) : "";
  if (name.empty()) name = load ? "load" : "store";
  std::string detail = std::to_string(copy.bytes) + " bytes";
  if (load) {
    const MBarrier& bar = barrier_of(*copy.signals, copy.barrier, "a load's signal", copy.site);
    detail += ", signals " + std::string(bar.name) + "[" + std::to_string(bar.index) + "]";
  }
  detail += ", issued by " + who(*copy.issuer);
  builder_.begin(engine.track, copy.start, name, detail);
  builder_.end(engine.track, copy.stop);
}

// The tensor core takes the groups in the order in which they are committed.
void Machine::schedule(Cta& cta, const Thread& leader, std::deque<WgmmaOp>& ops) {
  if (ops.empty()) return;
  const std::int64_t start = std::max(cta.tensor_core.free, now() + nominal::wgmma_latency);
  std::int64_t at = start;
  for (WgmmaOp& op : ops) op.done = at += nominal::wgmma(op.shape.n);
  cta.tensor_core.free = at;
  if (cta.tensor_core.track < 0) return;
  // The issuer stands first: warpgroups share the tensor core, and names are cut at their ends.
  const std::string work = leader.track >= 0 ? builder_.open_text(leader.track) : "";
  const std::string name = leader.role + std::string(work.empty() ? "" : ": ") + work;
  builder_.begin(cta.tensor_core.track, start, name,
                 std::to_string(ops.size()) + " wgmma m64n" + std::to_string(ops.front().shape.n));
  builder_.end(cta.tensor_core.track, at);
}

// The tensor cores take MMAs in the order of their issue, those of a pair together.
void Machine::schedule(TensorOp& op) {
  Thread& issuer = *op.issuer;
  TensorPipe& pipe = issuer.tensor_pipe;
  if (op.what == TensorOp::What::commit) {
    op.done = std::max(now(), pipe.end) + nominal::commit_latency;
    show(issuer);
  } else if (op.what == TensorOp::What::copy) {
    // It runs beside the MMAs; those behind it start no sooner than it ends.
    op.done = now() + nominal::tmem_copy;
  } else {
    std::int64_t start = now() + nominal::umma_latency;
    for (const Operand& a : op.a) start = std::max(start, a.cta->tensor_core.free);
    op.done = start + nominal::umma(atom::umma_cta_rows(op.atom), op.atom.n);
    for (const Operand& a : op.a) a.cta->tensor_core.free = op.done;
    if (pipe.mmas.empty()) pipe.start = start;
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
    if (cta->tensor_core.track < 0) continue;
    builder_.begin(cta->tensor_core.track, pipe.start, name, detail);
    builder_.end(cta->tensor_core.track, pipe.end);
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
