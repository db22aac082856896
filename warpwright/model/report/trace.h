// What happened when: the event stream of one run, the same for the model and for the GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace warpwright::model {

/// One entry of a track. A `begin` and the `end` that closes it enclose a slice; slices nest.
struct TraceEvent {
  enum class Kind : std::uint8_t { begin, end, instant };
  Kind kind = Kind::begin;
  std::int64_t time = 0;
  int name = -1;    ///< index into Trace::texts; an `end` repeats its `begin`'s
  int detail = -1;  ///< index of a longer remark, or -1
};

/// What one thread role of a CTA, or one asynchronous engine of its SM, did in the order of time.
struct TraceTrack {
  enum class Kind : std::uint8_t {
    role,
    loads,      ///< by TMA
    copies,     ///< cp.async, those of a CTA's first warp
    fragments,  ///< ldmatrix, likewise
    tensor_core,
    stores,
  };
  Kind kind = Kind::role;
  int grid = 0;              ///< of the run, in the order of their launches
  int cta = 0;               ///< of the grid
  int sm = -1;               ///< where it ran, when that is known
  int thread = 0;            ///< of a role: the thread that was watched
  std::string name;          ///< "producer", "consumer 0", "loads", ...
  std::int64_t dropped = 0;  ///< oldest events that a bounded buffer lost
  std::vector<TraceEvent> events;
};

/// The events of one run.
struct Trace {
  std::string clock = "nominal cycles";  ///< what TraceEvent::time counts
  bool measured = false;                 ///< by a GPU's clocks; otherwise times are nominal
  std::vector<std::string> texts;
  std::vector<TraceTrack> tracks;  ///< those of a CTA together, from producer to stores
  std::vector<std::string> grids;  ///< names of the grids, where there are several

  [[nodiscard]] std::int64_t event_count() const;
  [[nodiscard]] std::int64_t dropped() const;
  /// The last time of any event.
  [[nodiscard]] std::int64_t end() const;
  /// Why the stream is not well-formed (times that run back, ends without a begin or of another
  /// slice, slices left open), or an empty text.
  [[nodiscard]] std::string fault() const;
};

/// `label` with every % replaced by the next of the numbers: "tile m % n %" becomes "tile m 1 n 0".
std::string label_text(const std::string& label, int a, int b, int c);

/// Collects the events of a run. Keeps every track well-formed whatever comes: an `end` without a
/// begin is left out, times never run back, and what is open at the end is closed.
class TraceBuilder {
 public:
  /// Returns the track's number.
  int add_track(TraceTrack::Kind kind, int cta, const std::string& name, int thread = 0,
                int grid = 0);
  TraceTrack& track(int number) { return tracks_[static_cast<std::size_t>(number)].track; }
  void begin(int track, std::int64_t time, const std::string& name, const std::string& detail = "");
  void end(int track, std::int64_t time);
  /// A slice; one with the name of the track's last one makes that longer.
  void lengthen(int track, std::int64_t from, std::int64_t to, const std::string& name);
  void instant(int track, std::int64_t time, const std::string& name,
               const std::string& detail = "");
  /// The open slices of a track, outermost first, as one text: "tile m 1 n 0, k_tile 3".
  [[nodiscard]] std::string open_text(int track) const;
  /// Closes what is open, leaves out empty tracks, and of several threads with one role in a CTA
  /// keeps the first.
  Trace finish();

 private:
  struct Building {
    TraceTrack track;
    std::vector<TraceEvent> open;
  };
  int text(const std::string& value);
  std::int64_t forward(Building& b, std::int64_t time) const;

  std::vector<Building> tracks_;
  std::vector<std::string> texts_;
  std::map<std::string, int> numbers_;
};

}  // namespace warpwright::model
