// What all pictures are made of.
#pragma once

#include <string>
#include <string_view>

namespace warpwright::cli {

/// The text as it may stand in SVG and HTML.
std::string escaped(std::string_view text);

/// At most two decimals, and no zeros behind them.
std::string decimal(double value);

/// The beginning of a picture on white ground; `</svg>` ends it.
std::string svg_head(double width, double height);
std::string svg_text(double x, double y, std::string_view text, double size = 12,
                     std::string_view more = "");
/// A rectangle; `tip` is shown when one points at it.
std::string svg_box(double x, double y, double width, double height, std::string_view fill,
                    std::string_view tip = "");

}  // namespace warpwright::cli
