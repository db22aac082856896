// What the tests of products share: tensors with their surroundings, and what results must be, in
// double precision, written down here once.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tests/index.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/float_format.h"
#include "warpwright/numeric/vector_clones.h"
#include "warpwright/plan/plan.h"

namespace warpwright::tests {

/// Of 64 bits as many others, each of which depends on all.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

/// In the type in which it is computed.
template <class Float>
Float activated(Activation activation, Float x) {
  switch (activation) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::quick_gelu:
      return x / (1 + std::exp(static_cast<Float>(-1.702) * x));
    case Activation::gelu: {
      const auto root = static_cast<Float>(0.79788456080286535588);  // of 2 / pi
      const auto cubic = static_cast<Float>(0.044715);
      return x / 2 * (1 + std::tanh(root * (x + cubic * x * x * x)));
    }
    case Activation::none:
      break;
  }
  return x;
}

/// An element of a view; one matrix serves any batch.
inline double element(const MatrixView& v, std::int64_t batch, std::int64_t i, std::int64_t j) {
  const std::int64_t place =
      (v.batch == 1 ? 0 : batch * v.batch_stride) + i * v.row_stride + j * v.column_stride;
  const int bits = numeric::bits(v.dtype);
  std::uint64_t code = 0;
  std::memcpy(&code, static_cast<const std::byte*>(v.data) + place * bits / 8,
              index(std::max(1, bits / 8)));
  return numeric::to_double(v.dtype, code >> place * bits % 8);
}

/// The scale of Scaling::micro that an element (i, j) of an operand has, where cuBLASLt has it.
inline std::byte* micro_scale(const MatrixView& scales, std::int64_t batch, std::int64_t i,
                              std::int64_t block) {
  return static_cast<std::byte*>(scales.data) +
         (scales.batch == 1 ? 0 : batch * scales.batch_stride) +
         (i / 128 * (scales.columns / 4) + block / 4) * 512 + i % 32 * 16 + i % 128 / 32 * 4 +
         block % 4;
}

/// A batch of matrices with its memory. All bytes but the elements are 0xff, which is a NaN or a
/// large negative number of every type; so are the elements until they are set.
class Tensor {
 public:
  Tensor() = default;
  /// The first element lies `shift` of them behind a multiple of 256 bytes.
  Tensor(DType type, std::int64_t rows, std::int64_t columns, std::int64_t row_stride,
         std::int64_t column_stride = 1, std::int64_t batch = 1, std::int64_t batch_stride = 0,
         std::int64_t shift = 0)
      : view_{nullptr, type, rows, columns, row_stride, column_stride, batch, batch_stride},
        begin_(guard + shift * numeric::bits(type) / 8) {
    const std::int64_t elements = (std::max<std::int64_t>(rows, 1) - 1) * row_stride +
                                  (std::max<std::int64_t>(columns, 1) - 1) * column_stride +
                                  (batch - 1) * batch_stride + 1;
    memory_.resize(index((begin_ + numeric::packed_bytes(type, elements) + guard) / guard + 1));
    std::memset(memory_.data(), 0xff, index(bytes()));
  }

