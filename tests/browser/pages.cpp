// Pages for tests/browser/pages_test.py, written by hand: warpwright_pages FOLDER.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "warpwright/pictures/page.h"
#include "warpwright/pictures/svg_parts.h"

namespace {

using namespace warpwright::pictures;

// A grid of cells, cell by cell a row of the table.
View grid(const std::string& id, const std::string& title, int rows, int columns) {
  View view{.id = id,
            .title = title,
            .caption = "Each cell is a row of the table.",
            .svg = "",
            .table = {{"row", "column", "offset", "thread"}, {}},
            .data = "{\"shape\":["};
  view.data += std::to_string(rows) + "," + std::to_string(columns) + "]}";
  std::string svg = svg_head(columns * 40 + 20, rows * 30 + 20);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const auto at = static_cast<std::size_t>(r * columns + c);
      svg += "<g " + data_row(at) + ">" +
             svg_box(10 + c * 40, 10 + r * 30, 38, 28, pale(r), "", "") +
             svg_text(29 + c * 40, 29 + r * 30, std::to_string(c * rows + r), 12,
                      "text-anchor=\"middle\"") +
             "</g>\n";
      view.table.rows.push_back({std::to_string(r), std::to_string(c), std::to_string(c * rows + r),
                                 "T" + std::to_string(r)});
    }
  }
  view.svg = svg + "</svg>\n";
  return view;
}

// Bytes that land, moment by moment.
View moments(const std::string& id, int count) {
  View view{.id = id,
            .title = "A barrier, event by event",
            .caption = "Bytes land at bar[0].",
            .svg = "",
            .table = {{"cycle", "bytes", "what"}, {}},
            .data = ""};
  std::string svg = svg_head(400, 120);
  svg +=
      "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" "
      "markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#1f2933\"/></marker>"
      "</defs>\n<path d=\"M20 20L380 20\" stroke=\"#1f2933\" marker-end=\"url(#tip)\"/>\n";
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    svg += "<g data-step=\"" + std::to_string(i) + "\" " + data_row(at) +
           (i == 0 ? "" : " display=\"none\"") + ">" +
           svg_box(20, 40, 360.0 * i / (count - 1), 30, ink::blue) +
           svg_text(20, 95, std::to_string(i * 1024) + " bytes have landed") + "</g>\n";
    view.table.rows.push_back({std::to_string(40 + 10 * i), std::to_string(i * 1024),
                               i + 1 == count ? "phase 0 is complete" : "1024 bytes land"});
  }
  view.svg = svg + "</svg>\n";
  return view;
}

Picture plain() {
  Picture picture{"plain", "Grids and a barrier", "warpwright draw plain --html plain.html", {}};
  picture.views.push_back(grid("small", "4 x 8", 4, 8));
  picture.views.push_back(moments("bar", 6));
  picture.views.push_back(grid("wide", "6 x 48", 6, 48));
  return picture;
}

// Names that would break out of a page that escapes less than all of it.
Picture hostile() {
  const std::vector<std::string> names = {
      "</script><script>document.title='broken'</script>",
      "\"><img src=x onerror=\"document.title='broken'\">",
      "' onmouseover='document.title=1' x='",
      "<!-- <script> &amp; &lt; ]]> ${x} \\u003c",
      "</style></svg></title><b>bold</b>",
      "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \x01\x1b[0m \xff\xfe",
  };
  Picture picture{names[1], names[0], names[2] + names[3], {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    View view = grid(names[i], names[i], 1, 2);
    view.caption = names[(i + 1) % names.size()];
    view.table.header[3] = names[i];
    view.table.rows[1][3] = names[i];
    view.svg.insert(view.svg.rfind("</svg>"),
                    svg_text(10, 45, names[i]) + svg_box(0, 0, 1, 1, ink::none, names[i]));
    // As JSON writers leave it: a slash and a bracket are no matter to them.
    view.data = R"({"name":"</script><script>document.title='broken'</script><!--"})";
    picture.views.push_back(view);
  }
  return picture;
}

Picture many() {
  Picture picture{"many", "Many views", "warpwright draw many", {}};
  for (int i = 0; i < 40; ++i) {
    picture.views.push_back(i == 0
                                ? grid("v0", "32 x 32", 32, 32)
                                : grid("v" + std::to_string(i), "View " + std::to_string(i), 4, 4));
  }
  // The first view leads to others, as that of a kernel's mutants does.
  std::string& svg = picture.views.front().svg;
  svg.insert(svg.rfind("</svg>"), "<a href=\"#view=v7\" aria-label=\"View 7\">" +
                                      svg_box(0, 0, 9, 9, ink::red) + "</a>\n");
  return picture;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: warpwright_pages FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = words[1];
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  };
  write("plain.html", as_html(plain(), {{"Question", "Does a page need <b>more</b>?"},
                                        {"Report", "nothing found\nin 14 schedules"}}));
  write("hostile.html", as_html(hostile(), {{"</dt></dl>", "</dd><script>"}}));
  write("many.html", as_html(many()));
  write("one.html", as_html({"one", "One view", "", {grid("only", "Only", 2, 2)}}));
  return 0;
}
