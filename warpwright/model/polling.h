// Words of global memory that a thread looks at again and again, in code that spells its loops out:
// one look, and the wait that such a loop is. What isa/ has as one instruction (flag_wait) is that
// with the value known.
#pragma once

#include <cstdint>

#include "warpwright/model/report/site.h"

namespace warpwright::model {

/// Loads the word and acquires what its last writer released (ld.acquire.gpu, PTX ISA 9.7.9.8).
std::uint32_t flag_load(void* flag, Site site);

/// The same once the word is another than `seen`. A thread that waits for ever so is in a deadlock.
std::uint32_t flag_load_other(void* flag, std::uint32_t seen, Site site);

/// Waits until the word's bits of `mask` are `value`, or with `any_other` are not, and acquires
/// what their writer released; `what` is the instruction.
std::uint32_t wait_for_word(void* flag, std::uint32_t value, std::uint32_t mask, bool any_other,
                            const char* what, Site site);

/// A strong store that releases nothing (st.relaxed.gpu): whoever waits looks again.
void flag_store(void* flag, std::uint32_t value, Site site);

}  // namespace warpwright::model
