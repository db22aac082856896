#include "warpwright/pictures/picture.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

constexpr double kMargin = 20;
constexpr double kLeastWidth = 640;

// Letters of this size that go into a width, on the safe side.
std::size_t letters(double width, double size) {
  return static_cast<std::size_t>(width / (0.56 * size));
}

// The text in lines of at most `most` letters, broken between words.
std::vector<std::string> wrapped(std::string_view text, std::size_t most) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::size_t end = std::min(text.size(), text.find('\n'));
    if (end > most) {
      const auto blank = text.rfind(' ', most);
      end = blank == std::string_view::npos || blank == 0 ? most : blank;
    }
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  }
  return lines;
}

std::string table_text(const Table& table, std::size_t most_rows) {
  std::vector<std::size_t> widths;
  for (const std::string& word : table.header) widths.push_back(word.size());
  const std::size_t shown = std::min(most_rows, table.rows.size());
  for (std::size_t r = 0; r < shown; ++r) {
    for (std::size_t c = 0; c < widths.size(); ++c) {
      widths[c] = std::max(widths[c], table.rows[r][c].size());
    }
  }
  const auto line = [&](const std::vector<std::string>& words) {
    std::string text = " ";
    for (std::size_t c = 0; c < words.size(); ++c) {
      text += " " + words[c];
      if (c + 1 < words.size()) text += std::string(widths[c] - words[c].size() + 1, ' ');
    }
    while (text.ends_with(' ')) text.pop_back();
    return text + "\n";
  };
  std::string text = line(table.header);
  for (std::size_t r = 0; r < shown; ++r) text += line(table.rows[r]);
  if (shown < table.rows.size()) {
    text +=
        "  ... and " + std::to_string(table.rows.size() - shown) + " more; --json has them all.\n";
  }
  return text;
}

}  // namespace

std::string as_svg(const Picture& picture) {
  double width = kLeastWidth;
  std::vector<SvgBody> bodies;
  for (const View& view : picture.views) {
    bodies.push_back(svg_body(view.svg));
    width = std::max(width, bodies.back().width + 2 * kMargin);
  }
  std::string inside;
  double y = kMargin;
  const auto lines = [&](std::string_view text, double size, std::string_view more) {
    for (const std::string& line : wrapped(text, letters(width - 2 * kMargin, size))) {
      y += size * 1.35;
      inside += svg_text(kMargin, y - size * 0.3, line, size, more);
    }
  };
  lines(picture.title, 17, "font-weight=\"600\"");
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const View& view = picture.views[i];
    y += 8;
    if (view.title != picture.title) lines(view.title, 14, "font-weight=\"600\"");
    lines(view.caption, 12, "opacity=\"0.8\"");
    y += 8;
    inside += "<svg x=\"" + decimal(kMargin) + "\" y=\"" + decimal(y) + "\" width=\"" +
              decimal(bodies[i].width) + "\" height=\"" + decimal(bodies[i].height) +
              "\" viewBox=\"0 0 " + decimal(bodies[i].width) + " " + decimal(bodies[i].height) +
              "\">\n" + bodies[i].inside + "</svg>\n";
    y += bodies[i].height + 8;
  }
  return svg_head(width, y + kMargin) + inside + "</svg>\n";
}

std::string as_json(const Picture& picture) {
  using nlohmann::ordered_json;
  ordered_json json;
  json["kind"] = picture.kind;
  json["title"] = picture.title;
  json["command"] = picture.command;
  json["views"] = ordered_json::array();
  for (const View& view : picture.views) {
    ordered_json one;
    one["id"] = view.id;
    one["title"] = view.title;
    one["caption"] = view.caption;
    one["header"] = view.table.header;
    one["rows"] = view.table.rows;
    one["data"] = view.data.empty() ? ordered_json() : ordered_json::parse(view.data);
    json["views"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string as_text(const Picture& picture, std::size_t most_rows) {
  std::string text = picture.title + "\n";
  for (const View& view : picture.views) {
    if (view.title != picture.title) text += "\n" + view.title + "\n";
    text += table_text(view.table, most_rows);
  }
  return text;
}

}  // namespace warpwright::pictures
