#!/usr/bin/env python3
"""What integrations/vllm/compare.py does without a GPU and without vLLM: compare_test.py, and the
parts by which packages travel (script/carry.py)."""
import importlib.util
import math
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

try:
    import numpy  # noqa: F401
except ImportError as missing:
    print(f"did not run: compare_test.py: {missing}")
    sys.exit(77)
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "script"))
import carry  # noqa: E402

FILE = ROOT / "integrations" / "vllm" / "compare.py"
spec = importlib.util.spec_from_file_location("compare", FILE)
compare = importlib.util.module_from_spec(spec)
spec.loader.exec_module(compare)


class Compare(unittest.TestCase):
    def test_kl(self):
        draw = random.Random(1)
        rows = [[draw.gauss(0, 3) for _ in range(50)] for _ in range(4)]
        moved = [[each + 5 for each in row] for row in rows]  # what logits leave open
        self.assertAlmostEqual(compare.kl(moved, rows), 0, delta=1e-12)
        # Two values by hand: 0.5 log(0.5 / 0.25) + 0.5 log(0.5 / 0.75).
        want = 0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)
        halves, quarters = [math.log(0.5)] * 2, [math.log(0.25), math.log(0.75)]
        self.assertAlmostEqual(compare.kl([quarters], [halves]), want)
        self.assertNotAlmostEqual(compare.kl([halves], [quarters]), want)
        self.assertAlmostEqual(compare.kl([[0.0, -5.0]], [[0.0, -math.inf]]),
                               math.log(1 + math.exp(-5)))
        with self.assertRaises(ValueError):
            compare.kl(rows[:3], rows)

    def sides(self, off=0.0):
        logits = [[0.0, 1.0, 2.0]] * 3
        speed = {"start-up (s)": [50.0], "batch 1, tokens a second": [121.0, 120.0, 90.0]}
        ours = {"speed": speed, "same_twice": True, "said": ["serves"],
                "logits": [[a, b, c + off] for a, b, c in logits]}
        theirs = {"speed": {"start-up (s)": [100.0], "batch 1, tokens a second": [100.0]},
                  "same_twice": True, "logits": logits, "said": []}
        return ours, theirs

    def test_verdicts(self):
        self.assertTrue(all(holds for _, holds in compare.verdicts("qwen3-30b", *self.sides())))
        ours, theirs = self.sides(0.2)
        failed = [what for what, holds in compare.verdicts("qwen3-30b", ours, theirs) if not holds]
        self.assertEqual(len(failed), 1)
        self.assertIn("KL of the logits", failed[0])
        ours["same_twice"] = False
        theirs["said"] = ["serves"]
        ours["said"] = ["0.3.0 leaves experts to vLLM"]
        self.assertEqual(sum(not holds for _, holds in compare.verdicts(
            "gpt-oss-120b", ours, theirs)), 3)

    def test_table(self):
        ours, theirs = self.sides()
        lines = compare.table(ours, theirs).splitlines()
        self.assertEqual(lines[2:], [
            "| start-up (s) | 50.0 | 100.0 | 2.000 |",
            "| batch 1, tokens a second | 120.0 (90.0-121.0) | 100.0 | 1.200 |"])

    def test_prompts(self):
        made = compare.prompts(3, 100, 1000, 7)
        self.assertEqual([len(each) for each in made], [100] * 3)
        self.assertEqual(made, compare.prompts(3, 100, 1000, 7))
        self.assertNotEqual(made, compare.prompts(3, 100, 1000, 8))
        self.assertTrue(all(0 <= token < 1000 for each in made for token in each))
        self.assertGreater(len({token for each in made for token in each}), 200)

    def test_models_and_sides(self):
        for name in compare.MODELS:
            kind, fields = compare.configuration(name, 2)
            self.assertTrue(kind.endswith("Config"))
            self.assertEqual(fields["num_hidden_layers"], 2)
            self.assertEqual("quantization_config" in fields, name != "qwen3-30b")
            self.assertIn(name, compare.MOST)
        self.assertEqual(compare.configuration("qwen3-30b")[1]["num_hidden_layers"], 48)
        for side, said in (("ours", "1"), ("theirs", "0")):
            self.assertEqual(compare.environment(side)["WARPWRIGHT_VLLM"], said)

    def test_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            here, there = pathlib.Path(folder, "here"), pathlib.Path(folder, "there")
            site = here / "site"
            (site / "a").mkdir(parents=True)
            content = random.Random(3).randbytes(300_000)
            (site / "a" / "b c.py").write_bytes(content)
            (site / "left.so").write_bytes(b"out")
            with unittest.mock.patch.object(carry, "PART", 100_000):
                carry.pack(site, here, lambda name: name != "left.so")
            parts = list(here.glob("part.*"))
            self.assertGreater(len(parts), 2)
            carry.unpack(parts, there)
            self.assertEqual([str(file.relative_to(there)) for file in there.rglob("*.*")],
                             ["a/b c.py"])
            self.assertEqual((there / "a" / "b c.py").read_bytes(), content)
            with self.assertRaises(SystemExit):
                carry.unpack([part for part in parts if part.suffix != ".1"], there)

    def test_arguments(self):
        given = compare.arguments(["--model", "gpt-oss-120b", "--layers", "2"])
        self.assertEqual((given.model, given.layers, given.tokens), ("gpt-oss-120b", 2, 128))
        done = subprocess.run([sys.executable, FILE, "--layers", "0"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--layers is 0; the nearest legal is 1", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
