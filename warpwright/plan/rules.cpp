#include "warpwright/plan/rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "warpwright/tile/groups.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// Of a type that an operand or a result may have.
Fault extent_fault(const GemmProblem& p) {
  for (const auto& [extent, name] : {std::pair{p.m, "M"}, {p.n, "N"}, {p.k, "K"}}) {
    if (extent < 0) {
      return refuse(RefusalCode::bad_shape, name, " is ", extent, "; the nearest legal value is 0");
    }
    if (extent > max_extent) {
      return refuse(
          RefusalCode::bad_shape, name, " is ", extent,
          "; coordinates have 32 bits, and tiles reach up to 4096 beyond the last element: "
          "the nearest legal value is ",
          max_extent);
    }
  }
  if (p.groups < 0 || p.groups > max_extent) {
    return refuse(RefusalCode::bad_shape, "the number of groups is ", p.groups,
                  "; the nearest legal value is ", p.groups < 0 ? 1 : max_extent);
  }
  if (p.groups > 0 && p.batch != 1) {
    return refuse(RefusalCode::bad_shape, "the batch has a length of ", p.batch,
                  ", and the rows fall into groups: the nearest legal length is 1");
  }
  if (!(p.expected_tokens >= 0)) {
    return refuse(RefusalCode::bad_value,
                  "the expected tokens of a group are negative or no number; 0 leaves them open");
  }
  if (p.batch < 1 || p.batch > max_extent) {
    return refuse(RefusalCode::bad_shape, "the batch has a length of ", p.batch,
                  "; the nearest legal length is ", p.batch < 1 ? 1 : max_extent);
  }
  return std::nullopt;
}

// Of int4 weights.
Fault packed_fault(const GemmProblem& p) {
  if (p.b == DType::s4 && !p.packed) {
    return refuse(
        RefusalCode::bad_type,
        "B is s4, and nothing says how it is packed; int4 weights are multiplied in their "
        "packed form, which `warpwright pack` makes");
  }
  if (!p.packed) return std::nullopt;
  if (const char* fault = packed::format_fault(p.packed->format)) {
    return refuse(RefusalCode::bad_value, "B is packed, and that form is none: ", fault);
  }
  if (p.a != DType::e4m3) {
    return refuse(
        RefusalCode::bad_type, "A is ", type_name(p.a),
        ", and B are packed int4 weights, which are multiplied by e4m3 alone: the nearest "
        "A is e4m3");
  }
  if (p.scaling == Scaling::micro) {
    return refuse(RefusalCode::unsupported,
                  "B are packed int4 weights, and scaling is micro, which no kernel has together: "
                  "the nearest is row-column");
  }
  const bool has_zeros = p.packed->format.zero_points != ZeroPoints::none;
  if (p.packed->sums != GroupSums::exact) {
    const std::string sums = name(p.packed->sums);
    const char* with = p.scaling == Scaling::block ? "A has block scales"
                       : has_zeros                 ? "B has zero points"
                       : p.epilogue.gated          ? "the epilogue is gated"
                                                   : nullptr;
    if (with != nullptr) {
      return refuse(RefusalCode::unsupported, "the sums of packed weights are ", sums, " and ",
                    with, ", which no kernel has together: the nearest is exact");
    }
  }
  if (p.packed->sums == GroupSums::table && p.packed->format.encoding != Int4Encoding::sm) {
    return refuse(RefusalCode::unsupported,
                  "the sums of packed weights are table, and their encoding is ex, for whose 16 "
                  "codes a table has no room: the nearest is folded, or weights that are packed "
                  "with the encoding sm");
  }
  if (has_zeros && (p.epilogue.gated || p.scaling == Scaling::block)) {
    return refuse(RefusalCode::unsupported, "B has zero points and ",
                  p.epilogue.gated ? "the epilogue is gated" : "A has block scales",
                  ", which no kernel has together: the nearest is weights that are packed without");
  }
  return std::nullopt;
}

