#include "cli/commands/moe/moe_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "cli/commands/gemm/cuda_memory.h"
#include "cli/commands/gemm/fp8_weights.h"
#include "cli/commands/gemm/gemm_arguments.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/model_time.h"
#include "cli/compute/block_scaled.h"
#include "cli/compute/expert_shapes.h"
#include "cli/compute/packing.h"
#include "cli/compute/random.h"
#include "cli/compute/token_lengths.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "cli/reports/progress.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/plan/moe/moe_alternatives.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/reference/mixture.h"

namespace warpwright::cli {
namespace {

bool is_of_moe(Scaling scaling) {
  return scaling == Scaling::none || scaling == Scaling::row_column ||
         scaling == Scaling::blockwise;
}

// The value of an option, that of the model, or a refusal.
std::int64_t wanted(const char* option, const std::optional<std::int64_t>& typed,
                    std::int64_t of_model) {
  if (typed) return *typed;
  if (of_model > 0) return of_model;
  throw InputError(
      std::string(option) + " is missing: " +
      as_rule("say --tokens, --experts, --top-k (but of one expert), --hidden and --inner, or "
              "--tokens and --model, for example qwen3-30b") +
      ".");
}

// All elements times a factor, rounded again.
HostTensor scaled(HostTensor tensor, double factor, DType to) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    float x = 0;
    std::memcpy(&x, tensor.bytes.data() + i * 4, 4);
    x = static_cast<float>(x * factor);
    std::memcpy(tensor.bytes.data() + i * 4, &x, 4);
  }
  return convert(tensor, to);
}

// Positive, and those of a token add up to 1; on the input one is any.
HostTensor router_weights(const MixtureOperands& o, std::uint64_t seed, std::uint64_t stream) {
  const std::int64_t tokens = o.tokens();
  const std::int64_t top_k = o.top_k();
  HostTensor weights = random_scales({tokens, top_k}, seed, stream);
  if (o.apply_router_weight_on_input) return weights;
  auto* const all = reinterpret_cast<float*>(weights.bytes.data());
  for (std::int64_t t = 0; t < tokens; ++t) {
    float sum = 0;
    for (std::int64_t j = 0; j < top_k; ++j) sum += all[t * top_k + j];
    for (std::int64_t j = 0; j < top_k; ++j) all[t * top_k + j] /= sum;
  }
  return weights;
}

double bytes_of(const MixtureOperands& o) {
  double bytes = 0;
  for_each_field(o, [&bytes](const char*, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const MatrixView&>) {
      bytes += static_cast<double>(field.batch) * static_cast<double>(field.rows) *
               static_cast<double>(field.columns) * numeric::bits(field.dtype) / 8;
    }
  });
  return bytes;
}

void set_words(const MoeOptions& o, MixtureOperands& m) {
  if (!o.activation.empty()) {
    m.activation = chosen_mode("--activation", o.activation, all_activations,
                               m.is_gated ? gates : stands_alone);
  }
  if (!o.combine.empty()) {
    m.combine = chosen_mode("--combine", o.combine, all_combines, any<Combine>);
    m.d.rows = m.results();
    m.d.batch_stride = m.d.rows * m.d.columns;
  }
  m.apply_router_weight_on_input = o.weights_on_input;
  m.routed_scaling_factor = parse_scalar("--routed-scaling-factor", o.routed_scaling_factor, 1);
  if (!o.shared_output.empty()) {
    choose<DType>(m.shared_output.dtype, "--shared-output", o.shared_output,
                  {{"bf16", DType::bf16}, {"fp16", DType::f16}, {"f32", DType::f32}});
    const DType type = m.shared_output.dtype;
    m.shared_output = m.x;
    m.shared_output.dtype = type;
  }
  if (!m.reads_weights()) m.topk_weights = {};
  m.gate = parse_gate(o.gate, m.activation);
  choose<bool>(m.interleaved, "--gate-up", o.gate_up, {{"halves", false}, {"interleaved", true}});
  choose<OffsetType>(m.id_type, "--ids", o.ids,
                     {{"int32", OffsetType::int32}, {"int64", OffsetType::int64}});
  if (!o.d_dtype.empty()) {
    const auto type = numeric::parse_dtype(o.d_dtype);
    if (type != DType::f32 && type != m.row_type()) {
      throw InputError("--d-dtype is \"" + o.d_dtype + "\"; " +
                       as_rule("the result is ", type_name(m.row_type()), " or f32") +
                       ": the nearest is " + as_nearest(type_name(m.row_type())) + ".");
    }
    m.d.dtype = *type;
  }
  m.first_expert = o.first_expert.value_or(0);
  m.experts_total = o.experts_total.value_or(0);
  Groups hints;
  expect_lengths(hints, o.choices.expected_lengths);
  m.expected_lengths = hints.expected_lengths;
  m.expected_zipf = hints.expected_zipf;
}

}  // namespace

