// A picture: views with an SVG each, and the same as a table.
#pragma once

#include <string>
#include <vector>

namespace warpwright::pictures {

/// A table of a view: what the picture shows, in words. Every row has as many cells as `header`.
struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
};

/// One view of a picture: an SVG, the same as a table, and the values behind both (JSON text, ""
/// for none) for the page's script. Cells of the SVG that can be pointed at have data-row="N" (row
/// of the table), so that page and table light up together.
struct View {
  std::string id;
  std::string title;
  std::string caption;
  std::string svg;
  Table table;
  std::string data;
};

/// What `warpwright draw KIND` makes. `command` is the command line that makes it again.
struct Picture {
  std::string kind;
  std::string title;
  std::string command;
  std::vector<View> views;
};

/// All views below each other in one SVG file, with their titles and captions.
std::string as_svg(const Picture& picture);

/// One JSON object, with a newline behind it: kind, title, command, and of each view id, title,
/// caption, table and data, without its SVG.
std::string as_json(const Picture& picture);

/// The tables as text, columns side by side; for each view at most `most_rows` rows, and how many
/// there are beyond.
std::string as_text(const Picture& picture, std::size_t most_rows = 64);

}  // namespace warpwright::pictures
