#include "cli/commands/pack_micro.h"

#include <algorithm>
#include <cstring>
#include <ostream>

#include "cli/commands/gemm/run.h"
#include "cli/compute/packing.h"
#include "cli/compute/weight_words.h"
#include "cli/compute/words.h"
#include "cli/files/output_file.h"
#include "cli/files/packed_file.h"
#include "cli/reports/packed_text.h"
#include "cli/reports/refusal_json.h"
#include "warpwright/device/quantise.h"
#include "warpwright/facts/format.h"
#include "warpwright/plan/product/rules.h"
#include "warpwright/weights/fp8.h"
#include "warpwright/weights/micro_source.h"
#include "warpwright/weights/pack_e2m1.h"

namespace warpwright::cli {
namespace {

constexpr Recipe kRecipes[] = {Recipe::floor, Recipe::up, Recipe::nested, Recipe::nested_4_or_6};

std::optional<Recipe> recipe_of(const std::string& word) {
  for (const Recipe recipe : kRecipes) {
    if (word == micro::name(recipe)) return recipe;
  }
  return std::nullopt;
}

// What is written.
struct MicroPacked {
  const MicroFormat* format = nullptr;
  packed::Extents extents;
  std::string origin;
  HostTensor codes, scales, alpha;
};

// Tensors of the right sizes, as many matrices as there are experts.
void allocate(MicroPacked& p, bool experts) {
  const packed::Extents& e = p.extents;
  const DType type = p.format->element;
  const MatrixView tiles =
      scale_tiles_of(p.format->scale, e.n, ScaleReach::count(e.k, micro_block(p.format->scale)));
  const std::int64_t codes = numeric::packed_bytes(type, e.experts * e.n * e.k);
  const std::int64_t scales = e.experts * tiles.rows * tiles.columns;
  require_memory("The packed weights", static_cast<double>(codes + scales),
                 "pack fewer experts at a time");
  // What files call ue4m3 is e4m3 whose signs are 0.
  const bool nvf4 = p.format->scale == DType::ue4m3;
  p.codes = {type, {e.n, e.k}, std::vector<std::byte>(static_cast<std::size_t>(codes))};
  p.scales = {nvf4 ? DType::e4m3 : p.format->scale,
              {tiles.rows, tiles.columns},
              std::vector<std::byte>(static_cast<std::size_t>(scales))};
  if (nvf4) {
    p.alpha = {
        DType::f32, {e.experts}, std::vector<std::byte>(4 * static_cast<std::size_t>(e.experts))};
  }
  if (!experts) return;
  p.codes.shape.insert(p.codes.shape.begin(), e.experts);
  p.scales.shape.insert(p.scales.shape.begin(), e.experts);
}

// The scales of one expert as operands have them.
MatrixView tiles_of(MicroPacked& p, std::int64_t expert) {
  const packed::Extents& e = p.extents;
  MatrixView tiles =
      scale_tiles_of(p.format->scale, e.n, ScaleReach::count(e.k, micro_block(p.format->scale)));
  tiles.data = p.scales.bytes.data() + expert * tiles.rows * tiles.columns;
  return tiles;
}

std::int64_t code_bytes(const MicroPacked& p) {
  return p.extents.n * p.extents.k * numeric::bits(p.format->element) / 8;
}

MicroPacked of_checkpoint(const FoundWeights& found, const LoadedWeights& loaded) {
  const auto source = taken(weights::read_micro_checkpoint(found.layout, loaded.tensors));
  MicroPacked p{source.format, source.extents, source.origin, {}, {}, {}};
  const bool experts = found.stems.size() > 1 || loaded.tensors.front().codes.batch > 1;
  allocate(p, experts);
  const auto parts = [](std::int64_t all, int each) { return (all + each - 1) / each; };
  const bool wide = source.blocks_of_128;
  const int k_each = wide ? 128 : micro_block(p.format->scale);
  for (std::int64_t e = 0; e < p.extents.experts; ++e) {
    const auto& from = source.experts[static_cast<std::size_t>(e)];
    std::memcpy(p.codes.bytes.data() + e * code_bytes(p), from.codes,
                static_cast<std::size_t>(code_bytes(p)));
    ScaleReordering order;
    // Only read.
    order.rows_each = wide ? 128 : 1;
    order.blocks_each = wide ? 4 : 1;
    order.rows = matrix(const_cast<std::byte*>(from.scales), source.scale_type,  // NOLINT
                        parts(p.extents.n, order.rows_each), parts(p.extents.k, k_each));
    order.tiles = tiles_of(p, e);
    if (const auto refused = reorder_scales_on_host(order)) throw InputError(*refused);
    if (!p.alpha.bytes.empty()) std::memcpy(p.alpha.bytes.data() + 4 * e, &from.tensor, 4);
  }
  return p;
}

MicroPacked of_floats(const PackCommandOptions& o, const LoadedWeights& loaded) {
  const MatrixView& first = loaded.floats.front();
  MicroPacked p;
  p.format = micro_format(o.to);
  p.extents = {0, first.rows, first.columns};
  p.origin = std::string(numeric::word(first.dtype));
  for (const MatrixView& view : loaded.floats) {
    p.extents.experts += view.batch;
    if (view.rows == first.rows && view.columns == first.columns) continue;
    throw InputError("The experts have " + shape_of(first) + " and " + shape_of(view) +
                     " weights: " + as_rule("they must be of one shape") + ".");
  }
  const std::int64_t step = whole_elements(1, p.format->element);
  if (p.extents.k % step != 0) {
    throw InputError(
        "K is " + std::to_string(p.extents.k) + ", and codes of " + p.format->word +
        " fill whole bytes: " +
        as_rule("the nearest legal K is ", as_nearest((p.extents.k + step - 1) / step * step)) +
        ".");
  }
  if (const auto refused = weights::not_finite_fault(loaded.floats, p.format->word)) {
    throw InputError(*refused);
  }
  allocate(p, p.extents.experts > 1 || loaded.floats.size() > 1);
  std::int64_t e = 0;
  for (const MatrixView& view : loaded.floats) {
    for (std::int64_t b = 0; b < view.batch; ++b, ++e) {
      Quantisation q;
      q.x = matrix(static_cast<std::byte*>(view.data) +
                       b * view.batch_stride * numeric::bits(view.dtype) / 8,
                   view.dtype, view.rows, view.columns);
      q.codes = matrix(p.codes.bytes.data() + e * code_bytes(p), p.format->element, view.rows,
                       view.columns);
      q.scales = tiles_of(p, e);
      q.scaling = Scaling::block_scaled;
      if (!o.recipe.empty()) q.recipe = recipe_of(o.recipe);
      if (!p.alpha.bytes.empty()) {
        q.tensor_scale = matrix(p.alpha.bytes.data() + 4 * e, DType::f32, 1, 1);
      }
      if (const auto refused = quantise_on_host(q)) throw InputError(*refused);
    }
  }
  return p;
}

// "nvf4, 1 x 72 x 192, scales in tiles, alpha 0.00037, from modelopt-nvfp4".
std::string line_of(const MicroPacked& p) {
  const packed::Extents& e = p.extents;
  std::string text = std::string(p.format->word) + ", " + std::to_string(e.experts) + " x " +
                     std::to_string(e.n) + " x " + std::to_string(e.k) + ", scales in tiles";
  if (!p.alpha.bytes.empty()) {
    float alpha = 0;
    std::memcpy(&alpha, p.alpha.bytes.data(), 4);
    text += e.experts > 1 ? ", an alpha each"
                          : warpwright::format(", alpha %.9g", static_cast<double>(alpha));
  }
  return text + ", from " + p.origin;
}

std::string json_of(const MicroPacked& p, const std::string& spec, std::size_t bytes) {
  nlohmann::ordered_json json;
  json["file"] = spec;
  json["format"] = p.format->word;
  json["experts"] = p.extents.experts;
  json["n"] = p.extents.n;
  json["k"] = p.extents.k;
  json["scale"] = spec + kScaleSuffix;
  json["alpha"] = nullptr;
  if (!p.alpha.bytes.empty()) json["alpha"] = spec + kAlphaSuffix;
  json["source"] = p.origin;
  json["bytes"] = bytes;
  return json_text(json);
}

// Weights of 4 bits for Hopper, in one tensor of bytes.
struct MicroTiles {
  LoadedWeights loaded;
  QuantisedMicro quantised;  // whose source points to these
  HostTensor tensor;
};

// Packs what `found` names for tokens of --for.
MicroTiles micro_tiles(const PackCommandOptions& o, const SafetensorsFile& file,
                       const FoundWeights& found) {
  MicroTiles t{load_weights(file, found), {}, {}};
  if (found.is_micro) {
    t.quantised.source = taken(weights::read_micro_checkpoint(found.layout, t.loaded.tensors));
  } else {
    t.quantised = quantise_micro(t.loaded.floats, *micro_format(o.to),
                                 o.recipe.empty() ? std::nullopt : recipe_of(o.recipe), true);
  }
  const weights::MicroSource& source = t.quantised.source;
  weights::E2m1Options options;
  if (!o.tokens.empty()) options.tokens = *numeric::parse_dtype(o.tokens);
  const weights::Work work{o.jobs.value_or(0), {}};
  const PackedFormat format = taken(weights::packed_format(source, options, work));
  require_memory("The packed tensor",
                 static_cast<double>(packed::data_bytes(format, source.extents)),
                 "pack fewer experts at a time");
  t.tensor = {DType::u8, {}, taken(weights::pack_e2m1(source, options, work))};
  t.tensor.shape = {static_cast<std::int64_t>(t.tensor.bytes.size())};
  return t;
}

// Writes it, and the factors of nvf4 beside it.
void pack_tiles(const PackCommandOptions& o, const SafetensorsFile& file, const FoundWeights& found,
                const std::string& path, const std::string& name, std::ostream& out) {
  const MicroFormat* const to = found.is_micro ? nullptr : micro_format(o.to);
  if (to != nullptr && packed::weight_format(to->element, to->scale) == nullptr) {
    throw InputError(
        "--for is given, and --to is " + o.to + ": " +
        as_rule(packed::format_words(", ", " and "), " weights are packed for tokens") +
        ": the nearest is " + as_nearest("mxf4") + ".");
  }
  const MicroTiles tiles = micro_tiles(o, file, found);
  const HostTensor& tensor = tiles.tensor;
  const weights::MicroSource& source = tiles.quantised.source;
  const packed::Extents& e = source.extents;
  HostTensor alpha{DType::f32, {e.experts}, {}};
  for (const auto& expert : source.experts) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&expert.tensor);
    alpha.bytes.insert(alpha.bytes.end(), bytes, bytes + 4);
  }
  const PackedFormat format = write_packed({path, name}, tensor, alpha, o.json, out);
  if (o.json) return;
  if (const auto wide = format.exponents == Exponents::own && !packed::has_factor(format)
                            ? weights::wide_row(source, format.tokens, {o.jobs.value_or(0), {}})
                            : std::nullopt) {
    out << warpwright::format(
        "Its scales stay as they are, to be multiplied to sums of 32: those of row %lld of expert "
        "%lld are 2^%d to 2^%d, and at most 27 powers of two are folded.\n",
        static_cast<long long>(wide->row), static_cast<long long>(wide->expert), wide->least - 127,
        wide->largest - 127);
  }
}

