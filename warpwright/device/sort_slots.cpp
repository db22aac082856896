#include "warpwright/device/sort_slots.h"

#include <algorithm>
#include <array>
#include <vector>

#include "warpwright/device/sort_slots_params.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright {
namespace {

using kernel::SortSlotsKernel;

std::int64_t id_at(const SlotSort& s, std::int64_t token, std::int64_t j) {
  const std::int64_t at = token * s.pitch + j;
  return s.type == OffsetType::int64 ? static_cast<const std::int64_t*>(s.ids)[at]
                                     : static_cast<const std::int32_t*>(s.ids)[at];
}

std::optional<Refusal> extents_fault(const SlotSort& s) {
  if (s.experts < 1 || s.experts > SortSlotsKernel::max_experts) {
    return refuse(RefusalCode::bad_value, "experts is ", s.experts, "; ",
                  as_rule("1 to ", SortSlotsKernel::max_experts, " are sorted by"),
                  ": the nearest legal is ",
                  as_nearest(s.experts < 1 ? 1 : SortSlotsKernel::max_experts));
  }
  if (s.experts_total < s.experts || s.experts_total > max_extent) {
    return refuse(RefusalCode::bad_value, "experts_total is ", s.experts_total, "; ",
                  as_rule("there are at least the ", s.experts, " experts of this rank"),
                  ": the nearest legal is ", as_nearest(s.experts));
  }
  if (s.first_expert < 0 || s.first_expert > s.experts_total - s.experts) {
    return refuse(RefusalCode::bad_value, "first_expert is ", s.first_expert, "; ",
                  as_rule("experts ", s.first_expert, " to ", s.first_expert + s.experts - 1,
                          " must be among ", s.experts_total),
                  ": the nearest legal is ",
                  as_nearest(s.first_expert < 0 ? 0 : s.experts_total - s.experts));
  }
  if (s.tokens < 0 || s.top_k < 1) {
    return refuse(RefusalCode::bad_shape, "the ids are ", s.tokens, " x ", s.top_k, "; ",
                  as_rule("there are 0 tokens or more, of 1 slot or more"));
  }
  if (s.tokens > 0 && s.top_k > SortSlotsKernel::max_slots / s.tokens) {
    return refuse(RefusalCode::bad_shape, "the ids are ", s.tokens, " x ", s.top_k, "; ",
                  as_rule("at most ", SortSlotsKernel::max_slots, " slots are sorted"));
  }
  if (s.tokens > 1 && s.pitch < s.top_k) {
    return refuse(RefusalCode::bad_stride, "the ids have a row stride of ", s.pitch,
                  ", less than their ", s.top_k, " columns; the nearest legal is ",
                  as_nearest(s.top_k));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> fault(const SlotSort& s) {
  if (auto r = extents_fault(s)) return r;
  struct Array {
    const void* data;
    const char* name;
    int bytes;
    bool needed;
  };
  const bool some = s.tokens > 0;
  const std::array<Array, 5> arrays = {{{s.ids, "ids", s.type == OffsetType::int64 ? 8 : 4, some},
                                        {s.offsets, "offsets", 4, true},
                                        {s.slots, "slots", 4, some},
                                        {s.rows, "rows", 4, some},
                                        {s.status, "status", 4, false}}};
  for (const Array& a : arrays) {
    if (a.data == nullptr && a.needed) {
      return refuse(RefusalCode::bad_pointer, as_tensor(a.name), " is a null pointer; ",
                    as_rule("it needs memory"));
    }
    if (alignment_of(a.data) % a.bytes != 0 && a.data != nullptr) {
      return refuse(RefusalCode::bad_pointer, as_tensor(a.name),
                    "'s address is not a multiple of its element size, ", a.bytes, " bytes");
    }
  }
  return std::nullopt;
}

std::optional<Refusal> sort_slots_on_host(const SlotSort& s) {
  if (auto r = fault(s)) return r;
  const std::int64_t count = s.tokens * s.top_k;
  std::vector<std::int32_t> next(static_cast<std::size_t>(s.experts) + 1, 0);
  bool strange = false;
  const auto local = [&](std::int64_t slot) {  // -1: left out
    const std::int64_t id = id_at(s, slot / s.top_k, slot % s.top_k);
    if (id < -1 || id >= s.experts_total) strange = true;
    const std::int64_t e = id - s.first_expert;
    return id >= 0 && id < s.experts_total && e >= 0 && e < s.experts ? e : -1;
  };
  for (std::int64_t slot = 0; slot < count; ++slot) {
    if (const std::int64_t e = local(slot); e >= 0) ++next[static_cast<std::size_t>(e) + 1];
  }
  for (std::size_t e = 0; e < next.size(); ++e) {
    if (e > 0) next[e] += next[e - 1];
    s.offsets[e] = next[e];
  }
  std::fill(s.slots + s.offsets[s.experts], s.slots + count, -1);
  for (std::int64_t slot = 0; slot < count; ++slot) {
    const std::int64_t e = local(slot);
    s.rows[slot] = e < 0 ? -1 : next[static_cast<std::size_t>(e)]++;
    if (e >= 0) s.slots[s.rows[slot]] = static_cast<std::int32_t>(slot);
  }
  if (s.status != nullptr) *s.status = strange ? 1 : 0;
  return std::nullopt;
}

}  // namespace warpwright
