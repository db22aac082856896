// From operands to the problem they pose, and whether operands are those of a plan.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

// Are A and B read?
bool reads_ab(const GemmOperands& o) {
  return o.alpha != 0.0F && o.a.columns != 0;
}

bool reads_c(const GemmOperands& o) {
  return beta_of(o) != 0.0F;
}

// Are there products to be scaled?
bool reads_scales(const GemmOperands& o) {
  return o.scaling != Scaling::none && reads_ab(o) && o.d.rows > 0 && o.d.columns > 0;
}

bool same_view(const MatrixView& x, const MatrixView& y) {
  return x.data == y.data && x.dtype == y.dtype && x.row_stride == y.row_stride &&
         x.column_stride == y.column_stride && x.batch == y.batch &&
         (x.batch == 1 || x.batch_stride == y.batch_stride);
}

// Matrices of B, one a group; 0 where there are no groups.
std::int64_t groups_of(const GemmOperands& o) {
  return o.groups ? o.b.batch : 0;
}

int offset_bytes(OffsetType type) {
  return type == OffsetType::int64 ? 8 : 4;
}

Fault scalar_fault(const GemmOperands& o) {
  if (std::isnan(o.alpha))
    return refuse(RefusalCode::bad_value, "alpha is NaN; it must be a number");
  if (std::isnan(o.beta)) return refuse(RefusalCode::bad_value, "beta is NaN; it must be a number");
  if (!has_c(o) && o.beta != 0.0F && o.beta != 1.0F) {
    return refuse(RefusalCode::bad_value, "beta is ", format("%g", static_cast<double>(o.beta)),
                  ", and there is no C: give C, or leave beta out");
  }
  return std::nullopt;
}

// What is larger than memory, of which no end could be found (and no overlap).
Fault size_fault(const NamedView& tensor) {
  const MatrixView& v = *tensor.view;
  const std::int64_t most = elements_in(max_reach_bytes, v.dtype);
  for (const auto& [extent, stride, what] : {std::tuple{v.rows, v.row_stride, "row"},
                                             {v.columns, v.column_stride, "column"},
                                             {v.batch, v.batch_stride, "batch"}}) {
    if (extent > max_extent) {
      return refuse(RefusalCode::bad_shape, tensor.name, " has ", extent, " ", what,
                    what[0] == 'b' ? " matrices" : "s",
                    "; coordinates have 32 bits: the nearest legal number is ", max_extent);
    }
    if (extent > 1 && stride > most / (extent - 1)) {
      return refuse(
          RefusalCode::bad_stride, tensor.name, " has a ", what, " stride of ", stride,
          " elements, which reaches beyond all memory (2^56 bytes): the nearest legal is ",
          most / (extent - 1));
    }
  }
  return std::nullopt;
}

Fault view_fault(const NamedView& tensor, bool used) {
  const MatrixView& v = *tensor.view;
  const std::string name = tensor.name;
  if (v.rows < 0 || v.columns < 0) {
    return refuse(RefusalCode::bad_shape, name, " has a negative extent (", shape_of(v),
                  "); extents are 0 or more");
  }
  if (!used || v.rows == 0 || v.columns == 0) return std::nullopt;
  if (auto r = size_fault(tensor)) return r;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, name, " is a null pointer; a tensor of ", shape_of(v),
                  " elements needs memory");
  }
  const int element = numeric::bits(v.dtype) / 8;
  if (alignment_of(v.data) % std::clamp(element, 1, 16) != 0) {
    return refuse(RefusalCode::bad_pointer, name,
                  "'s address is not a multiple of its element size, ", element, " bytes");
  }
  return std::nullopt;
}

Fault packed_fault(const GemmOperands& o) {
  if (!o.packed) return std::nullopt;
  if (o.b.dtype != DType::s4) {
    return refuse(RefusalCode::bad_type, "B is ", type_name(o.b.dtype),
                  ", and packed weights are given; they are s4");
  }
  if (o.scaling == Scaling::block && o.scale_b.data != nullptr) {
    return refuse(
        RefusalCode::bad_value,
        "scale_b is given with block scaling and packed weights, which bring the scales of "
        "their groups; leave it out");
  }
  return std::nullopt;
}

Fault views_fault(const GemmOperands& o) {
  if (auto r = view_fault({&o.a, "A"}, reads_ab(o))) return r;
  if (auto r = view_fault({&o.b, "B"}, reads_ab(o))) return r;
  if (auto r = view_fault({&o.d, "D"}, true)) return r;
  return reads_c(o) ? view_fault({&o.c, "C"}, true) : std::nullopt;
}

