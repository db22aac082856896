#!/usr/bin/env python3
"""The kept texts of kernels, broken in every way that there is: each mutant is killed.

    mutants_test.py PTX_BESIDE

What is broken is what docs/mutation.md says: the statements that synchronise, as in C++, and what
only a text can say wrongly. Here a part of the first text's mutants runs, by the commit; with
WARPWRIGHT_CAMPAIGN=1 all of every text's. Who lives is printed with its line; the first text's few
are listed here with the reason.
"""
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402

TEXTS = pathlib.Path(__file__).resolve().parent / "texts"
BESIDE = None
ONE_IN = 24
# The texts whose survivors were looked at: who lives, and why.
ALIVE = {
    "hopper_bf16_bf16_64x64": (
        # One piece of C a tile: the store before has waited for its buffer (docs/log/mutation.md).
        r"^SURVIVED: bulk wait_group at isa/tma\.h:\d+ in kernel/epilogue\.h:\d+",
        # Scales of rows, which this product has not: nothing uses what is loaded.
        r"^SURVIVED: ld\.shared\.v2\.u32 .*, address \+ 16$",
    ),
}
ENOUGH = 95  # percent, of the others


class Mutants(unittest.TestCase):
    def break_text(self, name, one_in, schedules):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"{name}.ptx"
            path.write_bytes(gzip.decompress((TEXTS / f"{name}.ptx.gz").read_bytes()))
            first = samples.run_seed() % one_in
            ran = subprocess.run(
                [BESIDE, "--full", "--schedules", str(schedules), "--mutants", str(one_in),
                 str(first), f"{name}={path}"], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        print(ran.stdout, end="", flush=True)
        killed, of_all = map(int, re.search(r"killed (\d+) of (\d+)", ran.stdout).groups())
        self.assertGreater(killed, 0)
        if name not in ALIVE:
            self.assertGreaterEqual(100 * killed, ENOUGH * of_all)
            return
        known = ALIVE[name]
        lives = [line for line in ran.stdout.splitlines() if line.startswith("SURVIVED")]
        self.assertEqual([line for line in lives
                          if not any(re.search(pattern, line) for pattern in known)], [])

    def test_mutants_of_kept_texts_are_killed(self):
        names = sorted(path.name.split(".")[0] for path in TEXTS.glob("*.ptx.gz"))
        if not samples.CAMPAIGN:
            self.break_text("hopper_bf16_bf16_64x64", ONE_IN, 4)
            return
        for name in names:
            with self.subTest(name):
                self.break_text(name, 1, 4)


if __name__ == "__main__":
    BESIDE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
