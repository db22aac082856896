#include "cli/commands/pack_command.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "cli/commands/gemm/run.h"
#include "cli/commands/pack_micro.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "cli/files/checkpoint.h"
#include "cli/files/output_file.h"
#include "cli/reports/packed_text.h"
#include "cli/reports/progress.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/facts/format.h"
#include "warpwright/numeric/bulk.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/pack_e2m1.h"

namespace warpwright::cli {
namespace {

const Words<Int4Encoding> kEncodings = {{"ex", Int4Encoding::ex}, {"sm", Int4Encoding::sm}};
const Words<DType> kScales = {{"bf16", DType::bf16}, {"fp16", DType::f16}, {"f32", DType::f32}};

// Refuses what does not go together or is no word, before any work.
void check_options(const PackCommandOptions& o) {
  require_jobs(o.jobs);
  if (!o.from.empty() && o.from != "bf16" && o.from != kKByN) {
    std::string known;
    bool is_known = false;
    for (const auto& list : {weights::layouts(), weights::micro_layouts()}) {
      for (const weights::LayoutNames& names : list) {
        known += std::string(names.layout) + ", ";
        is_known = is_known || names.layout == o.from;
      }
    }
    if (!is_known) {
      throw InputError("--from is \"" + o.from + "\"; " +
                       as_rule("it must be ", known, "bf16 (for weights in floats) or ", kKByN,
                               " (for those that lie K x N)") +
                       ".");
    }
  }
  if (o.group && *o.group != 32 && *o.group != 64 && *o.group != 128) {
    throw InputError("--group is " + std::to_string(*o.group) + "; " +
                     as_rule("it must be 32, 64 or 128") + ".");
  }
  check_micro_options(o);
}

// A name without the place for the numbers of experts.
std::string plain_name(std::string name) {
  for (const char* const part : {".{}", ".*", "{}", "*"}) {
    const std::size_t at = name.find(part);
    if (at != std::string::npos) return name.erase(at, std::string(part).size());
  }
  return name;
}

weights::Work work_of(const PackCommandOptions& o, Progress& progress) {
  return {o.jobs.value_or(0), [&progress](double share) { progress.share(share); }};
}

void tell(const std::string& note, std::ostream& err) {
  if (!note.empty()) err << "note: " << printable(note) << ".\n";
}

// The source of the weights, which lies in `loaded` or, of floats, in `quantised`.
weights::Source source_for(const PackCommandOptions& o, const FoundWeights& found,
                           const LoadedWeights& loaded, weights::Int4Weights& quantised,
                           weights::PackOptions& options, std::ostream& err) {
  choose(options.encoding, "--encoding", o.encoding, kEncodings);
  if (!o.tokens.empty()) options.tokens = *numeric::parse_dtype(o.tokens);
  choose(options.scale, "--scales", o.scales == "f16" ? "fp16" : o.scales, kScales);
  if (found.layout.empty()) {
    weights::QuantiseOptions how;
    if (options.encoding) how.encoding = *options.encoding;
    if (options.scale) how.scale = *options.scale;
    const packed::WeightFormat* const to = packed::weight_format(o.to);
    if (to != nullptr && !packed::has_groups(*to)) {
      how.group = to->groups[2];
      how.scale = to->scales[0];
    }
    how.group = o.group.value_or(how.group);
    if (o.zero_points) how.zero_points = ZeroPoints::groups;
    options.encoding = how.encoding;
    Progress progress(err, "pack: quantise");
    quantised = taken(weights::quantise(loaded.floats, how, work_of(o, progress)));
    return weights::source_of(quantised);
  }
  if (o.zero_points) {
    throw InputError(
        "--zero-points is of floats, and the weights " + in_quotes(found.name) +
        " are quantised: " + as_rule("leave it out, zero points that they have are kept") + ".");
  }
  weights::Source source = taken(weights::read_checkpoint(found.layout, loaded.tensors));
  if (o.group && *o.group != std::min(source.group, packed::kTileK)) {
    throw InputError("--group is " + std::to_string(*o.group) + ", and the weights " +
                     in_quotes(found.name) + " have groups of " + std::to_string(source.group) +
                     ": " + as_rule("leave it out, only floats can be grouped") + ".");
  }
  return source;
}

// Packs what `found` names.
HostTensor packed_of(const PackCommandOptions& o, const SafetensorsFile& file,
                     const FoundWeights& found, std::ostream& err) {
  const LoadedWeights loaded = load_weights(file, found);
  tell(note_of(file, found, loaded), err);
  weights::Int4Weights quantised;
  weights::PackOptions options;
  const weights::Source source = source_for(o, found, loaded, quantised, options, err);
  const PackedFormat format = taken(weights::packed_format(source, options));
  require_memory("The packed tensor",
                 static_cast<double>(packed::data_bytes(format, source.extents)),
                 "pack fewer experts at a time");
  options.encoding = format.encoding;
  HostTensor tensor{DType::u8, {}, {}};
  Progress progress(err, "pack");
  tensor.bytes = taken(weights::pack(source, options, work_of(o, progress)));
  tensor.shape = {static_cast<std::int64_t>(tensor.bytes.size())};
  return tensor;
}

// The packed tensor of that name (or the only one of the file), where it is packed already.
std::optional<HostTensor> packed_already(const SafetensorsFile& file, const std::string& name) {
  const TensorFacts* const found = packed_name(file, name);
  if (found == nullptr) return std::nullopt;
  HostTensor tensor = file.read(found->name);
  const auto header = weights::parse_header(tensor.bytes);
  if (!header) return std::nullopt;
  static_cast<void>(taken(weights::parse_packed(tensor.bytes)));
  return tensor;
}

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
  const std::vector<float> values = taken(weights::packed_values(bytes, {}, packed.name));
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

HostTensor load_packed(const PackCommandOptions& o) {
  check_options(o);
  const FileAndName in = parse_file_and_name(o.in);
  const SafetensorsFile file(in.path);
  if (auto tensor = packed_already(file, in.name)) return std::move(*tensor);
  const FoundWeights found = find_weights(file, in.name, o.from);
  if (found.is_micro) {
    throw InputError(refuse(RefusalCode::bad_value, "The weights ", in_quotes(found.name), " of ",
                            in.path, " are no int4: their layout is ", found.layout, "; ",
                            as_rule("load_fp4 reads it"), "."));
  }
  std::ostream nowhere(nullptr);
  return packed_of(o, file, found, nowhere);
}

int pack_command(const PackCommandOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    check_options(o);
    const FileAndName in = parse_file_and_name(o.in);
    FileAndName to = parse_file_and_name(o.out);
    check_output_file("The packed tensor", to.path);
    const SafetensorsFile file(in.path);
    if (!o.as.empty() && pack_fp8_of_packed(o, file, out)) return 0;
    const FoundWeights found = find_weights(file, in.name, o.from);
    if (!o.as.empty() && !found.is_micro) {
      throw InputError("--as is fp8, and the weights " + in_quotes(found.name) + " are " +
                       (found.layout.empty() ? "floats" : "in layout " + found.layout) + ": " +
                       as_rule("those of mxf4 become fp8 without being rounded") + ".");
    }
    if (to.name.empty()) to.name = plain_name(found.name);
    const bool to_micro = !o.to.empty() && !is_of_numbers(o.to);
    if (found.is_micro || (found.layout.empty() && to_micro)) {
      tell(note_of(file, found, {}), err);
      pack_micro(o, file, found, to.path, to.name, out);
      return 0;
    }
    if (to_micro) {
      throw InputError("--to is " + o.to + ", and the weights " + in_quotes(found.name) +
                       " are quantised, in layout " + found.layout + ": " +
                       as_rule("leave it out, only floats become another format") + ".");
    }
    check_safetensors_output(to.path, to.name);
    // Factors of nvf4 weights that had this name are not those of these.
    write_packed(to, packed_of(o, file, found, err), {}, o.json, out);
    return 0;
  });
}

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
