#include "cli/compute/packing.h"

#include "warpwright/device/quantise.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/pack.h"

namespace warpwright::cli {
namespace {

void check_shapes(std::span<const MatrixView> all, const MicroFormat& format) {
  const MatrixView& first = all.front();
  for (const MatrixView& view : all) {
    if (view.column_stride != 1 || (view.rows > 1 && view.row_stride < view.columns)) {
      throw InputError(refuse(RefusalCode::bad_stride, "Weights are quantised row by row: ",
                              as_rule("K lies side by side"), "."));
    }
    if (view.rows == first.rows && view.columns == first.columns) continue;
    throw InputError("The experts have " + shape_of(first) + " and " + shape_of(view) +
                     " weights: " + as_rule("they must be of one shape") + ".");
  }
  const std::int64_t step = whole_elements(1, format.element);
  if (first.columns % step == 0) return;
  throw InputError(
      "K is " + std::to_string(first.columns) + ", and codes of " + format.word +
      " fill whole bytes: " +
      as_rule("the nearest legal K is ", as_nearest((first.columns + step - 1) / step * step)) +
      ".");
}

}  // namespace

QuantisedMicro quantise_micro(std::span<const MatrixView> all, const MicroFormat& format,
                              std::optional<Recipe> recipe, bool factors) {
  check_shapes(all, format);
  if (const auto refused = weights::not_finite_fault(all, format.word)) throw InputError(*refused);
  QuantisedMicro result;
  weights::Source& source = result.source;
  source.origin = std::string(numeric::word(all.front().dtype));
  source.format = &format;
  source.scale = format.scale;
  source.group = micro_block(format.scale);
  source.extents = {0, all.front().rows, all.front().columns};
  for (const MatrixView& view : all) source.extents.experts += view.batch;
  const packed::Extents& e = source.extents;
  const std::int64_t blocks = ScaleReach::count(e.k, source.group);
  const std::int64_t codes = numeric::packed_bytes(format.element, e.n * e.k);
  const std::int64_t scales = e.n * blocks;
  result.bytes.resize(static_cast<std::size_t>(e.experts * (codes + scales)));
  std::byte* at = result.bytes.data();
  for (const MatrixView& view : all) {
    for (std::int64_t b = 0; b < view.batch; ++b, at += codes + scales) {
      float factor = 1;
      Quantisation q;
      q.x = view;
      q.x.data = static_cast<std::byte*>(view.data) +
                 b * view.batch_stride * numeric::bits(view.dtype) / 8;
      q.x.batch = 1;
      q.x.batch_stride = 0;
      q.codes = matrix(at, format.element, e.n, e.k);
      q.scales = matrix(at + codes, format.scale, e.n, blocks);
      q.scaling = Scaling::block_scaled;
      q.order = ScaleOrder::rows;
      q.recipe = recipe;
      if (factors && format.scale == DType::ue4m3) {
        q.tensor_scale = matrix(&factor, DType::f32, 1, 1);
      }
      if (const auto refused = quantise_on_host(q)) throw InputError(*refused);
      source.experts.push_back({at, at + codes, nullptr, factor});
    }
  }
  return result;
}

std::vector<std::byte> pack_weights(const HostTensor& w, const PackedFormat& f) {
  const MatrixView view = packed_view(w);
  if (packed::has_float_codes(f)) {
    const QuantisedMicro quantised =
        quantise_micro({&view, 1}, *micro_format(f.code, f.scale), {}, false);
    return taken(weights::pack(quantised.source, {.tokens = f.tokens}));
  }
  const auto quantised =
      taken(weights::quantise({&view, 1}, {f.encoding, f.group, f.scale, f.zero_points}));
  return taken(weights::pack(weights::source_of(quantised), {f.encoding, f.scale, f.tokens}));
}

}  // namespace warpwright::cli
