// Numbers that the CTAs of a grid draw from a word in global memory: each is given to one thread.
#pragma once

#include "warpwright/isa/config.h"
#include "warpwright/isa/fence.h"

namespace warpwright::isa {

/// Returns the word at `counter` (4-byte aligned) and makes it one more; where it was `last` or
/// more, 0. Among threads that draw from a word of 0 the first gets 0, and when number `last` has
/// been drawn the word is as it was, for the next launch (atom.inc, relaxed at GPU scope, PTX ISA
/// 9.7.13.5). Orders no other access. Takes the proof that the grid before has ended, which may
/// draw from the same word until then.
WW_DEVICE
std::uint32_t draw(std::uint32_t* counter, std::uint32_t last, const Prerequisites& /*ready*/,
                   [[maybe_unused]] Site site = Site::sync()) {
#if WW_GPU
  std::uint32_t number = 0;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(number)
               : "l"(counter), "r"(last)
               : "memory");
  return number;
#else
  return model::draw(counter, last, site);
#endif
}

}  // namespace warpwright::isa
