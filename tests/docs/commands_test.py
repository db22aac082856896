#!/usr/bin/env python3
"""Runs every command that the pages show, and compares what it prints with what they show.

    commands_test.py ROOT WARPWRIGHT   the commands of all pages, with WARPWRIGHT's folder in PATH
    commands_test.py ROOT WARPWRIGHT --sample   of pages that git says have changed, and half of
                                       the other blocks, by the seed of the run
    commands_test.py ROOT WARPWRIGHT --gpu   only those for a GPU, on one, one after the other
    commands_test.py ROOT WARPWRIGHT --update   writes what is printed into the pages, and says so
    commands_test.py --self-test       shows that the parser and the comparison find what they must

Pages are README.md, CONTRIBUTING.md, docs/**/*.md, examples/*/README.md and
tests/corpus/README.md. Their fenced blocks: "sh" has a command a line, and "console" a
transcript (tests/transcript.py). All must exit with 0. A block in which they do not, or that is not
run here, says so in a comment directly above it:

    <!-- exits: 2 -->
    <!-- needs: gpu -->
    <!-- claim: cycles(1)[0] > 1.3 * cycles(2)[0] -->
    <!-- makes: picture.svg -->

A claim is what the page says of what its commands print (Claims has the words), and is evaluated.
Files that a block makes lie beside the page, byte for byte. (NEEDS has the reasons.) What is not
run is reported by name. Every block has a folder of its own, with the files that FILES has for its
page; nothing is written elsewhere.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402
import tensor_files  # noqa: E402
import transcript  # noqa: E402
from transcript import Fault, Outcome, Step  # noqa: E402

NEEDS = {
    "gpu": "needs a CUDA device",
    "torch": "needs PyTorch and a CUDA device",
    "build": "installs or compiles for minutes",
}
LANGUAGES = ("sh", "console", "cpp", "python", "cmake", "")
# A line that begins so is a command, so it stands in a block that says so.
COMMAND = re.compile(r"(\$ |(build[\w-]*/bin/)?warpwright |cmake |ctest |script/\w|"
                     r"examples/\S+/run\b)")
MARK = re.compile(r"<!-- (needs|exits|claim|makes): (.+?) -->$")
CLOSE = 0.03  # what `about` takes for equal

def plain_block(page):
    """The first block of a page that is of no language."""
    text = (pathlib.Path(__file__).resolve().parents[2] / page).read_text()
    return re.search(r"^```\n(.*?)^```", text, re.M | re.S)[1]


# What a page's commands read: page, file, and its text or its tensors by name, type and extents.
MACHINES = pathlib.Path(__file__).resolve().parents[2] / "machines"
FILES = {
    "docs/bench.md": {"mine.txt": "4096 7168 2048\n", "groups.txt": "8 16 4096 4096\n"},
    "docs/ptx.md": {"share.ptx": plain_block("docs/ptx.md"),
                    "typo.ptx": plain_block("docs/ptx.md").replace("mov.u32", "mov.u33")},
    "docs/machines.md": {"h20.json": (MACHINES / "h20.json").read_text()},
    "docs/predict.md": {"mine.txt": "warpwright-correction 1\nfeatures tensor\ntree =0.1\n"},
    "docs/inference.md": {"mine.txt": "64 4096 7168\n"},
    "README.md": {"x.safetensors": {"x": ("bf16", 300, 256)},
                  "w.safetensors": {"w": ("bf16", 200, 256)}},
    "docs/grouped.md": {"x.safetensors": {"x": ("bf16", 64, 160)},
                        "w.safetensors": {"w": ("bf16", 4, 72, 160)}},
    "docs/low_precision.md": {"w.safetensors": {"w": ("bf16", 200, 256)},
                              "x.safetensors": {"x": ("bf16", 40, 256)}},
    "docs/packing.md": {"w.safetensors": {"w": ("bf16", 200, 256)},
                        "moe.safetensors": {"experts.0.down": ("bf16", 72, 128),
                                            "experts.1.down": ("bf16", 72, 128)}},
    "docs/weights.md": {"w.safetensors": {"w": ("bf16", 200, 256)}},
    "docs/w4a8.md": {"x.safetensors": {"x": ("e4m3", 59, 256)},
                     "w.safetensors": {"w": ("bf16", 4, 72, 256)}},
    "docs/gemm.md": {"x.safetensors": {"x": ("e4m3", 64, 384), "scale": ("f32", 64, 3)},
                     "w.safetensors": {"weight": ("e4m3", 200, 384),
                                       "weight_scale_inv": ("f32", 2, 3)},
                     "q.safetensors": {"q": ("bf16", 16, 96, 64)},
                     "k.safetensors": {"k": ("bf16", 16, 80, 64)}},
}


class Block:
    """A fenced block of commands, the steps of which are run one after the other."""

    def __init__(self, page, line, language, marks):
        self.page, self.line, self.language = page, line, language
        self.needs, self.status = marks.get("needs"), int(marks.get("exits", 0))
        self.claims, self.makes = marks.get("claim", []), marks.get("makes", "").split()
        self.steps = []

    def fill(self, lines):
        """Splits the block's lines, which follow the fence."""
        if self.language == "console":
            self.steps = transcript.parse(self.page, lines, self.line + 1)
        at = 0
        while self.language == "sh" and at < len(lines):
            number = self.line + 1 + at
            command, count = transcript.command_at(f"{self.page}:{number}", lines, at, lines[at])
            if command.strip() and not command.lstrip().startswith("#"):
                self.steps.append(Step(number, command))
            at += count
        if not self.steps:
            raise Fault(f"{self.page}:{self.line}: a block without a command")
        for step in self.steps:
            step.status = self.status


