#!/usr/bin/env python3
"""All schedules of small cases: each class of them runs, and nothing is found.

    exhaustive_test.py WARPWRIGHT [--all] [--jobs J]

Two cases by default; --all takes each, as script/campaign does, with a minute for one. A case that
ends with another number of classes than it has here fails too: what synchronises has changed, or
what the model takes for an order.
"""
import argparse
import json
import subprocess
import sys
import time

# name, seconds in script/test (0: only in campaigns), classes, arguments behind `check`.
CASES = [
    ("a ring of TMA copies that goes round", 0, 1,
     "gemm --random 64 32 1408 --kernel hopper_bf16_bf16_64x32_sw --cluster 1,1"),
    ("the same of a cluster, multicast", 0, 1,
     "gemm --random 64 64 1408 --kernel hopper_bf16_bf16_64x32_sw --cluster 1,2"),
    ("ping-pong, two tiles", 0, 1,
     "gemm --random 256 128 512 --sms 1 --kernel hopper_bf16_bf16_128x128_pp"),
    ("tiles that two CTAs draw, four", 5, 8,
     "gemm --random 256 256 128 --sms 2 --scheduler dynamic"),
    ("tiles that two CTAs draw, six", 0, 32,
     "gemm --random 256 384 128 --sms 2 --scheduler dynamic"),
    ("clusters off the queue, four tiles (CLC)", 5, 24,
     "gemm --random 128 512 128 --sms 2 --as b200 --cluster 1,1 --scheduler clc"),
    ("parts of a tile over DSMEM", 0, 1,
     "gemm --random 128 128 512 --kernel hopper_bf16_bf16_128x64_sw_ck --ctas 4"),
    ("stream-K: parts of tiles behind flags", 0, 1,
     "gemm --random 128 128 1024 --kernel hopper_bf16_bf16_128x64_sw_sk --ctas 4 --sms 4"),
    ("dependent grids that draw from one word", 0, 32,
     "gemm --random 128 512 128 --sms 2 --scheduler dynamic --behind 128 384 128"),
    ("stages that threads fill (cp.async)", 0, 1, "gemm --random 256 256 128 --as a100"),
    ("all launches of a layer of experts", 0, 1,
     "moe --tokens 5 --experts 3 --top-k 2 --hidden 64 --inner 64"),
]


def judge(program, case, jobs):
    """(right?, what was seen)"""
    name, seconds, classes, arguments = case
    start = time.monotonic()
    made = subprocess.run(
        [program, "check", *arguments.split(), "--exhaustive", "--within", "60", "--json", "--jobs",
         str(jobs)], capture_output=True, text=True, check=False, timeout=600)
    took = time.monotonic() - start
    if not made.stdout:
        return False, f"{name}: {made.stderr.strip()}"
    told = json.loads(made.stdout)
    if "error" in told:
        return False, f"{name}: {told['error']}"
    seen = (f"{name}: {told['schedules']} classes in {told['runs']} runs, {took:.1f} s"
            f" ({told['plan']})")
    if told["findings"]:
        return False, f"{seen}: {told['findings'][0]['sentence']}"
    if not told["all_schedules"]:
        return False, f"{seen}: {told['stopped']}"
    return told["schedules"] == classes, f"{seen}, of {classes}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    failed = 0
    for case in CASES:
        if case[1] == 0 and not args.all:
            continue
        right, seen = judge(args.program, case, args.jobs)
        print(("ok      " if right else "FAILED  ") + seen, flush=True)
        failed += not right
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
