#include "cli/compute/bench_shapes.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>

#include "cli/compute/expert_shapes.h"
#include "cli/compute/token_lengths.h"
#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"
#include "warpwright/facts/weight_forms.h"
#include "warpwright/plan/product/rules.h"

namespace warpwright::cli {
namespace {

// Packed weights times tokens of a type; tokens of 8 bits have a scale.
constexpr ProductTypes packed_types(const PackedFormat& format, GroupSums sums) {
  const bool wide = packed::is_wide(format);
  return {format.tokens, format.tokens == DType::f16 ? DType::f16 : DType::bf16,
          wide ? Scaling::none : Scaling::tensor, Accumulation::fast,
          PackedWeights{.format = format, .sums = sums}};
}
// The same with tokens in blocks of 1 x 128.
constexpr ProductTypes in_blocks(ProductTypes types) {
  types.scaling = Scaling::blockwise;
  types.accumulation = Accumulation::promoted;
  return types;
}

// Sums of packed weights are open, as plans take them.
const std::vector<ProductKind>& all_kinds() {
  static const std::vector<ProductKind> all = [] {
    std::vector<ProductKind> kinds = {
        {"e4m3", {DType::e4m3, DType::bf16, Scaling::tensor}},
        {"e4m3-block", {DType::e4m3, DType::bf16, Scaling::blockwise, Accumulation::promoted}},
        {"bf16", {}},
        {"e4m3-row-column", {DType::e4m3, DType::bf16, Scaling::row_column}}};
    for (const packed::WeightForm& form : packed::weight_forms) {
      if (form.bench == nullptr) continue;
      const ProductTypes types = packed_types(packed_format(form), GroupSums::open);
      kinds.emplace_back(form.bench, types);
      if (!packed::has_blocks(form)) continue;
      kinds.emplace_back(std::string(packed::format_of(form).word) + "-block", in_blocks(types));
    }
    return kinds;
  }();
  return all;
}
constexpr int kUsualKinds = 3;

std::optional<std::int64_t> extent(const std::string& word) {
  const auto value = as_number<std::int64_t>(word);
  return value && *value >= 1 && *value <= max_extent ? value : std::nullopt;
}

// What a line should be.
std::string rule(BenchKind kind) {
  std::string groups = "GROUPS TOKENS N K, for example 8 16 4096 4096 or 128 routed:64,8 1536 2048";
  if (kind == BenchKind::grouped) return groups;
  return (kind == BenchKind::w4a8 ? groups + "; or " : "") +
         "M N K or MxNxK, three whole numbers from 1 to " + std::to_string(max_extent) +
         ", for example 4096 7168 2048";
}

// The shape of a line's words; why they are none, else.
Result<Shape> shape_of_line(std::string line, BenchKind kind) {
  const Refusal none{RefusalCode::bad_value,
                     "\"" + printable(line, 60) + "\" is no shape; write " + rule(kind)};
  const auto words_of = [](const std::string& text) {
    std::istringstream in(text);
    return std::vector<std::string>{std::istream_iterator<std::string>(in), {}};
  };
  std::vector<std::string> words = words_of(line);
  const bool grouped =
      kind == BenchKind::grouped || (kind == BenchKind::w4a8 && words.size() == 4U);
  if (!grouped) {
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == 'x' || c == 'X'; }, ' ');
    words = words_of(line);
  }
  if (words.size() != (grouped ? 4U : 3U)) return none;
  const auto first = extent(words[0]);
  const auto n = extent(words[words.size() - 2]);
  const auto k = extent(words.back());
  if (!first || !n || !k) return none;
  const Shape shape = grouped ? Shape{0, *n, *k, *first, words[1]} : Shape{*first, *n, *k};
  if (const auto lengths = lengths_of(shape); !lengths) return lengths.refusal();
  return shape;
}

// A number from 0 to 1, the same with every standard library.
double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

std::int64_t log_uniform(std::mt19937_64& random, std::int64_t low, std::int64_t high, int step) {
  const double first = std::log2(static_cast<double>(low));
  const double last = std::log2(static_cast<double>(high));
  const double value = std::exp2(first + uniform(random) * (last - first));
  const auto rounded = static_cast<std::int64_t>(std::llround(value / step)) * step;
  return std::clamp(rounded, low, high);
}

}  // namespace

std::optional<std::uint64_t> Shape::drawn_by() const {
  return groups > 0 ? routed_seed(tokens, seed) : std::nullopt;
}

std::string shape_name(const Shape& s) {
  const std::string n = std::to_string(s.n);
  const std::string k = std::to_string(s.k);
  if (s.groups == 0) return std::to_string(s.m) + "x" + n + "x" + k;
  return std::to_string(s.groups) + (extent(s.tokens) ? "x" : " ") + s.tokens + " N" + n + " K" + k;
}