// Of operands whose scales the tensor core multiplies.
Fault micro_type_fault(const GemmProblem& p) {
  if (p.a != p.b || (p.a != DType::e4m3 && p.a != DType::e2m1)) {
    return refuse(RefusalCode::bad_type, "A is ", type_name(p.a), " and B is ", type_name(p.b),
                  ", and scaling is micro, which is of two e4m3 (mxf8) or two e2m1 (nvf4): the "
                  "nearest is ",
                  p.a == DType::e2m1 || p.b == DType::e2m1 ? "e2m1" : "e4m3");
  }
  if (p.a == DType::e2m1 && p.k % 2 != 0) {
    return refuse(RefusalCode::bad_shape, "K is ", p.k,
                  ", and A and B are e2m1, two of which are a byte: the nearest legal K is ",
                  p.k + 1);
  }
  return std::nullopt;
}

Fault operand_type_fault(const GemmProblem& p, bool copy_engine) {
  if (p.packed) return std::nullopt;
  if (p.scaling == Scaling::micro) return micro_type_fault(p);
  if (p.a == DType::e2m1 || p.b == DType::e2m1) {
    return refuse(RefusalCode::bad_type, p.a == DType::e2m1 ? "A" : "B",
                  " is e2m1, and scaling is ", scaling_name(p.scaling),
                  "; e2m1 is multiplied with a scale for every 16: the nearest scaling is micro");
  }
  const bool more = !copy_engine;  // the kernels of mma.sync take more
  for (const auto& [type, name] : {std::pair{p.a, "A"}, {p.b, "B"}}) {
    if (is_16bit_float(type) || is_8bit_float(type) || (more && is_of_registers(type))) continue;
    const char* nearest = numeric::bits(type) > 8 ? "bf16" : "e4m3";
    if (more && (type == DType::f32 || !numeric::is_float(type))) {
      nearest = type == DType::f32 ? "tf32" : "s8";
    }
    return refuse(RefusalCode::bad_type, name, " is ", type_name(type),
                  more ? "; operands are bf16, fp16, tf32, e4m3, e5m2 or s8: the nearest is "
                       : "; operands are bf16, fp16, e4m3 or e5m2: the nearest is ",
                  nearest);
  }
  if (p.a == p.b || (is_8bit_float(p.a) && is_8bit_float(p.b))) return std::nullopt;
  return refuse(RefusalCode::bad_type, "A is ", type_name(p.a), " and B is ", type_name(p.b),
                "; A and B are both bf16, both fp16, or each e4m3 or e5m2: the nearest B is ",
                type_name(p.a));
}

Fault result_type_fault(const GemmProblem& p) {
  const bool wide = is_16bit_float(p.d) || p.d == DType::f32;
  const bool narrow_operands = is_8bit_float(p.a);
  const bool narrow =
      is_8bit_float(p.d) && (narrow_operands || (p.epilogue.gated && p.d == DType::e4m3));
  if (!wide && !narrow) {
    const std::string text = "D is " + type_name(p.d) + "; ";
    if (narrow_operands) {
      return refuse(RefusalCode::bad_type, text, "of ", type_name(p.a),
                    " operands it is bf16, fp16, f32, e4m3 or e5m2: the nearest is f32");
    }
    if (is_8bit_float(p.d)) {
      return refuse(RefusalCode::bad_type, text, "of ", type_name(p.a),
                    " operands it is bf16, fp16 or f32, and e4m3 where the epilogue is gated: the "
                    "nearest is bf16");
    }
    return refuse(RefusalCode::bad_type, text, "of ", type_name(p.a),
                  " operands it is bf16, fp16 or f32: the nearest is f32");
  }
  if (p.reads_c && p.c != p.d) {
    return refuse(RefusalCode::bad_type, "C is ", type_name(p.c), " and D is ", type_name(p.d),
                  "; C must have D's type, ", type_name(p.d));
  }
  if (p.reads_c && is_8bit_float(p.c)) {
    return refuse(RefusalCode::bad_type, "D is ", type_name(p.d),
                  "; beside a C, which no kernel adds in 8 bits, it is bf16, fp16 or f32: the "
                  "nearest is bf16");
  }
  return std::nullopt;
}

