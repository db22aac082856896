// Where matrices must lie: strides, memory orders and alignments; and what a copy of an operand
// that TMA cannot read is.
#include <algorithm>
#include <numeric>

#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using Fault = std::optional<Refusal>;

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// A or B, and whether TMA reads it.
struct Operand {
  const char* name;
  PlannedMatrix matrix;
  bool tma = true;
  bool padded = false;  ///< by copies that pad it
};

Operand operand_a(const GemmProblem& p, bool tma = true) {
  return {"A", p.a, tma, is_padded(p, true)};
}
Operand operand_b(const GemmProblem& p, bool tma = true) {
  return {"B", p.b, tma, is_padded(p, false)};
}

// Bytes of which strides are multiples, where TMA reads; and elements, which elsewhere are whole
// bytes.
int step_bytes(const Operand& o) {
  return o.padded ? padded_copy_bytes : 16;
}
std::int64_t step_of(const Operand& o) {
  return whole_elements(o.tma ? step_bytes(o) : 1, o.matrix.dtype);
}

// For its lines of contiguous elements, rows or columns.
Fault lines_fault(const Operand& o, bool are_rows) {
  const PlannedMatrix& v = o.matrix;
  const char* const line = are_rows ? "row" : "column";
  const char* const opposite = are_rows ? "column" : "row";
  const std::int64_t length = are_rows ? v.columns : v.rows;
  const std::int64_t count = are_rows ? v.rows : v.columns;
  const std::int64_t pitch = are_rows ? v.row_stride : v.column_stride;
  const std::int64_t step = step_of(o);
  const std::int64_t end = elements_in(max_pitch_bytes, v.dtype);
  const std::int64_t most = end - step;
  const auto has = [&] {
    return as_tensor(o.name) + " has a " + line + " stride of " + number(pitch) + " elements";
  };
  if ((count > 1 && pitch < length) || pitch < 0) {
    return refuse(RefusalCode::bad_stride, has(), ", less than its ", length, " ", opposite,
                  "s; the nearest legal is ", as_nearest(round_up(length, step)));
  }
  if (pitch >= end) {
    return refuse(RefusalCode::bad_stride, has(), "; ",
                  as_rule("a tensor map allows less than 2^40 bytes"), ": the nearest legal is ",
                  as_nearest(most));
  }
  if (pitch % step != 0) {
    return refuse(RefusalCode::bad_stride, "the ", line, "s of ", as_tensor(o.name), " are ",
                  pitch * numeric::bits(v.dtype) / 8, " bytes apart (", pitch, " elements of ",
                  type_name(v.dtype), "); ",
                  as_rule("they must be a multiple of ", step_bytes(o), " bytes apart"),
                  ": the nearest legal ", line, " stride is ",
                  as_nearest(std::min(round_up(pitch, step), most), " elements"), " (pad ",
                  (are_rows ? "K" : "its rows"), ")");
  }
  return std::nullopt;
}

Fault address_fault(const Operand& o) {
  if (o.matrix.alignment >= 16) return std::nullopt;
  return refuse(RefusalCode::bad_pointer, as_tensor(o.name), "'s ",
                as_rule("address must be a multiple of ", step_bytes(o), " bytes for TMA"),
                "; it is one of ", o.matrix.alignment * (step_bytes(o) / 16));
}

Fault k_major_fault(const Operand& o) {
  if (o.matrix.column_stride != 1 && o.matrix.columns > 1) {
    return refuse(RefusalCode::bad_stride, as_tensor(o.name), " has a row stride of ",
                  o.matrix.row_stride, " and a column stride of ", o.matrix.column_stride, "; ",
                  as_rule("one of them is 1"), ": the nearest legal is ",
                  as_nearest("K-major, column stride 1"));
  }
  return lines_fault(o, true);
}

Fault mn_major_fault(const Operand& o) {
  if (numeric::bits(o.matrix.dtype) <= 8) {
    return refuse(RefusalCode::bad_stride, as_tensor(o.name), " is ", type_name(o.matrix.dtype),
                  " and MN-major (row stride 1, column stride ", o.matrix.column_stride, "); ",
                  as_rule("the tensor core takes only K-major operands of 8 bits and less: "
                          "neighbours along K next to each other, column stride 1"));
  }
  return lines_fault(o, false);
}

// Could it be MN-major, by its strides? One row whose elements are neighbours is K-major.
bool may_be_mn_major(const MatrixShape& v) {
  return v.row_stride == 1 || (v.rows <= 1 && v.column_stride != 1);
}

