#!/usr/bin/env python3
"""Runs every command that the pages show, and compares what it prints with what they show.

    commands_test.py ROOT WARPWRIGHT   the commands of all pages, with WARPWRIGHT's folder in PATH
    commands_test.py ROOT WARPWRIGHT --gpu   those for a GPU alone, on one, one after the other
    commands_test.py --self-test       shows that the parser and the comparison find what they must

Pages are README.md, CONTRIBUTING.md, docs/**/*.md, examples/*/README.md and
tests/corpus/README.md. Of their fenced blocks, "sh" has a command a line, and "console" a
transcript: "$ " before a command, and below it what it prints, where a line "..." stands for any
lines. All must exit with 0. A block in which they
do not, or that is not run here, says so in a comment directly above it:

    <!-- exits: 2 -->
    <!-- needs: gpu -->

(NEEDS has the reasons.) What is not run is reported by name. Every block has a folder of its own,
with the files that FILES has for its page; nothing is written elsewhere.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest

NEEDS = {
    "gpu": "needs a CUDA device",
    "torch": "needs PyTorch and a CUDA device",
    "build": "installs or compiles for minutes",
}
LANGUAGES = ("sh", "console", "cpp", "python", "cmake", "")
# A line that begins so is a command, so it stands in a block that says so.
COMMAND = re.compile(r"(\$ |(build[\w-]*/bin/)?warpwright |cmake |ctest |script/\w|"
                     r"examples/\S+/run\b)")
MARK = re.compile(r"<!-- (needs|exits): (\S+) -->$")

# What may differ from run to run: a pattern, and what stands for it on both sides.
IGNORED = [
    (re.compile(r"\bin \d[\d.e+-]* s\b"), "in TIME"),  # how long a product took
]

# What a page's commands read: page, file, and its text or its tensors by name, type and extents.
FILES = {
    "docs/bench.md": {"mine.txt": "4096 7168 2048\n", "groups.txt": "8 16 4096 4096\n"},
    "docs/inference.md": {"mine.txt": "64 4096 7168\n"},
    "README.md": {"x.safetensors": {"x": ("BF16", 300, 256)},
                  "w.safetensors": {"w": ("BF16", 200, 256)}},
    "docs/grouped.md": {"x.safetensors": {"x": ("BF16", 64, 160)},
                        "w.safetensors": {"w": ("BF16", 4, 72, 160)}},
    "docs/packing.md": {"w.safetensors": {"w": ("BF16", 200, 256)},
                        "moe.safetensors": {"experts.0.down": ("BF16", 72, 128),
                                            "experts.1.down": ("BF16", 72, 128)}},
    "docs/w4a8.md": {"x.safetensors": {"x": ("F8_E4M3", 59, 256)},
                     "w.safetensors": {"w": ("BF16", 4, 72, 256)}},
    "docs/gemm.md": {"x.safetensors": {"x": ("F8_E4M3", 64, 384), "scale": ("F32", 64, 3)},
                     "w.safetensors": {"weight": ("F8_E4M3", 200, 384),
                                       "weight_scale_inv": ("F32", 2, 3)},
                     "q.safetensors": {"q": ("BF16", 16, 96, 64)},
                     "k.safetensors": {"k": ("BF16", 16, 80, 64)}},
}
TIMEOUT = 300  # seconds a command


class Fault(Exception):
    """What is wrong with a page, beginning with its place."""


class Block:
    """A fenced block of commands: (line, command, expected output or None)."""

    def __init__(self, page, line, language, needs, status):
        self.page, self.line, self.language = page, line, language
        self.needs, self.status = needs, status
        self.commands = []

    def fill(self, lines):
        """Splits the block's lines, which follow the fence."""
        command, start, more = "", 0, False
        for number, line in enumerate(lines, self.line + 1):
            if more:
                command += "\n" + line
            elif self.language == "console" and not line.startswith("$ "):
                if not self.commands:
                    raise Fault(f"{self.page}:{number}: a transcript begins with \"$ \"")
                self.commands[-1][2].append(line)
                continue
            else:
                command, start = line[2:] if self.language == "console" else line, number
            more = command.endswith("\\")
            if not more and command.strip() and not command.lstrip().startswith("#"):
                self.commands.append((start, command, [] if self.language == "console" else None))
        if more:
            raise Fault(f"{self.page}:{start}: the command goes on behind the block")
        if not self.commands:
            raise Fault(f"{self.page}:{self.line}: a block without a command")


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
                block = Block(page, fence, language, marks.get("needs"), int(marks.get("exits", 0)))
                block.fill(inside)
                blocks.append(block)
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


