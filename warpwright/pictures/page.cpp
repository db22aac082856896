#include "warpwright/pictures/page.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "warpwright/facts/format.h"
#include "warpwright/pictures/page_files.h"
#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

// More views than that, or longer titles, are chosen from a list.
constexpr std::size_t kMostLinks = 8;
constexpr std::size_t kMostLetters = 250;

// What a security policy wants of a script: the hash in base64.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::string_view hex_digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 6) {
    const std::string_view three = hex.substr(i, 6);
    std::size_t value = 0;
    for (std::size_t j = 0; j < 6; ++j) {
      value = value * 16 + (j < three.size() ? hex_digits.find(three[j]) : 0);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text += j <= three.size() / 2 ? digits[value >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

void check(const Picture& picture) {
  std::set<std::string> ids;
  for (const View& view : picture.views) {
    if (view.id.empty() || !ids.insert(view.id).second) {
      throw std::invalid_argument("a picture needs an id of its own for each view, not \"" +
                                  view.id + "\" again");
    }
    for (const auto& row : view.table.rows) {
      if (row.size() == view.table.header.size()) continue;
      throw std::invalid_argument("the table of view \"" + view.id + "\" has a row of " +
                                  std::to_string(row.size()) + " cells below a header of " +
                                  std::to_string(view.table.header.size()));
    }
  }
}

// `text` with every `from` as `to`.
std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// An SVG as a part of the page: without the palette's style, which the page has once; with a role
// and a name; and with ids that no other view has.
std::string embedded(const View& view, const std::string& number) {
  std::string svg = view.svg;
  const std::size_t begin = svg.find("<svg");
  if (begin == std::string::npos) return "";
  svg.erase(0, begin);  // an XML declaration has no place in HTML
  constexpr std::string_view end = "</style>";
  const std::size_t style = svg.find("<style>");
  if (style != std::string::npos) {
    svg.erase(style, svg.find(end, style) + end.size() - style);
  }
  std::set<std::string> ids;
  constexpr std::string_view id = " id=\"";
  for (std::size_t at = svg.find(id); at != std::string::npos; at = svg.find(id, at + 1)) {
    const std::size_t first = at + id.size();
    ids.insert(svg.substr(first, svg.find('"', first) - first));
  }
  for (const std::string& each : ids) {
    const std::string own = joined({"v", number, "-", each});
    const auto rename = [&](std::string_view before, std::string_view after) {
      svg = replaced(std::move(svg), joined({before, each, after}), joined({before, own, after}));
    };
    rename(" id=\"", "\"");
    rename("url(#", ")");
    rename("href=\"#", "\"");
  }
  // The parts of an image are nobody's to reach; links are.
  const std::string role = svg.find("<a ") == std::string::npos ? "img" : "group";
  svg.insert(4, " role=\"" + role + "\" aria-labelledby=\"title-" + number + "\"");
  return svg;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.,+-%") == std::string_view::npos;
}

std::string table_of(const View& view, const std::string& number) {
  const Table& table = view.table;
  if (table.header.empty()) return "";
  std::vector<bool> numbers(table.header.size(), true);
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].empty() && !is_number(row[i])) numbers[i] = false;
    }
  }
  const auto cell = [&](const char* tag, std::size_t i, std::string_view text) {
    const std::string head = tag == std::string_view("th") ? "th scope=\"col\"" : tag;
    return "<" + head + (numbers[i] ? " class=\"number\">" : ">") + escaped(text) + "</" + tag +
           ">";
  };
  const std::string rows =
      std::to_string(table.rows.size()) + (table.rows.size() == 1 ? " row" : " rows");
  std::string html = "<details open><summary>Table: " + rows + "</summary>\n";
  html +=
      "<div class=\"search-line\"><label>Search <input type=\"search\" class=\"search\" "
      "autocomplete=\"off\" spellcheck=\"false\"></label><span class=\"found\" role=\"status\">"
      "</span></div>\n";
  html +=
      "<div class=\"rows\" tabindex=\"0\" role=\"region\" aria-label=\"Table\" "
      "aria-describedby=\"title-" +
      number + "\">\n<table><thead><tr>";
  for (std::size_t i = 0; i < table.header.size(); ++i) html += cell("th", i, table.header[i]);
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) html += cell("td", i, row[i]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div></details>\n";
}

