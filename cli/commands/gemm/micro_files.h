// Codes and scales of block-scaled operands that lie in files, as `warpwright pack` writes them.
#pragma once

#include <string>

#include "cli/compute/block_scaled.h"
#include "cli/files/host_tensor.h"
#include "warpwright/facts/micro_format.h"

namespace warpwright::cli {

/// Reads the codes of an operand, `name`, of that format. Throws InputError.
HostTensor read_codes(const std::string& name, const std::string& spec, const MicroFormat& format);

/// Codes with the scales that `spec` names, in tiles of every matrix; `option` names them in
/// refusals. Throws InputError: for other types and shapes, and for scales that are NaN or
/// negative.
MicroTensor with_scales(const HostTensor& codes, const std::string& option, const std::string& spec,
                        const MicroFormat& format);

}  // namespace warpwright::cli
