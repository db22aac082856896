#!/usr/bin/env python3
"""Hand edits that break the kernels' synchronisation, or do not: each is found, or stays clean.

    adversary.py BUILD [--sample N | --names A,B] [--family] [--jobs J] [--list FILE]

edits/*.diff has the edits and commands.txt the commands that must notice them; edits.py says how.
A command of `warpwright check` runs with its kernel compiled with the edit; a script is given the
edited tree; a program is the source of a test, compiled with the edit. "caught by": one of the
commands fails with findings. "clean under": none does; a note says why where that is not plain. An
edit that does not compile was not tried, and fails, unless `refused` has words of the compiler's
first error: what a type or a static_assert forbids. An edit whose old text is not in its source
exactly once fails: port it. Where an edit says what its first finding is and says (edits.py: code,
at, says, mend), another one fails.

Where nothing is found, the commands run once more with the kernel compiled for gcov: an edit whose
lines never ran proves nothing, and fails.

BUILD is a build folder of this tree, whose libraries the edited kernels are linked with. --sample
takes every so-many-th edit, from one on that the seed of the run draws. --family runs `check
kernel` in place of an edit's own commands of `check`: would somebody who knows nothing of the edit
have found it?
"""
import argparse
import concurrent.futures
import difflib
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402
from edits import Fault, read_edits  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
# What a plan and the grids of a launch are made of: edited, these are compiled again too.
PLANS = ("kernels", "hopper_family", "blackwell", "registers_family")
PLANNED = ("config.h", "facts.h", "table.h", "params.h", "_pipeline.h", "_accumulator.h",
           "tile_ring.h", "ordered_sequence.h", "ring_barriers.h")
GEMM = {"blackwell": "BlackwellGemm", "registers": "RegistersGemm"}
# What a program of edited kernels has beside them: kernels of rows, and how one is found.
ROWS = """
#include "warpwright/kernel/check_rows.h"
#include "warpwright/kernel/copy_rows.h"
#include "warpwright/kernel/moe/gather_rows.h"
#include "warpwright/kernel/moe/sort_gather.h"
#include "warpwright/kernel/moe/sort_slots.h"
#include "warpwright/kernel/moe/sum_slots.h"
#include "warpwright/kernel/zero_rows.h"
#include "warpwright/plan/families/family.h"
#include "warpwright/simulation/model_kernels.h"
"""
FINDER = """
const ModelKernel* model_kernel(std::string_view name) {{
  static const ModelKernel all[] = {{
      {entries}
      {{zero_rows_kernel, &run_kernel<kernel::ZeroRowsKernel>}},
      {{check_rows_kernel, &run_kernel<kernel::CheckRowsKernel>}},
      {{copy_rows_kernel, &run_kernel<kernel::CopyRowsKernel>}},
      {{sort_slots_kernel, &run_kernel<kernel::SortSlotsKernel>}},
      {{gather_rows_kernel, &run_kernel<kernel::GatherRowsKernel>}},
      {{sort_gather_kernel, &run_kernel<kernel::SortGatherKernel>}},
      {{sum_slots_kernel, &run_kernel<kernel::SumSlotsKernel>}}}};
  for (const ModelKernel& k : all) {{
    if (k.name == name) return &k;
  }}
  return nullptr;
}}
"""
SOURCE = ROWS + """
#include "warpwright/kernel/blackwell/gemm.h"
#include "warpwright/kernel/blackwell/table.h"
#include "warpwright/kernel/hopper/gemm.h"
#include "warpwright/kernel/hopper/table.h"
#include "warpwright/kernel/registers/gemm.h"
#include "warpwright/kernel/registers/table.h"

namespace warpwright::kernel {{
{rows}
}}

namespace warpwright::device {{
""" + FINDER + """
}}
"""


