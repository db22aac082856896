// Rows of tokens in the order of experts, and the sums of what experts made of them, on the model:
// codes and scales have the bits of quantising on the host, sums those of fused multiply-adds in
// the order of rows.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "tests/kernel/moved_rows.h"
#include "tests/must.h"
#include "warpwright/kernel/moe/gate_rows.h"
#include "warpwright/numeric/bulk.h"

namespace warpwright::tests {
namespace {

using kernel::GateRowsKernel;
using kernel::GatherRowsKernel;
using kernel::RowForm;
using kernel::SumSlotsKernel;
using kernel::TokenRows;
using kernel::TokenRowsWork;

model::Report gather(const TokenRows& rows, const std::vector<model::Allocation>& memory,
                     const model::Options& how) {
  const kernel::GatherRowsParams p{rows};
  model::Kernel k;
  k.shape = {.ctas = GatherRowsKernel::ctas(p, 1),
             .threads = GatherRowsKernel::threads,
             .shared_bytes = GatherRowsKernel::shared_bytes};
  k.body = [&p] { GatherRowsKernel::run(p); };
  k.memory = memory;
  k.dependent = true;
  return model::run(k, how);
}
model::Report gather(const Moved& m, const model::Options& how) {
  return gather(m.params(), m.memory(), how);
}

TEST(GatherRows, HaveTheBitsOfTheHost) {
  std::uint64_t seed = 100;
  for (const Shape& shape : shapes) {
    for (const RowForm form : forms) {
      const Shape s = legal(shape, form);
      SCOPED_TRACE("k " + std::to_string(s.k) + ", form " + std::to_string(static_cast<int>(form)) +
                   ", seed " + std::to_string(++seed));
      Routing r = route({.tokens = s.tokens,
                         .top_k = static_cast<int>(seed % 4) + 1,
                         .experts = 3,
                         .left_out_percent = 20},
                        seed);
      Moved moved(s, form, &r, seed);
      must_be_clean(gather(moved, {}));
      EXPECT_EQ(moved.fault(), "");
    }
  }
}

TEST(GatherRows, OfTokensWithManySlots) {
  Routing r = route({.tokens = 3, .top_k = 40, .experts = 50, .left_out_percent = 10}, 77);
  for (const RowForm form : forms) {
    Moved moved({3, 256}, form, &r, 78);
    must_be_clean(gather(moved, {}));
    EXPECT_EQ(moved.fault(), "");
  }
}

TEST(GatherRows, NothingIsWrittenWhereAllIsLeftOut) {
  Routing r = route({.tokens = 4, .top_k = 2, .experts = 3, .left_out_percent = 100}, 5);
  Moved moved({4, 128}, RowForm::blocks, &r, 6);
  EXPECT_TRUE(gather(moved, {}).clean());
  EXPECT_EQ(moved.fault(), "");
}

// Rows times a weight each, copied or quantised.
TEST(GatherRows, TimesTheirWeights) {
  for (const DType type : {DType::bf16, DType::f16}) {
    for (const RowForm form : {RowForm::copy, RowForm::blocks, RowForm::rows}) {
      const Shape s = legal({6, 262, type, 2, 6}, form);
      Routing r = route({.tokens = 6, .top_k = 1, .experts = 3, .left_out_percent = 20}, 91);
      Moved moved(s, form, &r, 92);
      std::vector<float> weights;
      for (int t = 0; t < s.tokens; ++t) weights.push_back(1.0F / static_cast<float>(t + 3));
      TokenRows p = moved.params();
      p.weights = weights.data();
      p.weight_pitch = 1;
      std::vector<model::Allocation> memory = moved.memory();
      memory.push_back(allocation(weights, "weights"));
      must_be_clean(gather(p, memory, {}));
      EXPECT_NE(moved.fault(), "");
      moved.change([&](int t, int /*i*/, float x) { return weights[index(t)] * x; });
      EXPECT_EQ(moved.fault(), "");
    }
  }
}

// --- gates of rows between the products ---------------------------------------------------------

TEST(GateRows, HaveTheBitsOfAGateThatWasQuantisedOnTheHost) {
  std::uint64_t seed = 300;
  for (const Shape& shape : shapes) {
    for (const RowForm form : {RowForm::copy, RowForm::blocks, RowForm::rows}) {
      const Shape s = legal(shape, form);
      kernel::GateRowsParams p;
      p.interleaved = ++seed % 2 == 0;
      p.activation = {.smooth = true, .slope = 1.0F, .cubic = 1e-38F};
      if (seed % 3 == 0) p.activation.limit = p.activation.offset = 1;
      SCOPED_TRACE("k " + std::to_string(s.k) + ", form " + std::to_string(static_cast<int>(form)) +
                   ", seed " + std::to_string(seed));
      Moved moved(s, form, nullptr, seed);
      Shape both = s;
      both.k *= 2;
      Bytes x = tokens_of(both, seed + 7);
      p.rows = moved.params();
      p.rows.x = x.data();
      p.rows.x_pitch = x.pitch;
      p.rows.sharers = TokenRowsWork::sharers_of(p.rows, GateRowsKernel::warps, 1,
                                                 seed % 2 == 0 ? kernel::ReadGated::kept : 0);
      model::Kernel k;
      k.shape = {.ctas = GateRowsKernel::ctas(p, 1),
                 .threads = GateRowsKernel::threads,
                 .shared_bytes = GateRowsKernel::shared_bytes};
      k.body = [&p] { GateRowsKernel::run(p); };
      k.memory = moved.memory();
      k.memory.push_back(x.memory("gates and ups", s.tokens, 4 * s.k, false));
      k.dependent = true;
      must_be_clean(model::run(k, {}));
      EXPECT_NE(moved.fault(), "");
      moved.change([&](int t, int i, float /*x*/) {
        const auto element = [&](int column) {
          std::uint16_t code = 0;
          std::memcpy(&code, x.row(t) + 2 * column, 2);
          return float16(s.type, code);
        };
        float gate[] = {element(p.interleaved ? 2 * i : i)};
        float up[] = {element(p.interleaved ? 2 * i + 1 : s.k + i)};
        kernel::multiply_gate(p.activation, gate, up);
        return gate[0];
      });
      EXPECT_EQ(moved.fault(), "");
    }
  }
}

// Warps share a row where some would be idle, and one of gates before a warp reads a piece twice.
TEST(GateRows, WarpsShareRows) {
  const auto sharers = [](int tokens, int k, int warps, int most_pieces) {
    TokenRows p;
    p.form = RowForm::rows;
    p.tokens = tokens;
    p.k = k;
    return TokenRowsWork::sharers_of(p, GateRowsKernel::warps, warps, most_pieces);
  };
  constexpr int kept = kernel::ReadGated::kept;
  EXPECT_EQ(sharers(1000, 2048, 1000, 0), 1);
  EXPECT_EQ(sharers(4, 2048, 16, 0), 4);
  EXPECT_EQ(sharers(4, 512, 1000, 0), 2) << "two pieces";
  EXPECT_EQ(sharers(1000, 3 * 256, 1000, kept), 1);
  EXPECT_EQ(sharers(1000, 3 * 256 + 8, 1000, kept), 2);
  EXPECT_EQ(sharers(1000, 2880, 1000, kept), 4);
  EXPECT_EQ(sharers(1000, 14336, 1000, kept), 8) << "a CTA has no more warps";
}

// --- beside the sort -----------------------------------------------------------------------------

TEST(SortSlots, OtherClustersQuantise) {
  for (const RowForm form : {RowForm::blocks, RowForm::rows}) {
    for (const SortShape& shape :
         {SortShape{.warps = 2, .cluster = 1}, SortShape{.warps = 2, .cluster = 2},
          SortShape{.warps = 1, .cluster = 2, .parts = 2, .steps = 1}}) {
      const Routing r = route({.tokens = 41, .top_k = 2, .experts = 6}, 40);
      std::vector<std::int32_t> offsets, slots, rows;
      std::uint32_t status = 0;
      kernel::SortSlotsParams p =
          device::sort_slots_params(r.sort_into(offsets, slots, rows, status));
      reshape(p, shape);
      Moved moved({41, 300}, form, nullptr, 41);
      p.quantised = moved.params();
      p.quantised.sharers = shape.warps;
      for (const model::Options& how : model::schedules()) {
        SCOPED_TRACE(model::text(how));
        must_be_clean(run_sort(r, p, 2, moved.memory(), how));
        EXPECT_EQ(moved.fault(), "");
        EXPECT_EQ(slots, r.slots);
        EXPECT_EQ(rows, r.rows);
        EXPECT_EQ(offsets, r.offsets);
      }
    }
  }
}

// --- sums ----------------------------------------------------------------------------------------

struct SumShape {
  int k;
  DType type = DType::bf16;
  DType y_type = DType::bf16;
  DType weight_type = DType::f32;
  int x_shift = 0;
  int y_shift = 0;
  int extra = 0;  // elements
  bool weighted = true;
  float factor = 1;
  std::optional<DType> addend = {};
  bool slots = false;  // each has a row of y
};

int bytes_of(DType type) {
  return type == DType::f32 ? 4 : 2;
}
float value_at(const unsigned char* at, DType type) {
  if (type == DType::f32) {
    float x = 0;
    std::memcpy(&x, at, 4);
    return x;
  }
  std::uint16_t code = 0;
  std::memcpy(&code, at, 2);
  return float16(type, code);
}
void put_value(unsigned char* at, DType type, float x) {
  const std::uint16_t code = type == DType::f32 ? std::uint16_t{0} : code16(type, x);
  std::memcpy(at, type == DType::f32 ? static_cast<const void*>(&x) : &code, index(bytes_of(type)));
}

class Sums {
 public:
  Sums(const SumShape& s, const Routing& r, std::uint64_t seed)
      : s_(s),
        r_(r),
        x_(r.tokens * r.top_k, 2 * s.k, 2 * s.extra, s.x_shift),
        y_rows_(s.slots ? r.tokens * r.top_k : r.tokens),
        addend_type_(s.addend.value_or(DType::f32)),
        y_(y_rows_, bytes_of(s.y_type) * s.k, bytes_of(s.y_type) * s.extra, s.y_shift),
        addend_(r.tokens, bytes_of(addend_type_) * s.k, bytes_of(addend_type_) * s.extra, 0),
        weights_(r.tokens, bytes_of(s.weight_type) * r.top_k, bytes_of(s.weight_type) * s.extra,
                 0) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<float> normal;
    for (int row = 0; row < r.tokens * r.top_k; ++row) {
      for (int i = 0; i < s.k; ++i) {
        // What is behind the last row is never to be read into a sum.
        put_value(x_.row(row) + 2 * i, s.type, row < r.offsets.back() ? normal(random) : NAN);
      }
    }
    for (int t = 0; t < r.tokens; ++t) {
      for (int j = 0; j < r.top_k; ++j) {
        const bool left_out = r.rows[index(t * r.top_k + j)] < 0;
        const float w = left_out || t == nan_token ? NAN : normal(random);
        put_value(weights_.row(t) + bytes_of(s.weight_type) * j, s.weight_type, w);
      }
    }
    for (int t = 0; t < r.tokens; ++t) {
      for (int i = 0; i < s.k; ++i) {
        put_value(addend_.row(t) + bytes_of(addend_type_) * i, addend_type_, normal(random));
      }
    }
    rows_ = r.rows;
    p_ = {.x = x_.data(),
          .x_pitch = x_.pitch,
          .y = y_.data(),
          .y_pitch = y_.pitch,
          .weights = s.weighted ? weights_.data() : nullptr,
          .weight_pitch = r.top_k + s.extra,
          .addend = s.addend ? addend_.data() : nullptr,
          .addend_pitch = addend_.pitch,
          .rows = rows_.data(),
          .tokens = y_rows_,
          .top_k = s.slots ? 1 : r.top_k,
          .k = s.k,
          .type = s.type,
          .y_type = s.y_type,
          .weight_type = s.weight_type,
          .addend_type = addend_type_,
          .factor = s.factor,
          .of_weights = s.slots ? r.top_k : 1};
  }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  model::Report run(const model::Options& how) {
    model::Kernel k;
    k.shape = {.ctas = std::max(1, SumSlotsKernel::ctas(p_, 1)),
               .threads = SumSlotsKernel::threads};
    k.body = [this] { SumSlotsKernel::run(p_); };
    const int kept = r_.offsets.back();
    k.memory = {x_.memory("x", kept, 2 * s_.k, false),
                y_.memory("y", y_rows_, bytes_of(s_.y_type) * s_.k, true),
                addend_.memory("addend", r_.tokens, bytes_of(addend_type_) * s_.k, false),
                weights_.memory("weights", r_.tokens, bytes_of(s_.weight_type) * r_.top_k, false),
                {rows_.data(), std::int64_t{4} * r_.tokens * r_.top_k, "rows", false}};
    k.dependent = true;
    return model::run(k, how);
  }

