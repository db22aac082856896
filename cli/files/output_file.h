// Files that commands write: as a whole or not at all, and known to be writable before the work.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace warpwright::cli {

/// Finds out before the work what would keep `path` from being written after it: a name that is
/// empty or a folder's, a folder that is missing or takes no file, something there that is no
/// regular file or is read-only. Leaves everything as it is. `what` names the output in the message
/// ("D", "The trace"). Throws InputError.
void check_output_file(const std::string& what, const std::string& path);

/// Whether both names stand for the same file, by whatever spelling or link, there or not yet.
bool is_same_output(const std::string& one, const std::string& other);

/// Replaces a file's content by `chunks` in one step: a draft in the same folder is written, synced
/// and renamed over it. A symbolic link stays one and the file it names is replaced, or made. A
/// read-only file is refused, also where the system would let this user replace it. On failure, and
/// when a signal ends the program meanwhile, nothing is left behind. Throws InputError.
void replace_file(const std::string& path, std::span<const std::span<const std::byte>> chunks);
void replace_file(const std::string& path, const std::string& content);

/// While one lives, no other process of this machine has one for a file in the same folder: what is
/// read, changed and replaced under it loses nothing of theirs. It waits for its turn. The folder
/// is what is locked, as the file itself is replaced. Throws InputError.
class OutputLock {
 public:
  explicit OutputLock(const std::string& path);
  ~OutputLock();
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  int folder_ = -1;
};

}  // namespace warpwright::cli
