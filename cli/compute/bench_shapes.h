// Which products `bench` and `tune` measure: their extents and their types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/compute/words.h"
#include "cli/files/host_tensor.h"
#include "cli/files/printable.h"
#include "warpwright/plan/product/plan.h"

namespace warpwright::cli {

/// What `bench` measures: products without groups, with groups, or those of packed weights, of
/// both.
enum class BenchKind { dense, grouped, w4a8 };

/// Extents of a product; or, of one in groups, the words for their lengths instead of M.
struct Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t groups = 0;  ///< 0: it is none in groups
  std::string tokens = {};  ///< see `token_lengths`
  std::uint64_t seed = 1;   ///< of lengths that are drawn, where `tokens` says none

  /// The seed of lengths that a router draws; nothing for others.
  [[nodiscard]] std::optional<std::uint64_t> drawn_by() const;

  friend bool operator==(const Shape&, const Shape&) = default;
};

/// "4096x7168x2048": M, N and K. In groups "8x16 N4096 K4096", "32 skew:1 N7168 K2048", or
/// "128 routed:64,8 N1536 K2048".
std::string shape_name(const Shape& shape);

/// The shapes that speeds are compared on: large, medium and few rows; in groups decode, prefill
/// and 8,192 tokens over 32 groups, four of them empty, and layers of experts (expert_shapes.h).
const std::vector<Shape>& dense_shapes();
const std::vector<Shape>& grouped_shapes();
/// For int4 weights: 8 groups of 1, 2, 4 to 4,096 tokens, 32 of few, and dense products of 16 to
/// 512 rows.
const std::vector<Shape>& w4a8_shapes();
const std::vector<Shape>& shapes_of(BenchKind kind);

/// Reads a shape a line, "M N K" or "MxNxK", or "GROUPS TOKENS N K" (of int4 weights either); blank
/// lines and what follows a # are left out. Throws InputError that names `file` and the line.
std::vector<Shape> parse_shapes(std::istream& in, const std::string& file,
                                BenchKind kind = BenchKind::dense);

/// The shapes of a file. Throws InputError.
std::vector<Shape> read_shapes(const std::string& path, BenchKind kind = BenchKind::dense);

/// `count` random shapes: M from 1 to 16384, N and K from 64 to 16384, all evenly on a logarithmic
/// scale, N and K multiples of `step`. The same seed gives the same shapes.
std::vector<Shape> sample_shapes(int count, std::uint64_t seed, int step);

/// The lengths of a shape's groups, none without groups; refuses words that are none.
Result<std::vector<std::int64_t>> lengths_of(const Shape& shape);

/// The arguments that say what is multiplied, as they were typed; empty texts were not given.
struct TypeOptions {
  std::string dtype = "bf16";
  std::string d_dtype;
  std::string scaling;
  std::string accumulation = "fast";
};

/// Types, scaling and accumulation.
struct ProductTypes {
  DType operand = DType::bf16;
  DType result = DType::bf16;
  Scaling scaling = Scaling::none;
  Accumulation accumulation = Accumulation::fast;
  std::optional<PackedWeights> packed = {};  ///< B, which is s4 or e2m1 then
  bool gated = false;                        ///< by silu: D has half of the N columns

  /// What N and K of a sampled shape are multiples of: rows of 16 bytes.
  [[nodiscard]] int step() const { return 128 / numeric::bits(operand); }
};

/// Throws InputError where an argument is none of the legal ones. D is bf16, or fp16 with fp16
/// operands; 8-bit operands have tensor scales, unless something else is said.
ProductTypes parse_types(const TypeOptions& options);

/// Types with the word of `bench grouped --dtype` for them.
using ProductKind = std::pair<std::string, ProductTypes>;

/// Those of a list, or for "all" the first `usual`. Throws InputError for a word that is none.
template <class Kind>
std::vector<Kind> chosen_kinds(const std::vector<Kind>& all, std::string Kind::*word, int usual,
                               const std::string& list) {
  if (list == "all") return {all.begin(), all.begin() + usual};
  std::vector<Kind> kinds;
  for (const std::string& each : split(list)) {
    const auto kind = std::ranges::find(all, each, word);
    if (kind == all.end()) {
      throw InputError("--dtype has \"" + each + "\"; " +
                       as_rule("it must be all, or some of ", joined(all, ", ", ", ", word),
                               " with commas between") +
                       ".");
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

/// The kinds of --dtype: words with commas between, or "all" for e4m3, e4m3-block and bf16. Throws
/// InputError for a word that is none.
std::vector<ProductKind> parse_kinds(const std::string& words);
/// Is this the word of packed weights times their tokens?
bool is_packed_kind(const std::string& word);
/// All of these words.
std::string kind_words(const char* between);

/// For packed weights: those with exact sums, and what is measured beside them, their other sums
/// and our FP8 with block scales. `weights` is mxf4 (times e4m3), nvf4 (times bf16), or a kind of
/// packed weights; group and encoding are of int4. Throws InputError for a group that there is not.
std::vector<ProductKind> packed_kinds(const std::string& weights, int group = 128,
                                      Int4Encoding encoding = Int4Encoding::ex);

/// The packed product of a shape; one in groups has these `lengths`, and says nothing of them but
/// their sum.
GemmProblem problem_of(const ProductTypes& types, const Shape& shape,
                       const std::vector<std::int64_t>& lengths = {});

/// "e4m3 to bf16, block scales", and with ", promoted" behind it: for headings.
std::string operands_name(const ProductTypes& types);
std::string types_name(const ProductTypes& types);

}  // namespace warpwright::cli
