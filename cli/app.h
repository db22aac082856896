// The command line as a function: main() and the tests call it.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace warpwright::cli {

/// The project's version: "0.1.0".
const char* version();

/// Runs `warpwright` with these arguments (without the program's name). Returns the exit status: 0,
/// 1 for a failed check or faults found while running, 2 for bad usage or input, and where `out`
/// did not take all of the output.
int run_app(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
