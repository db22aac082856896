// The rules that a product keeps by itself: shapes that agree, and, where memory is known, its
// addresses. Whatever a device computes, it computes products without these faults.
#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

// A product, and where it lies, if that is known: without, what is not there has no extents.
struct Asked {
  const GemmProblem& p;
  const GemmOperands* memory;
  // As a caller described it; else sizes are not held against memory, and scales and a bias that
  // are left out are what they must be.
  bool is_strict;

  // Is there a C, if only by its address?
  [[nodiscard]] bool has_c() const { return memory != nullptr ? memory->has_c() : p.has_c(); }
  [[nodiscard]] bool reads_c() const { return p.beta != 0.0F && has_c(); }
};

// One of its tensors, with its name in refusals.
struct Tensor {
  const char* name;
  const PlannedMatrix& shape;
  const void* address;
  bool is_given;
};

Tensor tensor_of(const Asked& o, const char* name, PlannedMatrix GemmProblem::*planned,
                 MatrixView GemmOperands::*view) {
  const PlannedMatrix& shape = o.p.*planned;
  if (o.memory == nullptr) return {name, shape, &o, is_given(shape)};
  const void* const address = (o.memory->*view).data;
  return {name, shape, address, address != nullptr};
}
Tensor tensor_a(const Asked& o) {
  return tensor_of(o, "A", &GemmProblem::a, &GemmOperands::a);
}
Tensor tensor_b(const Asked& o) {
  return tensor_of(o, "B", &GemmProblem::b, &GemmOperands::b);
}
Tensor tensor_c(const Asked& o) {
  return tensor_of(o, "C", &GemmProblem::c, &GemmOperands::c);
}
Tensor tensor_d(const Asked& o) {
  return tensor_of(o, "D", &GemmProblem::d, &GemmOperands::d);
}
Tensor scale_of(const Asked& o, bool of_a) {
  return of_a ? tensor_of(o, "scale_a", &GemmProblem::scale_a, &GemmOperands::scale_a)
              : tensor_of(o, "scale_b", &GemmProblem::scale_b, &GemmOperands::scale_b);
}
Tensor scale_of_d(const Asked& o) {
  return tensor_of(o, "scale_d", &GemmProblem::scale_d, &GemmOperands::scale_d);
}
Tensor bias_of(const Asked& o) {
  return tensor_of(o, "the bias", &GemmProblem::bias, &GemmOperands::bias);
}

// Are there products to be scaled?
bool reads_scales(const GemmProblem& p) {
  return p.scaling != Scaling::none && p.reads_ab() && p.d.rows > 0 && p.d.columns > 0;
}

Fault scalar_fault(const Asked& o) {
  if (std::isnan(o.p.alpha))
    return refuse(RefusalCode::bad_value, "alpha is NaN; ", as_rule("it must be a number"));
  if (std::isnan(o.p.beta))
    return refuse(RefusalCode::bad_value, "beta is NaN; ", as_rule("it must be a number"));
  if (!o.has_c() && o.p.beta != 0.0F && o.p.beta != 1.0F) {
    return refuse(RefusalCode::bad_value, "beta is ", format("%g", static_cast<double>(o.p.beta)),
                  ", and there is no ", as_tensor("C"), ": ", as_rule("give C, or leave beta out"));
  }
  return std::nullopt;
}

// The three ways in which elements of a matrix lie apart.
struct Direction {
  std::int64_t extent;
  std::int64_t stride;
  const char* what;
};
std::array<Direction, 3> directions(const MatrixShape& v) {
  return {{{v.rows, v.row_stride, "row"},
           {v.columns, v.column_stride, "column"},
           {v.batch, v.batch_stride, "batch"}}};
}

// What is larger than memory, of which no end could be found (and no overlap).
Fault size_fault(const Tensor& tensor) {
  const std::int64_t most = elements_in(max_reach_bytes, tensor.shape.dtype);
  for (const auto& [extent, stride, what] : directions(tensor.shape)) {
    if (extent > max_extent) {
      return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " has ", extent, " ", what,
                    what[0] == 'b' ? " matrices" : "s", "; ", as_rule("coordinates have 32 bits"),
                    ": the nearest legal number is ", as_nearest(max_extent));
    }
    if (extent > 1 && stride > most / (extent - 1)) {
      return refuse(
          RefusalCode::bad_stride, as_tensor(tensor.name), " has a ", what, " stride of ", stride,
          " elements, which reaches beyond all memory (2^56 bytes): the nearest legal is ",
          as_nearest(most / (extent - 1)));
    }
  }
  return std::nullopt;
}

