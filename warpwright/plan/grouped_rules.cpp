// What a grouped product must keep to: from operands to the problem they pose, and whether operands
// are those of a plan.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>

#include "warpwright/plan/grouped_rules.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

bool reads_operands(const GroupedOperands& o) {
  return o.alpha != 0.0F && o.x.columns > 0 && o.x.rows > 0 && o.w.rows > 0;
}

std::int64_t elements(const MatrixView& v) {
  return reach({{v.batch, v.batch_stride}, {v.rows, v.row_stride}, {v.columns, v.column_stride}});
}

std::int64_t bytes_of(const MatrixView& v) {
  return v.data == nullptr ? 0 : numeric::packed_bytes(v.dtype, elements(v));
}

bool overlap(const void* x, std::int64_t x_bytes, const void* y, std::int64_t y_bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(x);
  const auto b = reinterpret_cast<std::uintptr_t>(y);
  if (x_bytes == 0 || y_bytes == 0) return false;
  return a < b + static_cast<std::uintptr_t>(y_bytes) &&
         b < a + static_cast<std::uintptr_t>(x_bytes);
}

Fault scalar_fault(const GroupedOperands& o) {
  if (std::isnan(o.alpha))
    return Refusal{RefusalCode::bad_value, "alpha is NaN; it must be a number"};
  return std::nullopt;
}

Fault shapes_fault(const GroupedOperands& o) {
  if (o.w.batch < 1) {
    return Refusal{RefusalCode::bad_shape,
                   "W is a batch of " + number(o.w.batch) +
                       " matrices, one for each group; the nearest legal number of groups is 1"};
  }
  for (const NamedView& t : {NamedView{&o.x, "X"}, {&o.y, "Y"}}) {
    if (t.view->batch == 1) continue;
    return Refusal{RefusalCode::bad_shape,
                   std::string(t.name) + " is a batch of " + number(t.view->batch) +
                       "; the tokens of all groups are one matrix: the nearest legal is 1"};
  }
  for (const NamedView& t : {NamedView{&o.x, "X"}, {&o.w, "W"}, {&o.y, "Y"}}) {
    if (t.view->rows >= 0 && t.view->columns >= 0) continue;
    return Refusal{RefusalCode::bad_shape, std::string(t.name) + " has a negative extent (" +
                                               shape_of(*t.view) + "); extents are 0 or more"};
  }
  if (o.x.columns != o.w.columns) {
    return Refusal{RefusalCode::bad_shape,
                   "X is " + shape_of(o.x) + " and W is " + shape_of(o.w) +
                       " for each group; their " +
                       "columns are both K and must agree: the nearest legal W is " +
                       shape_of(o.w.rows, o.x.columns)};
  }
  if (o.y.rows != o.x.rows || o.y.columns != o.w.rows) {
    return Refusal{RefusalCode::bad_shape, "Y is " + shape_of(o.y) + "; the product of X (" +
                                               shape_of(o.x) + ") and W (" + shape_of(o.w) +
                                               ") transposed is " + shape_of(o.x.rows, o.w.rows)};
  }
  return std::nullopt;
}

Fault pointers_fault(const GroupedOperands& o) {
  const bool reads = reads_operands(o);
  for (const NamedView& t : {NamedView{&o.x, "X"}, {&o.w, "W"}, {&o.y, "Y"}}) {
    const bool is_y = t.view == &o.y;
    if (t.view->rows == 0 || t.view->columns == 0 || (!reads && !is_y)) continue;
    if (t.view->data == nullptr) {
      return Refusal{RefusalCode::bad_pointer, std::string(t.name) +
                                                   " is a null pointer; a tensor of " +
                                                   shape_of(*t.view) + " elements needs memory"};
    }
    const int known = alignment_of(t.view->data);
    const int wanted = is_y ? element_bytes(t.view->dtype) : 16;
    if (known >= wanted) continue;
    return Refusal{RefusalCode::bad_pointer,
                   std::string(t.name) + "'s address must be a multiple of " + number(wanted) +
                       " bytes" + (is_y ? ", the size of its elements" : " for the copy engine") +
                       "; it is one of " + number(known)};
  }
  const int width = o.offset_type == OffsetType::int64 ? 8 : 4;
  if (o.offsets == nullptr) {
    return Refusal{RefusalCode::bad_pointer, "offsets is a null pointer; " + number(o.w.batch) +
                                                 " groups have " + number(o.w.batch + 1) +
                                                 " offsets, in the operands' memory"};
  }
  if (alignment_of(o.offsets) < width) {
    return Refusal{RefusalCode::bad_pointer,
                   "the address of offsets must be a multiple of its integers' size, " +
                       number(width) + " bytes; it is one of " + number(alignment_of(o.offsets))};
  }
  return std::nullopt;
}

