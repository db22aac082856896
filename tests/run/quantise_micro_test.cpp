// Quantising with scales of blocks in host memory, against the definition in float64, element by
// element; scales put in order; and what is refused.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/must.h"
#include "tests/run/quantised.h"
#include "warpwright/device/scale_order.h"

namespace warpwright {
namespace {

using tests::Quantised;
using tests::ScaleSize;
using tests::x_at;

std::uint64_t code_at(const MatrixView& codes, std::int64_t i, std::int64_t k) {
  const int bits = numeric::bits(codes.dtype);
  const std::int64_t at = (i * codes.row_stride + k) * bits;
  const auto* const bytes = static_cast<const std::uint8_t*>(codes.data);
  unsigned two = bytes[at / 8];
  if (at % 8 + bits > 8) two |= unsigned{bytes[at / 8 + 1]} << 8;
  return two >> at % 8 & ((1U << bits) - 1);
}

std::uint64_t nearest(DType type, double x) {
  return numeric::from_double(type, x, numeric::Rounding::nearest_even,
                              numeric::Overflow::saturate);
}

// A block by its definition in float64. What floats round on the way is rounded here too.
struct Block {
  std::uint64_t scale = 0;
  std::vector<std::uint64_t> codes;
};

float as_float(double x) {
  return static_cast<float>(x);
}

Block nested(const std::vector<double>& x, double largest, float tensor, double to, double& error) {
  Block made;
  const float divisor = as_float(to * static_cast<double>(tensor));
  made.scale = nearest(DType::ue4m3, as_float(largest / static_cast<double>(divisor)));
  const double scale = numeric::to_double(DType::ue4m3, made.scale);
  const double by = static_cast<double>(
      as_float(std::clamp(scale * static_cast<double>(tensor), 0x1p-126, 0x1.fffffep127)));
  error = 0;
  for (const double each : x) {
    const double quotient = as_float(each / by);
    made.codes.push_back(scale == 0 ? 0 : nearest(DType::e2m1, quotient));
    const double off = quotient - numeric::to_double(DType::e2m1, nearest(DType::e2m1, quotient));
    if (std::isfinite(off)) error += off * off * scale * scale;
  }
  return made;
}

Block defined(const std::vector<double>& x, DType type, Recipe recipe, float tensor,
              const Block& got) {
  double largest = 0;
  bool lost = false;
  for (const double each : x) {
    if (std::isfinite(each)) largest = std::max(largest, std::fabs(each));
    lost = lost || !std::isfinite(each);
  }
  Block made;
  if (lost && type != DType::e4m3 && type != DType::e5m2) {
    made.scale = recipe == Recipe::floor || recipe == Recipe::up ? 0xff : 0x7f;
    made.codes.assign(x.size(), 0);
    return made;
  }
  if (recipe == Recipe::nested || recipe == Recipe::nested_4_or_6) {
    double six_error = 0;
    double four_error = 0;
    const Block six = nested(x, largest, tensor, 6, six_error);
    if (recipe == Recipe::nested) return six;
    const Block four = nested(x, largest, tensor, 4, four_error);
    if (six.scale == 0) return four;
    // Sums of floats may take either of two that are as good, and square nothing below 2^-75.
    if (std::fabs(four_error - six_error) <= 1e-5 * six_error + 1e-30) {
      return got.scale == four.scale ? four : six;
    }
    return four_error < six_error ? four : six;
  }
  const numeric::FloatFormat f = numeric::format_of(type);
  int exponent = 0;
  if (largest > 0) {
    exponent = std::ilogb(largest) - f.max_exponent();
    if (recipe == Recipe::up && largest > std::ldexp(f.max(), exponent)) ++exponent;
    exponent = std::max(exponent, -127);
  }
  made.scale = static_cast<std::uint64_t>(exponent + 127);
  for (const double each : x) {
    made.codes.push_back(std::isfinite(each) ? nearest(type, std::ldexp(each, -exponent)) : 0x7f);
  }
  return made;
}

// For every row its row among the scales, by the definition of groups.
std::vector<std::int64_t> places(const Quantisation& q) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(q.x.rows), -1);
  if (q.groups.count == 0) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    return all;
  }
  const auto* const offsets = static_cast<const std::int32_t*>(q.groups.offsets);
  std::int64_t tile = 0;
  for (std::int64_t g = 0; g < q.groups.count; ++g) {
    std::int64_t length = 0;
    for (std::int64_t row = offsets[g]; row < offsets[g + 1]; ++row) {
      if (row < 0 || row >= q.x.rows) continue;
      all[static_cast<std::size_t>(row)] = 128 * tile + length++;
    }
    tile += (length + 127) / 128;
  }
  return all;
}

