// The forms in which weights of 4 bits are packed: one table of formats, and one of the forms that
// each has for tokens of a type. Rules, plans, tolerances, the command line, C, Python, benches and
// tests iterate over them: a new format or a new type of tokens is a row here, beside its codes in
// a word (packed_e2m1.h), its packer (weights/) and its decoder (kernel/hopper/decode/).
#pragma once

#include <string>
#include <string_view>

#include "warpwright/facts/packed_e2m1.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::packed {

/// A format: what codes are, and their scales.
struct WeightFormat {
  const char* word;         ///< of --weights, and in messages
  DType code;               ///< the type of B
  DType scales[3];          ///< the types of scales, the usual one first; f64: no other
  int groups[3];            ///< weights along K that share one, the usual one last; 0: no other
  bool has_factor = false;  ///< has each tensor a float32 that its weights are multiplied by?
};

inline constexpr WeightFormat weight_formats[] = {
    {"int4", DType::s4, {DType::bf16, DType::f16, DType::f32}, {32, 64, 128}},
    {"mxf4", DType::e2m1, {DType::ue8m0, DType::f64, DType::f64}, {0, 0, 32}},
    {"nvf4", DType::e2m1, {DType::ue4m3, DType::f64, DType::f64}, {0, 0, 16}, true},
};
enum FormatNumber : int { int4, mxf4, nvf4 };

/// Ways to sum, as bits. With `open` a plan chooses, because none of them rounds.
constexpr unsigned bit_of(GroupSums sums) {
  return 1U << static_cast<unsigned>(sums);
}
inline constexpr unsigned exact = bit_of(GroupSums::exact);
inline constexpr unsigned folded = exact | bit_of(GroupSums::folded);
inline constexpr unsigned open = folded | bit_of(GroupSums::open);
inline constexpr unsigned chained = folded | bit_of(GroupSums::chained);
inline constexpr unsigned table = chained | bit_of(GroupSums::table);

/// How codes and scales are stored.
struct Storage {
  Int4Encoding encoding = Int4Encoding::ex;
  Exponents exponents = Exponents::own;
  bool zero_points = false;  ///< may scales have these?
};
inline constexpr Storage zeros{Int4Encoding::ex, Exponents::own, true};
inline constexpr Storage signs_apart{Int4Encoding::sm};
inline constexpr Storage units{Int4Encoding::ex, Exponents::of_rows};

/// What rounding weights with their scales may change, as a share of the products; and where scales
/// are rounded first.
struct Rounding {
  double weights = 0;
  double both = 0;
};
inline constexpr Rounding to_e4m3{0.0635, 0.13};  // a sixteenth at most, scales to f16, or e4m3
inline constexpr Rounding to_bf16{2.01 * 0x1p-9, 2.01 * 0x1p-9};

/// A form: how a format is packed for tokens of a type.
struct WeightForm {
  FormatNumber format;
  DType tokens;       ///< what it is multiplied by
  const char* word;   ///< `encoding` in Python
  int number;         ///< `encoding` in C, and in Python's `form`
  int stored;         ///< in the header of a packed tensor: codes, tokens and exponents
  const char* bench;  ///< the kind of `bench`; null: another form has it
  unsigned sums;      ///< that kernels have
  Storage storage = {};
  Rounding rounding = {};  ///< by sums that fold
};

/// The usual form of a format and a type of tokens stands before others of these; the first of a
/// format is for the usual tokens.
inline constexpr WeightForm weight_forms[] = {
    {int4, DType::e4m3, "ex", 1, 0, nullptr, chained, zeros, to_e4m3},
    {int4, DType::e4m3, "sm", 0, 0, "int4", table, signs_apart, to_e4m3},
    {int4, DType::bf16, "ex-bf16", 7, 5, "int4-bf16", folded, zeros, to_bf16},
    {int4, DType::f16, "ex-fp16", 10, 8, "int4-fp16", exact, zeros},
    {mxf4, DType::e4m3, "mxf4", 3, 2, "mxf4-e4m3", open, units},
    {mxf4, DType::e4m3, "mxf4-exact", 4, 1, nullptr, exact},
    {mxf4, DType::bf16, "mxf4-bf16", 5, 4, "mxf4-bf16", folded, units},
    {mxf4, DType::f16, "mxf4-fp16", 8, 7, "mxf4-fp16", folded, units},
    {nvf4, DType::bf16, "nvf4-bf16", 6, 3, "nvf4-bf16", folded},
    {nvf4, DType::f16, "nvf4-fp16", 9, 6, "nvf4-fp16", folded},
};

// --- rows ----------------------------------------------------------------------------------------
/// The first row that `is` so; null where there is none.
template <class Row, std::size_t N, class Is>
constexpr const Row* first_row(const Row (&rows)[N], const Is& is) {
  for (const Row& row : rows) {
    if (is(row)) return &row;
  }
  return nullptr;
}
template <class T>
constexpr bool is_among(const T (&all)[3], T each, T none) {
  return each != none && (all[0] == each || all[1] == each || all[2] == each);
}

