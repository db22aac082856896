// The HTML page of a picture, as text; tests/browser looks at it in a browser.
#include "warpwright/pictures/page.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "warpwright/pictures/svg_parts.h"

namespace warpwright::pictures {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

View view(const std::string& id) {
  return {.id = id,
          .title = "View " + id,
          .caption = "",
          .svg = svg_head(10, 10) + svg_box(0, 0, 5, 5, ink::blue, "", data_row(0)) +
                 "<marker id=\"tip\"/><path marker-end=\"url(#tip)\"/></svg>\n",
          .table = {{"what", "bytes"}, {{"a box", "16"}}},
          .data = "{\"bytes\":16}"};
}

TEST(Page, HoldsViewsTablesAndValues) {
  const std::string page =
      as_html({"kind", "Title", "warpwright draw kind", {view("a"), view("b")}},
              {{"Question", "Why?"}, {"Report", "one\ntwo"}});
  EXPECT_TRUE(page.starts_with("<!doctype html>\n<html lang=\"en\">"));
  EXPECT_EQ(count(page, "<section "), 2u);
  EXPECT_EQ(count(page, "<svg "), 2u);
  EXPECT_EQ(count(page, "<td>a box</td><td class=\"number\">16</td>"), 2u);
  EXPECT_EQ(count(page, "{\"bytes\":16}"), 2u);
  EXPECT_EQ(count(page, "<a href=\"#view=b\""), 1u);
  EXPECT_EQ(count(page, "<dd>Why?</dd>"), 1u);
  EXPECT_EQ(count(page, "<pre>one\ntwo</pre>"), 1u);
  // The palette's style is there once, not in each SVG.
  EXPECT_EQ(count(page, ".ww-ground{fill"), 1u);
}

TEST(Page, ASourceHasNumbersAndMarks) {
  Note source{"a.h", "int a;\nint b<1>;\n"};
  source.is_source = true;
  source.marked = {2};
  const std::string page = as_html({"kind", "Title", "", {view("a")}}, {source});
  EXPECT_EQ(count(page, "   1  int a;\n   2  <mark>int b&lt;1&gt;;</mark>\n"), 1u);
  EXPECT_EQ(count(page, "<mark>"), 1u);
}

TEST(Page, IdsOfSvgsAreApart) {
  const std::string page = as_html({"kind", "", "", {view("a"), view("b")}});
  for (const char* own : {"v0-tip", "v1-tip"}) {
    EXPECT_EQ(count(page, " id=\"" + std::string(own) + "\""), 1u);
    EXPECT_EQ(count(page, "url(#" + std::string(own) + ")"), 1u);
  }
  EXPECT_EQ(count(page, "\"tip\""), 0u);
}

TEST(Page, NoTextBreaksOut) {
  const std::string name = "</script><b a=\"'>&";
  View hostile = view(name);
  hostile.title = hostile.caption = name;
  hostile.table.header[0] = hostile.table.rows[0][0] = name;
  hostile.data = R"({"name":"</script><!--"})";
  const std::string page = as_html({name, name, name, {hostile, view("b")}}, {{name, name}});
  EXPECT_EQ(count(page, "<b "), 0u);
  EXPECT_EQ(count(page, "</script>"), 3u);
  EXPECT_EQ(count(page, "<!--"), 0u);
  EXPECT_EQ(count(page, "\\u003c/script>\\u003c!--"), 1u);
  EXPECT_EQ(count(page, "#view=%3C%2Fscript%3E%3Cb%20a%3D%22%27%3E%26\""), 1u);
}

TEST(Page, IsWithoutAddresses) {
  const std::string page = as_html({"kind", "", "", {view("a")}});
  EXPECT_EQ(count(page, "http"), 2u);  // "http-equiv", and SVG's name
  EXPECT_EQ(count(page, "http://www.w3.org/2000/svg"), 1u);
  EXPECT_EQ(count(page, "default-src 'none'"), 1u);
  EXPECT_EQ(count(page, "script-src 'sha256-"), 1u);
}

TEST(Page, RefusesViewsThatCannotBeToldApart) {
  EXPECT_THROW(as_html({"", "", "", {view("a"), view("a")}}), std::invalid_argument);
  EXPECT_THROW(as_html({"", "", "", {view("")}}), std::invalid_argument);
  View ragged = view("a");
  ragged.table.rows.push_back({"one cell"});
  EXPECT_THROW(as_html({"", "", "", {ragged}}), std::invalid_argument);
}

TEST(SvgParts, EscapedTextIsXml) {
  EXPECT_EQ(escaped("a<b> & \"c\"\n\t"), "a&lt;b&gt; &amp; &quot;c&quot;\n\t");
  const std::string none = "\xef\xbf\xbd";
  EXPECT_EQ(escaped("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(escaped(std::string_view("\0\x01\x1b", 3)), none + none + none);
  EXPECT_EQ(escaped("\xff\xfe"), none + none);
  EXPECT_EQ(escaped("\xc3"), none);                        // ends too early
  EXPECT_EQ(escaped("\xc0\x80"), none + none);             // longer than it need be
  EXPECT_EQ(escaped("\xe0\x80\x80"), none + none + none);  // likewise
  EXPECT_EQ(escaped("\xed\xa0\x80"), none + none + none);  // half of a pair of UTF-16
  EXPECT_EQ(escaped("\xef\xbf\xbf"), none + none + none);  // no letter
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), none + none + none + none);
  EXPECT_EQ(escaped("\xc3<"), none + "&lt;");
}

}  // namespace
}  // namespace warpwright::pictures
