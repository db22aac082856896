// The tensor memory of a kernel of sm_100 as a picture.
#pragma once

#include <string>

#include "warpwright/pictures/picture.h"
#include "warpwright/plan/families/tensor_memory.h"

namespace warpwright::pictures {

/// Its lanes and columns with accumulators and scales; and where there are scales, what each column
/// of those of a stage holds and which k_block takes it.
Picture tmem_picture(const std::string& kernel, const TmemMap& map);

}  // namespace warpwright::pictures
