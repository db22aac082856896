// The kernel that makes the tensor maps of the groups, before the grouped kernel that uses them
// (Store::tensor_per_group). Host maps of all tokens are the templates; of each copy the address
// and the number of rows are rewritten, so that copies through it begin and end with the group.
// Strides, box and swizzle stay.
//
// One warp a CTA; CTA c of C takes the groups c, c + C, ... Groups without tokens get no map: no
// tile is theirs.
#pragma once

#include <cstdint>

#include "warpwright/isa/fence.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/tensor_map.h"
#include "warpwright/isa/thread.h"
#include "warpwright/isa/trace.h"
#include "warpwright/isa/warp.h"
#include "warpwright/tile/groups.h"

namespace warpwright::kernel {

/// A tensor whose rows are the tokens.
struct TokenTensor {
  isa::TensorMap map;  ///< of all tokens: dimension 1
  const unsigned char* data = nullptr;
  std::int64_t pitch = 0;  ///< bytes from row to row, a multiple of 16
};

struct GroupMapsParams {
  TokenTensor x;  ///< data null: there is no K, and nobody reads X
  TokenTensor y;
  tile::GroupOffsets offsets;
  /// Of X at 2 g and of Y at 2 g + 1; a multiple of 128 bytes.
  isa::TensorMap* maps = nullptr;
};

/// Bytes of workspace, of any address that is a multiple of 16, for the status of the offsets and
/// the maps of this many groups.
constexpr std::int64_t group_maps_workspace(std::int64_t groups) {
  return 128 + groups * 2 * static_cast<std::int64_t>(sizeof(isa::TensorMap));
}

struct GroupMapsKernel {
  using Params = GroupMapsParams;
  static constexpr int threads = 32;
  static constexpr int map_bytes = sizeof(isa::TensorMap);
  static constexpr int shared_bytes = 2 * map_bytes;

  /// The whole kernel, for one thread of `threads`.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("maker of maps");
    // The kernel that uses the maps may set up meanwhile; it waits for the end of this one.
    isa::launch_dependents();
    const isa::SharedAddress x = isa::shared_base();
    const isa::SharedAddress y = x + map_bytes;
    const int lane = isa::lane_index();
    constexpr int words = map_bytes / 8;
    isa::SharedView<std::uint64_t>{x}.store(
        lane, lane < words ? p.x.map.opaque[lane] : p.y.map.opaque[lane - words]);
    const bool has_x = p.x.data != nullptr;
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    for (int g = isa::cta_index(); g < p.offsets.groups(); g += isa::cta_count()) {
      const tile::GroupSpan tokens = p.offsets.span(ready, g);
      if (tokens.first == tokens.end) continue;
      const isa::Mark mark("group % map", g);
      isa::sync_warp();  // the templates are there, and the maps of the group before are copied
      if (lane == 0 && has_x) rewrite(x, p.x, tokens);
      if (lane == 1) rewrite(y, p.y, tokens);
      isa::sync_warp();
      if (has_x) isa::tensormap_cp_fenceproxy(p.maps + 2 * g, x);
      isa::tensormap_cp_fenceproxy(p.maps + 2 * g + 1, y);
    }
  }

 private:
  /// One thread: the map of these tokens alone.
  WW_DEVICE static void rewrite(isa::SharedAddress map, const TokenTensor& of,
                                const tile::GroupSpan& tokens) {
    isa::tensormap_replace_global_address(map, of.data + tokens.first * of.pitch);
    isa::tensormap_replace_global_dim<1>(map,
                                         static_cast<std::uint32_t>(tokens.end - tokens.first));
  }
};

}  // namespace warpwright::kernel