// The weights as e4m3, exactly.
void pack_fp8(const PackCommandOptions& o, const weights::MicroSource& source,
              const std::string& path, const std::string& name, std::ostream& out) {
  const packed::Extents& e = source.extents;
  require_memory("The weights", static_cast<double>(e.experts * e.n * e.k),
                 "pack fewer experts at a time");
  weights::Fp8Weights w = taken(weights::as_fp8(source, {o.jobs.value_or(0), {}}));
  const std::int64_t rows = ScaleReach::count(e.n, scale_block);
  const std::int64_t columns = ScaleReach::count(e.k, scale_block);
  HostTensor codes{DType::e4m3, {e.n, e.k}, std::move(w.codes)};
  HostTensor scales{DType::f32, {rows, columns}, {}};
  scales.bytes.resize(4 * w.scales.size());
  std::memcpy(scales.bytes.data(), w.scales.data(), scales.bytes.size());
  if (e.experts > 1) {
    for (HostTensor* const t : {&codes, &scales}) t->shape.insert(t->shape.begin(), e.experts);
  }
  const std::vector<NamedTensor> tensors = {{name, &codes}, {name + kScaleSuffix, &scales}};
  write_safetensors(path, tensors);
  const std::size_t bytes = codes.bytes.size() + scales.bytes.size();
  if (o.json) {
    nlohmann::ordered_json json = {{"file", path + ":" + name},
                                   {"format", "e4m3"},
                                   {"experts", e.experts},
                                   {"n", e.n},
                                   {"k", e.k},
                                   {"scale", path + ":" + name + kScaleSuffix},
                                   {"source", source.origin},
                                   {"bytes", bytes}};
    out << json_text(json);
    return;
  }
  out << printable(path + ":" + name) << ": e4m3 with a float32 scale for each 128 x 128, "
      << e.experts << " x " << e.n << " x " << e.k << ", from " << source.origin
      << warpwright::format(
             ": no weight is rounded; %zu bytes, %.2f bits a weight\n", bytes,
             8 * static_cast<double>(bytes) / static_cast<double>(e.experts * e.n * e.k));
}

}  // namespace

