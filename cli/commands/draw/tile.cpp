#include <memory>
#include <optional>
#include <string>

#include "cli/commands/completion.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "warpwright/atom/descriptor_text.h"
#include "warpwright/numeric/types.h"
#include "warpwright/pictures/tile_picture.h"

namespace warpwright::cli {
namespace {

struct TileOptions {
  int rows = 64, depth = 64, k_block = 0;
  std::uint32_t start = 0;
  std::string dtype = "bf16", major = "k", swizzle = "128B";
  bool padded = false, long_k = false;
};

pictures::Picture draw_tile(const TileOptions& o) {
  const std::optional<DType> type = numeric::parse_dtype(o.dtype);
  if (!type) throw InputError("--dtype \"" + o.dtype + "\": there is no such type.");
  if (o.major != "k" && o.major != "mn") {
    throw InputError("--major \"" + o.major + "\": it is " + as_rule("k or mn") + ".");
  }
  pictures::TileAsk ask;
  ask.tile = {o.rows,
              o.depth,
              numeric::bits(*type),
              o.major == "k" ? atom::Major::k : atom::Major::mn,
              atom::parse_swizzle(o.swizzle),
              o.padded};
  ask.type = numeric::name(*type);
  ask.start = o.start;
  ask.k_block = o.k_block;
  ask.long_k = o.long_k;
  return pictures::tile_picture(ask);
}

}  // namespace

DrawKind add_draw_tile(CLI::App& app) {
  CLI::App* tile = app.add_subcommand(
      "tile", "an operand in shared memory: its swizzle, its descriptor, its k_blocks, its banks");
  const auto o = std::make_shared<TileOptions>();
  const Values add(*tile);
  add("--rows", o->rows, "R", "of A along M, of B along N", whole(1, 4096))->capture_default_str();
  add("--k", o->depth, "K", "elements along K", whole(1, 4096))->capture_default_str();
  offer(add("--dtype", o->dtype, "T", "of the elements")->capture_default_str(),
        "bf16 fp16 e4m3 e5m2 tf32 s8 e2m1 e2m3 e3m2");
  offer(add("--major", o->major, "M", "what is contiguous: k or mn")->capture_default_str(),
        "k mn");
  offer(add("--swizzle", o->swizzle, "S", "none, 32B, 64B or 128B")->capture_default_str(),
        "none 32B 64B 128B");
  tile->add_flag("--padded", o->padded,
                 "of 4 or 6 bits: 16 elements in 16 bytes, as kinds that mix types read them");
  tile->add_flag("--k96", o->long_k,
                 "k_blocks of K 96, as sm_103 has them for packed e2m1: 48 bytes");
  add("--k-block", o->k_block, "I", "whose bytes are framed", whole<int>(0))->capture_default_str();
  add("--start", o->start, "BYTE", "byte of shared memory at which it begins",
      whole<int>(0, 262'143))
      ->capture_default_str();
  tile->footer(
      "Examples:\n"
      "  warpwright draw tile --rows 64 --k 64 --svg tile.svg\n"
      "  warpwright draw tile --rows 64 --k 64 --major mn --k-block 1 --svg mn.svg\n"
      "  warpwright draw tile --rows 32 --k 128 --dtype e2m3 --padded --svg padded.svg");
  return {tile, [o](std::ostream&) { return draw_tile(*o); }};
}

}  // namespace warpwright::cli
