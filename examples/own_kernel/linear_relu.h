// A kernel of a user's own: Y = relu(X * W^T + bias) in bf16, one 64 x 64 tile of Y a CTA.
//
//   warps 0-3  multiply: wait for a stage, four wgmmas on it, release it; then bias, relu, store
//   warp 4     produce: one thread loads a 64 x 64 box of X and one of W a stage
//
//   full[s]    1 arrival (the producer, which expects both boxes' bytes)   waited for by warps 0-3
//   empty[s]   4 arrivals (one lane of each of warps 0-3)                  waited for by warp 4
//
// It is written only on warpwright's isa/ and pipeline/, so the same lines run on the GPU and on
// the machine model.
#pragma once

#include <warpwright/atom/descriptor.h>
#include <warpwright/atom/swizzle.h>
#include <warpwright/atom/wgmma.h>
#include <warpwright/isa/barrier.h>
#include <warpwright/isa/fence.h>
#include <warpwright/isa/memory.h>
#include <warpwright/isa/numeric.h>
#include <warpwright/isa/thread.h>
#include <warpwright/isa/tma.h>
#include <warpwright/isa/trace.h>
#include <warpwright/isa/warp.h>
#include <warpwright/isa/wgmma.h>
#include <warpwright/pipeline/tma_pipeline.h>

namespace own {

namespace atom = warpwright::atom;
namespace isa = warpwright::isa;
namespace pipeline = warpwright::pipeline;

/// A launch: ceil(m / 64) * ceil(n / 64) CTAs. All maps have boxes of 64 x 64 bf16, 128-byte
/// swizzled. k is at least 1; what lies outside a tensor is read as zero and not written.
struct LinearParams {
  isa::TensorMap x;  ///< m x k
  isa::TensorMap w;  ///< n x k
  isa::TensorMap y;  ///< m x n
  const float* bias = nullptr;
  int n = 0;
  int k = 0;
};

/// Mistakes the tests make on purpose, to see what the model says of them.
enum class Slip { none, no_fence, early_release, no_prerequisites };

template <Slip slip = Slip::none>
struct LinearRelu {
  static constexpr int threads = 160;
  static constexpr int stages = 3;
  static constexpr int side = 64;  // of every tile
  static constexpr atom::OperandTile tile{side, side, 16, atom::Major::k, atom::SmemSwizzle::b128};
  static constexpr int tile_bytes = atom::tile_bytes(tile);

  struct Ring {
    static constexpr pipeline::TmaPipelineShape value{stages, 4, 2 * tile_bytes};
  };
  using Loads = pipeline::TmaPipeline<Ring>;
  using Accumulator = isa::Fragment<float, side / 2>;

  // Shared memory: the stages (X, then W, in each), the tile of Y, the barriers.
  static constexpr int y_tile = stages * 2 * tile_bytes;
  static constexpr int barriers = y_tile + tile_bytes;
  static constexpr int shared_bytes = barriers + pipeline::barrier_bytes(stages);

  /// The whole kernel, for one thread.
  WW_DEVICE static void run(const LinearParams& p) {
    const isa::SharedAddress base = isa::shared_base();
    const Loads loads(base + barriers, {1, 1}, 1);
    if (isa::thread_index() == 128) {
      loads.initialise();
      isa::fence_mbarrier_init();
    }
    isa::sync_threads(threads);
    // Launched as a dependent of the grid that writes x: up to here it may still run.
    if constexpr (slip != Slip::no_prerequisites) isa::wait_for_prerequisites();
    isa::launch_dependents();

    const int tiles_across = (p.n + side - 1) / side;
    const int row = isa::cta_index() / tiles_across * side;
    const int column = isa::cta_index() % tiles_across * side;
    if (isa::warp_index() < 4) {
      multiply(p, base, loads, row, column);
    } else if (isa::elect_one()) {
      produce(p, base, loads, row, column);
    }
  }

 private:
  WW_DEVICE static void produce(const LinearParams& p, isa::SharedAddress base, const Loads& loads,
                                int row, int column) {
    isa::set_role("producer");
    pipeline::PipelineState state;
    for (int k = 0; k < p.k; k += side) {
      const isa::Mark mark("k_tile %", k / side);  // what pictures call it
      const isa::SharedAddress full = loads.acquire(state);
      const isa::SharedAddress x = base + state.stage * 2 * tile_bytes;
      isa::tensor_load(x, p.x, full, isa::Coords{k, row});
      isa::tensor_load(x + tile_bytes, p.w, full, isa::Coords{k, column});
      state.advance(stages);
    }
  }

  WW_DEVICE static void multiply(const LinearParams& p, isa::SharedAddress base, const Loads& loads,
                                 int row, int column) {
    constexpr atom::OperandTile operand = tile;
    isa::set_role("multiplier");
    Accumulator sum;
    pipeline::PipelineState state;
    for (int k = 0; k < p.k; k += side) {
      const isa::Mark mark("k_tile %", k / side);
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
      if constexpr (slip == Slip::early_release) loads.release(state);
      isa::wgmma_wait<0>(sum);  // the tensor core has read the stage
      if constexpr (slip != Slip::early_release) loads.release(state);
      state.advance(stages);
    }
    store(p, base + y_tile, sum, row, column);
  }

  /// Bias and relu in registers, then through shared memory, swizzled as the map of Y says.
  WW_DEVICE static void store(const LinearParams& p, isa::SharedAddress to, Accumulator& sum,
                              int row, int column) {
    const int thread = isa::thread_index();
    const isa::GlobalView<const float> bias{p.bias};
    WW_UNROLL for (int i = 0; i < side / 2; i += 2) {
      const int c = atom::c_col(thread, i);
      float y[2];
      for (int e = 0; e < 2; ++e) {
        const float b = column + c + e < p.n ? bias.load(column + c + e) : 0.0F;
        y[e] = sum[i + e] + b > 0.0F ? sum[i + e] + b : 0.0F;
      }
      const auto offset = static_cast<std::uint32_t>(atom::c_row(thread, i) * 128 + c * 2);
      isa::SharedView<std::uint32_t>{to + atom::apply_swizzle(atom::SmemSwizzle::b128, offset)}
          .store(0, isa::pack<warpwright::DType::bf16>(y[0], y[1]));
    }
    // TMA reads what we wrote: every writer fences, then all meet, then one stores.
    if constexpr (slip != Slip::no_fence) isa::fence_proxy_async_shared();
    isa::named_barrier_sync(1, 128);
    if (thread == 0) {
      isa::tensor_store(p.y, to, isa::Coords{column, row});
      isa::bulk_commit();
      isa::bulk_wait_read<0>();  // shared memory must outlive the store's reads
    }
  }
};

}  // namespace own
