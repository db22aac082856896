#include "cli/commands/gemm/micro_files.h"

#include <algorithm>

#include "cli/commands/gemm/operand_files.h"
#include "cli/files/safetensors.h"
#include "cli/files/tensor_file.h"
#include "warpwright/device/scale_order.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

HostTensor read_any(const std::string& name, const std::string& spec) {
  const TensorSpec at = parse_spec(spec);
  if (at.kind != TensorSpec::Kind::safetensors) {
    throw InputError(as_tensor(name) + " (" + spec +
                     ") is of a type that .npy files do not have: " +
                     as_rule("give FILE.safetensors:NAME, as `warpwright pack` writes codes and "
                             "scales of blocks") +
                     ".");
  }
  const SafetensorsFile file(at.path);
  return file.read(at.tensor);
}

// What files call e4m3 are ue4m3 whose signs are 0; ue8m0 may be plain bytes.
bool is_type_of(DType stored, DType scale) {
  return scale == DType::ue4m3 ? stored == DType::e4m3
                               : stored == DType::ue8m0 || stored == DType::u8;
}

void check_scales(const HostTensor& scales, const std::string& option, DType type) {
  for (std::size_t i = 0; i < scales.bytes.size(); ++i) {
    const auto code = static_cast<std::uint32_t>(scales.bytes[i]);
    const bool negative = type == DType::ue4m3 && code >= 0x80;
    if (!negative && code != micro::nan_scale(type)) continue;
    throw InputError(option + " has " + format("0x%02x", code) + " at byte " + std::to_string(i) +
                     ", which is " + (negative && code != 0xff ? "negative" : "NaN") + ": " +
                     as_rule("scales are numbers from 0 on, in the padding too") + ".");
  }
}

}  // namespace

HostTensor read_codes(const std::string& name, const std::string& spec, const MicroFormat& format) {
  HostTensor codes = read_any(name, spec);
  if (codes.dtype == format.element) return codes;
  throw InputError(
      as_tensor(name) + " (" + spec + ") is " + std::string(numeric::word(codes.dtype)) +
      ", and its scales are given: " +
      as_rule("codes of ", format.word, " are ", std::string(numeric::word(format.element))) + ".");
}

MicroTensor with_scales(const HostTensor& codes, const std::string& option, const std::string& spec,
                        const MicroFormat& format) {
  const HostTensor scales = read_any(option, spec);
  if (!is_type_of(scales.dtype, format.scale)) {
    throw InputError(option + " (" + spec + ") is " + std::string(numeric::word(scales.dtype)) +
                     "; " +
                     as_rule("scales of ", format.word, " are ",
                             format.scale == DType::ue4m3 ? "e4m3" : "ue8m0 or u8") +
                     ".");
  }
  const MatrixView view = packed_view(codes);
  const std::int64_t blocks = ScaleReach::count(view.columns, micro_block(format.scale));
  ScaleReordering order;
  order.to = ScaleOrder::rows;
  order.tiles = scale_tiles_of(format.scale, view.rows, blocks, {}, view.batch);
  Extents want = {order.tiles.rows, order.tiles.columns};
  if (codes.shape.size() == 3) want.insert(want.begin(), view.batch);
  if (scales.shape != want) {
    throw InputError(option + " (" + spec + ") is " + shape_text(scales.shape) + "; " +
                     as_rule("of ", shape_text(codes.shape), " codes it is ", shape_text(want),
                             ", tiles of 128 rows x 4 as `warpwright pack` writes them") +
                     ".");
  }
  check_scales(scales, option, format.scale);
  MicroTensor made;
  made.codes.assign(codes.bytes.begin(), codes.bytes.end());
  made.scales.resize(static_cast<std::size_t>(view.batch * view.rows * blocks));
  order.rows = matrix(made.scales.data(), format.scale, view.rows, blocks);
  order.rows.batch = view.batch;
  order.rows.batch_stride = view.rows * blocks;
  // Tiles begin where the allocator puts them: at 16 bytes.
  order.tiles.data = const_cast<std::byte*>(scales.bytes.data());  // read alone  NOLINT
  if (const auto refused = reorder_scales_on_host(order)) throw InputError(*refused);
  return made;
}

}  // namespace warpwright::cli
