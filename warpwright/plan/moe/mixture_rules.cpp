// What is refused of a mixture of experts before a plan is looked for.
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/moe/mixture_micro.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

struct MixtureMatrix {
  const PlannedMatrix* matrix;
  const char* name;
};

std::optional<Refusal> mixture_extents_fault(const MixtureMatrix& v, std::int64_t batch,
                                             std::int64_t rows, std::int64_t columns,
                                             const char* why) {
  const PlannedMatrix& m = *v.matrix;
  if (m.batch == batch && m.rows == rows && m.columns == columns) return std::nullopt;
  const auto text = [](std::int64_t b, std::int64_t r, std::int64_t c) {
    return (b == 1 ? "" : number(b) + " x ") + shape_of(r, c);
  };
  return refuse(RefusalCode::bad_shape, as_tensor(v.name), " is ", text(m.batch, m.rows, m.columns),
                "; ", as_rule(why), ": the nearest legal is ",
                as_nearest(text(batch, rows, columns)));
}

// Rows of elements next to each other, which do not overlap.
std::optional<Refusal> mixture_rows_fault(const MixtureMatrix& v) {
  const PlannedMatrix& m = *v.matrix;
  if (m.columns > 1 && m.column_stride != 1) {
    return refuse(RefusalCode::bad_stride, as_tensor(v.name), " has a column stride of ",
                  m.column_stride, "; ", as_rule("its rows are contiguous"),
                  ": the nearest legal is ", as_nearest("1"));
  }
  if (m.rows > 1 && m.row_stride < m.columns) {
    return refuse(RefusalCode::bad_stride, as_tensor(v.name), " has a row stride of ", m.row_stride,
                  ", less than its ", m.columns, " columns; the nearest legal is ",
                  as_nearest(m.columns));
  }
  return std::nullopt;
}

// Each expert has weights of its own, or a stride of 0 says that all have the same.
std::optional<Refusal> mixture_overlap_fault(const MixtureMatrix& v) {
  const PlannedMatrix& m = *v.matrix;
  if (m.batch_stride <= 0 || m.column_stride != 1) return std::nullopt;
  const std::int64_t one = reach({{m.rows, m.row_stride}, {m.columns, 1}});
  if (one >= max_pitch_bytes / 8) return std::nullopt;  // no stride is as long
  return batch_overlap_fault(v.name, m);
}

std::optional<Refusal> mixture_type_fault(const MixtureMatrix& v, bool legal, const char* rule,
                                          const std::string& nearest) {
  if (legal) return std::nullopt;
  return refuse(RefusalCode::bad_type, as_tensor(v.name), " is ", type_name(v.matrix->dtype), "; ",
                as_rule(rule), ": the nearest is ", as_nearest(nearest));
}

// Whether the form of packed weights is given, where weights are packed.
std::optional<Refusal> mixture_form_fault(const MixtureMatrix& v,
                                          const std::optional<PackedWeights>& form,
                                          const char* name) {
  const DType type = v.matrix->dtype;
  if (!form) {
    if (type != DType::s4) return std::nullopt;
    return refuse(
        RefusalCode::bad_type, as_tensor(v.name), " is s4, and ", name, " is not given; ",
        as_rule("int4 weights are multiplied in their packed form, which `warpwright pack` makes"));
  }
  if (type != form->format.code) {
    return refuse(RefusalCode::bad_type, as_tensor(v.name), " is ", type_name(type), ", and ", name,
                  " is given; ", as_rule("packed weights are ", type_name(form->format.code)));
  }
  if (const std::string fault = packed::format_fault(form->format); !fault.empty()) {
    return refuse(RefusalCode::bad_value, as_tensor(v.name),
                  " is packed, and that form is none: ", fault);
  }
  return std::nullopt;
}

// What packed weights are multiplied by: both the same, and x's type where it is not quantised.
std::optional<Refusal> mixture_packed_tokens_fault(const MixtureProblem& p) {
  if (!p.is_packed()) return std::nullopt;
  const DType tokens = p.packed13->format.tokens;
  if (p.packed2->format.tokens != tokens) {
    return refuse(RefusalCode::bad_type, as_tensor("w2"), " is packed for tokens of ",
                  type_name(p.packed2->format.tokens), " and w13 for those of ", type_name(tokens),
                  "; ", as_rule("both weights are packed for one type"), ": the nearest is ",
                  as_nearest(type_name(tokens)));
  }
  if (p.quantises() || tokens == p.x.dtype) return std::nullopt;
  return refuse(RefusalCode::bad_type, as_tensor("x"), " is ", type_name(p.x.dtype),
                ", and w13 is packed for tokens of ", type_name(tokens), "; ",
                as_rule("packed weights are multiplied by what they are packed for"),
                ": the nearest is ", as_nearest(type_name(tokens)));
}