// The shape of a scale, and how many of them.
struct ScaleShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t batch = 1;
};

ScaleShape scale_shape(const GroupedOperands& o, bool of_x) {
  const std::int64_t blocks = (o.x.columns + scale_block - 1) / scale_block;
  switch (o.scaling) {
    case GroupedScaling::group:
      return of_x && o.scale_x.rows == 1 ? ScaleShape{} : ScaleShape{o.w.batch, 1, 1};
    case GroupedScaling::row_column:
      return of_x ? ScaleShape{o.x.rows, 1, 1} : ScaleShape{o.w.rows, 1, o.w.batch};
    case GroupedScaling::block:
      return of_x ? ScaleShape{o.x.rows, blocks, 1}
                  : ScaleShape{(o.w.rows + scale_block - 1) / scale_block, blocks, o.w.batch};
    default:
      return {};
  }
}

Fault scale_fault(const GroupedOperands& o, bool of_x) {
  const MatrixView& v = of_x ? o.scale_x : o.scale_w;
  const std::string name = of_x ? "scale_x" : "scale_w";
  const ScaleShape s = scale_shape(o, of_x);
  const std::string need = std::string(scaling_name(o.scaling)) + " scaling takes f32 scales of " +
                           (of_x ? "X" : "W") + " of shape " + shape_of(s.rows, s.columns) +
                           (s.batch > 1 ? ", a batch of " + number(s.batch) : "");
  if (v.data == nullptr)
    return Refusal{RefusalCode::bad_pointer, name + " is a null pointer; " + need};
  if (v.dtype != DType::f32)
    return Refusal{RefusalCode::bad_type, name + " is " + type_name(v.dtype) + "; " + need};
  if (v.rows != s.rows || v.columns != s.columns || v.batch != s.batch) {
    return Refusal{RefusalCode::bad_shape,
                   name + " is " + shape_of(v) +
                       (v.batch != 1 ? ", a batch of " + number(v.batch) : "") + "; " + need};
  }
  if (alignment_of(v.data) < 4) {
    return Refusal{RefusalCode::bad_pointer,
                   name + "'s address is not a multiple of its element size, 4 bytes"};
  }
  for (const auto& [extent, stride, what] : {std::tuple{v.rows, v.row_stride, "row"},
                                             {v.columns, v.column_stride, "column"},
                                             {v.batch, v.batch_stride, "batch"}}) {
    if (extent > 1 && stride < 0) {
      return Refusal{RefusalCode::bad_stride, name + " has a " + what + " stride of " +
                                                  number(stride) + "; the nearest legal is 0"};
    }
  }
  if (o.scaling != GroupedScaling::block && v.rows > 1 && v.row_stride != 1) {
    return Refusal{RefusalCode::bad_stride,
                   name + " has a row stride of " + number(v.row_stride) +
                       "; its values lie next to each other: the nearest legal is 1"};
  }
  return std::nullopt;
}

Fault scales_fault(const GroupedOperands& o) {
  if (o.scaling == GroupedScaling::none) {
    if (o.scale_x.data == nullptr && o.scale_w.data == nullptr) return std::nullopt;
    return Refusal{
        RefusalCode::bad_value,
        std::string(o.scale_x.data != nullptr ? "scale_x" : "scale_w") +
            " is given and scaling is none; say what it scales (tensor, group, row-column "
            "or block), or leave it out"};
  }
  if (!reads_operands(o)) return std::nullopt;
  if (auto r = scale_fault(o, true)) return r;
  return scale_fault(o, false);
}

Fault overlap_fault(const GroupedOperands& o) {
  const std::int64_t y_bytes = bytes_of(o.y);
  const std::int64_t offsets = (o.w.batch + 1) * (o.offset_type == OffsetType::int64 ? 8 : 4);
  const auto apart = [](const std::string& name) {
    return Refusal{RefusalCode::overlap, "Y overlaps " + name + "; it must lie apart from " + name};
  };
  if (overlap(o.y.data, y_bytes, o.offsets, offsets)) return apart("offsets");
  for (const NamedView& t :
       {NamedView{&o.x, "X"}, {&o.w, "W"}, {&o.scale_x, "scale_x"}, {&o.scale_w, "scale_w"}}) {
    if (overlap(o.y.data, y_bytes, t.view->data, bytes_of(*t.view))) return apart(t.name);
  }
  return std::nullopt;
}