def blocks_of(page, text):
    """The blocks of commands on a page; raises a Fault where one is neither run nor marked."""
    blocks, marks = [], {}
    fence, language, inside = 0, "", []
    for number, line in enumerate(text.splitlines(), 1):
        if fence:
            if line.strip() != "```":
                inside.append(line)
                if language not in ("sh", "console") and COMMAND.match(line):
                    raise Fault(f"{page}:{number}: a command in a block that is not sh or console")
                continue
            if language in ("sh", "console"):
                blocks.append(Block(page, fence, language, marks))
                blocks[-1].fill(inside)
            elif marks:
                raise Fault(f"{page}:{fence}: a mark above a block without commands")
            fence, marks, inside = 0, {}, []
            continue
        if line.startswith("```"):
            fence, language = number, line[3:].strip()
            if language not in LANGUAGES:
                raise Fault(f"{page}:{number}: a block of the language \"{language}\"; known are "
                            + ", ".join(filter(None, LANGUAGES)))
            continue
        mark = MARK.match(line)
        if mark:
            if mark[1] == "claim":
                marks.setdefault("claim", []).append((number, mark[2]))
                continue
            if mark[1] == "needs" and mark[2] not in NEEDS:
                raise Fault(f"{page}:{number}: needs {mark[2]}; known are {', '.join(NEEDS)}")
            if mark[1] == "exits" and not mark[2].isdigit():
                raise Fault(f"{page}:{number}: exits {mark[2]}, which is no status")
            marks[mark[1]] = mark[2]
            continue
        if marks:
            raise Fault(f"{page}:{number}: a mark stands directly above its block")
        if re.match(r"\s{4}", line) and COMMAND.match(line.lstrip()):
            raise Fault(f"{page}:{number}: a command outside a fenced block")
    if fence or marks:
        raise Fault(f"{page}:{fence or number}: a block or a mark without an end")
    return blocks