MixtureChoices mixture_choices(const MoeChoiceOptions& o) {
  MixtureChoices choices;
  choices.batch_invariant = o.batch_invariant;
  choose<bool>(choices.by_index, "--by-index", o.by_index, {{"yes", true}, {"no", false}});
  choose<bool>(choices.quantises_in_epilogue, "--quantise-in-epilogue", o.quantise_in_epilogue,
               {{"yes", true}, {"no", false}});
  choose<bool>(choices.gates_in_epilogue, "--gate-in-epilogue", o.gate_in_epilogue,
               {{"yes", true}, {"no", false}});
  choose<bool>(choices.early_weights, "--early-weights", o.early_weights,
               {{"yes", true}, {"no", false}});
  choose<std::optional<bool>>(choices.sort_with_gather, "--sort-with-gather", o.sort_with_gather,
                              {{"auto", std::nullopt}, {"yes", true}, {"no", false}});
  choose<std::optional<bool>>(choices.one_launch, "--one-launch", o.one_launch,
                              {{"auto", std::nullopt}, {"yes", true}, {"no", false}});
  choices.sort_parts = o.sort_parts;
  if (!o.first_kernel.empty()) choices.first_kernel = o.first_kernel;
  if (!o.second_kernel.empty()) choices.second_kernel = o.second_kernel;
  return choices;
}

MoeTypes moe_types(const std::string& dtype, const std::string& weights,
                   const std::string& scaling) {
  MoeTypes types;
  if (const auto formats = micro_formats_of(dtype); formats && weights.empty()) {
    types.weights = formats->second.element;
    const bool is_one = dtype.find(',') == std::string::npos;
    types.tokens = is_one ? DType::f32 : formats->first.element;
    types.scale = formats->second.scale;
    types.scaling = Scaling::block_scaled;
    if (formats->first.scale == formats->second.scale) {
      if (scaling.empty()) return types;
      throw InputError("--scaling is \"" + scaling + "\", and --dtype \"" + dtype + "\"; " +
                       as_rule("such a format says its scales") + ": leave --scaling out.");
    }
    throw InputError("--dtype is \"" + dtype + "\"; " +
                     as_rule("scales of tokens and of weights are of one type in a mixture") +
                     ": the nearest is " + as_nearest(formats->second.word) + ".");
  }
  // `--dtype int4` says it all, too.
  const std::string word = weights.empty() && dtype == "int4" ? "int4" : weights;
  const bool is_packed = !word.empty();
  DType type = DType::bf16;
  if (is_packed) {
    types.packed.emplace().format =
        packed_for_tokens(chosen_weights(word), dtype == "int4" ? "" : dtype);
    types.weights = types.packed->format.code;
    type = types.packed->format.tokens;
  } else {
    const auto named = numeric::parse_dtype(dtype.empty() ? "bf16" : dtype);
    if (named != DType::bf16 && named != DType::e4m3) {
      throw InputError("--dtype is \"" + dtype + "\"; " +
                       as_rule("it must be bf16, e4m3, int4, mxf8, mxf6, mxf4 or nvf4, or two of "
                               "these, for tokens and weights, such as mxf8,mxf4") +
                       ": the nearest is " + as_nearest("bf16") + ".");
    }
    types.weights = type = *named;
  }
  const bool is_wide = numeric::bits(type) == 16;
  if (is_wide) types.x = type;
  types.scaling = is_wide ? Scaling::none : is_packed ? Scaling::row_column : Scaling::blockwise;
  if (!scaling.empty()) types.scaling = chosen_mode("--scaling", scaling, all_scalings, is_of_moe);
  return types;
}

