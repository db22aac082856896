#include "warpwright/ptx/targets.h"

#include <algorithm>
#include <tuple>

#include "warpwright/numeric/edit_distance.h"

namespace warpwright::ptx {
namespace {

struct Known {
  Target target;
  int version;
};
constexpr Known kKnown[] = {
    {{"sm_75", 75}, 63},         {{"sm_80", 80}, 70},         {{"sm_86", 86}, 71},
    {{"sm_87", 87}, 74},         {{"sm_88", 88}, 90},         {{"sm_89", 89}, 78},
    {{"sm_90", 90}, 78},         {{"sm_90a", 90, 'a'}, 80},   {{"sm_100", 100}, 86},
    {{"sm_100a", 100, 'a'}, 86}, {{"sm_100f", 100, 'f'}, 88}, {{"sm_103", 103}, 88},
    {{"sm_103a", 103, 'a'}, 88}, {{"sm_103f", 103, 'f'}, 88}, {{"sm_110", 110}, 90},
    {{"sm_110a", 110, 'a'}, 90}, {{"sm_110f", 110, 'f'}, 90}, {{"sm_120", 120}, 87},
    {{"sm_120a", 120, 'a'}, 87}, {{"sm_120f", 120, 'f'}, 88}, {{"sm_121", 121}, 88},
    {{"sm_121a", 121, 'a'}, 88}, {{"sm_121f", 121, 'f'}, 88},
};

// Opcodes that begin so, and have this in them: targets from one number to another, and with a
// letter only, or with a only, where that is asked; and one between that lacks them. Which these
// are, in words, where the first does not say it.
enum class Letter : std::uint8_t { any, some, only_a };
struct Need {
  std::string_view begin;
  std::string_view part;
  int first;
  int last = 999;
  Letter letter = Letter::any;
  std::string_view words = {};
  int lacks = 0;
};
constexpr std::string_view kWithLetter = "sm_100a or later, with a or f";
constexpr Need kNeeds[] = {
    {"wgmma.", "", 90, 90, Letter::some, "sm_90a"},
    {"tcgen05.", "", 100, 119, Letter::some, "sm_100a, sm_103a, sm_110a or their families"},
    {"tcgen05.mma", ".kind::i8", 100, 119, Letter::only_a, "sm_100a or sm_110a", 103},
    {"tcgen05.ld.red.", "", 103, 119, Letter::some, "sm_103 or sm_110, with a or f"},
    {"tcgen05.shift", "", 100, 119, Letter::only_a, "sm_100a, sm_103a or sm_110a"},
    {"setmaxnreg.", "", 90, 999, Letter::some, "sm_90a, or sm_100a or later, with a or f"},
    {"tensormap.replace", "", 90, 999, Letter::some, "sm_90a, or sm_100a or later, with a or f"},
    {"clusterlaunchcontrol.", "", 100},
    {"clusterlaunchcontrol.", ".multicast::cluster", 100, 999, Letter::some, kWithLetter},
    {"cp.async.", "", 80},
    {"cp.async.bulk", "", 90},
    {"cp.reduce.async.bulk", "", 90},
    {"cp.async.bulk.tensor", ".cta_group::", 100, 999, Letter::some, kWithLetter},
    {"cp.async.bulk.tensor", ".tile::gather4", 100, 999, Letter::some, kWithLetter},
    {"cp.async.bulk.tensor", ".tile::scatter4", 100, 999, Letter::some, kWithLetter},
    {"st.async", "", 90},
    {"red.async", "", 90},
    {"mbarrier.", "", 80},
    {"mbarrier.try_wait", "", 90},
    {"mbarrier.", "expect_tx", 90},
    {"mbarrier.", ".cluster", 90},
    {"barrier.cluster.", "", 90},
    {"fence.", ".cluster", 90},
    {"fence.proxy.async", "", 90},
    {"fence.proxy.tensormap", "", 90},
    {"griddepcontrol.", "", 90},
    {"elect.sync", "", 90},
    {"mapa", "", 90},
    {"getctarank", "", 90},
    {"ld.shared::cluster", "", 90},
    {"st.shared::cluster", "", 90},
    {"atom.", ".cluster", 90},
    {"red.", ".cluster", 90},
    {"stmatrix.", "", 90},
    {"stmatrix.", ".b8", 100, 999, Letter::some, kWithLetter},
    {"ldmatrix.", ".b8", 100, 999, Letter::some, kWithLetter},
    {"mma.", ".block_scale", 120, 129, Letter::some, "sm_120a, sm_121a or their families"},
    {"mma.", ".kind::", 100, 999, Letter::some, kWithLetter},
    {"createpolicy.", "", 80},
    {"redux.sync", "", 80},
    {"redux.sync", ".f32", 100, 999, Letter::some, kWithLetter},
    {"cvt.", ".tf32", 80},
    {"cvt.rn", "bf16", 80},
    {"cvt.", "e4m3x2", 89},
    {"cvt.", "e5m2x2", 89},
    {"cvt.", "e2m1x2", 100, 999, Letter::some, kWithLetter},
    {"cvt.", "e2m3x2", 100, 999, Letter::some, kWithLetter},
    {"cvt.", "e3m2x2", 100, 999, Letter::some, kWithLetter},
    {"cvt.", "ue8m0x2", 100, 999, Letter::some, kWithLetter},
    {"add.", "bf16", 90},
    {"sub.", "bf16", 90},
    {"mul.", "bf16", 90},
    {"fma.", "bf16", 80},
    {"add.", "f32x2", 100},
    {"sub.", "f32x2", 100},
    {"mul.", "f32x2", 100},
    {"fma.", "f32x2", 100},
};

bool has(const Target& t, const Need& need) {
  const bool lettered = need.letter == Letter::any || t.letter == 'a' ||
                        (need.letter == Letter::some && t.letter != '\0');
  return t.number >= need.first && t.number <= need.last && t.number != need.lacks && lettered;
}

}  // namespace

std::optional<Target> target_named(std::string_view name) {
  for (const Known& known : kKnown) {
    if (known.target.name == name) return known.target;
  }
  return std::nullopt;
}

std::string_view nearest_target(std::string_view name) {
  const auto* const nearest = std::ranges::min_element(kKnown, {}, [name](const Known& known) {
    return std::tuple(numeric::edit_distance(name, known.target.name), known.target.name);
  });
  return nearest->target.name;
}

int first_version(const Target& target) {
  const auto* const it =
      std::ranges::find(kKnown, target.name, [](const Known& known) { return known.target.name; });
  return it == std::end(kKnown) ? 0 : it->version;
}

std::string lacking(const Target& target, std::string_view opcode) {
  for (const Need& need : kNeeds) {
    if (has(target, need) || !opcode.starts_with(need.begin) ||
        opcode.find(need.part) == std::string_view::npos) {
      continue;
    }
    return need.words.empty() ? "sm_" + std::to_string(need.first) + " or later"
                              : std::string(need.words);
  }
  return {};
}

}  // namespace warpwright::ptx
