#!/usr/bin/env python3
"""What integrations/vllm/compare.py does without a GPU and without vLLM: compare_test.py"""
import importlib.util
import json
import math
import pathlib
import random
import subprocess
import sys
import unittest

FILE = pathlib.Path(__file__).resolve().parents[2] / "integrations" / "vllm" / "compare.py"
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
        self.assertEqual(compare.kl([[0.0, -5.0]], [[0.0, -math.inf]]),
                         -compare.normalised([0.0, -5.0])[0])
        with self.assertRaises(ValueError):
            compare.kl(rows[:3], rows)

    def sides(self, off=0.0):
        logits = [[0.0, 1.0, 2.0]] * 3
        speed = {"start-up (s)": 50.0, "batch 1, tokens a second": 120.0}
        ours = {"speed": speed, "tokens": [[1, 2]], "said": ["serves"],
                "logits": [[a, b, c + off] for a, b, c in logits]}
        theirs = {"speed": {"start-up (s)": 100.0, "batch 1, tokens a second": 100.0},
                  "tokens": [[1, 2]], "logits": logits, "said": []}
        return ours, json.loads(json.dumps(ours)), theirs

    def test_verdicts(self):
        self.assertTrue(all(holds for _, holds in compare.verdicts("qwen3-30b", *self.sides())))
        ours, again, theirs = self.sides(0.2)
        failed = [what for what, holds in compare.verdicts("qwen3-30b", ours, again, theirs)
                  if not holds]
        self.assertEqual(len(failed), 1)
        self.assertIn("KL of the logits", failed[0])
        again["logits"][0][0] += 1e-7
        theirs["said"] = ["serves"]
        ours["said"] = []
        self.assertEqual(sum(not holds for _, holds in compare.verdicts(
            "gpt-oss-120b", ours, again, theirs)), 3)

    def test_table(self):
        ours, _, theirs = self.sides()
        lines = compare.table(ours, theirs).splitlines()
        self.assertEqual(lines[2:], ["| start-up (s) | 50.0 | 100.0 | 2.000 |",
                                     "| batch 1, tokens a second | 120.0 | 100.0 | 1.200 |"])

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
        for side, said in (("ours", "1"), ("again", "1"), ("theirs", "0")):
            self.assertEqual(compare.environment(side)["WARPWRIGHT_VLLM"], said)

    def test_arguments(self):
        given = compare.arguments(["--model", "gpt-oss-120b", "--layers", "2"])
        self.assertEqual((given.model, given.layers, given.tokens), ("gpt-oss-120b", 2, 128))
        done = subprocess.run([sys.executable, FILE, "--layers", "0"], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--layers is 0; the nearest legal is 1", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
