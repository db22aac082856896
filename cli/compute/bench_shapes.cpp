#include "cli/compute/bench_shapes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "cli/files/tensor_file.h"

namespace warpwright::cli {
namespace {

// The largest extent that plans take.
constexpr std::int64_t kMaxExtent = 2147479551;

// The three numbers of a line, or nothing.
bool read_shape(std::string line, Shape& shape) {
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == 'x' || c == 'X' || c == '\t'; }, ' ');
  std::istringstream words(line);
  std::vector<std::int64_t> numbers;
  for (std::string word; words >> word;) {
    std::int64_t value = 0;
    const char* last = word.data() + word.size();
    const auto [end, error] = std::from_chars(word.data(), last, value);
    if (error != std::errc() || end != last || value < 1 || value > kMaxExtent) return false;
    numbers.push_back(value);
  }
  if (numbers.size() != 3) return false;
  shape = {numbers[0], numbers[1], numbers[2]};
  return true;
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

std::string shape_name(const Shape& s) {
  return std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
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

std::vector<Shape> parse_shapes(std::istream& in, const std::string& file) {
  std::vector<Shape> shapes;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
      line.pop_back();
    }
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    Shape shape;
    if (!read_shape(line, shape)) {
      throw InputError(file + ", line " + std::to_string(number) + ": \"" + printable(line, 60) +
                       "\" is no shape; write M N K or MxNxK, three whole numbers from 1 to " +
                       std::to_string(kMaxExtent) + ", for example 4096 7168 2048.");
    }
    shapes.push_back(shape);
  }
  if (shapes.empty()) {
    throw InputError(file + " holds no shape; write M N K or MxNxK, one shape a line.");
  }
  return shapes;
}

std::vector<Shape> read_shapes(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw InputError("--shapes: the file " + path + " cannot be read.");
  return parse_shapes(in, path);
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

ProductTypes parse_types(const TypeOptions& o) {
  ProductTypes types;
  const auto operand = numeric::parse_dtype(o.dtype);
  if (operand != DType::bf16 && operand != DType::f16 && operand != DType::e4m3) {
    throw InputError("--dtype is \"" + o.dtype +
                     "\"; it must be bf16, fp16 or e4m3: the nearest is bf16.");
  }
  types.operand = *operand;
  const bool narrow = numeric::bits(types.operand) == 8;
  types.result = types.operand == DType::f16 ? DType::f16 : DType::bf16;
  if (!o.d_dtype.empty()) {
    const auto result = numeric::parse_dtype(o.d_dtype);
    if (result != DType::bf16 && result != DType::f16 && result != DType::f32 &&
        !(narrow && result == DType::e4m3)) {
      throw InputError("--d-dtype is \"" + o.d_dtype + "\"; it must be bf16, fp16, f32 or, with " +
                       "operands of 8 bits, e4m3: the nearest is bf16.");
    }
    types.result = *result;
  }
  types.scaling = narrow ? Scaling::tensor : Scaling::none;
  if (o.scaling == "none") {
    types.scaling = Scaling::none;
  } else if (o.scaling == "tensor") {
    types.scaling = Scaling::tensor;
  } else if (o.scaling == "row-column") {
    types.scaling = Scaling::row_column;
  } else if (o.scaling == "block") {
    types.scaling = Scaling::block;
  } else if (!o.scaling.empty()) {
    throw InputError("--scaling is \"" + o.scaling +
                     "\"; it must be none, tensor, row-column or block.");
  }
  if (!narrow && types.scaling != Scaling::none) {
    throw InputError("--scaling " + o.scaling + " is for operands of 8 bits, and these are " +
                     type_name(types.operand) + ": give --dtype e4m3, or leave it out.");
  }
  if (o.accumulation == "promoted") {
    types.accumulation = Accumulation::promoted;
  } else if (o.accumulation != "fast") {
    throw InputError("--accumulation is \"" + o.accumulation + "\"; it must be fast or promoted.");
  }
  if (!narrow && types.accumulation == Accumulation::promoted) {
    throw InputError("--accumulation promoted is for operands of 8 bits, and these are " +
                     type_name(types.operand) + ", always summed in float32: leave it out.");
  }
  return types;
}

GemmProblem problem_of(const ProductTypes& types, const Shape& s) {
  GemmProblem p = packed_problem(s.m, s.n, s.k, types.operand, types.result);
  p.scaling = types.scaling;
  p.accumulation = types.accumulation;
  return p;
}

std::string types_name(const ProductTypes& types) {
  std::string text = type_name(types.operand) + " to " + type_name(types.result);
  if (numeric::bits(types.operand) != 8) return text;
  constexpr const char* scales[] = {"no scales", "tensor scales", "row-column scales",
                                    "block scales"};
  const bool promoted =
      types.accumulation == Accumulation::promoted || types.scaling == Scaling::block;
  return text + ", " + scales[static_cast<int>(types.scaling)] +
         (promoted ? ", promoted" : ", fast accumulation");
}

}  // namespace warpwright::cli
