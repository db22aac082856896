// A position in a vector, from the signed integers of the library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpwright {

constexpr std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace warpwright