class Build:
    """The commands by which the build folder compiles and links."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        commands = self.commands("warpwright_exe")
        self.link = shlex.split(commands[-1].split("&&")[1])
        kernels = "plan/families/kernels.cpp"
        words = shlex.split(next(c for c in commands if kernels in c and " -c " in c))
        if words[0].endswith("ccache"):
            words = words[1:]
        self.compiler = words[0]
        self.flags = [w for w in words if w.startswith(("-std", "-m", "-DWARPWRIGHT_VERSION"))]
        self.plans = {}
        self.lock = threading.Lock()

    def commands(self, target):
        return self.run("ninja", "-t", "commands", target).stdout.splitlines()

    def link_program(self, words, objects, program):
        """Links by these words, with these objects before the libraries."""
        words = list(words)
        out = words.index("-o")
        words[out + 1] = str(program)
        words[out:out] = map(str, objects)
        made = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr

    def plan(self, kernels):
        """What plans know of these kernels, unedited: an object file, made once."""
        with self.lock:
            if kernels not in self.plans:
                folder = tempfile.TemporaryDirectory()
                path = pathlib.Path(folder.name, "plan.o")
                source = ROOT / "warpwright/plan/families/kernels.cpp"
                fault = self.compile(ROOT, source, path, kernels)
                assert not fault, fault
                self.plans[kernels] = (folder, path)
            return self.plans[kernels][1]

    def compile(self, root, source, to, kernels, *flags):
        made = subprocess.run([self.compiler, *self.flags, f'-DWARPWRIGHT_KERNELS="{kernels}"',
                               "-O1", "-w", *flags, "-I", root, "-c", source, "-o", to],
                              capture_output=True, text=True, check=False)
        return made.stderr if made.returncode != 0 else ""

    def run(self, *command):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)


def edit_tree(edit, folder):
    """A copy of the tree, with the edit made."""
    for part in ("warpwright", "tests", "cmake"):
        shutil.copytree(ROOT / part, folder / part)
    for name, text in edit.made_in(folder).items():
        (folder / name).write_text(text, encoding="utf-8")


def place_of(phrase, folder):
    """A phrase with FILE:{text} as FILE:LINE in this tree."""
    def line(found):
        path = folder / found[1]
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        at = [number for number, text in enumerate(lines, 1) if found[2] in text]
        return f"{found[1]}:{at[0] if len(at) == 1 else f'{len(at)} lines have it'}"
    return re.sub(r"([\w/.]+):\{(.*?)\}", line, phrase)


def as_said(edit, output, folder):
    """(is the first finding what the edit says?, the finding, with what it lacks)"""
    found = re.search(r"^([A-Z]+\d+) [^\n]*?(?: at (\S+):(\d+))? \(in [^\n]*\n((?:  .*\n)*)",
                      output, re.MULTILINE)
    if not found:
        return False, "no finding is printed: " + output[:160]
    code, file, number, text = found.groups()
    parts = dict(zip(("says", "mend"), text.lower().partition("mend:")[::2]))
    lacks = [f"code {edit.said['code']}"] if code != edit.said["code"] else []
    if "at" in edit.said:
        path = folder / (file or "")
        lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
        line = lines[int(number) - 1] if number and int(number) <= len(lines) else ""
        if edit.said["at"] not in line:
            lacks.append(f"at `{edit.said['at']}`")
    for key, part in parts.items():
        phrases = [place_of(phrase, folder) for phrase in edit.said.get(key, "").split("; ")]
        lacks += [f"{key} `{phrase}`" for phrase in phrases if phrase.lower() not in part]
    seen = f"{code} at {file}:{number}" if file else code
    return not lacks, seen + (", without " + ", ".join(lacks) + ": " + text if lacks else "")


def rows_of(build, kernels, folder):
    """The rows of these kernels as the build gives them to its sources."""
    rows = []
    for family in ("hopper", "blackwell", "registers"):
        build.run(build.folder / "kernels/kernel_rows", family, ",".join(kernels), "1", folder)
        text = (folder / f"{family}_0.h").read_text()
        rows += re.findall(r"^struct .*;$", text, re.MULTILINE)
    return "\n".join(rows)


def link_kernels(build, edit, folder, text, *flags):
    """warpwright with this text for its kernels; None and the words where it does not compile."""
    source = folder / "kernels.cpp"
    source.write_text(text)
    names = ",".join(edit.kernels)
    objects = [folder / "kernels.o"]
    words = build.compile(folder, source, objects[0], names, *flags)
    if words:
        return None, words
    if any(place.file.endswith(PLANNED) for place in edit.places):
        for plan in PLANS:
            objects.append(folder / f"{plan}_plan.o")
            if objects[-1].exists():
                continue
            source = folder / f"warpwright/plan/families/{plan}.cpp"
            words = build.compile(folder, source, objects[-1], names)
            if words:
                return None, words
    else:
        objects.append(build.plan(names))
    program = folder / "program"
    build.link_program(build.link + list(flags), objects, program)
    return program, ""


def make_program(build, edit, folder, *flags):
    """warpwright with the edited kernels; None and the words where it does not compile."""
    rows = rows_of(build, edit.kernels, folder)
    entries = "\n      ".join(
        "{kernel::%s::name, &run_kernel<kernel::%s<kernel::%s>>}," %
        (k, GEMM.get(k.split("_")[0], "HopperGemm"), k) for k in edit.kernels)
    return link_kernels(build, edit, folder, SOURCE.format(rows=rows, entries=entries), *flags)


def edited_lines(edit, folder):
    """The numbers of the lines that an edit has made, by source; where it only took some away, of
    those beside them."""
    lines = {}
    for name in {place.file for place in edit.places}:
        old = (ROOT / name).read_text(encoding="utf-8").split("\n")
        new = (folder / name).read_text(encoding="utf-8").split("\n")
        for tag, _, _, first, end in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
            if tag != "equal":
                here = range(first + 1, end + 1) if end > first else (first, first + 1)
                lines.setdefault(name, set()).update(here)
    return lines


def never_ran(build, edit, folder, commands):
    """Did none of the edited lines run under these commands? Not where they are no statements."""
    program, words = make_program(build, edit, folder, "--coverage")
    if program is None:
        return False
    for words in commands:
        words = re.sub(r"--schedules \d+", "--schedules 2", words)
        subprocess.run([program, "check", *words.split()], capture_output=True, timeout=1800,
                       check=False)
    made = subprocess.run(["gcov", "--json-format", "--stdout", "kernels.o"], cwd=folder,
                          capture_output=True, text=True, check=False)
    if made.returncode != 0 or not made.stdout:
        return False
    wanted = edited_lines(edit, folder)
    counts = []
    for source in json.loads(made.stdout)["files"]:
        lines = next((wanted[n] for n in wanted if source["file"].endswith(n)), ())
        counts += [line["count"] for line in source["lines"] if line["line_number"] in lines]
    return bool(counts) and not any(counts)


def run_program(build, command, folder):
    """The run of a test's source in the edited tree; None and the words where it does not
    compile."""
    target, source, *arguments = command.words.split()
    made = folder / "test.o"
    words = build.compile(folder, folder / source, made, "common")
    if words:
        return None, words
    link = shlex.split(build.commands(target)[-1].split("&&")[1])
    program = folder / "test"
    build.link_program([w for w in link if not w.endswith(".cxx.o")], [made], program)
    return subprocess.run([program, *arguments], capture_output=True, text=True,
                          timeout=1800, check=False), ""


def first_error(words):
    return next((line for line in words.splitlines() if "error" in line), words)


def refused(edit, words):
    """(as expected?, what was seen) of an edit to which the compiler says these words."""
    first = first_error(words)
    said = edit.facts.get("refused")
    proved = edit.expect == "caught" and said is not None and said in first
    return proved, "does not compile: " + first[-160:]


def judge(build, edit, family=False):
    """(as expected?, what was seen)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            edit_tree(edit, folder)
        except Fault as fault:
            return False, str(fault)
        for script in edit.of_kind("script"):
            made = subprocess.run([sys.executable, folder / script.words, folder],
                                  capture_output=True, text=True, check=False)
            if made.returncode == 77:
                return True, "did not run: " + made.stdout.strip()
            if "error:" in made.stderr:
                return refused(edit, made.stderr)
            if made.returncode != 0:
                return edit.expect == "caught", "its test fails"
        for command in edit.of_kind("program"):
            made, words = run_program(build, command, folder)
            if made is None:
                return refused(edit, words)
            if made.returncode != 0:
                lines = made.stdout.splitlines()
                found = next((line.strip() for line in lines if re.match(r" *[A-Z]\d ", line)), "")
                return edit.expect == "caught" and "[  FAILED  ]" in made.stdout, found[:160]
        if not edit.of_kind("check"):
            return edit.expect == "clean", "nothing found"
        program, words = make_program(build, edit, folder)
        if program is None:
            return refused(edit, words)
        if "refused" in edit.facts:
            return False, "compiles, although it is said to be refused"
        for words in commands_of(edit, family):
            made = subprocess.run([program, "check", *words.split()], capture_output=True,
                                  text=True, timeout=1800, check=False)
            if made.returncode == 0:
                continue
            if "FAIL" not in made.stdout:
                return False, f"{words}: {(made.stdout + made.stderr)[-300:]}"
            if edit.said and not family:
                return as_said(edit, made.stdout, folder)
            return edit.expect == "caught", first_finding(made.stdout)
        if never_ran(build, edit, folder, commands_of(edit, family)):
            return False, "the edited lines never ran"
        return edit.expect == "clean", "nothing found"


