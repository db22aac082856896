// A picture as one HTML page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "warpwright/pictures/picture.h"

namespace warpwright::pictures {

/// What a page says above its views: a question, a report. Text of several lines is shown as lines;
/// a source's have numbers, and some are marked.
struct Note {
  std::string name;
  std::string text;
  std::vector<int> marked = {};  ///< of a source: lines, from 1
  bool is_source = false;
};

/// The bytes that a page may have: what reads it is a phone, too.
inline constexpr std::size_t most_page_bytes = 1'000'000;

/// One HTML file that needs no other and no network (its Content-Security-Policy allows none): the
/// views, each with its table and an SVG to save, in light and dark, for mouse, touch, keyboard and
/// screen reader. The file's address keeps what is shown: `#view=ID&step=N&row=N`.
///
/// In a view's SVG the script knows `data-row="N"`, what belongs to a row of the table, and
/// `data-step="N"`, groups of which one number is shown at a time; a group of a step that has a
/// data-row chooses that row. A link to `#view=ID` leads to another view.
///
/// All texts are escaped; `svg` of the views is taken as it is, and `data` must be JSON or empty.
/// Throws std::invalid_argument where two views have one id, an id is empty, or a row of a table is
/// not as long as its header. It does not look at the size: see `most_page_bytes`.
std::string as_html(const Picture& picture, const std::vector<Note>& notes = {});

}  // namespace warpwright::pictures
