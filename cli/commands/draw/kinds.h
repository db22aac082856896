// The kinds of pictures that `warpwright draw` knows: each is a subcommand in a file of its own.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <functional>
#include <ostream>

#include "warpwright/pictures/page.h"
#include "warpwright/pictures/picture.h"

namespace warpwright::cli {

/// A kind: its subcommand, whose options `make` has read, and what makes the picture. `make` may
/// say how far it is on the stream; it throws InputError, RunError or layout::Error. Its command is
/// filled in by `draw` where it leaves it empty, and its kind is the subcommand's name.
struct DrawKind {
  CLI::App* app = nullptr;
  std::function<pictures::Picture(std::ostream& err)> make;
  std::size_t most_page_bytes = pictures::most_page_bytes;  ///< that its HTML may have
};

/// Each adds its subcommand to `draw`.
DrawKind add_draw_layout(CLI::App& draw);
DrawKind add_draw_mma(CLI::App& draw);
DrawKind add_draw_mask(CLI::App& draw);
DrawKind add_draw_tile(CLI::App& draw);
DrawKind add_draw_tmem(CLI::App& draw);
DrawKind add_draw_roles(CLI::App& draw);
DrawKind add_draw_barrier(CLI::App& draw);
DrawKind add_draw_pipeline(CLI::App& draw);
DrawKind add_draw_compare(CLI::App& draw);
DrawKind add_draw_tiles(CLI::App& draw);
DrawKind add_draw_break(CLI::App& draw);

}  // namespace warpwright::cli
