// Rows of tokens in the order of experts, and the sums of what experts made of them, on the model:
// codes and scales have the bits of quantising on the host, sums those of fused multiply-adds in
// the order of rows.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernel/slots.h"
#include "tests/model/mutants.h"
#include "warpwright/device/quantise.h"
#include "warpwright/facts/block_scales.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/numeric/float_format.h"

namespace warpwright::tests {
namespace {

using kernel::GatherRowsKernel;
using kernel::RowForm;
using kernel::SumSlotsKernel;
using kernel::TokenRows;

std::uint16_t code16(DType type, float x) {
  return static_cast<std::uint16_t>(numeric::from_double(type, static_cast<double>(x)));
}
float float16(DType type, std::uint16_t code) {
  return static_cast<float>(numeric::to_double(type, code));
}

// A matrix of bytes with a pitch, behind some bytes.
struct Bytes {
  std::vector<unsigned char> all;
  int shift;
  int pitch;
  Bytes(int rows, int row_bytes, int extra, int before)
      : all(index(rows * (row_bytes + extra) + before + 16), 0xcd),
        shift(before),
        pitch(row_bytes + extra) {}
  unsigned char* data() {
    const auto at = reinterpret_cast<std::uintptr_t>(all.data());
    return all.data() + (16 - at % 16) % 16 + shift;
  }
  unsigned char* row(int r) { return data() + r * pitch; }
  // What may be touched: the rows, no more.
  model::Allocation memory(const char* name, int rows, int row_bytes, bool writable) {
    return {data(), rows == 0 ? 0 : std::int64_t{rows - 1} * pitch + row_bytes, name, writable};
  }
};

struct Shape {
  int tokens;
  int k;
  DType type = DType::bf16;
  int x_shift = 0;  // bytes beyond a multiple of 16
  int x_extra = 0;
  int to_shift = 0;
  int to_extra = 0;
};

// Values of many sizes, with zeros; some blocks have what is no number.
Bytes tokens_of(const Shape& s, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  Bytes x(s.tokens, 2 * s.k, s.x_extra, s.x_shift);
  for (int t = 0; t < s.tokens; ++t) {
    const float size = std::ldexp(1.0F, static_cast<int>(random() % 20) - 10);
    for (int i = 0; i < s.k; ++i) {
      float v = normal(random) * size;
      if (random() % 16 == 0) v = 0;
      if (t % 5 == 4 && random() % 64 == 0) v = random() % 2 == 0 ? NAN : -INFINITY;
      if (t % 7 == 6 && i < 128) v = 0;
      const std::uint16_t code = code16(s.type, v);
      std::memcpy(x.row(t) + 2 * i, &code, 2);
    }
  }
  return x;
}

// Codes and scales of the tokens on the host.
struct Codes {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  int blocks;
};
Codes quantised(const Shape& s, Bytes& x, RowForm form) {
  Codes q;
  q.blocks = form == RowForm::blocks ? (s.k + 127) / 128 : 1;
  q.codes.resize(index(s.tokens) * index(s.k));
  q.scales.resize(index(s.tokens * q.blocks));
  Quantisation what;
  what.x = matrix(x.data(), s.type, s.tokens, s.k);
  what.x.row_stride = x.pitch / 2;
  what.codes = matrix(q.codes.data(), DType::e4m3, s.tokens, s.k);
  what.scales = matrix(q.scales.data(), DType::f32, s.tokens, q.blocks);
  what.scaling = form == RowForm::blocks ? Scaling::blockwise : Scaling::row_column;
  const auto refusal = quantise_on_host(what);
  EXPECT_FALSE(refusal) << refusal->reason;
  return q;
}

// The rows that the result must have, for each the token, or -1 for one that stays as it is.
struct Result {
  int rows;
  std::vector<int> token_of;
};
Result result_of(const Routing* r, int tokens) {
  Result to{r == nullptr ? tokens : static_cast<int>(r->tokens * r->top_k), {}};
  for (int i = 0; i < to.rows; ++i) {
    if (r == nullptr) {
      to.token_of.push_back(i);
    } else {
      const int slot = i < r->offsets.back() ? r->slots[index(i)] : -1;
      to.token_of.push_back(slot < 0 ? -1 : slot / r->top_k);
    }
  }
  return to;
}

// Rows of tokens, made by a launch, and what is wrong with them.
class Moved {
 public:
  Moved(const Shape& s, RowForm form, Routing* r, std::uint64_t seed)
      : s_(s),
        form_(form),
        x_(tokens_of(s, seed)),
        result_(result_of(r, s.tokens)),
        row_bytes_(form == RowForm::copy ? 2 * s.k : s.k),
        to_(result_.rows, row_bytes_, s.to_extra, s.to_shift),
        blocks_(form == RowForm::blocks ? (s.k + 127) / 128 : 1),
        scales_(index(result_.rows * blocks_), -1.0F) {
    p_.x = x_.data();
    p_.x_pitch = x_.pitch;
    p_.to = to_.data();
    p_.to_pitch = to_.pitch;
    p_.scales = form == RowForm::copy ? nullptr : scales_.data();
    // Side by side are the rows' scales, as products of groups read them.
    p_.scale_pitch = 1;
    p_.scale_step = result_.rows;
    if (r != nullptr) {
      p_.rows = r->rows.data();
      p_.top_k = r->top_k;
      memory_.push_back({r->rows.data(), std::int64_t{4} * r->tokens * r->top_k, "rows", false});
    }
    p_.tokens = s.tokens;
    p_.k = s.k;
    p_.type = s.type;
    p_.form = form;
    memory_.push_back(x_.memory("x", s.tokens, 2 * s.k, false));
    memory_.push_back(to_.memory("the rows", result_.rows, row_bytes_, true));
    memory_.push_back(allocation(scales_, "scales"));
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  [[nodiscard]] const TokenRows& params() const { return p_; }
  [[nodiscard]] const std::vector<model::Allocation>& memory() const { return memory_; }

  std::string fault() {
    const Codes want = form_ == RowForm::copy ? Codes{} : quantised(s_, x_, form_);
    for (int row = 0; row < result_.rows; ++row) {
      const int token = result_.token_of[index(row)];
      const std::string where = "row " + std::to_string(row) + " of token " + std::to_string(token);
      const auto* const got = to_.row(row);
      if (token < 0) {
        if (std::any_of(got, got + row_bytes_, [](unsigned char c) { return c != 0xcd; })) {
          return where + " is written";
        }
        continue;
      }
      const unsigned char* const bytes =
          form_ == RowForm::copy ? x_.row(token)
                                 : want.codes.data() + static_cast<std::ptrdiff_t>(token) * s_.k;
      if (!std::equal(bytes, bytes + row_bytes_, got)) return where + " is wrong";
      if (form_ == RowForm::copy) continue;
      for (int b = 0; b < blocks_; ++b) {
        if (scales_[index(row + b * result_.rows)] != want.scales[index(token * blocks_ + b)]) {
          return "a scale of " + where + " is wrong";
        }
      }
    }
    return {};
  }

 private:
  Shape s_;
  RowForm form_;
  Bytes x_;
  Result result_;
  int row_bytes_;
  Bytes to_;
  int blocks_;
  std::vector<float> scales_;
  TokenRows p_;
  std::vector<model::Allocation> memory_;
};

model::Report gather(const Moved& m, const model::Options& how) {
  const kernel::GatherRowsParams p{m.params()};
  model::Kernel k;
  k.shape = {.ctas = GatherRowsKernel::ctas(p, 1), .threads = GatherRowsKernel::threads};
  k.body = [&p] { GatherRowsKernel::run(p); };
  k.memory = m.memory();
  k.dependent = true;
  return model::run(k, how);
}

constexpr RowForm forms[] = {RowForm::copy, RowForm::blocks, RowForm::rows};

constexpr Shape shapes[] = {
    {5, 256},
    {9, 512, DType::f16},
    {7, 320, DType::bf16, 0, 16, 0, 0},
    {6, 130, DType::f16, 2, 6, 1, 3},  // no line begins at a multiple of anything
    {8, 2001, DType::bf16, 4, 2, 4, 5},
    {1, 1},
    {11, 8},
};

// (Copies are of 16-bit elements: an address of theirs is a multiple of 2.)
Shape legal(Shape s, RowForm form) {
  if (form == RowForm::copy) {
    s.to_shift *= 2;
    s.to_extra *= 2;
  }
  return s;
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
      const model::Report report = gather(moved, {});
      EXPECT_TRUE(report.clean()) << report.text();
      EXPECT_EQ(moved.fault(), "");
    }
  }
}

TEST(GatherRows, OfTokensWithManySlots) {
  Routing r = route({.tokens = 3, .top_k = 40, .experts = 50, .left_out_percent = 10}, 77);
  for (const RowForm form : forms) {
    Moved moved({3, 256}, form, &r, 78);
    const model::Report report = gather(moved, {});
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_EQ(moved.fault(), "");
  }
}

TEST(GatherRows, NothingIsWrittenWhereAllIsLeftOut) {
  Routing r = route({.tokens = 4, .top_k = 2, .experts = 3, .left_out_percent = 100}, 5);
  Moved moved({4, 128}, RowForm::blocks, &r, 6);
  EXPECT_TRUE(gather(moved, {}).clean());
  EXPECT_EQ(moved.fault(), "");
}

// --- codes with a scale for each few elements ----------------------------------------------------

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

TEST(GatherRows, AsCodesHaveTheBitsOfTheHost) {
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
        const model::Report report = moved.run({});
        EXPECT_TRUE(report.clean()) << report.text();
        EXPECT_EQ(moved.fault(), "");
      }
    }
  }
}

