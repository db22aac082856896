#include "cli/commands/pack_command.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "cli/commands/gemm/run.h"
#include "cli/compute/packing.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "cli/files/checkpoint.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "cli/reports/packed_text.h"
#include "cli/reports/progress.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/device/quantise.h"
#include "warpwright/facts/format.h"
#include "warpwright/facts/micro_scale.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/fp8.h"

namespace warpwright::cli {
namespace {

const Words<Int4Encoding> kEncodings = {{"ex", Int4Encoding::ex}, {"sm", Int4Encoding::sm}};
const Words<DType> kScales = {{"bf16", DType::bf16}, {"fp16", DType::f16}, {"f32", DType::f32}};

constexpr Recipe kRecipes[] = {Recipe::floor, Recipe::up, Recipe::nested, Recipe::nested_4_or_6};

std::optional<Recipe> recipe_of(const std::string& word) {
  for (const Recipe recipe : kRecipes) {
    if (word == micro::name(recipe)) return recipe;
  }
  return std::nullopt;
}

// Refuses what does not go together or is no word, before any work.
void check_options(const PackCommandOptions& o) {
  require_jobs(o.jobs);
  if (!o.from.empty() && o.from != "bf16" && o.from != kKByN) {
    std::string known;
    for (const weights::LayoutNames& names : weights::layouts()) {
      known += std::string(names.layout) + ", ";
    }
    if (weights::layout_named(o.from) == nullptr) {
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
  const auto tokens = numeric::parse_dtype(o.tokens);
  const bool is_token = tokens && std::ranges::any_of(packed::weight_forms, [&](const auto& form) {
                          return form.tokens == *tokens;
                        });
  if (!o.tokens.empty() && !is_token) {
    throw InputError("--for is " + in_quotes(o.tokens) + "; " +
                     as_rule("tokens of packed weights are ", packed::tokens_words(), ", for nvf4 ",
                             packed::tokens_words(packed::weight_format("nvf4"))) +
                     ": the nearest is " + as_nearest("bf16") + ".");
  }
  if (!o.as.empty() && o.as != "fp8") {
    throw InputError("--as is " + in_quotes(o.as) + "; " +
                     as_rule("weights of 4 bits are written anew only as fp8") +
                     ": the nearest is " + as_nearest("fp8") + ".");
  }
  for (const auto& [option, is_given] :
       {std::pair{"--for", !o.tokens.empty()}, std::pair{"--to", !o.to.empty()}}) {
    if (o.as.empty() || !is_given) continue;
    throw InputError(std::string("--as is given, and ") + option + ": " +
                     as_rule("weights become one of these") + ".");
  }
  if (!o.to.empty() && !is_of_numbers(o.to) && micro_format(o.to) == nullptr) {
    throw InputError("--to is " + in_quotes(o.to) + "; " +
                     as_rule("it must be ", of_numbers_words(", "), format_words(", ", ", ")) +
                     ": the nearest is " + as_nearest("int4") + ".");
  }
  if (o.recipe.empty()) return;
  const MicroFormat* const format = micro_format(o.to);
  if (format == nullptr) {
    throw InputError("--recipe is given, and --to is " + (o.to.empty() ? "int4" : o.to) + ": " +
                     as_rule("recipes are of mxf8, mxf6, mxf4 and nvf4: leave it out") + ".");
  }
  const auto recipe = recipe_of(o.recipe);
  if (recipe && micro::scale_type(*recipe) == format->scale) return;
  const auto is_known = [&](Recipe each) { return micro::scale_type(each) == format->scale; };
  const std::string known = joined(kept(kRecipes, is_known), " or ", " or ", micro::name);
  throw InputError("--recipe is " + in_quotes(o.recipe) + "; " +
                   as_rule("that of ", o.to, " is ", known) + ".");
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

// Weights that were found, in memory, and as a source, which points there.
struct FoundSource {
  LoadedWeights loaded;
  weights::PlainWeights quantised;
  std::vector<std::byte> bytes;
  weights::Source source;
};

// Do floats become a format with scales of blocks?
bool becomes_micro(const PackCommandOptions& o, const FoundWeights& found) {
  return found.layout.empty() && !o.to.empty() && !is_of_numbers(o.to);
}

// Refuses options that say nothing of such weights.
void check_found(const PackCommandOptions& o, const FoundWeights& found, bool is_micro) {
  const bool is_float = found.layout.empty();
  if (!o.as.empty() && !found.is_micro) {
    throw InputError("--as is fp8, and the weights " + in_quotes(found.name) + " are " +
                     (is_float ? "floats" : "in layout " + found.layout) + ": " +
                     as_rule("those of mxf4 become fp8 without being rounded") + ".");
  }
  if (!is_micro && !is_float && !o.to.empty() && !is_of_numbers(o.to)) {
    throw InputError("--to is " + o.to + ", and the weights " + in_quotes(found.name) +
                     " are quantised, in layout " + found.layout + ": " +
                     as_rule("leave it out, only floats become another format") + ".");
  }
  if (!is_micro && !is_float && o.zero_points) {
    throw InputError(
        "--zero-points is of floats, and the weights " + in_quotes(found.name) +
        " are quantised: " + as_rule("leave it out, zero points that they have are kept") + ".");
  }
  for (const auto& [option, is_given] : {std::pair{"--group", o.group.has_value()},
                                         {"--encoding", !o.encoding.empty()},
                                         {"--scales", !o.scales.empty()},
                                         {"--zero-points", o.zero_points},
                                         {"--to", found.is_micro && !o.to.empty()}}) {
    if (!is_given || !is_micro) continue;
    throw InputError(std::string(option) + " is given, and the weights " + in_quotes(found.name) +
                     (found.is_micro ? " are in layout " + found.layout : " become " + o.to) +
                     ": " + as_rule("leave it out") + ".");
  }
  const MicroFormat* const to = found.is_micro ? nullptr : micro_format(o.to);
  if (to == nullptr || o.tokens.empty() ||
      packed::weight_format(to->element, to->scale) != nullptr) {
    return;
  }
  throw InputError("--for is given, and --to is " + o.to + ": " +
                   as_rule(packed::format_words(", ", " and "), " weights are packed for tokens") +
                   ": the nearest is " + as_nearest("mxf4") + ".");
}

// What is asked of the packed form.
weights::PackOptions pack_options(const PackCommandOptions& o) {
  weights::PackOptions options;
  choose(options.encoding, "--encoding", o.encoding, kEncodings);
  if (!o.tokens.empty()) options.tokens = *numeric::parse_dtype(o.tokens);
  choose(options.scale, "--scales", o.scales == "f16" ? "fp16" : o.scales, kScales);
  return options;
}

// Reads what `found` names, quantised where they are floats.
FoundSource source_of(const PackCommandOptions& o, const SafetensorsFile& file,
                      const FoundWeights& found, weights::PackOptions& options, std::ostream& err) {
  check_found(o, found, found.is_micro || becomes_micro(o, found));
  FoundSource s{load_weights(file, found), {}, {}, {}};
  tell(note_of(file, found, s.loaded), err);
  if (becomes_micro(o, found)) {
    QuantisedMicro quantised =
        quantise_micro(s.loaded.floats, *micro_format(o.to),
                       o.recipe.empty() ? std::nullopt : recipe_of(o.recipe), true);
    s.bytes = std::move(quantised.bytes);
    s.source = std::move(quantised.source);
  } else if (found.layout.empty()) {
    weights::QuantiseOptions how;
    if (options.encoding) how.encoding = *options.encoding;
    if (options.scale) how.scale = *options.scale;
    how.group = o.group.value_or(how.group);
    if (o.zero_points) how.zero_points = ZeroPoints::groups;
    options.encoding = how.encoding;
    Progress progress(err, "pack: quantise");
    s.quantised = taken(weights::quantise(s.loaded.floats, how, work_of(o, progress)));
    s.source = weights::source_of(s.quantised);
  } else {
    s.source = taken(weights::read_checkpoint(found.layout, s.loaded.tensors));
    if (o.group && *o.group != std::min(s.source.group, packed::kTileK)) {
      throw InputError("--group is " + std::to_string(*o.group) + ", and the weights " +
                       in_quotes(found.name) + " have groups of " + std::to_string(s.source.group) +
                       ": " + as_rule("leave it out, only floats can be grouped") + ".");
    }
  }
  return s;
}

std::vector<float> factors_of(const weights::Source& source) {
  std::vector<float> factors;
  for (const auto& expert : source.experts) factors.push_back(expert.tensor);
  return factors;
}

HostTensor tensor_of(const std::vector<float>& numbers, std::vector<std::int64_t> shape) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {DType::f32, std::move(shape), {bytes.begin(), bytes.end()}};
}

// The packed tensor of a source.
PackedTensor packed_of(const PackCommandOptions& o, const std::string& name, const FoundSource& s,
                       weights::PackOptions options, std::ostream& err) {
  const PackedFormat format = taken(weights::packed_format(s.source, options));
  require_memory("The packed tensor",
                 static_cast<double>(packed::data_bytes(format, s.source.extents)),
                 "pack fewer experts at a time");
  options.encoding = format.encoding;
  Progress progress(err, "pack");
  PackedTensor p{name,
                 {},
                 {DType::u8, {}, taken(weights::pack(s.source, options, work_of(o, progress)))},
                 factors_of(s.source)};
  p.tensor.shape = {static_cast<std::int64_t>(p.tensor.bytes.size())};
  p.header = taken(weights::parse_header(p.tensor.bytes));
  return p;
}

// The packed tensor of that name, or the only one of the file, where there is one already.
std::optional<PackedTensor> packed_already(const SafetensorsFile& file, const FileAndName& in) {
  const bool alone = in.name.empty() && file.tensors().size() == 1;
  const TensorFacts* const found = alone ? &file.tensors().front() : file.find(in.name);
  const bool is_row = found != nullptr && found->dtype == DType::u8 && found->shape.size() == 1;
  if (!is_row || !weights::parse_header(file.read(found->name).bytes)) return std::nullopt;
  return read_packed(in.path + ":" + found->name);
}

// What is written, and what is told of it.
struct Written {
  std::string line;
  std::string note;  // of the tensor, in the file
  nlohmann::ordered_json json;
};

void write(const PackCommandOptions& o, const FileAndName& to, const packed::Extents& e,
           const std::vector<NamedTensor>& tensors, const Written& what, std::size_t bytes,
           std::ostream& out) {
  write_safetensors(to.path, tensors, what.note);
  if (o.json) {
    out << json_text(what.json);
    return;
  }
  out << printable(to.path + ":" + to.name) << ": " << what.line
      << warpwright::format(
             "; %zu bytes, %.2f bits a weight\n", bytes,
             8 * static_cast<double>(bytes) / static_cast<double>(e.experts * e.n * e.k));
}

// What --json tells of codes beside their scales.
nlohmann::ordered_json json_of(const FileAndName& to, const char* format,
                               const weights::Source& source, std::size_t bytes) {
  const packed::Extents& e = source.extents;
  const std::string spec = to.path + ":" + to.name;
  return {{"file", spec},
          {"format", format},
          {"experts", e.experts},
          {"n", e.n},
          {"k", e.k},
          {"scale", spec + kScaleSuffix},
          {"source", source.origin},
          {"bytes", bytes}};
}

std::string extents_text(const packed::Extents& e) {
  return std::to_string(e.experts) + " x " + std::to_string(e.n) + " x " + std::to_string(e.k);
}

// Writes the packed tensor, and the factors of nvf4 beside it. Factors of nvf4 weights that had
// this name are not those of others.
void write_packed(const PackCommandOptions& o, const FileAndName& to, const FoundSource& s,
                  const weights::PackOptions& options, std::ostream& out, std::ostream& err) {
  const PackedTensor p = packed_of(o, to.path + ":" + to.name, s, options, err);
  const PackedFormat& f = p.header.format;
  const packed::Extents& e = p.header.extents;
  const HostTensor alpha = tensor_of(p.alphas, {e.experts});
  const std::string line = packed_line(p.header);
  const std::size_t bytes = p.tensor.bytes.size();
  write(o, to, e,
        {{to.name, &p.tensor}, {to.name + kAlphaSuffix, packed::has_factor(f) ? &alpha : nullptr}},
        {line, "packed " + line, packed_json(p.name, p.header, bytes)}, bytes, out);
  const bool stays = packed::has_float_codes(f) && f.exponents == Exponents::own &&
                     !packed::has_factor(f) && !o.json;
  if (const auto wide =
          stays ? weights::wide_row(s.source, f.tokens, {o.jobs.value_or(0), {}}) : std::nullopt) {
    out << warpwright::format(
        "Its scales stay as they are, to be multiplied to sums of 32: those of row %lld of expert "
        "%lld are 2^%d to 2^%d, and at most 27 powers of two are folded.\n",
        static_cast<long long>(wide->row), static_cast<long long>(wide->expert), wide->least - 127,
        wide->largest - 127);
  }
}

// The weights as e4m3, exactly.
void write_fp8(const PackCommandOptions& o, const FileAndName& to, const weights::Source& source,
               std::ostream& out) {
  const packed::Extents& e = source.extents;
  require_memory("The weights", static_cast<double>(e.experts * e.n * e.k),
                 "pack fewer experts at a time");
  weights::Fp8Weights w = taken(weights::as_fp8(source, {o.jobs.value_or(0), {}}));
  HostTensor codes{DType::e4m3, {e.n, e.k}, std::move(w.codes)};
  HostTensor scales = tensor_of(
      w.scales, {ScaleReach::count(e.n, scale_block), ScaleReach::count(e.k, scale_block)});
  if (e.experts > 1) {
    for (HostTensor* const t : {&codes, &scales}) t->shape.insert(t->shape.begin(), e.experts);
  }
  const std::size_t bytes = codes.bytes.size() + scales.bytes.size();
  write(o, to, e, {{to.name, &codes}, {to.name + kScaleSuffix, &scales}},
        {"e4m3 with a float32 scale for each 128 x 128, " + extents_text(e) + ", from " +
             source.origin + ": no weight is rounded",
         "", json_of(to, "e4m3", source, bytes)},
        bytes, out);
}

// Codes, scales in tiles and the factors of tensors, as tensor cores multiply them.
void write_tiles(const PackCommandOptions& o, const FileAndName& to, const weights::Source& source,
                 bool has_batch, std::ostream& out) {
  const packed::Extents& e = source.extents;
  const MicroFormat& format = *source.format;
  const int block = micro_block(format.scale);
  MatrixView tiles = scale_tiles_of(format.scale, e.n, ScaleReach::count(e.k, block));
  const std::int64_t each = numeric::packed_bytes(format.element, e.n * e.k);
  const std::int64_t scales_each = tiles.rows * tiles.columns;
  require_memory("The packed weights", static_cast<double>(e.experts * (each + scales_each)),
                 "pack fewer experts at a time");
  // What files call ue4m3 is e4m3 whose signs are 0.
  const bool nvf4 = format.scale == DType::ue4m3;
  HostTensor codes{format.element, {e.n, e.k}, {}};
  HostTensor scales{nvf4 ? DType::e4m3 : format.scale, {tiles.rows, tiles.columns}, {}};
  scales.bytes.resize(static_cast<std::size_t>(e.experts * scales_each));
  tiles.data = scales.bytes.data();
  ScaleReordering order;
  order.rows_each = source.blocks_of_128 ? 128 : 1;
  order.blocks_each = source.blocks_of_128 ? 4 : 1;
  for (const weights::Source::Matrix& from : source.experts) {
    codes.bytes.insert(codes.bytes.end(), from.codes, from.codes + each);
    // Only read.
    order.rows = matrix(const_cast<std::byte*>(from.scales), source.scale,  // NOLINT
                        ScaleReach::count(e.n, order.rows_each),
                        ScaleReach::count(e.k, source.blocks_of_128 ? 128 : block));
    order.tiles = tiles;
    if (const auto refused = reorder_scales_on_host(order)) throw InputError(*refused);
    tiles.data = static_cast<std::byte*>(tiles.data) + scales_each;
  }
  if (has_batch) {
    for (HostTensor* const t : {&codes, &scales}) t->shape.insert(t->shape.begin(), e.experts);
  }
  const std::vector<float> factors = factors_of(source);
  const HostTensor alpha = tensor_of(factors, {e.experts});
  std::string line = std::string(format.word) + ", " + extents_text(e) + ", scales in tiles";
  if (nvf4) {
    line += e.experts > 1
                ? ", an alpha each"
                : warpwright::format(", alpha %.9g", static_cast<double>(factors.front()));
  }
  line += ", from " + source.origin;
  const std::size_t bytes = codes.bytes.size() + scales.bytes.size();
  nlohmann::ordered_json json = json_of(to, format.word, source, bytes);
  json["alpha"] = nullptr;
  if (nvf4) json["alpha"] = to.path + ":" + to.name + kAlphaSuffix;
  write(o, to, e,
        {{to.name, &codes},
         {to.name + kScaleSuffix, &scales},
         {to.name + kAlphaSuffix, nvf4 ? &alpha : nullptr}},
        {line, line, json}, bytes, out);
}

// Weights that are packed already, as e4m3.
void write_fp8_of_packed(const PackCommandOptions& o, const PackedTensor& packed, FileAndName to,
                         std::ostream& out) {
  if (!packed::has_float_codes(packed.header.format)) {
    throw InputError(packed.name + " holds int4 weights: " +
                     as_rule("those of mxf4 become fp8 without being rounded") + ".");
  }
  const auto w = taken(weights::unpack(packed.tensor.bytes, {o.jobs.value_or(0), {}}, packed.name));
  if (to.name.empty()) to.name = parse_file_and_name(packed.name).name;
  for (const char* const suffix : {"", kScaleSuffix})
    check_safetensors_output(to.path, to.name + suffix);
  write_fp8(o, to, weights::source_of(w, packed.known_alphas()), out);
}

}  // namespace

PackedTensor load_packed(const PackCommandOptions& o, bool of_floats) {
  check_options(o);
  const FileAndName in = parse_file_and_name(o.in);
  const SafetensorsFile file(in.path);
  if (auto packed = packed_already(file, in)) return std::move(*packed);
  const FoundWeights found = find_weights(file, in.name, o.from);
  if (found.is_micro != of_floats) {
    throw InputError(refuse(RefusalCode::bad_value, "The weights ", in_quotes(found.name), " of ",
                            in.path, " are ",
                            found.layout.empty() ? "floats" : "in layout " + found.layout, "; ",
                            as_rule(of_floats ? "load_int4" : "load_fp4", " reads them"), "."));
  }
  std::ostream nowhere(nullptr);
  weights::PackOptions options = pack_options(o);
  const FoundSource source = source_of(o, file, found, options, nowhere);
  return packed_of(o, in.path + ":" + found.name, source, options, nowhere);
}

int pack_command(const PackCommandOptions& o, std::ostream& out, std::ostream& err) {
  return exit_status(out, err, o.json, [&] {
    check_options(o);
    const FileAndName in = parse_file_and_name(o.in);
    FileAndName to = parse_file_and_name(o.out);
    check_output_file("The packed tensor", to.path);
    const SafetensorsFile file(in.path);
    if (!o.as.empty()) {
      if (const auto packed = packed_already(file, in)) {
        write_fp8_of_packed(o, *packed, to, out);
        return 0;
      }
    }
    const FoundWeights found = find_weights(file, in.name, o.from);
    if (to.name.empty()) to.name = plain_name(found.name);
    const bool is_micro = found.is_micro || becomes_micro(o, found);
    const bool is_packed = !is_micro || !o.tokens.empty();
    for (const char* const suffix : {"", kScaleSuffix, kAlphaSuffix}) {
      const bool is_written = *suffix == 0 || (is_micro && (!is_packed || suffix != kScaleSuffix));
      if (is_written) check_safetensors_output(to.path, to.name + suffix);
    }
    weights::PackOptions options = pack_options(o);
    const FoundSource s = source_of(o, file, found, options, err);
    if (!o.as.empty()) {
      write_fp8(o, to, s.source, out);
    } else if (is_packed) {
      write_packed(o, to, s, options, out, err);
    } else {
      const bool has_batch = s.source.extents.experts > 1 || s.loaded.floats.size() > 1 ||
                             found.stems.size() > 1 ||
                             (!s.loaded.tensors.empty() && s.loaded.tensors[0].codes.batch > 1);
      write_tiles(o, to, s.source, has_batch, out);
    }
    return 0;
  });
}

}  // namespace warpwright::cli