MixtureOperands packed_mixture(const MoeExtents& e, const MoeTypes& types) {
  const auto packed = [](DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
    return MatrixView{nullptr, type, rows, columns, columns, 1, batch, rows * columns};
  };
  MixtureOperands m;
  m.x = packed(types.x, 1, e.tokens, e.hidden);
  if (e.top_k != 0) {
    m.topk_ids = packed(DType::s32, 1, e.tokens, e.top_k);
    m.topk_weights = packed(DType::f32, 1, e.tokens, e.top_k);
  }
  m.is_gated = e.is_gated;
  const std::int64_t rows13 = m.parts13() * e.inner;
  m.w13 = packed(types.weights, e.experts, rows13, e.hidden);
  m.w2 = packed(types.weights, e.experts, e.hidden, e.inner);
  m.d = packed(m.row_type(), 1, e.tokens, e.hidden);
  m.scaling = types.scaling;
  if (types.scaling == Scaling::block_scaled) {
    m.tokens_as = types.tokens;
    const auto tiles = [&](const MatrixView& w, std::int64_t rows) {
      return packed(types.scale, e.experts, rows,
                    block_scales::padded_columns(w.columns, micro_block(types.scale)));
    };
    m.scale_w13 = tiles(m.w13, m.parts13() * block_scales::padded_rows(e.inner));
    m.scale_w2 = tiles(m.w2, block_scales::padded_rows(e.hidden));
    if (types.scale == DType::ue4m3) {
      m.factor_w13 = m.factor_w2 = packed(DType::f32, 1, e.experts, 1);
      m.factor_x = m.factor_inner = packed(DType::f32, 1, 1, 1);
    }
  }
  const auto blocks = [&](std::int64_t n) { return ScaleReach::count(n, types.block); };
  if (m.has_codes()) {
    m.scale_x =
        packed(DType::f32, 1, e.tokens, types.scaling == Scaling::blockwise ? blocks(e.hidden) : 1);
  }
  if (types.packed) {  // which bring the scales of their groups
    m.packed13 = m.packed2 = types.packed;
  } else if (types.scaling == Scaling::row_column) {
    m.scale_w13 = packed(DType::f32, e.experts, rows13, 1);
    m.scale_w2 = packed(DType::f32, e.experts, e.hidden, 1);
  } else if (types.scaling == Scaling::blockwise) {
    m.scale_w13 = packed(DType::f32, e.experts, blocks(rows13), blocks(e.hidden));
    m.scale_w2 = packed(DType::f32, e.experts, blocks(e.hidden), blocks(e.inner));
  }
  return m;
}

Routing moe_routing(const MixtureOperands& m, const std::string& typed, const ExpertModel& model) {
  const std::string of_model = *model.spread == ',' ? model.spread + 1 : "uniform";
  const std::string word = typed.empty() ? of_model : typed;
  const auto zipf = parse_router(word);
  if (!zipf) {
    throw InputError("--routing is \"" + word + "\"; " +
                     as_rule("it must be uniform, or zipf:S with S from 0 to 8") + ".");
  }
  if (m.top_k() < 1 || m.top_k() > m.total()) {
    throw InputError("--top-k is " + std::to_string(m.top_k()) + " of " +
                     std::to_string(m.total()) + " experts; the nearest legal value is " +
                     as_nearest(std::to_string(m.top_k() < 1 ? 1 : m.total())) + ".");
  }
  if (m.tokens() > kMostChoices / m.top_k()) {
    throw InputError("--tokens is " + std::to_string(m.tokens()) + "; " +
                     as_rule("no more than ", std::to_string(kMostChoices), " choices are drawn") +
                     ": the nearest legal value is " +
                     as_nearest(std::to_string(kMostChoices / m.top_k())) + ".");
  }
  return {m.tokens(), m.top_k(), *zipf};
}

