// The rules that a product keeps by itself: shapes that agree, and, where memory is known, its
// addresses. Whatever a device computes, it computes products without these faults.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "warpwright/facts/format.h"
#include "warpwright/plan/product/asked.h"

namespace warpwright {
namespace product {
namespace {

Fault scalar_fault(const Asked& o) {
  if (std::isnan(o.p.alpha))
    return refuse(RefusalCode::bad_value, "alpha is NaN; ", as_rule("it must be a number"));
  if (std::isnan(o.p.beta))
    return refuse(RefusalCode::bad_value, "beta is NaN; ", as_rule("it must be a number"));
  if (!o.has_c() && o.p.beta != 0.0F && o.p.beta != 1.0F) {
    return refuse(RefusalCode::bad_value, "beta is ", format("%g", static_cast<double>(o.p.beta)),
                  ", and there is no ", as_tensor("C"), ": ", as_rule("give C, or leave beta out"));
  }
  return gate_numbers_fault(o.p.epilogue.gate, o.p.is_gated(), o.p.epilogue.activation);
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

}  // namespace

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

Fault batch_fault(const Tensor& tensor, std::int64_t length) {
  const std::int64_t batch = tensor.shape.batch;
  if (batch == 1 || batch == length) return std::nullopt;
  return refuse(RefusalCode::bad_shape, as_tensor(tensor.name), " is a batch of ", batch,
                " and D of ", length, "; ",
                as_rule("it must be of the same length, or 1 to serve all of D"),
                ": the nearest legal is ", as_nearest(batch < 1 ? 1 : length));
}

namespace {

Fault tensors_fault(const Asked& o) {
  if (auto r = tensor_fault(o, tensor_a(o), o.p.reads_ab())) return r;
  if (auto r = tensor_fault(o, tensor_b(o), o.p.reads_ab())) return r;
  if (auto r = tensor_fault(o, tensor_d(o), true)) return r;
  return o.reads_c() ? tensor_fault(o, tensor_c(o), true) : std::nullopt;
}

Fault c_shape_fault(const Asked& o) {
  const auto& [c, d] = std::tie(o.p.c, o.p.d);
  if (!o.reads_c() || (c.rows == d.rows && c.columns == d.columns)) return std::nullopt;
  return refuse(RefusalCode::bad_shape, as_tensor("C"), " is ", shape_of(c), "; ",
                as_rule("beta is not 0, so it must be as large as D, ", shape_of(d)));
}

// Tokens by index: D has a row for each index, A for each token.
Fault index_shapes_fault(const Asked& o) {
  if (o.p.a.rows < 1 && o.p.multiplies()) {
    return refuse(RefusalCode::bad_shape, as_tensor("A"), " has no rows, and D's ", o.p.d.rows,
                  " rows read theirs by index: the nearest legal number is ", as_nearest("1"));
  }
  return c_shape_fault(o);
}

Fault shapes_fault(const Asked& o) {
  const auto& [a, b, d] = std::tie(o.p.a, o.p.b, o.p.d);
  if (a.columns != b.columns) {
    // Packed weights keep the K that they were packed with.
    const bool of_a = o.p.packed.has_value();
    return refuse(RefusalCode::bad_shape, as_tensor("A"), " is ", shape_of(a), " and B is ",
                  shape_of(b), "; ", as_rule("their columns are both K and must agree"),
                  ": the nearest legal ", of_a ? "A is " : "B is ",
                  as_nearest(of_a ? shape_of(a.rows, b.columns) : shape_of(b.rows, a.columns)),
                  of_a && a.columns < b.columns ? ", with zeros behind its rows" : "");
  }
  const std::int64_t columns = result_columns(o.p);
  if (o.p.is_by_index()) {
    if (d.columns == columns) return index_shapes_fault(o);
    return refuse(RefusalCode::bad_shape, as_tensor("D"), " has ", d.columns, " columns; ",
                  as_rule("the product has ", columns));
  }
  if (d.rows != a.rows || d.columns != columns) {
    return refuse(
        RefusalCode::bad_shape, as_tensor("D"), " is ", shape_of(d), "; ",
        as_rule("the product of A (", shape_of(a), ") and B (", shape_of(b), ") transposed",
                (o.p.is_gated() ? ", gated," : ""), " is ", shape_of(a.rows, columns)));
  }
  return c_shape_fault(o);
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

Fault fault_of(const Asked& o) {
  for (const auto rule :
       {scalar_fault, packed_fault, tensors_fault, shapes_fault, batches_fault, unread_fault,
        scales_fault, factors_fault, bias_fault, d_scales_fault, offsets_fault, overlap_fault}) {
    if (auto r = rule(o)) return r;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace product

std::optional<Refusal> product_fault(const GemmProblem& problem) {
  return product::fault_of({problem, nullptr, false});
}

Result<GemmProblem> describe(const GemmOperands& operands, Addresses addresses) {
  const GemmProblem problem = problem_of(operands);
  const bool known = addresses == Addresses::known;
  if (auto r = product::fault_of({problem, known ? &operands : nullptr, true})) return *r;
  return normalised(problem);
}

}  // namespace warpwright
