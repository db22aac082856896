// What the kernel that sorts slots is given for a sort. Internal to device/ and those above.
#pragma once

#include "warpwright/device/sort_slots.h"
#include "warpwright/kernel/moe/sort_slots.h"

namespace warpwright::device {

/// The parameters of a sort that has no fault, with its shape; nothing is quantised beside.
inline kernel::SortSlotsParams sort_slots_params(const SlotSort& s) {
  kernel::SortSlotsParams p;
  p.ids = s.ids;
  p.pitch = s.pitch;
  p.wide = s.type == OffsetType::int64;
  p.tokens = static_cast<int>(s.tokens);
  p.top_k = static_cast<int>(s.top_k);
  p.first_expert = static_cast<int>(s.first_expert);
  p.experts = static_cast<int>(s.experts);
  p.experts_total = static_cast<int>(s.experts_total);
  p.offsets = s.offsets;
  p.slots = s.slots;
  p.rows = s.rows;
  p.status = s.status;
  kernel::SortSlotsKernel::shape(p);
  return p;
}

}  // namespace warpwright::device
