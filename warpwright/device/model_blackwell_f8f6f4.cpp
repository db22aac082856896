#include "warpwright/device/model_blackwell.h"
#include "warpwright/kernel/blackwell_gemm.h"
#include "warpwright/kernel/blackwell_instances.h"

namespace warpwright::device {

BlackwellBody blackwell_f8f6f4_body(const kernel::BlackwellConfig& config) {
#define WW_BODY(tag, ...) \
  if (config == kernel::tag::config) return &kernel::BlackwellGemm<kernel::tag>::run;
  WW_BLACKWELL_F8F6F4_INSTANCES(WW_BODY)
#undef WW_BODY
  return nullptr;
}

}  // namespace warpwright::device
