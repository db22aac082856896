#include "warpwright/c.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "warpwright/c_parts.h"
#include "warpwright/device/pack.h"
#include "warpwright/facts/machines.h"
#include "warpwright/weights/pack.h"

using warpwright::as_nearest;
using warpwright::as_rule;
using warpwright::as_tensor;
using warpwright::RefusalCode;
using warpwright::refuse;

namespace {

using warpwright::DType;
using warpwright::GemmOperands;
using warpwright::MatrixView;
using namespace warpwright::c;

// The numbers of types and modes are those of the library; tests/c compares them one by one.
static_assert(WW_DTYPE_LAST == warpwright::kDTypeCount - 1 &&
              WW_SCALING_LAST == std::size(warpwright::all_scalings) - 1 &&
              WW_ACTIVATION_LAST == std::size(warpwright::all_activations) - 1 &&
              WW_ACCUMULATION_PROMOTED == static_cast<int>(warpwright::Accumulation::promoted) &&
              WW_BIAS_COLUMNS == static_cast<int>(warpwright::Bias::columns) &&
              WW_QUANTISE_LAST == std::size(warpwright::all_quantisations) - 1 &&
              WW_INT64 == static_cast<int>(warpwright::OffsetType::int64));
static_assert(WW_SUMS_TABLE == static_cast<int>(warpwright::GroupSums::table) &&
              WW_PACKED_SM == static_cast<int>(warpwright::Int4Encoding::sm) &&
              WW_PACKED_EX == static_cast<int>(warpwright::Int4Encoding::ex) &&
              WW_PACKED_MXF4 == warpwright::packed::weight_form("mxf4")->number &&
              WW_SUMS_OPEN == static_cast<int>(warpwright::GroupSums::open) &&
              WW_PACKED_HEADER == warpwright::packed::kHeaderBytes);
static_assert(WW_RECIPE_FLOOR == 1 + static_cast<int>(warpwright::Recipe::floor) &&
              WW_RECIPE_LAST == 1 + static_cast<int>(warpwright::Recipe::nested_4_or_6) &&
              WW_SCALES_IN_ROWS == static_cast<int>(warpwright::ScaleOrder::rows));

// Sizes of structs when version 2 of the ABI began, or when they came.
constexpr std::size_t first_gemm = 576, first_int4 = 48;
static_assert(first_gemm == offsetof(ww_gemm, packed));

// What the structs of the ABI say, as values of the library.
class Reader {
 public:
  explicit Reader(bool plans_only) : plans_only_(plans_only) {}

  Fault read(const ww_gemm* given, GemmOperands& o) {
    if (given == nullptr) return null_argument("gemm");
    ww_gemm g;
    ww_gemm_init(&g);
    if (auto r = copy_struct(given, g, "ww_gemm", first_gemm)) return r;
    // A program of before cannot say that there are no factors.
    if (g.size < offsetof(ww_gemm, reserved)) g.no_factors = 1;
    if (auto r = sums_fault("sums", g.sums, "packed", g.packed != nullptr)) return r;
    if (auto r = words_fault(g, gemm_words)) return r;
    const auto is_apart = [&g](const ww_matrix& m) { return &m == &g.b && g.packed != nullptr; };
    if (auto r = read_matrices(g, o, gemm_matrices, is_apart)) return r;
    if (g.packed != nullptr) {
      auto& packed = o.packed.emplace();
      if (auto r = packed_weights("b", g.b, *g.packed, g.sums, o.b, packed)) return r;
      if (o.b.data == nullptr && !plans_only_) {
        return refuse(RefusalCode::bad_pointer, "b.data is a null pointer; ",
                      as_rule("packed weights lie there"));
      }
    }
    if (auto r = plans_only_ ? std::nullopt : factors_fault(g)) return r;
    o.alpha = g.alpha;
    o.beta = g.beta;
    o.scaling = static_cast<warpwright::Scaling>(g.scaling);
    o.accumulation = static_cast<warpwright::Accumulation>(g.accumulation);
    o.epilogue = {static_cast<warpwright::Activation>(g.activation), g.gated != WW_GATED_NONE,
                  static_cast<warpwright::Bias>(g.bias_along), g.gated == WW_GATED_INTERLEAVED,
                  static_cast<warpwright::QuantiseD>(g.quantise_d)};
    if (auto r = read_gate(g.gate, o.epilogue.activation, o.epilogue.gate)) return r;
    if (g.grouped == 0) {
      if (g.rows != nullptr || g.rows_divisor != 0) {
        return refuse(RefusalCode::bad_value, as_tensor("rows"),
                      " are given and grouped is 0: ", as_rule("set it to 1, or leave them out"));
      }
      if (g.offsets == nullptr) return std::nullopt;
      return refuse(RefusalCode::bad_value, as_tensor("offsets"),
                    " are given and grouped is 0: ", as_rule("set it to 1, or leave them out"));
    }
    o.groups = {g.offsets, static_cast<warpwright::OffsetType>(g.offset_type), g.expected_tokens,
                static_cast<warpwright::LengthSpread>(g.expected_lengths), g.expected_zipf};
    o.groups->rows = g.rows;
    o.groups->rows_divisor = g.rows_divisor;
    return std::nullopt;
  }

