// A grouped product with tensor maps made on the device (note 004, hpc-ops' grouped GEMM): a grid
// rewrites the maps of X and Y of every group, the next one multiplies through them.
//
//   Y[rows of g] = X[rows of g] * W[g]^T     offsets[g] .. offsets[g + 1] - 1, known on the device
//
// A group begins at any row and has any number of them. A map of its own ends with it: a box that
// reaches past the end reads zeros and stores nothing, where one map of all tokens would read the
// next group's rows, and store over them.
//
//   MakeMaps       one warp a CTA, groups in turn: the host's map to shared memory, address and
//                  rows replaced, copied to global memory and released to the proxy of maps
//   GroupedGemm    warps 0-3 multiply 64 x 64 tiles and store them through Y's map; one thread of
//                  warp 4 loads boxes of X, through the group's map, and of W into a ring
//
// TMA reads maps through a proxy of its own. Whoever issues a copy through a new map acquires it
// first, behind the wait for the grid that made it.
#pragma once

#include <cstdint>

#include <warpwright/atom/descriptor.h>
#include <warpwright/atom/swizzle.h>
#include <warpwright/atom/wgmma.h>
#include <warpwright/isa/barrier.h>
#include <warpwright/isa/fence.h>
#include <warpwright/isa/memory.h>
#include <warpwright/isa/numeric.h>
#include <warpwright/isa/tensor_map.h>
#include <warpwright/isa/thread.h>
#include <warpwright/isa/tma.h>
#include <warpwright/isa/warp.h>
#include <warpwright/isa/wgmma.h>
#include <warpwright/pipeline/tma_pipeline.h>
#include <warpwright/tile/groups.h>

namespace study::maps {

namespace atom = warpwright::atom;
namespace isa = warpwright::isa;
namespace pipeline = warpwright::pipeline;
namespace tile = warpwright::tile;

inline constexpr int side = 64;  ///< of every tile and box, in elements of bf16, 128-byte swizzled

/// A tensor whose rows are the tokens of all groups.
struct Tokens {
  isa::TensorMap map;  ///< of all of them: the template
  const unsigned char* data = nullptr;
  std::int64_t pitch = 0;  ///< bytes from row to row, a multiple of 16
};

/// What both grids take.
struct Params {
  Tokens x;                        ///< tokens x k
  Tokens y;                        ///< tokens x n
  isa::TensorMap w;                ///< groups * n x k
  tile::GroupOffsets offsets;      ///< of the grid before
  isa::TensorMap* maps = nullptr;  ///< of X of group g at 2 g, of Y at 2 g + 1
  int n = 0;                       ///< a multiple of 64
  int k = 0;                       ///< at least 1
};

/// What the study takes away, one thing at a time.
struct Edges {
  bool release = true;         ///< the maker publishes a map by the instruction that releases it
  bool meet_rewritten = true;  ///< its warp meets between rewriting a map and copying it
  bool meet_copied = true;     ///< and before the next group's rewriting
  bool own_rows = true;        ///< Y's map ends with the group, not with all tokens
  bool wait_for_maps = true;   ///< the product waits for the maker's grid
  bool acquire_x = true;       ///< its loader acquires a group's map
  bool acquire_y = true;       ///< its storer, too
  bool acquire_late = true;    ///< behind the wait, not before
};

struct Mended {
  static constexpr Edges edges{};
};
template <Edges E>
struct Without {
  static constexpr Edges edges = E;
};

template <class Way = Mended>
struct MakeMaps {
  static constexpr Edges E = Way::edges;
  static constexpr int threads = 32;
  static constexpr int map_bytes = sizeof(isa::TensorMap);
  static constexpr int shared_bytes = 2 * map_bytes;

