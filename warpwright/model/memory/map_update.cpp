// Tensor maps that a kernel changes: rewritten in shared memory, copied to global memory by a warp,
// acquired by whoever issues copies through them (PTX ISA 9.7.9.28, 9.7.13.16, 9.7.13.4).
#include <cstring>

#include "warpwright/model/parts.h"
#include "warpwright/model/report/timing.h"

namespace warpwright::model {
namespace {

constexpr int map_bytes = sizeof(TensorMap);
static_assert(map_bytes == 128);

// The fields of a map that an instruction is about to change or copy.
TensorMapFields fields_of(const TensorMap& map, const char* operation, Site site) {
  Machine& m = machine();
  const auto fields = decode(map);
  if (!fields) {
    m.fatal(Check::tensor_map,
            m.who(m.current()) + ": " + operation + " finds no tensor map that anybody encoded",
            site);
  }
  return *fields;
}

template <class Change>
void replace(std::uint32_t map, Site site, const Change& change) {
  Machine& m = machine();
  TensorMap bytes;
  shared_load(map, &bytes, map_bytes, site);
  TensorMapFields fields = fields_of(bytes, "tensormap.replace", site);
  change(fields);
  if (const auto fault = invalid(fields)) m.fatal(Check::tensor_map, *fault, site);
  bytes = encode(fields);
  shared_store(map, &bytes, map_bytes, site);
}

// The address of a map in global memory, which must be a tensor's.
std::uintptr_t global_map(const TensorMap* map, bool write, const char* operation, Site site) {
  Machine& m = machine();
  const auto at = reinterpret_cast<std::uintptr_t>(map);
  m.check_global(*m.current().cta->grid, at, map_bytes, write, operation, site);
  m.check_prerequisites(at, write, operation, site);
  if (at % map_bytes != 0) {
    m.fatal(Check::misaligned,
            std::string(operation) + " takes maps at multiples of 128 bytes in global memory",
            site);
  }
  return at;
}

struct UpdateLane {
  Thread* thread;
  TensorMap* to;
  std::uint32_t from;
};

}  // namespace

std::uintptr_t Machine::map_in_memory(const TensorMap& map) const {
  const auto at = reinterpret_cast<std::uintptr_t>(&map);
  for (const Allocation& a : allocations_) {
    const auto base = reinterpret_cast<std::uintptr_t>(a.base);
    if (at >= base && at + map_bytes <= base + static_cast<std::uintptr_t>(a.bytes)) return at;
  }
  return 0;
}

void Machine::map_written(std::uintptr_t at, bool released, Site site) {
  if (released) {
    unreleased_maps_.erase(at);
  } else {
    unreleased_maps_[at] = site;
  }
}

void Machine::maps_at_end() {
  for (const auto& [at, site] : unreleased_maps_) {
    finding(Check::tensor_map_changed,
            "a tensor map is copied to global memory without a release, and the grid ends: no "
            "acquire of a later grid makes TMA see it. Mend: copy it with "
            "tensormap_cp_fenceproxy()",
            site);
  }
}

void act::replace_map_base(std::uint32_t map, std::uint64_t base, Site site) {
  replace(map, site, [&](TensorMapFields& f) { f.base = base; });
}

void act::replace_map_extent(std::uint32_t map, int dimension, std::uint32_t extent, Site site) {
  Machine& m = machine();
  replace(map, site, [&](TensorMapFields& f) {
    if (dimension < 0 || dimension >= f.rank) {
      m.fatal(Check::tensor_map,
              "tensormap.replace names dimension " + std::to_string(dimension) +
                  " of a tensor map of rank " + std::to_string(f.rank),
              site);
    }
    f.extents[static_cast<std::size_t>(dimension)] = extent;
  });
}

void act::release_map(TensorMap* to, std::uint32_t from, bool effective, Site site) {
  const char* const what = "tensormap.cp_fenceproxy";
  whole_warp(what, site);
  UpdateLane self{&machine().current(), to, from};
  meet_warp(what, site, &self, [&](std::span<void*> lanes) {
    Machine& m = machine();
    TensorMap map;
    for (void* p : lanes) {
      const auto& lane = *static_cast<const UpdateLane*>(p);
      if (lane.to != to || lane.from != from) {
        m.fatal(Check::divergence, "the lanes of a tensormap.cp_fenceproxy name different maps",
                site);
      }
      // Which lanes move which bytes is open, so all of them must know what was written.
      m.load_shared(*lane.thread, from, &map, map_bytes, site);
    }
    static_cast<void>(fields_of(map, what, site));
    const std::uintptr_t at = global_map(to, true, what, site);
    m.spend(m.costs().global_access);
    Thread& first = *static_cast<const UpdateLane*>(lanes.front())->thread;
    if (m.order) m.order->generic_global(first, at, map_bytes, true, site, effective);
    std::memcpy(m.bytes_at(at), &map, sizeof map);
    m.map_written(at, effective, site);
  });
}

void act::acquire_map(const TensorMap* map, Site site) {
  Machine& m = machine();
  m.maybe_yield();
  m.spend(m.costs().global_access);
  const std::uintptr_t at = global_map(map, false, "fence.proxy.tensormap::generic.acquire", site);
  if (m.order) m.order->acquires_map(m.current(), at);
}

}  // namespace warpwright::model