def plain(line):
    for pattern, name in IGNORED:
        line = pattern.sub(name, line)
    return line.rstrip()


def agree(shown, printed):
    """Does a page show these lines, with "..." for any?"""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(agree(shown[1:], printed[i:]) for i in range(len(printed) + 1))
    return bool(printed) and plain(shown[0]) == plain(printed[0]) and agree(shown[1:], printed[1:])


def write_tensors(path, tensors):
    """A small .safetensors file of values of about 1."""
    dice = random.Random(path.name)
    width = {"BF16": 2, "F8_E4M3": 1, "F32": 4}
    header, data = {}, b""
    for name, (dtype, *shape) in tensors.items():
        count = 1
        for extent in shape:
            count *= extent
        start = len(data)
        if dtype == "BF16":
            data += struct.pack(f"<{count}H", *(dice.choice((0x3f00, 0xbf00)) + dice.randrange(256)
                                                for _ in range(count)))
        elif dtype == "F8_E4M3":
            data += bytes(dice.choice((0x30, 0xb0)) + dice.randrange(16) for _ in range(count))
        else:
            data += struct.pack(f"<{count}f", *(dice.uniform(0.5, 2) for _ in range(count)))
        assert len(data) - start == count * width[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def run(command, folder, binaries, gpu=False):
    """The exit status and the output, as on a terminal: what goes to stderr too."""
    # No GPU, and nobody's measurements: the same output on every machine.
    environment = dict(os.environ, PATH=f"{binaries}:{os.environ['PATH']}",
                       XDG_CACHE_HOME=str(folder / ".cache"))
    if not gpu:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    try:
        ran = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=False,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return None, f"no end after {TIMEOUT} s"
    return ran.returncode, ran.stdout.decode("utf-8", "replace")


def brief(command):
    """A command in one line, without its comment."""
    return re.sub(r" # .*", "", " ".join(re.sub(r"\\\n", " ", command).split()))


def indented(lines):
    return "".join(f"\n    {line}" for line in lines)


def check_block(block, binaries, gpu=False):
    """Runs a block. Its faults, its reports, and the seconds of each of its commands."""
    faults, reports, seconds = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, content in FILES.get(block.page, {}).items():
            if isinstance(content, str):
                (folder / file).write_text(content, encoding="utf-8")
            else:
                write_tensors(folder / file, content)
        for line, command, shown in block.commands:
            place = f"{block.page}:{line}: {brief(command)}"
            if block.needs and not (gpu and block.needs == "gpu"):
                reports.append(f"did not run: {place} ({NEEDS[block.needs]})")
                # Without a GPU it must be refused for that alone: its options are those there are.
                if block.needs != "gpu" or not command.startswith("warpwright "):
                    continue
                status, output = run(command, folder, binaries)
                if status != 2 or "CUDA" not in output:
                    faults.append(f"{place}\n  without a GPU exits with {status}, not with 2 and "
                                  f"a sentence that wants CUDA:{indented(output.splitlines())}")
                continue
            start = time.monotonic()
            status, output = run(command, folder, binaries, gpu)
            seconds.append((time.monotonic() - start, place))
            printed = output.splitlines()
            if status != block.status:
                faults.append(f"{place}\n  exits with {status}, not with {block.status}:"
                              f"{indented(printed[-12:])}")
            elif shown is not None and not agree(shown, printed):
                faults.append(f"{place}\n  the page shows{indented(shown)}\n  but it prints"
                              f"{indented(printed)}")
    return faults, reports, seconds


def pages_of(root):
    found = [root / "README.md", root / "CONTRIBUTING.md", *sorted(root.glob("docs/**/*.md")),
             *sorted(root.glob("examples/*/README.md")), root / "tests/corpus/README.md"]
    return [(str(path.relative_to(root)), path.read_text(encoding="utf-8")) for path in found]


def check(root, binaries, gpu=False):
    blocks, faults, reports, seconds = [], [], [], []
    for page, text in pages_of(root):
        try:
            blocks += blocks_of(page, text)
        except Fault as fault:
            faults.append(str(fault))
    if gpu:
        blocks = [b for b in blocks if b.needs == "gpu"]
    # The longest begin first: those that run a kernel many times.
    blocks.sort(key=lambda b: "--mutate" not in str(b.commands))
    with concurrent.futures.ThreadPoolExecutor(max_workers=1 if gpu else os.cpu_count()) as workers:
        for result in workers.map(lambda b: check_block(b, binaries, gpu), blocks):
            for whole, part in zip((faults, reports, seconds), result):
                whole += part
    print("CTEST_FULL_OUTPUT")  # ctest cuts what a test that passes prints without this word
    for report in sorted(reports):
        print(report)
    for spent, place in sorted(seconds, reverse=True)[:8]:
        print(f"{spent:6.1f} s  {place}")
    for fault in faults:
        print(f"FAULT {fault}")
    print(f"{len(seconds)} commands ran, {len(reports)} did not, {len(faults)} faults")
    return 1 if faults or not seconds else 0


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
# a comment alone is no command
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

    def checked(self, text):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            tool = root / "warpwright"
            tool.write_text("#!/bin/sh\ncase $1 in\n  fail) echo bad; exit 1 ;;\n"
                            "  gpu) echo no CUDA here; exit 2 ;;\n  *) echo \"$@ in 1.5 s.\" ;;\n"
                            "esac\n", encoding="utf-8")
            tool.chmod(0o755)
            (block,) = blocks_of("p.md", text)
            faults, reports, _ = check_block(block, name)
            return len(faults), len(reports)

    def test_reads_a_page(self):
        first, second, third = blocks_of("p.md", PAGE)
        self.assertEqual((first.needs, first.status), ("gpu", 0))
        self.assertEqual(first.commands, [(4, "warpwright bench \\\n  --dense", None)])
        self.assertEqual((second.needs, second.status), (None, 2))
        self.assertEqual(second.commands, [(10, "warpwright mask --cluster 9,9", ["no", "..."]),
                                           (13, "warpwright layout", [])])
        self.assertEqual((third.needs, third.status), (None, 0))
        self.assertEqual([c[0] for c in third.commands], [17, 19])

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

    def test_three_dots_are_any_lines(self):
        for shown, right in ((["a", "...", "d"], True), (["...", "d"], True), (["a", "..."], True),
                             (["..."], True), (["a", "b", "c", "d", "..."], True),
                             (["a", "...", "c"], False), (["b", "..."], False), ([], False)):
            self.assertEqual(agree(shown, ["a", "b", "c", "d"]), right, shown)

    def test_what_is_not_run_is_reported_and_its_options_are_tried(self):
        self.assertEqual(self.checked("<!-- needs: build -->\n```sh\nexit 9\n```\n"), (0, 1))
        self.assertEqual(self.checked("<!-- needs: gpu -->\n```sh\nwarpwright gpu\n```\n"), (0, 1))
        self.assertEqual(self.checked("<!-- needs: gpu -->\n```sh\nwarpwright a\n```\n"), (1, 1))

    def test_names_a_command_in_a_line(self):
        self.assertEqual(brief("a  --b \\\n  c   # why"), "a --b c")

    def test_writes_tensors(self):
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "x.safetensors"
            write_tensors(path, {"x": ("BF16", 3, 5), "s": ("F32", 2), "w": ("F8_E4M3", 4)})
            data = path.read_bytes()
            size = struct.unpack("<Q", data[:8])[0]
            header = json.loads(data[8:8 + size])
            self.assertEqual(size % 8, 0)
            self.assertEqual(header["x"]["data_offsets"], [0, 30])
            self.assertEqual(len(data), 8 + size + 30 + 8 + 4)


def main():
    if sys.argv[1:] == ["--self-test"]:
        unittest.main(argv=sys.argv[:1], verbosity=1)
    if len(sys.argv) != 3 and sys.argv[3:] != ["--gpu"]:
        print(__doc__, file=sys.stderr)
        return 2
    return check(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve().parent,
                 "--gpu" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
