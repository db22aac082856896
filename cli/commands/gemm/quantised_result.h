// A D that is quantised as files have it: codes with their scales.
#pragma once

#include <string>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// The values of such a D, codes times scales, as f32: for files that have no codes. The job has
/// the scales.
HostTensor values_of(const GemmJob& job, HostTensor& d);

/// Writes the codes under the name of `spec`, a tensor of a .safetensors file, and beside them the
/// scales, and the scale of all of D where there is one, under the names that `warpwright pack`
/// gives such: a next product reads them as its A. Throws InputError.
void write_quantised(const GemmJob& job, const HostTensor& d, const std::string& spec);

/// Refuses names beside that of `spec` that cannot be written. Throws InputError.
void check_quantised(const GemmJob& job, const std::string& spec);

}  // namespace warpwright::cli
