// Which kernels a build has, and what is said of the others.
#include "warpwright/plan/families/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/must.h"
#include "warpwright/kernel/tables.h"
#include "warpwright/plan/families/kernel_list.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright {
namespace {

TEST(Kernels, ABuildIsCommonAllAndNames) {
  using kernel::is_built;
  EXPECT_TRUE(is_built("x", true, "common"));
  EXPECT_FALSE(is_built("x", false, "common"));
  EXPECT_TRUE(is_built("x", false, "all"));
  EXPECT_TRUE(is_built("x", false, "x"));
  EXPECT_TRUE(is_built("x", false, "xx,x"));
  EXPECT_TRUE(is_built("xx", true, "y,xx,z"));
  EXPECT_FALSE(is_built("x", true, "xx,y"));
  EXPECT_FALSE(is_built("x", true, ""));
  EXPECT_TRUE(is_built("x", true, "y,common"));
  EXPECT_TRUE(is_built("y", false, "y,common"));
  EXPECT_FALSE(is_built("x", false, "y,common"));
}

// Names tell what a kernel is; logs and scripts of users have them.
TEST(Kernels, NamesFollowFromConfigurations) {
  const std::set<std::string_view> pinned = {
      "hopper_bf16_bf16_128x256",
      "hopper_bf16_bf16_128x128_pp_tn",
      "hopper_bf16_bf16_128x32_sw_ck2",
      "hopper_bf16_bf16_128x64_sw_gated",
      "hopper_bf16_bf16_128x256_nn",
      "hopper_bf16_bf16_128x256_tt",
      "hopper_f16_f32_128x64_sw_sk",
      "hopper_e4m3_bf16_128x16_pr_sw_ck",
      "hopper_e4m3_bf16_128x128_bs_sk",
      "hopper_e4m3_e4m3_128x128_gated",
      "hopper_e5m2xe4m3_bf16_128x128_pr",
      "grouped_e4m3_bf16_128x16_b_sw",
      "grouped_e4m3_bf16_128x16_h_sw",
      "grouped_e4m3_bf16_128x128_v_pp",
      "grouped_e4m3_bf16_128x16_b_bs_sw",
      "grouped_e4m3_bf16_128x128_v_bs",
      "blackwell_f16_bf16_one",
      "blackwell_f8f6f4_f32_pair_clc",
      "blackwell_f16_bf16_pair_static",
      "blackwell_e4m3xmx_bf16_one_grouped128_gated",
      "registers_bf16_bf16_128x256",
      "registers_e4m3_bf16_64x64_any",
      "registers_m8n8k4_f16_f16_128x128",
      "registers_bf16_bf16_128x128_tma",
      "registers_e4m3_bf16_128x128_tma_pp_clc",
      "registers_mxf8_bf16_128x128_tma",
      "registers_nvf4_bf16_128x128_tma",
      "registers_mxf8xmxf4_bf16_128x128_tma",
      "registers_mxf8_bf16_128x128_tma_grouped",
  };
  std::set<std::string_view> all;
  for (const auto& row : kernel::HopperRows::rows) {
    EXPECT_TRUE(all.insert(row.name).second) << row.name.c_str() << " is there twice";
  }
  for (const auto& row : kernel::BlackwellRows::rows) {
    EXPECT_TRUE(all.insert(row.name).second) << row.name.c_str() << " is there twice";
  }
  for (const auto& row : kernel::RegistersRows::rows) {
    EXPECT_TRUE(all.insert(row.name).second) << row.name.c_str() << " is there twice";
  }
  // What a build of all, and a usual one, may take of register kernels, and of Blackwell's.
  const auto common = [](const auto& rows) {
    return std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.common; });
  };
  EXPECT_LE(kernel::RegistersRows::rows.size(), 61U);
  EXPECT_LE(common(kernel::RegistersRows::rows), 26);
  EXPECT_LE(kernel::BlackwellRows::rows.size(), 76U);
  EXPECT_LE(common(kernel::BlackwellRows::rows), 48);
  for (const std::string_view name : pinned) EXPECT_TRUE(all.contains(name)) << name;
}

TEST(Kernels, StagesAreThoseThatFitUnlessARowSaysLess) {
  using namespace kernel::hopper;  // NOLINT(google-build-using-namespace)
  EXPECT_EQ(kernel::common(bf16(128, 256)).config.stages, 4);
  EXPECT_EQ(kernel::common(swap_ab(bf16(128, 16))).config.stages, 11);
  EXPECT_EQ(kernel::common(stages(7, swap_ab(bf16(128, 16)))).config.stages, 7);
  for (const auto& row : kernel::HopperRows::rows) {
    EXPECT_LE(row.config.stages, kernel::max_stages(row.config)) << row.name.c_str();
  }
}