class Claims:
    """Sentences about what a block's commands print, which count from 1: Python, with

    cycles(n)              of each run that command n compares, or until the last tile's end
    column(n, name)        the numbers of a column of its tables
    number(n, pattern)     the first number that it prints there
    about(values, ...)     the values are these numbers, but for 3%
    """

    def __init__(self, block, run):
        self.block, self.run = block, run
        self.tables = {}  # by command
        self.told = {}  # of each question the answer, for the message

    def _tables(self, n):
        if n not in self.tables:
            printed = self.run(self.block.steps[n - 1].command + " --json")
            self.tables[n] = json.loads("\n".join(printed))
        return self.tables[n]

    def _asked(self, question, answer):
        self.told[question] = answer
        return answer

    def _column(self, n, name):
        for view in self._tables(n)["views"]:
            if name in view["header"]:
                at = view["header"].index(name)
                return [float(row[at].rstrip("%")) for row in view["rows"]]
        raise Fault(f"command {n} has no column \"{name}\"")

    def column(self, n, name):
        return self._asked(f"column({n}, {name})", self._column(n, name))

    def cycles(self, n):
        made = self._tables(n)
        if "runs" in made:  # of a lesson
            cycles = [float(run["cycles"]) for run in made["runs"]]
        elif any("end, cycles" in view["header"] for view in made["views"]):
            cycles = [max(self._column(n, "end, cycles"))]
        else:
            cycles = self._column(n, "cycles")
        return self._asked(f"cycles({n})", cycles)

    def number(self, n, pattern):
        found = re.search(pattern, "\n".join(self.run(self.block.steps[n - 1].command)))
        if not found:
            raise Fault(f"command {n} prints nothing like \"{pattern}\"")
        return self._asked(f"number({n}, {pattern})", float(found[1]))

    @staticmethod
    def about(values, *numbers):
        values = values if isinstance(values, list) else [values]
        return len(values) == len(numbers) and all(
            abs(value - number) <= CLOSE * abs(number) for value, number in zip(values, numbers))

    def faults(self):
        """For each claim that is not true: where it stands, and what the commands print."""
        for line, claim in self.block.claims:
            self.told = {}
            names = {name: getattr(self, name) for name in ("cycles", "column", "number", "about")}
            names["__builtins__"] = {f.__name__: f for f in (all, any, len, max, min, sorted)}
            try:
                holds = eval(claim, names)  # pylint: disable=eval-used  # of our own pages
            except (Fault, ValueError, SyntaxError, NameError, LookupError, TypeError) as wrong:
                yield f"{self.block.page}:{line}: no claim: {claim}: {wrong}"
                continue
            if holds is not True:
                yield (f"{self.block.page}:{line}: not true: {claim}" + "".join(
                    f"\n    {question} is {answer}" for question, answer in self.told.items()))


def write_file(path, content):
    """A text, or small tensors."""
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
        return
    for name, (dtype, *shape) in content.items():
        data = tensor_files.random_bytes(dtype, tensor_files.elements(shape), path.name + name)
        tensor_files.write(f"{path}:{name}", (dtype, shape, data))


def check_made(block, folder, root, outcome):
    """The files that a block makes are those beside its page."""
    for name in block.makes:
        kept = root / pathlib.PurePosixPath(block.page).parent / name
        made = folder / name
        if not made.exists():
            outcome.faults.append(f"{block.page}:{block.line}: makes no {name}")
        elif not kept.exists() or made.read_bytes() != kept.read_bytes():
            outcome.faults.append(f"{block.page}:{block.line}: {kept} is not what its command "
                                  "makes: --update writes it")
            outcome.files[kept] = made.read_bytes()


def check_block(block, binaries, gpu=False, root=pathlib.Path()):
    """Runs a block: its outcome, and its reports."""
    outcome, reports = Outcome(), []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, content in FILES.get(block.page, {}).items():
            write_file(folder / file, content)
        for step in block.steps:
            if not block.needs or gpu and block.needs == "gpu":
                outcome.check(step, block.page, folder, [binaries], gpu)
                continue
            place = f"{block.page}:{step.line}: {transcript.brief(step.command)}"
            reports.append(f"did not run: {place} ({NEEDS[block.needs]})")
            # Without a GPU it must be refused only for that: its options are those there are.
            if block.needs == "gpu" and step.command.startswith("warpwright "):
                status, printed = transcript.run(step.command, folder, [binaries])
                if status != 2 or "CUDA" not in "\n".join(printed):
                    outcome.faults.append(
                        f"{place}\n  without a GPU exits with {status}, not with 2 and a sentence "
                        "that wants CUDA:" + "".join(f"\n    {line}" for line in printed))
        if not block.needs:
            check_made(block, folder, root, outcome)
            claims = Claims(block, lambda command: transcript.run(command, folder, [binaries])[1])
            outcome.faults += claims.faults()
    return outcome, reports