void expect_as_defined(Quantised& problem, const Quantisation& q, float tensor) {
  const int block = micro_block(q.scales.dtype);
  std::vector<bool> is_scale(problem.scales.size());
  const std::vector<std::int64_t> rows = places(q);
  for (std::int64_t i = 0; i < q.x.rows; ++i) {
    for (std::int64_t first = 0; first < q.x.columns; first += block) {
      std::vector<double> x;
      Block got;
      for (std::int64_t k = first; k < std::min(first + block, q.x.columns); ++k) {
        x.push_back(x_at(q, i, k));
        got.codes.push_back(code_at(q.codes, i, k));
      }
      const std::int64_t place = rows[static_cast<std::size_t>(i)];
      const std::int64_t at = q.order == ScaleOrder::rows ? i * q.scales.row_stride + first / block
                              : place < 0
                                  ? -1
                                  : block_scales::place(place, first / block, q.scales.columns);
      if (at >= 0) {
        got.scale = static_cast<std::uint64_t>(problem.scales[static_cast<std::size_t>(at)]);
        is_scale[static_cast<std::size_t>(at)] = true;
      }
      const Block want = defined(x, q.codes.dtype, q.its_recipe(), tensor, got);
      if (at >= 0) {
        ASSERT_EQ(got.scale, want.scale) << i << ", " << first;
      }
      ASSERT_EQ(got.codes, want.codes) << i << ", " << first << ", scale " << want.scale;
    }
  }
  const auto padding = static_cast<std::byte>(micro::neutral_scale(q.scales.dtype));
  for (std::int64_t i = 0; i < q.scales.rows * q.scales.row_stride; ++i) {
    if (is_scale[static_cast<std::size_t>(i)]) continue;
    ASSERT_EQ(problem.scales[static_cast<std::size_t>(i)],
              q.order == ScaleOrder::tiles ? padding : std::byte{0x55})
        << "scale " << i;
  }
}

TEST(QuantiseMicro, IsAsItIsDefined) {
  constexpr std::uint32_t first = 20261124;
  for (std::uint32_t seed = first; seed < first + 60; ++seed) {
    Quantised problem(seed, ScaleSize::micro);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
    const Quantisation q = problem.here();
    must_do(quantise_on_host(q));
    if (problem.has_tensor && !q.given) {
      double largest = 0;
      for (std::int64_t i = 0; i < q.x.rows; ++i) {
        for (std::int64_t k = 0; k < q.x.columns; ++k) {
          const double x = std::fabs(x_at(q, i, k));
          if (std::isfinite(x)) largest = std::max(largest, x);
        }
      }
      const double top = q.its_recipe() == Recipe::nested ? 2688 : 1536;
      ASSERT_EQ(problem.tensor, largest == 0 ? 1 : std::max(as_float(largest / top), 0x1p-117F));
    }
    expect_as_defined(problem, q, problem.has_tensor ? problem.tensor : 1);
    if (testing::Test::HasFatalFailure()) return;
    // Nothing beside the codes is written.
    for (std::size_t i = 0; i < static_cast<std::size_t>(problem.codes_shift); ++i) {
      ASSERT_EQ(problem.codes[i], std::byte{0x55});
    }
    for (std::size_t i = problem.codes.size() - 16; i < problem.codes.size(); ++i) {
      ASSERT_EQ(problem.codes[i], std::byte{0x55});
    }
  }
}