MoeJob::MoeJob(const MoeOptions& o, const DeviceFacts& facts) {
  const ExpertModel model = o.model.empty() ? ExpertModel{} : expert_model(o.model);
  MoeExtents extents{wanted("--tokens", o.tokens, 0), wanted("--hidden", o.hidden, model.hidden),
                     wanted("--inner", o.inner, model.inner),
                     wanted("--experts", o.experts, model.experts)};
  // One expert without a top-k is an MLP: there is no router.
  if (extents.experts != 1 || o.top_k || model.top_k > 0) {
    extents.top_k = wanted("--top-k", o.top_k, model.top_k);
  }
  choose<bool>(extents.is_gated, "--gated", o.gated, {{"yes", true}, {"no", false}});
  const auto with = [&](MoeTypes types) {
    choose<DType>(types.x, "--x-dtype", o.x_dtype,
                  {{"e4m3", DType::e4m3}, {type_name(types.x).c_str(), types.x}});
    MixtureOperands m = packed_mixture(extents, types);
    if (o.bias) {
      m.bias13 = {nullptr, DType::f32, m.w13.rows, 1, 1, 1, extents.experts, m.w13.rows};
      m.bias2 = {nullptr, DType::f32, extents.hidden, 1, 1, 1, extents.experts, extents.hidden};
    }
    set_words(o, m);
    return m;
  };
  MoeTypes types = moe_types(o.dtype, o.weights, o.scaling);
  types.block = chosen_block(o.block, types.scaling, types.packed.has_value());
  operands = with(types);
  if (o.or_fp8) {
    choose_weights(with(moe_types("e4m3", "", "blockwise")), facts, mixture_choices(o.choices));
  } else {
    plan = taken(run_moe_plan(operands, facts, mixture_choices(o.choices)));
  }
  routing_ = moe_routing(operands, o.routing, model);
  left_out_ = o.left_out.value_or(0);
  if (o.left_out && !operands.is_routed()) {
    throw InputError("--left-out is given, and there is no router: " + as_rule("leave it out") +
                     ", or say --top-k.");
  }
  if (o.left_out) require_between("--left-out", *o.left_out, 1, max_extent);
}

// --or-fp8: the faster of both by its prediction.
void MoeJob::choose_weights(const MixtureOperands& fp8, const DeviceFacts& facts,
                            const MixtureChoices& choices) {
  require_fp8_form(operands.packed13, operands.scaling);
  const MixtureOperands both[] = {operands, fp8};
  auto chosen = taken(plan_fastest(both, facts, choices));
  if (chosen.index == 1) {
    fp8_of_ = operands.packed13->format;
    operands = fp8;
  }
  plan = std::move(chosen.plan);
}

MatrixView MoeJob::kept(HostTensor tensor, const MatrixView& shape) {
  tensors_.push_back(std::move(tensor));
  MatrixView view = shape;
  view.data = tensors_.back().bytes.data();
  return view;
}

void MoeJob::draw_ids(std::uint64_t seed) {
  ids_ = routed_choices(routing_, operands.total(), seed);
  for (std::size_t i = 0; left_out_ > 0 && i < ids_.size(); ++i) {
    if (static_cast<std::int64_t>(i + 1) % left_out_ == 0) ids_[i] = -1;
  }
  if (!operands.is_routed()) return;
  const bool wide = operands.id_type == OffsetType::int64;
  HostTensor ids{DType::s32, {operands.tokens(), operands.top_k()}, {}};
  ids.bytes.resize(ids_.size() * (wide ? 8 : 4));
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const std::int64_t id = ids_[i];
    std::memcpy(ids.bytes.data() + i * (wide ? 8 : 4),
                wide ? static_cast<const void*>(&id) : &ids_[i], wide ? 8 : 4);
  }
  operands.topk_ids = kept(std::move(ids), operands.topk_ids);
}

// Gates and what they are for, as their scales lie: row r of these is row order[r] of the weights.
std::vector<std::int64_t> MoeJob::gate_order() const {
  std::vector<std::int64_t> order;
  const std::int64_t inner = operands.inner();
  for (std::int64_t i = 0; i < operands.w13.rows; ++i) {
    const std::int64_t part = i / inner;
    order.push_back(operands.interleaved ? 2 * (i % inner) + part : i);
  }
  return order;
}

