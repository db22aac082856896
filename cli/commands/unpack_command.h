#pragma once

#include <iosfwd>
#include <optional>
#include <string>

namespace warpwright::cli {

/// What `unpack` takes, as it was typed.
struct UnpackOptions {
  std::string in;
  std::string out;
  std::optional<int> jobs;
  bool json = false;
};

/// `warpwright unpack IN OUT`: writes the codes and scales of a packed tensor in a layout that
/// `pack` reads, so that packing them again gives the same bytes. Returns 0, or 2 with one sentence
/// on `err`.
int unpack_command(const UnpackOptions& options, std::ostream& out, std::ostream& err);

}  // namespace warpwright::cli
