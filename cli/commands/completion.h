// Completion in shells, made from the tree of commands and options itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace warpwright::cli {

/// Says which words an option takes, with blanks between them, for completion; the option itself
/// still decides what is legal. Returns the option. Options whose type in the help is words with
/// bars between them ("NT|NN") need not say so.
CLI::Option* offer(CLI::Option* option, const std::string& words);

/// The shells that there is a script for.
const std::vector<std::string>& known_shells();

/// The script by which a shell of known_shells() completes the commands of `app`, their options and
/// the values of options that have a word for each.
std::string completion_script(CLI::App& app, const std::string& shell);

}  // namespace warpwright::cli