def pages_of(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md")),
             *sorted(root.glob("examples/*/README.md")), root / "tests/corpus/README.md"]
    return [(str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in found]


def check(root, binaries, gpu=False, update=False, sample=False):
    blocks, unread = [], Outcome()
    for page, text in pages_of(root):
        try:
            blocks += blocks_of(page, text)
        except Fault as fault:
            unread.faults.append(str(fault))
    if gpu:
        blocks = [b for b in blocks if b.needs == "gpu"]
    if sample:
        changed = samples.changed(root)
        others = [b for b in blocks if root / b.page not in changed]
        blocks = [b for b in blocks if root / b.page in changed] + samples.sampled(others, 2)
    # The longest begin first: those that run a kernel many times.
    blocks.sort(key=lambda b: "--mutate" not in str([step.command for step in b.steps]))
    with concurrent.futures.ThreadPoolExecutor(max_workers=1 if gpu else os.cpu_count()) as workers:
        done = list(workers.map(lambda b: check_block(b, binaries, gpu, root), blocks))
    ran, faults = transcript.report([unread] + [outcome for outcome, _ in done])
    reports = sorted(report for _, of_block in done for report in of_block)
    print("\n".join(reports))
    print(f"{ran} commands ran, {len(reports)} did not, {faults} faults")
    if update:
        for page in sorted({b.page for b in blocks}):
            whole = Outcome()
            for block, (outcome, _) in zip(blocks, done):
                whole.changes.update(outcome.changes if block.page == page else {})
            whole.update(root / page)
        for _, (outcome, _) in zip(blocks, done):
            for path, content in outcome.files.items():
                path.write_bytes(content)
                print(f"updated {path}")
    return 1 if faults or not ran else 0


PAGE = """# A page
<!-- needs: gpu -->
```sh
warpwright bench \\
  --dense
```
Words.
<!-- exits: 2 -->
```console
$ warpwright mask --cluster 9,9
no
...
$ warpwright layout
```
```sh
# a comment by itself is no command
warpwright devices   # with a comment

warpwright mask
```
"""


class SelfTest(unittest.TestCase):
    """Each rule on both sides; the commands here are the shell's."""

    def fault(self, text):
        with self.assertRaises(Fault) as caught:
            blocks_of("p.md", text)
        return str(caught.exception)

    def checked(self, text, kept=None):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            for file, content in (kept or {}).items():
                write_file(root / file, content)
            tool = root / "warpwright"
            tool.write_text("#!/bin/sh\ncase $1 in\n  fail) echo bad; exit 1 ;;\n"
                            "  gpu) echo no CUDA here; exit 2 ;;\n  *) echo \"$@ in 1.5 s.\" ;;\n"
                            "esac\n", encoding="utf-8")
            tool.chmod(0o755)
            (block,) = blocks_of("p.md", text)
            outcome, reports = check_block(block, name, root=root)
            return len(outcome.faults), len(reports)

    def test_reads_a_page(self):
        def steps(block):
            return [(step.line, step.command, step.shown) for step in block.steps]

        first, second, third = blocks_of("p.md", PAGE)
        self.assertEqual((first.needs, first.status), ("gpu", 0))
        self.assertEqual(steps(first), [(4, "warpwright bench \\\n  --dense", None)])
        self.assertEqual((second.needs, second.status), (None, 2))
        self.assertEqual(steps(second), [(10, "warpwright mask --cluster 9,9", ["no", "..."]),
                                         (13, "warpwright layout", [])])
        self.assertEqual((third.needs, third.status), (None, 0))
        self.assertEqual([step.line for step in third.steps], [17, 19])

    def test_a_command_stands_in_a_block_that_is_run(self):
        self.assertIn("not sh or console", self.fault("```\n$ warpwright mask\n```\n"))
        self.assertIn("not sh or console", self.fault("```cpp\nwarpwright mask\n```\n"))
        self.assertIn("outside", self.fault("Words:\n\n    warpwright mask\n"))
        self.assertIn("language \"bash\"", self.fault("```bash\nwarpwright mask\n```\n"))
        self.assertIn("without a command", self.fault("```sh\n# nothing\n```\n"))
        self.assertIn("begins with", self.fault("```console\nwarpwright mask\n```\n"))
        self.assertIn("goes on", self.fault("```sh\nwarpwright \\\n```\n"))
        self.assertEqual(blocks_of("p.md", "```cpp\nint warpwright;\n```\n    int x;\n"), [])

    def test_marks_are_known_and_stand_above_a_block(self):
        self.assertIn("needs time", self.fault("<!-- needs: time -->\n```sh\na\n```\n"))
        self.assertIn("no status", self.fault("<!-- exits: bad -->\n```sh\na\n```\n"))
        self.assertIn("directly above", self.fault("<!-- needs: gpu -->\n\n```sh\na\n```\n"))
        self.assertIn("without commands", self.fault("<!-- needs: gpu -->\n```cpp\na\n```\n"))
        self.assertIn("without an end", self.fault("<!-- needs: gpu -->\n"))
        self.assertIn("without an end", self.fault("```sh\nwarpwright mask\n"))

    def test_compares_the_exit_status(self):
        self.assertEqual(self.checked("```sh\nwarpwright fine\n```\n"), (0, 0))
        self.assertEqual(self.checked("```sh\nwarpwright fail\n```\n"), (1, 0))
        self.assertEqual(self.checked("<!-- exits: 1 -->\n```sh\nwarpwright fail\n```\n"), (0, 0))
        self.assertEqual(self.checked("<!-- exits: 2 -->\n```sh\nwarpwright fail\n```\n"), (1, 0))

    def test_compares_a_transcript_without_its_times(self):
        page = "```console\n$ warpwright a\n%s\n```\n"
        self.assertEqual(self.checked(page % "a in 1.5 s."), (0, 0))
        self.assertEqual(self.checked(page % "a in 0.02 s."), (0, 0))
        self.assertEqual(self.checked(page % "b in 1.5 s."), (1, 0))
        self.assertEqual(self.checked(page % "a in 1.5 s.\nmore"), (1, 0))

    TABLES = ("printf '%s' '{\"views\": [{\"header\": [\"run\", \"cycles\"], "
              "\"rows\": [[\"a\", \"300\"], [\"b\", \"200\"]]}]}' #")

    def claimed(self, claim, command=TABLES):
        return self.checked(f"<!-- claim: {claim} -->\n```sh\n{command}\n```\n")[0]

    def test_a_claim_is_true_of_what_the_commands_print(self):
        self.assertEqual(self.claimed("cycles(1)[0] > 1.4 * cycles(1)[1]"), 0)
        self.assertEqual(self.claimed("cycles(1)[0] > 1.6 * cycles(1)[1]"), 1)
        self.assertEqual(self.claimed("about(cycles(1), 302, 199)"), 0)
        self.assertEqual(self.claimed("about(cycles(1), 320, 199)"), 1)
        self.assertEqual(self.claimed("column(1, 'cycles') == [300, 200]"), 0)
        self.assertEqual(self.claimed("number(1, r'in ([0-9.]+) s') == 1.5", "warpwright a"), 0)
        self.assertEqual(self.claimed("number(1, r'in ([0-9.]+) s') == 2", "warpwright a"), 1)
        for none in ("cycles(2)[0] > 1", "column(1, 'none') == []", "number(1, 'x(9)') == 9",
                     "cycles(1)", "open('x')", "cycles(1) <"):
            self.assertEqual(self.claimed(none), 1, none)

    def test_a_picture_is_what_its_command_makes(self):
        page = "<!-- makes: x.svg -->\n```sh\n%s\n```\n"
        self.assertEqual(self.checked(page % "echo new > x.svg", {"x.svg": "new\n"}), (0, 0))
        self.assertEqual(self.checked(page % "echo new > x.svg", {"x.svg": "old\n"}), (1, 0))
        self.assertEqual(self.checked(page % "echo new > x.svg"), (1, 0))
        self.assertEqual(self.checked(page % "echo new", {"x.svg": "new\n"}), (1, 0))

    def test_what_is_not_run_is_reported_and_its_options_are_tried(self):
        self.assertEqual(self.checked("<!-- needs: build -->\n```sh\nexit 9\n```\n"), (0, 1))
        self.assertEqual(self.checked("<!-- needs: gpu -->\n```sh\nwarpwright gpu\n```\n"), (0, 1))
        self.assertEqual(self.checked("<!-- needs: gpu -->\n```sh\nwarpwright a\n```\n"), (1, 1))

    def test_writes_tensors(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "x.safetensors"
            write_file(path, {"x": ("bf16", 3, 5), "s": ("f32", 2), "w": ("e4m3", 4)})
            tensors, header = tensor_files.read_safetensors(path)
            self.assertEqual(header["s"]["data_offsets"], [0, 8])
            self.assertEqual({n: (*t[:2], len(t[2])) for n, t in tensors.items()},
                             {"x": ("BF16", [3, 5], 30), "s": ("F32", [2], 8),
                              "w": ("F8_E4M3", [4], 4)})


def main():
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1], verbosity=1)
    if len(sys.argv) != 3 and sys.argv[3:] not in (["--gpu"], ["--update"], ["--sample"]):
        print(__doc__, file=sys.stderr)
        return 2
    return check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve().parent,
                 "--gpu" in sys.argv, "--update" in sys.argv, "--sample" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
