// What MMAs read from tensor memory, A and scales, and the copies that bring it there. Internal
// to model/.
#pragma once

#include <cstdint>
#include <vector>

#include "warpwright/model/parts.h"

namespace warpwright::model {

/// A of an MMA, of one CTA, as floats: out[row * k + k].
void read_a_in_tmem(const atom::UmmaAtom& atom, const Operand& operand, float* out);

/// c (+)= a * b with the scales of this CTA: its rows of A, all rows of B. Row-major, b as k x n.
void multiply_by_scales(const TensorOp& op, Tmem& tmem, const std::vector<float>& a,
                        const std::vector<float>& b, std::vector<float>& c);

/// A tcgen05.cp is carried out, or a tcgen05.shift.
void copy_to_tmem(const TensorOp& op);
void shift_rows(const TensorOp& op);

}  // namespace warpwright::model
