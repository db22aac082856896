// The product in float64, element by element: all of them, or those that one asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "warpwright/reference/formulas.h"

namespace warpwright::reference {

/// Rows [begin, end) of D that are multiplied by one matrix of B.
struct Part {
  std::int64_t batch = 0;  ///< of A, C and D
  std::int64_t group = 0;  ///< of B and of what goes with it
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The parts of a product, in the order of D's rows: its groups with any rows, as the kernels take
/// their offsets (in host memory), or every matrix of its batch. Rows of D in none are not written.
std::vector<Part> parts_of(const GemmOperands& operands);

/// A sum, and that of its terms' magnitudes, from which its error can be bounded.
struct Sum {
  double value = 0;
  double size = 0;
};

/// The product of operands in host memory. Their A and B are read when it is made, what else they
/// point to when an element is asked for.
class Product {
 public:
  explicit Product(const GemmOperands& operands);

  [[nodiscard]] const GemmOperands& operands() const { return o_; }
  /// Element (row, column) of the product before the activation. The size is that of the scaled
  /// only products of A and B.
  [[nodiscard]] Sum before(std::int64_t batch, std::int64_t group, std::int64_t row,
                           std::int64_t column) const;
  /// Element (row, column) of D before it is rounded.
  [[nodiscard]] double result(std::int64_t batch, std::int64_t group, std::int64_t row,
                              std::int64_t column) const;
  /// The same with what a kernel may be off, which loses at most `loss(sum)` of a sum and nothing
  /// in the epilogue, whose activation is taken to be `at_least` so steep.
  template <class Loss>
  [[nodiscard]] Bounded<double> bounded(std::int64_t batch, std::int64_t group, std::int64_t row,
                                        std::int64_t column, const Loss& loss,
                                        double at_least = 1) const {
    const auto part = [&](std::int64_t of) -> Bounded<double> {
      const Sum sum = before(batch, group, row, of);
      return {sum.value, loss(sum)};
    };
    const auto [step, apart] = gate_places(o_);
    const std::int64_t first = column * step;
    const Bounded<double> up = o_.epilogue.gated ? part(first + apart) : Bounded<double>{};
    return finished<Roundings::left_out>(o_, {batch, row, column}, part(first), up, at_least);
  }

 private:
  // Matrices one below the other.
  struct Values {
    Values(const GemmOperands& o, Side side);
    [[nodiscard]] const float* row(std::int64_t matrix, std::int64_t row) const {
      return all.data() + ((matrices == 1 ? 0 : matrix) * rows + row) * depth;
    }
    std::int64_t matrices, rows, depth;
    std::vector<float> all;
  };

  GemmOperands o_;
  Values a_, b_;
};

}  // namespace warpwright::reference
