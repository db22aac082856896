#include "cli/commands/draw/kinds.h"

namespace warpwright::cli {

std::vector<DrawKind> add_draw_kinds(CLI::App& draw) {
  return {add_draw_layout(draw)};
}

}  // namespace warpwright::cli