  /// A matrix that stands by itself.
  Fault read(const char* name, const ww_matrix* given, MatrixView& to) {
    return given == nullptr ? null_argument(name) : view_of(name, *given, to);
  }

  static Fault read(const ww_choices* given, warpwright::PlanChoices& choices, int& measure) {
    if (given == nullptr) return std::nullopt;
    ww_choices c = {};
    if (auto r = copy_struct(given, c, "ww_choices", sizeof(ww_choices))) return r;
    if (auto r = word_fault("batch_invariant", c.batch_invariant, 1)) return r;
    measure = c.measure;
    choices.batch_invariant = c.batch_invariant == 1;
    if (c.kernel != nullptr) choices.kernel = c.kernel;
    if ((c.cluster_m == 0) != (c.cluster_n == 0)) {
      const bool lacks_n = c.cluster_n == 0;
      return refuse(RefusalCode::bad_choice, lacks_n ? "cluster_m" : "cluster_n", " is ",
                    lacks_n ? c.cluster_m : c.cluster_n, " and ",
                    lacks_n ? "cluster_n" : "cluster_m", " is 0; ", as_rule("a cluster has both"),
                    ": the nearest legal is ", as_nearest("1, and both 0 leave it open"));
    }
    if (c.cluster_m != 0) choices.cluster = {c.cluster_m, c.cluster_n};
    return std::nullopt;
  }

  static Fault read(const ww_launch_options* given, warpwright::LaunchOptions& options) {
    if (given == nullptr) return std::nullopt;
    ww_launch_options o = {};
    if (auto r = copy_struct(given, o, "ww_launch_options", sizeof(ww_launch_options))) return r;
    if (auto r = word_fault("dependent", o.dependent, 1)) return r;
    if (auto r = word_fault("check_offsets", o.check_offsets, 1)) return r;
    if (auto r = word_fault("zero_rest", o.zero_rest, 1)) return r;
    if (auto r = word_fault("ww_launch_options.reserved", o.reserved, 0)) return r;
    options = {o.dependent == 1, o.check_offsets == 1, o.zero_rest == 1};
    return std::nullopt;
  }

 private:
  // The factors of nvf4 operands' tensors lie beside them.
  static Fault factors_fault(const ww_gemm& g) {
    if (g.alpha != 1) return std::nullopt;
    const warpwright::packed::WeightForm* const form =
        g.packed != nullptr ? warpwright::packed::weight_form(g.packed->encoding) : nullptr;
    const bool has_factor = form != nullptr && warpwright::packed::format_of(*form).has_factor;
    if (has_factor && !is_given(g.scale_b)) {
      return refuse(RefusalCode::bad_value, as_tensor("B"), " are ",
                    warpwright::packed::format_of(*form).word,
                    " weights, alpha is 1 and scale_b is not given; ",
                    as_rule("alpha is the factor of their tensor, as ww_fp4_pack and "
                            "ww_packed_factor tell it, or scale_b the factors, of 1 where there "
                            "are none"));
    }
    const bool is_nvf4 = g.scaling == WW_SCALING_BLOCK_SCALED && g.scale_a.dtype == WW_UE4M3 &&
                         g.scale_b.dtype == WW_UE4M3;
    if (g.packed != nullptr || !is_nvf4 || g.no_factors == 1) return std::nullopt;
    return refuse(RefusalCode::bad_value, as_tensor("B"), " is nvf4 as ", as_tensor("A"),
                  " is, and alpha is 1; ",
                  as_rule("alpha is the product of their tensors' factors"),
                  ": of tensors without factors the nearest is ", as_nearest("no_factors 1"));
  }