  /// The whole kernel, for one thread. CTA c of C takes the groups c, c + C, ... One without tokens
  /// gets no map: no tile is its.
  WW_DEVICE static void run(const Params& p) {
    isa::set_role("maker of maps");
    isa::launch_dependents();  // the product may set up meanwhile; it waits for the end of this one
    const isa::SharedAddress x = isa::shared_base();
    const isa::SharedAddress y = x + map_bytes;
    const int lane = isa::lane_index();
    constexpr int words = map_bytes / 8;
    isa::SharedView<std::uint64_t>{x}.store(
        lane, lane < words ? p.x.map.opaque[lane] : p.y.map.opaque[lane - words]);
    const isa::Prerequisites ready = isa::wait_for_prerequisites();
    for (int g = isa::cta_index(); g < p.offsets.groups(); g += isa::cta_count()) {
      const tile::GroupSpan tokens = p.offsets.span(ready, g);
      if (tokens.first == tokens.end) continue;
      // The templates are there, and the maps of the group before are copied.
      if constexpr (E.meet_copied) isa::sync_warp();
      if (lane == 0) rewrite(x, p.x, tokens, true);
      if (lane == 1) rewrite(y, p.y, tokens, E.own_rows);
      if constexpr (E.meet_rewritten) isa::sync_warp();
      publish(p.maps + 2 * g, x);
      publish(p.maps + 2 * g + 1, y);
    }
  }

 private:
  /// One thread: only the map of these tokens. Strides, box and swizzle stay.
  WW_DEVICE static void rewrite(isa::SharedAddress map, const Tokens& of,
                                const tile::GroupSpan& tokens, bool own_rows) {
    isa::tensormap_replace_global_address(map, of.data + tokens.first * of.pitch);
    if (!own_rows) return;
    isa::tensormap_replace_global_dim<1>(map,
                                         static_cast<std::uint32_t>(tokens.end - tokens.first));
  }

  WW_DEVICE static void publish(isa::TensorMap* to, isa::SharedAddress from) {
    if constexpr (E.release) {
      isa::tensormap_cp_fenceproxy(to, from);
    } else if (isa::lane_index() < map_bytes / 8) {
      const isa::SharedView<std::uint64_t> map{from};
      isa::global_view<std::uint64_t>(to->opaque)
          .store(isa::lane_index(), map.load(isa::lane_index()));
    }
  }
};

/// The tiles of all groups, one after the other, as every role walks them.
class Walk {
 public:
  WW_DEVICE Walk(const Params& p, const isa::Prerequisites& ready)
      : offsets_(p.offsets), ready_(ready), across_(p.n / side) {
    if (offsets_.groups() > 0) span_ = offsets_.span(ready_, 0);
  }

  /// Goes on to tile `index`, not below the one before; false behind the last.
  WW_DEVICE bool find(int index) {
    for (; group_ < offsets_.groups(); span_ = offsets_.span(ready_, group_)) {
      const int tiles = (span_.end - span_.first + side - 1) / side * across_;
      if (index < before_ + tiles) {
        row_ = (index - before_) / across_ * side;
        column_ = (index - before_) % across_ * side;
        return true;
      }
      before_ += tiles;
      if (++group_ == offsets_.groups()) break;
    }
    return false;
  }
  [[nodiscard]] WW_DEVICE int group() const { return group_; }
  [[nodiscard]] WW_DEVICE int row() const { return row_; }  ///< in the group
  [[nodiscard]] WW_DEVICE int column() const { return column_; }

 private:
  const tile::GroupOffsets& offsets_;
  isa::Prerequisites ready_;
  int across_;
  tile::GroupSpan span_;
  int group_ = 0, before_ = 0, row_ = 0, column_ = 0;
};

template <class Way = Mended>
struct GroupedGemm {
  static constexpr Edges E = Way::edges;
  static constexpr int threads = 160;
  static constexpr int stages = 3;
  static constexpr atom::OperandTile box{side, side, 16, atom::Major::k, atom::SmemSwizzle::b128};
  static constexpr int tile_bytes = atom::tile_bytes(box);

  struct Ring {
    static constexpr pipeline::TmaPipelineShape value{stages, 4, 2 * tile_bytes};
  };
  using Loads = pipeline::TmaPipeline<Ring>;
  using Accumulator = isa::Fragment<float, side / 2>;

  // Shared memory: the stages (X, then W, in each), the tile of Y, the barriers.
  static constexpr int y_tile = stages * 2 * tile_bytes;
  static constexpr int barriers = y_tile + tile_bytes;
  static constexpr int shared_bytes = barriers + pipeline::barrier_bytes(stages);

