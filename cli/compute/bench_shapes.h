// Which products `bench` and `tune` measure: their extents and their types.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "warpwright/plan/plan.h"

namespace warpwright::cli {

/// Extents of a product.
struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// "4096x7168x2048": M, N and K.
std::string shape_name(const Shape& shape);

/// The dense shapes that speeds are compared on: large, medium and few rows.
const std::vector<Shape>& dense_shapes();

/// Reads a shape a line, "M N K" or "MxNxK"; blank lines and what follows a # are left out. Throws
/// InputError that names `file` and the line.
std::vector<Shape> parse_shapes(std::istream& in, const std::string& file);

/// The shapes of a file. Throws InputError.
std::vector<Shape> read_shapes(const std::string& path);

/// `count` random shapes: M from 1 to 16384, N and K from 64 to 16384, all evenly on a logarithmic
/// scale, N and K multiples of `step`. The same seed gives the same shapes.
std::vector<Shape> sample_shapes(int count, std::uint64_t seed, int step);

/// The arguments that say what is multiplied, as they were typed; empty texts were not given.
struct TypeOptions {
  std::string dtype = "bf16";
  std::string d_dtype;
  std::string scaling;
  std::string accumulation = "fast";
};

/// Types, scaling and accumulation.
struct ProductTypes {
  DType operand = DType::bf16;
  DType result = DType::bf16;
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;

  /// What N and K of a sampled shape are multiples of: rows of 16 bytes.
  [[nodiscard]] int step() const { return 128 / numeric::bits(operand); }
};

/// Throws InputError where an argument is none of the legal ones. D is bf16, or fp16 with fp16
/// operands; 8-bit operands have tensor scales, unless something else is said.
ProductTypes parse_types(const TypeOptions& options);

/// The packed product of a shape.
GemmProblem problem_of(const ProductTypes& types, const Shape& shape);

/// "e4m3 to bf16, block scales, promoted": for headings.
std::string types_name(const ProductTypes& types);

}  // namespace warpwright::cli
