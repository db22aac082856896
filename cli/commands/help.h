// Help texts as this command line wants them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace warpwright::cli {

/// Lists an option as "--rounds R   rounds that ... (default 21)". CLI11's own way has the default
/// behind the type, "--pair,--one-sm{false}" for a flag with an opposite, and "extents(0x)" for
/// positional arguments that may be left out.
class HelpFormatter final : public CLI::Formatter {
 public:
  /// No line is wider than a terminal, and none wider than 100 columns.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option_name(const CLI::Option* option, bool positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
};

/// What CLI11 has against the arguments, in words of this command line and without a full stop.
std::string sentence_of(const CLI::ParseError& error, CLI::App& app,
                        const std::vector<std::string>& arguments);

/// The sentence for arguments that `app` did not take; `arguments` are all, in their order. Empty
/// where it took them.
std::string unknown_argument(const CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace warpwright::cli
