#include <memory>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "warpwright/pictures/compare_svg.h"
#include "warpwright/pictures/timeline_svg.h"

namespace warpwright::cli {
namespace {

struct PipelineOptions : DrawnRun {
  int tiles = 3;
};

pictures::Picture draw_pipeline_picture(PipelineOptions& o, std::ostream& err) {
  const DrawnRecording run = record(o, err);
  pictures::Picture picture;
  picture.title = run.title;
  if (run.product == nullptr) {
    // The tiles of lessons have no names.
    picture.views.push_back(pictures::compare_view({{"CTA 0", &run.trace}}));
  } else {
    pictures::TimelineView view;
    view.tiles = o.tiles;
    view.ctas = atom::cluster_size(run.product->product->plan.cluster) > 1 ? 2 : 1;
    picture.views.push_back(pictures::timeline_view(run.trace, view));
  }
  picture.views.back().caption += run.remark;
  return picture;
}

}  // namespace

DrawKind add_draw_pipeline(CLI::App& app) {
  CLI::App* kind = app.add_subcommand(
      "pipeline", "a run's timeline: roles, TMA, tensor core, and who waits for whom");
  const auto o = std::make_shared<PipelineOptions>();
  const Values add(*kind);
  add("--tiles", o->tiles, "T", "how many of the first tiles of the first CTA", whole(1, 100))
      ->capture_default_str();
  add_drawn_run(
      *kind, *o, {.knobs = true},
      "  warpwright draw pipeline gemm --random 256 512 256 --as h200 --schedule pingpong "
      "--sms 1 --svg pipeline.svg\n"
      "  warpwright draw pipeline --lesson 8 --svg roles.svg");
  return {kind, [o](std::ostream& err) { return draw_pipeline_picture(*o, err); }};
}

}  // namespace warpwright::cli
