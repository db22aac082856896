// A and B that TMA cannot read where they lie, which a launch copies into the workspace: D has the
// bits that aligned operands give, on the model and on GPUs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/run/bytes.h"
#include "warpwright/numeric/scalar.h"

namespace warpwright::copies {

using tests::Bytes;

/// How A or B lies. Elements, beside those of a line that TMA reads.
struct Lies {
  int late = 0;   ///< by which the first begins behind a multiple of 256 bytes
  int apart = 0;  ///< from line to line
  int batch = 0;  ///< from matrix to matrix
};

/// A kind of product.
struct Kind {
  const char* name;
  DType dtype = DType::bf16;
  std::int64_t m = 70, n = 48, k = 90;
  bool a_mn = false, b_mn = false;
  std::int64_t batch = 1;
  bool one_b = false;
  bool grouped = false;
  bool gated = false;
  Scaling scaling = Scaling::none;
};

inline const std::vector<Kind> kinds = {
    {"nt"},
    {"nn", DType::bf16, 70, 45, 90, false, true},
    {"tn", DType::bf16, 61, 48, 90, true, false},
    {"tt_batch", DType::bf16, 61, 45, 70, true, true, 3},
    {"batch_of_one_b", DType::e4m3, 70, 48, 77, false, false, 2, true},
    {"one_row", DType::bf16, 1, 300, 333},
    {"one_of_k", DType::bf16, 64, 48, 1},
    {"f16", DType::f16, 61, 48, 90},
    {"long_lines", DType::e4m3, 5, 16, 2500},
    {"gated", DType::bf16, 70, 128, 90, false, false, 1, false, false, true},
    {"blocks", DType::e4m3, 70, 48, 203, false, false, 1, false, false, false, Scaling::blockwise},
    {"groups", DType::bf16, 70, 48, 91, false, false, 3, false, true},
    {"groups_of_blocks", DType::e4m3, 70, 48, 203, false, false, 3, false, true, false,
     Scaling::blockwise},
};

/// One operand in memory of its own. All else there is NaN, so that a copy of too much shows.
class Operand {
 public:
  Operand(const std::vector<std::byte>& values, DType type, std::int64_t rows, std::int64_t columns,
          bool mn, std::int64_t batch, bool shared, const Lies& lies, int device) {
    const std::int64_t element = numeric::bits(type) / 8;
    const std::int64_t length = mn ? rows : columns;
    const std::int64_t lines = mn ? columns : rows;
    const std::int64_t pitch = (length + 15) / 16 * 16 + lies.apart;
    const std::int64_t each = shared ? 0 : (lines * pitch + 15) / 16 * 16 + lies.batch;
    const std::int64_t matrices = shared ? 1 : batch;
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(
            (lies.late + (matrices - 1) * each + (lines - 1) * pitch + length) * element),
        std::byte{0xff});
    for (std::int64_t i = 0; i < matrices * lines; ++i) {
      const std::int64_t to = lies.late + i / lines * each + i % lines * pitch;
      std::memcpy(bytes.data() + to * element, values.data() + i * length * element,
                  static_cast<std::size_t>(length * element));
    }
    memory_.emplace(std::move(bytes), device);
    view = {static_cast<std::byte*>(memory_->data()) + lies.late * element,
            type,
            rows,
            columns,
            mn ? 1 : pitch,
            mn ? pitch : 1,
            batch,
            each};
  }
  MatrixView view;

 private:
  std::optional<Bytes> memory_;
};

/// The tensors of a kind, and D for A and B wherever they lie.
class Product {
 public:
  Product(const Kind& kind, int device, unsigned seed)
      : kind_(kind),
        device_(device),
        a_(values(kind.m * kind.k * (kind.grouped ? 1 : kind.batch), seed)),
        b_(values(kind.n * kind.k * kind.batch, seed + 1)),
        scales_(std::vector<float>(4096, 0.375F), device),
        offsets_(std::vector<std::int32_t>{0, 33, 33, static_cast<std::int32_t>(kind.m)}, device) {}