Fault shapes_fault(const GemmOperands& o) {
  if (o.a.columns != o.b.columns) {
    return refuse(RefusalCode::bad_shape, "A is ", shape_of(o.a), " and B is ", shape_of(o.b),
                  "; their columns are both K and must agree: the nearest legal B is ",
                  shape_of(o.b.rows, o.a.columns));
  }
  const std::int64_t columns = o.epilogue.gated ? o.b.rows / 2 : o.b.rows;
  if (o.d.rows != o.a.rows || o.d.columns != columns) {
    return refuse(RefusalCode::bad_shape, "D is ", shape_of(o.d), "; the product of A (",
                  shape_of(o.a), ") and B (", shape_of(o.b), ") transposed",
                  (o.epilogue.gated ? ", gated," : ""), " is ", shape_of(o.a.rows, columns));
  }
  if (reads_c(o) && (o.c.rows != o.d.rows || o.c.columns != o.d.columns)) {
    return refuse(RefusalCode::bad_shape, "C is ", shape_of(o.c),
                  "; beta is not 0, so it must be as large as D, ", shape_of(o.d));
  }
  return std::nullopt;
}

Fault batch_fault(const NamedView& tensor, std::int64_t length) {
  const std::int64_t batch = tensor.view->batch;
  if (batch == 1 || batch == length) return std::nullopt;
  return refuse(RefusalCode::bad_shape, tensor.name, " is a batch of ", batch, " and D of ", length,
                "; it must be of the same length, or 1 to serve ",
                "all of D: the nearest legal is ", batch < 1 ? 1 : length);
}

// The rows of all groups are one matrix; B has a matrix for each.
Fault group_batches_fault(const GemmOperands& o) {
  if (o.b.batch < 1) {
    return refuse(RefusalCode::bad_shape, "B is a batch of ", o.b.batch,
                  " matrices, one for each group; the nearest legal number of groups is 1");
  }
  for (const NamedView& t : {NamedView{&o.a, "A"}, {&o.c, "C"}, {&o.d, "D"}}) {
    if (t.view->batch == 1) continue;
    return refuse(RefusalCode::bad_shape, t.name, " is a batch of ", t.view->batch,
                  ", and the rows of all groups are one matrix: the nearest legal is 1");
  }
  return std::nullopt;
}

Fault batches_fault(const GemmOperands& o) {
  if (o.groups) return group_batches_fault(o);
  if (o.d.batch < 1) {
    return refuse(RefusalCode::bad_shape, "D is a batch of ", o.d.batch,
                  "; the nearest legal length is 1");
  }
  if (auto r = batch_fault({&o.a, "A"}, o.d.batch)) return r;
  if (auto r = batch_fault({&o.b, "B"}, o.d.batch)) return r;
  return reads_c(o) ? batch_fault({&o.c, "C"}, o.d.batch) : std::nullopt;
}

Fault offsets_fault(const GemmOperands& o) {
  if (!o.groups) return std::nullopt;
  const int width = offset_bytes(o.groups->type);
  if (o.groups->offsets == nullptr) {
    return refuse(RefusalCode::bad_pointer, "offsets is a null pointer; ", groups_of(o),
                  " groups have ", groups_of(o) + 1, " offsets, in the operands' memory");
  }
  const int known = alignment_of(o.groups->offsets);
  if (known >= width) return std::nullopt;
  return refuse(RefusalCode::bad_pointer,
                "the address of offsets must be a multiple of its integers' size, ", width,
                " bytes; it is one of ", known);
}

// A tensor that is read element by element: its strides may be any but negative ones.
Fault side_fault(const NamedView& tensor, std::int64_t length) {
  const MatrixView& v = *tensor.view;
  if (auto r = view_fault(tensor, true)) return r;
  if (auto r = batch_fault(tensor, length)) return r;
  for (const auto& [extent, stride, what] : {std::tuple{v.rows, v.row_stride, "row"},
                                             {v.columns, v.column_stride, "column"},
                                             {v.batch, v.batch_stride, "batch"}}) {
    if (extent > 1 && stride < 0) {
      return refuse(RefusalCode::bad_stride, tensor.name, " has a ", what, " stride of ", stride,
                    "; the nearest legal is 0");
    }
  }
  return std::nullopt;
}

