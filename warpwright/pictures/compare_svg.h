// Several runs on one axis of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpwright/model/report/trace.h"

namespace warpwright::pictures {

/// A run, and what it is called.
struct ComparedRun {
  std::string name;
  const model::Trace* trace = nullptr;
};

/// How long the tensor core of the first CTA was at work: times at which it had an MMA.
std::int64_t tensor_core_time(const model::Trace& trace);

/// An SVG: for each run what TMA, the first role and the tensor core of its first CTA did.
std::string compare_svg(const std::string& title, const std::vector<ComparedRun>& runs);

}  // namespace warpwright::pictures
