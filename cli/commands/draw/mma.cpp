#include <memory>
#include <vector>

#include "cli/commands/completion.h"
#include "cli/commands/draw/kinds.h"
#include "cli/commands/gemm/run.h"
#include "cli/commands/machine/mma_command.h"
#include "cli/commands/numbers.h"
#include "cli/commands/values.h"
#include "warpwright/pictures/mma_picture.h"

namespace warpwright::cli {
namespace {

struct DrawMmaOptions {
  MmaOptions mma;
  std::string colour = "threads";
  std::vector<int> at;
};

}  // namespace

DrawKind add_draw_mma(CLI::App& app) {
  CLI::App* mma =
      app.add_subcommand("mma", "an MMA instruction: who holds which element of A, B and C");
  const auto o = std::make_shared<DrawMmaOptions>();
  add_mma_choices(*mma, o->mma);
  const Values add(*mma);
  offer(add("--colour", o->colour, "WHAT", "what colours tell: threads or values")
            ->capture_default_str(),
        "threads values");
  add("--at", o->at, "M,N,K", "of a tile that is drawn in part: where the part begins",
      whole<int>(0))
      ->delimiter(',')
      ->expected(3);
  mma->footer(
      "Examples:\n"
      "  warpwright draw mma m16n8k16 --svg mma.svg\n"
      "  warpwright draw mma m8n8k4 --tiled '(2,2):(2,1)' --svg quad_pairs.svg\n"
      "  warpwright draw mma wgmma_rs m64n16k32 --a-dtype e4m3 --colour values --svg wgmma.svg\n"
      "  warpwright draw mma tcgen05_pair mxf4nvf4 m256n256k64 --svg umma.svg");
  return {mma, [o](std::ostream&) {
            if (o->colour != "threads" && o->colour != "values") {
              throw InputError("--colour \"" + o->colour + "\": known are " +
                               as_rule("threads and values") + ".");
            }
            pictures::MmaPart from;
            if (!o->at.empty()) from = {o->at[0], o->at[1], o->at[2]};
            return pictures::mma_picture(
                tiled_mma_of(o->mma),
                o->colour == "values" ? pictures::MmaColour::values : pictures::MmaColour::threads,
                from);
          }};
}

}  // namespace warpwright::cli
