// Products without addresses, and whether operands are those of a plan.
#include <tuple>

#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

PlannedMatrix planned(const MatrixView& v) {
  return {v, alignment_of(v.data)};
}

// One that serves a whole batch lies 0 apart.
void spread(PlannedMatrix& v, std::int64_t batch) {
  if (v.batch == 1) v.batch_stride = 0;
  v.batch = batch;
}

// Have they the same tensors beside A, B, C and D, of the same types?
bool same_sides(const GemmProblem& got, const GemmProblem& want) {
  bool same = true;
  for_each_side_of(
      [&](const char*, const PlannedMatrix& one, const PlannedMatrix& other) {
        same = same && one.dtype == other.dtype && is_given(one) == is_given(other);
      },
      got, want);
  return same;
}

// What a launch may not differ in from its plan.
Fault kind_mismatch(const GemmProblem& got, const GemmProblem& want) {
  if (got.m() != want.m() || got.n() != want.n() || got.k() != want.k()) {
    return refuse(RefusalCode::plan_mismatch, "the operands are a product of ", got.m(), " x ",
                  got.n(), " x ", got.k(), "; ",
                  as_rule("the plan is for ", want.m(), " x ", want.n(), " x ", want.k()));
  }
  if (got.batch() != want.batch()) {
    return refuse(RefusalCode::plan_mismatch, "the operands are a batch of ", got.batch(), "; ",
                  as_rule("the plan is for ", want.batch()));
  }
  if (got.is_by_index() != want.is_by_index() || got.a.rows != want.a.rows ||
      (got.groups && want.groups && got.groups->rows_divisor != want.groups->rows_divisor)) {
    const auto words = [](const GemmProblem& p) {
      return p.is_by_index() ? number(p.a.rows) + " tokens by index, rows_divisor " +
                                   number(p.groups->rows_divisor)
                             : std::string("rows of A one behind the other");
    };
    return refuse(RefusalCode::plan_mismatch, "the operands have ", words(got), "; ",
                  as_rule("the plan is for ", words(want)));
  }
  if (got.group_count() != want.group_count()) {
    const auto words = [](std::int64_t groups) {
      return groups == 0 ? std::string("no groups") : number(groups) + " groups";
    };
    return refuse(RefusalCode::plan_mismatch, "the operands have ", words(got.group_count()), "; ",
                  as_rule("the plan is for ", words(want.group_count())));
  }
  if (got.scaling != want.scaling || got.accumulation != want.accumulation ||
      scale_block_of(got) != scale_block_of(want)) {
    return refuse(RefusalCode::plan_mismatch,
                  "the operands' scaling and accumulation are not those of the plan, which has ",
                  scaling_words(want.scaling), block_words(scale_block_of(want)), " and ",
                  (want.accumulation == Accumulation::fast ? "fast" : "promoted"), " accumulation");
  }
  const bool types =
      got.a.dtype == want.a.dtype && got.b.dtype == want.b.dtype && got.d.dtype == want.d.dtype &&
      (!got.reads_c() || !want.reads_c() || got.c.dtype == want.c.dtype) &&
      (!got.groups || got.groups->type == want.groups->type) && got.packed == want.packed &&
      got.scale_a.dtype == want.scale_a.dtype && got.scale_b.dtype == want.scale_b.dtype;
  if (!types) {
    return refuse(RefusalCode::plan_mismatch, "the operands' types are not those of the plan; ",
                  as_rule("make a plan for them"));
  }
  if (got.epilogue != want.epilogue || !same_sides(got, want)) {
    return refuse(
        RefusalCode::plan_mismatch,
        "the operands' epilogue (activation, gate, bias and its type, how D is quantised, ",
        as_tensor("scale_d"), ", factors) is not that of the plan; ",
        as_rule("make a plan for it"));
  }
  return std::nullopt;
}

Fault use_mismatch(const GemmProblem& got, const GemmProblem& want) {
  if (got.reads_c() && !want.reads_c()) {
    return refuse(RefusalCode::plan_mismatch, "beta is not 0, but the plan was made without C; ",
                  as_rule("make a plan that reads C"));
  }
  if (got.reads_ab() && !want.reads_ab()) {
    return refuse(RefusalCode::plan_mismatch,
                  "alpha is not 0, but the plan was made without reading ", as_tensor("A"),
                  " and B");
  }
  return std::nullopt;
}

Fault stride_mismatch(const GemmProblem& got, const GemmProblem& want) {
  const auto differs = [&](std::int64_t MatrixShape::*stride) {
    return (got.reads_ab() &&
            (got.a.*stride != want.a.*stride || got.b.*stride != want.b.*stride)) ||
           got.d.*stride != want.d.*stride || (got.reads_c() && got.c.*stride != want.c.*stride);
  };
  const char* const what = differs(&MatrixShape::row_stride)      ? "row"
                           : differs(&MatrixShape::column_stride) ? "column"
                           : differs(&MatrixShape::batch_stride)  ? "batch"
                                                                  : nullptr;
  if (what == nullptr) return std::nullopt;
  return refuse(RefusalCode::plan_mismatch, "the operands' ", what,
                " strides are not those of the plan; ", as_rule("make a plan for them"));
}

