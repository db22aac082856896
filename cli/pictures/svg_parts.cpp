#include "cli/pictures/svg_parts.h"

#include <cstdio>

namespace warpwright::cli {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
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
        safe += c;
    }
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

std::string svg_head(double width, double height) {
  const std::string size = decimal(width) + "\" height=\"" + decimal(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + size + "\" viewBox=\"0 0 " +
         decimal(width) + " " + decimal(height) +
         "\" font-family=\"system-ui, sans-serif\">\n<rect width=\"100%\" height=\"100%\" "
         "fill=\"#ffffff\"/>\n";
}

std::string svg_text(double x, double y, std::string_view text, double size,
                     std::string_view more) {
  return "<text x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" font-size=\"" + decimal(size) +
         "\" fill=\"#1f2933\" " + std::string(more) + ">" + escaped(text) + "</text>\n";
}

std::string svg_box(double x, double y, double width, double height, std::string_view fill,
                    std::string_view tip) {
  const std::string box = "<rect x=\"" + decimal(x) + "\" y=\"" + decimal(y) + "\" width=\"" +
                          decimal(width) + "\" height=\"" + decimal(height) + "\" fill=\"" +
                          std::string(fill) + "\"";
  return tip.empty() ? box + "/>\n" : box + "><title>" + escaped(tip) + "</title></rect>\n";
}

}  // namespace warpwright::cli
