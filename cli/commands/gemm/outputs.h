// What a command may write to: not over what it reads, and no file of another kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// Refuses `path` of `option` where its ending is none of these (".svg"). A name without an ending
/// is taken as it is. Throws InputError.
void check_ending(const std::string& option, const std::string& path,
                  const std::vector<std::string_view>& endings);

/// Refuses what `option` names, a file or a tensor in one, where it is a tensor that the product
/// reads. Another tensor of the same .safetensors file is none. Throws InputError.
void check_not_read(const GemmOptions& product, const std::string& option, const std::string& spec);

/// A file that a command writes where its path is given.
struct Output {
  const char* option;
  const char* what;  ///< "The picture"
  std::string path;
  std::vector<std::string_view> endings;
};

/// Finds out before the work what would keep these files from being written after it, and whether
/// one of them would be written over another, or over a tensor that the product reads if there is
/// one. Throws InputError.
void check_outputs(const std::vector<Output>& outputs, const GemmOptions* product = nullptr);

}  // namespace warpwright::cli