  std::string fault() {
    for (int y = 0; y < y_rows_; ++y) {
      const int t = s_.slots ? y / r_.top_k : y;
      std::vector<std::pair<int, int>> order;  // row, slot of the token
      for (int j = 0; j < r_.top_k; ++j) {
        if (s_.slots && j != y % r_.top_k) continue;
        const int row = r_.rows[index(t * r_.top_k + j)];
        if (row >= 0) order.emplace_back(row, j);
      }
      std::sort(order.begin(), order.end());
      for (int i = 0; i < s_.k; ++i) {
        float sum = 0;
        for (const auto& [row, j] : order) {
          const float w =
              s_.weighted ? value_at(weights_.row(t) + bytes_of(s_.weight_type) * j, s_.weight_type)
                          : 1;
          sum = std::fma(s_.factor * w, value_at(x_.row(row) + 2 * i, s_.type), sum);
        }
        if (s_.addend) {
          sum += value_at(addend_.row(t) + bytes_of(addend_type_) * i, addend_type_);
        }
        unsigned char want[4];
        put_value(want, s_.y_type, sum);
        const unsigned char* const got = y_.row(y) + bytes_of(s_.y_type) * i;
        const bool both_nan = std::isnan(sum) && std::isnan(value_at(got, s_.y_type));
        if (!both_nan && !std::equal(want, want + bytes_of(s_.y_type), got)) {
          return "y[" + std::to_string(y) + "," + std::to_string(i) + "] is " +
                 std::to_string(value_at(got, s_.y_type)) + ", not " + std::to_string(sum);
        }
      }
    }
    return {};
  }