  bool plans_only_;
};

// The model knows the devices that have a description.
Fault architecture_fault(int32_t architecture) {
  std::set<int> all;
  for (const auto& machine : warpwright::known_machines()) all.insert(machine.architecture);
  if (all.contains(architecture)) return std::nullopt;
  std::string legal;
  for (const int one : all) legal += (legal.empty() ? "" : ", ") + std::to_string(one);
  const int nearest = *std::min_element(all.begin(), all.end(), [&](int x, int y) {
    return std::abs(std::int64_t{x} - architecture) < std::abs(std::int64_t{y} - architecture);
  });
  return refuse(RefusalCode::bad_value, "architecture is ", architecture, "; ",
                as_rule("the model has ", legal), ": the nearest is ", as_nearest(nearest));
}

Fault read_groups(const ww_scale_groups& given, warpwright::ScaleGroups& to) {
  if (auto r = word_fault("groups.offset_type", given.offset_type, WW_INT64)) return r;
  if (auto r = word_fault("groups.reserved", given.reserved, 0)) return r;
  to = {given.offsets, static_cast<warpwright::OffsetType>(given.offset_type), given.count};
  return std::nullopt;
}
ww_refusal* order_scales(warpwright::ScaleReordering& what, const ww_matrix* rows,
                         const ww_matrix* tiles, const ww_scale_groups* groups, int32_t device,
                         void* stream) {
  Reader reader(false);
  if (auto r = reader.read("rows", rows, what.rows)) return told(*r);
  if (auto r = reader.read("tiles", tiles, what.tiles)) return told(*r);
  if (groups != nullptr) {
    if (auto r = read_groups(*groups, what.groups)) return told(*r);
  }
  return told(warpwright::reorder_scales(what, device, stream));
}

Fault read_quantisation(const ww_block_quantisation* given, warpwright::Quantisation& to) {
  if (given == nullptr) return null_argument("what");
  ww_block_quantisation q = {};
  if (auto r = copy_struct(given, q, "ww_block_quantisation", sizeof q)) return r;
  if (auto r = word_fault("scale_is_given", q.scale_is_given, 1)) return r;
  if (auto r = word_fault("recipe", q.recipe, WW_RECIPE_LAST)) return r;
  if (auto r = word_fault("order", q.order, WW_SCALES_IN_ROWS)) return r;
  if (auto r = word_fault("ww_block_quantisation.reserved", q.reserved, 0)) return r;
  if (auto r = view_of("x", q.x, to.x)) return r;
  if (auto r = view_of("codes", q.codes, to.codes)) return r;
  if (auto r = view_of("scales", q.scales, to.scales)) return r;
  if (auto r = view_of("tensor_scale", q.tensor_scale, to.tensor_scale)) return r;
  to.scaling = warpwright::Scaling::block_scaled;
  to.given = q.scale_is_given == 1;
  if (q.recipe != WW_RECIPE_USUAL) to.recipe = static_cast<warpwright::Recipe>(q.recipe - 1);
  to.order = static_cast<warpwright::ScaleOrder>(q.order);
  return read_groups(q.groups, to.groups);
}

ww_refusal* make_workspace(const ww_device& device, std::int64_t bytes, ww_workspace** workspace) {
  if (bytes < 1) {
    return told(refuse(RefusalCode::bad_workspace, "a workspace of ", bytes,
                       " bytes; the nearest legal is ", as_nearest("1")));
  }
  auto memory = warpwright::run_memory(device, bytes);
  if (!memory) return told(memory.refusal());
  auto made = std::make_unique<ww_workspace>();
  made->memory = std::move(*memory);
  made->workspace = warpwright::Workspace(made->memory.get(), bytes);
  hand_out(workspace, std::move(made));
  return nullptr;
}

// Products by weights with factors of their tensors need to be told these.
Fault alphas_fault(const warpwright::weights::Source& source, const float* alphas) {
  const bool has_factors =
      std::ranges::any_of(source.experts, [](const auto& m) { return m.tensor != 1; });
  if (alphas != nullptr || !has_factors) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, "alphas is NULL, and the weights have factors of their ",
                "tensors: ", as_rule("give it a float for each expert, and a product its alpha"));
}

// What was packed: the factors, and the form.
void tell_packed(const warpwright::weights::Source& source, const warpwright::PackedFormat& format,
                 ww_packed_form& form, float* alphas) {
  const auto& experts = source.experts;
  for (std::size_t e = 0; alphas != nullptr && e < experts.size(); ++e) {
    alphas[e] = experts[e].tensor;
  }
  write_form(form, format, source.extents);
}

