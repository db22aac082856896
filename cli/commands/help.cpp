#include "cli/commands/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <regex>
#include <sstream>
#include <utility>

namespace warpwright::cli {
namespace {

// The text without what stands in braces: the value that a flag of this name gives.
std::string without_braces(std::string text) {
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{')) {
    const std::size_t close = text.find('}', open);
    text.erase(open, close == std::string::npos ? close : close + 1 - open);
  }
  return text;
}

// The first line of a message without its full stop.
std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

// Columns that a help may have: those of the terminal where it goes to one.
std::size_t help_width() {
  constexpr std::size_t most = 100;
  constexpr std::size_t least = 60;
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return most;
  return std::clamp<std::size_t>(size.ws_col, least, most);
}

// The line in several, where it is wider: those behind the first begin where the text of the first
// does. A command goes on behind a backslash.
std::string wrapped(std::string line, std::size_t width) {
  const bool is_command = line.starts_with("  warpwright ");
  std::size_t indent = line.find_first_not_of(' ');
  const bool is_option = line.starts_with("  ");
  // The text of an option stands behind its names.
  const std::size_t gap = indent == std::string::npos ? indent : line.find("  ", indent);
  if (is_option && !is_command && gap != std::string::npos) {
    indent = line.find_first_not_of(' ', gap);
  }
  if (is_command) indent += 4;
  const std::size_t room = is_command ? width - 2 : width;
  std::string text;
  const auto is_quoted = [&line](std::size_t at) {
    return std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(at), '\'') % 2 != 0;
  };
  while (line.size() > width) {
    std::size_t at = line.rfind(' ', room);
    while (is_command && at != std::string::npos && at > 0 && is_quoted(at)) {
      at = line.rfind(' ', at - 1);
    }
    if (at == std::string::npos || line.find_first_not_of(' ') >= at) at = line.find(' ', room);
    if (at == std::string::npos || line.find_first_not_of(' ') >= at) break;
    text += line.substr(0, at) + (is_command ? " \\\n" : "\n");
    line = std::string(std::min(indent, width / 2), ' ') + line.substr(at + 1);
  }
  return text + line;
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::istringstream lines(CLI::Formatter::make_help(app, std::move(name), mode));
  const std::size_t width = help_width();
  std::string text;
  for (std::string line; std::getline(lines, line);) text += wrapped(line, width) + "\n";
  return text;
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool positional) const {
  // A positional argument of several words shows these in place of its name.
  if (positional && !option->get_option_text().empty()) return option->get_option_text();
  return without_braces(CLI::Formatter::make_option_name(option, positional));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) {
    return option->get_positional() ? "" : " " + option->get_option_text();
  }
  if (option->get_type_size() == 0 || option->get_type_name().empty()) return "";
  return " " + option->get_type_name();
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required()) text += " (required)";
  const bool has_value = option->get_type_size() != 0;
  if (has_value && !option->get_default_str().empty()) {
    text += " (default " + option->get_default_str() + ")";
  }
  return text;
}

std::string HelpFormatter::make_option_usage(const CLI::Option* option) const {
  const std::string words = make_option_name(option, true);
  return option->get_required() ? words : "[" + words + "]";
}

std::string sentence_of(const CLI::ParseError& error, CLI::App& app,
                        const std::vector<std::string>& arguments) {
  std::string text = first_line(error.what());
  const std::string name = text.substr(0, text.find(':'));
  CLI::App* last = &app;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
  const CLI::Option* option = last->get_option_no_throw(name);
  if (option == nullptr) return text;
  const std::string type =
      option->get_option_text().empty() ? option->get_type_name() : option->get_option_text();
  const bool is_named = !option->get_positional();
  const std::string shown = is_named ? name : type.empty() ? name : type;
  if (error.get_name() == "ArgumentMismatch") {
    const auto times = std::count_if(arguments.begin(), arguments.end(), [&](const auto& word) {
      return is_named && option->check_name(word.substr(0, word.find('=')));
    });
    if (times > 1) {
      return name + " is given " + (times == 2 ? "twice" : std::to_string(times) + " times") +
             ": give it once";
    }
    std::smatch received;
    static const std::regex number("received ([0-9]+)");
    if (std::regex_search(text, received, number)) {
      const bool is_one = received[1] == "1";
      const int least = option->get_items_expected_min();
      const int most = option->get_items_expected_max();
      return shown + " takes " + std::to_string(least) +
             (most > least ? " to " + std::to_string(most) : "") + " values" +
             (is_named ? " (" + type + ")" : "") + ", and " + received[1].str() +
             (is_one ? " is given" : " are given");
    }
    return name + " is given without its value: write " + name + " " + type;
  }
  return shown + text.substr(name.size());
}

std::string unknown_argument(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::vector<std::string> left = app.remaining(true);
  const auto first = [&](bool option) {
    return std::find_if(arguments.begin(), arguments.end(), [&](const std::string& word) {
      return (word.size() > 1 && word.front() == '-') == option &&
             std::find(left.begin(), left.end(), word) != left.end();
    });
  };
  // Options first: what stands behind an unknown one is often its value.
  if (const auto word = first(true); word != arguments.end()) {
    return "There is no option " + word->substr(0, word->find('='));
  }
  if (const auto word = first(false); word != arguments.end()) {
    return "The argument \"" + *word + "\" is one too many";
  }
  return "";
}

}  // namespace warpwright::cli
