#!/usr/bin/env python3
"""Hand edits of Hopper kernels, found from the PTX that nvcc makes of them.

    from_ptx.py BUILD [--sample N | --names A,B] [--jobs J] [--list FILE]

For each edit of edits/ that commands of `check` catch in kernels of Hopper, the edited kernel is
compiled by nvcc, and its text takes the body's place on the model: does the edit's own command find
it as it does in C++, if need be under more schedules? Prints a line for each, and how many of them
are found. What is no part of a text is left out: isa/'s bodies for the model, and kernels beside
the products. Exits with 1 where fewer than 95% are found, with 77 where there is no nvcc. Options
as adversary.py has them.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import adversary
from edits import Fault, read_edits

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ptx"))
import ptx_test  # noqa: E402

ENOUGH = 0.95
MORE = 8  # times the schedules, where the own ones show nothing: a text makes other decisions
# Sources that stay C++ here: what instructions are for the model, and kernels beside the products.
BODIES = ("warpwright/isa/", "warpwright/kernel/moe/", "warpwright/kernel/zero_rows",
          "warpwright/kernel/check_rows", "warpwright/kernel/copy_rows")
TEXT = """
#include "warpwright/kernel/hopper/gemm.h"
#include "warpwright/kernel/hopper/table.h"
namespace warpwright::kernel {{
{rows}
}}
using namespace warpwright;
{entries}
"""
ENTRY = """
extern "C" __global__ void
    __launch_bounds__(kernel::threads(kernel::{k}::config), kernel::{k}::config.ctas_per_sm)
    {k}(const __grid_constant__ kernel::HopperGemm<kernel::{k}>::Params params) {{
  kernel::HopperGemm<kernel::{k}>::run(params);
}}
"""
# The kernel of a name is its text; all others are their bodies.
PROGRAM = adversary.ROWS + """
#include <fstream>
#include <iterator>
#include <limits>

#include "warpwright/model/parts.h"
#include "warpwright/ptx/kernel.h"

namespace warpwright::device {{
namespace {{
std::string text() {{
  std::ifstream file("{path}");
  return {{std::istreambuf_iterator<char>(file), {{}}}};
}}
// One thread, on the machine that runs: its launch is that of the body. A map may lie anywhere that
// the grid may touch.
void run_text(const ptx::Kernel& kernel, const void* params) {{
  thread_local std::vector<model::Allocation> everywhere = {{
      {{nullptr, std::numeric_limits<std::int64_t>::max(), "memory"}}}};
  const model::LaunchShape& shape = model::machine().shape();
  ptx::Launch launch;
  launch.grid[0] = shape.ctas;
  launch.block[0] = shape.threads;
  launch.cluster = shape.cluster_size;
  launch.dynamic_bytes = shape.shared_bytes;
  ptx::Kernel own = kernel;
  own.body(static_cast<const std::byte*>(params), launch, everywhere)();
}}
template <int which>
void run_kernel_text(const void* params) {{
  static constexpr const char* names[] = {{{names}}};
  static const ptx::Kernel kernel(text(), "edited.ptx", names[which]);
  run_text(kernel, params);
}}
}}  // namespace
""" + adversary.FINDER + """
}}  // namespace warpwright::device
"""


def is_asked(edit):
    """Is it an edit of Hopper kernels that `check` catches?"""
    return (edit.expect == "caught" and edit.kernels and "refused" not in edit.facts
            and all(k.split("_")[0] in ("hopper", "grouped") for k in edit.kernels)
            and not any(place.file.startswith(BODIES) for place in edit.places))


def compile_text(build, edit, folder):
    """The text of the edited kernels; what nvcc says where it does not compile."""
    rows = adversary.rows_of(build, edit.kernels, folder)
    source = folder / "kernels.cu"
    entries = "".join(ENTRY.format(k=k) for k in edit.kernels)
    source.write_text(TEXT.format(rows=rows, entries=entries))
    made = subprocess.run(
        [ptx_test.NVCC, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-lineinfo",
         "-arch=sm_90a", f"-I{folder}", "-ptx", "-o", folder / "kernels.ptx", source],
        capture_output=True, text=True, check=False)
    return made.stderr if made.returncode != 0 else ""


def make_program(build, edit, folder):
    """warpwright with the text in place of the kernels; the words where it does not compile."""
    names = ", ".join(f'"{k}"' for k in edit.kernels)
    entries = "\n      ".join(f'{{"{k}", &run_kernel_text<{i}>}},'
                              for i, k in enumerate(edit.kernels))
    text = PROGRAM.format(path=folder / "kernels.ptx", names=names, entries=entries)
    return adversary.link_kernels(build, edit, folder, text)


def finding_of(edit, output):
    """The first finding that the edit made: rows that no token fills are M1 in any text of a kernel
    that gathers (docs/ptx.md), and speak for nothing."""
    gathers = any("_ix" in kernel for kernel in edit.kernels)
    lines = [line for line in output.splitlines() if re.match(r"[A-Z][A-Z]?\d+ ", line)]
    return next((line.strip()[:160] for line in lines if not (gathers and line[:2] == "M1")), "")


def judge(build, edit):
    """(is it found from its text?, what was seen)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            adversary.edit_tree(edit, folder)
        except Fault as fault:
            return False, str(fault)
        words = compile_text(build, edit, folder)
        if words:
            return False, "nvcc: " + adversary.first_error(words)[-200:]
        program, words = make_program(build, edit, folder)
        if program is None:
            return False, "does not compile: " + adversary.first_error(words)[-200:]
        own = [command.words for command in edit.of_kind("check")]
        more = [re.sub(r"--schedules (\d+)", lambda n: f"--schedules {MORE * int(n[1])}", words)
                for words in own]
        for words in own + more:
            made = subprocess.run([program, "check", *words.split()], capture_output=True,
                                  text=True, timeout=1800, check=False)
            if made.returncode == 0:
                continue
            if "FAIL" not in made.stdout:
                return False, f"{words}: {(made.stdout + made.stderr)[-300:]}"
            found = finding_of(edit, made.stdout)
            if not found:
                continue
            code, wanted = re.match(r"\w+", found)[0], edit.facts.get("code")
            other = f" (in C++ {wanted})" if wanted and wanted != code else ""
            return True, found + other
        return False, "nothing found"


def main():
    options = adversary.arguments().parse_args()
    ptx_test.NVCC = ptx_test.cuda_program("nvcc")
    if ptx_test.NVCC is None:
        print("did not run: no nvcc here")
        sys.exit(77)
    edits = [edit for edit in read_edits(adversary.HERE)[1] if is_asked(edit)]
    build = adversary.Build(options.build)
    found, tried = adversary.judge_all(edits, lambda edit: judge(build, edit), options, "MISSED")
    print(f"{found} of {tried} edits are found from PTX ({len(edits)} are asked)")
    sys.exit(0 if found >= ENOUGH * tried else 1)


if __name__ == "__main__":
    main()