// Codes and scales of weights that are drawn as floats; for nvf4 each expert has a factor.
void MoeJob::load_micro(HostTensor wide, bool gated, MatrixView& w, MatrixView& scales,
                        MatrixView& factors) {
  const std::int64_t each = w.rows * w.columns;
  if (factors.rows > 0) {
    HostTensor all{DType::f32, {w.batch, 1}, {}};
    all.bytes.resize(static_cast<std::size_t>(4 * w.batch));
    for (std::int64_t e = 0; e < w.batch; ++e) {
      const float factor = (1 + static_cast<float>(e % 5)) / 256;
      std::memcpy(all.bytes.data() + 4 * e, &factor, 4);
      for (std::int64_t i = e * each; i < (e + 1) * each; ++i) {
        float x = 0;
        std::memcpy(&x, wide.bytes.data() + 4 * i, 4);
        x /= factor;
        std::memcpy(wide.bytes.data() + 4 * i, &x, 4);
      }
    }
    factors = kept(std::move(all), factors);
  }
  const MicroFormat format = known_micro_format(w.dtype, scales.dtype);
  MicroTensor made = quantise(wide, format);
  const std::vector<ScaleRows> halves = {{0, operands.inner()},
                                         {operands.inner(), 2 * operands.inner()}};
  HostTensor tiles{scales.dtype, {scales.batch, scales.rows, scales.columns}, {}};
  tiles.bytes =
      scale_tiles(made, scales, w.rows, ScaleReach::count(w.columns, micro_block(scales.dtype)),
                  gated ? halves : std::vector<ScaleRows>{},
                  gated ? gate_order() : std::vector<std::int64_t>{});
  scales = kept(std::move(tiles), scales);
  codes_.push_back(std::move(made.codes));
  w.data = codes_.back().data();
}

// Packed weights that are drawn as floats, or fp8 of the values that these have.
void MoeJob::load_packed(const HostTensor& wide, MatrixView& w, MatrixView& scales) {
  if (fp8_of_) {
    Fp8Tensors fp8 = fp8_of(pack_weights(wide, *fp8_of_));
    w = kept(std::move(fp8.codes), w);
    scales = kept(std::move(fp8.scales), scales);
    return;
  }
  HostTensor bytes{DType::u8, {}, {}};
  try {
    bytes.bytes = pack_weights(wide, operands.packed13->format);  // both alike
  } catch (const InputError& refused) {
    const bool is_first = &w == &operands.w13;
    throw InputError(as_tensor(is_first ? "w13" : "w2") +
                         (is_first ? ", of hidden" : ", of inner") + ": " + refused.sentence(),
                     refused.code());
  }
  bytes.shape = {static_cast<std::int64_t>(bytes.bytes.size())};
  w = kept(std::move(bytes), w);
  w.data = static_cast<std::byte*>(w.data) + packed::kHeaderBytes;
}

// The scale of a tensor whose largest magnitude is that.
void MoeJob::load_factor(MatrixView& factor, float largest) {
  if (factor.rows == 0) return;
  const float scale = micro::tensor_scale(Recipe::nested, largest);
  HostTensor one{DType::f32, {1, 1}, std::vector<std::byte>(4)};
  std::memcpy(one.bytes.data(), &scale, 4);
  factor = kept(std::move(one), factor);
}

void MoeJob::load(std::uint64_t seed) {
  MixtureOperands& o = operands;
  // Weights are drawn in float32 first.
  require_memory("The tensors of the mixture",
                 bytes_of(o) + 4.0 * static_cast<double>(o.w13.batch * o.w13.batch_stride),
                 "choose fewer experts or smaller extents");
  draw_ids(seed);
  std::uint64_t stream = 0;
  const auto shape = [](const MatrixView& v) {
    return std::vector<std::int64_t>{v.batch, v.rows, v.columns};
  };
  // So that a product of normal values has a variance of about 1.
  const auto weights = [&](MatrixView& v, MatrixView& scales, MatrixView& factors) {
    const double factor = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(v.columns, 1)));
    if (o.is_packed() || fp8_of_) {
      return load_packed(
          scaled(random_normal(DType::f32, shape(v), seed, stream++), factor, DType::f32), v,
          scales);
    }
    if (o.is_micro()) {
      HostTensor wide =
          scaled(random_normal(DType::f32, shape(v), seed, stream++), factor, DType::f32);
      spread_blocks(wide, seed + stream);
      return load_micro(std::move(wide), o.is_gated && &v == &o.w13, v, scales, factors);
    }
    const bool is_coded = numeric::bits(v.dtype) == 8;
    HostTensor drawn = random_normal(is_coded ? v.dtype : DType::f32, shape(v), seed, stream++);
    v = kept(is_coded ? std::move(drawn) : scaled(std::move(drawn), factor, v.dtype), v);
    if (is_coded) {
      scales =
          kept(scaled(random_scales(shape(scales), seed, stream++), factor, DType::f32), scales);
    }
  };
  o.x = kept(random_normal(o.x.dtype, {o.x.rows, o.x.columns}, seed, stream++), o.x);
  if (o.reads_weights()) {
    o.topk_weights = kept(router_weights(o, seed, stream), o.topk_weights);
  }
  ++stream;
  weights(o.w13, o.scale_w13, o.factor_w13);
  weights(o.w2, o.scale_w2, o.factor_w2);
  load_factor(o.factor_x, 5);
  load_factor(o.factor_inner, 256);
  for (MatrixView* bias : {&o.bias13, &o.bias2}) {
    if (bias->rows > 0)
      *bias = kept(random_normal(DType::f32, shape(*bias), seed, stream++), *bias);
  }
  if (o.has_codes()) {
    o.scale_x = kept(random_scales({o.scale_x.rows, o.scale_x.columns}, seed, stream++), o.scale_x);
  }
  if (o.shared_output.rows > 0) {
    o.shared_output =
        kept(random_normal(o.shared_output.dtype, {o.shared_output.rows, o.shared_output.columns},
                           seed, stream++),
             o.shared_output);
  }
  HostTensor d{o.d.dtype, {o.d.rows, o.d.columns}, {}};
  d.bytes.assign(static_cast<std::size_t>(extent_bytes(o.d)), std::byte{0xff});
  o.d = kept(std::move(d), o.d);
}

