// What reads an answer of CLC, for a front end whose loads do not say that they do. Internal to the
// project; kernels call isa::load_launch_answer.
#pragma once

#include <cstdint>

namespace warpwright::model {

/// The current thread has read so many bytes of its CTA's shared memory from here on: answers of
/// try_cancel that lie there may be overwritten.
void launch_answers_read(std::uint32_t at, int bytes);

}  // namespace warpwright::model