Fault tensor_fault(const Asked& o, const Tensor& tensor, bool used) {
  const PlannedMatrix& v = tensor.shape;
  if (v.rows < 0 || v.columns < 0) {
    return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " has a negative extent (",
                  shape_of(v), "); ", as_rule("extents are 0 or more"));
  }
  if (!used || v.rows == 0 || v.columns == 0) return std::nullopt;
  if (o.is_strict) {
    if (auto r = size_fault(tensor)) return r;
  }
  if (tensor.address == nullptr) {
    return refuse(RefusalCode::bad_pointer, as_tensor(tensor.name), " is a null pointer; ",
                  as_rule("a tensor of ", shape_of(v), " elements needs memory"));
  }
  const int element = numeric::bits(v.dtype) / 8;
  if (v.alignment % std::clamp(element, 1, 16) != 0) {
    return refuse(RefusalCode::bad_pointer, as_tensor(tensor.name),
                  "'s address is not a multiple of its element size, ", element, " bytes");
  }
  return std::nullopt;
}

Fault packed_fault(const Asked& o) {
  if (!o.p.packed) return std::nullopt;
  if (o.p.b.dtype != DType::s4) {
    return refuse(RefusalCode::bad_type, as_tensor("B"), " is ", type_name(o.p.b.dtype),
                  ", and packed weights are given; ", as_rule("they are s4"));
  }
  if (o.p.scaling == Scaling::blockwise && scale_of(o, false).is_given) {
    return refuse(
        RefusalCode::bad_value, as_tensor("scale_b"),
        " is given with block scaling and packed weights, which bring the scales of their groups; ",
        as_rule("leave it out"));
  }
  return std::nullopt;
}

Fault tensors_fault(const Asked& o) {
  if (auto r = tensor_fault(o, tensor_a(o), o.p.reads_ab())) return r;
  if (auto r = tensor_fault(o, tensor_b(o), o.p.reads_ab())) return r;
  if (auto r = tensor_fault(o, tensor_d(o), true)) return r;
  return o.reads_c() ? tensor_fault(o, tensor_c(o), true) : std::nullopt;
}

Fault shapes_fault(const Asked& o) {
  const auto& [a, b, c, d] = std::tie(o.p.a, o.p.b, o.p.c, o.p.d);
  if (a.columns != b.columns) {
    return refuse(RefusalCode::bad_shape, as_tensor("A"), " is ", shape_of(a), " and B is ",
                  shape_of(b), "; ", as_rule("their columns are both K and must agree"),
                  ": the nearest legal B is ", as_nearest(shape_of(b.rows, a.columns)));
  }
  const std::int64_t columns = result_columns(o.p);
  if (d.rows != a.rows || d.columns != columns) {
    return refuse(
        RefusalCode::bad_shape, as_tensor("D"), " is ", shape_of(d), "; ",
        as_rule("the product of A (", shape_of(a), ") and B (", shape_of(b), ") transposed",
                (o.p.is_gated() ? ", gated," : ""), " is ", shape_of(a.rows, columns)));
  }
  if (o.reads_c() && (c.rows != d.rows || c.columns != d.columns)) {
    return refuse(RefusalCode::bad_shape, as_tensor("C"), " is ", shape_of(c), "; ",
                  as_rule("beta is not 0, so it must be as large as D, ", shape_of(d)));
  }
  return std::nullopt;
}

Fault batch_fault(const Tensor& tensor, std::int64_t length) {
  const std::int64_t batch = tensor.shape.batch;
  if (batch == 1 || batch == length) return std::nullopt;
  return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " is a batch of ", batch,
                " and D of ", length, "; ",
                as_rule("it must be of the same length, or 1 to serve all of D"),
                ": the nearest legal is ", as_nearest(batch < 1 ? 1 : length));
}

// The rows of all groups are one matrix; B has a matrix for each.
Fault group_batches_fault(const Asked& o) {
  if (o.p.b.batch < 1) {
    return refuse(RefusalCode::bad_shape, as_tensor("B"), " is a batch of ", o.p.b.batch,
                  " matrices, one for each group; the nearest legal number of groups is ",
                  as_nearest("1"));
  }
  for (const Tensor& t : {tensor_a(o), tensor_c(o), tensor_d(o)}) {
    if (t.shape.batch == 1) continue;
    return refuse(RefusalCode::bad_shape, as_tensor(t.name), " is a batch of ", t.shape.batch,
                  ", and the rows of all groups are one matrix: the nearest legal is ",
                  as_nearest("1"));
  }
  return std::nullopt;
}

