// What a test reads off a picture: its tables by columns, and the boxes of its SVG by their rows.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/pictures/picture.h"

namespace warpwright::pictures::tests {

/// Rows of a view's table by the name of a column.
inline std::size_t column(const View& view, const std::string& name) {
  for (std::size_t i = 0; i < view.table.header.size(); ++i) {
    if (view.table.header[i] == name) return i;
  }
  ADD_FAILURE() << "there is no column " << name;
  return 0;
}
inline std::string word(const View& view, std::size_t row, const std::string& name) {
  return view.table.rows.at(row).at(column(view, name));
}
inline int number(const View& view, std::size_t row, const std::string& name) {
  return std::atoi(word(view, row, name).c_str());
}

/// The colours of the boxes that point to each row of the table.
inline std::map<std::size_t, std::vector<std::string>> boxes(const std::string& svg) {
  std::map<std::size_t, std::vector<std::string>> all;
  for (std::size_t at = svg.find("<rect "); at != std::string::npos;
       at = svg.find("<rect ", at + 1)) {
    const std::string box = svg.substr(at, svg.find('>', at) - at);
    const auto row = box.find("data-row=\"");
    if (row == std::string::npos) continue;
    const auto fill = box.find("fill=\"") + 6;
    all[static_cast<std::size_t>(std::atoi(box.c_str() + row + 10))].push_back(
        box.substr(fill, box.find('"', fill) - fill));
  }
  return all;
}

/// Every row has as many words as the header; every row that a box points to is there; the SVG is
/// one element, and so is that of the picture as a whole.
inline void expect_sound(const Picture& picture) {
  std::set<std::string> ids;
  for (const View& view : picture.views) {
    SCOPED_TRACE(view.id);
    EXPECT_TRUE(ids.insert(view.id).second);
    EXPECT_FALSE(view.title.empty());
    for (const auto& row : view.table.rows) ASSERT_EQ(row.size(), view.table.header.size());
    for (const auto& [row, fills] : boxes(view.svg)) ASSERT_LT(row, view.table.rows.size());
    EXPECT_TRUE(view.svg.starts_with("<svg ") && view.svg.ends_with("</svg>\n"));
  }
  const std::string all = as_svg(picture);
  EXPECT_TRUE(all.starts_with("<svg ") && all.ends_with("</svg>\n"));
  EXPECT_LT(all.size(), std::size_t{1} << 20);
}

}  // namespace warpwright::pictures::tests
