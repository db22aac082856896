// What quantising on the host has in common for scales of float32 and for scales of blocks.
// Internal to device/.
#pragma once

#include <vector>

#include "warpwright/device/quantise.h"

namespace warpwright {

/// A row's elements from `first` on, as floats.
void widen_row(const MatrixView& x, std::int64_t row, std::int64_t first, std::vector<float>& out);
/// The largest finite magnitude, of some values and of all of x.
float largest_of(const std::vector<float>& values);
float largest_of(const MatrixView& x);

/// What is asked of Scaling::block_scaled beyond shapes and memory of x and the codes.
std::optional<Refusal> micro_fault(const Quantisation& q);
/// For the other modes: what is only for block_scaled must be left out.
std::optional<Refusal> plain_fault(const Quantisation& q);
/// A quantisation of block_scaled without fault.
void quantise_micro_on_host(const Quantisation& q);

}  // namespace warpwright