  /// The tensor in this object's memory, or in a copy of that memory at `base`, which is a
  /// multiple of 256.
  [[nodiscard]] MatrixView view(void* base = nullptr) const {
    MatrixView v = view_;
    if (!memory_.empty()) {
      v.data = (base == nullptr ? memory() : static_cast<std::byte*>(base)) + begin_;
    }
    return v;
  }
  [[nodiscard]] std::byte* memory() const { return const_cast<std::byte*>(memory_.data()->byte); }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(memory_.size()) * guard;
  }

  [[nodiscard]] std::byte* address(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return memory() + begin_ + place(b, i, j) * numeric::bits(view_.dtype) / 8;
  }
  void set(std::int64_t b, std::int64_t i, std::int64_t j, double x) { put(b, i, j, code_of(x)); }
  [[nodiscard]] double get(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return element(view(), b, i, j);
  }
  template <class Draw>
  void fill(const Draw& draw) {
    for_each(0, view_.rows,
             [&](std::int64_t b, std::int64_t i, std::int64_t j) { set(b, i, j, draw()); });
  }
  /// Each element one of `values`.
  void fill(std::mt19937& random, const std::vector<double>& values) {
    std::vector<std::uint64_t> codes;
    for (const double value : values) codes.push_back(code_of(value));
    // Millions are drawn: two of one step of a generator that is faster than the one it begins by.
    std::uint64_t state = random();
    std::uint64_t drawn = 0;
    bool has_another = false;
    for_each(0, view_.rows, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
      if (!has_another) drawn = tests::mixed(state += 0x9e3779b97f4a7c15U);
      has_another = !has_another;
      const std::uint64_t which = (drawn & 0xffffffffU) * codes.size() >> 32;
      drawn >>= 32;
      put(b, i, j, codes[which]);
    });
  }
  /// Values between two, a thousand at most.
  void fill(std::mt19937& random, double low, double high) {
    std::uniform_real_distribution<double> draw(low, high);
    std::vector<double> values(index(std::min<std::int64_t>(1024, bytes())));
    for (double& value : values) value = draw(random);
    fill(random, values);
  }
  /// Sixteenths from -1 to 1.
  void fill_sixteenths(unsigned seed) {
    std::mt19937 random(seed);
    fill([&] { return static_cast<int>(random() % 33) / 16.0 - 1.0; });
  }
  /// The elements of a tensor of the same extents.
  void copy(const Tensor& from) {
    for_each(0, view_.rows, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
      set(b, i, j, from.get(b, i, j));
    });
  }
  /// Makes all matrices of a batch of `count` the first one, as torch.expand does.
  void share(int count) {
    view_.batch = count;
    view_.batch_stride = 0;
  }
  /// Bytes beside the elements, or those of rows [first, end), that are no longer 0xff.
  [[nodiscard]] std::int64_t disturbed() const { return disturbed({{0, view_.rows}}); }
  [[nodiscard]] std::int64_t disturbed(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) const {
    std::vector<std::byte> rest(memory(), memory() + bytes());
    for (const auto& [first, end] : rows) {
      for_each(first, end, [&](std::int64_t b, std::int64_t i, std::int64_t j) {
        std::fill_n(rest.begin() + (address(b, i, j) - memory()), width(), std::byte{0xff});
      });
    }
    return bytes() - std::count(rest.begin(), rest.end(), std::byte{0xff});
  }

 private:
  static constexpr int guard = 256;  // bytes before and behind the elements, at least
  struct alignas(guard) Line {
    std::byte byte[guard];
  };

  template <class Visit>
  void for_each(std::int64_t first, std::int64_t end, const Visit& visit) const {
    for (std::int64_t b = 0; b < view_.batch; ++b) {
      for (std::int64_t i = first; i < end; ++i) {
        for (std::int64_t j = 0; j < view_.columns; ++j) visit(b, i, j);
      }
    }
  }
  [[nodiscard]] std::int64_t place(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return b * view_.batch_stride + i * view_.row_stride + j * view_.column_stride;
  }
  [[nodiscard]] std::int64_t width() const { return std::max(1, numeric::bits(view_.dtype) / 8); }
  [[nodiscard]] std::uint64_t code_of(double x) const {
    // The low bits of a tf32's word, which nobody reads, are those of an f32.
    if (view_.dtype == DType::f32 || view_.dtype == DType::tf32) {
      return std::bit_cast<std::uint32_t>(static_cast<float>(x));
    }
    return numeric::from_double(view_.dtype, x);
  }
  void put(std::int64_t b, std::int64_t i, std::int64_t j, std::uint64_t code) {
    std::byte* const at = address(b, i, j);
    switch (numeric::bits(view_.dtype)) {  // by constants, which are single stores
      case 4: {
        const auto both = static_cast<unsigned>(*at);
        code = place(b, i, j) % 2 == 0 ? (both & 0xf0U) | code : (both & 0xfU) | code << 4;
        std::memcpy(at, &code, 1);
        return;
      }
      case 8:
        std::memcpy(at, &code, 1);
        return;
      case 16:
        std::memcpy(at, &code, 2);
        return;
      case 32:
        std::memcpy(at, &code, 4);
        return;
      default:
        std::memcpy(at, &code, index(width()));
    }
  }

  MatrixView view_;
  std::int64_t begin_ = 0;
  std::vector<Line> memory_;
};

