// `warpwright pack` of weights with scales of blocks: those of checkpoints, and floats that are
// quantised to them.
#pragma once

#include <iosfwd>

#include "cli/commands/pack_command.h"
#include "cli/files/checkpoint.h"
#include "cli/files/packed_file.h"
#include "cli/files/tensor_file.h"

namespace warpwright::cli {

/// What the command writes where NAME is its output: codes NAME, scales in tiles NAME_scale, and
/// the factors of tensors NAME_alpha.
inline constexpr const char* kScaleSuffix = "_scale";

/// Refuses options that do not go with them, before any work; `to` is empty or a format's word.
void check_micro_options(const PackCommandOptions& options);

/// `--as fp8` of a tensor that is packed already: writes it and tells `out`. False where IN names
/// no row of bytes. Throws InputError.
bool pack_fp8_of_packed(const PackCommandOptions& options, const SafetensorsFile& file,
                        std::ostream& out);

/// The tensor of that name, or the only one of the file, where it may be a packed one; or null.
const TensorFacts* packed_name(const SafetensorsFile& file, const std::string& name);

/// Writes a packed tensor, beside it the factors `alpha` of a format that has these, and tells
/// `out` what it is.
PackedFormat write_packed(const FileAndName& to, const HostTensor& tensor, const HostTensor& alpha,
                          bool wants_json, std::ostream& out);

/// The packed tensor that `pack --for` would write of weights of a checkpoint (tokens may be left
/// open), or one that is packed already. Throws InputError.
PackedTensor load_packed_micro(const PackCommandOptions& options);

/// Packs what `found` names and writes it; tells `out` what it was.
void pack_micro(const PackCommandOptions& options, const SafetensorsFile& file,
                const FoundWeights& found, const std::string& path, const std::string& name,
                std::ostream& out);

}  // namespace warpwright::cli