// What recipes cost: of normal values, the error relative to the values' own.
TEST(QuantiseMicro, ErrorsAreWhatThePageSays) {
  constexpr std::int64_t m = 64, k = 4096;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(m * k);
  for (float& v : x) v = normal(random);
  const auto error = [&](DType type, DType scale, Recipe recipe) {
    std::vector<std::byte> codes(m * k), scales(m * k / 16);
    float tensor = 0;
    Quantisation q{.x = matrix(x.data(), DType::f32, m, k),
                   .codes = matrix(codes.data(), type, m, k),
                   .scales = matrix(scales.data(), scale, m, k / micro_block(scale)),
                   .scaling = Scaling::block_scaled,
                   .recipe = recipe,
                   .order = ScaleOrder::rows};
    if (scale == DType::ue4m3) q.tensor_scale = matrix(&tensor, DType::f32, 1, 1);
    EXPECT_FALSE(quantise_on_host(q));
    double sum = 0, own = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < k; ++j) {
        const auto at = static_cast<std::size_t>(i * q.scales.columns + j / micro_block(scale));
        const double decoded = numeric::to_double(type, code_at(q.codes, i, j)) *
                               numeric::to_double(scale, static_cast<std::uint64_t>(scales[at])) *
                               (scale == DType::ue4m3 ? static_cast<double>(tensor) : 1);
        const double v = static_cast<double>(x[static_cast<std::size_t>(i * k + j)]);
        sum += (decoded - v) * (decoded - v);
        own += v * v;
      }
    }
    return std::sqrt(sum / own);
  };
  struct Row {
    DType type;
    DType scale;
    Recipe recipe;
    double want;
  };
  const Row rows[] = {{DType::e4m3, DType::ue8m0, Recipe::floor, 0.02953},
                      {DType::e4m3, DType::ue8m0, Recipe::up, 0.02664},
                      {DType::e5m2, DType::ue8m0, Recipe::floor, 0.05380},
                      {DType::e5m2, DType::ue8m0, Recipe::up, 0.05261},
                      {DType::e2m3, DType::ue8m0, Recipe::floor, 0.02848},
                      {DType::e2m3, DType::ue8m0, Recipe::up, 0.02842},
                      {DType::e3m2, DType::ue8m0, Recipe::floor, 0.05380},
                      {DType::e3m2, DType::ue8m0, Recipe::up, 0.05261},
                      {DType::e2m1, DType::ue8m0, Recipe::floor, 0.11497},
                      {DType::e2m1, DType::ue8m0, Recipe::up, 0.11561},
                      {DType::e2m1, DType::ue4m3, Recipe::nested, 0.09499},
                      {DType::e2m1, DType::ue4m3, Recipe::nested_4_or_6, 0.08691}};
  for (const Row& row : rows) {
    EXPECT_NEAR(error(row.type, row.scale, row.recipe), row.want, 2e-5)
        << numeric::name(row.type) << ", " << micro::name(row.recipe);
  }
}

TEST(QuantiseMicro, ScalesGoFromRowsToTilesAndBack) {
  constexpr std::uint32_t first = 20261124;
  for (std::uint32_t seed = first; seed < first + 60; ++seed) {
    tests::Reordered problem(seed);
    if (!problem.goes_back()) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + problem.text());
    const MatrixView& rows = problem.r.rows;
    const MatrixView& tiles = problem.r.tiles;
    std::vector<std::byte> back(problem.plain.size());
    for (const ScaleOrder to : {ScaleOrder::tiles, ScaleOrder::rows}) {
      must_do(reorder_scales_on_host(
          problem.at(to, (to == ScaleOrder::tiles ? problem.plain : back).data(),
                     problem.tiles.data(), problem.offset_data())));
    }
    const auto neutral = static_cast<std::byte>(micro::neutral_scale(tiles.dtype));
    const auto end = problem.tiles.begin() + tiles.batch * tiles.rows * tiles.columns;
    EXPECT_LE(std::count_if(problem.tiles.begin(), end, [&](std::byte b) { return b != neutral; }),
              rows.batch * rows.rows * rows.columns);
    const std::int64_t begin = problem.offsets.empty() ? 0 : problem.offsets.front();
    const std::int64_t behind = problem.offsets.empty() ? rows.rows : problem.offsets.back();
    for (std::int64_t at = 0; at < rows.batch * rows.batch_stride; ++at) {
      const std::int64_t row = at % rows.batch_stride / rows.row_stride;
      const bool is_there = at % rows.row_stride < rows.columns && begin <= row && row < behind;
      ASSERT_EQ(back[static_cast<std::size_t>(at)],
                is_there ? problem.plain[static_cast<std::size_t>(at)] : std::byte{0})
          << at;
    }
  }
}

