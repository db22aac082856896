#include "cli/files/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string_view>

namespace warpwright::cli {
namespace {

using weights::LayoutNames;

std::string with(const std::string& stem, std::string_view suffix) {
  return stem + std::string(suffix);
}

bool is_float(const TensorFacts& t) {
  return t.dtype == DType::f32 || t.dtype == DType::f16 || t.dtype == DType::bf16;
}

bool is_matrix(const TensorFacts& t) {
  return t.shape.size() == 2 || t.shape.size() == 3;
}

// gpt-oss has the 16 bytes of a block along a dimension of their own.
bool has_blocks(const LayoutNames& names) {
  return names.layout.starts_with("gpt-oss");
}
bool are_codes(const TensorFacts& t, const LayoutNames& names) {
  if (!has_blocks(names)) return is_matrix(t);
  return (t.shape.size() == 3 || t.shape.size() == 4) && t.shape.back() == 16;
}

// Do types and companions say it too? Asked of scales of blocks, whose names others have as well.
bool is_micro_of(const SafetensorsFile& file, const std::string& stem, const LayoutNames& names) {
  const auto type = [&](std::string_view suffix) {
    const TensorFacts* const t = file.find(with(stem, suffix));
    return t == nullptr ? std::nullopt : t->dtype;
  };
  const auto codes = type(names.codes);
  const auto scales = type(names.scales);
  const MicroFormat& format = *names.format;
  const bool nvf4 = format.scale == DType::ue4m3;
  if (format.element == DType::e4m3) {  // with a scale for each 128 x 128
    return codes == DType::e4m3 &&
           (scales == DType::f32 || scales == DType::bf16 || scales == DType::ue8m0);
  }
  // Without the scale of the tensor too: no other layout has such scales, and its reader tells what
  // is missing.
  return (codes == DType::u8 || codes == DType::s8 || codes == DType::e2m1) &&
         (nvf4 ? scales == DType::e4m3 : scales == DType::u8 || scales == DType::ue8m0);
}

// What stands in front of the layout's own part of the names, where the file has such tensors.
std::optional<std::string> stem_of(const SafetensorsFile& file, const std::string& name,
                                   const LayoutNames& names) {
  std::vector<std::string> stems = {name};
  if (names.codes.empty()) {
    stems.push_back(name + ".weight");
  } else if (name.ends_with(names.codes)) {
    stems.push_back(name.substr(0, name.size() - names.codes.size()));
  }
  for (const std::string& stem : stems) {
    const TensorFacts* codes = file.find(with(stem, names.codes));
    if (codes != nullptr && are_codes(*codes, names) && !is_float(*codes) &&
        file.find(with(stem, names.scales)) != nullptr) {
      return stem;
    }
  }
  return std::nullopt;
}

std::optional<std::string> float_of(const SafetensorsFile& file, const std::string& name) {
  for (const std::string& tensor : {name, name + ".weight"}) {
    const TensorFacts* t = file.find(tensor);
    if (t != nullptr && is_matrix(*t) && is_float(*t)) return tensor;
  }
  return std::nullopt;
}

bool are_all(const HostTensor& words, int byte) {
  return std::all_of(words.bytes.begin(), words.bytes.end(),
                     [byte](std::byte b) { return b == static_cast<std::byte>(byte); });
}

// GPTQ's two versions differ only in the zero points. Those of symmetric weights tell: 8, which
// version 1 stores as 7. Where they are of another width, or not there, the reader says so.
std::string gptq_version(const SafetensorsFile& file, const std::string& stem,
                         const LayoutNames& names) {
  const std::string zeros = with(stem, names.zeros);
  const TensorFacts* const facts = file.find(zeros);
  if (facts == nullptr || facts->shape.empty() ||
      8 * facts->shape.back() != file.find(with(stem, names.codes))->shape.back()) {
    return "gptq";
  }
  const HostTensor words = file.read(zeros);
  if (are_all(words, 0x77)) return "gptq";
  if (are_all(words, 0x88)) return "gptq-v2";
  throw FileError("The zero points " + in_quotes(zeros) + " of " + file.path() +
                  " do not tell which version of GPTQ wrote them: " +
                  as_rule("give --from gptq (its usual form, stored less 1) or --from gptq-v2") +
                  ".");
}

// What of a layout's names says the weights' shape, as two or three integers; or "".
std::string_view shape_name(const LayoutNames& names) {
  if (names.layout == "compressed-tensors") return ".weight_shape";
  if (names.layout == "compressed-tensors-experts") return "_shape";
  return {};
}

// The layout of the first tensors that fit `name`; empty where none do.
std::string guess(const SafetensorsFile& file, const std::string& name) {
  for (const LayoutNames& names : weights::layouts()) {
    const auto stem = stem_of(file, name, names);
    if (!stem) continue;
    if (names.format != nullptr) {
      if (is_micro_of(file, *stem, names)) return std::string(names.layout);
      continue;
    }
    const TensorFacts& codes = *file.find(with(*stem, names.codes));
    const TensorFacts& scales = *file.find(with(*stem, names.scales));
    const bool is_row = names.scales.ends_with("_scale") && codes.shape.size() == 2 &&
                        scales.shape == std::vector{codes.shape.front()};
    if (codes.shape.size() != scales.shape.size() && !is_row) continue;
    const bool is_byte = codes.dtype == DType::u8 || codes.dtype == DType::s8;
    if (is_byte != names.codes.empty()) continue;
    if (names.codes == ".qweight") {
      // AWQ has eight columns in a word, GPTQ eight rows.
      if (codes.shape.back() != scales.shape.back()) return "awq";
      return gptq_version(file, *stem, names);
    }
    // 8-bit weights look alike: they are I8, or have one scale a row.
    if (names.layout == "int4" &&
        (codes.dtype == DType::s8 || scales.shape.back() == 1 || is_row)) {
      continue;
    }
    // So do codes of 8 bits in words, but for their shape.
    if (!shape_name(names).empty() && file.find(with(*stem, shape_name(names))) == nullptr)
      continue;
    return std::string(names.layout);
  }
  return {};
}

// What --scaling calls scales of this shape.
std::string scaling_word(const TensorFacts& codes, const TensorFacts& scales) {
  std::int64_t count = 1;
  for (const std::int64_t extent : scales.shape) count *= extent;
  if (count == 1) return "tensor";
  return count == codes.shape[codes.shape.size() - 2] ? "row-column" : "blockwise";
}

// Why weights that are there under `name`, or with the usual ends behind it, are none that can be
// packed unasked; empty where that is not known.
std::string why_not(const SafetensorsFile& file, const std::string& name) {
  for (const char* const end : {"", ".weight", ".weight_packed", "_packed"}) {
    const TensorFacts* const codes = file.find(name + end);
    if (codes == nullptr || !is_matrix(*codes)) continue;
    const std::string what =
        in_quotes(codes->name) + " is " + codes->type + " " + shape_text(codes->shape);
    const TensorFacts* const scales = scales_beside(file, codes->name);
    const std::string beside = scales == nullptr
                                   ? ""
                                   : " beside " + in_quotes(scales->name) + ", " + scales->type +
                                         " " + shape_text(scales->shape);
    if (codes->dtype == DType::e4m3 || codes->dtype == DType::e5m2) {
      const std::string at = file.path() + ":";
      std::string command = "gemm --a TOKENS --scale-a THEIRS --b " + at + codes->name;
      if (scales != nullptr) {
        command +=
            " --scale-b " + at + scales->name + " --scaling " + scaling_word(*codes, *scales);
      }
      return what + beside + ": " +
             sentence_of(as_rule("fp8 needs no packing, so multiply it by `warpwright ", command,
                                 "`, with tokens and scales as wp.quantise makes them"))
                 .reason;
    }
    const bool is_byte = codes->dtype == DType::s8 || codes->dtype == DType::u8;
    const bool is_word = codes->dtype == DType::s32;
    if (scales == nullptr || !(is_byte || is_word)) continue;
    return what + beside + (is_word ? ", without their shape" : "") +
           ", which codes of 8 bits may have as well, and these are not packed: " +
           sentence_of(as_rule("if they have 4 bits, give --from ",
                               is_byte                              ? "int4"
                               : std::string_view(end) == "_packed" ? "compressed-tensors-experts"
                                                                    : "compressed-tensors"))
               .reason;
  }
  return {};
}

// The names that `pattern` stands for: itself, or one for each number of an expert.
std::vector<std::string> names_of_experts(const SafetensorsFile& file, const std::string& pattern) {
  std::size_t at = pattern.find("{}");
  const std::size_t star = pattern.find('*');
  const std::size_t width = at == std::string::npos ? 1 : 2;
  if (at == std::string::npos) at = star;
  if (at == std::string::npos) return {pattern};
  const std::string before = pattern.substr(0, at);
  const std::string behind = pattern.substr(at + width);
  if (behind.find('*') != std::string::npos || behind.find("{}") != std::string::npos ||
      (width == 2 && star != std::string::npos)) {
    throw FileError("The name " + in_quotes(pattern) +
                    " has two places for the numbers of experts, where one is possible.");
  }
  file.require_all_files();
  std::set<std::int64_t> numbers;
  for (const TensorFacts& t : file.tensors()) {
    if (!t.name.starts_with(before)) continue;
    std::size_t end = before.size();
    while (end < t.name.size() && std::isdigit(static_cast<unsigned char>(t.name[end])) != 0) ++end;
    const std::size_t digits = end - before.size();
    if (digits == 0 || digits > 6 || !std::string_view(t.name).substr(end).starts_with(behind)) {
      continue;
    }
    numbers.insert(std::stoll(t.name.substr(before.size(), digits)));
  }
  if (numbers.empty()) {
    throw FileError(file.path() + " holds no tensor whose name begins with " +
                    in_quotes(before + "0" + behind) + ".");
  }
  const auto last = *numbers.rbegin();
  for (std::int64_t i = 0; i <= last; ++i) {
    if (numbers.contains(i)) continue;
    throw FileError(file.path() + " has no expert " + std::to_string(i) + " of " +
                    in_quotes(pattern) + ", and the last one is " + std::to_string(last) + ": " +
                    as_rule("the numbers of experts go from 0 on without a gap") + ".");
  }
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const std::int64_t i : numbers) {
    names.push_back(before);
    names.back() += std::to_string(i);
    names.back() += behind;
  }
  return names;
}

// The weights of a file in which no name was chosen.
std::string only_name(const SafetensorsFile& file) {
  std::vector<std::string> quantised;
  std::vector<std::string> floats;
  for (const TensorFacts& t : file.tensors()) {
    if (is_float(t) && is_matrix(t)) floats.push_back(t.name);
    std::string name;
    for (const LayoutNames& names : weights::layouts()) {
      if (!name.empty() || names.codes.empty() || !t.name.ends_with(names.codes)) continue;
      const std::string stem = t.name.substr(0, t.name.size() - names.codes.size());
      if (!stem_of(file, stem, names)) continue;
      if (names.format == nullptr || is_micro_of(file, stem, names)) name = stem;
    }
    const bool is_byte = t.dtype == DType::u8 || t.dtype == DType::s8;
    if (name.empty() && is_byte && !guess(file, t.name).empty()) name = t.name;
    if (!name.empty()) quantised.push_back(name);
  }
  const std::vector<std::string>& found = quantised.empty() ? floats : quantised;
  if (found.size() == 1) return found.front();
  if (found.empty()) throw FileError(file.path() + " holds no weights that can be packed.");
  throw FileError(file.path() + " holds " + std::to_string(found.size()) +
                  " tensors of weights, one must be chosen: " +
                  as_rule("write ", file.path(), ":", found.front(), " or another") + ".");
}

MatrixView view_of(HostTensor& tensor, const std::string& name, bool is_vector,
                   bool blocks = false) {
  std::vector<std::int64_t>& shape = tensor.shape;
  if (blocks && shape.size() > 2) {
    const std::int64_t bytes = shape.back();
    shape.pop_back();
    shape.back() *= bytes;
  }
  const std::size_t rank = shape.size() + (is_vector ? 1 : 0);
  if (rank != 2 && rank != 3) {
    throw FileError(
        "The tensor " + in_quotes(name) + " is " + shape_text(shape) + "; " +
        as_rule("it must be ", (is_vector ? "a vector" : "a matrix"), ", or one for each expert") +
        ".");
  }
  const std::int64_t columns = shape.back();
  const std::int64_t rows = is_vector ? 1 : shape[shape.size() - 2];
  return {tensor.bytes.data(),           tensor.dtype,  rows, columns, columns, 1,
          rank == 3 ? shape.front() : 1, rows * columns};
}

// The scales of tensors: one number, or one for each expert.
MatrixView scalars_of(HostTensor& tensor) {
  const std::int64_t count = tensor.elements();
  return {tensor.bytes.data(), tensor.dtype, 1, 1, 1, 1, count, 1};
}

// K of the weights, of a tensor that says their shape: N and K, of experts perhaps with their
// number in front. The codes must be for as many rows.
std::int64_t depth_of(const SafetensorsFile& file, const std::string& name,
                      const MatrixView& codes) {
  const HostIntegers shape = file.read_integers(name);
  const std::vector<std::int64_t>& v = shape.values;
  const bool fits = (v.size() == 2 || (v.size() == 3 && v[0] == codes.batch)) &&
                    v[v.size() - 2] == codes.rows && v.back() > 0 &&
                    (v.back() + 7) / 8 == codes.columns;
  if (fits) return v.back();
  throw FileError("The tensor " + in_quotes(name) + " of " + file.path() + " says " +
                  shape_text(v) + ", and as 4 bits the codes are " + std::to_string(codes.rows) +
                  "x" + std::to_string(8 * codes.columns) + ": " +
                  as_rule("weights of 4 bits are packed") + ".");
}

// Zero points that the layout does not have are never left out.
void refuse_other_zeros(const SafetensorsFile& file, const std::string& stem,
                        const LayoutNames& names) {
  for (const char* const part : {".weight_", "_", "."}) {
    for (const char* const end : {"zero_point", "zero_points", "zeros", "qzeros", "zp"}) {
      const std::string name = stem + part + end;
      if (file.find(name) == nullptr || name == with(stem, names.zeros)) continue;
      throw FileError(
          "The weights " + in_quotes(stem) + " of " + file.path() + " have zero points, " +
          in_quotes(name) + ", and layout " + std::string(names.layout) + " has none" +
          (names.zeros.empty() ? "" : " of that name") + ": " +
          as_rule("zero points are read in layouts compressed-tensors, gptq and awq") + ".");
    }
  }
}

// Each byte of codes of 4 bits holds two: small numbers everywhere are codes one a byte.
void refuse_one_a_byte(const std::string& name, const HostTensor& codes) {
  bool any = false;
  for (const std::byte byte : codes.bytes) {
    const auto value = static_cast<std::int8_t>(byte);
    if (value < -8 || value > 15) return;
    any = any || value != 0;
  }
  if (!any) return;
  throw FileError(
      "All bytes of the tensor " + in_quotes(name) + " are -8 to 15, so it has a code a byte: " +
      as_rule("codes of 4 bits are packed two a byte, the even k in the low bits") + ".");
}

// Numbers of 16 bits as float32, which holds them.
void widen(HostTensor& tensor) {
  if (tensor.dtype == DType::bf16 || tensor.dtype == DType::f16)
    tensor = convert(tensor, DType::f32);
}

// Each matrix with its rows as columns. `tensor` has two dimensions or more.
HostTensor transposed(HostTensor tensor) {
  std::vector<std::int64_t>& shape = tensor.shape;
  std::vector<std::size_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);
  }
  std::swap(shape.end()[-1], shape.end()[-2]);
  std::swap(strides.end()[-1], strides.end()[-2]);
  const auto size = static_cast<std::size_t>(numeric::bits(tensor.dtype) / 8);
  tensor.bytes = row_major(tensor.bytes, shape, strides, size);
  return tensor;
}

}  // namespace

