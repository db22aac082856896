#include "warpwright/device/launch.h"

#include <algorithm>

#include "warpwright/device/launch_parts.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

Result<const device::Backend*> backend_of(const Plan& plan) {
  return device::backend_for(plan.device);
}

// Bytes in front of which a launch writes to some: flags, then the status of the offsets, then the
// rest.
std::int64_t used_bytes(const Plan& plan, bool check_offsets) {
  if (!plan.problem.groups && plan.ctas > 0) return plan.workspace_bytes;
  if (plan.a_copy || plan.b_copy || check_offsets) {
    return plan.workspace_bytes;
  }
  return plan.ctas > 0 ? plan.flag_bytes : 0;
}

// Why a launch that needs so many bytes cannot have this memory, or nothing.
std::optional<Refusal> memory_fault(const void* data, std::int64_t bytes, std::int64_t needed) {
  constexpr std::uintptr_t alignment = 256;
  if (data == nullptr) {
    return refuse(RefusalCode::bad_workspace, "there is no workspace; ",
                  as_rule("the plan needs ", needed, " bytes"));
  }
  if (bytes < needed) {
    return refuse(RefusalCode::bad_workspace, "the workspace has ", bytes, " bytes; ",
                  as_rule("the plan needs ", needed, " bytes"));
  }
  const std::uintptr_t off = reinterpret_cast<std::uintptr_t>(data) % alignment;
  if (off == 0) return std::nullopt;
  return refuse(RefusalCode::bad_workspace, "the workspace starts ", static_cast<std::int64_t>(off),
                " bytes behind a multiple of 256; ", as_rule("it must start at one"));
}

Refusal relied_fault(std::int64_t relied) {
  return refuse(RefusalCode::bad_workspace,
                "a captured launch of another plan relies on the first ", relied,
                " bytes of the workspace, and this plan writes to them; ",
                as_rule("give it a workspace of its own"));
}

}  // namespace

namespace device {

const Backend*& model_backend() {
  static const Backend* backend = nullptr;
  return backend;
}

Result<const Backend*> backend_for(const DeviceFacts& facts) {
  if (!facts.is_model) return &cuda_backend();
  const Backend* const model = model_backend();
  if (model != nullptr) return model;
  return refuse(RefusalCode::no_device,
                "the plan was made for the model, which this program lacks; ",
                as_rule("link warpwright::model and include warpwright/model.h"));
}

bool needs_workspace(const Plan& plan, bool check_offsets) {
  const std::int64_t used = used_bytes(plan, check_offsets);
  // Without a counter of tiles those that would be drawn are static persistent tiles.
  const bool counts =
      plan.tile_source == kernel::TileSource::dynamic_persistent && used == plan.flag_bytes;
  return used > 0 && !counts;
}

std::optional<Refusal> launch_matched(const Plan& plan, const GemmOperands& operands,
                                      Workspace& workspace, void* stream,
                                      const LaunchOptions& options) {
  const auto backend = backend_of(plan);
  if (!backend) return backend.refusal();
  if ((options.check_offsets || options.zero_rest) && !plan.problem.groups) {
    return refuse(RefusalCode::bad_value, options.check_offsets ? "check_offsets" : "zero_rest",
                  " is asked for, and the product has no groups: ", as_rule("leave it out"));
  }
  if (auto r = workspace.fault(plan, options.check_offsets)) return r;
  if (options.check_offsets) workspace.note_check();
  return (*backend)->launch(plan, operands, workspace, stream, options);
}

}  // namespace device

Result<Workspace> Workspace::make(const Plan& plan) {
  const auto backend = backend_of(plan);
  if (!backend) return backend.refusal();
  return of(*backend, plan.workspace_bytes);
}

Result<Workspace> Workspace::of(const device::Backend* backend, std::int64_t bytes) {
  if (bytes == 0) return Workspace();
  auto memory = backend->allocate(bytes);
  if (!memory) return memory.refusal();
  Workspace made(memory->get(), bytes);
  made.owned_ = *memory;
  return made;
}

std::optional<Refusal> Workspace::fault(const Plan& plan, bool check_offsets) const {
  const std::int64_t used = used_bytes(plan, check_offsets);
  if (used == 0 || (data_ == nullptr && !device::needs_workspace(plan, check_offsets))) {
    return std::nullopt;
  }
  if (auto r = memory_fault(data_, bytes_, plan.workspace_bytes)) return r;
  if (plan.flag_bytes >= relied_ || used <= plan.flag_bytes) return std::nullopt;
  return relied_fault(relied_);
}