std::vector<std::int64_t> MoeJob::lengths() const {
  return lengths_of(ids_, operands.experts(), operands.first_expert);
}

std::int64_t MoeJob::rows_here() const {
  std::int64_t all = 0;
  for (const std::int64_t length : lengths()) all += length;
  return all;
}

double MoeJob::model_seconds() const {
  double seconds = 0;
  for (const Plan* product : {&plan.first, &plan.second}) {
    if (product->ctas == 0) continue;
    seconds += cli::model_seconds(tiles_of(lengths(), *product), product->tile().m,
                                  product->tile().n, product->problem.k());
  }
  return seconds;
}

double MoeJob::check_seconds() const {
  const auto rows = static_cast<double>(operands.slots());
  // Its elements are fetched one by one: some eight times as slow as those of a product's check.
  return cli::check_seconds(8 * rows * 3 * static_cast<double>(operands.hidden()) *
                            static_cast<double>(operands.inner()));
}

model::Report run_with_checks(const MoeJob& job, const device::ModelOptions& how,
                              std::ostream& err) {
  const Progress progress(err, "moe", "", 0);
  return taken(device::launch_on_model(job.plan, job.operands, how));
}

void run_on_gpu(const MoeJob& job, int index) {
  require(device::use_cuda_device(index));
  CudaMemory memory;
  const MixtureOperands& here = job.operands;
  device::CudaBuffer& d = memory.make(extent_bytes(here.d));
  const MixtureOperands there = with_matrices(here, [&](MatrixView v) {
    if (v.data == nullptr) return v;
    if (v.data == here.d.data) {
      v.data = d.data();
      return v;
    }
    const bool is_ids = v.data == here.topk_ids.data;
    const std::int64_t bytes =
        is_ids ? here.slots() * offset_bytes(here.id_type) : extent_bytes(stored(here, v));
    v.data = memory.copy(v.data, bytes);
    return v;
  });
  MixtureRunOptions how{.device = index};
  how.check_ids = true;
  require(run_moe(job.plan, there, how));
  wait_for_device();
  require(d.to_host(here.d.data, extent_bytes(here.d)));
}

CheckResult check_moe(const MixtureOperands& operands, bool gates_behind) {
  const reference::MixtureVerdict v = reference::check_mixture(operands, gates_behind);
  CheckResult result;
  result.passed = v.failures == 0;
  result.elements = v.elements;
  result.failures = v.failures;
  result.dtype = operands.d.dtype;
  result.worst_row = v.worst_token;
  result.worst_col = v.worst_column;
  result.worst_ratio = v.worst_ratio;
  result.worst_got = v.worst_got;
  result.worst_want = v.worst_want;
  result.worst_error = std::abs(v.worst_got - v.worst_want);
  result.worst_allowed = v.worst_allowed;
  return result;
}

}  // namespace warpwright::cli
