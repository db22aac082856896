#include "cli/commands/draw/draw_command.h"

#include <algorithm>
#include <string_view>

#include "cli/commands/gemm/outputs.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/values.h"
#include "cli/files/output_file.h"
#include "cli/files/printable.h"
#include "warpwright/layout/error.h"

namespace warpwright::cli {
namespace {

// For the outputs: what they are called in messages, and the ending of their files.
std::vector<Output> outputs_of(const DrawOptions& o) {
  return {{"--svg", "The picture", o.svg, {".svg"}},
          {"--html", "The page", o.html, {".html"}},
          {"--json", "The numbers", o.json, {".json"}}};
}

// A word as a shell takes it.
std::string quoted(const std::string& word) {
  const bool is_plain = word.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyz"
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789-_=.,:/+%@") == std::string::npos;
  if (is_plain && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// The command line without the outputs.
std::string command_line(const DrawOptions& o) {
  std::string text = "warpwright";
  for (std::size_t i = 0; i < o.arguments.size(); ++i) {
    const std::string& word = o.arguments[i];
    if (word == "--table") continue;
    bool is_output = false;
    for (const auto& [option, what, path, endings] : outputs_of(o)) {
      if (word == option) {
        is_output = true;
        if (i + 1 < o.arguments.size() && !path.empty() && o.arguments[i + 1] == path) ++i;
      }
      is_output = is_output || word.starts_with(std::string(option) + "=");
    }
    if (!is_output) text += " " + quoted(word);
  }
  return text;
}

// Leaves the view that is wanted.
void choose_view(const std::string& wanted, pictures::Picture& picture) {
  if (wanted.empty()) return;
  const std::string known = joined(picture.views, ", ", ", ", &pictures::View::id);
  std::erase_if(picture.views, [&](const pictures::View& view) { return view.id != wanted; });
  if (picture.views.empty()) {
    throw InputError("--view is " + printable(wanted) + "; this picture's views are " +
                     as_rule(known) + ".");
  }
}

pictures::Picture make(const DrawOptions& o, const DrawKind& kind, std::ostream& err) {
  try {
    pictures::Picture picture = kind.make(err);
    picture.kind = kind.app->get_name();
    if (picture.command.empty()) picture.command = command_line(o);
    choose_view(o.view, picture);
    return picture;
  } catch (const layout::Error& refusal) {
    Sentence said = std::string_view(refusal.what());
    said.rule = refusal.rule();
    throw InputError(said);
  }
}

// The page, where one is asked for; refused where it is too large.
std::string page_of(const DrawOptions& o, const DrawKind& kind, const pictures::Picture& picture) {
  if (o.html.empty()) return "";
  std::string page = pictures::as_html(picture);
  if (page.size() > kind.most_page_bytes) {
    throw InputError("The page would have " + std::to_string(page.size()) +
                     " bytes; one has at most " + std::to_string(kind.most_page_bytes) +
                     ": draw less, or write --svg or --json.");
  }
  return page;
}

}  // namespace

void add_draw_command(CLI::App& app, DrawOptions& o) {
  CLI::App* draw = app.add_subcommand("draw", "pictures of what kernels work with");
  draw->require_subcommand(1);
  o.kinds = {add_draw_layout(*draw),  add_draw_mma(*draw),      add_draw_mask(*draw),
             add_draw_tile(*draw),    add_draw_tmem(*draw),     add_draw_roles(*draw),
             add_draw_barrier(*draw), add_draw_pipeline(*draw), add_draw_compare(*draw),
             add_draw_tiles(*draw),   add_draw_break(*draw)};
  for (const DrawKind& kind : o.kinds) {
    const Values add(*kind.app);
    add("--svg", o.svg, "FILE", "where the picture is written");
    add("--html", o.html, "FILE",
        "where it is written as a page: views to choose, steps, tables, an SVG to save");
    add.json_file(
        o.wants_json, o.json,
        "where its tables and values are written; without FILE they are all that is printed");
    add("--view", o.view, "ID", "one of its views instead of all; --json names them");
    kind.app->add_flag("--table", o.table, "print the same as tables");
  }
  draw->footer(
      "Examples:\n"
      "  warpwright draw layout '(4,8):(8,1)' --svg layout.svg\n"
      "  warpwright draw layout '(4,8):(8,1)' --html layout.html");
}

int draw_command(const DrawOptions& o, std::ostream& out, std::ostream& err) {
  const bool prints_json = o.wants_json && o.json.empty();
  return exit_status(out, err, prints_json, [&] {
    check_outputs(outputs_of(o));
    if (o.svg.empty() && o.html.empty() && o.json.empty() && !o.wants_json && !o.table) {
      throw InputError("Where to? Give --svg FILE.svg, --html FILE.html or --table.");
    }
    const auto kind = std::find_if(o.kinds.begin(), o.kinds.end(),
                                   [](const DrawKind& k) { return k.app->parsed(); });
    const pictures::Picture picture = make(o, *kind, err);
    const auto write = [&](const std::string& path, const std::string& content,
                           const std::string& what) {
      if (path.empty()) return;
      replace_file(path, content);
      if (!prints_json) out << printable(path) << ": " << what << "\n";
    };
    if (o.table && !prints_json) out << pictures::as_text(picture);
    const std::string page = page_of(o, *kind, picture);
    const std::size_t views = picture.views.size();
    write(o.svg, pictures::as_svg(picture),
          picture.title + (views == 1 ? "" : ", " + std::to_string(views) + " views"));
    write(o.html, page, "its page");
    write(o.json, pictures::as_json(picture), "its tables and values");
    if (prints_json) out << pictures::as_json(picture);
    return 0;
  });
}

}  // namespace warpwright::cli
