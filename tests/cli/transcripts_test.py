#!/usr/bin/env python3
"""The command line as a user calls it: runs tests/cli/transcripts/*.txt and compares.

    transcripts_test.py WARPWRIGHT [NAME...]           all of them, or those of these names
    transcripts_test.py WARPWRIGHT --sample            those that git says have changed, and half of
                                        the other cases, by the seed of the run
    transcripts_test.py WARPWRIGHT --update [NAME...]  writes what is printed into them, says so
    transcripts_test.py --self-test     shows that the parser and the comparison find what they must

A line "# Title" begins a case, which has an empty folder of its own. Lines that are indented by two
are its transcript (tests/transcript.py); all others are words for a reader. PATH has WARPWRIGHT's
folder, with warpwright_wrong and warpwright_examples, and the tools of tests/cli/tools/: tensor,
fields, picture, perfetto and verdict.
"""
import concurrent.futures
import contextlib
import io
import os
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import samples  # noqa: E402
import transcript  # noqa: E402
from transcript import Fault  # noqa: E402

FOLDER = HERE / "transcripts"
TOOLS = HERE / "tools"


def cases_of(name, text):
    """The steps of each case; raises a Fault where something would not be run, or shows nothing."""
    cases, block, begun, inside = [], [], 0, False
    for number, line in enumerate(text.splitlines() + ["# "], 1):
        if line.startswith("# "):
            steps = transcript.parse(name, block, begun + 1, streams=True)
            if begun and not steps:
                raise Fault(f"{name}:{begun}: a case without a command")
            if begun:
                cases.append(steps)
            elif steps:
                raise Fault(f"{name}:{steps[0].line}: a command above the first case")
            block, begun, inside = [], number, False
            continue
        shown = line.startswith("  ") or not line
        if not shown and line.lstrip().startswith(transcript.MARKS + ("! ",)):
            raise Fault(f"{name}:{number}: a transcript is indented by two")
        if line and shown and not inside and not line[2:].startswith(transcript.MARKS):
            raise Fault(f"{name}:{number}: a transcript begins with a command")
        inside = shown and (inside or bool(line))
        block.append(line[2:] if shown else "")
    for step in (step for steps in cases for step in steps):
        if step.shown and all(transcript.is_any(s) or s.strip("! ") == "..." for s in step.shown):
            raise Fault(f"{name}:{step.line}: what is shown could be anything")
        if "Traceback (most recent call last)" in str(step.shown):
            raise Fault(f"{name}:{step.line}: what is shown is that a tool failed")
    counted = len(re.findall(r"^  \$\*? ", text, re.M))
    found = sum(step.words is None for steps in cases for step in steps)
    if counted != found:
        raise Fault(f"{name}: it has {counted} commands, and {found} would be run")
    if not cases:
        raise Fault(f"{name}: a transcript without a case")
    return cases


def install(folder):
    """The tools under their names, by this Python: what PATH has may be slow to start."""
    for tool in TOOLS.iterdir():
        if tool.suffix in (".py", ".sh"):
            by = f'"{sys.executable}" -S -E' if tool.suffix == ".py" else "/bin/sh"
            path = folder / tool.stem
            path.write_text(f'#!/bin/sh\nexec {by} "{tool}" "$@"\n')
            path.chmod(0o755)


def check_case(name, steps, paths):
    outcome = transcript.Outcome()
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        for step in steps:
            outcome.check(step, name, pathlib.Path(folder), paths, streams=True)
    return outcome


def check(program, names, update=False, sample=False):
    files = sorted(FOLDER.iterdir())
    unknown = [f.name for f in files if f.suffix != ".txt"] + sorted(
        set(names) - {f.stem for f in files})
    if unknown:
        print("no transcript: " + ", ".join(unknown))
        return 1
    files = [f for f in files if not names or f.stem in names]
    cases, outcomes = [], [transcript.Outcome()]
    for file in files:
        try:
            name = f"tests/cli/transcripts/{file.name}"
            cases += [(file, name, steps)
                      for steps in cases_of(name, file.read_text(encoding="utf-8"))]
        except Fault as fault:
            outcomes[0].faults.append(str(fault))
    if sample:
        changed = samples.changed(HERE.parents[1])
        others = [case for case in cases if case[0] not in changed]
        cases = [case for case in cases if case[0] in changed] + samples.sampled(others, 2)
    with tempfile.TemporaryDirectory() as tools:
        install(pathlib.Path(tools))
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
            done = list(workers.map(
                lambda case: check_case(case[1], case[2], [program.parent, tools]), cases))
    commands, faults = transcript.report(outcomes + done, quiet=update)
    due = sum(len(list(step.variants())) for _, _, steps in cases for step in steps)
    print(f"{commands} commands of {len(cases)} cases in {len(files)} transcripts ran, "
          f"{faults} faults")
    if update:
        changed = 0
        for file in files:
            whole = transcript.Outcome()
            for case, outcome in zip(cases, done):
                if case[0] == file:
                    whole.changes.update(outcome.changes)
            changed += whole.update(file, "  ", streams=True)
        print(f"{changed} places were updated: look at them, and run this again")
    return 1 if faults or commands != due or not commands else 0


TEXT = """What it is about.

# One
  $ echo a; echo b >&2; exit 3
  a
  ! b
  [3]
  $* echo {x|y}
  {}

# Two
Words.

  prints: printf '%s\\n' [{}]
  1 -> [1]
  {2|3} -> [{}]
  refused: sh -c 'echo no $0 >&2; exit 2'
  that -> no that
"""