/// A sum, and that of its terms' magnitudes, from which its error can be bounded.
struct Sum {
  double value = 0;
  double size = 0;
};

/// A value, and how far from it a kernel's may be.
struct Bounded {
  double value = 0;
  double bound = 0;
};

/// Of `n` products of exact values, in double precision.
WW_VECTOR_SUMS inline Sum dot(const float* x, const float* y, std::int64_t n) {
  double value = 0;
  double size = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const double term = static_cast<double>(x[k]) * static_cast<double>(y[k]);
    value += term;
    size += std::fabs(term);  // of this name compilers know their own
  }
  return {value, size};
}

/// What a product must be: plan/problem.h word for word, over the operands' own addresses.
class Product {
 public:
  explicit Product(const GemmOperands& o) : o_(o), a_(decoded(o.a)), b_(decoded(o.b)) {
    if (o.scaling != Scaling::micro) return;
    scale(o.a, o.scale_a, a_);
    scale(o.b, o.scale_b, b_);
  }

  /// Element (i, j) of the product before the activation. `batch` is the matrix of A and D, `group`
  /// that of B and of what goes with it. The size is that of the scaled products alone.
  [[nodiscard]] Sum before(std::int64_t batch, std::int64_t group, std::int64_t i,
                           std::int64_t j) const {
    const std::int64_t depth = o_.a.columns;
    const float* const x = a_.data() + (of(o_.a, batch) * o_.a.rows + i) * depth;
    const float* const y = b_.data() + (of(o_.b, group) * o_.b.rows + j) * depth;
    Sum sum;
    for (std::int64_t first = 0; first < depth; first += 128) {
      const Sum part = dot(x + first, y + first, std::min<std::int64_t>(128, depth - first));
      const double scale =
          o_.scaling == Scaling::block
              ? element(o_.scale_a, batch, i, first / 128) * scale_b(group, j / 128, first / 128)
              : 1;
      sum.value += part.value * scale;
      sum.size += part.size * std::abs(scale);
    }
    double factor = static_cast<double>(o_.alpha);
    if (o_.scaling == Scaling::tensor) {
      factor *= element(o_.scale_a, batch, 0, 0) * scale_b(group, 0, 0);
    }
    if (o_.scaling == Scaling::row_column) {
      factor *= element(o_.scale_a, batch, i, 0) * scale_b(group, j, 0);
    }
    if (o_.scaling == Scaling::group) {
      factor *= element(o_.scale_a, 0, o_.scale_a.rows == 1 ? 0 : group, 0) * scale_b(0, group, 0);
    }
    sum.value *= factor;
    sum.size *= std::abs(factor);
    if (beta_of(o_) != 0) sum.value += static_cast<double>(o_.beta) * element(o_.c, batch, i, j);
    if (o_.epilogue.bias == Bias::rows) sum.value += element(o_.bias, batch, i, 0);
    if (o_.epilogue.bias == Bias::columns) sum.value += element(o_.bias, group, j, 0);
    return sum;
  }

  /// Element (i, j) of D before it is rounded.
  [[nodiscard]] double result(std::int64_t batch, std::int64_t group, std::int64_t i,
                              std::int64_t j) const {
    double x = activated(o_.epilogue.activation, before(batch, group, i, j).value);
    if (o_.epilogue.gated) x *= before(batch, group, i, j + o_.d.columns).value;
    if (o_.scale_d.data != nullptr) x *= element(o_.scale_d, batch, 0, 0);
    return x;
  }