Fault batches_fault(const Asked& o) {
  if (o.p.groups) return group_batches_fault(o);
  const std::int64_t length = o.p.batch();
  if (length < 1) {
    return refuse(RefusalCode::bad_shape, as_tensor("D"), " is a batch of ", length,
                  "; the nearest legal length is ", as_nearest("1"));
  }
  if (auto r = batch_fault(tensor_a(o), length)) return r;
  if (auto r = batch_fault(tensor_b(o), length)) return r;
  return o.reads_c() ? batch_fault(tensor_c(o), length) : std::nullopt;
}

Fault offsets_fault(const Asked& o) {
  if (o.memory == nullptr || !o.p.groups) return std::nullopt;
  const int width = offset_bytes(o.p.groups->type);
  const void* const offsets = o.memory->groups->offsets;
  if (offsets == nullptr) {
    return refuse(RefusalCode::bad_pointer, as_tensor("offsets"), " is a null pointer; ",
                  as_rule(o.p.group_count(), " groups have ", o.p.group_count() + 1,
                          " offsets, in the operands' memory"));
  }
  const int known = alignment_of(offsets);
  if (known >= width) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, "the ",
                as_rule("address of ", as_tensor("offsets"),
                        " must be a multiple of its integers' size, ", width, " bytes"),
                "; it is one of ", known);
}

// A tensor that is read element by element: its strides may be any but negative ones.
Fault side_fault(const Asked& o, const Tensor& tensor, std::int64_t length) {
  if (auto r = tensor_fault(o, tensor, true)) return r;
  if (auto r = batch_fault(tensor, length)) return r;
  for (const auto& [extent, stride, what] : directions(tensor.shape)) {
    if (extent > 1 && stride < 0) {
      return refuse(RefusalCode::bad_stride, as_tensor(tensor.name), " has a ", what, " stride of ",
                    stride, "; the nearest legal is ", as_nearest("0"));
    }
  }
  return std::nullopt;
}

// Of a scale for whole tensors: kernels read one.
Fault one_scale_fault(const Tensor& scale) {
  if (scale.shape.batch <= 1 || scale.shape.batch_stride == 0) return std::nullopt;
  return refuse(RefusalCode::bad_shape, as_tensor(scale.name), " is a batch of ", scale.shape.batch,
                " scales; ", as_rule("all matrices of a batch share one"),
                ": the nearest legal batch is ", as_nearest("1"),
                " (row-column scaling has scales for each)");
}

// Of scales in tiles, which TMA brings.
Fault scale_tiles_fault(const Tensor& scale) {
  const PlannedMatrix& v = scale.shape;
  if ((v.rows > 1 && v.row_stride != v.columns) || (v.columns > 1 && v.column_stride != 1)) {
    return refuse(RefusalCode::bad_stride, as_tensor(scale.name), " has a row stride of ",
                  v.row_stride, " and a column stride of ", v.column_stride, "; ",
                  as_rule("its tiles follow each other without gaps"), ": the nearest legal are ",
                  as_nearest(v.columns, " and 1"));
  }
  if (v.batch > 1 && v.batch_stride % 16 != 0) {
    return refuse(RefusalCode::bad_stride, "the matrices of ", as_tensor(scale.name), " are ",
                  v.batch_stride, " bytes apart (batch stride); ",
                  as_rule("they must be a multiple of 16"), ": the nearest legal is ",
                  as_nearest((v.batch_stride + 15) / 16 * 16));
  }
  if (v.alignment >= 16) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, as_tensor(scale.name), "'s ",
                as_rule("address must be a multiple of 16 bytes for TMA"), "; it is one of ",
                v.alignment);
}

Fault scale_fault(const Asked& o, bool of_a) {
  const GemmProblem& p = o.p;
  const Tensor scale = scale_of(o, of_a);
  const PlannedMatrix& v = scale.shape;
  MatrixShape s = scale_shape(p, of_a);
  if (p.scaling == Scaling::group && of_a && v.rows == 1) s.rows = 1;
  const auto need = [&] {
    return "; " + as_rule(scaling_name(p.scaling), " scaling of ", of_a ? "A (" : "B (",
                          shape_of(of_a ? p.a : p.b), ") takes ", type_name(s.dtype),
                          " scales of shape ", shape_of(s),
                          p.groups && s.batch > 1 ? ", a batch of " + number(s.batch) : "");
  };
  if (!scale.is_given && !o.is_strict) return std::nullopt;
  if (!scale.is_given) {
    return refuse(RefusalCode::bad_pointer, as_tensor(scale.name), " is a null pointer", need());
  }
  if (v.dtype != s.dtype) {
    return refuse(RefusalCode::bad_type, as_tensor(scale.name), " is ", type_name(v.dtype), need());
  }
  if (v.rows != s.rows || v.columns != s.columns || (p.groups && v.batch != s.batch)) {
    return refuse(RefusalCode::bad_shape, as_tensor(scale.name), " is ", shape_of(v),
                  (v.batch != 1 ? ", a batch of " + number(v.batch) : ""), need());
  }
  if (p.scaling == Scaling::group && v.rows > 1 && v.row_stride > max_extent) {
    return refuse(RefusalCode::bad_stride, as_tensor(scale.name), " has a row stride of ",
                  v.row_stride, "; ", as_rule("that of the scales of groups has 32 bits"),
                  ": the nearest legal is ", as_nearest(max_extent));
  }
  if (auto r = side_fault(o, scale, s.batch)) return r;
  if (p.scaling == Scaling::tensor) return one_scale_fault(scale);
  return p.scaling == Scaling::block_scaled ? scale_tiles_fault(scale) : std::nullopt;
}

