// Whether a row of D has the same bits whatever stands beside it: for the model and for GPUs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/run/bytes.h"

namespace warpwright::batch_invariance {

using tests::Bytes;

/// A kind of product.
struct Kind {
  const char* name;
  DType operand = DType::bf16;
  DType result = DType::bf16;
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  Epilogue epilogue = {};
  bool reads_c = false;
  bool grouped = false;
  std::int64_t depth = 768;  ///< K; a longer one shows more of the order of sums, and takes longer
};

inline constexpr std::int64_t kRows = 512;
inline constexpr std::int64_t kColumns = 160;
inline constexpr std::int64_t kGroups = 6;

inline const std::vector<Kind> kinds = {
    {"bf16"},
    {"bf16_all",
     DType::bf16,
     DType::bf16,
     Scaling::none,
     Accumulation::fast,
     {Activation::gelu, false, Bias::columns},
     true},
    {"bf16_f32", DType::bf16, DType::f32},
    {"gated",
     DType::bf16,
     DType::bf16,
     Scaling::none,
     Accumulation::fast,
     {Activation::silu, true, Bias::none}},
    {"f16", DType::f16, DType::f16},
    {"e4m3_fast", DType::e4m3},
    {"e4m3_rows", DType::e4m3, DType::bf16, Scaling::row_column},
    {"e4m3_promoted", DType::e4m3, DType::bf16, Scaling::tensor, Accumulation::promoted},
    {"e4m3_blocks", DType::e4m3, DType::bf16, Scaling::blockwise},
    {"grouped_bf16", DType::bf16, DType::bf16, Scaling::none, Accumulation::fast, {}, false, true},
    {"grouped_e4m3_blocks",
     DType::e4m3,
     DType::bf16,
     Scaling::blockwise,
     Accumulation::fast,
     {},
     false,
     true},
};

/// The tensors of a kind, with kRows rows and a B for each of kGroups groups.
class Tensors {
 public:
  Tensors(const Kind& kind, int device, std::uint32_t seed) : kind_(kind), device_(device) {
    std::mt19937 random(seed);
    const auto codes = [&](DType type, std::int64_t count) {
      std::vector<std::byte> bytes;
      for (std::int64_t i = 0; i < count; ++i) {
        // With all magnitudes between 2^-6 and 4, so that the order of sums shows.
        const float value = std::ldexp(static_cast<float>(random() % 256) / 128.0F - 1.0F,
                                       static_cast<int>(random() % 7) - 4);
        append(bytes, type, value);
      }
      return std::make_unique<Bytes>(std::move(bytes), device);
    };
    a_ = codes(kind.operand, kRows * kind_.depth);
    b_ = codes(kind.operand, kGroups * kColumns * kind_.depth);
    c_ = codes(kind.result, kRows * kColumns);
    bias_ = codes(DType::f32, kGroups * kColumns);
    scale_a_ = codes(DType::f32, kRows * (kind_.depth / 128));
    scale_b_ = codes(DType::f32, kGroups * kColumns * (kind_.depth / 128));
  }

  [[nodiscard]] std::int64_t columns() const {
    return kind_.epilogue.gated ? kColumns / 2 : kColumns;
  }
  [[nodiscard]] std::int64_t row_bytes() const {
    return columns() * numeric::bits(kind_.result) / 8;
  }

  /// D of rows [first, first + count), as bytes; for a grouped kind the rows fall into groups at
  /// `offsets` (kGroups + 1, counted from `first`).
  std::vector<std::byte> product(std::int64_t first, std::int64_t count,
                                 const std::vector<std::int32_t>& offsets,
                                 const PlanChoices& choices) {
    Bytes d(std::vector<std::byte>(static_cast<std::size_t>(count * row_bytes()), std::byte{0xff}),
            device_);
    const auto raw = std::as_bytes(std::span(offsets));
    Bytes of_groups({raw.begin(), raw.end()}, device_);
    GemmOperands o = operands(first, count, d.data());
    if (kind_.grouped) o.groups = Groups{of_groups.data(), OffsetType::int32, 0};
    std::shared_ptr<const Plan> made;
    RunOptions how;
    how.device = device_;
    how.choices = choices;
    if (const auto refused = run(o, how, &made)) ADD_FAILURE() << refused->reason;
    if (made) kernels_.push_back(made->kernel);
    return d.fetch();
  }

