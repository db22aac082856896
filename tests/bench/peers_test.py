#!/usr/bin/env python3
"""bench/peers without a GPU and without peers: its table, what a call goes on from, what it says of
peers that are not there; and where PyTorch is, our layers on the model against its reference.

    peers_test.py ROOT STAGE WARPWRIGHT      the installed Python package, the command line
"""
import ast
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, STAGE, WARPWRIGHT = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(ROOT / "bench/peers"))
import table  # noqa: E402  pylint: disable=wrong-import-position


def row(tokens, us, **other):
    made = {"layer": "mixtral", "weights": "bf16", "routing": "uniform", "tokens": tokens, "us": us,
            "spread": {name: [t - 1, t + 1] for name, t in us.items()},
            "error": {name: 0.003 for name in us}, "left_out": {}}
    return made | other


def call(*arguments, **variables):
    return subprocess.run([sys.executable, str(ROOT / "bench/peers"), *arguments], check=False,
                          capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": str(STAGE)} | variables)


class Table(unittest.TestCase):
    def test_names_the_strongest_and_shows_losses_in_bold(self):
        page = table.markdown([{"head": "H200"}, row(1, {"ours": 20.0, "a": 30.0, "b": 10.0}),
                               row(8, {"ours": 20.0, "a": 25.0})])
        self.assertIn("- H200\n", page)
        self.assertIn("| mixtral | bf16 | uniform | **0.50** b | 1.25 a |", page)

    def test_says_what_nobody_measured_and_counts_no_wrong_result(self):
        wrong = row(1, {"ours": 20.0, "a": 5.0}, error={"ours": 0.003, "a": 0.5})
        page = table.markdown([wrong, row(8, {"a": 5.0})])
        self.assertIn("| mixtral | bf16 | uniform |  |  |", page)
        self.assertIn("not counted", page)

    def test_a_later_line_takes_the_place_of_an_earlier_one(self):
        page = table.markdown([row(1, {"ours": 20.0, "a": 5.0}), row(1, {"ours": 2.0, "a": 5.0})])
        self.assertIn("| 2.50 a |", page)

    def test_lists_who_was_left_out_and_why(self):
        self.assertIn("- a: it has no biases\n",
                      table.markdown([row(1, {"ours": 1.0}, left_out={"a": "it has no biases"})]))


class Commands(unittest.TestCase):
    def test_table_reads_several_files(self):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, tokens in enumerate((1, 8)):
                files.append(f"{folder}/{number}.jsonl")
                pathlib.Path(files[-1]).write_text(json.dumps(row(tokens, {"ours": 1.0, "a": 2.0})))
            ran = call("table", *files)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("| 2.00 a | 2.00 a |", ran.stdout)

    def test_layers_are_the_models_of_the_command_line(self):
        source = (ROOT / "bench/peers/cases.py").read_text(encoding="utf-8")
        layers = next(ast.literal_eval(node.value) for node in ast.parse(source).body
                      if isinstance(node, ast.Assign) and node.targets[0].id == "LAYERS")

        def explained(name):
            return subprocess.run([WARPWRIGHT, "explain", "moe", "--model", name, "--tokens", "4",
                                   "--json"], check=False, capture_output=True, text=True)
        # A refusal lists all of them.
        words = explained("nothing").stderr.partition("must be ")[2].strip(".\n")
        models = {}
        for name in words.replace(" or ", ", ").split(", "):
            said = json.loads(explained(name).stdout)
            if said["routed"]:  # the peers' kernels are of experts
                models[name] = tuple(said[key] for key in ("experts", "top_k", "hidden", "inner"))
        self.assertEqual({name: row[:4] for name, row in layers.items()}, models)

    def test_what_is_needed_of_vllm(self):
        """Its parts come together as others do: tests/integrations/compare_test.py."""
        import importlib.util  # pylint: disable=import-outside-toplevel
        spec = importlib.util.spec_from_file_location("peers", ROOT / "bench/peers/__main__.py")
        peers = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(peers)
        names = ["vllm/a.py", "vllm/big.so", "vllm/_moe_C_stable_libtorch.abi3.so", "humming/b.so"]
        self.assertEqual([peers.is_needed(name) for name in names], [True, False, True, True])


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], check=False,
                          capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "PyTorch is not here: no layer was compared")
class OnTheModel(unittest.TestCase):
    def test_our_layers_are_right_and_a_call_goes_on_from_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/rows.jsonl"
            ran = call("run", "--device", "cpu", "--layers", "4x2x128x128,4x2x128x128xoai,128x256",
                       "--tokens", "5", "--file", file)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("vllm-triton: left out", ran.stderr)
            lines = [json.loads(line) for line in pathlib.Path(file).read_text().splitlines()]
            rows = [line for line in lines if "layer" in line]
            self.assertEqual(len(rows), 18)
            for each in rows:
                limit = 0.06 if "e4m3" in each["weights"] else 0.005
                self.assertEqual(each["left_out"], {}, each)
                self.assertLess(each["error"]["ours"], limit, each)
            again = call("run", "--device", "cpu", "--layers", "4x2x128x128", "--tokens", "5",
                         "--file", file)
            self.assertEqual(again.returncode, 0, again.stderr)
            self.assertEqual(len(pathlib.Path(file).read_text().splitlines()), len(lines) + 1)

    def test_a_layer_without_whole_groups_is_left_out_aloud(self):
        ran = call("run", "--device", "cpu", "--layers", "4x2x160x128", "--weights", "int4-bf16",
                   "--tokens", "5", "--file", os.devnull)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("4x2x160x128 int4-bf16: left out: K of 160", ran.stderr)

    def test_words_that_name_nothing_are_refused(self):
        for option, word in (("--layers", "mistral"), ("--weights", "fp3"), ("--peers", "cutlas")):
            ran = call("run", "--device", "cpu", option, word, "--file", os.devnull)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(word, ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
