#include "warpwright/ptx/kernel.h"

#include <algorithm>
#include <utility>

#include "warpwright/ptx/decoder.h"
#include "warpwright/ptx/edits.h"

namespace warpwright::ptx {
namespace {

// What all threads of a launch have in common.
struct Shared {
  const Program* program;
  const std::byte* params;
  Launch launch;
  const std::vector<model::Allocation>* allocations;
  std::byte* globals;
  std::uint64_t* executed;
  std::uint8_t* ran;  // by operation, or null
};

std::uint64_t lane_mask(Given what, int lane) {
  const auto bit = std::uint64_t{1} << lane;
  const auto below = bit - 1;
  const auto above = 0xffffffffU & ~(bit | below);
  return what == Given::lanemask_eq   ? bit
         : what == Given::lanemask_lt ? below
         : what == Given::lanemask_le ? bit | below
         : what == Given::lanemask_gt ? above
                                      : bit | above;
}

// Where a space begins.
std::uint64_t memory(Given space, const Frame& f, const Shared& all) {
  const auto at = [](const auto* begin) {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(begin));
  };
  return space == Given::shared     ? f.shared
         : space == Given::param    ? at(all.params)
         : space == Given::local    ? at(f.local)
         : space == Given::constant ? at(all.program->constants.data())
                                    : at(all.globals);
}

std::uint64_t given(const GivenRegister& g, const Frame& f, const Shared& all) {
  const Launch& l = all.launch;
  const auto thread = model::thread_index();
  const auto cta = model::cta_index();
  const auto axis_from = [&](Given x) { return static_cast<int>(g.what) - static_cast<int>(x); };
  switch (g.what) {
    case Given::tid_x:
    case Given::tid_y:
    case Given::tid_z:
      return static_cast<std::uint64_t>(place_in(thread, l.block, axis_from(Given::tid_x)));
    case Given::ntid_x:
    case Given::ntid_y:
    case Given::ntid_z:
      return static_cast<std::uint64_t>(l.block[axis_from(Given::ntid_x)]);
    case Given::ctaid_x:
    case Given::ctaid_y:
    case Given::ctaid_z:
      return static_cast<std::uint64_t>(place_in(cta, l.grid, axis_from(Given::ctaid_x)));
    case Given::nctaid_x:
    case Given::nctaid_y:
    case Given::nctaid_z:
      return static_cast<std::uint64_t>(l.grid[axis_from(Given::nctaid_x)]);
    case Given::laneid:
      return static_cast<std::uint64_t>(f.lane);
    case Given::warpid:
      return static_cast<std::uint64_t>(thread / 32);
    case Given::nwarpid:
      return static_cast<std::uint64_t>((f.threads + 31) / 32);
    case Given::cluster_ctarank:
    case Given::cluster_ctaid_x:
      return static_cast<std::uint64_t>(model::cluster_rank());
    case Given::cluster_nctarank:
    case Given::cluster_nctaid_x:
      return static_cast<std::uint64_t>(model::cluster_size());
    case Given::clusterid_x:
      return static_cast<std::uint64_t>(cta % l.grid[0] / model::cluster_size());
    case Given::nclusterid_x:
      return static_cast<std::uint64_t>(l.grid[0] / model::cluster_size());
    case Given::lanemask_eq:
    case Given::lanemask_lt:
    case Given::lanemask_le:
    case Given::lanemask_gt:
    case Given::lanemask_ge:
      return lane_mask(g.what, f.lane);
    case Given::dynamic_bytes:
      return static_cast<std::uint64_t>(l.dynamic_bytes);
    case Given::zero:
      return 0;
    case Given::one:
      return 1;
    case Given::shared:
    case Given::param:
    case Given::local:
    case Given::constant:
    case Given::global:
      return memory(g.what, f, all) + g.value;
  }
  return 0;
}

void run_thread(const Shared& all) {
  const Program& program = *all.program;
  std::vector<std::uint32_t> registers = program.image;
  std::vector<std::byte> local(program.local_bytes, std::byte{0xff});
  // Whoever multiplies must have fenced its registers first.
  std::vector<model::FragmentState> accumulators(program.accumulators, {.touched_epoch = ~0U});
  Frame f;
  f.r = registers.data();
  f.program = &program;
  f.launch = &all.launch;
  f.params = all.params;
  f.local = local.data();
  f.allocations = all.allocations;
  f.accumulators = accumulators.data();
  const int thread = model::thread_index();
  f.lane = thread % 32;
  f.threads = all.launch.threads();
  const int lanes = std::min(32, f.threads - thread / 32 * 32);
  f.warp_mask = lanes == 32 ? ~0U : (1U << lanes) - 1;
  f.shared = model::shared_base();
  for (const GivenRegister& g : program.given) {
    const std::uint64_t value = given(g, f, all);
    if (g.wide) {
      f.put(g.at, value);
    } else {
      f.put(g.at, static_cast<std::uint32_t>(value));
    }
  }
  // Others go on while a thread is at memory: one that never is keeps all of them waiting.
  constexpr std::uint64_t budget = std::uint64_t{1} << 28;
  std::uint64_t executed = 0;
  std::uint64_t effects = 0;
  const Op* op = program.ops.data();
  while (op != nullptr) {
    if (all.ran != nullptr) all.ran[op - program.ops.data()] = 1;
    const Op* const next = op->run(f, op);
    if (++executed % budget == 0 && std::exchange(effects, f.effects) == f.effects) {
      f.fail(op, "a loop of " + std::to_string(budget) +
                     " operations touches no memory and has no end");
    }
    op = next;
  }
  *all.executed += executed;
}

}  // namespace