// More slots than a warp has lanes.
TEST(GatherRows, AsCodesOfManySlots) {
  for (const MicroFormat& f : micro_row_formats) {
    Routing r = route({.tokens = 3, .top_k = 40, .experts = 50, .left_out_percent = 10}, 77);
    MicroMoved moved({3, 256}, f, r, false, 1, 0.5F, 78);
    const model::Report report = moved.run({});
    EXPECT_TRUE(report.clean()) << report.text();
    EXPECT_EQ(moved.fault(), "");
  }
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
      for (const model::Options& how : model::schedules()) {
        SCOPED_TRACE(model::text(how));
        const model::Report report = run_sort(r, p, 2, moved.memory(), how);
        EXPECT_TRUE(report.clean()) << report.text();
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
        y_(r.tokens, bytes_of(s.y_type) * s.k, bytes_of(s.y_type) * s.extra, s.y_shift),
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
    rows_ = r.rows;
    p_ = {.x = x_.data(),
          .x_pitch = x_.pitch,
          .y = y_.data(),
          .y_pitch = y_.pitch,
          .weights = weights_.data(),
          .weight_pitch = r.top_k + s.extra,
          .rows = rows_.data(),
          .tokens = r.tokens,
          .top_k = r.top_k,
          .k = s.k,
          .type = s.type,
          .y_type = s.y_type,
          .weight_type = s.weight_type};
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
                y_.memory("y", r_.tokens, bytes_of(s_.y_type) * s_.k, true),
                weights_.memory("weights", r_.tokens, bytes_of(s_.weight_type) * r_.top_k, false),
                {rows_.data(), std::int64_t{4} * r_.tokens * r_.top_k, "rows", false}};
    k.dependent = true;
    return model::run(k, how);
  }

  std::string fault() {
    for (int t = 0; t < r_.tokens; ++t) {
      std::vector<std::pair<int, int>> order;  // row, slot of the token
      for (int j = 0; j < r_.top_k; ++j) {
        const int row = r_.rows[index(t * r_.top_k + j)];
        if (row >= 0) order.emplace_back(row, j);
      }
      std::sort(order.begin(), order.end());
      for (int i = 0; i < s_.k; ++i) {
        float sum = 0;
        for (const auto& [row, j] : order) {
          const float w = value_at(weights_.row(t) + bytes_of(s_.weight_type) * j, s_.weight_type);
          sum = std::fma(w, value_at(x_.row(row) + 2 * i, s_.type), sum);
        }
        unsigned char want[4];
        put_value(want, s_.y_type, sum);
        const unsigned char* const got = y_.row(t) + bytes_of(s_.y_type) * i;
        const bool both_nan = std::isnan(sum) && std::isnan(value_at(got, s_.y_type));
        if (!both_nan && !std::equal(want, want + bytes_of(s_.y_type), got)) {
          return "y[" + std::to_string(t) + "," + std::to_string(i) + "] is " +
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
  Bytes x_, y_, weights_;
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
      const model::Report report = sums.run({});
      EXPECT_TRUE(report.clean()) << report.text();
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

// What these kernels synchronise is the wait for the grid before: without it they are told.
template <class Run>
void expect_waits(const Run& run) {
  for (const model::Options& how : model::schedules()) {
    SCOPED_TRACE(model::text(how));
    const model::Report report = run(how);
    EXPECT_TRUE(report.clean()) << report.text();
  }
  model::Options counting;
  counting.count_sites = true;
  int killed = 0;
  for (const model::Mutation& m : model::mutations(run(counting).sites)) {
    SCOPED_TRACE(model::text(m) + ", " + std::string(m.how()));
    model::Options how;
    how.mutation = m;
    const bool told = !run(how).clean();
    killed += told ? 1 : 0;
    // (Waiting twice is waiting.)
    EXPECT_TRUE(told || m.how().find("twice") != std::string_view::npos);
  }
  EXPECT_GT(killed, 0);
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

TEST(GatherRows, AsCodesWaitForTheGridBefore) {
  Routing r = route({.tokens = 5, .top_k = 2, .experts = 3}, 23);
  MicroMoved moved({5, 260}, *micro_format("nvf4"), r, true, 2, 0.5F, 24);
  expect_waits([&](const model::Options& how) { return moved.run(how); });
}

}  // namespace
}  // namespace warpwright::tests