// Tensors that are given and would not be read: their caller expects something else.
Fault unread_fault(const Asked& o) {
  for (const bool of_a : {true, false}) {
    const Tensor scale = scale_of(o, of_a);
    if (o.p.scaling == Scaling::none && scale.is_given) {
      return refuse(RefusalCode::bad_value, as_tensor(scale.name),
                    " is given and scaling is none; ",
                    as_rule("say what it scales (tensor, row-column, block, group, or "
                            "block_scaled), or leave it out"));
    }
  }
  if (!o.p.has_bias() && bias_of(o).is_given) {
    return refuse(RefusalCode::bad_value, as_tensor("the bias"),
                  " is given and epilogue.bias is none; ",
                  as_rule("say what it runs along (rows or columns), or leave it out"));
  }
  return std::nullopt;
}

Fault scales_fault(const Asked& o) {
  if (reads_scales(o.p)) {
    if (auto r = scale_fault(o, true)) return r;
    if (!o.p.packed || scale_of(o, false).is_given) {
      if (auto r = scale_fault(o, false)) return r;
    }
  }
  const Tensor scale = scale_of_d(o);
  if (!scale.is_given) return std::nullopt;
  const PlannedMatrix& v = scale.shape;
  if (v.dtype != DType::f32 || v.rows != 1 || v.columns != 1) {
    return refuse(RefusalCode::bad_shape, as_tensor("scale_d"), " is ", shape_of(v), " of ",
                  type_name(v.dtype), "; ", as_rule("D has one scale"), ": the nearest legal is ",
                  as_nearest("1 x 1 of f32"));
  }
  if (auto r = side_fault(o, scale, o.p.batch())) return r;
  return one_scale_fault(scale);
}

Fault bias_fault(const Asked& o) {
  if (!o.p.has_bias()) return std::nullopt;
  const Tensor bias = bias_of(o);
  const PlannedMatrix& v = bias.shape;
  const bool of_rows = o.p.epilogue.bias == Bias::rows;
  const std::int64_t rows = of_rows ? o.p.m() : o.p.n();
  if (!bias.is_given && !o.is_strict) return std::nullopt;
  const auto need = [&] {
    return "; " +
           as_rule("a bias along the ",
                   of_rows ? "rows of D is M x 1" : "columns of the product is N x 1") +
           ": the legal shape is " + as_nearest(shape_of(rows, 1));
  };
  if (!bias.is_given && rows > 0)
    return refuse(RefusalCode::bad_pointer, as_tensor("the bias"), " is a null pointer", need());
  if (v.rows != rows || v.columns != 1)
    return refuse(RefusalCode::bad_shape, as_tensor("the bias"), " is ", shape_of(v), need());
  if (v.rows > 1 && v.row_stride != 1) {
    return refuse(RefusalCode::bad_stride, as_tensor("the bias"), " has a row stride of ",
                  v.row_stride, "; ", as_rule("its values lie next to each other"),
                  ": the nearest legal is ", as_nearest("1"));
  }
  return side_fault(o, bias, o.p.groups && !of_rows ? o.p.group_count() : o.p.batch());
}

bool same_view(const MatrixView& x, const MatrixView& y) {
  return x.data == y.data && x.dtype == y.dtype && x.row_stride == y.row_stride &&
         x.column_stride == y.column_stride && x.batch == y.batch &&
         (x.batch == 1 || x.batch_stride == y.batch_stride);
}