// The shape of an operand's scales, and how many of them.
struct ScaleShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t batch = 1;
};

ScaleShape scale_shape(const GemmOperands& o, bool of_a) {
  const MatrixView& of = of_a ? o.a : o.b;
  const std::int64_t block_rows = of_a ? 1 : scale_block;
  const std::int64_t batch = o.groups ? (of_a ? 1 : o.b.batch) : o.d.batch;
  switch (o.scaling) {
    case Scaling::group:
      return {of_a && o.scale_a.rows == 1 ? 1 : o.b.batch, 1, 1};
    case Scaling::row_column:
      return {of.rows, 1, batch};
    case Scaling::micro:
      return {block_scales::padded_rows(of.rows),
              block_scales::padded_columns(of.columns, micro_block(of.dtype)), batch};
    case Scaling::block:
      return {(of.rows + block_rows - 1) / block_rows, (of.columns + scale_block - 1) / scale_block,
              batch};
    default:
      return {1, 1, o.groups ? 1 : batch};
  }
}

// Of scales in tiles, which the copy engine brings.
Fault scale_tiles_fault(const NamedView& scale) {
  const MatrixView& v = *scale.view;
  if ((v.rows > 1 && v.row_stride != v.columns) || (v.columns > 1 && v.column_stride != 1)) {
    return refuse(RefusalCode::bad_stride, scale.name, " has a row stride of ", v.row_stride,
                  " and a column stride of ", v.column_stride,
                  "; its tiles follow each other without gaps: the nearest legal are ", v.columns,
                  " and 1");
  }
  if (v.batch > 1 && v.batch_stride % 16 != 0) {
    return refuse(
        RefusalCode::bad_stride, "the matrices of ", scale.name, " are ", v.batch_stride,
        " bytes apart (batch stride); they must be a multiple of 16: the nearest legal is ",
        (v.batch_stride + 15) / 16 * 16);
  }
  const int known = alignment_of(v.data);
  if (known >= 16) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, scale.name,
                "'s address must be a multiple of 16 bytes for the copy engine; it is one of ",
                known);
}

Fault scale_fault(const GemmOperands& o, bool of_a) {
  const NamedView scale =
      of_a ? NamedView{&o.scale_a, "scale_a"} : NamedView{&o.scale_b, "scale_b"};
  const MatrixView& v = *scale.view;
  const ScaleShape s = scale_shape(o, of_a);
  const bool micro = o.scaling == Scaling::micro;
  const DType type = micro ? micro_scale(of_a ? o.a.dtype : o.b.dtype) : DType::f32;
  const std::string need = std::string(scaling_name(o.scaling)) + " scaling of " +
                           (of_a ? "A (" : "B (") + shape_of(of_a ? o.a : o.b) + ") takes " +
                           type_name(type) + " scales of shape " + shape_of(s.rows, s.columns) +
                           (o.groups && s.batch > 1 ? ", a batch of " + number(s.batch) : "");
  if (v.data == nullptr)
    return refuse(RefusalCode::bad_pointer, scale.name, " is a null pointer; ", need);
  if (v.dtype != type) {
    return refuse(RefusalCode::bad_type, scale.name, " is ", type_name(v.dtype), "; ", need);
  }
  if (v.rows != s.rows || v.columns != s.columns || (o.groups && v.batch != s.batch)) {
    return refuse(RefusalCode::bad_shape, scale.name, " is ", shape_of(v),
                  (v.batch != 1 ? ", a batch of " + number(v.batch) : ""), "; ", need);
  }
  if (o.scaling == Scaling::group && v.rows > 1 && v.row_stride > max_extent) {
    return refuse(RefusalCode::bad_stride, scale.name, " has a row stride of ", v.row_stride,
                  "; that of the scales of groups has 32 bits: the nearest legal is ", max_extent);
  }
  if (auto r = side_fault(scale, s.batch)) return r;
  return micro ? scale_tiles_fault(scale) : std::nullopt;
}

// Tensors that are given and would not be read: their caller expects something else.
Fault unread_fault(const GemmOperands& o) {
  for (const NamedView& scale : {NamedView{&o.scale_a, "scale_a"}, {&o.scale_b, "scale_b"}}) {
    if (o.scaling == Scaling::none && scale.view->data != nullptr) {
      return refuse(RefusalCode::bad_value, scale.name,
                    " is given and scaling is none; say what it scales (tensor, row-column, "
                    "block, group, or micro), or leave it out");
    }
  }
  if (o.epilogue.bias == Bias::none && o.bias.data != nullptr) {
    return refuse(
        RefusalCode::bad_value,
        "the bias is given and epilogue.bias is none; say what it runs along (rows or columns), or "
        "leave it out");
  }
  return std::nullopt;
}

