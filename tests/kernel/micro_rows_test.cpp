// Rows of tokens in the order of experts as codes whose scales the tensor core multiplies, on the
// model: codes, scales and the places of scales are those of the host.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernel/token_rows.h"
#include "tests/must.h"
#include "warpwright/device/quantise.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/facts/micro_scale.h"

namespace warpwright::tests {
namespace {

using kernel::GatherRowsKernel;
using kernel::RowForm;

// Rows of tokens by the order of experts as codes, with their scales in tiles, beside the host's.
class MicroMoved {
 public:
  MicroMoved(const Shape& s, const MicroFormat& f, Routing& r, bool by_token, int parts,
             float tensor, std::uint64_t seed)
      : s_(s),
        f_(f),
        r_(r),
        by_token_(by_token),
        tensor_(tensor),
        x_(tokens_of(s, seed)),
        rows_(by_token ? s.tokens : r.tokens * r.top_k),
        row_bytes_(s.k * numeric::bits(f.element) / 8),
        to_(rows_, row_bytes_, s.to_extra, s.to_shift) {
    const std::int64_t columns = block_scales::padded_columns(s.k, micro_block(f.scale));
    tile_rows_ = block_scales::grouped_rows(std::int64_t{r.tokens} * r.top_k, r.experts);
    tiles_.assign(index(static_cast<int>(tile_rows_ * columns)) + 16, 0xee);
    p_.rows = {.x = x_.data(),
               .x_pitch = x_.pitch,
               .to = to_.data(),
               .to_pitch = to_.pitch,
               .rows = r.rows.data(),
               .top_k = r.top_k,
               .tokens = s.tokens,
               .k = s.k,
               .type = s.type,
               .form = RowForm::micro};
    p_.micro = {.element = f.element,
                .scale = f.scale,
                .tiles = tiles(),
                .columns = static_cast<int>(columns),
                .tensor = f.scale == DType::ue4m3 ? &tensor_ : nullptr,
                .offsets = r.offsets.data(),
                .experts = r.experts,
                .by_token = by_token,
                .parts = parts};
  }
  MicroMoved(const MicroMoved&) = delete;
  MicroMoved& operator=(const MicroMoved&) = delete;

  model::Report run(const model::Options& how) {
    model::Kernel k;
    k.shape = {.ctas = GatherRowsKernel::ctas(p_, 1), .threads = GatherRowsKernel::threads};
    k.body = [this] { GatherRowsKernel::run(p_); };
    k.memory = {x_.memory("x", s_.tokens, 2 * s_.k, false),
                to_.memory("the codes", rows_, row_bytes_, true),
                {tiles(), tile_rows_ * p_.micro.columns, "the scales", true},
                {r_.rows.data(), std::int64_t{4} * r_.tokens * r_.top_k, "rows", false},
                {r_.offsets.data(), std::int64_t{4} * (r_.experts + 1), "offsets", false}};
    if (p_.micro.tensor != nullptr) k.memory.push_back({&tensor_, 4, "the tensor's scale", false});
    k.dependent = true;
    return model::run(k, how);
  }

