#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

#include "cli/commands/completion.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "cli/files/printable.h"
#include "warpwright/numeric/types.h"
#include "warpwright/pictures/layout_picture.h"

namespace warpwright::cli {
namespace {

using pictures::LayoutColour;

struct LayoutOptions {
  std::string layout, with, op, colour = "offsets", dtype = "bf16";
  std::vector<std::int64_t> tile;
};

struct ColourName {
  std::string_view word;
  LayoutColour colour;
};
constexpr ColourName kColourNames[] = {{"offsets", LayoutColour::offsets},
                                       {"threads", LayoutColour::threads},
                                       {"values", LayoutColour::values},
                                       {"banks", LayoutColour::banks}};

// Short words of --op, and what the algebra calls them.
struct OperationName {
  std::string_view word, function;
};
constexpr OperationName kOperations[] = {
    {"composition", "composition"},         {"divide", "logical_divide"},
    {"product", "logical_product"},         {"logical_divide", "logical_divide"},
    {"zipped_divide", "zipped_divide"},     {"tiled_divide", "tiled_divide"},
    {"logical_product", "logical_product"}, {"blocked_product", "blocked_product"},
    {"raked_product", "raked_product"}};

template <class Names>
const auto& named(const char* option, const Names& names, const std::string& word) {
  for (const auto& one : names) {
    if (one.word == word) return one;
  }
  throw InputError(std::string(option) + " \"" + word + "\": known are " +
                   as_rule(joined(names, ", ", " and ", [](const auto& one) { return one.word; })) +
                   ".");
}

pictures::Picture draw(const LayoutOptions& o) {
  pictures::LayoutAsk ask;
  ask.layout = o.layout;
  ask.with = o.with;
  if (o.op.empty() != o.with.empty()) {
    throw InputError(o.op.empty()
                         ? "--with is given without --op: say what to do with both, "
                           "composition, divide or product."
                         : "--op " + o.op + " is given without --with, its second layout.");
  }
  if (!o.op.empty()) ask.operation = named("--op", kOperations, o.op).function;
  ask.colour = named("--colour", kColourNames, o.colour).colour;
  if (!ask.operation.empty() && ask.colour != LayoutColour::offsets) {
    throw InputError("--colour " + o.colour +
                     " is of one layout: leave it out, or leave out --op.");
  }
  const std::optional<DType> type = numeric::parse_dtype(o.dtype);
  if (!type) throw InputError("--dtype \"" + o.dtype + "\": there is no such type.");
  ask.element_bits = numeric::bits(*type);
  if (!o.tile.empty()) {
    ask.tile_rows = o.tile[0];
    ask.tile_columns = o.tile[1];
  }
  return pictures::layout_picture(ask);
}

}  // namespace

DrawKind add_draw_layout(CLI::App& app) {
  CLI::App* layout = app.add_subcommand(
      "layout", "a layout: offsets, threads, values or banks; what an operation makes of two");
  const auto o = std::make_shared<LayoutOptions>();
  const Values add(*layout);
  add("EXPR", o->layout, "", "a layout, or an expression that yields one")->required();
  add("--with", o->with, "EXPR", "the second layout, or the tiler, of --op");
  offer(add("--op", o->op, "OP",
            "draw both and what it makes of them: composition, divide, product, or a function of "
            "`warpwright layout`"),
        joined(kOperations, " ", " ", &OperationName::word));
  offer(add("--colour", o->colour, "WHAT", "what colours tell: offsets, threads, values or banks")
            ->capture_default_str(),
        joined(kColourNames, " ", " ", &ColourName::word));
  add("--tile", o->tile, "M,N",
      "of --colour threads and values: rows and columns that (thread, value) covers",
      whole<std::int64_t>(1, pictures::kMostCells))
      ->delimiter(',')
      ->expected(2);
  add("--dtype", o->dtype, "T", "of --colour banks: the elements' type")->capture_default_str();
  layout->footer(
      "Examples:\n"
      "  warpwright draw layout '(4,8):(8,1)' --svg layout.svg\n"
      "  warpwright draw layout 'Sw<3,3,3> o 0 o (8,64):(64,1)' --colour banks --svg banks.svg\n"
      "  warpwright draw layout '((4,8),2):((2,8),1)' --colour threads --tile 8,8 --svg tv.svg\n"
      "  warpwright draw layout '(6,8)' --op divide --with '<3:1,4:1>' --svg tiles.svg");
  return {layout, [o](std::ostream&) { return draw(*o); }};
}

}  // namespace warpwright::cli
