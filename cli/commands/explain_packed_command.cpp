#include <cmath>
#include <ostream>

#include "cli/commands/gemm/run.h"
#include "cli/commands/pack_command.h"
#include "cli/files/checkpoint.h"
#include "cli/files/packed_file.h"
#include "cli/reports/packed_text.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/pack.h"

namespace warpwright::cli {
namespace {

// The packed weights beside those in floats of `spec`. Throws InputError where these are none of
// the same extents.
PackedError error_against(const PackedTensor& packed, const std::string& spec) {
  const FileAndName in = parse_file_and_name(spec);
  const SafetensorsFile file(in.path);
  const LoadedWeights loaded = load_weights(file, find_weights(file, in.name, "bf16"));
  const packed::Extents& e = packed.header.extents;
  std::int64_t experts = 0;
  for (const MatrixView& view : loaded.floats) {
    experts += view.batch;
    if (view.rows == e.n && view.columns == e.k) continue;
    throw InputError("The weights of " + spec + " are " + shape_of(view) + ", and those of " +
                     packed.name + " " + shape_of(e.n, e.k) + ": " +
                     as_rule("an error is told of weights of one shape") + ".");
  }
  if (experts != e.experts) {
    throw InputError("The weights of " + spec + " are of " + std::to_string(experts) +
                     " experts, and those of " + packed.name + " of " + std::to_string(e.experts) +
                     ": " + as_rule("an error is told of as many") + ".");
  }
  const auto& bytes = packed.tensor.bytes;
  const std::vector<float> values = values_of(taken(weights::unpack(bytes, {}, packed.name)));
  const std::vector<float>& alphas = packed.known_alphas();
  PackedError found;
  double off = 0;
  double size = 0;
  std::vector<float> row(static_cast<std::size_t>(e.k));
  std::int64_t expert = 0;
  for (const MatrixView& view : loaded.floats) {
    for (std::int64_t b = 0; b < view.batch; ++b, ++expert) {
      const auto alpha = static_cast<double>(alphas[static_cast<std::size_t>(expert)]);
      for (std::int64_t n = 0; n < e.n; ++n) {
        const std::int64_t first = b * view.batch_stride + n * view.row_stride;
        numeric::widen_from(
            static_cast<const std::byte*>(view.data) + first * numeric::bits(view.dtype) / 8,
            row.data(), row.size(), view.dtype);
        for (std::int64_t k = 0; k < e.k; ++k) {
          const auto want = static_cast<double>(row[static_cast<std::size_t>(k)]);
          const std::int64_t at = (expert * e.n + n) * e.k + k;
          const double got = alpha * static_cast<double>(values[static_cast<std::size_t>(at)]);
          off += (got - want) * (got - want);
          size += want * want;
          if (std::abs(got - want) <= found.largest) continue;
          found = {0, std::abs(got - want), expert, n, k, got, want};
        }
      }
    }
  }
  found.rms = off == 0 ? 0 : std::sqrt(off / size);
  return found;
}

}  // namespace

int explain_packed_command(const ExplainPackedOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    TileView view;
    view.expert = o.tile[0];
    view.row_tile = o.tile[1];
    view.k_tile = o.tile[2];
    require_between("--threads", o.threads, 0, 128);
    view.threads = o.threads;
    const PackedTensor packed = read_packed(o.file);
    std::optional<PackedError> error;
    if (!o.against.empty()) error = error_against(packed, o.against);
    if (o.json) {
      nlohmann::ordered_json json = packed_json(packed, view);
      if (error) json["error"] = {{"rms", error->rms}, {"largest", error->largest}};
      out << json_text(json);
      return 0;
    }
    out << packed_text(packed, view);
    if (error) out << '\n' << error_text(*error, o.against);
    return 0;
  });
}

}  // namespace warpwright::cli
