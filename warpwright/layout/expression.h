#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "warpwright/layout/copy.h"
#include "warpwright/layout/layout.h"
#include "warpwright/layout/tensor.h"

/// Expressions over layouts, as typed on a command line:
/// `coalesce(composition((8,16):(16,1), 4:2))`; before the last there may be names,
/// `a = (8,16); slice(a, (_,3))`.
namespace warpwright::layout {

/// A tree of integers that stands without a stride. As a layout it is compact; in the place of a
/// tiler it cuts mode by mode; in the place of a coordinate it is one.
struct Shape {
  Tuple tuple;
};

/// The name of an instruction, such as SM90_TMA_LOAD.
struct Word {
  std::string text;
};

/// The two sides of a TMA copy.
struct TmaSides {
  CoordinateTensor gmem;
  std::variant<Layout, ComposedLayout, Tensor> smem;
};

/// What an expression may yield. std::int64_t is the answer of size() and its like.
using Value = std::variant<Layout, ComposedLayout, CoordinateTensor, Tuple, std::int64_t, Shape,
                           Tiler, Swizzle, Tensor, CopyAtom, TiledCopy, TmaSides, Word>;

/// What a kind of value is called: "layout", "composed layout", ...
const char* kind_of(const Value& value);

struct Function;

/// Evaluates an expression, in which `more` functions may be called beside those of the algebra.
/// Throws Error with a sentence for a text that is not understood and for an operation that the
/// algebra refuses.
Value evaluate(std::string_view expression, std::span<const Function> more = {});

/// The value as CuTe prints it, without underscores.
std::string to_text(const Value& value);

/// The index table of a layout: a grid for two modes, else one line `coordinate -> offset` each.
/// Empty for a value that is not a layout.
std::string to_table(const Value& value);

/// The functions an expression may call, a line each: "  name(arguments)".
std::string expression_help(std::span<const Function> more = {});

}  // namespace warpwright::layout
