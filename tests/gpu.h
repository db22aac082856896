// When a test that launches on a GPU does not run: it says so, and ctest reports it as skipped.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "warpwright/device/cuda.h"

namespace warpwright::tests {

/// Why a test is not for the first CUDA device, by the architecture of the code that it runs; empty
/// where it is. It is for those from `first` to `last`.
inline std::string why_not_here(int first, int last) {
  const std::vector<DeviceFacts> devices = device::cuda_devices();
  if (devices.empty()) return "did not run: no CUDA device here";
  const DeviceFacts& here = devices.front();
  if (here.architecture >= first && here.architecture <= last) return "";
  return "did not run: for sm_" + std::to_string(first) + (last > first ? " and newer" : "") +
         ", and the first device is " + here.name;
}

}  // namespace warpwright::tests

#define WW_SKIP_WHERE(why) \
  if (const std::string said = (why); !said.empty()) GTEST_SKIP() << said
#define WW_NEEDS_GPU() WW_SKIP_WHERE(::warpwright::tests::why_not_here(0, 999))
#define WW_NEEDS_CODE(first) WW_SKIP_WHERE(::warpwright::tests::why_not_here(first, 999))
/// A test that names kernels of H100 and H200, or counts on what those do.
#define WW_NEEDS_HOPPER() WW_SKIP_WHERE(::warpwright::tests::why_not_here(90, 90))
