// What a command may write to: not over what it reads, and no file of another kind.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// The sentence for `path` of `option` where that is the file of another option.
std::string over_other(const std::string& option, const std::string& path,
                       const std::string& other);

/// Refuses `path` of `option` where its ending is none of these (".svg"). A name without an ending
/// is taken as it is. Throws InputError.
void check_ending(const std::string& option, const std::string& path,
                  std::initializer_list<std::string_view> endings);

/// Refuses what `option` names, a file or a tensor in one, where it is a tensor that the product
/// reads. Another tensor of the same .safetensors file is none. Throws InputError.
void check_not_read(const GemmOptions& product, const std::string& option, const std::string& spec);

}  // namespace warpwright::cli
