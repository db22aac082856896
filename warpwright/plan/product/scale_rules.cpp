// The rules of what a product reads beside A, B, C and D: scales, packed weights and the bias.
#include <string>
#include <utility>

#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/asked.h"

namespace warpwright {
namespace product {
namespace {

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

// For a scale for whole tensors: kernels read one.
Fault one_scale_fault(const Tensor& scale) {
  if (scale.shape.batch <= 1 || scale.shape.batch_stride == 0) return std::nullopt;
  return refuse(RefusalCode::bad_shape, as_tensor(scale.name), " is a batch of ", scale.shape.batch,
                " scales; ", as_rule("all matrices of a batch share one"),
                ": the nearest legal batch is ", as_nearest("1"),
                " (row-column scaling has scales for each)");
}

Fault scale_fault(const Asked& o, bool of_a) {
  const GemmProblem& p = o.p;
  const Tensor scale = scale_of(o, of_a);
  const PlannedMatrix& v = scale.shape;
  MatrixShape s = scale_shape(p, of_a);
  if (p.scaling == Scaling::group && of_a && v.rows == 1) s.rows = 1;
  const auto need = [&] {
    return "; " + as_rule(name(p.scaling), " scaling of ", of_a ? "A (" : "B (",
                          shape_of(of_a ? p.a : p.b), ") takes ", type_name(s.dtype),
                          " scales of shape ", shape_of(s),
                          p.groups && s.batch > 1 ? ", a batch of " + number(s.batch) : "");
  };
  if (!scale.is_given && !o.is_strict) return std::nullopt;
  if (!scale.is_given) {
    return refuse(RefusalCode::bad_pointer, as_tensor(scale.name), " is a null pointer", need());
  }
  if (scales_elements(p.scaling)) {
    if (auto r = micro_scale_fault(p, of_a)) return r;
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
  if (scales_elements(p.scaling) && is_micro_scale(v.dtype)) return scale_tiles_fault(scale);
  const bool is_one = p.scaling != Scaling::group && serves_all(scale_reach(p, of_a));
  return is_one ? one_scale_fault(scale) : std::nullopt;
}

// What kernels for smaller blocks than 128 x 128 have not.
Fault small_blocks_fault(const GemmProblem& p) {
  const std::int64_t block = scale_block_of(p);
  if (block == scale_block) return std::nullopt;
  const std::string said = "scales are of " + shape_of(block, block) + " of B, and ";
  const auto rule = [](const auto&... words) {
    return as_rule("blocks below ", shape_of(scale_block, scale_block), words...);
  };
  if (p.is_gated()) {
    return refuse(RefusalCode::unsupported, said, "the epilogue is gated; ",
                  rule(" have no gated product: multiply without a gate, as a mixture of experts "
                       "does, which gates behind it"));
  }
  if (p.is_quantised()) {
    return refuse(RefusalCode::unsupported, said, "D is quantised; ",
                  rule(" go with a D of bf16: quantise it behind the product"));
  }
  if (p.is_by_index()) {
    return refuse(RefusalCode::unsupported, said, "rows of A are read by index; ",
                  rule(" go with rows in the order of groups: gather them before"));
  }
  for (const auto& [type, name_of] : {std::pair{p.a.dtype, "A"}, {p.b.dtype, "B"}}) {
    if (type == DType::e4m3) continue;
    return refuse(RefusalCode::unsupported, said, name_of, " is ", type_name(type), "; ",
                  rule(" are of e4m3"), ": the nearest is ", as_nearest("e4m3"));
  }
  if (p.d.dtype == DType::bf16) return std::nullopt;
  return refuse(RefusalCode::unsupported, said, "D is ", type_name(p.d.dtype), "; ",
                rule(" go with a D of bf16"), ": the nearest is ", as_nearest("bf16"));
}

}  // namespace

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

Fault packed_fault(const Asked& o) {
  if (!o.p.packed) return std::nullopt;
  if (o.p.b.dtype != o.p.packed->format.code) {
    return refuse(RefusalCode::bad_type, as_tensor("B"), " is ", type_name(o.p.b.dtype),
                  ", and packed weights are given; ",
                  as_rule("they are ", type_name(o.p.packed->format.code)));
  }
  // First of all: the bytes of its tiles are told from it.
  if (const std::string fault = packed::format_fault(o.p.packed->format); !fault.empty()) {
    return refuse(RefusalCode::bad_value, as_tensor("B"),
                  " is packed, and that form is none: ", fault);
  }
  if (o.p.scaling == Scaling::blockwise && scale_of(o, false).is_given) {
    return refuse(
        RefusalCode::bad_value, as_tensor("scale_b"),
        " is given with block scaling and packed weights, which bring the scales of their groups; ",
        as_rule("leave it out"));
  }
  return std::nullopt;
}

Fault unread_fault(const Asked& o) {
  for (const bool of_a : {true, false}) {
    const Tensor scale = scale_of(o, of_a);
    if (o.p.scaling == Scaling::none && scale.is_given) {
      return refuse(RefusalCode::bad_value, as_tensor(scale.name),
                    " is given and scaling is none; ",
                    as_rule("say what it scales (",
                            listed(all_scalings, [](Scaling s) { return s != Scaling::none; }),
                            "), or leave it out"));
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
    if (o.p.packed && !numeric::is_8bit(o.p.a.dtype)) {
      if (scale_of(o, true).is_given) {
        return refuse(RefusalCode::bad_value, as_tensor("scale_a"), " is given, and ",
                      as_tensor("A"), " is ", type_name(o.p.a.dtype), "; ",
                      as_rule("tokens of 16 bits have no scales, only packed weights have them"),
                      ": leave it out");
      }
    } else if (auto r = scale_fault(o, true)) {
      return r;
    }
    if (!o.p.packed || scale_of(o, false).is_given) {
      if (auto r = scale_fault(o, false)) return r;
    }
    if (auto r = small_blocks_fault(o.p)) return r;
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

Fault factors_fault(const Asked& o) {
  for (const bool of_a : {true, false}) {
    const Tensor factor = factor_of(o, of_a);
    if (!factor.is_given) continue;
    if (!scales_elements(o.p.scaling) || !o.p.groups) {
      return refuse(RefusalCode::unsupported, as_tensor(factor.name), " is given; ",
                    as_rule("it is of block_scaled operands in groups: others have alpha"),
                    ": leave it out");
    }
    const PlannedMatrix& v = factor.shape;
    const std::int64_t groups = o.p.group_count();
    const bool is_one = v.rows == 1 && v.columns == 1;
    const bool is_each = !of_a && v.rows == groups && v.columns == 1;
    if (v.dtype != DType::f32 || v.batch != 1 || (!is_one && !is_each)) {
      return refuse(RefusalCode::bad_shape, as_tensor(factor.name), " is ", shape_of(v), " of ",
                    type_name(v.dtype), (v.batch != 1 ? ", a batch of " + number(v.batch) : ""),
                    "; ", as_rule(of_a ? "A has one factor" : "B has one, or one for each group"),
                    ": the nearest legal is ",
                    as_nearest(of_a ? shape_of(1, 1) : shape_of(groups, 1), " of f32"));
    }
    if (v.rows > 1 && v.row_stride > max_extent) {
      return refuse(RefusalCode::bad_stride, as_tensor(factor.name), " has a row stride of ",
                    v.row_stride, "; ", as_rule("that of the factors of groups has 32 bits"),
                    ": the nearest legal is ", as_nearest(max_extent));
    }
    if (auto r = side_fault(o, factor, 1)) return r;
  }
  return std::nullopt;
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

}  // namespace product

MatrixShape scale_shape(const GemmProblem& p, bool of_a) {
  const PlannedMatrix& of = of_a ? p.a : p.b;
  const ScaleReach reach = scale_reach(p, of_a);
  MatrixShape s{DType::f32, ScaleReach::count(of.rows, reach.rows),
                ScaleReach::count(of.columns, reach.depth)};
  s.batch = p.groups ? (of_a ? 1 : p.b.batch) : p.batch();
  if (p.groups && serves_all(reach)) s.batch = 1;
  if (p.scaling == Scaling::group) {
    s.rows = p.b.batch;
    s.batch = 1;
  }
  if (scales_elements(p.scaling) && !(of_a && has_plain_tokens(p))) {  // in tiles
    s.dtype = micro_scale(p, of_a);
    s.rows = p.groups && of_a        ? block_scales::grouped_rows(p.m(), p.group_count())
             : !of_a && p.is_gated() ? 2 * gate_scale_rows(p)
                                     : block_scales::padded_rows(of.rows);
    s.columns = block_scales::padded_columns(of.columns, micro_block(s.dtype));
  }
  s.row_stride = s.columns;
  s.batch_stride = s.batch > 1 ? s.rows * s.columns : 0;
  return s;
}

}  // namespace warpwright
