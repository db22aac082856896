// What the pictures of timelines have in common: the names of tiles, and the axis of time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/model/report/trace.h"

namespace warpwright::pictures {

/// Who issued the work of an engine's slice: "consumer 0" of "consumer 0: tile m 1 n 0, k_tile 3".
/// Empty where the name says nothing of it.
std::string_view issuer_of(std::string_view name);

/// "tile m 1 n 0" of "consumer 0: tile m 1 n 0, k_tile 3", and "group 3 tile m 1 n 0" in a grouped
/// product; empty where the name is that of no tile.
std::string_view tile_of(std::string_view name);

/// "1,0" of "tile m 1 n 0", and "3: 1,0" of one of group 3.
std::string short_tile(std::string_view name);

/// Is it a role that stores the tiles it has gone through, and not one that feeds or finds them?
bool stores_tiles(const model::Trace& trace, const model::TraceTrack& track);

/// The CTAs of the first track's grid that share its CTA's SM with that at a time, itself first.
std::vector<int> ctas_together(const model::Trace& trace, const model::TraceTrack& first);

/// "CTA 3", and in a run of several grids "zero_rows: CTA 3".
std::string cta_name(const model::Trace& trace, const model::TraceTrack& track);

/// A slice of a track.
struct TrackSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string_view name;  ///< of the trace's texts
  int depth = 0;          ///< slices that it lies in
  bool covered = false;   ///< another one lies in it
};
/// Those of a track, outer ones first, those of one depth in the order of time.
std::vector<TrackSlice> track_slices(const model::Trace& trace, const model::TraceTrack& track);

/// A tick of an axis of time.
struct Tick {
  std::int64_t time = 0;
  std::string text;  ///< with its unit: "0", "200 cycles", "2 us"
};

/// At most eleven ticks from `from` to `to` at round numbers: 1, 2 or 5 times a power of ten.
/// `measured` times are nanoseconds, others nominal cycles.
std::vector<Tick> round_ticks(std::int64_t from, std::int64_t to, bool measured);

}  // namespace warpwright::pictures
