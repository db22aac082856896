#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands/draw/drawn_run.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/companions.h"
#include "cli/commands/gemm/product.h"
#include "warpwright/pictures/role_graph.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::cli {
namespace {

// A product that this kernel takes.
GemmOptions product_of_name(const std::string& name) {
  if (const auto refusal = unknown_kernel(name)) throw InputError(*refusal);
  const auto kernels = all_kernels();
  return product_for(
      **std::ranges::find_if(kernels, [&](const KernelFacts* each) { return each->name == name; }));
}

pictures::Picture draw_roles_picture(DrawnRun& run, const std::string& kernel, std::ostream& err) {
  if (!kernel.empty() && (run.gemm->parsed() || run.grouped->parsed())) {
    throw InputError("A kernel, " + in_quotes(kernel) + ", is named beside a product: " +
                     as_rule("give one of them, a product's kernel by --kernel") + ".");
  }
  const GemmOptions options = kernel.empty() ? *run.asked_product() : product_of_name(kernel);
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
  const auto kernel = std::make_shared<std::string>();
  kind->add_option("NAME", *kernel,
                   "a kernel as `warpwright kernels` prints it, in place of a product")
      ->option_text("NAME");
  add_drawn_run(*kind, *run, {.lesson = false, .occupied = false},
                "  warpwright draw roles hopper_bf16_bf16_128x128_pp --svg roles.svg\n"
                "  warpwright draw roles gemm --random 2048 2048 512 --as b200 --svg roles.svg\n"
                "  warpwright draw roles grouped --weights int4 --groups 4 --tokens 16,0,3,40 "
                "--n 256 --k 256 --table");
  return {kind,
          [run, kernel](std::ostream& err) { return draw_roles_picture(*run, *kernel, err); }};
}

}  // namespace warpwright::cli