const TensorFacts* scales_beside(const SafetensorsFile& file, const std::string& codes) {
  const auto stem_before = [&](std::string_view end) {
    return codes.ends_with(end) ? codes.substr(0, codes.size() - end.size()) : "";
  };
  const std::string weight = stem_before(".weight");
  const std::string packed = stem_before("_packed");
  for (const auto& [stem, end] : {std::pair{codes, "_scale_inv"}, std::pair{codes, "_scale"},
                                  std::pair{weight, ".scale"}, std::pair{packed, "_scale"}}) {
    const TensorFacts* const found = stem.empty() ? nullptr : file.find(stem + end);
    if (found != nullptr) return found;
  }
  return nullptr;
}

FoundWeights find_weights(const SafetensorsFile& file, const std::string& name,
                          const std::string& from) {
  FoundWeights found{name.empty() ? only_name(file) : name, from, {}};
  const std::vector<std::string> names = names_of_experts(file, found.name);
  if (from.empty()) found.layout = guess(file, names.front());
  found.k_by_n = from == kKByN;
  if (from == "bf16" || found.k_by_n) found.layout.clear();
  const LayoutNames* layout = weights::layout_named(found.layout);
  found.is_micro = layout != nullptr && layout->format != nullptr;
  for (const std::string& each : names) {
    const auto stem = layout == nullptr ? float_of(file, each) : stem_of(file, each, *layout);
    if (stem) {
      found.stems.push_back(*stem);
      continue;
    }
    if (layout != nullptr) {
      const bool is_tensor = !layout->codes.empty() && each.ends_with(layout->codes);
      const std::string start =
          is_tensor ? each.substr(0, each.size() - layout->codes.size()) : each;
      throw FileError(file.path() + " holds no weights " + in_quotes(each) + " in layout " +
                      found.layout + ", whose tensors would be " +
                      in_quotes(with(start, layout->codes)) + " and " +
                      in_quotes(with(start, layout->scales)) + file.missing_words() + ".");
    }
    if (from.empty()) {
      if (const std::string why = why_not(file, each); !why.empty()) {
        throw FileError("In " + file.path() + " " + why + ".");
      }
    }
    const TensorFacts* there = file.find(each);
    throw FileError(
        file.path() + " holds no weights " + in_quotes(each) + " that can be packed" +
        (there == nullptr
             ? std::string()
             : " (there is such a tensor, " + there->type + " " + shape_text(there->shape) + ")") +
        ": " + as_rule("give their layout by --from, or the name of a matrix of BF16, F16 or F32") +
        file.missing_words() + ".");
  }
  return found;
}