// The operand as a copy takes it: its lines may begin anywhere.
Operand anywhere(Operand o) {
  o.tma = false;
  return o;
}

atom::Major major_of(const Operand& o) {
  if (!k_major_fault(o)) return atom::Major::k;
  if (may_be_mn_major(o.matrix) && !mn_major_fault(o)) return atom::Major::mn;
  return o.tma ? major_of(anywhere(o)) : atom::Major::k;
}

Fault batch_stride_fault(const Operand& o) {
  const PlannedMatrix& v = o.matrix;
  if (v.batch <= 1) return std::nullopt;
  const std::int64_t step = step_of(o);
  const std::int64_t most = elements_in(max_pitch_bytes, v.dtype) - step;
  const bool fits = v.batch_stride >= 0 && v.batch_stride <= most;
  if (fits && v.batch_stride % step == 0) return std::nullopt;
  const std::int64_t nearest = round_up(std::clamp<std::int64_t>(v.batch_stride, 0, most), step);
  return refuse(RefusalCode::bad_stride, "the matrices of ", as_tensor(o.name), " are ",
                v.batch_stride, " elements of ", type_name(v.dtype), " apart (batch stride); ",
                as_rule("they must be ",
                        (o.tma ? "a multiple of " + number(step_bytes(o)) + " bytes and " : ""),
                        "less than 2^40 bytes apart"),
                ": the nearest legal batch stride is ", as_nearest(nearest));
}

Fault operand_fault(const Operand& o) {
  if (auto k_fault = k_major_fault(o)) {
    const bool says_mn = o.matrix.row_stride == 1 && o.matrix.column_stride != 1;
    if (!may_be_mn_major(o.matrix)) return k_fault;
    if (auto mn_fault = mn_major_fault(o)) return says_mn ? mn_fault : k_fault;
  }
  return batch_stride_fault(o);
}

// Lines of the copy begin at multiples of 128 bytes, from which TMA reads fastest.
std::optional<OperandCopy> copy_for(const Operand& operand) {
  if (!address_fault(operand) && !operand_fault(operand)) return std::nullopt;
  if (operand_fault(anywhere(operand))) return std::nullopt;
  const PlannedMatrix& v = operand.matrix;
  const bool is_k_major = major_of(anywhere(operand)) == atom::Major::k;
  const std::int64_t length = is_k_major ? v.columns : v.rows;
  const std::int64_t lines = is_k_major ? v.rows : v.columns;
  const std::int64_t matrices = v.batch_stride == 0 ? 1 : v.batch;
  OperandCopy copy;
  const std::int64_t pitch = round_up(length, whole_elements(128, v.dtype));
  copy.row_stride = is_k_major ? pitch : 1;
  copy.column_stride = is_k_major ? 1 : pitch;
  if (matrices > 1) copy.batch_stride = lines * pitch;
  if (lines * pitch > elements_in(max_pitch_bytes / matrices, v.dtype)) return std::nullopt;
  copy.bytes = matrices * lines * pitch * numeric::bits(v.dtype) / 8;
  return copy;
}

// Rows of groups begin anywhere, so nothing but K can lie side by side.
Fault group_major_fault(const GemmProblem& p) {
  for (const Operand& o : {operand_a(p), operand_b(p)}) {
    if (major_of(o) == atom::Major::k || o.matrix.dtype == DType::s4) continue;
    return refuse(RefusalCode::unsupported, as_tensor(o.name),
                  " is MN-major, and the product has groups, which take only K-major operands: ",
                  as_rule("neighbours along K next to each other, column stride 1"));
  }
  return std::nullopt;
}

// For C or D.
Fault output_fault(const char* name, const MatrixShape& v) {
  if (v.column_stride != 1) {
    return refuse(RefusalCode::bad_stride, as_tensor(name), " has a column stride of ",
                  v.column_stride, "; ", as_rule("it must be row-major"), ": the nearest legal is ",
                  as_nearest("1"));
  }
  if (v.rows > 1 && v.row_stride < v.columns) {
    return refuse(RefusalCode::bad_stride, as_tensor(name), " has a row stride of ", v.row_stride,
                  " elements, less than its ", v.columns, " columns; the nearest legal is ",
                  as_nearest(v.columns));
  }
  return std::nullopt;
}

Fault c_batch_fault(const MatrixShape& c) {
  if (c.batch > 1 && c.batch_stride < 0) {
    return refuse(RefusalCode::bad_stride, "the matrices of ", as_tensor("C"),
                  " have a batch stride of ", c.batch_stride, "; the nearest legal is ",
                  as_nearest("0"));
  }
  return std::nullopt;
}