const std::vector<Shape>& dense_shapes() {
  static const std::vector<Shape> shapes = {
      {8192, 8192, 8192},  {4096, 4096, 4096},  {2048, 2048, 2048},  {1024, 1024, 1024},
      {4096, 7168, 2048},  {4096, 2112, 7168},  {4096, 24576, 1536}, {4096, 32768, 512},
      {4096, 7168, 16384}, {128, 7168, 4096},   {64, 4096, 7168},    {16, 24576, 1536},
      {8192, 8192, 1024},  {16384, 4096, 4096},
  };
  return shapes;
}

const std::vector<Shape>& grouped_shapes() {
  static const std::vector<Shape> shapes = [] {
    std::vector<Shape> all;
    for (const char* tokens : {"8", "16", "32", "48", "64", "128", "512", "1024", "4096"}) {
      all.push_back({0, 4096, 4096, 8, tokens});
    }
    for (const char* tokens : {"16", "64", "128", "512", "skew:1"}) {
      all.push_back({0, 4096, 7168, 32, tokens});
      all.push_back({0, 7168, 2048, 32, tokens});
    }
    for (int i = 0; i < kBuiltInModels; ++i) {
      const auto layer = model_shapes(expert_models().at(static_cast<std::size_t>(i)));
      all.insert(all.end(), layer.begin(), layer.end());
    }
    return all;
  }();
  return shapes;
}

const std::vector<Shape>& w4a8_shapes() {
  static const std::vector<Shape> shapes = [] {
    std::vector<Shape> all;
    for (int tokens = 1; tokens <= 4096; tokens *= 2) {
      all.push_back({0, 4096, 4096, 8, std::to_string(tokens)});
    }
    for (const char* tokens : {"16", "64", "128"}) all.push_back({0, 4096, 7168, 32, tokens});
    for (int m = 16; m <= 512; m *= 2) all.push_back({m, 4096, 4096});
    return all;
  }();
  return shapes;
}

const std::vector<Shape>& shapes_of(BenchKind kind) {
  return kind == BenchKind::dense     ? dense_shapes()
         : kind == BenchKind::grouped ? grouped_shapes()
                                      : w4a8_shapes();
}

std::vector<Shape> parse_shapes(std::istream& in, const std::string& file, BenchKind kind) {
  std::vector<Shape> shapes;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const Result<Shape> shape = shape_of_line(line, kind);
    if (!shape) {
      throw InputError(file + ", line " + std::to_string(number) + ": " + shape.refusal() + ".");
    }
    shapes.push_back(*shape);
  }
  if (shapes.empty()) {
    throw InputError(file + " holds no shape; " +
                     as_rule("write ",
                             (kind == BenchKind::dense ? "M N K or MxNxK" : "GROUPS TOKENS N K"),
                             ", one shape a line") +
                     ".");
  }
  return shapes;
}

std::vector<Shape> read_shapes(const std::string& path, BenchKind kind) {
  std::ifstream in(path);
  if (!in) throw InputError("--shapes: " + as_rule("the file ", path, " cannot be read") + ".");
  return parse_shapes(in, path, kind);
}

std::vector<Shape> sample_shapes(int count, std::uint64_t seed, int step) {
  std::mt19937_64 random(seed);
  std::vector<Shape> shapes;
  for (int i = 0; i < count; ++i) {
    const std::int64_t m = log_uniform(random, 1, 16384, 1);
    const std::int64_t n = log_uniform(random, 64, 16384, step);
    const std::int64_t k = log_uniform(random, 64, 16384, step);
    shapes.push_back({m, n, k});
  }
  return shapes;
}

Result<std::vector<std::int64_t>> lengths_of(const Shape& shape) {
  if (shape.groups == 0) return std::vector<std::int64_t>{};
  return token_lengths(shape.tokens, shape.groups, 0, "--total", shape.seed);
}

ProductTypes parse_types(const TypeOptions& o) {
  ProductTypes types;
  const auto operand = numeric::parse_dtype(o.dtype);
  if (operand != DType::bf16 && operand != DType::f16 && operand != DType::e4m3) {
    throw InputError("--dtype is \"" + o.dtype + "\"; " + as_rule("it must be bf16, fp16 or e4m3") +
                     ": the nearest is " + as_nearest("bf16") + ".");
  }
  types.operand = *operand;
  const bool narrow = numeric::bits(types.operand) == 8;
  types.result = types.operand == DType::f16 ? DType::f16 : DType::bf16;
  if (!o.d_dtype.empty()) {
    const auto result = numeric::parse_dtype(o.d_dtype);
    if (result != DType::bf16 && result != DType::f16 && result != DType::f32 &&
        !(narrow && result == DType::e4m3)) {
      throw InputError("--d-dtype is \"" + o.d_dtype + "\"; " +
                       as_rule("it must be bf16, fp16, f32 or, with operands of 8 bits, e4m3") +
                       ": the nearest is " + as_nearest("bf16") + ".");
    }
    types.result = *result;
  }
  types.scaling = narrow ? Scaling::tensor : Scaling::none;
  if (!o.scaling.empty()) {
    types.scaling = chosen_mode("--scaling", o.scaling, all_scalings, is_of_all);
  }
  if (!narrow && types.scaling != Scaling::none) {
    throw InputError("--scaling " + o.scaling + " is for operands of 8 bits, and these are " +
                     type_name(types.operand) + ": " +
                     as_rule("give --dtype e4m3, or leave it out") + ".");
  }
  if (o.accumulation == "promoted") {
    types.accumulation = Accumulation::promoted;
  } else if (o.accumulation != "fast") {
    throw InputError("--accumulation is \"" + o.accumulation + "\"; " +
                     as_rule("it must be fast or promoted") + ".");
  }
  if (!narrow && types.accumulation == Accumulation::promoted) {
    throw InputError("--accumulation promoted is for operands of 8 bits, and these are " +
                     type_name(types.operand) +
                     ", always summed in float32: " + as_rule("leave it out") + ".");
  }
  return types;
}