GroupedProblem problem_of(const GroupedOperands& o) {
  GroupedProblem p;
  p.total = o.x.rows;
  p.n = o.w.rows;
  p.k = o.alpha == 0.0F ? 0 : o.x.columns;
  p.groups = o.w.batch;
  p.x = o.x.dtype;
  p.w = o.w.dtype;
  p.y = o.y.dtype;
  p.offsets = o.offset_type;
  p.scaling = o.scaling;
  p.accumulation = o.scaling == GroupedScaling::block ? Accumulation::promoted : o.accumulation;
  p.x_row_stride = o.x.row_stride;
  p.w_row_stride = o.w.row_stride;
  p.w_batch_stride = o.w.batch == 1 ? 0 : o.w.batch_stride;
  p.y_row_stride = o.y.row_stride;
  p.y_alignment = alignment_of(o.y.data);
  return p;
}

Fault column_strides_fault(const GroupedOperands& o) {
  for (const NamedView& t : {NamedView{&o.x, "X"}, {&o.w, "W"}, {&o.y, "Y"}}) {
    if (t.view->column_stride == 1 || t.view->columns <= 1) continue;
    return Refusal{RefusalCode::bad_stride,
                   std::string(t.name) + " has a column stride of " +
                       number(t.view->column_stride) +
                       "; grouped products take row-major tensors, " +
                       "neighbours in a row next to each other: the nearest legal is 1"};
  }
  return std::nullopt;
}

// --- rules of a problem -------------------------------------------------------------------------

Fault extent_fault(const GroupedProblem& p) {
  for (const auto& [extent, name] :
       {std::pair{p.total, "total"}, {p.n, "N"}, {p.k, "K"}, {p.groups, "the number of groups"}}) {
    const std::int64_t least = extent == p.groups && name[0] == 't' && name[1] == 'h' ? 1 : 0;
    if (extent >= least && extent <= max_extent) continue;
    return Refusal{RefusalCode::bad_shape,
                   std::string(name) + " is " + number(extent) +
                       (extent < least ? "; the nearest legal value is " + number(least)
                                       : "; coordinates have 32 bits: the nearest legal value is " +
                                             number(max_extent))};
  }
  if (!(p.expected_tokens >= 0)) {
    return Refusal{RefusalCode::bad_shape,
                   "the expected tokens of a group are negative or no number; 0 leaves them open"};
  }
  return std::nullopt;
}

Fault type_fault(const GroupedProblem& p) {
  const bool known = p.x == p.w && (is_16bit_float(p.x) || is_8bit_float(p.x));
  if (!known && !(is_8bit_float(p.x) && is_8bit_float(p.w))) {
    const std::string nearest = is_16bit_float(p.x)      ? type_name(p.x)
                                : numeric::bits(p.x) > 8 ? "bf16"
                                                         : "e4m3";
    return Refusal{RefusalCode::bad_type,
                   "X is " + type_name(p.x) + " and W is " + type_name(p.w) +
                       "; both are bf16, both f16, or each e4m3 or e5m2: the nearest is " +
                       nearest + " by " + nearest};
  }
  if (is_8bit_float(p.x)) return std::nullopt;
  if (p.scaling != GroupedScaling::none) {
    return Refusal{RefusalCode::bad_type,
                   std::string("scaling is ") + scaling_name(p.scaling) + ", and X and W are " +
                       type_name(p.x) + "; only e4m3 and e5m2 operands have scales: the nearest " +
                       "scaling is none"};
  }
  if (p.accumulation == Accumulation::promoted) {
    return Refusal{RefusalCode::bad_type,
                   "accumulation is promoted, and X and W are " + type_name(p.x) +
                       "; their sums are float32 anyway: the nearest accumulation is fast"};
  }
  return std::nullopt;
}

Fault pitch_fault(const char* name, DType type, std::int64_t columns, std::int64_t rows,
                  std::int64_t pitch, bool whole_pieces) {
  const int element = element_bytes(type);
  const std::int64_t step = whole_pieces ? 16 / element : 1;
  const std::int64_t most = max_pitch_bytes / element - step;
  const std::int64_t nearest =
      (std::clamp(pitch, std::min(columns, most), most) + step - 1) / step * step;
  if (rows > 1 && pitch < columns) {
    return Refusal{RefusalCode::bad_stride,
                   std::string(name) + " has a row stride of " + number(pitch) +
                       " elements, less than its " + number(columns) +
                       " columns; the nearest legal is " + number(nearest)};
  }
  if (pitch < 0 || pitch >= max_pitch_bytes / element) {
    return Refusal{
        RefusalCode::bad_stride,
        std::string(name) + " has a row stride of " + number(pitch) +
            " elements; it must be 0 or more and less than 2^40 bytes: the nearest legal is " +
            number(nearest)};
  }
  if (pitch % step == 0) return std::nullopt;
  return Refusal{
      RefusalCode::bad_stride,
      "the rows of " + std::string(name) + " are " + number(pitch * element) + " bytes apart (" +
          number(pitch) + " elements of " + type_name(type) +
          "); they must be a multiple of 16 bytes apart: the nearest legal row stride is " +
          number(nearest) + " elements (pad K)"};
}

