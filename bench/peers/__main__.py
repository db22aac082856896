#!/usr/bin/env python3
"""The engines' own kernels beside ours, on layers of experts and dense products: the same tokens,
ids, router weights and weights for all, whole steps in CUDA graphs, in turns, each compared with
float64.

    python3 bench/peers bring                 here: downloads the peers into .peers/, in parts,
                                              which script/carry.py unpacks there
    python3 bench/peers run OPTIONS           there: adds rows to a file, and goes on from it
    python3 bench/peers table FILE            a page in Markdown

Peers are packages from PyPI; nothing of them is part of this repository. docs/bench.md says more.
"""
from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import sys
import time
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402  pylint: disable=wrong-import-position

PEERS = {"ours": "ours", "torch": "torch_linear", "vllm-triton": "vllm_triton",
         "vllm-deepgemm": "vllm_deepgemm", "humming": "humming_layer",
         "triton-kernels": "openai_triton", "marlin": "marlin"}
TOKENS = "1,2,4,8,16,32,64,128,512,2048,4096,16384"
# vLLM's newest line for torch 2.11, and humming's newest.
WHEELS = ["vllm==0.24.0", "humming-kernels==0.1.20", "pydantic", "pydantic-core", "msgspec",
          "cachetools", "annotated-types", "typing-inspection", "tabulate"]
# What a layer of experts needs of vLLM's wheel.
VLLM_FILES = ("_C_stable_libtorch", "_moe_C_stable_libtorch", "third_party/deep_gemm/",
              ".dist-info/METADATA", ".json")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def is_needed(name: str) -> bool:
    return not name.startswith("vllm") or name.endswith(".py") or any(w in name for w in VLLM_FILES)


def loaded(names: list[str]) -> dict[str, Any]:
    """The peers that can be imported; it says why others cannot."""
    peers = {}
    for name in names:
        try:
            peers[name] = importlib.import_module(PEERS[name])
            say(f"{name}: {peers[name].version()}")
        except Exception as fault:  # pylint: disable=broad-except  # whatever a package does
            say(f"{name}: left out: {type(fault).__name__}: {fault}"[:400])
    return peers


