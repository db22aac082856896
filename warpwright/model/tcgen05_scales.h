// The scales of block-scaled MMAs in tensor memory, and the copies that bring them there. Internal
// to model/.
#pragma once

#include <cstdint>
#include <vector>

#include "warpwright/model/parts.h"

namespace warpwright::model {

/// An MMA is issued: its scales lie in allocated columns that something has written and that D,
/// `accumulator`, does not share; and its reads are proved to be ordered, as operation `number`.
void take_scales(const TensorOp& op, Cta& cta, const TmemRegion& accumulator, std::uint32_t number);

/// c (+)= a * b with the scales of this CTA: its rows of A, all rows of B. Row-major, b as k x n.
void multiply_by_scales(const TensorOp& op, Tmem& tmem, const std::vector<float>& a,
                        const std::vector<float>& b, std::vector<float>& c);

/// A tcgen05.cp is carried out.
void copy_to_tmem(const TensorOp& op);

}  // namespace warpwright::model
