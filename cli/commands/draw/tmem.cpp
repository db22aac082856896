#include <memory>
#include <optional>
#include <string>

#include "cli/commands/completion.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/run.h"
#include "warpwright/pictures/tmem_picture.h"
#include "warpwright/plan/families/kernel_list.h"

namespace warpwright::cli {

DrawKind add_draw_tmem(CLI::App& app) {
  CLI::App* tmem = app.add_subcommand(
      "tmem", "the tensor memory of a kernel: accumulators and scales, by lanes and columns");
  const auto kernel = std::make_shared<std::string>();
  std::string names;
  for (const KernelFacts* each : all_kernels()) {
    if (tensor_memory_of(each->name)) names += each->name + " ";
  }
  offer(tmem->add_option("NAME", *kernel, "as `warpwright kernels --as b200` prints it")
            ->required()
            ->option_text("NAME"),
        names);
  tmem->footer(
      "Examples:\n"
      "  warpwright draw tmem blackwell_mxf4nvf4_bf16_pair_clc --svg tmem.svg\n"
      "  warpwright draw tmem blackwell_f16_bf16_pair_clc --table");
  return {tmem, [kernel](std::ostream&) {
            if (const auto refusal = unknown_kernel(*kernel)) throw InputError(*refusal);
            const std::optional<TmemMap> map = tensor_memory_of(*kernel);
            if (!map) {
              throw InputError(*kernel + " has its sums in registers: " +
                               as_rule("kernels of sm_100 (warpwright kernels --as b200) have "
                                       "tensor memory") +
                               ".");
            }
            return pictures::tmem_picture(*kernel, *map);
          }};
}

}  // namespace warpwright::cli
