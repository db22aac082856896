// What the offsets of groups may be, through every way of calling: which of them are refused where
// they are checked, and that rows in no group are cleared where that is asked for. On the model and
// on GPUs, by kernels that walk over static persistent tiles, that take their tiles dynamically,
// and that have a tensor map a group; with more tiles than the grid takes at once.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/must.h"
#include "tests/run/bytes.h"
#include "warpwright/numeric/scalar.h"

namespace warpwright::offsets {

using tests::Bytes;

inline const std::vector<std::string> kernels = {"grouped_e4m3_bf16_128x128_v_pp",
                                                 "grouped_e4m3_bf16_128x128_v_pp_dyn"};

/// Offsets of four groups of 300 rows, and the first group in disorder.
struct Offsets {
  const char* name;
  std::vector<std::int32_t> of;
  int disordered = -1;  ///< -1: none
  bool overlap = false;
};
inline const std::vector<Offsets> all_offsets = {
    {"in_order", {0, 75, 150, 150, 300}},
    {"with_rows_in_no_group", {7, 75, 150, 150, 290}},
    {"none", {120, 120, 120, 120, 120}},
    {"past_the_end", {0, 75, 150, 150, 800}, 3},
    {"negative", {-5, 75, 150, 150, 300}, 0},
    {"last_decreases", {0, 75, 150, 300, 200}, 3},
    {"overlapping", {0, 160, 30, 160, 300}, 1, true},
};

/// Every row of A is ones, every row of group g's B is g + 1: rows of D tell whose they are.
class Product {
 public:
  static constexpr std::int64_t rows = 300, columns = 384, depth = 64, groups = 4;
  static constexpr int grid = 3;  ///< CTAs, fewer than tiles on any device

  Product(const std::vector<std::int32_t>& offsets, int device)
      : device_(device),
        a_(std::vector<numeric::e4m3_t>(rows * depth, numeric::e4m3_t(1.0F)), device),
        b_(weights(), device),
        d_(std::vector<std::byte>(rows * columns * 2, std::byte{0xff}), device),
        offsets_(offsets, device) {
    operands.a = matrix(a_.data(), DType::e4m3, rows, depth);
    operands.b = matrix(b_.data(), DType::e4m3, columns, depth);
    operands.b.batch = groups;
    operands.b.batch_stride = columns * depth;
    operands.d = matrix(d_.data(), DType::bf16, rows, columns);
    operands.groups = Groups{offsets_.data(), OffsetType::int32, 0};
  }

  [[nodiscard]] Result<Plan> plan_by(const std::string& kernel) const {
    PlanChoices choices;
    choices.kernel = kernel;
    choices.ctas = grid;
    const auto problem = describe(operands);
    const auto facts = run_facts(device_);
    return plan(*problem, **facts, choices);
  }

  /// What stands in a row of D, in all of its columns: a value, or nothing where they differ or are
  /// as they were.
  std::vector<std::optional<float>> rows_of_d() {
    const std::vector<std::byte>& bytes = d_.fetch();
    std::vector<std::optional<float>> found;
    const auto* const d = reinterpret_cast<const numeric::bf16_t*>(bytes.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto first = static_cast<float>(d[i * columns]);
      const bool same = std::all_of(d + i * columns, d + (i + 1) * columns, [&](numeric::bf16_t x) {
        return static_cast<float>(x) == first;
      });
      found.push_back(same ? std::optional(first) : std::nullopt);
    }
    return found;
  }

  GemmOperands operands;

 private:
  static std::vector<numeric::e4m3_t> weights() {
    std::vector<numeric::e4m3_t> all;
    for (int g = 0; g < groups; ++g)
      all.resize(all.size() + columns * depth, numeric::e4m3_t(static_cast<float>(g + 1)));
    return all;
  }

  int device_;
  Bytes a_, b_, d_, offsets_;
};

/// Whether a call ended as the offsets deserve.
inline void expect_told(const std::optional<Refusal>& told, const Offsets& given) {
  if (given.disordered < 0) {
    EXPECT_FALSE(told) << told->reason;
    return;
  }
  ASSERT_TRUE(told) << "offsets in disorder were accepted";
  EXPECT_EQ(told->code, RefusalCode::bad_value) << told->reason;
  const std::string begin =
      "the offsets of group " + std::to_string(given.disordered) + " are not in order";
  EXPECT_EQ(told->reason.find(begin), 0U) << told->reason;
}

/// Every way of checking them in C++: memory that `run` keeps, memory of the caller's, and a launch
/// whose status is read later.
inline void expect_checked(const std::string& kernel, const Offsets& given, int device) {
  SCOPED_TRACE(kernel + " " + given.name);
  RunOptions how;
  how.device = device;
  how.launch.check_offsets = true;
  Product product(given.of, device);
  const auto made = must(product.plan_by(kernel));
  const bool draws = kernel.ends_with("_dyn");
  EXPECT_EQ(made->flag_bytes > 0, draws) << "the kernel takes its tiles dynamically";
  RunOptions chosen = how;
  chosen.choices.kernel = kernel;
  chosen.choices.ctas = Product::grid;
  expect_told(run(product.operands, chosen), given);
  expect_told(run(*made, product.operands, how), given);
  auto memory = must(Workspace::make(*made));
  EXPECT_EQ(offsets_status(*made, *memory, nullptr).code(), RefusalCode::bad_workspace)
      << "nobody has checked any";
  how.workspace = &*memory;
  expect_told(run(*made, product.operands, how), given);
  if (device == run_on_model && given.overlap) return;  // the launch itself is refused there
  EXPECT_FALSE(launch(*made, product.operands, *memory, nullptr, how.launch));
  expect_told(offsets_fault(*made, *memory, nullptr), given);
  // Not checked: what is in order is right, and nothing is said of the rest.
  how.launch = {};
  must_do(run(*made, product.operands, how));
}

/// Rows in no group are 0 where that is asked for, else they stay.
inline void expect_cleared(const std::string& kernel, const Offsets& given, int device) {
  if (given.disordered >= 0) return;
  SCOPED_TRACE(kernel + " " + given.name);
  for (const bool clears : {true, false}) {
    Product product(given.of, device);
    const auto made = must(product.plan_by(kernel));
    RunOptions how;
    how.device = device;
    how.launch.zero_rest = clears;
    must_do(run(*made, product.operands, how));
    const auto rows = product.rows_of_d();
    for (int i = 0; i < Product::rows; ++i) {
      float want = 0;
      for (int g = 0; g < Product::groups; ++g) {
        const auto at = static_cast<std::size_t>(g);
        if (given.of[at] <= i && i < given.of[at + 1])
          want = static_cast<float>((g + 1) * Product::depth);
      }
      const auto row = rows[static_cast<std::size_t>(i)];
      if (want == 0 && !clears) {
        EXPECT_FALSE(row) << "row " << i << " was touched";
      } else {
        EXPECT_EQ(row, std::optional(want)) << "row " << i;
      }
    }
  }
}

}  // namespace warpwright::offsets