// Packs, or says with `packed` null of what form it would be.
ww_refusal* packed_at(const warpwright::weights::Source& source,
                      warpwright::weights::PackOptions options, ww_packed_form& form, float* alphas,
                      void* packed) {
  if (auto r = alphas_fault(source, alphas)) return told(*r);
  const auto format = warpwright::weights::packed_format(source, options);
  if (!format) return told(format.refusal());
  if (packed != nullptr) {
    options.encoding = format->encoding;
    options.exponents = format->exponents;
    const auto bytes = warpwright::weights::pack(source, options);
    if (!bytes) return told(bytes.refusal());
    std::memcpy(packed, bytes->data(), bytes->size());
  }
  tell_packed(source, *format, form, packed == nullptr ? nullptr : alphas);
  return nullptr;
}

// The same of weights that lie on the current CUDA device.
ww_refusal* packed_there(warpwright::weights::Source source,
                         const warpwright::weights::PackOptions& options, ww_packed_form& form,
                         float* alphas, void* packed, void* stream) {
  if (auto r = alphas_fault(source, alphas)) return told(*r);
  const auto there = warpwright::device::look_on_cuda(std::move(source), options, stream);
  if (!there) return told(there.refusal());
  if (packed != nullptr) {
    if (auto r = warpwright::device::pack_on_cuda(*there, packed, stream)) return told(*r);
  }
  tell_packed(there->source, there->format, form, packed == nullptr ? nullptr : alphas);
  return nullptr;
}

// A tensor of a checkpoint; those with a layout that has them may be left out.
using Tensors = warpwright::weights::CheckpointTensors;
struct CheckpointTensor {
  const char* name;
  const ww_matrix* given;
  MatrixView Tensors::*to;
  bool may_lack = true;
};

// Brings a tensor of the current CUDA device into host memory; one with gaps stays, and is refused.
Fault bring(MatrixView& v, std::vector<std::byte>& bytes) {
  const bool is_dense = (v.columns <= 1 || v.column_stride == 1) &&
                        (v.rows <= 1 || v.row_stride == v.columns) &&
                        (v.batch <= 1 || v.batch_stride == v.rows * v.columns);
  if (v.data == nullptr || !is_dense) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(v.batch * v.rows * v.columns *
                                        warpwright::numeric::bits(v.dtype) / 8));
  auto r = warpwright::device::copy_to_host(bytes.data(), v.data,
                                            static_cast<std::int64_t>(bytes.size()));
  v.data = bytes.data();
  return r;
}

// Packs tensors of a checkpoint, which lie in host memory or on a CUDA device.
ww_refusal* pack_checkpoint(const char* layout, std::initializer_list<CheckpointTensor> all,
                            ww_packed_form* form, float* alphas, void* packed,
                            std::int32_t device = WW_MODEL, void* stream = nullptr) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"layout", layout}, {"form", form}})) return told(*r);
    Tensors tensors;
    for (const auto& [name, given, to, may_lack] : all) {
      if (given == nullptr && may_lack) continue;
      if (auto r = Reader(false).read(name, given, tensors.*to)) return told(*r);
      if ((tensors.*to).data != nullptr) continue;
      return told(refuse(RefusalCode::bad_pointer, as_tensor(name), " is a null pointer; ",
                         as_rule("weights are packed from memory")));
    }
    ww_packed_form asked = {};
    if (auto r = copy_struct(form, asked, "ww_packed_form", sizeof(ww_packed_form)))
      return told(*r);
    const bool is_open = asked.encoding == WW_PACKED_ANY;
    const warpwright::packed::WeightForm* const wanted =
        is_open ? nullptr : warpwright::packed::weight_form(asked.encoding);
    warpwright::weights::PackOptions options;
    if (wanted != nullptr) {
      options = {wanted->storage.encoding, {}, wanted->tokens, wanted->storage.exponents};
    }
    const bool is_here = device == WW_MODEL;
    const warpwright::CurrentDevice current(device);
    std::vector<std::byte> index;
    std::vector<std::byte> factors;
    if (!is_here) {
      auto r = current.fault();
      if (!r) r = warpwright::device::synchronise_stream(stream);
      if (!r) r = bring(tensors.group_index, index);
      if (!r) r = bring(tensors.tensor_scale, factors);
      if (r) return told(*r);
    }
    auto source = is_here ? warpwright::weights::read_checkpoint(layout, std::span(&tensors, 1))
                          : warpwright::weights::read_places(layout, std::span(&tensors, 1));
    if (!source) return told(source.refusal());
    if (auto r = warpwright::weights::form_fault(*source, wanted)) return told(*r);
    if (source->format == nullptr || (wanted == nullptr && !is_open)) {
      warpwright::PackedFormat format;
      warpwright::packed::Extents extents;
      if (auto r = read_form(asked, format, extents, true)) return told(*r);
      options.scale = format.scale;
    }
    return is_here ? packed_at(*source, options, *form, alphas, packed)
                   : packed_there(std::move(*source), options, *form, alphas, packed, stream);
  });
}

}  // namespace

