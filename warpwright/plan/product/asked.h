// What the rules of a product ask about: the product, its memory where that is known, and its
// tensors by their names. Internal to the files of these rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "warpwright/plan/product/rules.h"

namespace warpwright::product {

using Fault = std::optional<Refusal>;

/// A product, and where it lies, if that is known: without, what is not there has no extents.
struct Asked {
  const GemmProblem& p;
  const GemmOperands* memory;
  /// As a caller described it; else sizes are not held against memory, and scales and a bias that
  /// are left out are what they must be.
  bool is_strict;

  /// Is there a C, if only by its address?
  [[nodiscard]] bool has_c() const { return memory != nullptr ? memory->has_c() : p.has_c(); }
  [[nodiscard]] bool reads_c() const { return p.beta != 0.0F && has_c(); }
};

/// One of its tensors, with its name in refusals.
struct Tensor {
  const char* name;
  const PlannedMatrix& shape;
  const void* address;
  bool is_given;
};

inline Tensor tensor_of(const Asked& o, const char* name, PlannedMatrix GemmProblem::*planned,
                        MatrixView GemmOperands::*view) {
  const PlannedMatrix& shape = o.p.*planned;
  if (o.memory == nullptr) return {name, shape, &o, is_given(shape)};
  const void* const address = (o.memory->*view).data;
  return {name, shape, address, address != nullptr};
}
inline Tensor tensor_a(const Asked& o) {
  return tensor_of(o, "A", &GemmProblem::a, &GemmOperands::a);
}
inline Tensor tensor_b(const Asked& o) {
  return tensor_of(o, "B", &GemmProblem::b, &GemmOperands::b);
}
inline Tensor tensor_c(const Asked& o) {
  return tensor_of(o, "C", &GemmProblem::c, &GemmOperands::c);
}
inline Tensor tensor_d(const Asked& o) {
  return tensor_of(o, "D", &GemmProblem::d, &GemmOperands::d);
}
inline Tensor scale_of(const Asked& o, bool of_a) {
  return of_a ? tensor_of(o, "scale_a", &GemmProblem::scale_a, &GemmOperands::scale_a)
              : tensor_of(o, "scale_b", &GemmProblem::scale_b, &GemmOperands::scale_b);
}
inline Tensor factor_of(const Asked& o, bool of_a) {
  return of_a ? tensor_of(o, "factor_a", &GemmProblem::factor_a, &GemmOperands::factor_a)
              : tensor_of(o, "factor_b", &GemmProblem::factor_b, &GemmOperands::factor_b);
}
inline Tensor scale_of_d(const Asked& o) {
  return tensor_of(o, "scale_d", &GemmProblem::scale_d, &GemmOperands::scale_d);
}
inline Tensor scales_of_d(const Asked& o) {
  return tensor_of(o, "d_scales", &GemmProblem::d_scales, &GemmOperands::d_scales);
}
inline Tensor bias_of(const Asked& o) {
  return tensor_of(o, "the bias", &GemmProblem::bias, &GemmOperands::bias);
}

/// Are there products to be scaled?
inline bool reads_scales(const GemmProblem& p) {
  return p.scaling != Scaling::none && p.reads_ab() && p.d.rows > 0 && p.d.columns > 0;
}

/// The three ways in which elements of a matrix lie apart.
struct Direction {
  std::int64_t extent;
  std::int64_t stride;
  const char* what;
};
inline std::array<Direction, 3> directions(const MatrixShape& v) {
  return {{{v.rows, v.row_stride, "row"},
           {v.columns, v.column_stride, "column"},
           {v.batch, v.batch_stride, "batch"}}};
}

/// A tensor of any kind: extents, and an address where it is `used`.
Fault tensor_fault(const Asked& o, const Tensor& tensor, bool used);
/// One that serves a batch of this length.
Fault batch_fault(const Tensor& tensor, std::int64_t length);

// scale_rules.cpp: what is read beside A, B, C and D.
Fault packed_fault(const Asked& o);
/// Tensors that are given and would not be read: their caller expects something else.
Fault unread_fault(const Asked& o);
Fault scales_fault(const Asked& o);
Fault factors_fault(const Asked& o);
/// For scales in tiles, which copies bring.
Fault scale_tiles_fault(const Tensor& scale);
Fault bias_fault(const Asked& o);
/// The scales that are written beside a D that is quantised.
Fault d_scales_fault(const Asked& o);

// memory_rules.cpp: addresses.
Fault offsets_fault(const Asked& o);
Fault overlap_fault(const Asked& o);

}  // namespace warpwright::product
