// Ways to break a PTX text that C++ has no words for: bits of a descriptor, a type, an address, the
// lanes that execute an instruction. Each is an edit of the text, which is then decoded anew. What
// C++ can say wrongly is broken where the model carries it out (model/mutation.h).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "warpwright/ptx/module.h"

namespace warpwright::ptx {

/// One of them.
struct Edit {
  enum class Kind : std::uint8_t {
    swizzle,      ///< the swizzle in a descriptor of shared memory
    descriptor,   ///< its address or one of its strides, 16 bytes more
    instruction,  ///< a bit of tcgen05's instruction descriptor, or what wgmma's text says for it
    address,      ///< an address of shared memory, 16 bytes more
    lanes,        ///< an instruction of a whole warp without lane 31
    space,        ///< a proxy fence for other memory than it was for
    reads,        ///< a wait for bulk copies that waits only for what they read
    scope,        ///< an arrival or a wait of a cluster that is one of a CTA
    bytes,        ///< a bulk copy of 16 bytes less
    coordinate,   ///< one of a tensor copy, 1 more
  };
  static constexpr int kinds = 10;
  Kind kind = Kind::swizzle;
  int line = 0;
  std::string opcode;
  std::string how;     ///< "A's descriptor, bit 62"
  std::size_t at = 0;  ///< these characters of the text
  std::size_t length = 0;
  std::string to;  ///< become these
};

/// "swizzle bits of a descriptor" and so on.
std::string_view name(Edit::Kind kind);

/// Those of the statements for which `ran` is true, in the order of the text. What would be no
/// instruction of the subset is left out.
std::vector<Edit> edits(const Module& module, const Entry& entry, const std::vector<bool>& ran);

/// The text with an edit made.
std::string edited(std::string_view text, const Edit& edit);

}  // namespace warpwright::ptx
