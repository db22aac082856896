// Other programs that commands run.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace warpwright::cli {

/// The file of the program on PATH, else in the folder `beside`; empty where there is none.
std::string find_program(const std::string& name, const std::string& beside = "");

/// Runs a program, words[0] being its file; `said` gets what it prints, piece by piece. Returns its
/// exit status; -1 where it did not start, or a signal ended it.
int run_program(std::vector<std::string> words, const std::function<void(std::string_view)>& said);

/// This program's file.
std::string this_program();

}  // namespace warpwright::cli
