#!/usr/bin/env python3
"""Every kernel under `warpwright check kernel`: clean, and all of its statements have run.

    check_kernels_test.py WARPWRIGHT [--sample N] [--schedules S] [--jobs J] [--names A,B]

Takes every N-th kernel of the build (default 1: all; script/campaign runs them with 12 schedules
each), from one on that the seed of the run draws, and one or all of those beside the products of
mixtures. A statement that ran in no
companion fails, unless UNREACHABLE says why nothing reaches it.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402

# (kernel, function: why no product reaches its statement); both are patterns.
UNREACHABLE = [
    (r".*_(sk|ck2?)(_\w+)?", r"TileSums::run", "kernels that split K take no product without a K"),
    (r".*_ck2?(_\w+)?", r"MappedOperand::load_by", "CTAs that share K load nothing for each other"),
    (r"blackwell_.*_pair.*", r"BlackwellGemm::run", "a pair is a cluster, and meets as one"),
    (r".*e2m1xe4m3_.*_(pr|bs)_sw.*", r"RsMainloop::\w+", "a k_tile is one group of wgmmas"),
    (r".*_ck2?(_\w+)?", r"await_cluster", "nor signal each other's barriers"),
    (r".*_sl", r"(MappedOperand::load_by|await_cluster)", "CTAs of slices are in no cluster"),
    (r"grouped_((e4m3|bf16)_bf16_128x144|e2m1xe4m3)_.*_w(_fold)?",
     r"(MappedOperand::load_by|await_cluster)", "CTAs cannot share tokens of half a width"),
    (r"registers_.*", r"await_cluster", "kernels of mma.sync have no clusters"),
    (r"registers_m(16n8k8|8n8k4)_.*", r"RegisterMainloop::run", "stores close no copies"),
    (r"blackwell_.*_gated.*", r"RowSlice::load", "no cluster shares gates and what they are for"),
    (r"blackwell_.*_(grouped|sw)\d+.*", r"load_scales", "no cluster shares the weights' scales"),
    (r".*_gm", "put", "plans with maps of groups refuse rows of D that TMA cannot store"),
    (r"grouped_.*", r"Loader::(wait|load)_early", "mixtures ask: tests/device/mixture_check_test"),
]


# Kernels of mixtures beside their products.
BESIDE = ["sort_slots", "sort_gather", "gather_rows", "gate_rows", "sum_slots"]


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                          timeout=1800)


def excused(kernel, statement):
    function = re.sub(r"<[^<>]*>", "", statement["function"]).split("(")[0]
    return any(re.fullmatch(name, kernel) and re.search(where + "$", function)
               for name, where, _ in UNREACHABLE)


def judge(program, kernel, schedules):
    """(right?, what was seen)"""
    made = run(program, "check", "kernel", kernel, "--schedules", str(schedules), "--jobs", "1",
               "--json")
    if made.returncode == 2 or not made.stdout:
        return False, made.stderr.strip()
    told = json.loads(made.stdout)
    members = told.get("products") or told["mixtures"]
    if told["findings"]:
        first = told["findings"][0]
        last = members[-1]
        return False, f"{first['check']} {first['sentence'][:200]} ({last['arguments']})"
    never = [s for s in told["untried_statements"] or [] if not excused(kernel, s)]
    if never:
        where = ", ".join(f"{s['file'].split('/')[-1]}:{s['line']}" for s in never)
        return False, f"ran in none of {len(members)} members: {where}"
    return True, f"{len(members)} members, {told['statements']} statements"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--schedules", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--names", default="")
    options = parser.parse_args()
    listed = json.loads(run(options.program, "kernels", "--built", "--json").stdout)["kernels"]
    names = [kernel["kernel"] for kernel in listed]
    chosen = samples.sampled(names, options.sample) + samples.sampled(
        BESIDE, 1 if options.sample == 1 else len(BESIDE))
    if options.names:
        chosen = options.names.split(",")
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for kernel, (right, seen) in zip(chosen, pool.map(
                lambda name: judge(options.program, name, options.schedules), chosen)):
            wrong += not right
            print(f"{'' if right else 'WRONG '}{kernel}: {seen}", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} kernels as they must be "
          f"({len(names)} in this build)")
    return 1 if wrong or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
