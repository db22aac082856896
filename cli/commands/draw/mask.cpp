#include "cli/commands/machine/mask_command.h"

#include <memory>

#include "cli/commands/draw/kinds.h"
#include "warpwright/pictures/mask_picture.h"

namespace warpwright::cli {

DrawKind add_draw_mask(CLI::App& app) {
  CLI::App* mask = app.add_subcommand(
      "mask", "a cluster: who sends to whom, who tells whom that a stage is free");
  const auto o = std::make_shared<MaskOptions>();
  add_mask_choices(*mask, *o);
  mask->footer(
      "Examples:\n"
      "  warpwright draw mask --cluster 4,4 --rank 0 --svg masks.svg\n"
      "  warpwright draw mask --cluster 4,4 --pair --svg pairs.svg");
  return {mask, [o](std::ostream&) {
            return pictures::mask_picture(cluster_of(o->cluster, o->pair, o->rank), o->pair,
                                          o->rank.value_or(-1));
          }};
}

}  // namespace warpwright::cli