def read_lines(file: pathlib.Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def is_done(row: dict[str, Any] | None, names: list[str]) -> bool:
    return row is not None and set(names) <= set(row["error"]) | set(row["left_out"])


def dense_step(peer: Any, case: Any) -> Any:
    """A product whose weight is another copy in each launch, of twice the L2 in all."""
    bytes_each = case.w.codes.numel() * case.w.codes.element_size()
    count = 1 if case.device == "cpu" else min(10, (120 << 20) // bytes_each + 2)
    products = [peer.dense(case.copy()) for _ in range(count)]
    return lambda x, i: products[i % count](x)


def steps_of(case: Any, peers: dict[str, Any],
             names: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Each peer's step of a layer, or why it has none."""
    import cases
    steps, left_out = {}, {}
    for name in names:
        try:
            if isinstance(case, cases.DenseCase):
                steps[name] = dense_step(peers[name], case)
            else:
                steps[name] = peers[name].layer(case)
        except Exception as fault:  # pylint: disable=broad-except
            left_out[name] = f"{type(fault).__name__}: {fault}"[:300]
            say(f"{name}: left out of {case.layer.name} {case.kind}: {left_out[name]}")
    return steps, left_out


def run(options: argparse.Namespace) -> int:
    import cases
    import timing
    import torch
    end = time.monotonic() + options.seconds
    wanted = options.peers.split(",")
    if unknown := set(wanted) - set(PEERS):
        raise SystemExit(f"peers: {', '.join(sorted(unknown))}: they are {', '.join(PEERS)}")
    if unknown := set(options.weights.split(",")) - set(cases.KINDS):
        raise SystemExit(f"peers: {', '.join(sorted(unknown))}: weights are "
                         f"{', '.join(cases.KINDS)}")
    layers = [cases.layer_of(words) for words in options.layers.split(",")]
    peers = loaded(wanted)
    if options.device == "cpu":
        peers = {name: peer for name, peer in peers.items() if getattr(peer, "CPU", False)}
    if not peers:
        raise SystemExit("peers: none is there")
    file = pathlib.Path(options.file)
    rows = table.merged(read_lines(file))
    card = "the model" if options.device == "cpu" else torch.cuda.get_device_name()
    head = "; ".join([card] + [f"{name}: {peer.version()}" for name, peer in peers.items()])
    with open(file, "a", encoding="utf-8") as out:
        print(json.dumps({"head": f"{time.strftime('%Y-%m-%d')}, {head}"}), file=out)
        for layer in layers:
            for kind in options.weights.split(","):
                has = "DENSE" if isinstance(layer, cases.Dense) else "KINDS"
                names = [name for name, peer in peers.items() if kind in getattr(peer, has, ())]
                keys = {tokens: (layer.name, kind, options.routing, tokens)
                        for tokens in map(int, options.tokens.split(","))}
                open_counts = [tokens for tokens, key in keys.items()
                               if not is_done(rows.get(key), names)]
                if not open_counts or not names:
                    continue
                if why := cases.unfit(layer, kind):
                    say(f"{layer.name} {kind}: left out: {why}")
                    continue
                if time.monotonic() > end:
                    say("the time is over; a call again goes on from the file")
                    return 0
                case = cases.case_of(layer, kind, options.device)
                steps, left_out = steps_of(case, peers, names)
                for tokens in open_counts:
                    if time.monotonic() > end:
                        break
                    sets = cases.drawn_sets(layer, options.routing, tokens,
                                            timing.sets_for(tokens), options.device)
                    if options.compile:
                        timing.compiled(steps, sets, say)
                        continue
                    row = timing.measured(case, steps, sets, say)
                    row["left_out"] |= left_out
                    row |= dict(zip(("layer", "weights", "routing", "tokens"), keys[tokens]))
                    print(json.dumps(row), file=out, flush=True)
                    say(f"{layer.name} {kind} {tokens}: {row['us'] or row['error']}")
                del case, steps
                if options.device != "cpu":
                    torch.cuda.empty_cache()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/peers", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("bring", help="download the peers, and pack them in parts")
    one.add_argument("--to", default=".peers", help="the folder (default %(default)s)")
    one = verbs.add_parser("run", help="measure")
    one.add_argument("--peers", default=",".join(PEERS), help="default %(default)s")
    one.add_argument("--layers", default="qwen3-30b,mixtral,qwen3-235b,deepseek-v3,gpt-oss-120b",
                     help="/INNER behind a name is a rank's part; NxK is a dense product (default "
                     "%(default)s)")
    one.add_argument("--weights", default="bf16,e4m3-block,mxf4-bf16,mxf4-e4m3,nvf4-bf16,int4-bf16",
                     help="default %(default)s")
    one.add_argument("--tokens", default=TOKENS, help="default %(default)s")
    one.add_argument("--routing", default="uniform", help="uniform or zipf:S (default %(default)s)")
    one.add_argument("--file", default="peers.jsonl", help="rows, added to (default %(default)s)")
    one.add_argument("--seconds", type=float, default=540, help="stop behind the row in which they "
                     "are over (default %(default)s)")
    one.add_argument("--compile", action="store_true", help="measure nothing: call each once, so "
                     "that compilers fill their caches; several calls may do it at once")
    one.add_argument("--device", default="cuda", choices=("cuda", "cpu"),
                     help="cpu: whether results are right, on the model; no times")
    one = verbs.add_parser("table", help="a page of rows")
    one.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    if options.verb == "bring":
        sys.path.insert(0, str(HERE.parents[1] / "script"))
        import carry
        carry.bring(pathlib.Path(options.to), WHEELS, is_needed)
    elif options.verb == "table":
        lines = [line for file in options.files for line in read_lines(pathlib.Path(file))]
        sys.stdout.write(table.markdown(lines))
    else:
        sys.path.insert(0, os.environ.get("PEERS", ""))
        return run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
