#include "warpwright/pictures/svg_parts.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace warpwright::pictures {
namespace {

constexpr std::string_view kFonts =
    "Inter, system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif";
constexpr std::string_view kWhite = "#ffffff";

// Light, and what it is on dark ground.
struct Tone {
  std::string_view light, dark;
};
constexpr Tone kPalette[] = {
    // texts
    {"#1f2933", "#e6eaef"},
    {"#111827", "#f3f5f8"},
    {"#374151", "#c3cad4"},
    {"#4b5563", "#b4bdc9"},
    {"#6b7480", "#9aa3af"},
    {"#10253d", "#dceaf8"},
    {"#0c2f22", "#d5f2e6"},
    {"#3d2208", "#fbe6d0"},
    {"#2c1233", "#f3e0f7"},
    // greys
    {"#fafbfc", "#1b2026"},
    {"#f1f2f4", "#22272e"},
    {"#e9ecf0", "#2a3038"},
    {"#e5e7eb", "#2d333b"},
    {"#dfe3e8", "#3a424d"},
    {"#d5dae1", "#3a424d"},
    {"#d6dee8", "#38434f"},
    {"#b8c4d2", "#4a5868"},
    {"#9aa5b1", "#6d7885"},
    // pale
    {"#8fb9e3", "#2d5f93"},
    {"#86cfb0", "#226e52"},
    {"#f4bd86", "#8f5522"},
    {"#cfa5d9", "#6c3f79"},
    {"#f2e08a", "#776614"},
    {"#e6a1a1", "#8c3d3d"},
    {"#9edbe0", "#1f6d73"},
    {"#c9d98b", "#5a6b1c"},
    {"#f0b3cd", "#8a3a5e"},
    {"#b3aef0", "#4a43a0"},
    {"#d9c2a3", "#6f5632"},
    {"#a9c9b9", "#3d5f4e"},
    {"#ffd3b0", "#7a4a26"},
    {"#bcd7f5", "#24476b"},
    {"#dcdc9e", "#5c5c28"},
    // strong
    {"#2f6fb3", "#3f83ca"},
    {"#1f8a63", "#23966c"},
    {"#d9772b", "#d9772b"},
    {"#8e4f9e", "#a566b5"},
    {"#b83c3c", "#d05a5a"},
};

std::string variable(std::string_view light) {
  return "--ww-" + std::string(light.substr(1));
}

// For an attribute of the head, such as width="12".
double number_of(std::string_view svg, std::string_view attribute) {
  const auto at = svg.find(std::string(attribute) + "=\"");
  if (at == std::string_view::npos) return 0;
  return std::strtod(std::string(svg.substr(at + attribute.size() + 2, 24)).c_str(), nullptr);
}

std::string ground() {
  return "<rect class=\"ww-ground\" width=\"100%\" height=\"100%\" fill=\"" + std::string(kWhite) +
         "\"/>\n";
}

// The bytes of the letter that the text begins with; 0 where that is no letter of UTF-8 that XML
// takes.
std::size_t letter_bytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' ? 1 : 0;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  unsigned letter = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
    letter = letter << 6 | (byte(i) & 0x3fu);
  }
  const unsigned least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  const bool is_surrogate = letter >= 0xd800 && letter < 0xe000;
  const bool is_none = letter < least || letter > 0x10ffff || (letter & 0xfffeu) == 0xfffe;
  return is_surrogate || is_none ? 0 : bytes;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t bytes = letter_bytes(text);
    if (bytes == 0) {
      safe += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    switch (text.front()) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return safe;
}

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string_view shown = text;
  while (shown.ends_with('0')) shown.remove_suffix(1);
  if (shown.ends_with('.')) shown.remove_suffix(1);
  return std::string(shown);
}

std::string_view pale(int number) {
  constexpr std::array<std::string_view, pale_colours> colours = {
      "#8fb9e3", "#86cfb0", "#f4bd86", "#cfa5d9", "#f2e08a", "#e6a1a1", "#9edbe0", "#b8c4d2",
      "#c9d98b", "#f0b3cd", "#b3aef0", "#d9c2a3", "#a9c9b9", "#ffd3b0", "#bcd7f5", "#dcdc9e"};
  return colours[static_cast<std::size_t>(number) % colours.size()];
}

std::string palette_variables(bool dark) {
  std::string css = "--ww-ground:" + std::string(dark ? "#14181d" : kWhite) + ";";
  for (const Tone& tone : kPalette) {
    css += variable(tone.light) + ":" + std::string(dark ? tone.dark : tone.light) + ";";
  }
  return css;
}

std::string palette_rules() {
  std::string css = ".ww-ground{fill:var(--ww-ground,#ffffff)}";
  for (const Tone& tone : kPalette) {
    const std::string light(tone.light);
    const std::string value = joined({"var(", variable(light), ",", light, ")"});
    css += joined(
        {"[fill=\"", light, "\"]{fill:", value, "}[stroke=\"", light, "\"]{stroke:", value, "}"});
  }
  return css;
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

std::string svg_head(double width, double height) {
  static const std::string style = "<style>" + palette_rules() +
                                   "@media(prefers-color-scheme:dark){:root{" +
                                   palette_variables(true) + "}}</style>\n";
  const std::string size = decimal(width) + "\" height=\"" + decimal(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
         decimal(width) + " " + decimal(height) + "\" font-family=\"" + std::string(kFonts) +
         "\">\n" + style + ground();
}

std::string svg_text(double x, double y, std::string_view text, double size,
                     std::string_view more) {
  return "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" font-size=\"" + decimal(size) +
         "\" fill=\"#1f2933\" " + std::string(more) + ">" + escaped(text) + "</text>\n";
}

std::string svg_box(double x, double y, double width, double height, std::string_view fill,
                    std::string_view tip, std::string_view more) {
  const std::string box = "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" +
                          decimal(width) + "\" height=\"" + decimal(height) + "\" fill=\"" +
                          std::string(fill) + "\"" + (more.empty() ? "" : " ") + std::string(more);
  return tip.empty() ? box + "/>\n" : box + "><title>" + escaped(tip) + "</title></rect>\n";
}

std::string data_row(std::size_t row) {
  return "data-row=\"" + std::to_string(row) + "\"";
}

SvgBody svg_body(std::string_view svg) {
  SvgBody body;
  const auto head = svg.substr(0, svg.find('>'));
  body.width = number_of(head, " width");
  body.height = number_of(head, " height");
  std::string_view inside = svg.substr(head.size() + 1);
  const std::string white = ground();
  if (const auto at = inside.find(white); at != std::string_view::npos) {
    inside.remove_prefix(at + white.size());
  }
  inside = inside.substr(0, inside.rfind("</svg>"));
  body.inside = inside;
  return body;
}

}  // namespace warpwright::pictures