  [[nodiscard]] GemmOperands operands(std::int64_t first, std::int64_t count, void* d) {
    const std::int64_t element = numeric::bits(kind_.operand) / 8;
    const std::int64_t blocks = kind_.depth / 128;
    const auto at = [](Bytes& bytes, std::int64_t offset) {
      return static_cast<std::byte*>(bytes.data()) + offset;
    };
    GemmOperands o;
    o.a = matrix(at(*a_, first * kind_.depth * element), kind_.operand, count, kind_.depth);
    o.b = matrix(b_->data(), kind_.operand, kColumns, kind_.depth);
    o.d = matrix(d, kind_.result, count, columns());
    if (kind_.grouped) {
      o.b.batch = kGroups;
      o.b.batch_stride = kColumns * kind_.depth;
    }
    o.alpha = 0.75F;
    if (kind_.reads_c) {
      o.beta = 0.5F;
      o.c = matrix(at(*c_, first * kColumns * numeric::bits(kind_.result) / 8), kind_.result, count,
                   kColumns);
    }
    o.scaling = kind_.scaling;
    o.accumulation = kind_.accumulation;
    o.epilogue = kind_.epilogue;
    if (kind_.epilogue.bias == Bias::columns) {
      o.bias = matrix(bias_->data(), DType::f32, kColumns, 1);
    }
    if (kind_.scaling == Scaling::tensor) {
      o.scale_a = matrix(scale_a_->data(), DType::f32, 1, 1);
      o.scale_b = matrix(scale_b_->data(), DType::f32, 1, 1);
    } else if (kind_.scaling == Scaling::row_column) {
      o.scale_a = matrix(at(*scale_a_, first * 4), DType::f32, count, 1);
      o.scale_b = matrix(scale_b_->data(), DType::f32, kColumns, 1);
    } else if (kind_.scaling == Scaling::blockwise) {
      o.scale_a = matrix(at(*scale_a_, first * blocks * 4), DType::f32, count, blocks);
      o.scale_b = matrix(scale_b_->data(), DType::f32, (kColumns + 127) / 128, blocks);
      if (kind_.grouped) {
        o.scale_b.batch = kGroups;
        o.scale_b.batch_stride = (kColumns + 127) / 128 * blocks;
      }
    }
    return o;
  }

  /// The kernels that served.
  [[nodiscard]] std::vector<std::string> kernels() const {
    std::vector<std::string> all = kernels_;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

 private:
  static void append(std::vector<std::byte>& bytes, DType type, float value) {
    const auto add = [&bytes](auto code) {
      const auto* const p = reinterpret_cast<const std::byte*>(&code);
      bytes.insert(bytes.end(), p, p + sizeof code);
    };
    if (type == DType::f32) return add(value);
    if (type == DType::bf16) return add(numeric::bf16_t(value));
    if (type == DType::f16) return add(numeric::fp16_t(value));
    add(numeric::e4m3_t(value));
  }

  Kind kind_;
  int device_;
  std::unique_ptr<Bytes> a_, b_, c_, bias_, scale_a_, scale_b_;
  std::vector<std::string> kernels_;
};

/// Where the groups of `count` rows begin, at random; some are empty.
inline std::vector<std::int32_t> draw_offsets(std::mt19937& random, std::int64_t count) {
  std::vector<std::int32_t> offsets = {0, static_cast<std::int32_t>(count)};
  while (offsets.size() < kGroups + 1) {
    offsets.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(count + 1)));
  }
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

/// Every row of D in batches of every size, of which `step` leaves some out, has the bits that it
/// has by itself. For a grouped kind the rows fall into groups at random.
inline void expect_invariant(const Kind& kind, int device, std::int64_t step) {
  constexpr std::uint32_t seed = 20261122;
  std::printf("seed %u, every batch size from 1 to %lld by %lld\n", seed,
              static_cast<long long>(kRows), static_cast<long long>(step));
  Tensors tensors(kind, device, seed);
  std::mt19937 random(seed);
  PlanChoices choices;
  choices.batch_invariant = true;
  const auto bytes = static_cast<std::size_t>(tensors.row_bytes());
  // What each row is in each group by itself.
  const int groups = kind.grouped ? kGroups : 1;
  std::vector<std::vector<std::byte>> alone(static_cast<std::size_t>(kRows * groups));
  const auto row_alone = [&](std::int64_t row, int group) -> const std::vector<std::byte>& {
    auto& of = alone[static_cast<std::size_t>(row * groups + group)];
    if (of.empty()) {
      std::vector<std::int32_t> offsets(kGroups + 1, 0);
      std::fill(offsets.begin() + group + 1, offsets.end(), 1);
      of = tensors.product(row, 1, offsets, choices);
    }
    return of;
  };
  for (std::int64_t size = 1; size <= kRows; size += step) {
    const std::int64_t first =
        static_cast<std::int64_t>(random() % static_cast<unsigned>(kRows - size + 1));
    const auto offsets = draw_offsets(random, size);
    const auto d = tensors.product(first, size, offsets, choices);
    // All rows on a GPU; some of a batch where each costs a run of the model.
    const std::int64_t look = device == run_on_model ? std::max<std::int64_t>(1, size / 2) : 1;
    for (std::int64_t row = 0; row < size; row += look) {
      int group = 0;
      while (kind.grouped && offsets[static_cast<std::size_t>(group) + 1] <= row) ++group;
      ASSERT_EQ(std::memcmp(d.data() + static_cast<std::size_t>(row) * bytes,
                            row_alone(first + row, group).data(), bytes),
                0)
          << kind.name << ": row " << first + row << " in a batch of " << size;
    }
  }
  for (const std::string& kernel : tensors.kernels()) std::printf("  %s\n", kernel.c_str());
}

}  // namespace warpwright::batch_invariance