std::string button(std::string_view attributes, std::string_view words,
                   std::string_view label = "") {
  return "<button type=\"button\" " + std::string(attributes) +
         (label.empty() ? "" : " aria-label=\"" + std::string(label) + "\"") + ">" +
         std::string(words) + "</button>";
}

std::string tools_of(const View& view, bool has_picture) {
  std::string html = "<div class=\"tools\">";
  if (view.svg.find("data-step=\"") != std::string::npos) {
    html += "<span class=\"steps\">" + button("data-step-by=\"-1\"", "&larr;", "Step back") +
            "<input type=\"range\" class=\"step\" min=\"0\" max=\"0\" value=\"0\" "
            "aria-label=\"Step\">" +
            button("data-step-by=\"1\"", "&rarr;", "Step forward") +
            "<span class=\"count\"></span>" +
            button("class=\"play\" data-action=\"play\"", "Play") + "</span>";
  }
  html += "<span class=\"gap\"></span>";
  if (has_picture) {
    html += button("data-zoom-by=\"0.8\"", "&minus;", "Smaller") +
            button("data-zoom-by=\"1.25\"", "+", "Larger") + button("data-zoom-by=\"0\"", "Fit") +
            button("data-action=\"save-svg\"", "Save SVG");
  }
  html += button("data-action=\"save-data\"", "Save values");
  return html + "</div>\n";
}

std::string section_of(const View& view, std::size_t index) {
  const std::string number = std::to_string(index);
  const std::string svg = embedded(view, number);
  const std::string id = escaped(view.id);
  std::string html = "<section class=\"view\" id=\"view=" + id + "\" data-id=\"" + id +
                     "\" aria-labelledby=\"title-" + number + "\">\n<h2 id=\"title-" + number +
                     "\">" + escaped(view.title) + "</h2>\n";
  if (!view.caption.empty()) {
    html +=
        "<p class=\"caption\" id=\"caption-" + number + "\">" + escaped(view.caption) + "</p>\n";
  }
  html += tools_of(view, !svg.empty());
  if (!svg.empty()) {
    html += "<div class=\"picture\" tabindex=\"0\" role=\"group\" aria-labelledby=\"title-" +
            number + "\"" +
            (view.caption.empty() ? "" : " aria-describedby=\"caption-" + number + "\"") + ">\n" +
            svg + "</div>\n";
  }
  const bool has_rows = view.svg.find("data-row=\"") != std::string::npos;
  html += std::string("<p class=\"readout\" role=\"status\" aria-live=\"polite\" data-hint=\"") +
          (has_rows ? "Point at a cell, or choose it: what it is stands here." : "") + "\"></p>\n";
  html += table_of(view, number);
  if (!view.data.empty()) {
    html += "<script type=\"application/json\" class=\"data\">" +
            replaced(view.data, "<", "\\u003c") + "</script>\n";
  }
  return html + "</section>\n";
}

std::string navigation(const std::vector<View>& views) {
  if (views.size() < 2) return "";
  std::string html = "<nav aria-label=\"Views\">";
  std::size_t letters = 0;
  for (const View& view : views) letters += view.title.size();
  if (views.size() <= kMostLinks && letters <= kMostLetters) {
    for (const View& view : views) {
      const std::string id = escaped(view.id);
      // The script reads the address as a query: what such a text reserves is escaped there too.
      std::string address;
      for (const char c : view.id) {
        constexpr std::string_view hex = "0123456789ABCDEF";
        const auto code = static_cast<unsigned char>(c);
        const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                           (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.';
        if (plain) {
          address += c;
        } else {
          address += {'%', hex[code >> 4], hex[code & 15]};
        }
      }
      html += joined(
          {"<a href=\"#view=", address, "\" data-id=\"", id, "\">", escaped(view.title), "</a>"});
    }
    return html + "</nav>\n";
  }
  html += button("data-move=\"-1\"", "&larr;", "View before") + "<select aria-label=\"View\">";
  for (const View& view : views) html += "<option>" + escaped(view.title) + "</option>";
  return html + "</select>" + button("data-move=\"1\"", "&rarr;", "Next view") + "</nav>\n";
}

// Its lines with their numbers, folded.
std::string source_of(const Note& note) {
  std::string html = "<details><summary>Source</summary><pre class=\"source\">";
  std::istringstream text(note.text);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const bool is_marked =
        std::find(note.marked.begin(), note.marked.end(), number) != note.marked.end();
    html += format("%4d  ", number) +
            (is_marked ? "<mark>" + escaped(line) + "</mark>" : escaped(line)) + "\n";
  }
  return html + "</pre></details>";
}