std::optional<Refusal> mixture_types_fault(const MixtureProblem& p) {
  const std::string of_x = type_name(p.row_type());
  if (auto r = mixture_type_fault({&p.x, "x"}, is_16bit_float(p.x.dtype) || p.has_codes(),
                                  "tokens are bf16 or fp16, or e4m3 with scale_x", "bf16"))
    return r;
  const bool served = p.w13.dtype == p.row_type() || p.w13.dtype == DType::e4m3 ||
                      p.w13.dtype == DType::s4 || p.is_packed() ||
                      (p.is_micro() && is_micro_element(p.w13.dtype));
  if (auto r = mixture_type_fault({&p.w13, "w13"}, served,
                                  "weights are of x's type, e4m3, packed s4 or e2m1, or with "
                                  "block_scaled of mxf8 to nvf4",
                                  of_x))
    return r;
  if (auto r = mixture_type_fault({&p.w2, "w2"}, p.w2.dtype == p.w13.dtype,
                                  "both weights are of one type", type_name(p.w13.dtype)))
    return r;
  if (auto r = mixture_form_fault({&p.w13, "w13"}, p.packed13, "packed13")) return r;
  if (p.is_packed() && !p.packed2) {
    return refuse(RefusalCode::bad_type, "packed13 is given and packed2 is not; ",
                  as_rule("both weights are packed, or none is"));
  }
  if (auto r = mixture_form_fault({&p.w2, "w2"}, p.packed2, "packed2")) return r;
  if (auto r = mixture_packed_tokens_fault(p)) return r;
  const DType w = p.topk_weights.dtype;
  if (auto r = mixture_type_fault({&p.topk_weights, "topk_weights"},
                                  w == DType::f32 || is_16bit_float(w),
                                  "the router's weights are f32, bf16 or fp16", "f32"))
    return r;
  return mixture_type_fault({&p.d, "d"}, p.d.dtype == p.row_type() || p.d.dtype == DType::f32,
                            p.has_codes() ? "the result of e4m3 tokens is bf16 or f32"
                                          : "the result is of x's type, or f32",
                            of_x);
}

std::optional<Refusal> mixture_scaling_fault(const MixtureProblem& p) {
  const bool micro = p.is_micro() && !p.is_packed() && is_micro_element(p.w13.dtype);
  const bool by_rows = p.scaling == Scaling::row_column;
  const bool legal = micro || (p.quantises() && !p.is_micro()
                                   ? by_rows || p.scaling == Scaling::blockwise
                                   : p.scaling == Scaling::none || (p.is_packed() && by_rows));
  for (const MixtureMatrix& v :
       {MixtureMatrix{&p.scale_w13, "scale_w13"}, {&p.scale_w2, "scale_w2"}}) {
    if (!legal || p.scaling != Scaling::none || !is_given(*v.matrix)) continue;
    return refuse(RefusalCode::bad_value, as_tensor(v.name), " is given and scaling is none; ",
                  as_rule("scaling says what the scales of quantised weights are of"),
                  ": the nearest is ", as_nearest("none given"));
  }
  if (legal) return std::nullopt;
  if (p.is_packed()) {
    return refuse(RefusalCode::bad_value, "scaling is ", name(p.scaling), " and w13 is packed ",
                  type_name(p.w13.dtype), "; ",
                  p.quantises()
                      ? as_rule("tokens of e4m3 that packed weights are multiplied by have scales "
                                "of rows or of blocks")
                      : as_rule("packed weights for tokens of ", type_name(p.token_type()),
                                " may have a scale for each row, and tokens have none"),
                  ": the nearest is ", as_nearest("row-column"));
  }
  if (p.is_micro()) {
    return refuse(RefusalCode::bad_value, "scaling is ", name(p.scaling), " and w13 is ",
                  type_name(p.w13.dtype), "; ",
                  as_rule("block_scaled weights are ", listed(all_types, is_micro_element)),
                  ": the nearest is ", as_nearest("e4m3"));
  }
  if (!p.quantises()) {
    return refuse(RefusalCode::bad_value, "scaling is ", name(p.scaling), " and w13 is ",
                  type_name(p.w13.dtype), "; ", as_rule("weights of 16 bits have no scales"),
                  ": the nearest is ", as_nearest("none"));
  }
  return refuse(RefusalCode::bad_value, "scaling is ", name(p.scaling), "; ",
                as_rule("e4m3 weights of a mixture have scales of rows or of blocks, or are "
                        "block_scaled"),
                ": the nearest is ", as_nearest("blockwise"));
}

PlannedMatrix planned_of(const MatrixView& v, bool known) {
  return {{v}, known && v.data != nullptr ? alignment_of(v.data) : 16};
}

