// Grouped products on the model: every kernel against float64 products, with NaN around every
// tensor, under several schedules.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/campaign.h"
#include "tests/kernel/gemm_case.h"
#include "tests/kernel/grouped_case.h"

namespace warpwright::grouped {
namespace {

using device::ModelOptions;

Result<Plan> plan_of(const Case& c, const Tensors& t) {
  return plan(t.operands, model_facts(6), {.cluster = c.cluster, .kernel = c.kernel});
}

void expect_right(const Case& c, const ModelOptions& how) {
  SCOPED_TRACE(text(c));
  Tensors t(c);
  const auto made = plan_of(c, t);
  ASSERT_TRUE(made.ok()) << made.reason();
  std::uint32_t status = 77;
  ModelOptions checked = how;
  checked.offsets_status = &status;
  const auto report = device::launch_on_model(*made, t.operands, checked);
  ASSERT_TRUE(report.ok()) << report.reason();
  EXPECT_TRUE(report->clean()) << report->text();
  EXPECT_EQ(status, 0U);
  expect_product(c, t);
}

// B as torch.expand makes it: one matrix for every group.
TEST(GroupedOnTheModel, GroupsThatShareTheirWeights) {
  for (const Instance& instance : instances()) {
    Case c;
    c.kernel = instance.name;
    c.offsets = {0, 40, 40, 57, 130};
    c.total = 130;
    c.n = 264;
    c.k = 200;
    c.scaling = scalings(instance.config).back();
    c.one_b = true;
    expect_right(c, mode(model::Mode::latest));
    if (HasFailure()) return;
  }
}

// Groups, types of scales, encodings and zero points are the launch's.
TEST(GroupedOnTheModel, EveryFormatOfPackedWeights) {
  std::vector<Case> cases;
  for (const Instance& instance : instances()) {
    if (!kernel::packed_a(instance.config)) continue;
    for (unsigned format = 0; format < 18; ++format) {
      Case c;
      c.kernel = instance.name;
      c.offsets = {0, 9, 9, 60, 61};
      c.total = 61;
      c.n = 200;
      c.k = 128 * 2 + 16 * static_cast<int>(format % 5);
      c.scaling = scalings(instance.config).back();
      c.seed = format;
      cases.push_back(c);
    }
  }
  for (const Case& c : sampled(cases, 17)) {
    expect_right(c, mode(c.seed % 2 == 0 ? model::Mode::random : model::Mode::latest));
    if (HasFailure()) return;
  }
}

TEST(GroupedOnTheModel, Degenerate) {
  for (const Instance& instance : instances()) {
    Case c;
    c.kernel = instance.name;
    c.cluster = {1, 1};
    c.scaling = scalings(instance.config).back();
    c.n = 40;
    c.k = 96;
    for (const std::vector<std::int64_t>& o :
         {std::vector<std::int64_t>{0, 0, 0, 0}, {0, 1}, {0, 0, 0, 3, 3}, {0, 130}}) {
      c.offsets = o;
      c.total = o.back();
      expect_right(c, mode(model::Mode::latest));
    }
    c.offsets = {0, 3, 40};
    c.total = 40;
    c.k = 0;
    expect_right(c, mode(model::Mode::latest));
    c.k = 96;
    c.alpha = 0;
    expect_right(c, mode(model::Mode::latest));
    if (HasFailure()) return;
  }
}

// By a plan that reads A and B, as one for any alpha does.
TEST(GroupedOnTheModel, AlphaMayBecomeZero) {
  for (const Instance& instance : instances()) {
    Case c;
    c.kernel = instance.name;
    c.offsets = {0, 20, 20, 47};
    c.total = 47;
    c.n = 136;
    c.k = 96;
    c.scaling = scalings(instance.config).back();
    SCOPED_TRACE(text(c));
    Tensors t(c);
    const auto made = plan_of(c, t);
    ASSERT_TRUE(made.ok()) << made.reason();
    c.alpha = t.operands.alpha = 0;
    const auto report = device::launch_on_model(*made, t.operands);
    ASSERT_TRUE(report.ok()) << report.reason();
    EXPECT_TRUE(report->clean()) << report->text();
    expect_product(c, t);
  }
}

TEST(GroupedOnTheModel, HundredsOfGroups) {
  for (const char* name : {"grouped_e4m3_bf16_128x64_b_sw", "grouped_e4m3_bf16_128x64_v_sw",
                           "grouped_e4m3_bf16_128x64_h_sw", "grouped_e4m3_bf16_128x16_b_sw_gm"}) {
    Draws draw(5);
    Case c;
    c.kernel = name;
    c.cluster = {1, 1};
    c.offsets = lengths_to_offsets(draw, 420, 2);
    c.total = c.offsets.back();
    c.n = 16;
    c.k = 48;
    c.scaling = Scaling::group;
    expect_right(c, mode(model::Mode::latest));
  }
}

// Offsets that are not in order: nothing outside the tensors is touched, and the kernel says so.
TEST(GroupedOnTheModel, OffsetsInDisorderStayInside) {
  Draws draw(9);
  for (std::size_t i = 0; i < 2 * instances().size(); ++i) {
    Case c;
    c.kernel = instances()[i % instances().size()].name;
    c.cluster = {1, 1};
    c.scaling = scalings(config_of(c.kernel)).back();
    c.total = 90;
    c.n = 136;
    c.k = 64;
    c.type = OffsetType::int64;
    SCOPED_TRACE(c.kernel);
    for (int g = 0; g <= 12; ++g) c.offsets.push_back(7 * g);
    const int broken = draw(1, 11);
    c.offsets[index(broken)] = i % 2 == 0 ? (std::int64_t{1} << 40) : -(std::int64_t{1} << 40);
    Tensors t(c);
    const auto made = plan_of(c, t);
    ASSERT_TRUE(made.ok()) << made.reason();
    std::uint32_t status = 0;
    ModelOptions how = mode(model::Mode::latest);
    how.check_order = false;  // groups that overlap write the same rows
    how.offsets_status = &status;
    const auto report = device::launch_on_model(*made, t.operands, how);
    ASSERT_TRUE(report.ok()) << report.reason();
    EXPECT_TRUE(report->clean()) << report->text();
    EXPECT_EQ(t.d.disturbed({{0, 90}}), 0);
    // The group before a step too far, or into which one falls, is the first in disorder.
    EXPECT_EQ(status, static_cast<std::uint32_t>(broken - 1 + 1));
    ASSERT_TRUE(offsets_fault(status).has_value());
    EXPECT_NE(offsets_fault(status)->find("group " + std::to_string(broken - 1)),
              std::string::npos);
  }
}

// The bytes do not depend on how things fall.
TEST(GroupedOnTheModel, EveryModeGivesTheSameBytes) {
  const std::vector<const char*> names = {
      "grouped_e4m3_bf16_128x32_b_bs_sw", "grouped_bf16_bf16_128x128_v_pp",
      "grouped_e4m3_bf16_128x128_v_bs", "grouped_e4m3_bf16_128x64_h_sw",
      "grouped_e4m3_bf16_128x128_v_pp_gm"};
  for (const char* name : sampled(names, 3)) {
    Draws draw(31);
    Case c;
    c.kernel = name;
    c.cluster = {2, 1};
    c.offsets = lengths_to_offsets(draw, 7, 150);
    c.total = c.offsets.back();
    c.n = 264;
    c.k = 300;
    c.scaling = scalings(config_of(name)).back();
    SCOPED_TRACE(text(c));
    std::vector<double> first;
    for (const auto& how : {mode(model::Mode::eager), mode(model::Mode::latest),
                            mode(model::Mode::random, 3), mode(model::Mode::random, 4)}) {
      Tensors t(c);
      const auto made = plan_of(c, t);
      ASSERT_TRUE(made.ok()) << made.reason();
      const auto report = device::launch_on_model(*made, t.operands, how);
      ASSERT_TRUE(report.ok() && report->clean()) << report->text();
      std::vector<double> values;
      for (std::int64_t i = c.offsets.front(); i < c.total; ++i) {
        for (std::int64_t j = 0; j < c.n; ++j) values.push_back(t.d.get(0, i, j));
      }
      if (first.empty()) first = values;
      EXPECT_EQ(values, first);
    }
  }
}

// A map a group: the kernel that makes the maps runs first, and copies end with their group.
// Lengths around the tiles' edges, empty groups at both ends, and more groups than CTAs that make
// maps.
TEST(GroupedOnTheModel, MapsOfGroups) {
  for (const char* name :
       {"grouped_e4m3_bf16_128x16_b_sw_gm", "grouped_e4m3_bf16_128x128_v_pp_gm"}) {
    const int tile = is_swapped(config_of(name)) ? config_of(name).tile_n : config_of(name).tile_m;
    const std::vector<std::vector<int>> lengths = {
        {0, 0, tile, 1, 0, tile - 1, tile + 1, 0},
        {1},
        {0, 3},
        std::vector<int>(campaign() ? 50 : 12, 1),
    };
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      Case c;
      c.kernel = name;
      c.offsets = {static_cast<std::int64_t>(i)};
      for (const int length : lengths[i]) c.offsets.push_back(c.offsets.back() + length);
      c.total = c.offsets.back() + 5;
      c.n = 136;
      c.k = 144;
      c.d_pad = i == 1 ? 8 : 0;
      c.scaling = scalings(config_of(name)).back();
      c.seed = 70 + static_cast<unsigned>(i);
      // 128 weights a tile: pairs of CTAs share tokens or weights.
      for (const atom::ClusterShape& cluster : {atom::ClusterShape{1, 1}, {2, 1}}) {
        c.cluster = cluster;
        for (const auto& how : {mode(model::Mode::latest), mode(model::Mode::random, 11 + i)}) {
          expect_right(c, how);
          if (HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpwright::grouped