const TensorFacts* packed_name(const SafetensorsFile& file, const std::string& name) {
  const bool alone = name.empty() && file.tensors().size() == 1;
  const TensorFacts* const found = alone ? &file.tensors().front() : file.find(name);
  const bool is_row = found != nullptr && found->dtype == DType::u8 && found->shape.size() == 1;
  return is_row ? found : nullptr;
}

PackedFormat write_packed(const FileAndName& to, const HostTensor& tensor, const HostTensor& alpha,
                          bool wants_json, std::ostream& out) {
  const weights::Header header = taken(weights::parse_header(tensor.bytes, "The packed tensor"));
  const packed::Extents& e = header.extents;
  const std::string line = packed_line(header);
  const std::vector<NamedTensor> tensors = {
      {to.name, &tensor},
      {to.name + kAlphaSuffix, packed::has_factor(header.format) ? &alpha : nullptr}};
  write_safetensors(to.path, tensors, "packed " + line);
  const std::string spec = to.path + ":" + to.name;
  const std::size_t bytes = tensor.bytes.size();
  if (wants_json) {
    out << json_text(packed_json(spec, header, bytes));
  } else {
    out << printable(spec) << ": " << line
        << warpwright::format(
               "; %zu bytes, %.2f bits a weight\n", bytes,
               8 * static_cast<double>(bytes) / static_cast<double>(e.experts * e.n * e.k));
  }
  return header.format;
}

