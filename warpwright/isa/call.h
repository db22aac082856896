// Calls of a kernel's own functions, told to the model.
#pragma once

#include "warpwright/isa/config.h"
#if !WW_GPU
#include "warpwright/model/call.h"
#endif

namespace warpwright::isa {

#if WW_GPU
/// For a function that has `.aligned` instructions in it, whose warps must come to it by one call:
/// a first line `const isa::Call call(site);` with a last parameter `isa::Site site =
/// isa::Site::here()`. The model then tells lanes that come by different calls apart (W3). Nothing
/// on the GPU.
struct Call {
  /// From `site` until the end of the scope.
  WW_DEVICE explicit Call(Site /*site*/) {}
};
#else
using Call = model::Call;
#endif

}  // namespace warpwright::isa
