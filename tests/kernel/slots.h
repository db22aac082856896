// The kernels of a mixture's slots on the model: a launch, memory that it touches, random routings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/index.h"
#include "tests/model/harness.h"
#include "warpwright/device/sort_slots_params.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sum_slots.h"

namespace warpwright::tests {

/// What was routed, and what the host sorts it to.
struct Routing {
  int tokens = 0;
  int top_k = 1;
  int pitch = 1;
  bool wide = false;
  int first_expert = 0;
  int experts = 1;
  int experts_total = 1;
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> wide_ids;

  std::vector<std::int32_t> offsets, slots, rows;
  std::uint32_t status = 0;

  [[nodiscard]] SlotSort sort_into(std::vector<std::int32_t>& to_offsets,
                                   std::vector<std::int32_t>& to_slots,
                                   std::vector<std::int32_t>& to_rows, std::uint32_t& to) const {
    const auto slot_count = index(tokens * top_k);
    to_offsets.assign(index(experts) + 1, -7);
    to_slots.assign(slot_count + 1, -7);
    to_rows.assign(slot_count + 1, -7);
    to = 77;
    SlotSort s;
    s.ids = wide ? static_cast<const void*>(wide_ids.data()) : ids.data();
    s.type = wide ? OffsetType::int64 : OffsetType::int32;
    s.tokens = tokens;
    s.top_k = top_k;
    s.pitch = pitch;
    s.experts = experts;
    s.first_expert = first_expert;
    s.experts_total = experts_total;
    s.offsets = to_offsets.data();
    s.slots = to_slots.data();
    s.rows = to_rows.data();
    s.status = &to;
    return s;
  }
};

/// How ids are drawn.
struct Draw {
  int tokens = 0;
  int top_k = 1;
  int experts = 1;
  int first_expert = 0;
  int experts_total = 0;  ///< 0: experts
  bool wide = false;
  int extra_pitch = 0;
  int left_out_percent = 0;  ///< ids of -1
  int strange_percent = 0;   ///< ids that are no experts
  int hot_percent = 0;       ///< ids of one expert
};

/// Any routing of `least_tokens` to 59 more of them.
inline Draw any_draw(std::mt19937& random, int least_tokens) {
  const auto up_to = [&](unsigned n) { return static_cast<int>(random() % n); };
  Draw d{.tokens = least_tokens + up_to(60), .top_k = 1 + up_to(9), .experts = 1 + up_to(70)};
  d.first_expert = up_to(3) == 0 ? up_to(8) : 0;
  d.experts_total = d.first_expert + d.experts + up_to(3);
  d.wide = up_to(2) == 0;
  d.extra_pitch = up_to(2) * up_to(5);
  d.left_out_percent = up_to(2) * up_to(40);
  d.strange_percent = up_to(3) == 0 ? 3 : 0;
  d.hot_percent = up_to(3) == 0 ? 70 : 0;
  return d;
}

inline Routing route(const Draw& d, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Routing r;
  r.tokens = d.tokens;
  r.top_k = d.top_k;
  r.pitch = d.top_k + d.extra_pitch;
  r.wide = d.wide;
  r.first_expert = d.first_expert;
  r.experts = d.experts;
  r.experts_total = d.experts_total == 0 ? d.first_expert + d.experts : d.experts_total;
  const auto percent = [&](int p) { return static_cast<int>(random() % 100) < p; };
  constexpr std::int32_t no_experts[] = {-2, INT32_MIN, INT32_MAX};
  for (int i = 0; i < d.tokens * r.pitch; ++i) {
    auto id = static_cast<std::int32_t>(random() % static_cast<unsigned>(r.experts_total));
    if (percent(d.hot_percent)) id = d.first_expert;
    if (percent(d.left_out_percent)) id = -1;
    if (percent(d.strange_percent)) {
      const unsigned which = random() % 4;
      id = which < 3 ? no_experts[which] : r.experts_total;
    }
    r.ids.push_back(id);
    // What is wrong only with its upper half is wrong too.
    r.wide_ids.push_back(percent(d.strange_percent) ? id + (std::int64_t{1} << 32) : id);
  }
  if (d.wide) r.ids.clear();
  const SlotSort host = r.sort_into(r.offsets, r.slots, r.rows, r.status);
  EXPECT_FALSE(sort_slots_on_host(host).has_value());
  return r;
}

/// A stable sort by the definition, apart from the library's.
inline std::vector<std::int32_t> sorted_slots(const Routing& r) {
  std::vector<std::pair<std::int64_t, std::int32_t>> kept;
  for (int slot = 0; slot < r.tokens * r.top_k; ++slot) {
    const auto at = index(slot / r.top_k * r.pitch + slot % r.top_k);
    const std::int64_t id = r.wide ? r.wide_ids[at] : r.ids[at];
    if (id >= r.first_expert && id < r.first_expert + r.experts) kept.emplace_back(id, slot);
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::int32_t> slots;
  slots.reserve(kept.size());
  for (const auto& [id, slot] : kept) slots.push_back(slot);
  return slots;
}

template <class T>
model::Allocation allocation(std::vector<T>& of, const char* name, bool writable = true) {
  return {of.data(), static_cast<std::int64_t>(of.size() * sizeof(T)), name, writable};
}

/// Statements broken are told by the model, or by what comes out, in one of its schedules or of
/// `more` random ones, or order the same: waiting twice is waiting. Returns how many are told.
template <class Run, class IsRight>
int expect_killed(const Run& run, const IsRight& is_right, std::uint64_t more) {
  model::Options counting;
  counting.count_sites = true;
  std::vector<model::Options> all = model::schedules();
  for (std::uint64_t i = 100; i < 100 + more; ++i) all.push_back(model::random_schedule(i));
  int killed = 0;
  for (const model::Mutation& m : model::mutations(run(counting).sites)) {
    SCOPED_TRACE(model::text(m) + ", " + std::string(m.how()));
    const bool is_killed = std::any_of(all.begin(), all.end(), [&](model::Options how) {
      how.mutation = m;
      return !run(how).clean() || !is_right();
    });
    killed += is_killed ? 1 : 0;
    EXPECT_TRUE(is_killed || m.how().find("twice") != std::string_view::npos);
  }
  return killed;
}

/// A shape of the sort other than the usual; 0: the usual.
struct SortShape {
  int warps = 0;
  int cluster = 0;
  int parts = 0;
  int steps = 0;
};

inline void reshape(kernel::SortSlotsParams& p, const SortShape& to) {
  if (to.warps > 0) p.warps = to.warps;
  if (to.cluster > 0) p.cluster = to.cluster;
  if (to.parts > 0) kernel::SortSlotsKernel::cut(p, to.parts);
  const int all = 32 * p.warps * p.cluster;
  p.steps = to.steps > 0 ? to.steps : std::max((p.tokens * p.top_k + all - 1) / all, 1);
  EXPECT_LE(p.steps, kernel::SortSlotsKernel::at_once);
}

/// The launches of a sort, each dependent on the one before; further memory is that of what is
/// quantised.
inline model::Report run_sort(const Routing& r, const kernel::SortSlotsParams& p, int sms,
                              std::vector<model::Allocation> memory, const model::Options& how) {
  using kernel::SortSlotsKernel;
  const auto words = static_cast<std::int64_t>(r.tokens) * r.top_k;
  memory.push_back({const_cast<void*>(p.ids), std::int64_t{r.tokens} * r.pitch * (r.wide ? 8 : 4),
                    "ids", false});
  memory.push_back({p.offsets, 4 * (r.experts + 1), "offsets"});
  memory.push_back({p.slots, 4 * words, "slots"});
  memory.push_back({p.rows, 4 * words, "rows"});
  memory.push_back({p.status, 4, "status"});
  std::vector<kernel::SortSlotsParams> params;
  params.reserve(3);
  for (int i = 0; i < SortSlotsKernel::launches(p); ++i) {
    params.push_back(SortSlotsKernel::launch(p, i));
  }
  std::vector<model::GridLaunch> grids;
  grids.reserve(params.size());
  for (const kernel::SortSlotsParams& part : params) {
    grids.push_back({.shape = {.ctas = SortSlotsKernel::ctas(part, sms),
                               .cluster_size = part.cluster,
                               .in_clusters = part.cluster > 1,
                               .threads = 32 * part.warps,
                               .shared_bytes = SortSlotsKernel::shared_bytes_of(part)},
                     .allocations = memory,
                     .body = [&part] { SortSlotsKernel::run(part); },
                     .dependent = true,
                     .ended = {}});
  }
  return model::run(grids, how);
}

}  // namespace warpwright::tests