class SelfTest(unittest.TestCase):
    """Each rule on both sides; the commands here are the shell's."""

    def outcomes(self, text):
        with tempfile.TemporaryDirectory() as folder:
            return [check_case("t.txt", steps, [folder]) for steps in cases_of("t.txt", text)]

    def faults(self, text):
        return [fault for outcome in self.outcomes("# One\n" + text) for fault in outcome.faults]

    def unread(self, text):
        with self.assertRaises(Fault) as caught:
            cases_of("t.txt", text)
        return str(caught.exception)

    def test_all_that_a_transcript_may_have(self):
        outcomes = self.outcomes(TEXT)
        self.assertEqual([f for o in outcomes for f in o.faults], [])
        self.assertEqual([len(o.seconds) for o in outcomes], [3, 4])

    def test_each_stream_the_status_and_each_line_are_compared(self):
        for right, wrong in (("  a\n", "  b\n"), ("  a\n", "  ! a\n"), ("  ! b\n", ""),
                             ("  [3]\n", ""), ("  [3]\n", "  [2]\n"), ("  {}\n", "  x\n"),
                             ("  {}\n", "  {}\n  {}\n"), ("[1]\n", "[2]\n"),
                             ("[{}]\n", "[2]\n"), ("no that\n", "that\n"), ("exit 2", "exit 1"),
                             ("exit 2", "echo; exit 2")):
            outcomes = self.outcomes(TEXT.replace(right, wrong, 1))
            self.assertTrue([f for o in outcomes for f in o.faults], (right, wrong))

    def test_a_fault_shows_the_command_and_both_lines(self):
        (fault,) = self.faults("  $ echo a; echo b; echo c\n  a\n  x\n  c\n")
        self.assertEqual(fault.splitlines(), ["t.txt:2: echo a; echo b; echo c", "      a",
                                              "    - x", "    + b", "      c"])

    def test_nothing_passes_silently(self):
        self.assertIn("without a case", self.unread(""))
        self.assertIn("without a case", self.unread("words\n"))
        self.assertIn("without a command", self.unread("# One\nwords\n# Two\n  $ a\n"))
        self.assertIn("above the first", self.unread("  $ a\n# One\n  $ a\n"))
        self.assertIn("indented by two", self.unread("# One\n  $ a\n\n$ b\n"))
        self.assertIn("begins with", self.unread("# One\n  $ a\n\nwords\n  out\n"))
        self.assertIn("begins with", self.unread("# One\n    $ a\n"))
        self.assertIn("without a row", self.unread("# One\n  refused: a\n\n  $ a\n"))
        self.assertIn("WORDS -> LINE", self.unread("# One\n  refused: a\n  b\n"))
        self.assertIn("WORDS -> LINE", self.unread("# One\n  refused: a\n  b -> \n"))
        self.assertIn("without alternatives", self.unread("# One\n  $* a {b}\n"))
        self.assertIn("goes on", self.unread("# One\n  $ a \\\n"))
        for anything in ("  ...\n", "  ! ...\n", "  ...\n  ! ...\n"):
            self.assertIn("could be anything", self.unread("# One\n  $ a\n" + anything))
        self.assertIn("could be anything", self.unread("# One\n  refused: a\n  b -> ...\n"))
        self.assertIn("next one", self.unread("# One\n  $ a \\\n  $ b\n"))
        self.assertIn("a tool failed", self.unread(
            "# One\n  $ a\n  ! Traceback (most recent call last):\n"))

    def test_three_dots_stand_for_lines_of_a_stream_and_for_text_of_a_line(self):
        for shown, right in ((["a", "...", "d"], True), (["...", "d"], True), (["a", "..."], True),
                             (["a", "b", "c", "d", "..."], True), (["a", "...", "c"], False),
                             (["b", "..."], False), ([], False), (["a", "! ...", "d"], False)):
            self.assertEqual(transcript.agree(shown, ["a", "b", "c", "d"]), right, shown)
        self.assertTrue(transcript.agree(["..."], ["a"]))
        self.assertFalse(transcript.agree(["..."], ["a", "! b"]))
        self.assertTrue(transcript.agree(["a ... in 3 s"], ["a few in 0.25 s"]))
        self.assertFalse(transcript.agree(["a ... d"], ["a b c"]))

    def test_a_command_in_a_line(self):
        self.assertEqual(transcript.brief("a  --b \\\n  c   # why"), "a --b c")

    def test_an_update_keeps_what_is_right_and_then_all_is(self):
        right = TEXT.replace("  a\n", "  ...\n")
        wrong = right.replace("! b\n", "! x\n").replace("[1]\n", "?\n").replace("[3]", "[2]")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.txt"
            path.write_text(wrong)
            whole = transcript.Outcome()
            for outcome in self.outcomes(wrong):
                whole.changes.update(outcome.changes)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                self.assertEqual(whole.update(path, "  ", streams=True), 2)
            self.assertEqual(path.read_text(), right)
            self.assertIn("  -   1 -> ?\n  +   1 -> [1]", said.getvalue())


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        unittest.main(argv=sys.argv[:1], verbosity=1)
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    update, sample = "--update" in arguments, "--sample" in arguments
    names = [a for a in arguments[1:] if a not in ("--update", "--sample")]
    return check(pathlib.Path(arguments[0]).resolve(), names, update, sample)


if __name__ == "__main__":
    sys.exit(main())
