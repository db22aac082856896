// Names of operations that hold in every run. Internal to model/.
#pragma once

#include <cstdint>

#include "warpwright/model/explore/exploration.h"

namespace warpwright::model {

inline std::uint64_t mix_names(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15U + b + 0x632be59bd9b4e019U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Who, on what, for the how-manieth time, and in which state.
inline std::uint64_t name_of_event(std::uint64_t object, std::uint64_t agent, std::uint32_t turn,
                                   SyncEvent::Kind kind, std::int64_t state) {
  return mix_names(
      mix_names(agent, object),
      mix_names(turn * 8ULL + static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(state)));
}
inline std::uint64_t name_of_event(std::uint64_t object, const SyncEvent& e) {
  return name_of_event(object, e.name, e.turn, e.kind, e.state);
}

}  // namespace warpwright::model