  /// The whole kernel, for one thread. CTA c of C takes the tiles c, c + C, ...
  WW_DEVICE static void run(const Params& p) {
    const isa::SharedAddress base = isa::shared_base();
    const Loads loads(base + barriers, {1, 1}, 1);
    if (isa::thread_index() == 128) {
      loads.initialise();
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(threads);
    if constexpr (!E.acquire_late) acquire_all(p);
    isa::Prerequisites ready = isa::Prerequisites::of_earlier_grids();
    if constexpr (E.wait_for_maps) ready = isa::wait_for_prerequisites();
    isa::launch_dependents();
    if (isa::warp_index() < 4) {
      multiply(p, Walk(p, ready), base, loads);
    } else if (isa::elect_one()) {
      produce(p, Walk(p, ready), base, loads);
    }
  }

 private:
  WW_DEVICE static void acquire_all(const Params& p) {
    for (int i = 0; i < 2 * p.offsets.groups(); ++i) isa::fence_proxy_tensormap_acquire(p.maps[i]);
  }

  WW_DEVICE static void produce(const Params& p, Walk walk, isa::SharedAddress base,
                                const Loads& loads) {
    isa::set_role("producer");
    pipeline::PipelineState state;
    int acquired = -1;
    for (int index = isa::cta_index(); walk.find(index); index += isa::cta_count()) {
      const isa::TensorMap& x = p.maps[2 * walk.group()];
      if (E.acquire_x && E.acquire_late && acquired != walk.group()) {
        isa::fence_proxy_tensormap_acquire(x);  // once is enough: the map stays as it is
        acquired = walk.group();
      }
      for (int k = 0; k < p.k; k += side) {
        const isa::SharedAddress full = loads.acquire(state);
        const isa::SharedAddress to = base + state.stage * 2 * tile_bytes;
        isa::tensor_load(to, x, full, isa::Coords{k, walk.row()});  // row 0 is the group's
        isa::tensor_load(to + tile_bytes, p.w, full,
                         isa::Coords{k, walk.group() * p.n + walk.column()});
        state.advance(stages);
      }
    }
  }

  WW_DEVICE static void multiply(const Params& p, Walk walk, isa::SharedAddress base,
                                 const Loads& loads) {
    constexpr atom::OperandTile operand = box;
    isa::set_role("multiplier");
    pipeline::PipelineState state;
    for (int index = isa::cta_index(); walk.find(index); index += isa::cta_count()) {
      Accumulator sum;
      for (int k = 0; k < p.k; k += side) {
        loads.wait(state);
        const isa::SharedAddress at = base + state.stage * 2 * tile_bytes;
        const std::uint64_t x = atom::encode(atom::descriptor(operand, at));
        const std::uint64_t w = atom::encode(atom::descriptor(operand, at + tile_bytes));
        isa::wgmma_fence(sum);
        WW_UNROLL for (int k_block = 0; k_block < atom::k_block_count(operand); ++k_block) {
          const std::uint32_t offset = atom::k_block_offset<operand>(k_block);
          isa::wgmma<warpwright::DType::bf16, side>(sum, atom::advance(x, offset),
                                                    atom::advance(w, offset), k > 0 || k_block > 0);
        }
        isa::wgmma_commit();
        isa::wgmma_wait<0>(sum);  // the tensor core has read the stage
        loads.release(state);
        state.advance(stages);
      }
      store(p, walk, base + y_tile, sum);
    }
    if (isa::thread_index() == 0) isa::bulk_wait<0>();
  }

  /// Through shared memory, swizzled as the map says.
  WW_DEVICE static void store(const Params& p, const Walk& walk, isa::SharedAddress to,
                              Accumulator& sum) {
    const int thread = isa::thread_index();
    if (thread == 0) isa::bulk_wait_read<0>();  // the store before has read the tile
    isa::named_barrier_sync(1, 128);
    WW_UNROLL for (int i = 0; i < side / 2; i += 2) {
      const auto offset =
          static_cast<std::uint32_t>(atom::c_row(thread, i) * 128 + atom::c_col(thread, i) * 2);
      isa::SharedView<std::uint32_t>{to + atom::apply_swizzle(atom::SmemSwizzle::b128, offset)}
          .store(0, isa::pack<warpwright::DType::bf16>(sum[i], sum[i + 1]));
    }
    isa::fence_proxy_async_shared();
    isa::named_barrier_sync(1, 128);
    if (thread != 0) return;
    const isa::TensorMap& y = p.maps[2 * walk.group() + 1];
    if (E.acquire_y && E.acquire_late) isa::fence_proxy_tensormap_acquire(y);
    isa::tensor_store(y, to, isa::Coords{walk.column(), walk.row()});
    isa::bulk_commit();
  }
};

}  // namespace study::maps
