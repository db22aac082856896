// What this build has, as values: nothing else in device/ asks the preprocessor.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/trace.h"

namespace warpwright::device {

/// GPU kernels record their timelines (WARPWRIGHT_TRACE).
inline constexpr bool records_timelines = WARPWRIGHT_TRACE != 0;
/// Waits on the GPU are bounded and report who waits on what (WARPWRIGHT_DEBUG_WAITS).
inline constexpr bool bounds_waits = WARPWRIGHT_DEBUG_WAITS != 0;

}  // namespace warpwright::device
