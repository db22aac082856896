// `warpwright draw KIND`: pictures, as SVG, as a page, as JSON or as tables.
#pragma once

#include <CLI/CLI.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/commands/draw/kinds.h"

namespace warpwright::cli {

/// What all kinds take, and which of them was called.
struct DrawOptions {
  std::vector<std::string> arguments;  ///< of the command line, for a picture's own command
  std::string svg, html, json;
  std::string view;         ///< the only one that is wanted; empty for all
  bool wants_json = false;  ///< without a file it is printed
  bool table = false;
  std::vector<DrawKind> kinds;
};

void add_draw_command(CLI::App& app, DrawOptions& options);

/// Makes the picture of the kind that was called and writes it (see docs/pictures.md). Returns 0,
/// 2 with one sentence on `err` for what cannot be drawn, or what the kind's own work returns.
int draw_command(const DrawOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
