#include "cli/commands/unpack_command.h"

#include <cstring>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include "cli/commands/gemm/run.h"
#include "cli/files/output_file.h"
#include "cli/files/packed_file.h"
#include "cli/files/safetensors.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/weights/pack.h"

namespace warpwright::cli {
namespace {

using TensorShape = std::vector<std::int64_t>;

// The tensors of a layout, behind the stem of their names.
struct Unpacked {
  const char* layout = "";
  std::vector<std::pair<std::string, HostTensor>> tensors;

  void add(std::string suffix, DType type, TensorShape shape, std::vector<std::byte> bytes) {
    tensors.emplace_back(std::move(suffix), HostTensor{type, std::move(shape), std::move(bytes)});
  }
};

// With the number of experts in front, where there are several.
TensorShape shape_with_experts(const packed::Extents& e, TensorShape shape) {
  if (e.experts > 1) shape.insert(shape.begin(), e.experts);
  return shape;
}

// Four bits of `each` numbers as words of eight along their last axis of `length`, the first
// lowest.
template <class Code>
std::vector<std::byte> words_of_eight(std::int64_t rows, std::int64_t length, const Code& code) {
  const std::int64_t words = (length + 7) / 8;
  std::vector<std::byte> bytes(static_cast<std::size_t>(4 * rows * words));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t word = 0; word < words; ++word) {
      std::uint32_t bits = 0;
      for (std::int64_t i = 8 * word; i < length && i < 8 * word + 8; ++i) {
        bits |= (code(row, i) & 15U) << 4 * (i % 8);
      }
      std::memcpy(bytes.data() + 4 * (row * words + word), &bits, 4);
    }
  }
  return bytes;
}

// With zero points: words of eight codes along K, and of eight zero points along N.
Unpacked with_zero_points(weights::PlainWeights w) {
  const packed::Extents e = w.extents;
  const std::int64_t groups = e.k / w.group;
  Unpacked u{"compressed-tensors", {}};
  u.add(".weight_packed", DType::s32, shape_with_experts(e, {e.n, e.k / 8}),
        words_of_eight(e.experts * e.n, e.k, [&](std::int64_t row, std::int64_t k) {
          return static_cast<std::uint32_t>(code_of(w, 0, row, k) + 8);
        }));
  // Eight neighbours along N share a word, so their axis is the last one of these lines.
  const std::int64_t words = (e.n + 7) / 8;
  const auto lines =
      words_of_eight(e.experts * groups, e.n, [&](std::int64_t line, std::int64_t n) {
        const std::int64_t expert = line / groups;
        return static_cast<std::uint32_t>(zero_point_of(w, expert, n, line % groups * w.group));
      });
  std::vector<std::byte> zeros(lines.size());
  for (std::int64_t line = 0; line < e.experts * groups; ++line) {
    for (std::int64_t word = 0; word < words; ++word) {
      const std::int64_t to = (line / groups * words + word) * groups + line % groups;
      std::memcpy(zeros.data() + 4 * to, lines.data() + 4 * (line * words + word), 4);
    }
  }
  u.add(".weight_zero_point", DType::s32, shape_with_experts(e, {words, groups}), std::move(zeros));
  u.add(".weight_scale", w.scale, shape_with_experts(e, {e.n, groups}), std::move(w.scales));
  const std::int32_t shape[] = {static_cast<std::int32_t>(e.n), static_cast<std::int32_t>(e.k)};
  const auto bytes = std::as_bytes(std::span(shape));
  u.add(".weight_shape", DType::s32, {2}, {bytes.begin(), bytes.end()});
  return u;
}

Unpacked of_int4(weights::PlainWeights w) {
  if (!w.zeros.empty()) return with_zero_points(std::move(w));
  const packed::Extents e = w.extents;
  Unpacked u{"int4", {}};
  // As bytes: weights of 8 bits are I8.
  u.add("", DType::u8, shape_with_experts(e, {e.n, e.k / 2}), std::move(w.codes));
  u.add("_scale", w.scale, shape_with_experts(e, {e.n, e.k / w.group}), std::move(w.scales));
  return u;
}

Unpacked of_e2m1(weights::PlainWeights w, const std::vector<float>& factors) {
  const packed::Extents e = w.extents;
  if (w.scale == DType::ue8m0) {
    Unpacked u{"gpt-oss", {}};
    u.add("_blocks", DType::u8, shape_with_experts(e, {e.n, e.k / 32, 16}), std::move(w.codes));
    u.add("_scales", DType::u8, shape_with_experts(e, {e.n, e.k / 32}), std::move(w.scales));
    return u;
  }
  Unpacked u{"modelopt-nvfp4", {}};
  u.add(".weight", DType::u8, shape_with_experts(e, {e.n, e.k / 2}), std::move(w.codes));
  u.add(".weight_scale", DType::e4m3, shape_with_experts(e, {e.n, e.k / 16}), std::move(w.scales));
  std::vector<std::byte> bytes(4 * factors.size());
  std::memcpy(bytes.data(), factors.data(), bytes.size());
  u.add(".weight_scale_2", DType::f32,
        e.experts > 1 ? TensorShape{e.experts, 1, 1} : TensorShape{1}, std::move(bytes));
  return u;
}

int run_unpack(const UnpackOptions& o, std::ostream& out) {
  require_jobs(o.jobs);
  FileAndName to = parse_file_and_name(o.out);
  check_output_file("The unpacked weights", to.path);
  const PackedTensor packed = read_packed(o.in);
  if (to.name.empty()) to.name = parse_file_and_name(packed.name).name;
  const weights::Work work{o.jobs.value_or(0), {}};
  auto w = taken(weights::unpack(packed.tensor.bytes, work, packed.name));
  const Unpacked u = packed::has_float_codes(packed.header.format)
                         ? of_e2m1(std::move(w), packed.known_alphas())
                         : of_int4(std::move(w));
  std::vector<NamedTensor> written;
  for (const auto& [suffix, tensor] : u.tensors) {
    check_safetensors_output(to.path, to.name + suffix);
    written.push_back({to.name + suffix, &tensor});
  }
  write_safetensors(to.path, written);
  if (o.json) {
    nlohmann::ordered_json json = {{"file", to.path}, {"layout", u.layout}};
    for (const NamedTensor& each : written) json["tensors"].push_back(each.name);
    out << json_text(json);
    return 0;
  }
  out << printable(to.path) << ": layout " << u.layout << ", ";
  for (std::size_t i = 0; i < written.size(); ++i) {
    out << (i > 0 ? ", " : "") << printable(written[i].name) << " "
        << shape_text(written[i].tensor->shape);
  }
  out << "\n";
  return 0;
}

}  // namespace

int unpack_command(const UnpackOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] { return run_unpack(o, out); });
}

}  // namespace warpwright::cli
