// Which row of tiles of scales a row's scales are in, on the host: only for device/.
#pragma once

#include <vector>

#include "warpwright/device/scale_order.h"

namespace warpwright {

/// For each of `rows` rows its row in the tiles; -1 where it is in no group.
std::vector<std::int64_t> scale_rows_on_host(const ScaleGroups& groups, std::int64_t rows);

}  // namespace warpwright
