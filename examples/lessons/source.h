// The text of the lessons' headers: an installed program has no checkout to read them in.
#pragma once

#include <string_view>

namespace lessons {

/// That of a file of examples/, "examples/lessons/04_ring.h"; empty of one that no lesson is in.
std::string_view source(std::string_view file);

}  // namespace lessons