def commands_of(edit, family):
    """What runs behind `check`."""
    own = [command.words for command in edit.of_kind("check")]
    if not family:
        return own
    strict = " --strict" if any("--strict" in words for words in own) else ""
    of_moe = [words for words in own if words.startswith("moe ")]
    in_moe = {kernel for command in edit.of_kind("check") if command.words in of_moe
              for kernel in command.kernels}
    return of_moe + [f"kernel {kernel} --schedules 12{strict}" for kernel in edit.kernels
                     if kernel not in in_moe]


def first_finding(text):
    lines = [line for line in text.splitlines() if re.match(r"[A-Z][A-Z]?\d+ ", line)]
    return (lines[0].strip() if lines else text.splitlines()[0])[:160]


def arguments():
    """What this program and from_ptx.py both take."""
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--names", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", help="a table of what was seen goes here")
    return parser


def judge_all(edits, judge, options, fault):
    """How many edits of those that the options name are as `judge` wants them, and how many are
    named. Prints a line for each, behind the word of a fault, and lists them."""
    wanted = tuple(options.names.split(",")) if options.names else ()
    for start in wanted:
        if not any(edit.name.startswith(start) for edit in edits):
            sys.exit(f"no edit has a name that begins with {start}")
    chosen = [edit for edit in edits if edit.name.startswith(wanted)] if wanted else \
        samples.sampled(edits, options.sample)
    good = 0
    rows = ["| edit | expected | seen |", "|---|---|---|"]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for edit, (right, seen) in zip(chosen, pool.map(judge, chosen)):
            good += right
            print(("" if right else fault + " ") + f"{edit.name}: {edit.expect}; {seen}",
                  flush=True)
            rows.append(f"| {edit.name} | {edit.expect} | {seen.replace('|', '/')} |")
    if options.list:
        pathlib.Path(options.list).write_text("\n".join(rows) + "\n")
    return good, len(chosen)


def main():
    parser = arguments()
    parser.add_argument("--family", action="store_true")
    options = parser.parse_args()
    try:
        _, edits = read_edits(HERE)
    except Fault as fault:
        sys.exit(str(fault))
    build = Build(options.build)
    right, tried = judge_all(edits, lambda edit: judge(build, edit, options.family), options,
                             "WRONG")
    print(f"{right} of {tried} edits as expected")
    sys.exit(right < tried)


if __name__ == "__main__":
    main()
