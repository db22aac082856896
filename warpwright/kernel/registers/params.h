// What a launch of a register kernel takes, on the GPU and on the model.
#pragma once

#include <cstdint>

#include "warpwright/isa/tma.h"
#include "warpwright/kernel/params.h"
#include "warpwright/kernel/registers/config.h"

namespace warpwright::kernel {

/// An operand, K-major: rows `pitch` bytes apart.
struct RegisterOperand {
  const std::uint8_t* base = nullptr;
  std::int64_t pitch = 0;
  int rows = 0;     ///< that there are; the others read as 0
  int k_bytes = 0;  ///< of a row; what follows reads as 0
  /// Bytes of which base, pitch and batch are multiples: 16, or 8, 4, or an element's for kernels
  /// that take any alignment.
  int piece = 16;
  std::int64_t batch = 0;  ///< bytes from matrix to matrix; 0: one for all
  /// From the bytes that a thread copies to the next of them in a block of K; and from behind the
  /// last of them to the first of the next block.
  std::int64_t step = 0;
  std::int64_t next = 0;
};

/// The operand with its steps, for stages of `rows` rows of it.
constexpr RegisterOperand with_steps(RegisterOperand o, const RegisterConfig& c, int rows) {
  o.step = copied_rows(c) * o.pitch;
  o.next = row_bytes(c) - rows / copied_rows(c) * o.step;
  return o;
}

/// Parameters of one launch of a block-scaled kernel.
struct BlockScaledParams : GemmParams, ScaleMaps {};

/// Parameters of one launch: those of all kernels, without maps, and the operands.
struct RegisterGemmParams : GemmParams {
  RegisterOperand a;
  RegisterOperand b;
};

}  // namespace warpwright::kernel
