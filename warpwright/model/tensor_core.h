// What wgmma and tcgen05 share: operands in shared memory, and the product. Internal to model/.
#pragma once

#include <cstdint>

#include "warpwright/atom/descriptor.h"
#include "warpwright/numeric/types.h"

namespace warpwright::model {

struct Cta;

/// An operand of an MMA in flight: rows x k elements in the shared memory of one CTA.
struct Operand {
  Cta* cta = nullptr;
  atom::Descriptor descriptor;
  int rows = 0;
  int k = 0;
  DType type = DType::bf16;
  atom::Major major = atom::Major::k;
  const char* name = "";  ///< "A" or "B"
  int bits = 0;           ///< that an element takes, 8 where 16 of less are padded to 16 bytes
  bool in_tmem = false;   ///< A in tensor memory, at `tmem`: it has no pieces
  std::uint32_t tmem = 0;
};

/// Elements in a 16-byte piece of an operand, and the bytes of it that they lie in: the rest is
/// padding.
constexpr int piece_elements(const Operand& operand) {
  return 128 / operand.bits;
}
constexpr int piece_bytes_used(const Operand& operand) {
  return piece_elements(operand) * numeric::bits(operand.type) / 8;
}

/// Calls visit(row, k, address): the 16-byte piece that begins with element (row, k).
template <class Visit>
void for_each_piece(const Operand& operand, const Visit& visit) {
  if (operand.in_tmem) return;
  const atom::Descriptor& d = operand.descriptor;
  const int bits = operand.bits;
  const int piece = piece_elements(operand);
  if (operand.major == atom::Major::k) {
    for (int row = 0; row < operand.rows; ++row) {
      for (int i = 0; i < operand.k; i += piece) {
        visit(row, i, atom::element_address(d, row, i, bits, operand.major));
      }
    }
  } else {
    for (int i = 0; i < operand.k; ++i) {
      for (int row = 0; row < operand.rows; row += piece) {
        visit(row, i, atom::element_address(d, row, i, bits, operand.major));
      }
    }
  }
}

/// `count` elements that lie at `cells`, each in `bits` bits, as floats.
void widen_cells(DType type, int bits, const void* cells, float* out, int count);

/// Codes of a K-major operand, a byte each: out[row * k + k].
void read_codes(const Operand& operand, std::uint8_t* out);

/// Operand elements as floats, out[row * row_step + k * k_step].
void read_operand(const Operand& operand, float* out, int row_step, int k_step);

/// A sum of s32, as its bits, and a further product, which is a whole number below 2^24.
float add_integer(float sum, float product, bool saturates);

/// c[64 x n] += a[64 x k] * b[k x n], all row-major; k is a multiple of 4.
void multiply(const float* a, const float* b, float* c, int n, int k);

/// c[m x n] += a[m x k] * b[k x n], all row-major, of block-scaled operands with their scales
/// multiplied in, exactly: all products of an instruction are added, then to c, and rounded once. k
/// is a multiple of 4.
void multiply_scaled(const double* a, const double* b, float* c, int m, int n, int k);

}  // namespace warpwright::model
