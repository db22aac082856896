#!/usr/bin/env python3
"""script/learn.py on the recorded times that the tree has: what `warpwright calibrate --learn`
makes of a card's own. LightGBM is needed; elsewhere only the sentence about that is tested. And
which products script/record draws.

    learn_test.py WARPWRIGHT
"""
import gzip
import importlib.machinery
import importlib.util
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "script/learn.py"
PROGRAM = ""


def run(*words, script=SCRIPT):
    return subprocess.run([sys.executable, script, PROGRAM, *words], capture_output=True, text=True,
                          check=False)


class Learn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = gzip.open(ROOT / "bench/times.tsv.gz", "rt").read()
        cls.head, *cls.rows = text.splitlines(keepends=True)
        cls.rows = [row for row in cls.rows if row.startswith(cls.rows[-1].split("\t")[0])]

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        # Installed, where the tree's own times are not at hand.
        self.installed = self.folder / "share/warpwright/learn.py"
        self.installed.parent.mkdir(parents=True)
        shutil.copy(SCRIPT, self.installed)
        self.out = self.folder / "mine.txt"

    def times(self, count):
        """A file of so many times of one card."""
        file = self.folder / "mine.times.tsv.gz"
        with gzip.open(file, "wt") as text:
            text.writelines([self.head, *self.rows[:count]])
        return file

    def learn(self, count):
        return run("--times", str(self.times(count)), "--out", str(self.out), script=self.installed)

    def learnt_us(self, *words):
        said = subprocess.run([PROGRAM, "predict", "gemm", "4096", "4096", "4096", "--as", "h200",
                               "--json", *words], capture_output=True, text=True, check=True)
        return json.loads(said.stdout)["learnt_us"]

    def test_a_card_s_times_make_a_correction(self):
        done = self.learn(4000)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("what is kept, held-out shapes", done.stdout)
        lines = self.out.read_text().splitlines()
        self.assertEqual(lines[0], "warpwright-correction 1")
        self.assertEqual(sum(line.startswith("tree ") for line in lines), 300)
        mine, usual = self.learnt_us("--correction", str(self.out)), self.learnt_us()
        self.assertNotEqual(mine, usual)
        self.assertLess(abs(mine / usual - 1), 0.5)

    def test_few_times_make_none(self):
        self.out.write_text("old")
        done = self.learn(1500)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^learn: \d+ times of ways .* needs 2000: .*\n$")
        self.assertEqual(self.out.read_text(), "old")

    def test_times_that_are_none_are_refused_by_row(self):
        file = self.folder / "bad.tsv"
        file.write_text(self.head + self.rows[0].replace("\t", "\t\t"))
        done = run("--times", str(file), "--out", str(self.out))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^learn: .*bad.tsv: .*\n$")
        none = run("--times", str(self.folder / "none.tsv.gz"), "--out", str(self.out))
        self.assertIn("cannot be read", none.stderr)
        self.assertFalse(self.out.exists())


class Drawn(unittest.TestCase):
    def test_no_product_has_more_tokens_than_asked_for(self):
        loader = importlib.machinery.SourceFileLoader("record", str(ROOT / "script/record"))
        record = importlib.util.module_from_spec(importlib.util.spec_from_loader("record", loader))
        loader.exec_module(record)
        for most in (1, 64, 16384):
            drawn = []
            for name, _, draw, _ in record.commands():
                for turn in range(20):
                    shape = draw(random.Random(f"{turn} {name}"), most).split()
                    tokens = shape[0] if len(shape) == 3 else shape[1]
                    drawn.append(int(re.sub(r"^routed:(\d+),.*", r"\1", tokens)))
            self.assertGreaterEqual(min(drawn), 1)
            self.assertLessEqual(max(drawn), most)
            self.assertGreater(max(drawn), most // 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if not all(importlib.util.find_spec(name) for name in ("lightgbm", "numpy")):
        done = run("--check")
        if done.returncode != 1 or "pip install lightgbm" not in done.stderr:
            sys.exit(f"without LightGBM learn.py says {done.stderr}")
        print("did not run: no LightGBM here (pip install lightgbm)")
        sys.exit(77)
    unittest.main()
