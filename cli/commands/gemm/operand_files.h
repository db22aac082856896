// Tensors of files on their way into a product: what is legal, which types are multiplied, and how
// values get there.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/files/tensor_file.h"
#include "warpwright/plan/product/problem.h"

namespace warpwright::cli {

using Extents = std::vector<std::int64_t>;

/// Does an argument name a tensor in a file? Decides where words and numbers are legal too.
bool names_file(const std::string& text);

/// Reads a tensor; a refusal begins with `name`.
HostTensor read_named(const std::string& name, const std::string& spec);

/// Reads a tensor that has one of these shapes, where dimensions of 1 do not matter, and gives it
/// that shape. Throws InputError.
HostTensor read_shaped(const std::string& name, const std::string& spec,
                       const std::vector<Extents>& legal);

/// Refuses a tensor of a type that is not multiplied. `what` names it and its file.
void require_operand_type(const std::string& what, const HostTensor& tensor);

/// Refuses scales of another type than f32.
void take_as_f32(const std::string& name, HostTensor& tensor);

/// What two matrices of these types are multiplied as when nobody says: the type of both, or of
/// each where both have 8 bits; else bf16.
std::pair<DType, DType> types_of_files(DType a, DType b);

/// The type of a result when nobody says.
DType natural_result(DType operand);

/// Rounds a tensor to `type`; says on `err` what the user may not expect of it.
void round_to(HostTensor& tensor, DType type, const char* name, std::ostream& err);

/// The bytes of a tensor of this shape once it has `type`; 0 where there is none.
double bytes_as(const HostTensor& tensor, DType type);

}  // namespace warpwright::cli
