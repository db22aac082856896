#include "warpwright/run_parts.h"

#include <cstdlib>
#include <string_view>
#include <utility>

namespace warpwright {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

std::optional<Refusal> checked_stream(void* stream, int device) {
  thread_local std::pair<void*, int> last = {nullptr, -1};
  if (stream == nullptr || last == std::pair{stream, device}) return std::nullopt;
  // What is captured for another device fails as it is added.
  if (device::is_captured(stream)) return std::nullopt;
  auto fault = device::stream_fault(stream, device);
  if (!fault) last = {stream, device};
  return fault;
}

}  // namespace warpwright
