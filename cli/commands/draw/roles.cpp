#include <memory>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/product.h"
#include "warpwright/pictures/role_graph.h"

namespace warpwright::cli {
namespace {

pictures::Picture draw_roles_picture(DrawnRun& run, std::ostream& err) {
  const GemmOptions& options = *run.asked_product();
  const Product product(options, facts_elsewhere(options), err);
  const Plan& plan = product.plan;
  pictures::RoleGraph graph{plan.facts().roles, plan.barriers(), ""};
  if (graph.roles.empty()) {
    throw InputError("No kernel runs for this product, so nobody has a role.");
  }
  pictures::Picture picture;
  picture.title = plan.name() + " on " + plan.device.name;
  picture.views.push_back(pictures::role_view(graph));
  return picture;
}

}  // namespace

DrawKind add_draw_roles(CLI::App& app) {
  CLI::App* kind = app.add_subcommand(
      "roles", "who arrives at which mbarrier of a kernel, and who waits for it");
  const auto run = std::make_shared<DrawnRun>();
  add_drawn_run(*kind, *run, {.lesson = false, .occupied = false},
                "  warpwright draw roles gemm --random 2048 2048 512 --as b200 --svg roles.svg\n"
                "  warpwright draw roles grouped --weights int4 --groups 4 --tokens 16,0,3,40 "
                "--n 256 --k 256 --table");
  return {kind, [run](std::ostream& err) { return draw_roles_picture(*run, err); }};
}

}  // namespace warpwright::cli
