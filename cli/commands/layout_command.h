#pragma once

#include <iosfwd>
#include <string>

namespace warpwright::cli {

/// `warpwright layout 'EXPR' [--table]`: prints the value of the expression, then its index table
/// when asked. Returns 0, or 2 with one sentence on `err` when the expression is refused.
int layout_command(const std::string& expr, bool table, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
