// Operands of files that are codes and scales already, in a format whose scales the tensor core
// multiplies.
#pragma once

#include <optional>
#include <ostream>
#include <string>

#include "cli/commands/gemm/gemm_job.h"

namespace warpwright::cli {

/// The codes of A or B that `spec` names: F8_E4M3 or F8_E5M2, F6_E2M3 or F6_E3M2, F4, or bytes,
/// which elements of 4 and 6 bits fill densely. The shape counts elements. Throws InputError.
HostTensor read_codes_as(const std::string& name, const std::string& spec,
                         const MicroFormat& format);

/// The scales of A or B that `spec` names: row by row, a row for each of the operand's, or in
/// tiles, of any shape that has as many bytes; `layout`, "linear" or "tiles", says which where the
/// two are alike, and linear is meant where nothing says it. Refuses NaN. Throws InputError.
ScalesOfFile read_scales_as(const GemmJob& job, bool of_a, const std::string& spec,
                            const std::string& layout);

/// Those that `warpwright pack` wrote beside the codes `spec`, in tiles; nothing where it did not.
/// Throws InputError, also where the codes were packed in another format.
std::optional<ScalesOfFile> packed_scales(const std::string& name, const std::string& spec,
                                          const MicroFormat& format);
/// The factor that it wrote beside them, the same for all matrices; nothing where there is none.
std::optional<float> packed_alpha(const std::string& name, const std::string& spec);
/// Refuses tiles that are not those of the job's A or B, or hold NaN. Throws InputError.
void check_packed_scales(const GemmJob& job, bool of_a, const std::string& spec);

/// Notes that a file has scales beside codes of fp8 that are multiplied without any.
void note_scales_beside(const GemmOptions& options, const GemmJob& job, std::ostream& err);

/// What the user should know of scales that were put into tiles.
void tell_scales(const GemmJob& job, std::ostream& err);

}  // namespace warpwright::cli