std::optional<Refusal> mixture_pointer_fault(const MatrixView& v, const char* name, int element) {
  if (v.rows == 0 || v.columns == 0 || v.batch == 0) return std::nullopt;
  if (v.data == nullptr) {
    return refuse(RefusalCode::bad_pointer, as_tensor(name), " is a null pointer; ",
                  as_rule("a tensor of ", shape_of(v), " elements needs memory"));
  }
  if (reinterpret_cast<std::uintptr_t>(v.data) % static_cast<std::uintptr_t>(element) == 0) {
    return std::nullopt;
  }
  return refuse(RefusalCode::bad_pointer, as_tensor(name),
                "'s address is not a multiple of its element size, ", element, " bytes");
}

// Which tensors may be left out.
bool is_optional(std::string_view name) {
  return name.starts_with("scale_") || name.starts_with("factor_") || name.starts_with("bias") ||
         name == "shared_output";
}

std::optional<Refusal> mixture_memory_fault(const MixtureOperands& o) {
  for (const auto& [scales, name] :
       {std::pair{&o.scale_w13, "scale_w13"}, {&o.scale_w2, "scale_w2"}}) {
    if (o.scaling == Scaling::none || o.is_packed() || is_given(*scales)) continue;
    return refuse(RefusalCode::bad_pointer, as_tensor(name), " is left out, and scaling is ",
                  warpwright::name(o.scaling), "; ",
                  as_rule(type_name(o.w13.dtype), " weights have scales"));
  }
  std::optional<Refusal> fault;
  if (!o.is_routed() && is_given(o.topk_ids)) {
    return mixture_presence_fault(o, o.topk_ids, "topk_ids");
  }
  const auto check = [&](const char* name, const MatrixView& v, int element, bool may_overlap) {
    if (fault) return;
    fault = mixture_pointer_fault(v, name, element);
    if (fault || may_overlap || !overlap(o.d, v)) return;
    fault = refuse(RefusalCode::overlap, as_tensor("d"), " overlaps ", name, "; ",
                   as_rule("the result may lie only over x"));
  };
  // A CTA of a layer in one launch may read its ids late, but x only before anything of d is
  // written.
  check("topk_ids", o.topk_ids, offset_bytes(o.id_type), false);
  check("x", o.x, element_bytes(o.x.dtype), true);
  check("d", o.d, element_bytes(o.d.dtype), true);
  for_each_field(o, [&](const char* name, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const MatrixView&>) {
      if (&field == &o.x || &field == &o.topk_ids || &field == &o.d) return;
      if (!is_given(field)) {
        if (is_optional(name)) return;
        if (&field == &o.topk_weights && !o.reads_weights()) return;
      } else if (is_optional(name) && !fault) {
        fault = mixture_presence_fault(o, field, name);
      }
      const MatrixView v = stored(o, field);
      check(name, v, element_bytes(v.dtype), false);
    }
  });
  return fault;
}

// Why there are no such numbers of tokens, elements and rows, or nothing.
std::optional<Refusal> mixture_sizes_fault(const MixtureProblem& p) {
  for (const auto& [what, extent, tensor] : {std::tuple{"the number of tokens", p.tokens(), "x"},
                                             {"hidden", p.hidden(), "x"},
                                             {"inner", p.inner(), "w2"},
                                             {"the number of rows", p.w13.rows, "w13"}}) {
    if (extent >= 0 && extent <= max_extent) continue;
    return refuse(RefusalCode::bad_shape, what, " (of ", as_tensor(tensor), ") is ", extent, "; ",
                  as_rule("extents are 0 to ", max_extent), ": the nearest legal is ",
                  as_nearest(extent < 0 ? 0 : max_extent));
  }
  if (p.w13.rows % p.parts13() != 0) {
    return refuse(RefusalCode::bad_shape, as_tensor("w13"), " has ", p.w13.rows, " rows; ",
                  as_rule("its gate and up have as many rows each"), ": the nearest legal is ",
                  as_nearest(p.w13.rows + 1));
  }
  if (p.hidden() == 0 || p.w13.rows == 0) {
    return refuse(RefusalCode::bad_shape, as_tensor("w13"), " is ", shape_of(p.w13), "; ",
                  as_rule("experts have elements"));
  }
  return std::nullopt;
}