Fault scaling_fault(const GemmProblem& p) {
  if (p.scaling != Scaling::none && p.scaling != Scaling::micro && !numeric::is_8bit(p.a)) {
    return refuse(RefusalCode::unsupported, "scaling is ", scaling_name(p.scaling),
                  ", and A and B are ", type_name(p.a),
                  "; only operands of 8 bits have scales: the nearest scaling is none");
  }
  if (p.scaling == Scaling::group && p.groups == 0) {
    return refuse(RefusalCode::unsupported,
                  "scaling is group, and the product has no groups: the nearest scaling is tensor");
  }
  if (p.accumulation == Accumulation::promoted && !is_8bit_float(p.a)) {
    return refuse(RefusalCode::unsupported, "accumulation is promoted, and A and B are ",
                  type_name(p.a),
                  "; their sums are float32 anyway, promotion is for e4m3 and e5m2: the nearest "
                  "accumulation is fast");
  }
  if (p.scales_d && !is_8bit_float(p.d)) {
    return refuse(RefusalCode::unsupported, "scale_d is given, and D is ", type_name(p.d),
                  "; only a D of e4m3 or e5m2 has a scale: leave scale_d out");
  }
  return std::nullopt;
}

// The multiple of `step` nearest to `value` that is a legal extent, at least one step where value
// is above 0.
std::int64_t nearest_multiple(std::int64_t value, std::int64_t step) {
  if (value == 0) return 0;
  return std::clamp((value + step / 2) / step * step, step, max_extent / step * step);
}

Fault gate_fault(const GemmProblem& p) {
  if (p.epilogue.activation != Activation::silu) {
    return refuse(
        RefusalCode::unsupported,
        "the epilogue is gated and its activation is not silu; gated products exist with silu "
        "alone: the nearest activation is silu");
  }
  if (p.reads_c) {
    return refuse(
        RefusalCode::unsupported,
        "C is read (beta is not 0) and the epilogue is gated; a gated product takes no C: the "
        "nearest legal beta is 0");
  }
  // Both halves of B must begin where a tensor map may, in an MN-major B too; with block scales
  // they also begin with a block of their own.
  const bool blocks = p.scaling == Scaling::block;
  const std::int64_t half = p.packed ? packed::kTileRows : blocks ? scale_block : 8;
  if (p.n % (2 * half) != 0) {
    return refuse(RefusalCode::unsupported, "N is ", p.n,
                  "; the epilogue is gated, so B's rows are two halves, each of a ", "multiple of ",
                  half, " rows ",
                  (p.packed ? "(a packed tile)"
                   : blocks ? "(a block of scales)"
                            : "(16 bytes of a tensor map)"),
                  ": the nearest legal N is ", nearest_multiple(p.n, 2 * half));
  }
  return std::nullopt;
}

Fault epilogue_fault(const GemmProblem& p) {
  if (p.epilogue.gated) {
    if (auto r = gate_fault(p)) return r;
  }
  if (p.epilogue.bias == Bias::none || p.bias == DType::f32) return std::nullopt;
  if (is_16bit_float(p.bias) && p.bias == p.d) return std::nullopt;
  return refuse(RefusalCode::bad_type, "the bias is ", type_name(p.bias), " and D is ",
                type_name(p.d),
                "; a bias is f32, or of D's type where that is bf16 or fp16: the nearest is f32");
}

// An operand as it is read: lines of contiguous elements, a pitch apart.
struct Lines {
  const char* tensor = "";
  DType type = DType::bf16;
  const char* line = "";      // "row" or "column"
  const char* opposite = "";  // what the line has, "column" or "row"
  std::int64_t length = 0;    // of a line
  std::int64_t count = 0;     // of lines
  std::int64_t pitch = 0;     // elements between them
  bool copy_engine = true;    // by the copy engine: lines begin at multiples of 16 bytes
};

// Elements of which strides are multiples: 16 bytes of them where the copy engine reads, and whole
// bytes.
std::int64_t step_of(DType type, bool copy_engine) {
  return std::max<std::int64_t>(1, elements_in(copy_engine ? 16 : 1, type));
}

