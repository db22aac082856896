// The slots of a mixture of experts, sorted by expert: on the host or on a CUDA device, with the
// same result. A slot is token * top_k + j, where the router put expert j of a token.
//
// Rows are what the products of experts compute: those of expert e are offsets[e] to
// offsets[e + 1] - 1, in the order of their slots. An id of -1, or of an expert of another rank, is
// left out; so is any other id that is no expert, and the status says so.
#pragma once

#include <cstdint>
#include <optional>

#include "warpwright/plan/product/problem.h"

namespace warpwright {

/// What is sorted, and to where.
struct SlotSort {
  const void* ids = nullptr;  ///< tokens x top_k, from 0 to experts_total - 1, or left out
  OffsetType type = OffsetType::int32;  ///< of an id
  std::int64_t tokens = 0;
  std::int64_t top_k = 1;           ///< slots of a token; 2^30 slots in all at most
  std::int64_t pitch = 0;           ///< ids from token to token, at least top_k
  std::int64_t experts = 0;         ///< of this rank: 1 to 1,024
  std::int64_t first_expert = 0;    ///< of this rank
  std::int64_t experts_total = 0;   ///< of all ranks
  std::int32_t* offsets = nullptr;  ///< experts + 1
  std::int32_t* slots = nullptr;    ///< row -> slot; behind the last row -1, up to tokens x top_k
  std::int32_t* rows = nullptr;     ///< slot -> row, or -1 where it is left out
  std::uint32_t* status = nullptr;  ///< bit 0: an id out of range, else 0; null: nobody asks
};

/// Why it cannot be carried out, or nothing.
[[nodiscard]] std::optional<Refusal> fault(const SlotSort& what);

/// Carries it out in host memory.
[[nodiscard]] std::optional<Refusal> sort_slots_on_host(const SlotSort& what);

namespace device {

/// Puts it on `stream` (a cudaStream_t) of the current CUDA device: one grid, or three of more than
/// 32,768 slots. Takes no memory, does not wait, legal in a graph capture.
[[nodiscard]] std::optional<Refusal> sort_slots_on_cuda(const SlotSort& what, void* stream);

}  // namespace device
}  // namespace warpwright