constexpr const WeightFormat& format_of(const WeightForm& form) {
  return weight_formats[form.format];
}
/// The format with such codes and scales, or that word.
constexpr const WeightFormat* weight_format(DType code, DType scale) {
  return first_row(weight_formats, [&](const WeightFormat& format) {
    return format.code == code && is_among(format.scales, scale, DType::f64);
  });
}
constexpr const WeightFormat* weight_format(std::string_view word) {
  return first_row(weight_formats, [&](const WeightFormat& f) { return word == f.word; });
}

/// The form with that number or word; and the one in which weights are packed: null where none are
/// packed so (format_fault says why).
constexpr const WeightForm* weight_form(int number) {
  return first_row(weight_forms, [&](const WeightForm& form) { return form.number == number; });
}
constexpr const WeightForm* weight_form(std::string_view word) {
  return first_row(weight_forms, [&](const WeightForm& form) { return word == form.word; });
}
constexpr const WeightForm* weight_form(const PackedFormat& f) {
  return first_row(weight_forms, [&](const WeightForm& form) {
    return &format_of(form) == weight_format(f.code, f.scale) && form.tokens == f.tokens &&
           is_among(format_of(form).groups, f.group, 0) && form.storage.encoding == f.encoding &&
           form.storage.exponents == f.exponents &&
           (form.storage.zero_points || f.zero_points == ZeroPoints::none);
  });
}
/// The usual form of a format; for tokens of a type null where it has none.
constexpr const WeightForm& usual_form(const WeightFormat& format) {
  return *first_row(weight_forms, [&](const auto& form) { return &format_of(form) == &format; });
}
constexpr const WeightForm* usual_form(const WeightFormat& format, DType tokens) {
  return first_row(weight_forms, [&](const WeightForm& form) {
    return &format_of(form) == &format && form.tokens == tokens;
  });
}
constexpr int last_form_number() {
  int last = 0;
  for (const WeightForm& form : weight_forms) last = form.number > last ? form.number : last;
  return last;
}

// --- what they say -------------------------------------------------------------------------------
/// What a form's weights are packed as, with its format's usual group and scales.
constexpr PackedFormat packed_format(const WeightForm& form) {
  const WeightFormat& format = format_of(form);
  return {form.storage.encoding, format.groups[2], format.scales[0],      ZeroPoints::none,
          format.code,           form.tokens,      form.storage.exponents};
}
/// The same of the form with this number, with these parts; for a number of none a format that is
/// none.
constexpr PackedFormat packed_format(int number, int group, DType scale, ZeroPoints zeros) {
  const WeightForm* const form = weight_form(number);
  PackedFormat f = form != nullptr ? packed_format(*form) : PackedFormat{.code = DType::f64};
  f.group = group;
  f.scale = scale;
  f.zero_points = zeros;
  return f;
}
/// Has each tensor a float32 that its weights are multiplied by?
constexpr bool has_factor(const PackedFormat& f) {
  const WeightFormat* const format = weight_format(f.code, f.scale);
  return format != nullptr && format->has_factor;
}
/// Can a group or a type of scales be chosen?
constexpr bool has_groups(const WeightFormat& format) {
  return format.groups[0] > 0;
}
/// Has `bench` a kind of it by tokens with a scale for each 1 x 128?
constexpr bool has_blocks(const WeightForm& form) {
  return form.tokens == DType::e4m3 && has_float_codes(packed_format(form));
}
constexpr bool has_sums(const WeightForm& form, GroupSums sums) {
  return (form.sums & bit_of(sums)) != 0;
}
/// Sums that are open where nothing is to choose are exact.
constexpr GroupSums sums_for(const PackedFormat& f, GroupSums sums) {
  const WeightForm* const form = weight_form(f);
  const bool chooses = form != nullptr && has_sums(*form, GroupSums::open);
  return sums == GroupSums::open && !chooses ? GroupSums::exact : sums;
}
/// The value of a code's four bits.
constexpr double value_of(const PackedFormat& f, std::uint32_t bits) {
  return has_float_codes(f) ? numeric::to_double(f.code, bits) : code_of(bits, f.encoding);
}

/// Why there is no such format, as a sentence; "" when there is.
std::string format_fault(const PackedFormat& f);
/// The word of weights' format: "mxf4".
std::string weights_word(const PackedFormat& f);
/// The words of all formats, with `between` two of them and `last` before the last.
std::string format_words(const char* between = ", ", const char* last = " or ");
/// The types of tokens that a format is packed for, or all formats are, likewise.
std::string tokens_words(const WeightFormat* format = nullptr, const char* between = ", ",
                         const char* last = " or ");

}  // namespace warpwright::packed