Fault lines_fault(const Lines& l) {
  const std::int64_t step = step_of(l.type, l.copy_engine);
  const std::int64_t end = elements_in(max_pitch_bytes, l.type);
  const std::int64_t most = end - step;
  const std::string has =
      std::string(l.tensor) + " has a " + l.line + " stride of " + number(l.pitch) + " elements";
  if ((l.count > 1 && l.pitch < l.length) || l.pitch < 0) {
    return refuse(RefusalCode::bad_stride, has, ", less than its ", l.length, " ", l.opposite,
                  "s; the nearest legal is ", round_up(l.length, step));
  }
  if (l.pitch >= end) {
    return refuse(RefusalCode::bad_stride, has,
                  "; a tensor map allows less than 2^40 bytes: the nearest legal is ", most);
  }
  if (l.pitch % step != 0) {
    return refuse(RefusalCode::bad_stride, "the ", l.line, "s of ", l.tensor, " are ",
                  l.pitch * numeric::bits(l.type) / 8, " bytes apart (", l.pitch, " elements of ",
                  type_name(l.type),
                  "); they must be a multiple of 16 bytes apart: the nearest legal ", l.line,
                  " stride is ", std::min(round_up(l.pitch, step), most), " elements (pad ",
                  (l.line[0] == 'r' ? "K" : "its rows"), ")");
  }
  return std::nullopt;
}

// A or B of a problem.
struct Operand {
  const char* name = "";
  DType type = DType::bf16;
  std::int64_t rows = 0;
  std::int64_t k = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;
  int alignment = 16;
  bool copy_engine = true;
};

Operand operand_a(const GemmProblem& p, bool copy_engine = true) {
  return {"A",
          p.a,
          p.m,
          p.k,
          p.a_row_stride,
          p.a_column_stride,
          p.batch,
          p.a_batch_stride,
          p.a_alignment,
          copy_engine};
}

Operand operand_b(const GemmProblem& p, bool copy_engine = true) {
  return {"B",
          p.b,
          p.n,
          p.k,
          p.b_row_stride,
          p.b_column_stride,
          p.groups > 0 ? p.groups : p.batch,
          p.b_batch_stride,
          p.b_alignment,
          copy_engine};
}

Fault address_fault(const Operand& o) {
  if (o.alignment >= 16) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, o.name,
                "'s address must be a multiple of 16 bytes for the copy engine; it is one of ",
                o.alignment);
}

Fault k_major_fault(const Operand& o) {
  if (o.column_stride != 1 && o.k > 1) {
    return refuse(RefusalCode::bad_stride, o.name, " has a row stride of ", o.row_stride,
                  " and a column stride of ", o.column_stride,
                  "; one of them is 1: the nearest legal is K-major, column stride 1");
  }
  return lines_fault({o.name, o.type, "row", "column", o.k, o.rows, o.row_stride, o.copy_engine});
}

Fault mn_major_fault(const Operand& o) {
  if (numeric::bits(o.type) <= 8) {
    return refuse(
        RefusalCode::bad_stride, o.name, " is ", type_name(o.type),
        " and MN-major (row stride 1, column stride ", o.column_stride,
        "); the tensor core takes operands of 8 and 4 bits K-major alone: neighbours along K next "
        "to each other, column stride 1");
  }
  return lines_fault(
      {o.name, o.type, "column", "row", o.rows, o.k, o.column_stride, o.copy_engine});
}

// Could it be MN-major, by its strides? One row whose elements are neighbours is K-major.
bool may_be_mn_major(const Operand& o) {
  return o.row_stride == 1 || (o.rows <= 1 && o.column_stride != 1);
}

// The operand as a copy takes it: its lines may begin anywhere.
Operand anywhere(Operand o) {
  o.copy_engine = false;
  return o;
}

atom::Major major_of(const Operand& o) {
  if (!k_major_fault(o)) return atom::Major::k;
  if (may_be_mn_major(o) && !mn_major_fault(o)) return atom::Major::mn;
  return o.copy_engine ? major_of(anywhere(o)) : atom::Major::k;
}

