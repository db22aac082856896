#include "cli/compute/bench_grouped_shapes.h"

#include <array>
#include <charconv>
#include <fstream>
#include <numeric>
#include <optional>
#include <sstream>

#include "cli/compute/token_lengths.h"
#include "cli/files/tensor_file.h"
#include "warpwright/plan/rules.h"

namespace warpwright::cli {
namespace {

constexpr std::array kKinds = {
    GroupedKind{"e4m3", "e4m3 to bf16, tensor scales", DType::e4m3, DType::bf16,
                GroupedScaling::tensor},
    GroupedKind{"e4m3-block", "e4m3 to bf16, block scales", DType::e4m3, DType::bf16,
                GroupedScaling::block},
    GroupedKind{"e4m3-row-column", "e4m3 to bf16, row-column scales", DType::e4m3, DType::bf16,
                GroupedScaling::row_column},
    GroupedKind{"bf16", "bf16 to bf16", DType::bf16, DType::bf16, GroupedScaling::none}};

std::optional<std::int64_t> extent(const std::string& word) {
  std::int64_t value = 0;
  const char* last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data(), last, value);
  if (error != std::errc() || end != last || value < 1 || value > max_extent) return std::nullopt;
  return value;
}

// The shape of a line's words; why they are none, else.
Result<GroupedShape> shape_of_line(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  const auto none = [&line] {
    return Refusal{RefusalCode::bad_value,
                   "\"" + printable(line, 60) +
                       "\" is no shape; write GROUPS TOKENS N K, for example 8 16 4096 4096 or "
                       "32 skew:1 7168 2048"};
  };
  if (words.size() != 4) return none();
  const auto groups = extent(words[0]);
  const auto n = extent(words[2]);
  const auto k = extent(words[3]);
  if (!groups || !n || !k) return none();
  GroupedShape shape{*groups, words[1], *n, *k};
  if (const auto lengths = lengths_of(shape); !lengths) return lengths.refusal();
  return shape;
}

GroupedKind kind_of(const std::string& word) {
  std::string known;
  for (const GroupedKind& kind : kKinds) {
    if (word == kind.word) return kind;
    known += std::string(known.empty() ? "" : ", ") + kind.word;
  }
  throw InputError("--dtype has \"" + word + "\"; it must be all, or some of " + known +
                   " with commas between.");
}

}  // namespace

std::string shape_name(const GroupedShape& s) {
  const bool same = extent(s.tokens).has_value();
  return std::to_string(s.groups) + (same ? "x" : " ") + s.tokens + " N" + std::to_string(s.n) +
         " K" + std::to_string(s.k);
}

const std::vector<GroupedShape>& grouped_shapes() {
  static const std::vector<GroupedShape> shapes = [] {
    std::vector<GroupedShape> all;
    for (const char* tokens : {"8", "16", "32", "48", "64", "128", "512", "1024", "4096"}) {
      all.push_back({8, tokens, 4096, 4096});
    }
    for (const char* tokens : {"16", "64", "128", "512", "skew:1"}) {
      all.push_back({32, tokens, 4096, 7168});
      all.push_back({32, tokens, 7168, 2048});
    }
    return all;
  }();
  return shapes;
}

std::vector<GroupedShape> parse_grouped_shapes(std::istream& in, const std::string& file) {
  std::vector<GroupedShape> shapes;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const Result<GroupedShape> shape = shape_of_line(line);
    if (!shape) {
      throw InputError(file + ", line " + std::to_string(number) + ": " + shape.reason() + ".");
    }
    shapes.push_back(*shape);
  }
  if (shapes.empty()) {
    throw InputError(file + " holds no shape; write GROUPS TOKENS N K, one shape a line.");
  }
  return shapes;
}

std::vector<GroupedShape> read_grouped_shapes(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw InputError("--shapes: the file " + path + " cannot be read.");
  return parse_grouped_shapes(in, path);
}

std::vector<GroupedKind> parse_kinds(const std::string& words) {
  if (words == "all") return {kKinds[0], kKinds[1], kKinds[3]};
  std::vector<GroupedKind> kinds;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t comma = std::min(words.find(',', at), words.size());
    kinds.push_back(kind_of(words.substr(at, comma - at)));
    at = comma + 1;
  }
  return kinds;
}

Result<std::vector<std::int64_t>> lengths_of(const GroupedShape& shape) {
  return token_lengths(shape.tokens, shape.groups, 0);
}

GroupedProblem problem_of(const GroupedKind& kind, const GroupedShape& shape,
                          const std::vector<std::int64_t>& lengths) {
  const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  GroupedProblem p =
      packed_grouped_problem(total, shape.n, shape.k, shape.groups, kind.operand, kind.result);
  p.scaling = kind.scaling;
  if (p.scaling == GroupedScaling::block) p.accumulation = Accumulation::promoted;
  return p;
}

}  // namespace warpwright::cli