// Scales of fp8, 1 x 128 of tokens and 128 x 128 of weights, whose values are powers of two.
TEST(QuantiseMicro, ScalesOfBlocksOf128BecomeTiles) {
  std::mt19937 random(20261127);
  for (const int rows_each : {1, 128}) {
    for (const DType type : {DType::ue8m0, DType::f32}) {
      const std::int64_t m = 300;
      const std::int64_t blocks = 13;
      const std::int64_t down = (m + rows_each - 1) / rows_each;
      const std::int64_t across = (blocks + 3) / 4;
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(2 * down * across));
      for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random() % 255);
      std::vector<float> values;
      for (const std::uint8_t code : codes) values.push_back(std::ldexp(1.0F, code - 127));
      ScaleReordering r;
      r.rows = matrix(type == DType::f32 ? static_cast<void*>(values.data()) : codes.data(), type,
                      down, across);
      r.rows.batch = 2;
      r.rows.batch_stride = down * across;
      r.rows_each = rows_each;
      r.blocks_each = 4;
      r.tiles = scale_tiles_of(DType::ue8m0, m, blocks, {}, 2);
      std::vector<std::uint8_t> tiles(static_cast<std::size_t>(2 * r.tiles.rows * r.tiles.columns));
      r.tiles.data = tiles.data();
      must_do(reorder_scales_on_host(r));
      for (std::int64_t i = 0; i < 2 * m * blocks; ++i) {
        const std::int64_t batch = i / (m * blocks);
        const std::int64_t row = i / blocks % m;
        const std::int64_t block = i % blocks;
        const auto at = batch * r.tiles.rows * r.tiles.columns +
                        block_scales::place(row, block, r.tiles.columns);
        const auto from = (batch * down + row / rows_each) * across + block / 4;
        ASSERT_EQ(tiles[static_cast<std::size_t>(at)], codes[static_cast<std::size_t>(from)])
            << "seed 20261127, " << row << ", " << block;
      }
      if (type != DType::f32) continue;
      for (const float other : {0.0F, 3.0F, -2.0F, std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN(), 1e-45F}) {
        values.back() = other;
        ASSERT_TRUE(reorder_scales_on_host(r)) << other;
        EXPECT_THAT(reorder_scales_on_host(r)->reason, testing::HasSubstr("it is a power of two"));
      }
    }
  }
}