Fault batch_stride_fault(const Operand& o) {
  if (o.batch <= 1) return std::nullopt;
  const std::int64_t step = step_of(o.type, o.copy_engine);
  const std::int64_t most = elements_in(max_pitch_bytes, o.type) - step;
  const bool fits = o.batch_stride >= 0 && o.batch_stride <= most;
  if (fits && o.batch_stride % step == 0) return std::nullopt;
  const std::int64_t nearest = round_up(std::clamp<std::int64_t>(o.batch_stride, 0, most), step);
  return refuse(RefusalCode::bad_stride, "the matrices of ", o.name, " are ", o.batch_stride,
                " elements of ", type_name(o.type), " apart (batch stride); they must be ",
                (o.copy_engine ? "a multiple of 16 bytes and less" : "less"),
                " than 2^40 bytes apart: the nearest legal batch stride is ", nearest);
}

Fault operand_fault(const Operand& o) {
  if (auto k_fault = k_major_fault(o)) {
    const bool says_mn = o.row_stride == 1 && o.column_stride != 1;
    if (!may_be_mn_major(o)) return k_fault;
    if (auto mn_fault = mn_major_fault(o)) return says_mn ? mn_fault : k_fault;
  }
  return batch_stride_fault(o);
}

// Lines of the copy begin at multiples of 128 bytes, from which the copy engine reads fastest.
std::optional<OperandCopy> copy_for(const Operand& operand) {
  if (!address_fault(operand) && !operand_fault(operand)) return std::nullopt;
  if (operand_fault(anywhere(operand))) return std::nullopt;
  const bool is_k_major = major_of(anywhere(operand)) == atom::Major::k;
  const std::int64_t length = is_k_major ? operand.k : operand.rows;
  const std::int64_t lines = is_k_major ? operand.rows : operand.k;
  const std::int64_t matrices = operand.batch_stride == 0 ? 1 : operand.batch;
  OperandCopy copy;
  const std::int64_t pitch = round_up(length, elements_in(128, operand.type));
  copy.row_stride = is_k_major ? pitch : 1;
  copy.column_stride = is_k_major ? 1 : pitch;
  if (matrices > 1) copy.batch_stride = lines * pitch;
  if (lines * pitch > elements_in(max_pitch_bytes / matrices, operand.type)) return std::nullopt;
  copy.bytes = matrices * lines * pitch * numeric::bits(operand.type) / 8;
  return copy;
}

// Rows of groups begin anywhere, so nothing but K can lie side by side.
Fault group_major_fault(const GemmProblem& p) {
  for (const Operand& o : {operand_a(p), operand_b(p)}) {
    if (major_of(o) == atom::Major::k || o.type == DType::s4) continue;
    return refuse(RefusalCode::unsupported, o.name,
                  " is MN-major, and the product has groups, which take K-major operands "
                  "alone: neighbours along K next to each other, column stride 1");
  }
  return std::nullopt;
}

// C or D of a problem.
struct Output {
  const char* name = "";
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;
  std::int64_t batch = 1;
  std::int64_t batch_stride = 0;
};

Output output_d(const GemmProblem& p) {
  return {
      "D", p.m, result_columns(p), p.d_row_stride, p.d_column_stride, p.batch, p.d_batch_stride};
}

Output output_c(const GemmProblem& p) {
  return {
      "C", p.m, result_columns(p), p.c_row_stride, p.c_column_stride, p.batch, p.c_batch_stride};
}

Fault output_fault(const Output& o) {
  if (o.column_stride != 1) {
    return refuse(RefusalCode::bad_stride, o.name, " has a column stride of ", o.column_stride,
                  "; it must be row-major: the nearest legal is 1");
  }
  if (o.rows > 1 && o.row_stride < o.columns) {
    return refuse(RefusalCode::bad_stride, o.name, " has a row stride of ", o.row_stride,
                  " elements, less than its ", o.columns, " columns; the nearest legal is ",
                  o.columns);
  }
  return std::nullopt;
}

