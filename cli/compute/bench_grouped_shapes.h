// Which grouped products `bench grouped` measures.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "warpwright/plan/grouped.h"

namespace warpwright::cli {

/// Groups, their tokens in the words of `token_lengths`, and N and K of each group's weights.
struct GroupedShape {
  std::int64_t groups = 0;
  std::string tokens;
  std::int64_t n = 0;
  std::int64_t k = 0;

  friend bool operator==(const GroupedShape&, const GroupedShape&) = default;
};

/// "8x16 N4096 K4096", or "32 skew:1 N7168 K2048".
std::string shape_name(const GroupedShape& shape);

/// The shapes that speeds are compared on: decode, prefill and 8,192 tokens over 32 groups, four of
/// them empty.
const std::vector<GroupedShape>& grouped_shapes();

/// Reads a shape a line, "GROUPS TOKENS N K"; blank lines and what follows a # are left out. Throws
/// InputError that names `file` and the line.
std::vector<GroupedShape> parse_grouped_shapes(std::istream& in, const std::string& file);

/// The shapes of a file. Throws InputError.
std::vector<GroupedShape> read_grouped_shapes(const std::string& path);

/// One kind of operands, with scales: a part of the report.
struct GroupedKind {
  const char* word;     ///< of --dtype
  const char* heading;  ///< "e4m3 to bf16, tensor scales"
  DType operand;
  DType result;
  GroupedScaling scaling;
};

/// The kinds of --dtype: words with commas between, or "all" for e4m3, e4m3-block and bf16. Throws
/// InputError for a word that is none.
std::vector<GroupedKind> parse_kinds(const std::string& words);

/// The lengths of a shape's groups; refuses words that are none.
Result<std::vector<std::int64_t>> lengths_of(const GroupedShape& shape);

/// The packed product of a shape with these lengths. It says nothing of them but their sum.
GroupedProblem problem_of(const GroupedKind& kind, const GroupedShape& shape,
                          const std::vector<std::int64_t>& lengths);

}  // namespace warpwright::cli