Fault scales_fault(const GemmOperands& o) {
  if (reads_scales(o)) {
    if (auto r = scale_fault(o, true)) return r;
    if (!o.packed || o.scale_b.data != nullptr) {
      if (auto r = scale_fault(o, false)) return r;
    }
  }
  if (o.scale_d.data == nullptr) return std::nullopt;
  const MatrixView& v = o.scale_d;
  if (v.dtype != DType::f32 || v.rows != 1 || v.columns != 1) {
    return refuse(RefusalCode::bad_shape, "scale_d is ", shape_of(v), " of ", type_name(v.dtype),
                  "; D has one scale: the nearest legal is 1 x 1 of f32");
  }
  return side_fault({&v, "scale_d"}, o.d.batch);
}

Fault bias_fault(const GemmOperands& o) {
  if (o.epilogue.bias == Bias::none) return std::nullopt;
  const MatrixView& v = o.bias;
  const bool of_rows = o.epilogue.bias == Bias::rows;
  const std::int64_t rows = of_rows ? o.a.rows : o.b.rows;
  const std::string need = std::string("a bias along the ") +
                           (of_rows ? "rows of D is M x 1" : "columns of the product is N x 1") +
                           ": the legal shape is " + shape_of(rows, 1);
  if (v.data == nullptr && rows > 0)
    return refuse(RefusalCode::bad_pointer, "the bias is a null pointer; ", need);
  if (v.rows != rows || v.columns != 1)
    return refuse(RefusalCode::bad_shape, "the bias is ", shape_of(v), "; ", need);
  if (v.rows > 1 && v.row_stride != 1) {
    return refuse(RefusalCode::bad_stride, "the bias has a row stride of ", v.row_stride,
                  "; its values lie next to each other: the nearest legal is 1");
  }
  return side_fault({&v, "the bias"}, o.groups && !of_rows ? groups_of(o) : o.d.batch);
}

Fault overlap_fault(const GemmOperands& o) {
  const auto apart = [](const char* name) {
    return refuse(RefusalCode::overlap, "D overlaps ", name, "; it must lie apart from ", name);
  };
  if (reads_c(o) && overlap(o.c, o.d) && !same_view(o.c, o.d)) {
    return refuse(RefusalCode::overlap,
                  "D overlaps C; it must lie apart from C or be the very same view");
  }
  if (reads_ab(o) && overlap(o.d, o.a)) return apart("A");
  if (reads_ab(o) && overlap(o.d, stored_b(o))) return apart("B");
  if (reads_scales(o) && overlap(o.d, o.scale_a)) return apart("scale_a");
  if (reads_scales(o) && overlap(o.d, o.scale_b)) return apart("scale_b");
  if (o.scale_d.data != nullptr && overlap(o.d, o.scale_d)) return apart("scale_d");
  if (o.epilogue.bias != Bias::none && overlap(o.d, o.bias)) return apart("the bias");
  if (o.groups) {
    // As a row of bytes.
    MatrixView offsets = matrix(const_cast<void*>(o.groups->offsets), DType::e4m3, 1,
                                (groups_of(o) + 1) * offset_bytes(o.groups->type));
    if (overlap(o.d, offsets)) return apart("offsets");
  }
  return std::nullopt;
}

std::int64_t batch_stride(const MatrixView& v) {
  return v.batch == 1 ? 0 : v.batch_stride;
}

void describe_strides(const GemmOperands& o, GemmProblem& p) {
  p.a_row_stride = o.a.row_stride;
  p.b_row_stride = o.b.row_stride;
  p.d_row_stride = o.d.row_stride;
  p.a_column_stride = o.a.column_stride;
  p.b_column_stride = o.b.column_stride;
  p.d_column_stride = o.d.column_stride;
  p.a_batch_stride = batch_stride(o.a);
  p.b_batch_stride = batch_stride(o.b);
  p.d_batch_stride = batch_stride(o.d);
  if (p.reads_ab && p.m > 0 && p.n > 0) {
    p.a_alignment = alignment_of(o.a.data);
    p.b_alignment = alignment_of(o.b.data);
  }
  p.d_alignment = alignment_of(o.d.data);
  if (!p.reads_c) return;
  p.c_row_stride = o.c.row_stride;
  p.c_column_stride = o.c.column_stride;
  p.c_batch_stride = batch_stride(o.c);
  p.c_alignment = alignment_of(o.c.data);
}