extern "C" {

int32_t ww_abi_version(void) {
  return WW_ABI_VERSION;
}
const char* ww_version(void) {
  return WARPWRIGHT_VERSION;
}

void ww_gemm_init_sized(ww_gemm* gemm, size_t size) {
  ww_gemm made = {};
  made.alpha = 1;
  made.beta = 1;
  made.sums = WW_SUMS_OPEN;
  init_struct(gemm, size, made);
}
void(ww_gemm_init)(ww_gemm* gemm) {
  ww_gemm_init_sized(gemm, first_gemm);
}

const char* ww_refusal_text(const ww_refusal* refusal) {
  return refusal == nullptr ? "" : refusal->refusal.reason.c_str();
}
const char* ww_refusal_code(const ww_refusal* refusal) {
  return refusal == nullptr ? "" : name(refusal->refusal.code);
}
const char* ww_refusal_tensor(const ww_refusal* refusal) {
  return refusal == nullptr ? "" : refusal->refusal.tensor.c_str();
}
const char* ww_refusal_rule(const ww_refusal* refusal) {
  return refusal == nullptr ? "" : refusal->refusal.rule.c_str();
}
const char* ww_refusal_nearest(const ww_refusal* refusal) {
  return refusal == nullptr ? "" : refusal->refusal.nearest.c_str();
}
void ww_refusal_free(ww_refusal* refusal) {
  if (refusal != no_memory()) delete refusal;
}

ww_refusal* ww_device_open(const char* name, ww_device** device) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"name", name}, {"device", device}})) return told(*r);
    const auto found = warpwright::device_named(name);
    if (!found) return told(found.refusal());
    hand_out(device, std::make_unique<ww_device>(ww_device{*found}));
    return nullptr;
  });
}
ww_refusal* ww_device_model(int32_t sms, int32_t architecture, ww_device** device) {
  return guarded([&]() -> ww_refusal* {
    if (device == nullptr) return told(null_argument("device"));
    if (sms < 1 || sms > 1024) {
      return told(refuse(RefusalCode::bad_value, "the model has ", sms,
                         " SMs; the nearest legal number is ", as_nearest(sms < 1 ? 1 : 1024)));
    }
    if (auto r = architecture_fault(architecture)) return told(*r);
    hand_out(device, std::make_unique<ww_device>(ww_device{
                         {warpwright::model_facts(sms, architecture), warpwright::run_on_model}}));
    return nullptr;
  });
}
const char* ww_device_name(const ww_device* device) {
  return device == nullptr ? "" : device->facts.name.c_str();
}
void ww_device_free(ww_device* device) {
  delete device;
}
int32_t ww_cuda_device_count(void) {
  try {
    return static_cast<int32_t>(warpwright::device::cuda_devices().size());
  } catch (...) {
    return 0;
  }
}

ww_refusal* ww_plan_make(const ww_gemm* gemm, const ww_device* device, const ww_choices* choices,
                         ww_plan** plan) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"device", device}, {"plan", plan}})) return told(*r);
    GemmOperands operands;
    if (auto r = Reader(true).read(gemm, operands)) return told(*r);
    warpwright::PlanChoices wanted;
    int measure = 0;
    if (auto r = Reader::read(choices, wanted, measure)) return told(*r);
    auto made = warpwright::measured_plan(operands, device->facts, device->index, wanted, measure);
    if (!made) return told(made.refusal());
    hand_out(plan, handle_of<ww_plan>(std::make_shared<const warpwright::Plan>(std::move(*made))));
    return nullptr;
  });
}
ww_refusal* ww_plan_fastest(const ww_plan* const* plans, int32_t count, int32_t* which,
                            ww_plan** plan) {
  return fastest_of(plans, count, which, plan);
}
const char* ww_plan_name(const ww_plan* plan) {
  return text_of(plan, [](const ww_plan& p) -> const std::string& { return p.name; });
}
const char* ww_plan_kernel(const ww_plan* plan) {
  return text_of(plan, [](const ww_plan& p) -> const std::string& { return p.plan->kernel; });
}
const char* ww_plan_explain(const ww_plan* plan) {
  return text_of(plan, [](const ww_plan& p) -> const std::string& { return p.explain; });
}
const char* ww_plan_line(const ww_plan* plan) {
  return text_of(plan, [](const ww_plan& p) -> const std::string& { return p.line; });
}
int64_t ww_plan_workspace_bytes(const ww_plan* plan) {
  return plan == nullptr ? 0 : plan->plan->workspace_bytes;
}
void ww_plan_free(ww_plan* plan) {
  delete plan;
}

