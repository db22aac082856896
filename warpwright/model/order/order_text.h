// Words of the order checker's findings. Internal to model/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warpwright/model/report/site.h"

namespace warpwright::model {

inline std::string at_line(Site site) {
  return std::string(site.file) + ":" + std::to_string(site.line);
}

inline bool same_line(Site a, Site b) {
  return a.line == b.line && std::string_view(a.file) == b.file;
}

inline std::string range_text(const std::string& memory, std::uint64_t begin, std::int64_t bytes) {
  return "bytes " + std::to_string(begin) + " to " +
         std::to_string(begin + static_cast<std::uint64_t>(bytes) - 1) + " of " + memory;
}

}  // namespace warpwright::model
