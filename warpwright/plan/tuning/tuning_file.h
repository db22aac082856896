// The file of a tuning cache: its lines, and how it is replaced. Internal to plan/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpwright/plan/tuning/tuning.h"

namespace warpwright::tuning_file {

using Entries = std::map<TuningKey, TuningEntry>;

/// A field without the characters that part fields and lines.
std::string field(std::string text);

struct Content {
  Entries entries;
  std::optional<std::string> warning;  ///< one sentence on what could not be read
};
/// A file that is not there is an empty one.
Content read(const std::string& path);

/// Adds entries to what the file holds by now, in place of those with the same keys, and returns
/// them all.
Result<Entries> add(const std::string& path,
                    const std::vector<std::pair<TuningKey, TuningEntry>>& entries);

Refusal cannot_write(const std::string& path, const std::string& why);

}  // namespace warpwright::tuning_file
