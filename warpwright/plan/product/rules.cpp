#include "warpwright/plan/product/rules.h"

#include <algorithm>
#include <utility>

#include "warpwright/facts/weight_forms.h"
#include "warpwright/tile/groups.h"

namespace warpwright {

std::string packed_name(const PackedFormat& f) {
  return "packed " + packed::weights_word(f) + " weights";
}

namespace {

using Fault = std::optional<Refusal>;

// Has the format of `form` such sums for other tokens, or in another form for these?
bool has_sums_elsewhere(const packed::WeightForm& form, GroupSums sums, bool for_these) {
  return std::ranges::any_of(packed::weight_forms, [&](const packed::WeightForm& other) {
    return other.format == form.format && (other.tokens == form.tokens) == for_these &&
           packed::has_sums(other, sums);
  });
}

// Sums of packed weights, and what no kernel has together with them.
Fault packed_sums_fault(const GemmProblem& p) {
  const PackedFormat& f = p.packed->format;
  const GroupSums summed = packed::sums_for(f, p.packed->sums);
  const std::string sums = name(summed);
  const auto refused = [&](const std::string& with) {
    return refuse(RefusalCode::unsupported, "the sums of packed weights are ", sums, " and ", with,
                  ", which no kernel has together: the nearest is ", as_nearest("exact"));
  };
  if (summed == GroupSums::exact || summed == GroupSums::open) return std::nullopt;
  const packed::WeightForm* const form = packed::weight_form(f);
  if (form == nullptr) return std::nullopt;  // which is refused as such
  const bool has_them = packed::has_sums(*form, summed);
  if (!has_them && !has_sums_elsewhere(*form, summed, true)) {
    return refused(has_sums_elsewhere(*form, summed, false) ? "A is " + type_name(f.tokens)
                                                            : "B are " + type_name(f.code));
  }
  if (packed::has_float_codes(f)) {
    if (!has_them) return refused("B's exponents are not of rows, for they span too far");
    if (packed::is_wide(f)) return std::nullopt;
  }
  if (p.scaling == Scaling::blockwise) return refused("A has block scales");
  if (f.zero_points != ZeroPoints::none) return refused("B has zero points");
  if (p.is_gated()) return refused("the epilogue is gated");
  if (!has_them) {
    return refuse(RefusalCode::unsupported,
                  "the sums of packed weights are table, and their encoding is ex, for whose 16 "
                  "codes a table has no room: the nearest is ",
                  as_nearest("folded"), ", or weights that are packed with the encoding sm");
  }
  if (!packed::is_wide(f) && !packed::has_float_codes(f) && !p.groups) {
    return refused("the product has no groups");
  }
  return std::nullopt;
}

Fault packed_fault(const GemmProblem& p) {
  if (p.b.dtype == DType::s4 && !p.packed) {
    return refuse(
        RefusalCode::bad_type, as_tensor("B"), " is s4, and nothing says how it is packed; ",
        as_rule("int4 weights are multiplied in their packed form, which `warpwright pack` makes"));
  }
  if (!p.packed) return std::nullopt;
  const PackedFormat& f = p.packed->format;
  if (p.a.dtype != f.tokens) {
    return refuse(RefusalCode::bad_type, as_tensor("A"), " is ", type_name(p.a.dtype),
                  ", and B are ", packed_name(f), ", packed for tokens of ", type_name(f.tokens),
                  ": the nearest A is ", as_nearest(type_name(f.tokens)));
  }
  if (p.scaling == Scaling::block_scaled) {
    return refuse(RefusalCode::unsupported, as_tensor("B"), " are ", packed_name(f),
                  ", and scaling is block_scaled, which no kernel has "
                  "together: the nearest is ",
                  as_nearest("row-column"));
  }
  if (auto r = packed_sums_fault(p)) return r;
  const bool has_zeros = f.zero_points != ZeroPoints::none;
  if (has_zeros && (p.is_gated() || p.scaling == Scaling::blockwise)) {
    return refuse(RefusalCode::unsupported, as_tensor("B"), " has zero points and ",
                  p.is_gated() ? "the epilogue is gated" : "A has block scales",
                  ", which no kernel has together: the nearest is ",
                  as_nearest("weights that are packed without"));
  }
  return std::nullopt;
}

Fault operand_type_fault(const GemmProblem& p, bool tma) {
  if (p.packed) return std::nullopt;
  if (p.scaling == Scaling::block_scaled) return micro_fault(p, tma);
  for (const auto& [type, name_of] : {std::pair{p.a.dtype, "A"}, {p.b.dtype, "B"}}) {
    if (!is_micro_element(type) || numeric::bits(type) == 8) continue;
    return refuse(RefusalCode::bad_type, as_tensor(name_of), " is ", type_name(type),
                  ", and scaling is ", name(p.scaling), "; ",
                  as_rule(type_name(type), " is multiplied with a scale for every ",
                          micro_block(micro_scale(type))),
                  ": the nearest scaling is ", as_nearest("block_scaled"));
  }
  const bool more = !tma;  // the kernels of mma.sync take more
  for (const auto& [type, name] : {std::pair{p.a.dtype, "A"}, {p.b.dtype, "B"}}) {
    if (is_of_all_kernels(type) || (more && is_of_registers(type))) continue;
    const char* nearest = numeric::bits(type) > 8 ? "bf16" : "e4m3";
    if (more && (type == DType::f32 || !numeric::is_float(type))) {
      nearest = type == DType::f32 ? "tf32" : "s8";
    }
    return refuse(
        RefusalCode::bad_type, as_tensor(name), " is ", type_name(type), "; ",
        as_rule("operands are ", listed(operand_types, more ? is_operand_type : is_of_all_kernels)),
        ": the nearest is ", as_nearest(nearest));
  }
  if (p.a.dtype == p.b.dtype || (is_8bit_float(p.a.dtype) && is_8bit_float(p.b.dtype)))
    return std::nullopt;
  return refuse(
      RefusalCode::bad_type, as_tensor("A"), " is ", type_name(p.a.dtype), " and B is ",
      type_name(p.b.dtype), "; ",
      as_rule("A and B are both ", listed(operand_types, is_16bit_float, ", both ", ", both "),
              ", or each ", listed(operand_types, is_8bit_float)),
      ": the nearest B is ", as_nearest(type_name(p.a.dtype)));
}

Fault result_type_fault(const GemmProblem& p) {
  if (is_micro(p.epilogue.quantise)) return std::nullopt;  // quantise_fault has said what D is
  const bool wide = is_result_type(p.d.dtype) && !is_8bit_float(p.d.dtype);
  const bool narrow_operands = is_8bit_float(p.a.dtype);
  const bool narrow =
      is_8bit_float(p.d.dtype) && (narrow_operands || (p.is_gated() && p.d.dtype == DType::e4m3));
  if (!wide && !narrow) {
    const Sentence text = as_tensor("D") + " is " + type_name(p.d.dtype) + "; ";
    if (narrow_operands) {
      return refuse(RefusalCode::bad_type, text,
                    as_rule("for ", type_name(p.a.dtype), " operands it is ",
                            listed(operand_types, is_16bit_float, ", ", ", "), ", f32, ",
                            listed(operand_types, is_8bit_float)),
                    ": the nearest is ", as_nearest("f32"));
    }
    if (is_8bit_float(p.d.dtype)) {
      return refuse(
          RefusalCode::bad_type, text,
          as_rule("for ", type_name(p.a.dtype),
                  " operands it is bf16, fp16 or f32, and e4m3 where the epilogue is gated"),
          ": the nearest is ", as_nearest("bf16"));
    }
    return refuse(RefusalCode::bad_type, text,
                  as_rule("for ", type_name(p.a.dtype), " operands it is bf16, fp16 or f32"),
                  ": the nearest is ", as_nearest("f32"));
  }
  if (p.reads_c() && p.c.dtype != p.d.dtype) {
    return refuse(RefusalCode::bad_type, as_tensor("C"), " is ", type_name(p.c.dtype), " and D is ",
                  type_name(p.d.dtype), "; ",
                  as_rule("C must have D's type, ", type_name(p.d.dtype)));
  }
  if (p.reads_c() && is_8bit_float(p.c.dtype)) {
    return refuse(RefusalCode::bad_type, as_tensor("D"), " is ", type_name(p.d.dtype), "; ",
                  as_rule("it is bf16, fp16 or f32 beside a C, which no kernel adds in 8 bits"),
                  ": the nearest is ", as_nearest("bf16"));
  }
  return std::nullopt;
}

Fault scaling_fault(const GemmProblem& p) {
  if (p.packed && p.scaling == Scaling::blockwise && !numeric::is_8bit(p.a.dtype)) {
    return refuse(
        RefusalCode::unsupported, "scaling is blockwise, and ", as_tensor("A"), " is ",
        type_name(p.a.dtype), "; ", as_rule("only tokens of 8 bits have scales of blocks"),
        ": the nearest scaling is ", as_nearest("row-column"), ", only of the packed weights");
  }
  if (p.scaling != Scaling::none && p.scaling != Scaling::block_scaled && !p.packed &&
      !numeric::is_8bit(p.a.dtype)) {
    return refuse(RefusalCode::unsupported, "scaling is ", name(p.scaling), ", and ",
                  as_tensor("A"), " and B are ", type_name(p.a.dtype), "; ",
                  as_rule("only operands of 8 bits have scales"), ": the nearest scaling is ",
                  as_nearest("none"));
  }
  if (p.scaling == Scaling::group && !p.groups) {
    return refuse(RefusalCode::unsupported,
                  "scaling is group, and the product has no groups: the nearest scaling is ",
                  as_nearest("tensor"));
  }
  if (p.accumulation == Accumulation::promoted && !is_8bit_float(p.a.dtype)) {
    return refuse(RefusalCode::unsupported, "accumulation is promoted, and ", as_tensor("A"),
                  " and B are ", type_name(p.a.dtype), "; ",
                  as_rule("their sums are float32 anyway, promotion is for ",
                          listed(operand_types, is_8bit_float, ", ", " and ")),
                  ": the nearest accumulation is ", as_nearest("fast"));
  }
  const bool has_scale = is_8bit_float(p.d.dtype) || p.epilogue.quantise == QuantiseD::nvf4_1x16;
  if (is_given(p.scale_d) && !has_scale) {
    return refuse(RefusalCode::unsupported, as_tensor("scale_d"), " is given, and D is ",
                  type_name(p.d.dtype), "; ",
                  as_rule("only a D of ", listed(operand_types, is_8bit_float),
                          " has a scale: leave scale_d out"));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> extent_fault(const GemmProblem& p) {
  for (const auto& [extent, name] : {std::pair{p.m(), "M"}, {p.n(), "N"}, {p.k(), "K"}}) {
    if (extent < 0) {
      return refuse(RefusalCode::bad_shape, name, " is ", extent, "; the nearest legal value is ",
                    as_nearest("0"));
    }
    if (extent > max_extent) {
      return refuse(
          RefusalCode::bad_shape, name, " is ", extent, "; ",
          as_rule("coordinates have 32 bits, and tiles reach up to 4096 beyond the last element"),
          ": the nearest legal value is ", as_nearest(max_extent));
    }
  }
  if (auto r = groups_fault(p)) return r;
  if (p.batch() < 1 || p.batch() > max_extent) {
    return refuse(RefusalCode::bad_shape, "the batch has a length of ", p.batch(),
                  "; the nearest legal length is ", as_nearest(p.batch() < 1 ? 1 : max_extent));
  }
  return std::nullopt;
}

std::optional<Refusal> problem_fault(const GemmProblem& p, bool tma) {
  for (const auto rule : {extent_fault, packed_fault}) {
    if (auto r = rule(p)) return r;
  }
  if (auto r = operand_type_fault(p, tma)) return r;
  for (const auto rule : {quantise_fault, result_type_fault, scaling_fault, epilogue_fault}) {
    if (auto r = rule(p)) return r;
  }
  if (auto r = operands_fault(p, tma)) return r;
  return outputs_fault(p);
}

std::optional<Refusal> tiles_fault(const GemmProblem& p, const std::vector<ResultTile>& kernels) {
  const auto pieces = [](std::int64_t extent, std::int64_t tile) {
    return (extent + tile - 1) / tile;
  };
  const auto tiles_down = [&](const ResultTile& t) {
    return p.groups ? tile::GroupedTiles::most_token_tiles(p.m(), p.group_count(), t.rows)
                    : pieces(p.m(), t.rows);
  };
  const std::int64_t columns = result_columns(p);
  std::int64_t most_batch = 0;  // of D as it is
  std::int64_t most_m = 0;      // of the columns and the batch as they are
  std::int64_t most_n = 0;      // of the rows and groups as they are
  for (const ResultTile& t : kernels) {
    const std::int64_t each = tiles_down(t) * pieces(columns, t.columns);
    if (each <= max_extent / p.batch()) return std::nullopt;
    most_batch = std::max(most_batch, max_extent / each);
    most_m = std::max(most_m, max_extent / p.batch() / pieces(columns, t.columns) * t.rows);
    most_n = std::max(most_n, max_extent / tiles_down(t) * t.columns);
  }
  if (kernels.empty()) return std::nullopt;
  Sentence nearest = " batch is " + as_nearest(1);
  if (p.groups) {
    nearest = most_n > 0 ? " N is " + as_nearest(most_n)
                         : " number of groups is " +
                               as_nearest(std::max<std::int64_t>(1, p.group_count() / 2));
  } else if (most_batch >= 1) {
    nearest = " batch is " + as_nearest(most_batch);
  } else if (most_m >= 1) {
    nearest = " M is " + as_nearest(most_m);
  }
  return refuse(RefusalCode::bad_shape, as_tensor("D"), " of ", shape_of(p.m(), columns),
                (p.batch() > 1 ? ", a batch of " + number(p.batch()) + "," : ""),
                (p.groups ? " in " + number(p.group_count()) + " groups may have" : " has"),
                " more tiles than the ", max_extent, " that can be numbered; ", as_rule("split it"),
                ": the nearest legal", nearest);
}

Refusal no_sms(const DeviceFacts& device) {
  return {RefusalCode::no_device, "device " + device.name + " has " + number(device.sms) +
                                      " SMs; " + as_rule("a kernel runs on one or more") +
                                      ": the nearest legal is " + as_nearest("1")};
}

Refusal no_groups(const DeviceFacts& device) {
  return refuse(RefusalCode::no_device, "the product has groups, and device ", device.name,
                " is sm_", device.architecture, "; ",
                as_rule("kernels for groups exist for sm_90 (H100, H200), sm_100 (B200), sm_103 "
                        "(B300) and, with scales for every few elements, sm_120"));
}

Refusal cluster_too_large(int size, const DeviceFacts& device,
                          std::span<const atom::ClusterShape> clusters) {
  atom::ClusterShape nearest;
  for (const atom::ClusterShape& c : clusters) {
    const bool fits = atom::cluster_size(c) <= device.sms;
    if (fits && atom::cluster_size(c) > atom::cluster_size(nearest)) nearest = c;
  }
  return {RefusalCode::bad_choice,
          "a cluster of " + number(size) + " CTAs needs as many SMs; " +
              as_rule("device ", device.name, " has ", number(device.sms)) +
              ": the nearest legal cluster is " +
              as_nearest(number(nearest.m), ",", number(nearest.n))};
}

std::string unpacked_word(const GemmProblem& p, bool have_scales) {
  const PackedFormat& f = p.packed->format;
  const MicroFormat* const micro = micro_format(f.code, f.scale);
  return micro != nullptr && have_scales ? std::string(micro->word) : type_name(p.a.dtype);
}

}  // namespace warpwright