  // What is wrong with what a run left.
  std::string fault() {
    const int count = r_.tokens * r_.top_k;
    std::vector<std::uint8_t> codes(index(s_.tokens) * index(row_bytes_));
    const int columns = p_.micro.columns;
    std::vector<std::uint8_t> scales(index(s_.tokens) * index(columns));
    Quantisation q;
    q.x = matrix(x_.data(), s_.type, s_.tokens, s_.k);
    q.x.row_stride = x_.pitch / 2;
    q.codes = matrix(codes.data(), f_.element, s_.tokens, s_.k);
    const int blocks = (s_.k + micro_block(f_.scale) - 1) / micro_block(f_.scale);
    q.scales = matrix(scales.data(), f_.scale, s_.tokens, blocks);
    q.scaling = Scaling::block_scaled;
    q.order = ScaleOrder::rows;
    if (p_.micro.tensor != nullptr) {
      q.tensor_scale = matrix(&tensor_, DType::f32, 1, 1);
      q.given = true;
    }
    const auto refusal = quantise_on_host(q);
    if (refusal) return refusal->reason;
    std::vector<bool> is_scale(index(static_cast<int>(tile_rows_) * columns));
    std::int64_t tile = 0;
    for (int e = 0; e < r_.experts; ++e) {
      for (int row = r_.offsets[index(e)]; row < r_.offsets[index(e + 1)]; ++row) {
        const int token = r_.slots[index(row)] / r_.top_k;
        const std::string where =
            "row " + std::to_string(row) + " of token " + std::to_string(token);
        const auto* const got = to_.row(by_token_ ? token : row);
        const auto* const want = codes.data() + index(token) * index(row_bytes_);
        if (!std::equal(want, want + row_bytes_, got)) return where + " is wrong";
        for (int block = 0; block < columns; ++block) {
          const auto place = static_cast<int>(
              block_scales::place(tile + row - r_.offsets[index(e)], block, columns));
          is_scale[index(place)] = true;
          const std::uint32_t scale = block < blocks ? scales[index(token * blocks + block)]
                                                     : micro::neutral_scale(f_.scale);
          if (tiles()[place] != scale) {
            return "scale " + std::to_string(block) + " of " + where + " is " +
                   std::to_string(tiles()[place]) + ", not " + std::to_string(scale);
          }
        }
      }
      tile += block_scales::padded_rows(r_.offsets[index(e + 1)] - r_.offsets[index(e)]);
    }
    for (std::size_t i = 0; i < is_scale.size(); ++i) {
      if (!is_scale[i] && tiles()[i] != 0xee) return "a byte of no row's scale is written";
    }
    for (int row = r_.offsets.back(); row < count && !by_token_; ++row) {
      const auto* const got = to_.row(row);
      if (std::any_of(got, got + row_bytes_, [](unsigned char c) { return c != 0xcd; })) {
        return "row " + std::to_string(row) + " is written";
      }
    }
    return {};
  }

 private:
  std::uint8_t* tiles() {
    const auto at = reinterpret_cast<std::uintptr_t>(tiles_.data());
    return tiles_.data() + (16 - at % 16) % 16;
  }

  Shape s_;
  MicroFormat f_;
  Routing& r_;
  bool by_token_;
  float tensor_;
  Bytes x_;
  int rows_;
  int row_bytes_;
  Bytes to_;
  std::int64_t tile_rows_ = 0;
  std::vector<std::uint8_t> tiles_;
  kernel::GatherRowsParams p_;
};

const MicroFormat micro_row_formats[] = {*micro_format("mxf8"), *micro_format("mxf4"),
                                         *micro_format("nvf4")};

TEST(MicroRows, HaveTheBitsOfTheHost) {
  constexpr Shape sizes[] = {{5, 256},
                             {9, 512, DType::f16},
                             {7, 320, DType::bf16, 0, 16, 0, 0},
                             {140, 64},
                             {6, 130, DType::f16, 2, 6, 1, 3},
                             {3, 1568},
                             {8, 2002, DType::bf16, 4, 2, 4, 5},
                             {1, 2},
                             {11, 8}};
  std::uint64_t seed = 900;
  for (const Shape& s : sizes) {
    for (const MicroFormat& f : micro_row_formats) {
      for (const bool by_token : {false, true}) {
        ++seed;
        SCOPED_TRACE(std::string(f.word) + ", k " + std::to_string(s.k) + ", seed " +
                     std::to_string(seed));
        // More experts than a warp has lanes, and fewer; some empty.
        Routing r = route({.tokens = s.tokens,
                           .top_k = static_cast<int>(seed % 4) + 1,
                           .experts = seed % 3 == 0 ? 70 : 3,
                           .left_out_percent = 20},
                          seed);
        MicroMoved moved(s, f, r, by_token, 1 + static_cast<int>(seed % 3),
                         seed % 2 == 0 ? 0.01F : 1.0F, seed);
        must_be_clean(moved.run({}));
        EXPECT_EQ(moved.fault(), "");
      }
    }
  }
}

// More slots than a warp has lanes.
TEST(MicroRows, OfManySlots) {
  for (const MicroFormat& f : micro_row_formats) {
    Routing r = route({.tokens = 3, .top_k = 40, .experts = 50, .left_out_percent = 10}, 77);
    MicroMoved moved({3, 256}, f, r, false, 1, 0.5F, 78);
    must_be_clean(moved.run({}));
    EXPECT_EQ(moved.fault(), "");
  }
}

TEST(MicroRows, WaitForTheGridBefore) {
  Routing r = route({.tokens = 5, .top_k = 2, .experts = 3}, 23);
  MicroMoved moved({5, 260}, *micro_format("nvf4"), r, true, 2, 0.5F, 24);
  expect_waits([&](const model::Options& how) { return moved.run(how); });
}

}  // namespace
}  // namespace warpwright::tests