  /// Element (i, j) of D before it is scaled and rounded, by a kernel that loses at most
  /// `loss(sum)` of a sum.
  template <class Loss>
  [[nodiscard]] Bounded bounded(std::int64_t batch, std::int64_t group, std::int64_t i,
                                std::int64_t j, const Loss& loss) const {
    const Sum sum = before(batch, group, i, j);
    // The steepest slope of an activation is 1.2.
    Bounded want{activated(o_.epilogue.activation, sum.value), loss(sum) * 1.2};
    if (o_.epilogue.gated) {
      const Sum up = before(batch, group, i, j + o_.d.columns);
      want.bound = want.bound * (std::abs(up.value) + loss(up)) + loss(up) * std::abs(want.value);
      want.value *= up.value;
    }
    return want;
  }

 private:
  // Packed weights may be without.
  [[nodiscard]] double scale_b(std::int64_t group, std::int64_t i, std::int64_t j) const {
    return o_.scale_b.data == nullptr ? 1 : element(o_.scale_b, group, i, j);
  }
  static std::int64_t of(const MatrixView& v, std::int64_t matrix) {
    return v.batch == 1 || v.batch_stride == 0 ? 0 : matrix;
  }
  // Multiplies the elements of `v` by those of their blocks.
  static void scale(const MatrixView& v, const MatrixView& by, std::vector<float>& all) {
    const int block = v.dtype == DType::e2m1 ? 16 : 32;
    for (std::size_t at = 0; at < all.size(); ++at) {
      const auto row = static_cast<std::int64_t>(at) / v.columns;
      const std::int64_t k = static_cast<std::int64_t>(at) % v.columns;
      all[at] *= static_cast<float>(numeric::to_double(
          by.dtype,
          static_cast<unsigned>(*micro_scale(by, of(by, row / v.rows), row % v.rows, k / block))));
    }
  }
  // The matrices one below the other: every type that is multiplied is exact in f32.
  static std::vector<float> decoded(const MatrixView& v) {
    const std::int64_t matrices = of(v, v.batch - 1) + 1;
    std::vector<float> all(index(matrices * v.rows * v.columns));
    if (!numeric::widens_from_memory(v.dtype) || (v.column_stride != 1 && v.row_stride != 1)) {
      std::size_t at = 0;
      for (std::int64_t b = 0; b < matrices; ++b) {
        for (std::int64_t i = 0; i < v.rows; ++i) {
          for (std::int64_t j = 0; j < v.columns; ++j) {
            all[at++] = static_cast<float>(element(v, b, i, j));
          }
        }
      }
      return all;
    }
    const std::int64_t lines = v.column_stride == 1 ? v.rows : v.columns;
    const std::int64_t length = v.column_stride == 1 ? v.columns : v.rows;
    const std::int64_t pitch = v.column_stride == 1 ? v.row_stride : v.column_stride;
    const int size = numeric::bits(v.dtype) / 8;
    std::vector<float> line(index(length));
    for (std::int64_t b = 0; b < matrices; ++b) {
      float* const matrix = all.data() + b * v.rows * v.columns;
      for (std::int64_t i = 0; i < lines; ++i) {
        const auto* const from =
            static_cast<const std::byte*>(v.data) + (b * v.batch_stride + i * pitch) * size;
        if (v.column_stride == 1) {
          numeric::widen_from(from, matrix + i * length, index(length), v.dtype);
          continue;
        }
        numeric::widen_from(from, line.data(), index(length), v.dtype);
        for (std::int64_t j = 0; j < length; ++j) matrix[j * lines + i] = line[index(j)];
      }
    }
    return all;
  }

  GemmOperands o_;
  std::vector<float> a_, b_;
};

}  // namespace warpwright::tests