GemmProblem problem_of(const GemmOperands& o) {
  GemmProblem p;
  p.m = o.d.rows;
  p.n = o.b.rows;
  p.k = o.a.columns;
  p.batch = o.d.batch;
  p.a = o.a.dtype;
  p.b = o.b.dtype;
  p.d = o.d.dtype;
  p.reads_c = reads_c(o);
  p.reads_ab = reads_ab(o);
  p.c = p.reads_c ? o.c.dtype : o.d.dtype;
  p.scaling = o.scaling;
  p.accumulation = o.scaling == Scaling::block ? Accumulation::promoted : o.accumulation;
  p.packed = o.packed;
  p.epilogue = o.epilogue;
  if (o.epilogue.bias != Bias::none) p.bias = o.bias.dtype;
  p.scales_d = o.scale_d.data != nullptr;
  p.groups = groups_of(o);
  if (o.groups) {
    p.offsets = o.groups->type;
    p.expected_tokens = o.groups->expected_tokens;
  }
  describe_strides(o, p);
  if (p.packed) {
    // Its tiles follow each other in an order of their own.
    p.b_row_stride = p.k;
    p.b_column_stride = 1;
    p.b_batch_stride = o.b.batch > 1 ? p.n * p.k : 0;
  }
  return p;
}

// What a launch may not differ in from its plan.
Fault kind_mismatch(const GemmProblem& got, const GemmProblem& want) {
  if (got.m != want.m || got.n != want.n || got.k != want.k) {
    return refuse(RefusalCode::plan_mismatch, "the operands are a product of ", got.m, " x ", got.n,
                  " x ", got.k, "; the plan is for ", want.m, " x ", want.n, " x ", want.k);
  }
  if (got.batch != want.batch) {
    return refuse(RefusalCode::plan_mismatch, "the operands are a batch of ", got.batch,
                  "; the plan is for ", want.batch);
  }
  if (got.groups != want.groups) {
    const auto words = [](std::int64_t groups) {
      return groups == 0 ? std::string("no groups") : number(groups) + " groups";
    };
    return refuse(RefusalCode::plan_mismatch, "the operands have ", words(got.groups),
                  "; the plan is for ", words(want.groups));
  }
  const bool types = got.a == want.a && got.b == want.b && got.d == want.d &&
                     (!got.reads_c || !want.reads_c || got.c == want.c) &&
                     got.offsets == want.offsets && got.packed == want.packed;
  if (!types) {
    return refuse(RefusalCode::plan_mismatch,
                  "the operands' types are not those of the plan; make a plan for them");
  }
  if (got.scaling != want.scaling || got.accumulation != want.accumulation) {
    return refuse(RefusalCode::plan_mismatch,
                  "the operands' scaling and accumulation are not those of the plan, which has ",
                  scaling_words(want.scaling), " and ",
                  (want.accumulation == Accumulation::fast ? "fast" : "promoted"), " accumulation");
  }
  const bool bias = got.epilogue.bias == Bias::none || got.bias == want.bias;
  if (got.epilogue != want.epilogue || !bias || got.scales_d != want.scales_d) {
    return refuse(
        RefusalCode::plan_mismatch,
        "the operands' epilogue (activation, gate, bias and its type, scale_d) is not that of the "
        "plan; make a plan for it");
  }
  return std::nullopt;
}

Fault use_mismatch(const GemmProblem& got, const GemmProblem& want) {
  if (got.reads_c && !want.reads_c) {
    return refuse(RefusalCode::plan_mismatch,
                  "beta is not 0, but the plan was made without C; make a plan that reads C");
  }
  if (got.reads_ab && !want.reads_ab) {
    return refuse(RefusalCode::plan_mismatch,
                  "alpha is not 0, but the plan was made without reading A and B");
  }
  return std::nullopt;
}