LoadedWeights load_weights(const SafetensorsFile& file, const FoundWeights& found) {
  LoadedWeights loaded;
  loaded.memory.reserve(6 * found.stems.size());  // views point to what lies there
  const auto view = [&](const std::string& name, bool is_vector = false) {
    loaded.memory.push_back(file.read(name));
    return view_of(loaded.memory.back(), name, is_vector);
  };
  const LayoutNames* layout = weights::layout_named(found.layout);
  for (const std::string& stem : found.stems) {
    if (layout == nullptr) {
      loaded.memory.push_back(file.read(stem));
      if (found.k_by_n) loaded.memory.back() = transposed(std::move(loaded.memory.back()));
      loaded.floats.push_back(view_of(loaded.memory.back(), stem, false));
      continue;
    }
    const auto optional_view = [&](std::string_view suffix, bool is_vector) {
      const std::string name = with(stem, suffix);
      if (suffix.empty() || file.find(name) == nullptr) return MatrixView{};
      return view(name, is_vector);
    };
    weights::CheckpointTensors t;
    loaded.memory.push_back(file.read(with(stem, layout->codes)));
    t.codes = view_of(loaded.memory.back(), with(stem, layout->codes), false, has_blocks(*layout));
    t.stem = stem;
    refuse_other_zeros(file, stem, *layout);
    if (layout->codes.empty()) refuse_one_a_byte(stem, loaded.memory.back());
    loaded.memory.push_back(file.read(with(stem, layout->scales)));
    HostTensor& scales = loaded.memory.back();
    if (t.codes.dtype == DType::e4m3) widen(scales);
    // A number for each row.
    if (scales.shape == std::vector{t.codes.rows} && t.codes.batch == 1) scales.shape.push_back(1);
    t.scales = view_of(scales, with(stem, layout->scales), false);
    t.zeros = optional_view(layout->zeros, false);
    t.group_index = optional_view(layout->group_index, true);
    if (!layout->tensor_scale.empty() && file.find(with(stem, layout->tensor_scale)) != nullptr) {
      loaded.memory.push_back(file.read(with(stem, layout->tensor_scale)));
      t.tensor_scale = scalars_of(loaded.memory.back());
    }
    const std::string shape = with(stem, shape_name(*layout));
    if (shape != stem && file.find(shape) != nullptr) t.k = depth_of(file, shape, t.codes);
    loaded.tensors.push_back(t);
  }
  return loaded;
}