std::string notes_of(const std::vector<Note>& notes) {
  if (notes.empty()) return "";
  std::string html = "<dl class=\"notes\">\n";
  for (const Note& note : notes) {
    const std::string text = escaped(note.text);
    html += "<dt>" + escaped(note.name) + "</dt><dd>" +
            (note.is_source                         ? source_of(note)
             : text.find('\n') == std::string::npos ? text
                                                    : "<pre>" + text + "</pre>") +
            "</dd>\n";
  }
  return html + "</dl>\n";
}

std::string keys() {
  constexpr std::pair<std::string_view, std::string_view> lines[] = {
      {"<kbd>n</kbd> <kbd>p</kbd>", "next view, view before"},
      {"<kbd>&larr;</kbd> <kbd>&rarr;</kbd> <kbd>Home</kbd> <kbd>End</kbd>", "steps"},
      {"<kbd>s</kbd>", "play the steps, pause"},
      {"<kbd>j</kbd> <kbd>k</kbd>", "next row, row before"},
      {"arrows", "in the picture: from cell to cell; in the table: rows"},
      {"<kbd>/</kbd>", "search in the table"},
      {"<kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd>", "larger, smaller, fit"},
      {"<kbd>d</kbd>", "light or dark"},
      {"<kbd>Esc</kbd>", "choose nothing"},
  };
  std::string html = "<dialog aria-label=\"Keys\"><h2>Keys</h2><table>";
  for (const auto& [key, what] : lines) {
    html += "<tr><td>" + std::string(key) + "</td><td>" + std::string(what) + "</td></tr>";
  }
  return html +
         "</table><form method=\"dialog\"><button autofocus>Close</button></form></dialog>\n";
}

}  // namespace

std::string as_html(const Picture& picture, const std::vector<Note>& notes) {
  check(picture);
  const std::string title = escaped(picture.title);
  std::string html =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'sha256-" +
      base64_of_hex(kPageScriptHash) +
      "'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"generator\" content=\"warpwright\">\n<title>" +
      title + "</title>\n<style>\n" + kPageStyle + "</style>\n<style id=\"palette\">" +
      palette_rules() + "@media(prefers-color-scheme:dark){:root{" + palette_variables(true) +
      "}}</style>\n<style>:root[data-theme=\"light\"]{" + palette_variables(false) +
      "}:root[data-theme=\"dark\"]{" + palette_variables(true) + "}</style>\n</head>\n";
  html += "<body data-kind=\"" + escaped(picture.kind) +
          "\">\n<a class=\"skip\" href=\"#main\">To the picture</a>\n<header><div "
          "class=\"words\"><h1>" +
          title + "</h1>\n";
  if (!picture.command.empty()) {
    html += "<p class=\"command\"><code>" + escaped(picture.command) + "</code>" +
            button("data-action=\"copy\"", "Copy", "Copy the command") + "</p>\n";
  }
  html += "</div><div class=\"buttons\">" +
          button("class=\"theme\" data-action=\"theme\"", "Dark") +
          button("data-action=\"keys\"", "Keys") + "</div></header>\n" + notes_of(notes) +
          navigation(picture.views) + "<main id=\"main\" tabindex=\"-1\">\n";
  for (std::size_t i = 0; i < picture.views.size(); ++i) html += section_of(picture.views[i], i);
  return html + "</main>\n<footer>Made by Warpwright. This file needs no network.</footer>\n" +
         keys() + "<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace warpwright::pictures