// Why these are not the shapes of one mixture, or nothing.
std::optional<Refusal> mixture_shapes_fault(const MixtureProblem& p) {
  const std::int64_t tokens = p.tokens();
  const std::int64_t inner = p.w13.rows / p.parts13();
  const bool unread = !p.reads_weights();
  const char* const of_d = p.combine == Combine::sum ? "the result has the shape of x"
                                                     : "the result has a row for each slot";
  const struct {
    MixtureMatrix of;
    std::int64_t batch, rows, columns;
    const char* why;
    bool may_miss = false;
  } extents[] = {
      {{&p.w13, "w13"}, p.experts(), p.w13.rows, p.hidden(), "experts take the elements of x"},
      {{&p.w2, "w2"}, p.experts(), p.hidden(), inner, "it takes what w13 gives, to rows of x"},
      {{&p.topk_ids, "topk_ids"},
       1,
       tokens,
       p.top_k(),
       "there is a row for each token",
       !p.is_routed()},
      {{&p.topk_weights, "topk_weights"}, 1, tokens, p.top_k(), "there is one for each id", unread},
      {{&p.x, "x"}, 1, tokens, p.hidden(), "tokens are one matrix"},
      {{&p.d, "d"}, 1, p.results(), p.hidden(), of_d},
      {{&p.shared_output, "shared_output"}, 1, tokens, p.hidden(), "it has the shape of x", true},
  };
  for (const auto& e : extents) {
    if (e.may_miss && !is_given(*e.of.matrix)) continue;
    if (auto r = mixture_extents_fault(e.of, e.batch, e.rows, e.columns, e.why)) return r;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> mixture_fault(const MixtureProblem& p) {
  if (auto r = mixture_sizes_fault(p)) return r;
  if (auto r = mixture_router_fault(p)) return r;
  if (auto r = mixture_types_fault(p)) return r;
  if (auto r = mixture_scaling_fault(p)) return r;
  if (auto r = mixture_blocks_fault(p)) return r;
  if (auto r = mixture_codes_fault(p)) return r;
  if (auto r = mixture_tokens_fault(p)) return r;
  if (auto r = mixture_activation_fault(p)) return r;
  if (auto r = gate_numbers_fault(p.gate, p.is_gated, p.activation)) return r;
  if (auto r = mixture_experts_fault(p)) return r;
  if (auto r = mixture_combine_fault(p)) return r;
  if (auto r = mixture_factors_fault(p)) return r;
  if (auto r = mixture_gate_fault(p)) return r;
  // Packed weights keep the K that they were packed with.
  if (p.is_packed() && p.w13.columns > p.hidden() && p.w13.columns == p.w2.rows) {
    return refuse(RefusalCode::bad_shape, as_tensor("x"), " is ", shape_of(p.x), " and w13 is ",
                  shape_of(p.w13), "; ", as_rule("experts take the elements of x"),
                  ": the nearest legal x is ", as_nearest(shape_of(p.tokens(), p.w13.columns)),
                  ", with zeros behind its rows");
  }
  if (auto r = mixture_shapes_fault(p)) return r;
  for (const MixtureMatrix& v : {MixtureMatrix{&p.x, "x"},
                                 {&p.topk_ids, "topk_ids"},
                                 {&p.topk_weights, "topk_weights"},
                                 {&p.shared_output, "shared_output"},
                                 {&p.d, "d"}}) {
    if (auto r = mixture_rows_fault(v)) return r;
  }
  for (const MixtureMatrix& v : {MixtureMatrix{&p.w13, "w13"}, {&p.w2, "w2"}}) {
    if (auto r = mixture_overlap_fault(v)) return r;
  }
  return std::nullopt;
}

Result<MixtureProblem> describe(const MixtureOperands& o, bool known) {
  MixtureProblem p = with_matrices(o, [&](const MatrixView& v) { return planned_of(v, known); });
  // What is left out has no extents; scales that weights need are missed by their address.
  for_each_field_of_mixtures(
      [&](std::string_view name, const auto& given, auto& planned) {
        if constexpr (std::is_same_v<decltype(planned), PlannedMatrix&>) {
          const bool is_missed = name.starts_with("scale_w") && !o.is_packed();
          const bool unread = name == "topk_weights" && !o.reads_weights();
          const bool may_miss = unread || (is_optional(name) && !is_missed);
          if (known && may_miss && !is_given(given)) planned = {};
        }
      },
      o, p);
  if (p.is_micro() && is_padded_in_shared(p.w13.dtype, p.token_type())) {
    for (const auto& [view, planned] :
         {std::pair<const MatrixView&, PlannedMatrix&>{o.w13, p.w13}, {o.w2, p.w2}}) {
      if (known && view.data != nullptr) planned.alignment = padded_alignment_of(view.data);
    }
  }
  if (o.is_packed()) {
    lie_side_by_side(p.w13);  // packed weights have no strides
    lie_side_by_side(p.w2);
  }
  if (auto r = mixture_fault(p)) return *r;
  if (auto r = mixture_launch_fault(o)) return *r;
  if (auto r = known ? mixture_memory_fault(o) : std::nullopt) return *r;
  p.gate.reset();  // a plan serves any
  p.routed_scaling_factor = 1;
  return p;
}

}  // namespace warpwright