// The build stops for a table with a fault (cmake/kernel_rows.cpp) and says this.
TEST(Kernels, ATableNamesItsIllegalRow) {
  using namespace kernel::hopper;  // NOLINT(google-build-using-namespace)
  constexpr std::array faulty = {kernel::common(bf16(128, 256)),
                                 kernel::more(cluster_k(gated(bf16(128, 128))))};
  EXPECT_STREQ(
      kernel::table_fault(faulty).text,
      "hopper_bf16_bf16_128x128_ck_gated: columns of a tile that one CTA stores by itself are "
      "stored by lanes, neither gated nor quantised");
  EXPECT_STREQ(kernel::table_fault(std::array{faulty[0]}).text, "");
}

// In a table these do not compile.
TEST(Kernels, WordsOfOtherFormsAreRefused) {
  using namespace kernel::hopper;  // NOLINT(google-build-using-namespace)
  EXPECT_THROW(folded(bf16(128, 128)), const char*);
  EXPECT_THROW(swap_ab(s4(128, 128)), const char*);
  EXPECT_THROW(pingpong(split_k(bf16(128, 128))), const char*);
  EXPECT_THROW(split_k(pingpong(bf16(128, 128))), const char*);
  EXPECT_THROW(sliced_k(split_k(bf16(128, 128))), const char*);
  EXPECT_THROW(warp_scan(cluster_k(swap_ab(bf16(128, 128)))), const char*);
  EXPECT_THROW(dynamic(split_k(bf16(128, 128))), const char*);
  EXPECT_THROW(by_index(bf16(128, 128)), const char*);
  EXPECT_THROW(by_index(dynamic(warp_scan(bf16(128, 128)))), const char*);
  EXPECT_THROW(widths<64>(by_index(warp_scan(swap_ab(bf16(128, 128))))), const char*);
  EXPECT_THROW(warp_scan(dynamic(bf16(128, 128))), const char*);
  EXPECT_THROW(zero_points(folded(s4(128, 64))), const char*);
  EXPECT_THROW(in_halves(by_table(s4(128, 64))), const char*);
}

TEST(Kernels, AKernelThatOtherBuildsHaveIsNamed) {
  constexpr const char* rare = "hopper_bf16_bf16_128x32_sw_ck";
  const auto& all = hopper_kernels();
  const bool is_here = std::any_of(all.begin(), all.end(),
                                   [](const auto& row) { return row.name == std::string(rare); });
  const auto made = plan(packed_problem(512, 512, 512, DType::bf16, DType::bf16),
                         *known_facts("h200"), {.kernel = rare});
  ASSERT_EQ(made.ok(), is_here);
  if (!is_here) {
    EXPECT_EQ(made.code(), RefusalCode::no_kernel);
    EXPECT_EQ(made.reason(),
              "this build lacks the kernel hopper_bf16_bf16_128x32_sw_ck; another has it (the "
              "CMake option "
              "WARPWRIGHT_KERNELS is all there, or names it; for pip it is "
              "cmake.define.WARPWRIGHT_KERNELS)");
  }
}

// What no kernel of this build does: told is a kernel that does it, or that no build has one.
TEST(Kernels, RefusalsSayWhatOtherBuildsHave) {
  const DeviceFacts h200 = *known_facts("h200");
  const auto told = [&](const GemmProblem& p, const PlanChoices& choices = {}) {
    const auto made = plan(p, h200, choices);
    EXPECT_EQ(made.ok() ? RefusalCode::bad_value : made.code(), RefusalCode::no_kernel);
    return made.ok() ? std::string() : made.reason();
  };
  const GemmProblem rare = packed_problem(256, 256, 256, DType::e5m2, DType::bf16);
  if (hopper_kernels(Rows::missing).empty()) GTEST_SKIP() << "this build has all kernels";
  expect_contains(told(rare), "; another build has hopper_e5m2_bf16_128x128_pp (the CMake option ");
  const GemmProblem nobodys = packed_grouped_problem(256, 256, 256, 4, DType::e5m2, DType::bf16);
  EXPECT_TRUE(told(nobodys).ends_with("; no other build has one")) << told(nobodys);
  GemmProblem usual = packed_problem(256, 256, 256, DType::bf16, DType::bf16);
  PlanChoices choices;
  choices.tile_m = 128;
  choices.tile_n = 8;
  choices.swap_ab = true;
  expect_contains(told(usual, choices), "another build has hopper_bf16_bf16_128x8_sw_ck");
  choices.tile_n = 7;
  EXPECT_TRUE(told(usual, choices).ends_with("; no other build has one")) << told(usual, choices);
}

