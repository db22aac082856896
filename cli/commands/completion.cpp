#include "cli/commands/completion.h"

#include <algorithm>
#include <string_view>

#include "cli/files/printable.h"
#include "cli/files/tensor_file.h"

#include "cli/compute/words.h"

namespace warpwright::cli {
namespace {

// What `offer` said: the name of a validator that lets everything pass.
constexpr std::string_view kOffers = "offers ";

std::vector<std::string> words_between(std::string_view text, char mark) {
  std::vector<std::string> words = split(text, mark);
  std::erase(words, "");
  return words;
}

std::string offered(CLI::Option& option) {
  try {
    for (int i = 0;; ++i) {
      const std::string& name = option.get_validator(i)->get_name();
      if (name.starts_with(kOffers)) return name.substr(kOffers.size());
    }
  } catch (const CLI::OptionNotFound&) {
    return "";  // that was the last validator
  }
}

// An option, or an argument without a name, as shells complete it.
struct Value {
  std::vector<std::string> names;  // "--dtype"; none of an argument
  std::string help;                // its first clause
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> words;
};

// Words that stand for something else in "LIST|T|FILE".
bool is_placeholder(const std::string& word) {
  constexpr std::string_view known[] = {"FILE", "LIST", "T", "X", "M", "N"};
  return word.find(':') != std::string::npos ||
         std::find(std::begin(known), std::end(known), word) != std::end(known);
}

std::string first_clause(const std::string& text) {
  const std::size_t end = text.find_first_of(":;(");
  std::string clause = end == 0 ? text : text.substr(0, end);
  while (!clause.empty() && clause.back() == ' ') clause.pop_back();
  return clause.substr(0, 70);
}

Value value_of(CLI::Option& option) {
  Value v;
  for (const std::string& name : option.get_lnames()) v.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) v.names.push_back("-" + name);
  v.takes_value = option.get_items_expected_max() > 0;
  v.help = first_clause(option.get_description());
  if (!v.takes_value) return v;
  const std::string type =
      option.get_option_text().empty() ? option.get_type_name() : option.get_option_text();
  v.words = words_between(offered(option), ' ');
  const std::vector<std::string> kinds = words_between(type, '|');
  v.takes_file = type.find(".safetensors") != std::string::npos ||
                 type.find(".json") != std::string::npos ||
                 std::find(kinds.begin(), kinds.end(), "FILE") != kinds.end();
  if (!v.words.empty() || kinds.size() < 2) return v;
  for (const std::string& word : kinds) {
    const std::string plain = word.substr(0, word.find('['));  // rows|columns[=FILE]
    if (!is_placeholder(plain)) v.words.push_back(plain);
  }
  return v;
}

// A command by its words ("explain gemm"; for the program none), with what may follow it.
struct Command {
  std::string path;
  std::string about;
  std::vector<std::string> commands, abouts;
  std::vector<Value> options;
  Value argument;  // behind the options
};

void collect(CLI::App& app, const std::string& path, std::vector<Command>& all) {
  Command command;
  command.path = path;
  command.about = app.get_description();
  const auto every = [](const CLI::App* /*app*/) { return true; };
  for (const CLI::App* sub : app.get_subcommands(every)) {
    command.commands.push_back(sub->get_name());
    command.abouts.push_back(first_clause(sub->get_description()));
  }
  for (CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const Value argument = value_of(*option);
      command.argument.takes_file = command.argument.takes_file || argument.takes_file;
      command.argument.words.insert(command.argument.words.end(), argument.words.begin(),
                                    argument.words.end());
    } else if (!option->get_group().empty()) {  // hidden options have none
      command.options.push_back(value_of(*option));
    }
  }
  all.push_back(std::move(command));
  for (CLI::App* sub : app.get_subcommands(every)) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), all);
  }
}

std::vector<std::string> option_names(const Command& c) {
  std::vector<std::string> names;
  for (const Value& o : c.options) names.insert(names.end(), o.names.begin(), o.names.end());
  return names;
}

std::vector<std::string> paths_of(const std::vector<Command>& all) {
  std::vector<std::string> paths;
  for (const Command& c : all) {
    if (!c.path.empty()) paths.push_back("\"" + c.path + "\"");
  }
  return paths;
}

// The lines of a `case` over "COMMAND OPTION" that set `offers` and `files`; bash and zsh read them
// alike.
std::string value_cases(const std::vector<Command>& all) {
  std::string text;
  for (const Command& c : all) {
    for (const Value& o : c.options) {
      if (!o.takes_value) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : o.names) patterns.push_back("\"" + c.path + " " + name + "\"");
      text += "    " + joined(patterns, " | ") + ") offers=\"" + joined(o.words, " ") +
              "\" files=" + (o.takes_file ? "1" : "") + " ;;\n";
    }
  }
  return text;
}

std::string command_cases(const std::vector<Command>& all) {
  std::string text;
  for (const Command& c : all) {
    std::vector<std::string> words = c.commands;
    words.insert(words.end(), c.argument.words.begin(), c.argument.words.end());
    text += "    \"" + c.path + "\") offers=\"" + joined(words, " ") + "\" flags=\"" +
            joined(option_names(c), " ") + "\" files=" + (c.argument.takes_file ? "1" : "") +
            " ;;\n";
  }
  return text;
}

