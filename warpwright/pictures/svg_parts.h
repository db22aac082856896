// What all pictures are made of.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace warpwright::pictures {

/// The text as it may stand in SVG and HTML. Bytes that are no UTF-8, and control characters, which
/// XML does not take, become U+FFFD.
std::string escaped(std::string_view text);
/// The parts, one after the other.
std::string joined(std::initializer_list<std::string_view> parts);

/// At most two decimals, and no zeros behind them.
std::string decimal(double value);

/// The colours of pictures are written as they are on light ground. Those of the palette, here and
/// in svg_parts.cpp, have a twin on dark ground: the style inside an SVG gives each a CSS variable,
/// and what knows no CSS variables shows the light one.
namespace ink {
inline constexpr std::string_view text = "#1f2933";
inline constexpr std::string_view faint_text = "#6b7480";
inline constexpr std::string_view none = "#e9ecf0";  ///< what is not looked at
inline constexpr std::string_view line = "#9aa5b1";
// Pale, with dark text on them; and strong, with white text on them.
inline constexpr std::string_view blue = "#8fb9e3";
inline constexpr std::string_view green = "#86cfb0";
inline constexpr std::string_view orange = "#f4bd86";
inline constexpr std::string_view violet = "#cfa5d9";
inline constexpr std::string_view yellow = "#f2e08a";
inline constexpr std::string_view red = "#e6a1a1";
inline constexpr std::string_view grey = "#b8c4d2";
inline constexpr std::string_view strong_blue = "#2f6fb3";
inline constexpr std::string_view strong_green = "#1f8a63";
inline constexpr std::string_view strong_orange = "#d9772b";
inline constexpr std::string_view strong_violet = "#8e4f9e";
inline constexpr std::string_view strong_red = "#b83c3c";
}  // namespace ink

/// A pale colour by its number, for what is told apart by colour: threads, banks, values. There are
/// `pale_colours` of them, then they repeat.
inline constexpr int pale_colours = 16;
std::string_view pale(int number);

/// The CSS variables of the palette with their values, "--ww-1f2933:#1f2933;...", without braces.
std::string palette_variables(bool dark);
/// CSS rules that give what has a colour of the palette its variable.
std::string palette_rules();

/// The beginning of a picture on white ground, with the palette's style; `</svg>` ends it.
std::string svg_head(double width, double height);
std::string svg_text(double x, double y, std::string_view text, double size = 12,
                     std::string_view more = "");
/// A rectangle; `tip` is shown when one points at it, `more` are further attributes.
std::string svg_box(double x, double y, double width, double height, std::string_view fill,
                    std::string_view tip = "", std::string_view more = "");
/// The attribute of what belongs to a row of the view's table, counted from 0.
std::string data_row(std::size_t row);

/// Width and height of an SVG that svg_head began, and what stands behind its head.
struct SvgBody {
  double width = 0;
  double height = 0;
  std::string inside;  ///< without the ground, the style and `</svg>`
};
SvgBody svg_body(std::string_view svg);

}  // namespace warpwright::pictures
