// Timelines as Perfetto traces, for ui.perfetto.dev.
#pragma once

#include <string>

#include "warpwright/model/report/trace.h"

namespace warpwright::pictures {

/// The bytes of a Perfetto trace (the protobuf message perfetto.protos.Trace). Each CTA is a
/// process, each of its tracks a track in it, in their order. A tick of the trace is shown as one
/// nanosecond; where ticks are nominal cycles, the processes' names say so.
std::string perfetto_bytes(const model::Trace& trace);

}  // namespace warpwright::pictures