Fault c_batch_fault(const Output& o) {
  if (o.batch > 1 && o.batch_stride < 0) {
    return refuse(RefusalCode::bad_stride, "the matrices of ", o.name, " have a batch stride of ",
                  o.batch_stride, "; the nearest legal is 0");
  }
  return std::nullopt;
}

// D's matrices lie one behind the other, or side by side within its rows.
Fault batch_overlap_fault(const Output& d) {
  if (d.batch <= 1 || d.rows == 0 || d.columns == 0) return std::nullopt;
  const std::int64_t one = reach({{d.rows, d.row_stride}, {d.columns, 1}});
  if (d.batch_stride >= one) return std::nullopt;
  const std::int64_t abreast = reach({{d.batch, d.batch_stride}, {d.columns, 1}});
  if (d.batch_stride >= d.columns && d.row_stride >= abreast) return std::nullopt;
  return refuse(RefusalCode::overlap, "the matrices of D overlap: its batch stride is ",
                d.batch_stride, " elements and one matrix reaches over ", one,
                "; the nearest legal batch stride is ", one);
}

}  // namespace

const char* scaling_name(Scaling scaling) {
  constexpr std::array<const char*, 6> names = {"none",  "tensor", "row-column",
                                                "block", "group",  "micro"};
  return names[static_cast<std::size_t>(scaling)];
}

std::int64_t reach(std::initializer_list<Dimension> dimensions) {
  constexpr std::int64_t most = std::int64_t{1} << 58;
  std::int64_t last = 0;
  for (const Dimension& d : dimensions) {
    if (d.extent == 0) return 0;
    if (d.extent == 1 || d.stride <= 0) continue;
    if (d.stride > (most - 1 - last) / (d.extent - 1)) return most;
    last += (d.extent - 1) * d.stride;
  }
  return last + 1;
}

OperandCopies copies_for(const GemmProblem& p) {
  OperandCopies copies;
  if (!p.reads_ab || p.m == 0 || p.n == 0) return copies;
  copies.a = copy_for(operand_a(p));
  if (!p.packed) copies.b = copy_for(operand_b(p));
  return copies;
}

GemmProblem with_copies(GemmProblem p, const OperandCopies& copies) {
  if (copies.a) {
    p.a_row_stride = copies.a->row_stride;
    p.a_column_stride = copies.a->column_stride;
    p.a_batch_stride = copies.a->batch_stride;
    p.a_alignment = 16;
  }
  if (copies.b) {
    p.b_row_stride = copies.b->row_stride;
    p.b_column_stride = copies.b->column_stride;
    p.b_batch_stride = copies.b->batch_stride;
    p.b_alignment = 16;
  }
  return p;
}

std::optional<Refusal> problem_fault(const GemmProblem& p, bool copy_engine) {
  for (const auto rule : {extent_fault, packed_fault}) {
    if (auto r = rule(p)) return r;
  }
  if (auto r = operand_type_fault(p, copy_engine)) return r;
  for (const auto rule : {result_type_fault, scaling_fault, epilogue_fault}) {
    if (auto r = rule(p)) return r;
  }
  if (p.reads_ab && p.m > 0 && p.n > 0) {
    const Operand a = operand_a(p, copy_engine);
    const Operand b = operand_b(p, copy_engine);
    if (copy_engine) {
      if (auto r = address_fault(a)) return r;
      if (auto r = address_fault(b)) return r;
    }
    if (auto r = operand_fault(a)) return r;
    if (!p.packed) {
      if (auto r = operand_fault(b)) return r;
    }
    if (p.groups > 0) {
      if (auto r = group_major_fault(p)) return r;
    }
  }
  if (auto r = output_fault(output_d(p))) return r;
  if (auto r = batch_overlap_fault(output_d(p))) return r;
  if (!p.reads_c) return std::nullopt;
  if (auto r = output_fault(output_c(p))) return r;
  return c_batch_fault(output_c(p));
}

