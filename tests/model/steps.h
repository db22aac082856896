// What kernels of a few lines do again and again: a barrier made and shown, a box loaded, a box
// stored. Findings name the line of the call.
#pragma once

#include "warpwright/isa/fence.h"
#include "warpwright/isa/mbarrier.h"
#include "warpwright/isa/tma.h"

namespace warpwright::tests {

inline void make_barrier(isa::SharedAddress at, int arrivals, isa::BarrierName name = {},
                         const char* arrivers = "", isa::Site site = isa::Site::here()) {
  isa::mbarrier_init(at, arrivals, name, arrivers, site);
  isa::fence_mbarrier_init(site);
}

/// Arrives, expects so many bytes, and loads a box that signals there.
template <int R>
void expect_load(int bytes, isa::SharedAddress to, const isa::TensorMap& map,
                 isa::SharedAddress signal, isa::Coords<R> c, isa::Site site = isa::Site::here()) {
  isa::mbarrier_arrive_expect(signal, bytes, site);
  isa::tensor_load(to, map, signal, c, site);
}

/// And waits for it, as for the first phase.
template <int R>
void load_and_wait(int bytes, isa::SharedAddress to, const isa::TensorMap& map,
                   isa::SharedAddress signal, isa::Coords<R> c,
                   isa::Site site = isa::Site::here()) {
  expect_load(bytes, to, map, signal, c, site);
  isa::mbarrier_wait<isa::Scope::cta>(signal, 0, {}, site);
}

/// Stores a box, and waits until it is read, or written.
template <int R>
void store_until_read(const isa::TensorMap& map, isa::SharedAddress from, isa::Coords<R> c,
                      isa::Site site = isa::Site::here()) {
  isa::tensor_store(map, from, c, site);
  isa::bulk_commit(site);
  isa::bulk_wait_read<0>(site);
}
template <int R>
void store_until_written(const isa::TensorMap& map, isa::SharedAddress from, isa::Coords<R> c,
                         isa::Site site = isa::Site::here()) {
  isa::tensor_store(map, from, c, site);
  isa::bulk_commit(site);
  isa::bulk_wait<0>(site);
}

}  // namespace warpwright::tests
