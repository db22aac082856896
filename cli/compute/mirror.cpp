#include "cli/compute/mirror.h"

#include <span>
#include <utility>

namespace warpwright::cli {
namespace {

// The matrices of a tensor as floats, by row and place in K.
class Floats {
 public:
  Floats(HostTensor& t, bool transposed) {
    const std::size_t rank = t.shape.size();
    rows_ = t.shape[rank - 2];
    k_ = t.shape[rank - 1];
    if (transposed) std::swap(rows_, k_);
    row_step_ = transposed ? 1 : k_;
    k_step_ = transposed ? rows_ : 1;
    all_ =
        std::span(reinterpret_cast<float*>(t.bytes.data()), static_cast<std::size_t>(t.elements()));
  }

  [[nodiscard]] std::int64_t k() const { return k_; }

  /// visit(row, line) for every row of every matrix; line(k) is an element.
  template <class Visit>
  void for_each_row(const Visit& visit) const {
    const auto size = static_cast<std::size_t>(rows_ * k_);
    for (std::size_t from = 0; size > 0 && from + size <= all_.size(); from += size) {
      for (std::int64_t row = 0; row < rows_; ++row) {
        visit(row, [this, from, row](std::int64_t k) -> float& {
          return all_[from + static_cast<std::size_t>(row * row_step_ + k * k_step_)];
        });
      }
    }
  }

 private:
  std::int64_t rows_ = 0, k_ = 0, row_step_ = 0, k_step_ = 0;
  std::span<float> all_;
};

// Changes the values of a tensor as floats; those of tf32 are floats in memory.
template <class Change>
void change_floats(HostTensor& t, bool transposed, const Change& change) {
  const DType type = std::exchange(t.dtype, t.dtype == DType::tf32 ? DType::f32 : t.dtype);
  HostTensor wide = convert(t, DType::f32);
  change(Floats(wide, transposed));
  t = convert(wide, t.dtype);
  t.dtype = type;
}

}  // namespace

std::optional<Mirror> mirror_of(std::int64_t k, std::int64_t width, std::uint64_t seed) {
  const std::int64_t whole = k / width;
  if (whole < 2) return std::nullopt;
  const std::int64_t half = whole / 2;
  const auto draw = [seed](std::int64_t below) {
    return static_cast<std::int64_t>(seed % static_cast<std::uint64_t>(below));
  };
  return Mirror{draw(half) * width, (half + draw(whole - half)) * width, width};
}

void repeat(HostTensor& t, const Mirror& mirror, bool transposed) {
  change_floats(t, transposed, [&](const Floats& all) {
    all.for_each_row([&](std::int64_t /*row*/, const auto& line) {
      for (std::int64_t i = 0; i < mirror.width; ++i)
        line(mirror.second + i) = line(mirror.first + i);
    });
  });
}

void weigh(HostTensor& t, const Mirror& mirror, bool transposed) {
  change_floats(t, transposed, [&](const Floats& all) {
    all.for_each_row([&](std::int64_t row, const auto& line) {
      if (row % 4 != 1) return;
      for (std::int64_t k = 0; k < all.k(); ++k) line(k) *= 0x1p-7F;
      for (std::int64_t i = 0; i < mirror.width; ++i) {
        line(mirror.first + i) *= 0x1p13F;
        line(mirror.second + i) = -line(mirror.first + i);
      }
    });
  });
}

}  // namespace warpwright::cli