Fault stride_mismatch(const GemmProblem& got, const GemmProblem& want) {
  const auto differs = [&](std::int64_t GemmProblem::*a, std::int64_t GemmProblem::*b,
                           std::int64_t GemmProblem::*c, std::int64_t GemmProblem::*d) {
    const bool of_ab = got.*a != want.*a || got.*b != want.*b;
    return (got.reads_ab && of_ab) || got.*d != want.*d || (got.reads_c && got.*c != want.*c);
  };
  using P = GemmProblem;
  const char* what = nullptr;
  if (differs(&P::a_row_stride, &P::b_row_stride, &P::c_row_stride, &P::d_row_stride)) {
    what = "row";
  } else if (differs(&P::a_column_stride, &P::b_column_stride, &P::c_column_stride,
                     &P::d_column_stride)) {
    what = "column";
  } else if (differs(&P::a_batch_stride, &P::b_batch_stride, &P::c_batch_stride,
                     &P::d_batch_stride)) {
    what = "batch";
  }
  if (what == nullptr) return std::nullopt;
  return refuse(RefusalCode::plan_mismatch, "the operands' ", what,
                " strides are not those of the plan; make a plan for them");
}

Fault alignment_mismatch(const Plan& plan, const GemmProblem& got) {
  const auto says = [](const char* name, int known, int wanted = 16) {
    return refuse(RefusalCode::plan_mismatch, name, "'s address is a multiple of ", known,
                  " bytes only; the plan was made for one of ", wanted, ": say so in the problem");
  };
  const GemmProblem& want = plan.problem;
  if (got.a_alignment < want.a_alignment) return says("A", got.a_alignment, want.a_alignment);
  if (got.b_alignment < want.b_alignment) return says("B", got.b_alignment, want.b_alignment);
  if (plan.d_path == EpiloguePath::copy_engine && got.d_alignment < 16) {
    return says("D", got.d_alignment);
  }
  if (got.reads_c && plan.c_path == EpiloguePath::copy_engine && got.c_alignment < 16) {
    return says("C", got.c_alignment);
  }
  return std::nullopt;
}

}  // namespace

// Bytes from the first to behind the last element of a view, or 0 when it is empty.
static std::int64_t extent_bytes(const MatrixView& v) {
  return numeric::packed_bytes(
      v.dtype,
      reach({{v.batch, v.batch_stride}, {v.rows, v.row_stride}, {v.columns, v.column_stride}}));
}

bool overlap(const MatrixView& x, const MatrixView& y) {
  const auto a = reinterpret_cast<std::uintptr_t>(x.data);
  const auto b = reinterpret_cast<std::uintptr_t>(y.data);
  const std::int64_t na = extent_bytes(x);
  const std::int64_t nb = extent_bytes(y);
  if (na == 0 || nb == 0) return false;
  return a < b + static_cast<std::uintptr_t>(nb) && b < a + static_cast<std::uintptr_t>(na);
}

MatrixView stored_b(const GemmOperands& o) {
  if (!o.packed) return o.b;
  const packed::Extents extents{o.b.batch, o.b.rows, o.b.columns};
  return matrix(o.b.data, DType::u8, 1, packed::data_bytes(o.packed->format, extents));
}

GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType operand,
                           DType result, bool reads_c) {
  GemmProblem p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a = p.b = operand;
  p.c = p.d = result;
  p.reads_c = reads_c;
  p.reads_ab = k > 0;
  p.a_row_stride = p.b_row_stride = k;
  p.c_row_stride = p.d_row_stride = n;
  return p;
}

GemmProblem packed_grouped_problem(std::int64_t total, std::int64_t n, std::int64_t k,
                                   std::int64_t groups, DType operand, DType result) {
  GemmProblem p = packed_problem(total, n, k, operand, result);
  p.groups = groups;
  p.b_batch_stride = groups == 1 ? 0 : n * k;
  return p;
}

Result<GemmProblem> describe(const GemmOperands& operands) {
  for (const auto rule : {scalar_fault, packed_fault, views_fault, shapes_fault, batches_fault,
                          unread_fault, scales_fault, bias_fault, offsets_fault, overlap_fault}) {
    if (auto r = rule(operands)) return *r;
  }
  return problem_of(operands);
}

std::optional<Refusal> mismatch(const Plan& plan, const GemmOperands& operands) {
  const auto described = describe(operands);
  if (!described) return described.refusal();
  const GemmProblem& got = *described;
  for (const auto rule : {kind_mismatch, use_mismatch, stride_mismatch}) {
    if (auto r = rule(got, plan.problem)) return r;
  }
  return alignment_mismatch(plan, got);
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