std::string filled(std::string text, const std::vector<Command>& all) {
  for (const auto& [place, with] : {std::pair{std::string("@PATHS@"), joined(paths_of(all), " | ")},
                                    {"@VALUES@\n", value_cases(all)},
                                    {"@COMMANDS@\n", command_cases(all)}}) {
    text.replace(text.find(place), place.size(), with);
  }
  return text;
}

// COMP_WORDS has "--dtype=bf" in three, as = breaks words.
constexpr const char* kBash =
    R"(# bash completion for warpwright: `warpwright completion bash` prints it.
_warpwright() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= word i
  local offers= flags= files=
  if [[ $current == "=" ]]; then
    current=
  elif [[ $before == "=" && $COMP_CWORD -ge 2 ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${path:+$path }${COMP_WORDS[i]}
    case "$word" in
    @PATHS@) path=$word ;;
    esac
  done
  COMPREPLY=()
  case "$path $before" in
@VALUES@
    *)
    case "$path" in
@COMMANDS@
    esac
    [[ $current == -* ]] && offers=$flags files=
    ;;
  esac
  COMPREPLY=($(compgen -W "$offers" -- "$current"))
  if [[ -n $files ]]; then
    compopt -o filenames 2>/dev/null
    local IFS=$'\n'
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _warpwright warpwright
)";

constexpr const char* kZsh = R"(#compdef warpwright
# zsh completion for warpwright: `warpwright completion zsh` prints it.
_warpwright() {
  local current=$words[CURRENT] before=$words[CURRENT-1] command= word i
  local -a line
  line=("${words[@]}")
  local offers= flags= files=
  if [[ $current == --*=* ]]; then
    before=${current%%=*}
    compset -P '*='
  fi
  for ((i = 2; i < CURRENT; ++i)); do
    word=${command:+$command }$line[i]
    case "$word" in
    (@PATHS@) command=$word ;;
    esac
  done
  case "$command $before" in
@VALUES@
    *)
    case "$command" in
@COMMANDS@
    esac
    [[ $current == -* ]] && offers=$flags files=
    ;;
  esac
  [[ -n $offers ]] && compadd -- ${=offers}
  [[ -n $files ]] && _files
}
if [[ $funcstack[1] == _warpwright ]]; then
  _warpwright "$@"
else
  compdef _warpwright warpwright
fi
)";

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_script(const std::vector<Command>& all) {
  std::string text =
      "# fish completion for warpwright: `warpwright completion fish` prints it.\n"
      "function __warpwright_at --description 'Is this the command that is typed?'\n"
      "  set --local path\n"
      "  for word in (commandline --tokenize --cut-at-cursor --current-process)[2..]\n"
      "    set --local longer (string join -- ' ' $path $word)\n"
      "    if contains -- $longer " +
      [&] {
        std::vector<std::string> quoted;
        for (const Command& c : all) {
          if (!c.path.empty()) quoted.push_back(fish_quoted(c.path));
        }
        return joined(quoted, " ");
      }() +
      "\n"
      "      set path $longer\n"
      "    end\n"
      "  end\n"
      "  test \"$path\" = \"$argv\"\n"
      "end\n"
      "complete --command warpwright --no-files\n";
  for (const Command& c : all) {
    const std::string here = "complete --command warpwright --condition " +
                             fish_quoted("__warpwright_at" + (c.path.empty() ? "" : " " + c.path));
    for (std::size_t i = 0; i < c.commands.size(); ++i) {
      text += here + " --arguments " + c.commands[i] + " --description " +
              fish_quoted(c.abouts[i]) + "\n";
    }
    if (!c.argument.words.empty()) {
      text += here + " --arguments " + fish_quoted(joined(c.argument.words, " ")) + "\n";
    }
    if (c.argument.takes_file) text += here + " --force-files\n";
    for (const Value& o : c.options) {
      std::string line = here;
      for (const std::string& name : o.names) {
        line += name.starts_with("--") ? " --long-option " + name.substr(2)
                                       : " --short-option " + name.substr(1);
      }
      if (o.takes_value) line += o.takes_file ? " --require-parameter" : " --exclusive";
      if (!o.words.empty()) line += " --arguments " + fish_quoted(joined(o.words, " "));
      if (o.takes_file) line += " --force-files";
      text += line + " --description " + fish_quoted(o.help) + "\n";
    }
  }
  return text;
}

}  // namespace

CLI::Option* offer(CLI::Option* option, const std::string& words) {
  const auto pass = [](std::string& /*value*/) { return std::string(); };
  return option->check(CLI::Validator(pass, "", std::string(kOffers) + words));
}

const std::vector<std::string>& known_shells() {
  static const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(CLI::App& app, const std::string& shell) {
  std::vector<Command> all;
  collect(app, "", all);
  if (shell == "bash") return filled(kBash, all);
  if (shell == "zsh") return filled(kZsh, all);
  if (shell == "fish") return fish_script(all);
  throw InputError("There is no completion for the shell \"" + shell + "\"; " +
                   as_rule("it must be ", joined(known_shells(), ", ")) + ": the nearest is " +
                   as_nearest("bash") + ".");
}

}  // namespace warpwright::cli