PackedTensor load_packed_micro(const PackCommandOptions& o) {
  check_micro_options(o);
  const FileAndName in = parse_file_and_name(o.in);
  const SafetensorsFile file(in.path);
  if (packed_name(file, in.name) != nullptr) return read_packed(o.in);
  const FoundWeights found = find_weights(file, in.name, o.from);
  if (!found.is_micro) {
    throw InputError("The weights " + in_quotes(found.name) + " are " +
                     (found.layout.empty() ? "floats" : "in layout " + found.layout) + ": " +
                     as_rule("those of mxf4 and nvf4 are loaded here") + ".");
  }
  MicroTiles tiles = micro_tiles(o, file, found);
  PackedTensor packed{in.path + ":" + found.name,
                      taken(weights::parse_header(tiles.tensor.bytes)),
                      std::move(tiles.tensor),
                      {}};
  for (const auto& expert : tiles.quantised.source.experts) packed.alphas.push_back(expert.tensor);
  return packed;
}

bool pack_fp8_of_packed(const PackCommandOptions& o, const SafetensorsFile& file,
                        std::ostream& out) {
  const TensorFacts* const found = packed_name(file, parse_file_and_name(o.in).name);
  if (found == nullptr) return false;
  const PackedTensor packed = read_packed(o.in);
  const auto w =
      taken(weights::unpack_e2m1(packed.tensor.bytes, {o.jobs.value_or(0), {}}, packed.name));
  FileAndName to = parse_file_and_name(o.out);
  if (to.name.empty()) to.name = found->name;
  for (const char* const suffix : {"", kScaleSuffix})
    check_safetensors_output(to.path, to.name + suffix);
  pack_fp8(o, weights::source_of(w, packed.known_alphas()), to.path, to.name, out);
  return true;
}

