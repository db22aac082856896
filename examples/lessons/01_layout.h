// Lesson 1: a layout.
//
// A layout is a function from coordinates to offsets, written shape:stride. (8,8):(8,1) puts
// element (row, column) at 8 * row + column. 64 threads bring an 8 x 8 tile into shared memory by
// one layout and take it out by another: that is a transposition, and not one index was worked out
// by hand.
#pragma once

#include "lessons/lesson.h"

namespace lessons::layouts {

/// Where the tile lies. The broken one has a row stride of 7: the last element of a row and the
/// first of the next get one place.
template <bool Broken>
constexpr layout::Layout tile = layout::make_layout(layout::tuple(8, 8),
                                                    layout::tuple(Broken ? 7 : 8, 1));

template <bool Broken>
WW_DEVICE void transpose(const float* from, float* to) {
  const int row = isa::thread_index() / 8, column = isa::thread_index() % 8;
  const isa::SharedView<float> shared{isa::shared_base()};
  const float value = isa::GlobalView<const float>{from}.load(isa::thread_index());
  shared.store(int(layout::offset_of<tile<Broken>>(row, column)), value);
  isa::sync_threads(64);
  // The same layout, its modes the other way round.
  isa::GlobalView<float>{to}.store(isa::thread_index(),
                                   shared.load(int(layout::offset_of<tile<Broken>>(column, row))));
}

inline testing::Outcome run(const Ask& ask) {
  Buffer<float> from("from", 64, Access::input), to("to", 64);
  for (int i = 0; i < 64; ++i) from[i] = float(i);
  const Launch launch{.threads = 64,
                      .shared_bytes = 256,
                      .machine = ask.machine,
                      .schedules = ask.schedules,
                      .recording = ask.recording,
                      .verify = [&]() -> std::string {
                        for (int i = 0; i < 64; ++i) {
                          const int due = i % 8 * 8 + i / 8;
                          if (to[i] != float(due)) return "it is not transposed";
                        }
                        return "";
                      }};
  return testing::run(
      [&] {
        if (ask.broken) return transpose<true>(from.data(), to.data());
        transpose<false>(from.data(), to.data());
      },
      launch, from, to);
}

inline Cells offsets(const char* title, const layout::Layout& of) {
  const auto at = [of](int row, int column) { return int(of(row, column)); };
  return {title, 8, 8, [=](int r, int c) { return std::to_string(at(r, c)); },
          [=](int r, int c) { return at(r, c) / 8 % 8; }};
}

inline std::vector<Cells> cells() {
  return {offsets("(8,8):(8,1), offsets by row and column", tile<false>),
          offsets("(8,8):(7,1): 7, 14, ... are there twice", tile<true>)};
}

inline constexpr Lesson lesson{
    .number = 1,
    .name = "layout",
    .title = "A layout",
    .question = "Which layouts of an 8 x 8 tile may 64 threads write through at once?",
    .answer = "Those that give every element a place of its own: (8,8):(8,1) does.",
    .broken = "the row stride is 7, so that two threads write to one place",
    .finding = Check::data_race,
    .line = "shared.store(",
    .pages = "deck 49",
    .picture = Picture::cells,
    .run = run,
    .cells = cells,
};

}  // namespace lessons::layouts