std::optional<Refusal> tiles_fault(const GemmProblem& p, const std::vector<ResultTile>& kernels) {
  const auto pieces = [](std::int64_t extent, std::int64_t tile) {
    return (extent + tile - 1) / tile;
  };
  const auto tiles_down = [&](const ResultTile& t) {
    return p.groups > 0 ? tile::GroupedTiles::most_token_tiles(p.m, p.groups, t.rows)
                        : pieces(p.m, t.rows);
  };
  const std::int64_t columns = result_columns(p);
  std::int64_t most_batch = 0;  // of D as it is
  std::int64_t most_m = 0;      // of the columns and the batch as they are
  std::int64_t most_n = 0;      // of the rows and groups as they are
  for (const ResultTile& t : kernels) {
    const std::int64_t each = tiles_down(t) * pieces(columns, t.columns);
    if (each <= max_extent / p.batch) return std::nullopt;
    most_batch = std::max(most_batch, max_extent / each);
    most_m = std::max(most_m, max_extent / p.batch / pieces(columns, t.columns) * t.rows);
    most_n = std::max(most_n, max_extent / tiles_down(t) * t.columns);
  }
  if (kernels.empty()) return std::nullopt;
  std::string nearest = " batch is 1";
  if (p.groups > 0) {
    nearest = most_n > 0
                  ? " N is " + number(most_n)
                  : " number of groups is " + number(std::max<std::int64_t>(1, p.groups / 2));
  } else if (most_batch >= 1) {
    nearest = " batch is " + number(most_batch);
  } else if (most_m >= 1) {
    nearest = " M is " + number(most_m);
  }
  return refuse(RefusalCode::bad_shape, "D of ", shape_of(p.m, columns),
                (p.batch > 1 ? ", a batch of " + number(p.batch) + "," : ""),
                (p.groups > 0 ? " in " + number(p.groups) + " groups may have" : " has"),
                " more tiles than the ", max_extent,
                " that can be numbered; split it: the nearest legal", nearest);
}

Refusal no_sms(const DeviceFacts& device) {
  return {RefusalCode::no_device, "device " + device.name + " has " + number(device.sms) +
                                      " SMs; a kernel runs on one or more: the nearest legal is 1"};
}

Refusal cluster_too_large(int size, const DeviceFacts& device,
                          std::span<const atom::ClusterShape> clusters) {
  atom::ClusterShape nearest;
  for (const atom::ClusterShape& c : clusters) {
    const bool fits = atom::cluster_size(c) <= device.sms;
    if (fits && atom::cluster_size(c) > atom::cluster_size(nearest)) nearest = c;
  }
  return {RefusalCode::bad_choice, "a cluster of " + number(size) +
                                       " CTAs needs as many SMs; device " + device.name + " has " +
                                       number(device.sms) + ": the nearest legal cluster is " +
                                       number(nearest.m) + "x" + number(nearest.n)};
}

// The copy engine moves a result when its rows start at multiples of 16 bytes. A store also ends at
// one: past the last column the engine drops whole 16-byte pieces, not elements (seen on an H200),
// so rows that end inside a piece would overwrite what lies behind them.
EpiloguePath result_path(const GemmProblem& p, bool store) {
  if (!store && !p.reads_c) return EpiloguePath::none;
  const Output o = store ? output_d(p) : output_c(p);
  const int element = element_bytes(store ? p.d : p.c);
  const auto is_pitch = [&](std::int64_t stride) {
    return stride >= 0 && stride < max_pitch_bytes / element && stride * element % 16 == 0;
  };
  const bool starts = is_pitch(o.row_stride) && (p.batch <= 1 || is_pitch(o.batch_stride)) &&
                      (store ? p.d_alignment : p.c_alignment) % 16 == 0;
  // Lanes store the rows of groups, whose ends they see element by element.
  const bool ends = !store || p.groups > 0 || o.columns * element % 16 == 0;
  return starts && ends ? EpiloguePath::copy_engine : EpiloguePath::elements;
}

atom::Major major_a(const GemmProblem& problem) {
  return major_of(operand_a(problem));
}

atom::Major major_b(const GemmProblem& problem) {
  return problem.packed ? atom::Major::k : major_of(operand_b(problem));
}

}  // namespace warpwright
