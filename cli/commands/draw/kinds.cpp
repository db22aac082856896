#include "cli/commands/draw/kinds.h"

namespace warpwright::cli {

std::vector<DrawKind> add_draw_kinds(CLI::App& draw) {
  return {add_draw_layout(draw),  add_draw_mma(draw),      add_draw_mask(draw),
          add_draw_tile(draw),    add_draw_tmem(draw),     add_draw_roles(draw),
          add_draw_barrier(draw), add_draw_pipeline(draw), add_draw_compare(draw),
          add_draw_tiles(draw),   add_draw_break(draw)};
}

}  // namespace warpwright::cli
