#include "cli/commands/gemm/operand_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "warpwright/numeric/float_format.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

std::string name_of(DType t) {
  return std::string(numeric::word(t));
}

// The dimensions that are not 1.
Extents squeezed(Extents shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

// The number of infinite elements.
std::int64_t infinities(const HostTensor& t) {
  const std::int64_t count = t.elements();
  std::int64_t found = 0;
  if (t.dtype == DType::f32 || t.dtype == DType::tf32) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::uint32_t code = 0;
      std::memcpy(&code, t.bytes.data() + i * 4, 4);
      found += (code & 0x7fffffffU) == 0x7f800000U ? 1 : 0;
    }
    return found;
  }
  const unsigned infinity = t.dtype == DType::f16 ? 0x7c00U : 0x7f80U;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, t.bytes.data() + i * 2, 2);
    found += (code & 0x7fffU) == infinity ? 1 : 0;
  }
  return found;
}

// The number of elements beyond the largest number of an 8-bit type.
std::int64_t beyond(const HostTensor& t, DType type) {
  const HostTensor wide = convert(t, DType::f32);
  const bool is_integer = type == DType::s8;
  const auto largest = is_integer ? 127.0F : static_cast<float>(numeric::format_of(type).max());
  const float lowest = is_integer ? -128.0F : -largest;
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < wide.elements(); ++i) {
    float x = 0;
    std::memcpy(&x, wide.bytes.data() + i * 4, 4);
    found += x > largest || x < lowest ? 1 : 0;
  }
  return found;
}

}  // namespace

bool names_file(const std::string& text) {
  return text.find(".npy") != std::string::npos || text.find(".safetensors") != std::string::npos;
}

HostTensor read_named(const std::string& name, const std::string& spec) {
  try {
    return read_tensor(spec);
  } catch (const InputError& refusal) {
    throw InputError(as_tensor(name) + ": " + refusal.sentence(), refusal.code());
  }
}

HostTensor read_shaped(const std::string& name, const std::string& spec,
                       const std::vector<Extents>& legal) {
  HostTensor tensor = read_named(name, spec);
  std::string shapes;
  for (const Extents& shape : legal) {
    if (squeezed(tensor.shape) == squeezed(shape)) {
      tensor.shape = shape;
      return tensor;
    }
    shapes += (shapes.empty() ? "" : ", or ") + shape_text(shape);
  }
  throw InputError(as_tensor(name) + " (" + spec + ") is " + shape_text(tensor.shape) + "; " +
                   as_rule("for these matrices it must be ", shapes) + ".");
}

void require_operand_type(const std::string& what, const HostTensor& tensor) {
  // tf32 are read as f32.
  const auto is_read = [](DType t) {
    return is_result_type(t) || (is_operand_type(t) && t != DType::tf32);
  };
  const DType t = tensor.dtype;
  if (is_read(t)) return;
  throw InputError(
      what + " is " + name_of(t) + "; " +
      as_rule("matrices of ", listed(all_types, is_read, ", ", " and "), " are multiplied") +
      ": the nearest is " + as_nearest("bf16") + ".");
}

void take_as_f32(const std::string& name, HostTensor& tensor) {
  if (tensor.dtype == DType::bf16 || tensor.dtype == DType::f16)
    tensor = convert(tensor, DType::f32);
  if (tensor.dtype == DType::f32) return;
  throw InputError(as_tensor(name) + " is " + name_of(tensor.dtype) + "; " +
                   as_rule("scales are f32, or bf16 and fp16, which f32 holds") + ".");
}

std::pair<DType, DType> types_of_files(DType a, DType b) {
  if ((a == b && a != DType::f32) || (is_8bit_float(a) && is_8bit_float(b))) return {a, b};
  return {DType::bf16, DType::bf16};
}

DType natural_result(DType operand) {
  if (operand == DType::tf32) return DType::f32;
  return numeric::bits(operand) <= 8 ? DType::bf16 : operand;
}

void round_to(HostTensor& tensor, DType type, const char* name, std::ostream& err) {
  if (tensor.dtype == type) return;
  HostTensor rounded = convert(tensor, type);
  const bool widens = numeric::is_8bit(tensor.dtype) && !numeric::is_8bit(type);
  if (tensor.dtype != DType::f32 && numeric::bits(type) != 32 && !widens) {
    err << "note: " << name << " is " << name_of(tensor.dtype) << " in its file and is rounded to "
        << name_of(type) << ".\n";
  }
  const bool saturates = numeric::is_8bit(type);
  const std::int64_t lost = saturates ? beyond(tensor, type)
                            : widens  ? 0
                                      : infinities(rounded) - infinities(tensor);
  if (lost > 0) {
    err << "note: " << lost << (lost == 1 ? " element" : " elements") << " of " << name
        << " beyond the largest " << name_of(type)
        << (saturates ? " became that.\n" : " became infinite.\n");
  }
  tensor = std::move(rounded);
}

double bytes_as(const HostTensor& t, DType type) {
  double bytes = numeric::bits(type) / 8.0;
  for (const std::int64_t extent : t.shape) bytes *= static_cast<double>(extent);
  return t.shape.empty() ? 0 : bytes;
}

}  // namespace warpwright::cli
