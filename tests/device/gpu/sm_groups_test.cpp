// The groups of SMs that are found on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "tests/gpu.h"
#include "warpwright/device/cuda.h"

namespace warpwright {
namespace {

TEST(SmGroupsOnGpu, EverySmIsInOneAndTheyAreFoundOnce) {
  WW_NEEDS_HOPPER();
  const auto devices = device::cuda_devices();
  const auto found = device::find_sm_groups(0);
  ASSERT_TRUE(found.ok()) << found.reason();
  const SmGroups& groups = **found;
  const int sms = devices.front().sms;
  ASSERT_GE(groups.of_sm.size(), static_cast<std::size_t>(sms));
  EXPECT_GE(groups.count, 2);
  EXPECT_LE(groups.count, 16);
  for (int g = 0; g < groups.count; ++g) {
    const auto members = std::count(groups.of_sm.begin(), groups.of_sm.end(), g);
    EXPECT_LE(members, sms / 4);  // what no join of two groups passes
    std::cout << "group " << g << ": " << members << " SMs\n";
  }
  for (const auto& [size, landed] : groups.of_clusters) {
    EXPECT_EQ(landed.size(), static_cast<std::size_t>(resident_ctas(devices.front(), size) / size));
    std::cout << "clusters of " << size << " land alike\n";
  }
  const auto again = device::find_sm_groups(0);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->get(), found->get());
  EXPECT_FALSE(device::find_sm_groups(static_cast<int>(devices.size())).ok());
}

}  // namespace
}  // namespace warpwright