Kernel::Kernel(std::string text, std::string name, std::string_view entry) {
  const Module module = parse(text);
  if (entry.empty() && module.entries.size() > 1) {
    throw Fault(module.entries[1].line,
                "the text has several entries, and which one is not said: the "
                "first is " +
                    std::string(module.entries[0].name));
  }
  auto program = std::make_shared<Program>(
      decode(module, std::move(name), entry.empty() ? module.entries[0].name : entry));
  program->text = std::move(text);
  program_ = std::move(program);
}

const std::string& Kernel::entry() const {
  return program_->entry;
}
const std::string& Kernel::name() const {
  return program_->name;
}
const std::vector<Parameter>& Kernel::parameters() const {
  return program_->params;
}
std::uint32_t Kernel::parameter_bytes() const {
  return program_->param_bytes;
}
bool Kernel::waits_for_grids() const {
  return program_->waits_for_grids;
}
std::size_t Kernel::size() const {
  return program_->ops.size();
}

model::LaunchShape Kernel::shape(const Launch& launch) const {
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] < 1 || launch.block[i] < 1) throw Fault(0, "a grid or block is empty");
  }
  if (launch.threads() > 1024 ||
      (program_->max_threads > 0 && launch.threads() > program_->max_threads)) {
    throw Fault(0, "the block has " + std::to_string(launch.threads()) + " threads, and " +
                       program_->entry + " takes at most " +
                       std::to_string(program_->max_threads > 0 ? program_->max_threads : 1024));
  }
  if (launch.cluster < 1 || launch.cluster > 16 || launch.grid[0] % launch.cluster != 0) {
    throw Fault(0, "the cluster has " + std::to_string(launch.cluster) +
                       " CTAs, and must divide the grid's x, " + std::to_string(launch.grid[0]) +
                       ", and be 16 at most");
  }
  const int bytes = static_cast<int>(program_->static_shared) + launch.dynamic_bytes;
  if (launch.dynamic_bytes < 0 || bytes > model::max_shared_bytes) {
    throw Fault(0, "shared memory of " + std::to_string(bytes) + " bytes: a CTA has at most " +
                       std::to_string(model::max_shared_bytes));
  }
  // What an SM has, shared by the CTAs that it is to hold.
  constexpr int of_an_sm = 65536;
  const int warps = (launch.threads() + 31) / 32 * program_->min_ctas;
  int registers = std::min(255, of_an_sm / (32 * warps) / 8 * 8);
  if (program_->max_registers > 0) registers = std::min(registers, program_->max_registers);
  if (launch.registers > registers) {
    throw Fault(0, "a thread has " + std::to_string(launch.registers) +
                       " registers, and the bounds of " + program_->entry + " leave it " +
                       std::to_string(registers));
  }
  if (launch.registers > 0) registers = launch.registers;
  return {.ctas = launch.ctas(),
          .cluster_size = launch.cluster,
          .threads = launch.threads(),
          .shared_bytes = bytes,
          .registers_per_thread = registers};
}

std::function<void()> Kernel::body(const std::byte* params, const Launch& launch,
                                   const std::vector<model::Allocation>& allocations) {
  globals_.resize(program_->globals.size());
  std::ranges::copy(program_->globals, globals_.begin());
  const Shared all{program_.get(),
                   params,
                   launch,
                   &allocations,
                   globals_.data(),
                   &executed_,
                   ran_.empty() ? nullptr : ran_.data()};
  return [all] { run_thread(all); };
}

void Kernel::add_variables(std::vector<model::Allocation>& allocations) {
  globals_.resize(program_->globals.size());
  if (globals_.empty()) return;
  allocations.push_back(
      {globals_.data(), static_cast<std::int64_t>(globals_.size()), "the text's variables", true});
}

void Kernel::note_statements() {
  ran_.assign(program_->ops.size(), 0);
}

std::vector<Edit> Kernel::edits() const {
  const Module module = parse(program_->text);
  const auto entry = std::ranges::find(module.entries, program_->entry, &Entry::name);
  // The last operation of a statement is the one that its guard may step over.
  std::vector<bool> ran;
  for (std::size_t i = 0; i + 1 < program_->begins.size(); ++i) {
    const std::uint32_t end = program_->begins[i + 1];
    ran.push_back(end > program_->begins[i] && !ran_.empty() && ran_[end - 1] != 0);
  }
  return ptx::edits(module, *entry, ran);
}

Kernel Kernel::with(const Edit& edit) const {
  return {edited(program_->text, edit), program_->name, program_->entry};
}

}  // namespace warpwright::ptx