  static constexpr int nan_token = 3;

 private:
  SumShape s_;
  const Routing& r_;
  Bytes x_;
  int y_rows_;
  DType addend_type_;
  Bytes y_, addend_, weights_;
  std::vector<std::int32_t> rows_;
  kernel::SumSlotsParams p_;
};

constexpr SumShape sum_shapes[] = {
    {256},
    {512, DType::f16, DType::f16, DType::f16},
    {300, DType::bf16, DType::f32, DType::bf16},
    {257, DType::f16, DType::f32, DType::f32, 2, 4, 1},
    {131, DType::bf16, DType::bf16, DType::bf16, 6, 10, 3},
    {1},
    {.k = 264, .factor = 2.5F, .addend = DType::bf16},
    {.k = 256, .y_type = DType::f32, .weighted = false, .addend = DType::f32},
    {.k = 131, .type = DType::f16, .y_type = DType::f16, .extra = 1, .addend = DType::f16},
    {.k = 258, .extra = 3, .factor = -0.5F, .addend = DType::f32},
    {.k = 256, .slots = true},
    {.k = 33, .y_type = DType::f32, .extra = 2, .weighted = false, .slots = true},
    {.k = 264, .weight_type = DType::bf16, .extra = 4, .factor = 3, .slots = true},
};

TEST(SumSlots, InTheOrderOfRows) {
  std::uint64_t seed = 500;
  for (const SumShape& s : sum_shapes) {
    for (const int top_k : {1, 3, 8, 32}) {
      SCOPED_TRACE("k " + std::to_string(s.k) + ", top-k " + std::to_string(top_k) + ", seed " +
                   std::to_string(++seed));
      const Routing r =
          route({.tokens = 7, .top_k = top_k, .experts = 9, .left_out_percent = 30}, seed);
      Sums sums(s, r, seed);
      must_be_clean(sums.run({}));
      EXPECT_EQ(sums.fault(), "");
    }
  }
}

TEST(SumSlots, TokensWithoutSlotsAreZero) {
  const Routing r = route({.tokens = 6, .top_k = 2, .experts = 3, .left_out_percent = 100}, 9);
  Sums sums({260}, r, 10);
  EXPECT_TRUE(sums.run({}).clean());
  EXPECT_EQ(sums.fault(), "");
}

TEST(SumSlots, WaitForTheGridBefore) {
  const Routing r = route({.tokens = 5, .top_k = 2, .experts = 3}, 11);
  Sums sums({260}, r, 12);
  expect_waits([&](const model::Options& how) { return sums.run(how); });
}

TEST(GatherRows, WaitForTheGridBefore) {
  Routing r = route({.tokens = 5, .top_k = 2, .experts = 3}, 21);
  Moved moved({5, 260}, RowForm::blocks, &r, 22);
  expect_waits([&](const model::Options& how) { return gather(moved, how); });
}

}  // namespace
}  // namespace warpwright::tests