  /// Bits of D, and the plan that served.
  std::vector<std::byte> d(const Lies& a_lies, const Lies& b_lies,
                           std::shared_ptr<const Plan>* used = nullptr, bool own_memory = false) {
    const std::int64_t rows_batch = kind_.grouped ? 1 : kind_.batch;
    const Operand a(a_, kind_.dtype, kind_.m, kind_.k, kind_.a_mn, rows_batch, false, a_lies,
                    device_);
    const Operand b(b_, kind_.dtype, kind_.n, kind_.k, kind_.b_mn, kind_.batch, kind_.one_b, b_lies,
                    device_);
    const std::int64_t columns = kind_.gated ? kind_.n / 2 : kind_.n;
    Bytes d(std::vector<std::byte>(static_cast<std::size_t>(rows_batch * kind_.m * columns * 2),
                                   std::byte{0xff}),
            device_);
    GemmOperands o;
    o.a = a.view;
    o.b = b.view;
    o.d = matrix(d.data(), DType::bf16, kind_.m, columns);
    o.d.batch = rows_batch;
    o.d.batch_stride = kind_.m * columns;
    if (kind_.dtype == DType::f16) o.d.dtype = DType::f16;
    if (kind_.grouped) o.groups = Groups{offsets_.data(), OffsetType::int32, 0};
    if (kind_.gated) o.epilogue = {.activation = Activation::silu, .gated = true};
    o.scaling = kind_.scaling;
    if (kind_.scaling == Scaling::blockwise) {
      const std::int64_t blocks = (kind_.k + 127) / 128;
      o.scale_a = matrix(scales_.data(), DType::f32, kind_.m, blocks);
      o.scale_b = matrix(scales_.data(), DType::f32, (kind_.n + 127) / 128, blocks);
      o.scale_b.batch = kind_.batch;
      o.scale_b.batch_stride = blocks;
    }
    RunOptions how;
    how.device = device_;
    std::shared_ptr<const Plan> made;
    std::optional<Workspace> memory;
    if (own_memory) {
      const auto plan = warpwright::plan(*describe(o), **run_facts(device_));
      memory.emplace(std::move(*Workspace::make(*plan)));
      how.workspace = &*memory;
    }
    if (const auto refused = run(o, how, &made)) ADD_FAILURE() << refused->reason;
    if (used != nullptr) *used = made;
    return d.fetch();
  }

 private:
  [[nodiscard]] std::vector<std::byte> values(std::int64_t count, unsigned seed) const {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes;
    const auto add = [&bytes](auto code) {
      const auto* const p = reinterpret_cast<const std::byte*>(&code);
      bytes.insert(bytes.end(), p, p + sizeof code);
    };
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = static_cast<float>(random() % 33) / 16.0F - 1.0F;
      if (kind_.dtype == DType::bf16) add(numeric::bf16_t(x));
      if (kind_.dtype == DType::f16) add(numeric::fp16_t(x));
      if (kind_.dtype == DType::e4m3) add(numeric::e4m3_t(x));
    }
    return bytes;
  }

  Kind kind_;
  int device_;
  std::vector<std::byte> a_, b_;
  Bytes scales_, offsets_;
};

/// Every begin of lines within 16 bytes, in A, in B and in both.
inline void expect_same_bits(const Kind& kind, int device) {
  SCOPED_TRACE(kind.name);
  Product product(kind, device, 7);
  std::shared_ptr<const Plan> used;
  const std::vector<std::byte> want = product.d({}, {}, &used);
  ASSERT_TRUE(used);
  EXPECT_FALSE(used->a_copy || used->b_copy) << "these operands are aligned";
  const int unit = 128 / numeric::bits(kind.dtype);
  for (int i = 1; i <= unit; ++i) {
    const Lies anywhere{i, 3 * i % unit + 1, 5 * i % unit};
    const bool a_moves = i % 3 != 0, b_moves = i % 3 != 1;
    SCOPED_TRACE("begins " + std::to_string(i) + " elements late");
    const auto found =
        product.d(a_moves ? anywhere : Lies{}, b_moves ? anywhere : Lies{}, &used, i % 4 == 1);
    ASSERT_TRUE(used);
    EXPECT_EQ(used->a_copy.has_value(), a_moves);
    EXPECT_EQ(used->b_copy.has_value(), b_moves);
    EXPECT_TRUE(found == want) << used->explain();
  }
}

}  // namespace warpwright::copies