std::string note_of(const SafetensorsFile& file, const FoundWeights& found,
                    const LoadedWeights& loaded) {
  const std::string& stem = found.stems.front();
  const bool is_gate_up =
      stem.find("gate_up") != std::string::npos || stem.find("mlp1") != std::string::npos;
  if (found.layout.starts_with("gpt-oss") && is_gate_up) {
    return "the rows of " + in_quotes(found.name) +
           " alternate, a gate's and an up's: give gate_up=\"interleaved\" (--gate-up) where they "
           "are multiplied; what is packed by --for has all gates first and then all ups, so put "
           "the rows in that order before";
  }
  const TensorFacts* const floats = found.layout.empty() ? file.find(stem) : nullptr;
  if (floats != nullptr && floats->shape.size() == 3 && !found.k_by_n &&
      (is_gate_up || stem.find("down_proj") != std::string::npos)) {
    return in_quotes(found.name) + " is read as " + shape_text(floats->shape) +
           ", experts x N x K; some modules (gpt-oss's in transformers) keep floats as experts x K "
           "x N: --from bf16-kn reads those";
  }
  if (found.layout == "gptq" && !loaded.tensors.empty()) {
    const auto stored_8 = [](const weights::CheckpointTensors& t) {
      const auto* const bytes = static_cast<const std::byte*>(t.zeros.data);
      return bytes != nullptr && std::all_of(bytes, bytes + 4 * t.zeros.rows * t.zeros.columns,
                                             [](std::byte b) { return b == std::byte{0x88}; });
    };
    if (std::all_of(loaded.tensors.begin(), loaded.tensors.end(), stored_8)) {
      return "all zero points of " + in_quotes(found.name) +
             " are stored as 8 and were read as 9, as layout gptq has it: those of symmetric "
             "weights are 8, which --from gptq-v2 reads";
    }
  }
  return {};
}

}  // namespace warpwright::cli