Fault overlap_fault(const Asked& asked) {
  if (asked.memory == nullptr) return std::nullopt;
  const GemmOperands& o = *asked.memory;
  const auto apart = [](const char* name) {
    return refuse(RefusalCode::overlap, as_tensor("D"), " overlaps ", name, "; ",
                  as_rule("it must lie apart from ", name));
  };
  if (o.reads_c() && overlap(o.c, o.d) && !same_view(o.c, o.d)) {
    return refuse(RefusalCode::overlap, as_tensor("D"), " overlaps C; ",
                  as_rule("it must lie apart from C or be the very same view"));
  }
  if (o.reads_ab() && overlap(o.d, o.a)) return apart("A");
  if (o.reads_ab() && overlap(o.d, stored_b(o))) return apart("B");
  if (reads_scales(asked.p) && overlap(o.d, o.scale_a)) return apart("scale_a");
  if (reads_scales(asked.p) && overlap(o.d, o.scale_b)) return apart("scale_b");
  if (is_given(o.scale_d) && overlap(o.d, o.scale_d)) return apart("scale_d");
  if (o.has_bias() && overlap(o.d, o.bias)) return apart("the bias");
  if (o.groups) {
    // As a row of bytes.
    MatrixView offsets = matrix(const_cast<void*>(o.groups->offsets), DType::e4m3, 1,
                                (o.group_count() + 1) * offset_bytes(o.groups->type));
    if (overlap(o.d, offsets)) return apart("offsets");
  }
  return std::nullopt;
}

Fault fault_of(const Asked& o) {
  for (const auto rule : {scalar_fault, packed_fault, tensors_fault, shapes_fault, batches_fault,
                          unread_fault, scales_fault, bias_fault, offsets_fault, overlap_fault}) {
    if (auto r = rule(o)) return r;
  }
  return std::nullopt;
}

// Bytes from the first to behind the last element of a view, or 0 when it is empty.
std::int64_t extent_bytes(const MatrixShape& v) {
  return numeric::packed_bytes(
      v.dtype,
      reach({{v.batch, v.batch_stride}, {v.rows, v.row_stride}, {v.columns, v.column_stride}}));
}

}  // namespace

MatrixShape scale_shape(const GemmProblem& p, bool of_a) {
  const PlannedMatrix& of = of_a ? p.a : p.b;
  const std::int64_t block_rows = of_a ? 1 : scale_block;
  MatrixShape s{DType::f32, 1, 1};
  s.batch = p.groups ? (of_a ? 1 : p.b.batch) : p.batch();
  switch (p.scaling) {
    case Scaling::group:
      s.rows = p.b.batch;
      s.batch = 1;
      break;
    case Scaling::row_column:
      s.rows = of.rows;
      break;
    case Scaling::block_scaled:
      s.dtype = micro_scale(of.dtype);
      s.rows = block_scales::padded_rows(of.rows);
      s.columns = block_scales::padded_columns(of.columns, micro_block(of.dtype));
      break;
    case Scaling::blockwise:
      s.rows = (of.rows + block_rows - 1) / block_rows;
      s.columns = (of.columns + scale_block - 1) / scale_block;
      break;
    case Scaling::none:
    case Scaling::tensor:
      if (p.groups) s.batch = 1;
  }
  s.row_stride = s.columns;
  s.batch_stride = s.batch > 1 ? s.rows * s.columns : 0;
  return s;
}

bool overlap(const MatrixView& x, const MatrixView& y) {
  const auto a = reinterpret_cast<std::uintptr_t>(x.data);
  const auto b = reinterpret_cast<std::uintptr_t>(y.data);
  const std::int64_t na = extent_bytes(x);
  const std::int64_t nb = extent_bytes(y);
  if (na == 0 || nb == 0) return false;
  return a < b + static_cast<std::uintptr_t>(nb) && b < a + static_cast<std::uintptr_t>(na);
}

Addresses addresses_of(const GemmOperands& o) {
  bool known = !o.groups || o.groups->offsets != nullptr;
  for (const MatrixView* v :
       {&o.a, &o.b, &o.c, &o.d, &o.scale_a, &o.scale_b, &o.scale_d, &o.bias}) {
    known = known && (v->data != nullptr || v->rows == 0 || v->columns == 0);
  }
  return known ? Addresses::known : Addresses::unknown;
}

std::optional<Refusal> product_fault(const GemmProblem& problem) {
  return fault_of({problem, nullptr, false});
}

Result<GemmProblem> describe(const GemmOperands& operands, Addresses addresses) {
  const GemmProblem problem = problem_of(operands);
  const bool known = addresses == Addresses::known;
  if (auto r = fault_of({problem, known ? &operands : nullptr, true})) return *r;
  return normalised(problem);
}

}  // namespace warpwright
