// Which kernels a build has, and what is said of the others.
#include "warpwright/plan/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "warpwright/kernel/rows.h"
#include "warpwright/plan/plan.h"

namespace warpwright {
namespace {

TEST(Kernels, ABuildIsCommonAllOrNames) {
  using kernel::is_built;
  EXPECT_TRUE(is_built("x", true, "common"));
  EXPECT_FALSE(is_built("x", false, "common"));
  EXPECT_TRUE(is_built("x", false, "all"));
  EXPECT_TRUE(is_built("x", false, "x"));
  EXPECT_TRUE(is_built("x", false, "xx,x"));
  EXPECT_TRUE(is_built("xx", true, "y,xx,z"));
  EXPECT_FALSE(is_built("x", true, "xx,y"));
  EXPECT_FALSE(is_built("x", true, ""));
}

struct First {
  static constexpr const char* name = "first";
  static constexpr bool common = true;
};
struct Second {
  static constexpr const char* name = "second";
  static constexpr bool common = false;
};
struct Third {
  static constexpr const char* name = "third";
  static constexpr bool common = true;
};

template <int number>
struct Chunk {
  static constexpr std::string_view kernels = "common";
  static constexpr int index = number;
  static constexpr int chunks = 2;
};

TEST(Kernels, RowsAreDealtToChunks) {
  using Table = kernel::Rows<First, Second, Third>;
  EXPECT_EQ(kernel::dealt(Table{}, "common", 2), (std::array<int, 3>{0, -1, 1}));
  EXPECT_EQ(kernel::dealt(Table{}, "all", 2), (std::array<int, 3>{0, 1, 0}));
  EXPECT_EQ(kernel::dealt(Table{}, "second", 1), (std::array<int, 3>{-1, 0, -1}));
  std::string visited;
  const auto visit = [&]<class Tag>() { visited += std::string(Tag::name) + " "; };
  kernel::visit_rows<Chunk<1>>(Table{}, visit);
  kernel::visit_rows<Chunk<0>>(Table{}, visit);
  EXPECT_EQ(visited, "third first ");
}

TEST(Kernels, AKernelThatOtherBuildsHaveIsNamed) {
  constexpr const char* rare = "hopper_bf16_bf16_128x112_pp";
  const auto& all = hopper_kernels();
  const bool is_here = std::any_of(all.begin(), all.end(),
                                   [](const auto& row) { return row.name == std::string(rare); });
  PlanChoices choices;
  choices.kernel = rare;
  const auto made =
      plan(packed_problem(512, 512, 512, DType::bf16, DType::bf16), *known_facts("h200"), choices);
  ASSERT_EQ(made.ok(), is_here);
  if (!is_here) {
    EXPECT_EQ(made.code(), RefusalCode::no_kernel);
    EXPECT_EQ(made.reason(),
              "this build lacks the kernel hopper_bf16_bf16_128x112_pp; one configured with "
              "-DWARPWRIGHT_KERNELS=all, or with that name, has it");
  }
  EXPECT_EQ(missing_kernel("nothing of the kind"), "");
  EXPECT_EQ(missing_kernel(all.front().name), "");
}

}  // namespace
}  // namespace warpwright
