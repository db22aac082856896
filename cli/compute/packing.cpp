#include "cli/compute/packing.h"

#include <utility>

#include "warpwright/weights/pack.h"

namespace warpwright::cli {

std::vector<std::byte> pack_weights(const HostTensor& w, const PackedFormat& f) {
  const MatrixView view = packed_view(w);
  const auto quantised = weights::quantise(
      {&view, 1},
      {.encoding = f.encoding, .group = f.group, .scale = f.scale, .zero_points = f.zero_points});
  if (!quantised) throw InputError(quantised.refusal());
  auto bytes =
      weights::pack(weights::source_of(*quantised), {.encoding = f.encoding, .scale = f.scale});
  if (!bytes) throw InputError(bytes.refusal());
  return std::move(*bytes);
}

}  // namespace warpwright::cli