void lie_in(PlannedMatrix& v, const std::optional<OperandCopy>& copy) {
  if (!copy) return;
  v.row_stride = copy->row_stride;
  v.column_stride = copy->column_stride;
  v.batch_stride = copy->batch_stride;
  v.alignment = 16;
}

}  // namespace

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

std::optional<Refusal> batch_overlap_fault(const char* name, const MatrixShape& v) {
  if (v.batch <= 1 || v.rows == 0 || v.columns == 0) return std::nullopt;
  const std::int64_t one = reach({{v.rows, v.row_stride}, {v.columns, 1}});
  if (v.batch_stride >= one) return std::nullopt;
  const std::int64_t abreast = reach({{v.batch, v.batch_stride}, {v.columns, 1}});
  if (v.batch_stride >= v.columns && v.row_stride >= abreast) return std::nullopt;
  return refuse(RefusalCode::overlap, "the matrices of ", as_tensor(name), " overlap: ",
                as_rule("its batch stride is ", v.batch_stride,
                        " elements and one matrix reaches over ", one),
                "; the nearest legal batch stride is ", as_nearest(one));
}

int piece_of(const MatrixShape& v, int alignment) {
  const std::int64_t size = element_bytes(v.dtype);
  std::int64_t all = alignment;
  if (v.rows > 1) all = std::gcd(all, v.row_stride * size);
  if (v.batch > 1) all = std::gcd(all, v.batch_stride * size);
  return static_cast<int>(std::gcd(all, std::int64_t{16}));
}

std::optional<Refusal> operands_fault(const GemmProblem& p, bool tma) {
  if (!p.multiplies()) return std::nullopt;
  const Operand a = operand_a(p, tma);
  const Operand b = operand_b(p, tma);
  // A copy would mend A: first what none mends.
  if (!p.packed && !operand_fault(anywhere(a)) && operand_fault(anywhere(b))) {
    return operand_fault(b);
  }
  if (tma) {
    if (auto r = address_fault(a)) return r;
    if (auto r = address_fault(b)) return r;
  }
  if (auto r = operand_fault(a)) return r;
  if (!p.packed) {
    if (auto r = operand_fault(b)) return r;
  }
  return p.groups ? group_major_fault(p) : std::nullopt;
}

std::optional<Refusal> outputs_fault(const GemmProblem& p) {
  if (auto r = output_fault("D", p.d)) return r;
  if (auto r = batch_overlap_fault("D", p.d)) return r;
  if (!p.reads_c()) return std::nullopt;
  if (auto r = output_fault("C", p.c)) return r;
  return c_batch_fault(p.c);
}

OperandCopies copies_for(const GemmProblem& p) {
  OperandCopies copies;
  if (!p.multiplies()) return copies;
  copies.a = copy_for(operand_a(p));
  if (!p.packed) copies.b = copy_for(operand_b(p));
  return copies;
}

GemmProblem with_copies(GemmProblem p, const OperandCopies& copies) {
  lie_in(p.a, copies.a);
  lie_in(p.b, copies.b);
  return p;
}

// TMA moves a result when its rows start at multiples of 16 bytes. A store also ends at
// one: past the last column the engine drops whole 16-byte pieces, not elements (seen on an H200),
// so rows that end inside a piece would overwrite what lies behind them.
EpiloguePath result_path(const GemmProblem& p, bool store) {
  if (!store && !p.reads_c()) return EpiloguePath::none;
  const PlannedMatrix& v = store ? p.d : p.c;
  const std::int64_t piece = elements_in(16, v.dtype);
  const auto is_pitch = [&](std::int64_t stride) {
    return stride >= 0 && stride < elements_in(max_pitch_bytes, v.dtype) && stride % piece == 0;
  };
  const bool starts =
      is_pitch(v.row_stride) && (v.batch <= 1 || is_pitch(v.batch_stride)) && v.alignment % 16 == 0;
  // Lanes store the rows of groups, whose ends they see element by element.
  const bool ends = !store || p.groups || v.columns % piece == 0;
  return starts && ends ? EpiloguePath::tma : EpiloguePath::elements;
}

atom::Major major_a(const GemmProblem& problem) {
  return major_of(operand_a(problem));
}

atom::Major major_b(const GemmProblem& problem) {
  return problem.packed ? atom::Major::k : major_of(operand_b(problem));
}

}  // namespace warpwright
