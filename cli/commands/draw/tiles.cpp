#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/groups.h"
#include "cli/commands/gemm/run.h"
#include "warpwright/facts/format.h"
#include "warpwright/pictures/grid_svg.h"
#include "warpwright/pictures/tile_map.h"
#include "warpwright/tile/raster.h"

namespace warpwright::cli {
namespace {

// Seconds of the model for which the run is drawn beside the plan.
constexpr double quick_seconds = 1;

std::string counted(std::int64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void check_count(std::int64_t tiles) {
  if (tiles <= static_cast<std::int64_t>(pictures::most_tiles)) return;
  throw InputError("D has " + std::to_string(tiles) + " tiles; " +
                   as_rule("at most ", std::to_string(pictures::most_tiles), " are drawn") +
                   ": give a smaller M or N.");
}

// How a dense D is cut.
pictures::TilePlan tile_plan(const Product& product) {
  const Plan& plan = product.plan;
  const KernelFacts& f = plan.facts();
  pictures::TilePlan tiles;
  tiles.raster = plan.raster;
  tiles.cluster = plan.cluster;
  const auto over = [](std::int64_t extent, int tile) {
    return static_cast<int>((extent + tile - 1) / std::max(1, tile));
  };
  tiles.rows = over(product.job.product.m(), f.result_rows);
  tiles.columns = over(product.job.result_columns(), f.result_columns);
  tiles.swapped = f.swap_ab;
  const double waves = plan.waves();
  tiles.resident_clusters =
      waves > 0 ? std::max(1, static_cast<int>(std::lround(tile::tile_count(plan.raster) / waves)))
                : 1;
  return tiles;
}

std::string plan_caption(const Product& product, const pictures::TilePlan& tiles) {
  const Plan& plan = product.plan;
  const KernelFacts& f = plan.facts();
  const int clusters = tile::tile_count(plan.raster);
  std::string text =
      counted(plan.tiles(), "tile", "tiles") + " of " + std::to_string(f.result_rows) + " x " +
      std::to_string(f.result_columns) + " in " +
      counted(clusters, "cluster tile", "cluster tiles") + " of " + std::to_string(plan.cluster.m) +
      " x " + std::to_string(plan.cluster.n) + " CTAs: " + format("%.2f", plan.waves()) +
      " waves of " + counted(tiles.resident_clusters, "cluster", "clusters") + ", in bands of " +
      std::to_string(plan.raster.band) + (plan.raster.along_m ? " rows" : " columns") +
      " of cluster tiles. A number is the place in the order of the walk, a colour a "
      "wave.";
  if (plan.tile_source != kernel::TileSource::static_persistent) {
    text += " Which cluster takes which number is decided while it runs.";
  }
  return text;
}

// The place in "group 3 tile m 1 n 0".
struct TileName {
  int group = -1;
  int m = 0;
  int n = 0;
};
TileName tile_named(const std::string& name) {
  TileName at;
  if (std::sscanf(name.c_str(), "group %d tile m %d n %d", &at.group, &at.m, &at.n) == 3) return at;
  at.group = -1;
  std::sscanf(name.c_str(), "tile m %d n %d", &at.m, &at.n);
  return at;
}

// D as a run computed it. Tiles of one place, which several CTAs share along K, are the one's that
// stored it last.
pictures::TileMap recorded_tiles(const Product& product, const model::Trace& trace) {
  pictures::TileMap map;
  if (product.job.product.is_grouped()) {
    const std::vector<std::int64_t> lengths = product.job.lengths();
    for (std::size_t g = 0; g < lengths.size(); ++g) {
      map.outputs.push_back(
          {"group " + std::to_string(g) + ": " + counted(lengths[g], "row", "rows"), 0, 0});
    }
  } else {
    map.outputs.push_back({});
  }
  for (const pictures::TileRun& run : pictures::tile_runs(trace)) {
    const TileName at = tile_named(std::string(run.name));
    pictures::TilePlace tile;
    tile.output = std::max(0, at.group);
    if (tile.output >= static_cast<int>(map.outputs.size())) continue;
    tile.row = at.m;
    tile.column = at.n;
    tile.cta = run.cta;
    tile.sm = run.sm;
    tile.begin = run.begin;
    tile.end = run.end;
    pictures::TileOutput& output = map.outputs[static_cast<std::size_t>(tile.output)];
    output.rows = std::max(output.rows, tile.row + 1);
    output.columns = std::max(output.columns, tile.column + 1);
    const auto same = std::find_if(map.tiles.begin(), map.tiles.end(), [&](const auto& t) {
      return t.output == tile.output && t.row == tile.row && t.column == tile.column;
    });
    if (same == map.tiles.end()) {
      map.tiles.push_back(tile);
    } else if (same->end < tile.end) {
      *same = tile;
    }
  }
  std::stable_sort(map.tiles.begin(), map.tiles.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < map.tiles.size(); ++i) map.tiles[i].number = static_cast<int>(i);
  return map;
}

// Which SM worked on which tile, when, and where in D that is.
void add_run_views(DrawnRun& o, const GemmOptions& options, pictures::Picture& picture,
                   std::ostream& err) {
  const RecordedProduct run = record_product(options, o.how, "draw", err);
  const Product& product = *run.product;
  pictures::View where = pictures::placement_view(
      "As a run on the model of " + std::to_string(product.plan.device.sms) +
          " SMs had it: a colour an SM. The table has the tiles in the order in which they began.",
      recorded_tiles(product, run.trace));
  pictures::GridView lanes;
  lanes.sms = product.plan.device.sms;
  lanes.occupied_sm = o.how.occupy_sm.value_or(-1);
  lanes.ctas_per_sm = product.plan.facts().ctas_per_sm;
  pictures::View when = pictures::grid_view(run.trace, lanes);
  when.caption += remark_of(run.report.findings);
  picture.views.push_back(std::move(where));
  picture.views.push_back(std::move(when));
}

pictures::Picture draw_tiles_picture(DrawnRun& o, std::ostream& err) {
  const GemmOptions& options = *o.asked_product();
  // A device that is elsewhere has SMs of its own, and a plan for them; what runs is the model's.
  const bool elsewhere =
      !options.as.empty() && !options.sms && !o.how.occupy_sm && !o.grouped->parsed();
  const Product product(options, elsewhere ? facts_elsewhere(options) : facts_of(options), err);
  const Plan& plan = product.plan;
  pictures::Picture picture;
  picture.title = product.title() + ", " + plan.name() + " on " + plan.device.name;
  const std::int64_t tiles = tiles_of(product.job, plan);
  if (tiles == 0) throw InputError("D has no element, so no kernel runs.");
  check_count(tiles);
  if (!product.job.product.is_grouped()) {
    const pictures::TilePlan cut = tile_plan(product);
    picture.views.push_back(
        pictures::raster_view(plan_caption(product, cut), pictures::planned_tiles(cut)));
  }
  if (elsewhere) {
    picture.views.back().caption +=
        " With --sms N a run on a model of N SMs stands beside it: who computed which tile, when.";
    return picture;
  }
  if (product.job.product.is_grouped() || product.model_seconds() <= quick_seconds) {
    add_run_views(o, options, picture, err);
  } else {
    picture.views.back().caption +=
        " Its run of " + std::to_string(tiles) +
        " tiles is too long to draw beside it: a smaller D or a smaller K has it too.";
  }
  return picture;
}

}  // namespace

DrawKind add_draw_tiles(CLI::App& app) {
  CLI::App* kind = app.add_subcommand(
      "tiles", "D with its tiles: their order, waves, and the SMs that compute them");
  const auto run = std::make_shared<DrawnRun>();
  add_drawn_run(
      *kind, *run, {.lesson = false},
      "  warpwright draw tiles gemm --random 4096 4096 512 --as h200 --svg tiles.svg\n"
      "  warpwright draw tiles gemm --random 768 768 128 --as b200 --one-sm --cluster 1,1 "
      "--scheduler static --sms 3 --occupy-sm 2 --svg held.svg\n"
      "  warpwright draw tiles grouped --weights int4 --groups 2 --tokens 40,24 --n 256 "
      "--k 256 --svg groups.svg");
  return {kind, [run](std::ostream& err) { return draw_tiles_picture(*run, err); }};
}

}  // namespace warpwright::cli