std::string kind_words(const char* between) {
  return joined(all_kinds(), between, between, &ProductKind::first);
}

bool is_packed_kind(const std::string& word) {
  return std::ranges::any_of(all_kinds(), [&](const ProductKind& kind) {
    return kind.first == word && kind.second.packed.has_value();
  });
}

std::vector<ProductKind> parse_kinds(const std::string& words) {
  return chosen_kinds(all_kinds(), &ProductKind::first, kUsualKinds, words);
}

std::vector<ProductKind> packed_kinds(const std::string& weights, int group,
                                      Int4Encoding encoding) {
  const packed::WeightFormat* const named = packed::weight_format(weights);
  const char* const usual = named != nullptr ? packed::usual_form(*named).bench : nullptr;
  PackedFormat format =
      parse_kinds(usual != nullptr ? usual : weights).front().second.packed.value().format;
  const bool has_groups = packed::has_groups(*packed::weight_format(format.code, format.scale));
  if (has_groups) {
    format.group = group;
    if (!packed::is_wide(format)) format.encoding = encoding;
  }
  if (const std::string fault = packed::format_fault(format); !fault.empty()) {
    throw InputError("--group is " + std::to_string(group) + ", and " + fault + ".");
  }
  std::vector<ProductKind> kinds;
  for (const GroupSums sums :
       {GroupSums::exact, GroupSums::chained, GroupSums::folded, GroupSums::table}) {
    if (sums == GroupSums::table && has_groups && !packed::is_wide(format)) {
      format.encoding = Int4Encoding::sm;
    }
    if (!packed::has_sums(*packed::weight_form(format), sums)) continue;
    // Those of floats for tokens of 16 bits are the same.
    if (sums != GroupSums::exact && packed::has_float_codes(format) && packed::is_wide(format)) {
      continue;
    }
    kinds.emplace_back(name(sums), packed_types(format, sums));
  }
  kinds.push_back(parse_kinds("e4m3-block").front());
  return kinds;
}

GemmProblem problem_of(const ProductTypes& types, const Shape& s,
                       const std::vector<std::int64_t>& lengths) {
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  GemmProblem p = s.groups == 0 ? packed_problem(s.m, s.n, s.k, types.operand, types.result)
                                : packed_grouped_problem(total, s.n, s.k, s.groups, types.operand,
                                                         types.result);
  if (types.packed) {
    p.b.dtype = types.packed->format.code;
    p.packed = types.packed;
  }
  p.scaling = types.scaling;
  p.accumulation = types.accumulation;
  if (types.gated) {
    p.epilogue.gated = true;
    p.epilogue.activation = Activation::silu;
    p.d.columns = p.d.row_stride = s.n / 2;
  }
  return p;
}

std::string operands_name(const ProductTypes& types) {
  std::string text = type_name(types.operand) + " to " + type_name(types.result);
  if (types.packed) {
    const PackedFormat& f = types.packed->format;
    if (packed::has_float_codes(f)) {
      const bool blocks = types.scaling == Scaling::blockwise;
      return packed::weights_word(f) + " weights, " + text +
             (blocks ? ", block scales of tokens" : "");
    }
    const bool sm = types.packed->format.encoding == Int4Encoding::sm;
    return packed::weights_word(f) + " weights" + (sm ? " (-7..7)" : "") + " in groups of " +
           std::to_string(types.packed->format.group) + ", " + text;
  }
  if (numeric::bits(types.operand) != 8) return text;
  const bool none = types.scaling == Scaling::none;
  return text + ", " + (none ? "no" : name(types.scaling)) + " scales";
}

std::string types_name(const ProductTypes& types) {
  if (numeric::bits(types.operand) != 8) return operands_name(types);
  const bool promoted =
      types.accumulation == Accumulation::promoted || types.scaling == Scaling::blockwise;
  return operands_name(types) + (promoted ? ", promoted" : ", fast accumulation");
}

}  // namespace warpwright::cli