Fault alignment_mismatch(const Plan& plan, const GemmProblem& got) {
  const GemmProblem& want = plan.problem;
  const bool c_by_copies = got.reads_c() && plan.c_path == EpiloguePath::tma;
  const bool d_by_copies = plan.d_path == EpiloguePath::tma;
  for (const auto& [name, known, wanted] : {std::tuple{"A", got.a.alignment, want.a.alignment},
                                            {"B", got.b.alignment, want.b.alignment},
                                            {"D", got.d.alignment, d_by_copies ? 16 : 1},
                                            {"C", got.c.alignment, c_by_copies ? 16 : 1}}) {
    if (known >= wanted) continue;
    return refuse(RefusalCode::plan_mismatch, as_tensor(name), "'s address is a multiple of ",
                  known, " bytes only; ",
                  as_rule("the plan was made for one of ", wanted, ": say so in the problem"));
  }
  return std::nullopt;
}

}  // namespace

MatrixView stored_weights(const MatrixView& w, const std::optional<PackedWeights>& form) {
  if (!form) return w;
  const packed::Extents extents{w.batch, w.rows, w.columns};
  return matrix(w.data, DType::u8, 1, packed::data_bytes(form->format, extents));
}

MatrixView stored_b(const GemmOperands& o) {
  return stored_weights(o.b, o.packed);
}

GemmProblem problem_of(const GemmOperands& o) {
  GemmProblem p = with_matrices(o, planned);
  if (is_padded(p, true)) p.a.alignment = padded_alignment_of(o.a.data);
  if (is_padded(p, false)) p.b.alignment = padded_alignment_of(o.b.data);
  return p;
}

GemmProblem normalised(GemmProblem p) {
  const bool multiplies = p.multiplies();
  const bool reads_c = p.reads_c();
  p.alpha = p.reads_ab() ? 1.0F : 0.0F;
  p.beta = reads_c ? 1.0F : 0.0F;
  p.epilogue.gate.reset();
  if (p.scaling == Scaling::blockwise) p.accumulation = Accumulation::promoted;
  spread(p.a, p.batch());
  if (!p.packed) spread(p.b, p.groups ? p.b.batch : p.batch());
  spread(p.d, p.batch());
  if (!multiplies) p.a.alignment = p.b.alignment = 16;
  if (reads_c) {
    spread(p.c, p.batch());
  } else {
    p.c = {};
  }
  if (p.packed) lie_side_by_side(p.b);  // its tiles follow each other in an order of their own
  const DType types[] = {micro_scale(p, true), micro_scale(p, false)};
  // The shape of these says a block that is smaller than usual.
  const bool says_block = scale_block_of(p) != scale_block;
  if (is_given(p.factor_b)) p.factor_b.rows = 1;
  for_each_side_of(
      [](const char*, PlannedMatrix& side) {
        if (is_given(side)) side = packed_matrix(side.dtype, side.rows, side.columns);
      },
      p);
  p.scale_b = says_block ? PlannedMatrix{scale_shape(p, false)} : PlannedMatrix{};
  p.scale_a = {};
  if (scales_elements(p.scaling))
    std::tie(p.scale_a.dtype, p.scale_b.dtype) = std::tie(types[0], types[1]);
  p.d_scales = {};
  const std::int64_t biases = p.epilogue.bias == Bias::rows ? p.m() : p.n();
  p.bias = p.has_bias() ? packed_matrix(p.bias.dtype, biases, 1) : PlannedMatrix{};
  if (p.groups) {
    p.groups->offsets = nullptr;
    p.groups->rows = nullptr;
    if (p.groups->expected_lengths == LengthSpread::equal) p.groups->expected_zipf = 0;
  }
  return p;
}

GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType operand,
                           DType result, bool reads_c) {
  GemmProblem p;
  p.a = packed_matrix(operand, m, k);
  p.b = packed_matrix(operand, n, k);
  p.d = packed_matrix(result, m, n);
  if (reads_c) p.c = p.d;
  return p;
}

GemmProblem packed_grouped_problem(std::int64_t total, std::int64_t n, std::int64_t k,
                                   std::int64_t groups, DType operand, DType result) {
  GemmProblem p = packed_problem(total, n, k, operand, result);
  p.groups.emplace();
  p.b.batch = groups;
  p.b.batch_stride = groups == 1 ? 0 : n * k;
  return p;
}

std::optional<Refusal> mismatch(const Plan& plan, const GemmOperands& operands) {
  const auto described = describe(operands);
  if (!described) return described.refusal();
  if (*described == plan.problem) return std::nullopt;
  for (const auto rule : {kind_mismatch, use_mismatch, stride_mismatch}) {
    if (auto r = rule(*described, plan.problem)) return r;
  }
  return alignment_mismatch(plan, *described);
}

std::optional<std::string> offsets_fault(std::uint32_t status) {
  if (status == 0) return std::nullopt;
  const std::int64_t g = std::int64_t{status} - 1;
  return "the offsets of group " + number(g) + " are not in order: offsets[" + number(g) +
         "] and offsets[" + number(g + 1) +
         "] must be 0 or more, not decrease, and not exceed the number of tokens; what lies "
         "outside was left out";
}

std::optional<std::string> rows_fault(std::uint64_t status, const GemmProblem& p) {
  const auto place = static_cast<std::uint32_t>(status);
  if (place == 0 || !p.is_by_index()) return std::nullopt;
  const auto index = static_cast<std::int32_t>(static_cast<std::uint32_t>(status >> 32));
  const std::int64_t divisor = p.groups->rows_divisor;
  return "rows[" + number(std::int64_t{place} - 1) + "] is " + number(index) +
         " and names no row of A: A has " + number(p.a.rows) + " rows and rows_divisor is " +
         number(divisor) + ", so that numbers from 0 to " + number(p.a.rows * divisor - 1) +
         " do; zeros were read";
}

}  // namespace warpwright