TEST(QuantiseMicro, RefusesWhatItCannotDo) {
  std::vector<float> x(64);
  alignas(16) std::byte codes[64], scales[1024];
  std::int32_t offsets[3] = {0, 2, 4};
  float tensor = 1;
  const auto refused = [&](RefusalCode code, const char* says, const auto& change) {
    Quantisation q{.x = matrix(x.data(), DType::f32, 4, 16),
                   .codes = matrix(codes, DType::e2m1, 4, 16),
                   .scales = matrix(scales, DType::ue4m3, 128, 4),
                   .scaling = Scaling::block_scaled,
                   .tensor_scale = matrix(&tensor, DType::f32, 1, 1)};
    ASSERT_FALSE(fault(q)) << fault(q)->reason;
    change(q);
    const auto told = must(quantise_on_host(q), says);
    EXPECT_EQ(told->code, code) << told->reason;
    EXPECT_THAT(told->reason, testing::HasSubstr(says));
  };
  using Q = Quantisation;
  using enum RefusalCode;
  refused(bad_type, "the codes are s8", [](Q& q) { q.codes.dtype = DType::s8; });
  refused(bad_type, "those of blocks of e4m3 are ue8m0", [](Q& q) { q.codes.dtype = DType::e4m3; });
  refused(bad_type, "scales are f32", [](Q& q) { q.scales.dtype = DType::f32; });
  refused(bad_value, "the recipe is up and scales are ue4m3", [](Q& q) { q.recipe = Recipe::up; });
  refused(bad_value, "only beside ue4m3", [](Q& q) { q.scales.dtype = DType::ue8m0; });
  refused(bad_value, "a recipe is given and scaling is row-column", [&](Q& q) {
    q.scaling = Scaling::row_column;
    q.codes.dtype = DType::e4m3;
    q.recipe = Recipe::up;
  });
  refused(bad_pointer, "a scale is given and the tensor's is a null pointer", [](Q& q) {
    q.given = true;
    q.tensor_scale = {};
  });
  refused(bad_shape, "the scale of the tensor is 4 x 1", [](Q& q) { q.tensor_scale.rows = 4; });
  refused(bad_shape, "those of x (4 x 16) are 1 x 128 x 4", [](Q& q) { q.scales.rows = 4; });
  refused(bad_shape, "scales in rows are 128 x 4", [](Q& q) { q.order = ScaleOrder::rows; });
  refused(bad_shape, "in 2 groups are 1 x 256 x 4", [&](Q& q) {
    q.groups = {offsets, OffsetType::int32, 2};
  });
  refused(bad_pointer, "offsets of groups are a null", [](Q& q) { q.groups.count = 2; });
  refused(bad_pointer, "multiple of 1; it must be one of 16",
          [&](Q& q) { q.scales.data = scales + 1; });
  refused(bad_stride, "tiles follow each other", [](Q& q) { q.scales.row_stride = 8; });
  refused(bad_shape, "have 15 columns of e2m1", [](Q& q) {
    q.x.columns = 15;
    q.codes.columns = 15;
  });
  refused(bad_stride, "row stride of 17", [](Q& q) { q.codes.row_stride = 17; });
  refused(overlap, "the scale of the tensor overlaps",
          [](Q& q) { q.tensor_scale.data = q.x.data; });
  refused(bad_value, "groups are of tiles", [&](Q& q) {
    q.order = ScaleOrder::rows;
    q.scales = matrix(scales, DType::ue4m3, 4, 1);
    q.groups = {offsets, OffsetType::int32, 2};
  });
  ScaleReordering r{.rows = matrix(scales, DType::ue8m0, 4, 1),
                    .tiles = matrix(scales + 512, DType::ue8m0, 128, 4)};
  EXPECT_FALSE(fault(r));
  r.tiles.data = scales;
  EXPECT_THAT(fault(r)->reason, testing::HasSubstr("scales in rows overlap those in tiles"));
  r.rows.dtype = DType::bf16;
  EXPECT_THAT(fault(r)->reason, testing::HasSubstr("those of blocks are ue8m0 or ue4m3"));
  r.rows.dtype = DType::ue8m0;
  r.rows_each = 64;
  EXPECT_THAT(fault(r)->reason, testing::HasSubstr("1 or 128 rows, and 1 or 4 blocks of K"));
  r.rows_each = 128;
  r.to = ScaleOrder::rows;
  EXPECT_THAT(fault(r)->reason, testing::HasSubstr("there each serves one row and one block"));
  r.to = ScaleOrder::tiles;
  r.groups = {offsets, OffsetType::int32, 2};
  EXPECT_THAT(fault(r)->reason, testing::HasSubstr("which begin anywhere: the nearest is 1"));
  r.groups = {};
  r.rows.dtype = DType::ue4m3;
  EXPECT_THAT(fault(r)->reason, testing::HasSubstr("become ue8m0 in tiles"));
}

}  // namespace
}  // namespace warpwright