ww_refusal* ww_workspace_make(const ww_device* device, int64_t bytes, ww_workspace** workspace) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"device", device}, {"workspace", workspace}})) return told(*r);
    return make_workspace(*device, bytes, workspace);
  });
}
ww_refusal* ww_workspace_over(void* data, int64_t bytes, ww_workspace** workspace) {
  return guarded([&]() -> ww_refusal* {
    if (workspace == nullptr) return told(null_argument("workspace"));
    auto made = std::make_unique<ww_workspace>();
    made->workspace = warpwright::Workspace(data, bytes);
    hand_out(workspace, std::move(made));
    return nullptr;
  });
}
int64_t ww_workspace_bytes(const ww_workspace* workspace) {
  return workspace == nullptr ? 0 : workspace->workspace.bytes();
}
void ww_workspace_free(ww_workspace* workspace) {
  delete workspace;
}

ww_refusal* ww_prepare(const ww_plan* plan, ww_workspace* workspace, void* stream) {
  return guarded([&]() -> ww_refusal* {
    if (plan == nullptr) return told(null_argument("plan"));
    warpwright::Workspace none;
    return told(warpwright::prepare(*plan->plan, workspace ? workspace->workspace : none, stream));
  });
}
ww_refusal* ww_launch(const ww_plan* plan, const ww_gemm* gemm, ww_workspace* workspace,
                      void* stream, const ww_launch_options* options) {
  return guarded([&]() -> ww_refusal* {
    if (plan == nullptr) return told(null_argument("plan"));
    GemmOperands operands;
    if (auto r = Reader(false).read(gemm, operands)) return told(*r);
    warpwright::LaunchOptions how;
    if (auto r = Reader::read(options, how)) return told(*r);
    warpwright::Workspace none;
    return told(warpwright::launch(*plan->plan, operands, workspace ? workspace->workspace : none,
                                   stream, how));
  });
}
ww_refusal* ww_workspace_offsets_fault(const ww_workspace* workspace, const ww_plan* plan,
                                       void* stream) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"workspace", workspace}, {"plan", plan}})) return told(*r);
    return told(warpwright::offsets_fault(*plan->plan, workspace->workspace, stream));
  });
}

ww_refusal* ww_run(const ww_gemm* gemm, int32_t device, const ww_choices* choices, void* stream,
                   const ww_launch_options* options, ww_plan** made) {
  if (made != nullptr) *made = nullptr;
  return guarded([&]() -> ww_refusal* {
    GemmOperands operands;
    if (auto r = Reader(false).read(gemm, operands)) return told(*r);
    warpwright::RunOptions how{device, stream, {}, {}};
    if (auto r = Reader::read(choices, how.choices, how.measure)) return told(*r);
    if (auto r = Reader::read(options, how.launch)) return told(*r);
    std::shared_ptr<const warpwright::Plan> fresh;
    Fault refused = warpwright::run(operands, how, made != nullptr ? &fresh : nullptr);
    if (fresh != nullptr) hand_out(made, handle_of<ww_plan>(std::move(fresh)));
    return told(std::move(refused));
  });
}

ww_refusal* ww_quantise(const ww_matrix* x, const ww_matrix* codes, const ww_matrix* scales,
                        int32_t scaling, int32_t scale_is_given, int32_t device, void* stream) {
  return guarded([&]() -> ww_refusal* {
    Reader reader(false);
    warpwright::Quantisation what;
    if (auto r = reader.read("x", x, what.x)) return told(*r);
    if (auto r = reader.read("codes", codes, what.codes)) return told(*r);
    if (auto r = reader.read("scales", scales, what.scales)) return told(*r);
    if (auto r = word_fault("scaling", scaling, WW_SCALING_LAST)) return told(*r);
    if (auto r = word_fault("scale_is_given", scale_is_given, 1)) return told(*r);
    what.scaling = static_cast<warpwright::Scaling>(scaling);
    what.given = scale_is_given == 1;
    return told(warpwright::quantise(what, device, stream));
  });
}

