// Tensor memory for kernels of 128 threads: taken as barriers are made, read by lanes, given back.
#pragma once

#include <cstdint>

#include "tests/model/harness.h"
#include "warpwright/atom/umma.h"
#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/memory.h"
#include "warpwright/isa/tcgen05.h"
#include "warpwright/isa/tcgen05_memory.h"
#include "warpwright/isa/thread.h"

namespace warpwright::model {

/// So many columns, whose address comes through `word`; one thread calls `make_barriers`.
template <int Ctas>
isa::TmemAddress take_tmem(isa::SharedAddress word, int columns, const auto& make_barriers) {
  if constexpr (Ctas == 2) cluster_sync();
  if (isa::warp_index() == 0) {
    isa::tcgen05_allocate<Ctas>(word, columns);
    isa::tcgen05_relinquish<Ctas>();
  }
  if (isa::thread_index() == 32) {
    make_barriers();
    isa::fence_mbarrier_init();
  }
  isa::sync_threads(128);
  if constexpr (Ctas == 2) cluster_sync();
  return isa::SharedView<std::uint32_t>{word}.load();
}

/// The same, with one barrier for one arrival at `done`.
template <int Ctas>
isa::TmemAddress take_tmem(isa::SharedAddress word, int columns, isa::SharedAddress done) {
  return take_tmem<Ctas>(word, columns, [&] { isa::mbarrier_init(done, 1, {"done"}); });
}

template <int Ctas>
void give_tmem(isa::TmemAddress tmem, int columns) {
  isa::tcgen05_fence_before_sync();
  isa::sync_threads(128);
  if (isa::warp_index() == 0) isa::tcgen05_deallocate<Ctas>(tmem, columns);
}

/// The first columns of every lane: lane * pitch + column.
inline void read_lanes(isa::TmemAddress tmem, int columns, float* lanes, int pitch) {
  const int first = 32 * isa::warp_index();
  for (int c = 0; c < columns; c += 8) {
    isa::Fragment<float, 8> f;
    isa::tcgen05_load(f, tmem + atom::tmem_address(first, c));
    isa::tcgen05_wait_load(f);
    for (int r = 0; r < 8; ++r) lanes[(first + isa::lane_index()) * pitch + c + r] = f[r];
  }
}

}  // namespace warpwright::model