std::optional<Refusal> Workspace::fault(std::int64_t bytes, std::int64_t flag_bytes) const {
  if (auto r = memory_fault(data_, bytes_, bytes)) return r;
  if (flag_bytes >= relied_) return std::nullopt;
  return relied_fault(relied_);
}

Workspace::Flags Workspace::note_launch(const Plan& plan, bool captured, bool check_offsets) {
  const std::int64_t used = used_bytes(plan, check_offsets);
  if (used == 0 || data_ == nullptr) return Flags::are_clear;
  return note(plan.flag_bytes, used, captured);
}

Workspace::Flags Workspace::note_launch(std::int64_t flag_bytes, bool captured) {
  return note(flag_bytes, INT64_MAX, captured);
}

Workspace::Flags Workspace::note(std::int64_t flag_bytes, std::int64_t used, bool captured) {
  const bool clear = clear_ >= flag_bytes;
  const std::int64_t kept = used > flag_bytes ? flag_bytes : INT64_MAX;
  if (captured) {
    if (clear) relied_ = std::max(relied_, flag_bytes);
    trusted_ = std::min(trusted_, kept);
  }
  clear_ = std::min(clear_, kept);
  if (!clear && !captured) clear_ = std::min(flag_bytes, trusted_);
  return clear ? Flags::are_clear : Flags::clear_first;
}

void Workspace::note_cleared(std::int64_t flag_bytes) {
  clear_ = std::max(clear_, std::min(flag_bytes, trusted_));
}

void Workspace::forget() {
  clear_ = 0;
}

std::optional<Refusal> launch(const Plan& plan, const GemmOperands& operands, Workspace& workspace,
                              void* stream, const LaunchOptions& options) {
  if (const auto backend = backend_of(plan); !backend) return backend.refusal();
  if (auto r = mismatch(plan, operands)) return r;
  return device::launch_matched(plan, operands, workspace, stream, options);
}

std::optional<Refusal> launch(const Plan& plan, const GemmOperands& operands, void* stream,
                              const LaunchOptions& options) {
  Workspace none;
  return launch(plan, operands, none, stream, options);
}

// Is there no status of a check to read?
static std::optional<Refusal> status_fault(const Plan& plan, const Workspace& workspace) {
  if (const auto backend = backend_of(plan); !backend) return backend.refusal();
  if (!plan.problem.groups) {
    return refuse(RefusalCode::bad_value, "the plan's product has no groups, and no ",
                  as_tensor("offsets"));
  }
  if (auto r = workspace.fault(plan, true)) return r;
  if (!workspace.checks_offsets()) {
    return refuse(RefusalCode::bad_workspace, "no launch in this workspace has checked its ",
                  as_tensor("offsets"), "; ", as_rule("launch with check_offsets"));
  }
  return std::nullopt;
}

Result<std::uint32_t> offsets_status(const Plan& plan, const Workspace& workspace, void* stream) {
  if (auto r = status_fault(plan, workspace)) return *r;
  const auto* const word = static_cast<const std::byte*>(workspace.data()) + plan.flag_bytes;
  return (*backend_of(plan))->read_word(word, stream);
}

Result<std::uint64_t> rows_status(const Plan& plan, const Workspace& workspace, void* stream) {
  if (auto r = status_fault(plan, workspace)) return *r;
  if (!plan.problem.is_by_index()) return std::uint64_t{0};
  const auto backend = backend_of(plan);
  const auto* const words = static_cast<const std::byte*>(workspace.data()) + plan.flag_bytes;
  const auto place = (*backend)->read_word(words + 4, stream);
  if (!place) return place.refusal();
  const auto index = (*backend)->read_word(words + 8, stream);
  if (!index) return index.refusal();
  return std::uint64_t{*index} << 32 | *place;
}

std::optional<Refusal> offsets_fault(const Plan& plan, const Workspace& workspace, void* stream) {
  const auto status = offsets_status(plan, workspace, stream);
  if (!status) return status.refusal();
  auto sentence = offsets_fault(*status);
  if (!sentence) {
    const auto rows = rows_status(plan, workspace, stream);
    if (!rows) return rows.refusal();
    sentence = rows_fault(*rows, plan.problem);
  }
  if (!sentence) return std::nullopt;
  return refuse(RefusalCode::bad_value, *sentence);
}

std::optional<Refusal> prepare(const Plan& plan, Workspace& workspace, void* stream) {
  const auto backend = backend_of(plan);
  if (!backend) return backend.refusal();
  if (plan.ctas == 0) return std::nullopt;
  if (plan.flag_bytes > 0) {
    if (auto r = workspace.fault(plan)) return r;
  }
  return (*backend)->prepare(plan, workspace, stream);
}

}  // namespace warpwright