ww_refusal* ww_quantise_blocks(const ww_block_quantisation* what, int32_t device, void* stream) {
  return guarded([&]() -> ww_refusal* {
    warpwright::Quantisation quantisation;
    if (auto r = read_quantisation(what, quantisation)) return told(*r);
    return told(warpwright::quantise(quantisation, device, stream));
  });
}

ww_refusal* ww_order_scales(const ww_matrix* rows, const ww_matrix* tiles, int32_t to,
                            const ww_scale_groups* groups, int32_t device, void* stream) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = word_fault("to", to, WW_SCALES_IN_ROWS)) return told(*r);
    warpwright::ScaleReordering what;
    what.to = static_cast<warpwright::ScaleOrder>(to);
    return order_scales(what, rows, tiles, groups, device, stream);
  });
}
ww_refusal* ww_spread_scales(const ww_matrix* rows, const ww_matrix* tiles, int32_t rows_each,
                             int32_t blocks_each, const ww_scale_groups* groups, int32_t device,
                             void* stream) {
  return guarded([&]() -> ww_refusal* {
    warpwright::ScaleReordering what;
    what.rows_each = rows_each;
    what.blocks_each = blocks_each;
    return order_scales(what, rows, tiles, groups, device, stream);
  });
}

void ww_packed_form_init_sized(ww_packed_form* form, size_t size) {
  ww_packed_form made = {};
  made.experts = 1;
  made.group = 128;
  made.encoding = WW_PACKED_ANY;
  made.scale = WW_BF16;
  init_struct(form, size, made);
}
void(ww_packed_form_init)(ww_packed_form* form) {
  ww_packed_form_init_sized(form, first_int4);
}
ww_refusal* ww_packed_bytes(const ww_packed_form* form, int64_t* bytes) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"form", form}, {"bytes", bytes}})) return told(*r);
    warpwright::PackedFormat format;
    warpwright::packed::Extents extents;
    if (auto r = read_form(*form, format, extents, true)) return told(*r);
    *bytes = WW_PACKED_HEADER + warpwright::packed::data_bytes(format, extents);
    return nullptr;
  });
}
ww_refusal* ww_packed_read(const void* bytes, int64_t count, ww_packed_form* form) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"bytes", bytes}, {"form", form}})) return told(*r);
    if (count < WW_PACKED_HEADER) {
      return told(refuse(RefusalCode::bad_value, "count is ", count, "; ",
                         as_rule("only the header has more"), ": the nearest legal is ",
                         as_nearest(int{WW_PACKED_HEADER})));
    }
    const std::span all(static_cast<const std::byte*>(bytes), static_cast<std::size_t>(count));
    const auto header = count == WW_PACKED_HEADER ? warpwright::weights::parse_header(all)
                                                  : warpwright::weights::parse_packed(all);
    if (!header) return told(header.refusal());
    (ww_packed_form_init)(form);
    write_form(*form, header->format, header->extents);
    return nullptr;
  });
}
ww_refusal* ww_packed_factor(const void* bytes, float* factor) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"bytes", bytes}, {"factor", factor}})) return told(*r);
    const auto header = warpwright::weights::parse_header(
        std::span(static_cast<const std::byte*>(bytes), WW_PACKED_HEADER));
    if (!header) return told(header.refusal());
    const bool has_factor = warpwright::packed::has_factor(header->format);
    *factor = !has_factor ? 1 : header->lacks_factor() ? 0 : header->factor;
    return nullptr;
  });
}
ww_refusal* ww_int4_quantise(const ww_matrix* weights, ww_packed_form* form, void* packed) {
  return guarded([&]() -> ww_refusal* {
    if (auto r = null_fault({{"form", form}, {"packed", packed}})) return told(*r);
    MatrixView view;
    if (auto r = Reader(false).read("weights", weights, view)) return told(*r);
    warpwright::PackedFormat format;
    warpwright::packed::Extents extents;
    if (auto r = read_form(*form, format, extents, true, false)) return told(*r);
    const auto quantised = warpwright::weights::quantise(
        std::span(&view, 1), {format.encoding, format.group, format.scale, format.zero_points});
    if (!quantised) return told(quantised.refusal());
    return packed_at(warpwright::weights::source_of(*quantised),
                     {format.encoding, format.scale, format.tokens}, *form, nullptr, packed);
  });
}
ww_refusal* ww_int4_pack(const char* layout, const ww_matrix* codes, const ww_matrix* scales,
                         const ww_matrix* zeros, const ww_matrix* group_index, ww_packed_form* form,
                         void* packed) {
  return pack_checkpoint(layout,
                         {{"codes", codes, &Tensors::codes, false},
                          {"scales", scales, &Tensors::scales, false},
                          {"zeros", zeros, &Tensors::zeros},
                          {"group_index", group_index, &Tensors::group_index}},
                         form, nullptr, packed);
}
ww_refusal* ww_fp4_pack(const char* layout, const ww_matrix* codes, const ww_matrix* scales,
                        const ww_matrix* tensor_scale, ww_packed_form* form, float* alphas,
                        void* packed) {
  return pack_checkpoint(layout,
                         {{"codes", codes, &Tensors::codes, false},
                          {"scales", scales, &Tensors::scales, false},
                          {"tensor_scale", tensor_scale, &Tensors::tensor_scale}},
                         form, alphas, packed);
}
ww_refusal* ww_pack_on(const char* layout, const ww_matrix* codes, const ww_matrix* scales,
                       const ww_matrix* zeros, const ww_matrix* group_index,
                       const ww_matrix* tensor_scale, ww_packed_form* form, float* alphas,
                       void* packed, int32_t device, void* stream) {
  return pack_checkpoint(layout,
                         {{"codes", codes, &Tensors::codes, false},
                          {"scales", scales, &Tensors::scales, false},
                          {"zeros", zeros, &Tensors::zeros},
                          {"group_index", group_index, &Tensors::group_index},
                          {"tensor_scale", tensor_scale, &Tensors::tensor_scale}},
                         form, alphas, packed, device, stream);
}
ww_refusal* ww_int4_pack_on(const ww_packed_form* form, const void* codes, const void* scales,
                            int32_t scale_type, const void* zeros, void* packed, int32_t device,
                            void* stream) {
  return guarded([&]() -> ww_refusal* {
    if (form == nullptr) return told(null_argument("form"));
    warpwright::PackedFormat format;
    warpwright::packed::Extents e;
    if (auto r = read_form(*form, format, e, false, false)) return told(*r);
    if (scale_type != WW_BF16 && scale_type != WW_F16 && scale_type != WW_F32) {
      return told(refuse(RefusalCode::bad_type, "scale_type is ", scale_type,
                         "; the nearest legal is ", as_nearest("WW_BF16, ", int{WW_BF16})));
    }
    const bool has_zeros = format.zero_points == warpwright::ZeroPoints::groups;
    for (const auto& [name, pointer, is_read] :
         {std::tuple{"codes", codes, true},
          {"scales", scales, true},
          {"zeros", zeros, has_zeros},
          {"packed", static_cast<const void*>(packed), true}}) {
      if (pointer == nullptr && is_read) return told(null_argument(name));
    }
    if (zeros != nullptr && !has_zeros) {
      return told(refuse(RefusalCode::bad_pointer, "zeros is given, and form.zero_points is 0: ",
                         as_rule("leave zeros NULL")));
    }
    if (e.n < 1 || e.k < 1 || e.k % format.group != 0) {
      return told(refuse(RefusalCode::bad_shape, "N is ", e.n, " and K is ", e.k, "; ",
                         as_rule("K is a multiple of the group, ", format.group)));
    }
    const auto at = [](const void* data) { return static_cast<const std::byte*>(data); };
    const warpwright::CurrentDevice current(device);
    if (current.fault()) return told(*current.fault());
    const auto there = warpwright::device::look_on_cuda(
        warpwright::weights::plain_source(e, format.group, static_cast<DType>(scale_type), "",
                                          at(codes), at(scales), at(zeros)),
        {format.encoding, format.scale, format.tokens}, stream);
    if (!there) return told(there.refusal());
    return told(warpwright::device::pack_on_cuda(*there, packed, stream));
  });
}

void ww_int4_init_sized(ww_packed_form* form, size_t size) {  // old name
  ww_packed_form_init_sized(form, size);
}
void(ww_int4_init)(ww_packed_form* form) {  // old name
  (ww_packed_form_init)(form);
}
ww_refusal* ww_int4_bytes(const ww_packed_form* form, int64_t* bytes) {  // old name
  return ww_packed_bytes(form, bytes);
}
ww_refusal* ww_int4_read(const void* bytes, int64_t count, ww_packed_form* form) {  // old name
  return ww_packed_read(bytes, count, form);
}
ww_refusal* ww_int4_factor(const void* bytes, float* factor) {  // old name
  return ww_packed_factor(bytes, factor);
}

}  // extern "C"
