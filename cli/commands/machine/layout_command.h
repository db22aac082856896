#pragma once

#include <iosfwd>
#include <string>

namespace warpwright::cli {

/// `warpwright layout 'EXPR' [--table]`: prints the value of the expression, then its index table
/// when asked. Returns 0, or 2 with one sentence on `err` when the expression is refused.
/// With `json` one object: the value, and of a layout its size and, with `table`, all its offsets.
int layout_command(const std::string& expr, bool table, bool json, std::ostream& out,
                   std::ostream& err);

}  // namespace warpwright::cli