void check_micro_options(const PackCommandOptions& o) {
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
  std::string known;
  for (const Recipe each : kRecipes) {
    if (micro::scale_type(each) != format->scale) continue;
    known += (known.empty() ? "" : " or ") + std::string(micro::name(each));
  }
  throw InputError("--recipe is " + in_quotes(o.recipe) + "; " +
                   as_rule("that of ", o.to, " is ", known) + ".");
}

void pack_micro(const PackCommandOptions& o, const SafetensorsFile& file, const FoundWeights& found,
                const std::string& path, const std::string& name, std::ostream& out) {
  for (const auto& [option, is_given] : {std::pair{"--group", o.group.has_value()},
                                         {"--encoding", !o.encoding.empty()},
                                         {"--scales", !o.scales.empty()},
                                         {"--zero-points", o.zero_points},
                                         {"--to", found.is_micro && !o.to.empty()}}) {
    if (!is_given) continue;
    throw InputError(std::string(option) + " is given, and the weights " + in_quotes(found.name) +
                     (found.is_micro ? " are in layout " + found.layout : " become " + o.to) +
                     ": " + as_rule("leave it out") + ".");
  }
  for (const char* const suffix : {"", kScaleSuffix, kAlphaSuffix}) {
    if (o.tokens.empty() || suffix != kScaleSuffix) check_safetensors_output(path, name + suffix);
  }
  if (!o.tokens.empty()) return pack_tiles(o, file, found, path, name, out);
  const LoadedWeights loaded = load_weights(file, found);
  if (!o.as.empty()) {
    const auto source = taken(weights::read_micro_checkpoint(found.layout, loaded.tensors));
    return pack_fp8(o, source, path, name, out);
  }
  const MicroPacked p = found.is_micro ? of_checkpoint(found, loaded) : of_floats(o, loaded);
  const std::vector<NamedTensor> tensors = {
      {name, &p.codes},
      {name + kScaleSuffix, &p.scales},
      {name + kAlphaSuffix, p.alpha.bytes.empty() ? nullptr : &p.alpha}};
  const std::string line = line_of(p);
  write_safetensors(path, tensors, line);
  const std::size_t bytes = p.codes.bytes.size() + p.scales.bytes.size();
  if (o.json) {
    out << json_of(p, path + ":" + name, bytes);
    return;
  }
  const packed::Extents& e = p.extents;
  out << printable(path + ":" + name) << ": " << line
      << warpwright::format(
             "; %zu bytes, %.2f bits a weight\n", bytes,
             8 * static_cast<double>(bytes) / static_cast<double>(e.experts * e.n * e.k));
}

}  // namespace warpwright::cli