Fault strides_fault(const GroupedProblem& p) {
  if (auto r = pitch_fault("Y", p.y, p.n, p.total, p.y_row_stride, false)) return r;
  if (p.k == 0 || p.total == 0 || p.n == 0) return std::nullopt;
  if (auto r = pitch_fault("X", p.x, p.k, p.total, p.x_row_stride, true)) return r;
  if (auto r = pitch_fault("W", p.w, p.k, p.n, p.w_row_stride, true)) return r;
  const std::int64_t step = 16 / element_bytes(p.w);
  const std::int64_t most = max_pitch_bytes / element_bytes(p.w) - step;
  const std::int64_t between = p.w_batch_stride;
  if (p.groups > 1 && (between < 0 || between > most || between % step != 0)) {
    return Refusal{
        RefusalCode::bad_stride,
        "the matrices of W are " + number(p.w_batch_stride) +
            " elements apart (batch stride); they must be a multiple of 16 bytes and less "
            "than 2^40 bytes apart: the nearest legal is " +
            number((std::clamp<std::int64_t>(between, 0, most) + step - 1) / step * step)};
  }
  return std::nullopt;
}

}  // namespace

const char* scaling_name(GroupedScaling scaling) {
  constexpr const char* names[] = {"none", "tensor", "group", "row-column", "block"};
  return names[static_cast<std::size_t>(scaling)];
}

GroupedProblem packed_grouped_problem(std::int64_t total, std::int64_t n, std::int64_t k,
                                      std::int64_t groups, DType operand, DType result) {
  GroupedProblem p;
  p.total = total;
  p.n = n;
  p.k = k;
  p.groups = groups;
  p.x = p.w = operand;
  p.y = result;
  p.x_row_stride = p.w_row_stride = k;
  p.w_batch_stride = groups == 1 ? 0 : n * k;
  p.y_row_stride = n;
  return p;
}

Result<GroupedProblem> describe_grouped(const GroupedOperands& operands) {
  for (const auto rule : {scalar_fault, shapes_fault, pointers_fault, column_strides_fault,
                          scales_fault, overlap_fault}) {
    if (auto r = rule(operands)) return *r;
  }
  return problem_of(operands);
}

std::optional<Refusal> grouped_fault(const GroupedProblem& p) {
  for (const auto rule : {extent_fault, type_fault, strides_fault}) {
    if (auto r = rule(p)) return r;
  }
  return std::nullopt;
}

std::optional<Refusal> mismatch(const GroupedPlan& plan, const GroupedOperands& operands) {
  const auto described = describe_grouped(operands);
  if (!described) return described.refusal();
  const GroupedProblem& got = *described;
  const GroupedProblem& want = plan.problem;
  if (got.total != want.total || got.n != want.n || got.k != want.k || got.groups != want.groups) {
    const auto words = [](const GroupedProblem& p) {
      return number(p.groups) + " groups of " + number(p.total) + " tokens in all, N " +
             number(p.n) + " and K " + number(p.k);
    };
    return Refusal{RefusalCode::plan_mismatch, "the operands are a product of " + words(got) +
                                                   "; the plan is for " + words(want)};
  }
  if (got.x != want.x || got.w != want.w || got.y != want.y || got.offsets != want.offsets) {
    return Refusal{RefusalCode::plan_mismatch,
                   "the operands' types are not those of the plan; make a plan for them"};
  }
  if (got.scaling != want.scaling || got.accumulation != want.accumulation) {
    return Refusal{RefusalCode::plan_mismatch,
                   "the operands' scaling and accumulation are not those of the plan, which has " +
                       std::string(scaling_name(want.scaling)) + " scaling"};
  }
  if (got.x_row_stride != want.x_row_stride || got.w_row_stride != want.w_row_stride ||
      got.w_batch_stride != want.w_batch_stride || got.y_row_stride != want.y_row_stride) {
    return Refusal{RefusalCode::plan_mismatch,
                   "the operands' strides are not those of the plan; make a plan for them"};
  }
  if (plan.by_vectors && got.y_alignment < 16) {
    return Refusal{RefusalCode::plan_mismatch,
                   "Y's address is a multiple of " + number(got.y_alignment) +
                       " bytes only; the plan was made for one of 16: say so in the problem"};
  }
  return std::nullopt;
}

std::optional<std::string> offsets_fault(std::uint32_t status) {
  if (status == 0) return std::nullopt;
  const std::int64_t g = std::int64_t{status} - 1;
  return "the offsets of group " + number(g) + " are not in order: offsets[" + number(g) +
         "] and offsets[" + number(g + 1) +
         "] must be 0 or more, not decrease, and not exceed the number of tokens; what lies "
         "outside was left out";
}

}  // namespace warpwright
