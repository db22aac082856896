// The protobuf wire format written by hand: a message is a sequence of fields, a field its number
// and wire type in a varint, then a varint (type 0) or a length and bytes (type 2). Field numbers
// are those of the public perfetto/trace protos, named beside each use.
#include "warpwright/pictures/perfetto.h"

#include "warpwright/pictures/timeline_parts.h"

#include <cstdint>
#include <string_view>

namespace warpwright::pictures {
namespace {

class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_.append(value);
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// One writer writes the whole trace, hence one packet sequence.
constexpr std::uint64_t kSequence = 1;
constexpr std::uint64_t kStateCleared = 1;  // TracePacket.SequenceFlags
constexpr std::uint64_t kNeedsState = 2;

// TracePacket: trusted_packet_sequence_id 10, sequence_flags 13.
Message packet(std::uint64_t flags) {
  return Message().number(10, kSequence).number(13, flags);
}

void append(std::string& trace, const Message& packet) {
  trace += Message().message(1, packet).bytes();  // Trace.packet
}

// For a CTA of a grid: other numbers for all of a run.
std::uint64_t process_id(const model::TraceTrack& track) {
  return (static_cast<std::uint64_t>(track.grid) << 24) + static_cast<std::uint64_t>(track.cta) + 1;
}
std::uint64_t process_uuid(const model::TraceTrack& track) {
  return process_id(track) << 16;
}

// TrackDescriptor: uuid 1, name 2, process 3, parent_uuid 5, child_ordering 11,
// sibling_order_rank 12. ProcessDescriptor: pid 1, process_name 6.
Message process_track(const model::TraceTrack& track, const model::Trace& trace) {
  std::string name = cta_name(trace, track);
  if (track.sm >= 0) name += " on SM " + std::to_string(track.sm);
  if (!trace.measured) name += " (model, 1 ns shown = 1 nominal cycle)";
  const Message process = Message().number(1, process_id(track)).text(6, name);
  constexpr std::uint64_t kExplicit = 3;  // ChildTracksOrdering
  return Message().number(1, process_uuid(track)).message(3, process).number(11, kExplicit);
}

Message child_track(const model::TraceTrack& track, std::uint64_t uuid, std::uint64_t rank) {
  std::string name = track.name;
  if (track.dropped > 0) name += " (" + std::to_string(track.dropped) + " oldest events dropped)";
  return Message().number(1, uuid).text(2, name).number(5, process_uuid(track)).number(12, rank);
}

}  // namespace

std::string perfetto_bytes(const model::Trace& trace) {
  std::string bytes;
  // InternedData 12: event_names 2 (EventName: iid 1, name 2), debug_annotation_names 3. Text i of
  // the trace has iid i + 1.
  Message interned;
  for (std::size_t i = 0; i < trace.texts.size(); ++i) {
    interned.message(2, Message().number(1, i + 1).text(2, trace.texts[i]));
  }
  interned.message(3, Message().number(1, 1).text(2, "detail"));
  append(bytes, packet(kStateCleared | kNeedsState).message(12, interned));

  std::uint64_t last = 0;
  std::uint64_t rank = 0;
  for (const model::TraceTrack& track : trace.tracks) {
    if (process_id(track) != last) {
      last = process_id(track);
      rank = 0;
      append(bytes, packet(kNeedsState).message(60, process_track(track, trace)));
    }
    const std::uint64_t uuid = process_uuid(track) + 1 + rank;
    append(bytes, packet(kNeedsState).message(60, child_track(track, uuid, rank)));
    ++rank;
    for (const model::TraceEvent& e : track.events) {
      // TrackEvent: debug_annotations 4 (DebugAnnotation: name_iid 1, string_value 6), type 9,
      // name_iid 10, track_uuid 11. TracePacket: timestamp 8, track_event 11.
      Message event;
      event.number(9, e.kind == model::TraceEvent::Kind::begin ? 1
                      : e.kind == model::TraceEvent::Kind::end ? 2
                                                               : 3);
      event.number(11, uuid);
      if (e.kind != model::TraceEvent::Kind::end) {
        event.number(10, static_cast<std::uint64_t>(e.name) + 1);
        if (e.detail >= 0) {
          event.message(
              4, Message().number(1, 1).text(6, trace.texts[static_cast<std::size_t>(e.detail)]));
        }
      }
      append(bytes,
             packet(kNeedsState).number(8, static_cast<std::uint64_t>(e.time)).message(11, event));
    }
  }
  return bytes;
}

}  // namespace warpwright::pictures