// What `kernels` lists is what plans choose among.
TEST(KernelList, HasEveryRowOfEveryTable) {
  const auto all = all_kernels();
#define WW_ROWS(Family, ...) +kernel::Family##Rows::rows.size()
  EXPECT_EQ(all.size(), 0 WW_FAMILIES(WW_ROWS));
#undef WW_ROWS
  std::size_t built = 0;
  for (const KernelFacts* f : all) {
    built += f->built ? 1 : 0;
    EXPECT_FALSE(f->a.empty() || f->b.empty() || f->architectures.empty()) << f->name;
  }
#define WW_BUILT(Family, family, ...) +family##_kernels().size()
  EXPECT_EQ(built, 0 WW_FAMILIES(WW_BUILT));
#undef WW_BUILT
}

// The types are the caller's, also of a kernel that multiplies B by A.
TEST(KernelList, SaysWhatAKernelDoes) {
  const auto find = [](std::string_view name) -> const KernelFacts& {
    if (const KernelFacts* const f = find_kernel(name)) return *f;
    throw std::runtime_error(std::string(name));
  };
  using Words = std::vector<std::string>;
  using Types = std::vector<DType>;
  const KernelFacts& groups = find("grouped_e4m3_bf16_128x16_b_sw");
  EXPECT_EQ(groups.features, (Words{"grouped, warp_scan", "cooperative", "swap_ab"}));
  EXPECT_EQ(groups.architectures, (std::vector<int>{90}));
  EXPECT_EQ(find("hopper_bf16_bf16_128x64_sl").features,
            (Words{"cooperative", "split-K in slices"}));
  EXPECT_EQ(find("hopper_bf16_bf16_128x64_sl").most_cluster_ctas(), 1);
  const KernelFacts& block = find("hopper_e4m3_bf16_128x128_bs_sk");
  EXPECT_EQ(block.features, (Words{"cooperative", "block scales", "stream-K"}));
  EXPECT_EQ(find("hopper_e5m2xe4m3_bf16_128x128_pr").a, (Types{DType::e5m2}));
  EXPECT_EQ(find("hopper_e5m2xe4m3_bf16_128x128_pr").b, (Types{DType::e4m3}));
  EXPECT_EQ(find("blackwell_f8f6f4_f32_pair_clc").a, (Types{DType::e4m3, DType::e5m2}));
  EXPECT_EQ(find("registers_nvf4_bf16_128x128_tma").architectures, (std::vector<int>{120, 121}));
  EXPECT_EQ(find("hopper_bf16_bf16_128x256").most_cluster_ctas(), 16);
  EXPECT_EQ(find("hopper_bf16_bf16_128x256_nn").features.back(), "layout NN");
}

TEST(KernelList, ANameThatIsNoneIsRefusedWithTheNearest) {
  const auto refused = [](const std::string& name) {
    const auto made = plan(packed_problem(64, 64, 64, DType::bf16, DType::bf16),
                           *known_facts("h200"), {.kernel = name});
    EXPECT_FALSE(made);
    EXPECT_EQ(made.code(), RefusalCode::no_kernel);
    return made.reason();
  };
  EXPECT_EQ(refused("hopper_bf16_bf16_128x265"),
            "there is no kernel \"hopper_bf16_bf16_128x265\"; `warpwright kernels` lists them: the "
            "nearest is hopper_bf16_bf16_128x256");
  expect_contains(refused(""), "the name of the kernel is empty");
  EXPECT_LT(refused(std::string(100'000, 'x')).size(), 300U);
  // One that is there and does something else keeps its name as one.
  expect_contains(refused("hopper_bf16_bf16_128x256_nn"), "no kernel has the name hopper_bf16");
}

TEST(KernelList, NoScalesAreCalledSo) {
  GemmProblem p = packed_grouped_problem(64, 64, 64, 4, DType::e5m2, DType::bf16);
  expect_contains(why_not(plan(p, *known_facts("h200"))), "with no scales, fast accumulation");
}

}  // namespace
}  // namespace warpwright
