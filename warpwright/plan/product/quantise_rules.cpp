// The rules of a D that is quantised: what may be, and the scales that are written beside it.
#include <algorithm>
#include <string>

#include "warpwright/facts/block_scales.h"
#include "warpwright/plan/product/asked.h"

namespace warpwright {
namespace product {
namespace {

// For scales that are written: no two of them in one place.
Fault apart_fault(const Tensor& tensor) {
  const PlannedMatrix& v = tensor.shape;
  if (v.rows == 0 || v.columns == 0) return std::nullopt;
  std::array<Direction, 3> all = directions(v);
  for (const auto& [extent, stride, what] : all) {
    if (extent <= 1 || stride >= 1) continue;
    return refuse(RefusalCode::bad_stride, as_tensor(tensor.name), " has a ", what, " stride of ",
                  stride, "; the nearest legal is ", as_nearest("1"));
  }
  std::sort(all.begin(), all.end(), [](const Direction& x, const Direction& y) {
    return (x.extent > 1 ? x.stride : 0) < (y.extent > 1 ? y.stride : 0);
  });
  std::int64_t inside = 1;  // elements that the directions so far reach over
  for (const auto& [extent, stride, what] : all) {
    if (extent <= 1) continue;
    if (stride < inside) {
      return refuse(RefusalCode::overlap, as_tensor(tensor.name), " overlap each other: their ",
                    what, " stride is ", stride, ", and what lies within reaches over ", inside,
                    "; the nearest legal is ", as_nearest(inside));
    }
    inside = reach({{extent, stride}, {inside, 1}});
  }
  return std::nullopt;
}

}  // namespace

Fault d_scales_fault(const Asked& o) {
  const Tensor scales = scales_of_d(o);
  const PlannedMatrix& v = scales.shape;
  if (!o.p.is_quantised()) {
    if (!scales.is_given) return std::nullopt;
    return refuse(
        RefusalCode::bad_value, as_tensor(scales.name), " is given and epilogue.quantise is none; ",
        as_rule("say how D is quantised (",
                listed(all_quantisations, [](QuantiseD q) { return q != QuantiseD::none; }),
                "), or leave it out"));
  }
  if (!scales.is_given && !o.is_strict) return std::nullopt;
  const MatrixShape s = d_scales_shape(o.p);
  const auto need = [&] {
    return "; " + as_rule("a D (", shape_of(o.p.d), ") that is quantised has ", type_name(s.dtype),
                          " scales of shape ", shape_of(s),
                          s.batch > 1 ? ", a batch of " + number(s.batch) : "");
  };
  if (!scales.is_given && s.rows > 0 && s.columns > 0) {
    return refuse(RefusalCode::bad_pointer, as_tensor(scales.name), " is a null pointer", need());
  }
  if (v.dtype != s.dtype) {
    return refuse(RefusalCode::bad_type, as_tensor(scales.name), " is ", type_name(v.dtype),
                  need());
  }
  if (v.rows != s.rows || v.columns != s.columns || v.batch != s.batch) {
    return refuse(RefusalCode::bad_shape, as_tensor(scales.name), " is ", shape_of(v),
                  (v.batch != 1 ? ", a batch of " + number(v.batch) : ""), need());
  }
  if (auto r = tensor_fault(o, scales, true)) return r;
  if (is_micro(o.p.epilogue.quantise)) {
    if (auto r = scale_tiles_fault(scales)) return r;
  }
  return apart_fault(scales);
}

}  // namespace product

MatrixShape d_scales_shape(const GemmProblem& p) {
  const QuantisedForm form = form_of(p.epilogue.quantise);
  MatrixShape s{form.scale, p.d.rows, ScaleReach::count(p.d.columns, form.columns)};
  if (is_micro(p.epilogue.quantise)) {
    s.rows = p.groups ? block_scales::grouped_rows(s.rows, p.group_count())
                      : block_scales::padded_rows(s.rows);
    s.columns = block_scales::padded_columns(p.d.columns, micro_block(form.scale));
  }
  s.row_stride = s.columns;
  s.batch = p.batch();
  s.batch_stride = s.batch > 1 ? s.rows * s.columns : 0;
  return s;
}

namespace {

using Fault = std::optional<Refusal>;

// The operands of which products with such a D exist.
Fault quantised_operands_fault(const GemmProblem& p) {
  const char* const how = name(p.epilogue.quantise);
  if (is_micro(p.epilogue.quantise)) {
    if (p.scaling == Scaling::block_scaled) return std::nullopt;
    return refuse(RefusalCode::unsupported, "scaling is ", name(p.scaling),
                  ", and D is quantised (", how, "); ",
                  as_rule("products of block_scaled operands are"), ": the nearest dtype is ",
                  as_nearest(std::string_view(how).substr(0, std::string_view(how).find('-'))));
  }
  const bool wrong_a = p.a.dtype != DType::e4m3;
  if (!p.packed && !wrong_a && p.b.dtype == DType::e4m3 && p.scaling != Scaling::block_scaled) {
    return std::nullopt;
  }
  if (p.scaling == Scaling::block_scaled) {
    return refuse(RefusalCode::unsupported, "scaling is block_scaled, and D is quantised (", how,
                  "); ",
                  as_rule("codes with a scale for each 128 of a row are of products without "
                          "such scales"),
                  ": the nearest way is ", as_nearest(name(QuantiseD::mxf8_1x32)));
  }
  return refuse(RefusalCode::bad_type, as_tensor(wrong_a ? "A" : "B"), " is ",
                type_name(wrong_a ? p.a.dtype : p.b.dtype), ", and D is quantised (", how, "); ",
                as_rule("products of two e4m3 are"), ": the nearest is ", as_nearest("e4m3"));
}

}  // namespace

std::optional<Refusal> quantise_fault(const GemmProblem& p) {
  if (!p.is_quantised()) return std::nullopt;
  const std::string how = name(p.epilogue.quantise);
  const QuantisedForm form = form_of(p.epilogue.quantise);
  if (p.d.dtype != form.codes) {
    return refuse(RefusalCode::bad_type, as_tensor("D"), " is ", type_name(p.d.dtype),
                  ", and it is quantised (", how, "); ",
                  as_rule("codes with a scale for each ", form.columns, " of a row are ",
                          type_name(form.codes)),
                  ": the nearest is ", as_nearest(type_name(form.codes)));
  }
  if (auto r = quantised_operands_fault(p)) return r;
  if (is_micro(p.epilogue.quantise)) {
    if (p.is_gated() && !p.groups) {
      return refuse(RefusalCode::unsupported, "the epilogue is gated, and D is quantised (", how,
                    "); ", as_rule("kernels that do both are of products in groups"));
    }
    const std::int64_t whole = whole_elements(1, form.codes);
    for (const auto& [value, what] :
         {std::pair{p.d.columns, "columns"},
          {p.d.row_stride, "elements from row to row"},
          {p.d.batch > 1 ? p.d.batch_stride : 0, "elements from matrix to matrix"}}) {
      if (value % whole == 0) continue;
      return refuse(RefusalCode::bad_shape, as_tensor("D"), " has ", value, " ", what, ", and ",
                    whole, " of its codes are a byte: the nearest legal is ",
                    as_nearest(value + whole - value % whole));
    }
  }
  if (p.reads_c()) {
    return refuse(RefusalCode::unsupported, as_tensor("C"),
                  " is read (beta is not 0) and D is quantised (", how, "); ",
                  as_rule("no kernel adds a C to what it quantises"),
                  ": the nearest legal beta is ", as_nearest("0"));
  }
  if (is_given(p.scale_d) && p.epilogue.quantise != QuantiseD::nvf4_1x16) {
    return refuse(RefusalCode::unsupported, as_tensor("scale_d"), " is given, and D is quantised (",
                  how, "), which finds scales of its own: ", as_rule("leave scale_d out"));
  }
  return std::nullopt;
}

Refusal no_codes(const DeviceFacts& device) {
  return refuse(
      RefusalCode::no_device, "D is quantised, and device ", device.name, " is sm_",
      device.architecture, "; ",
      as_rule("kernels that quantise D exist for sm_90 (H100, H200; 1x128) and sm_100 and "
              "sm_103 (B200, B300; mxf8-1x32, nvf4-1x16 and mxf4-1x32)"));
}

}  // namespace warpwright
