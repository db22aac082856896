#!/usr/bin/env python3
"""Holds `warpwright predict` against the times that docs/log/performance.md has of an H200.

script/prediction.py build/bin/warpwright [--rows docs/log/prediction.md] [--only bf16] [--markdown]
script/prediction.py build/bin/warpwright --bench FILE.json... [--as h100]
script/prediction.py build/bin/warpwright --packed docs/log/w4a8.md [--as h200]
script/prediction.py build/bin/warpwright --routed docs/log/grouped_performance.md [--as h200]
With --rows it takes the rows of that file's tables, as it prints them itself, instead of the log's.
Prints each row and, of each table and of all, the mean absolute error and the worst. With --most X
it fails where the mean of all is above X percent. With --bench it takes what `bench dense --json`
or `bench w4a8 --json` measured of all configurations it tried, and compares two choices among
them, by the plan's cost and by the counts of kernels times the machine: errors, and regret (of the
chosen over the best), and of both together, as plans choose. With --packed it takes the table of
int4 weights of docs/log/w4a8.md, with --routed that of groups as a router draws them; their kernels
are those of today's plans.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HEADING = re.compile(r"^### (.*?): `(.*)`")
ROW = re.compile(r"^\| (\d+)x(\d+)x(\d+) \| ([\d.]+) \(\d+\) \| [\d.]+% \| (\w+) \| ([\d.]+) \|")
OTHER = re.compile(r"^\| (bf16|e4m3) \| (\d+)x(\d+)x(\d+) \| (\w+) \| ([\d.]+) \|")
PACKED = re.compile(r"^\| (?:(\d+)x|dense )(\d+), (\d+), (\d+) \| ([\d.]+), [\d.]+ \| "
                    r"([\d.]+), [\d.]+ \| ([\d.]+), ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|")
ROUTED = re.compile(r"^\| (\d+), (\d+), (\d+); (\d+), (\d+) \(\d+, \d+\) \|"
                    + 3 * r" ([\d.]+) \|[^|]*\|")
SUMS = ("exact", "chained", "folded", "table")  # of packed weights, as --sums has them
KERNEL = re.compile(r"^(\w+?)_c(\d+)x(\d+)(?:x(\d+))?$")


def measured(path):
    """The rows of the tables of shapes: table, options, shape, kernel with its cluster, us."""
    table, options, rows = None, [], []
    for line in path.read_text().splitlines():
        if heading := HEADING.match(line):
            table = heading[1]
            options = [w for w in heading[2].split() if w not in ("warpwright", "bench", "dense",
                                                                  "--markdown", "...")]
        elif line.startswith("## ") or line.startswith("### "):
            table = None
        elif table and (row := ROW.match(line)):
            rows.append((table, options, row.groups()[:3], row[5],
                         float(row[6])))
    return rows


def measured_elsewhere(path):
    """The rows of tables as this script prints them, whose table is a type."""
    found = [OTHER.match(line) for line in path.read_text().splitlines()]
    return [(row[1], ["--dtype", row[1]], row.groups()[1:4], row[5], float(row[6]))
            for row in found if row]


def predicted(program, row):
    """What the program says of the row, or why it says nothing."""
    _, options, shape, name, _ = row
    kernel, m, n, k = KERNEL.match(name).groups()
    command = [program, "predict", "gemm", *shape, *options, "--as", "h200", "--json", "--kernel",
               kernel]
    command += ["--cluster-k", k] if k else ["--cluster", f"{m},{n}"]
    if "--scheduler" not in options and kernel.endswith("_dyn"):
        command += ["--scheduler", "dynamic"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        return None, run.stderr.strip().splitlines()[0] if run.stderr else run.stdout
    return json.loads(run.stdout), ""


def measured_packed(path):
    """The rows of the log's table of int4 weights (codes of -8..7): sums, product, words, us."""
    rows = []
    for line in path.read_text().splitlines():
        if not (row := PACKED.match(line)):
            continue
        groups, tokens, n, k = row.groups()[:4]
        at = f"{groups + 'x' if groups else 'dense '}{tokens} {n} {k}"
        for sums, column in zip(SUMS, (6, 8, 9, 10)):
            rows.append((sums, at, shape_words(groups, tokens, n, k)
                         + ["--weights", "int4", "--sums", sums], float(row[column])))
    return rows


def measured_routed(path):
    """The rows of the log's table of routed groups: type, product, its words, us."""
    rows = []
    for line in path.read_text().splitlines():
        if not (row := ROUTED.match(line)):
            continue
        experts, tokens, top_k, n, k = row.groups()[:5]
        seed = {"128": 2, "8": 3}[experts]  # as the log has them
        product = ["grouped", "--groups", experts, "--tokens",
                   f"routed:{tokens},{top_k},seed:{seed}", "--n", n, "--k", k]
        for dtype, words, column in (("bf16", [], 6), ("e4m3", ["--dtype", "e4m3"], 7),
                                     ("block scales", ["--dtype", "e4m3", "--scaling",
                                                       "blockwise"], 8)):
            rows.append((dtype, f"{experts}, {tokens}, {top_k}; {n}, {k}", product + words,
                         float(row[column])))
    return rows


def shape_words(groups, tokens, n, k):
    if groups:
        return ["grouped", "--groups", str(groups), "--tokens", str(tokens), "--n", str(n),
                "--k", str(k), "--expected-lengths", "equal"]
    return ["gemm", str(tokens), str(n), str(k)]


def compare_log(program, device, rows):
    """Prints rows of a log beside what is predicted of today's plans, and the errors of a kind."""

    def said(row):
        run = subprocess.run([program, "predict", *row[2], "--as", device, "--json"],
                             capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    with ThreadPoolExecutor(2) as pool:
        all_said = list(pool.map(said, rows))
    errors = collections.defaultdict(list)
    for (kind, at, _, us), what in zip(rows, all_said):
        error = what["microseconds"] / us - 1
        errors[kind].append((abs(error), at))
        print(f"{kind:12} {at:24} {us:8.2f} {what['microseconds']:8.2f} {100 * error:+6.1f}% "
              f"{what['limit']} k {what['clocks']['k_tile']:.0f} {what['plan']}")
    for kind, found in errors.items():
        print(f"- {kind}: mean absolute error {100 * sum(e for e, _ in found) / len(found):.1f}% "
              f"of {len(found)}, worst {100 * max(found)[0]:.1f}% ({max(found)[1]})")


def occurrences(configs):
    """Each with how often its name came before: grids of one configuration have one name."""
    seen = collections.Counter()
    for config in configs:
        yield (config["config"], seen[config["config"]]), config
        seen[config["config"]] += 1


def hold_against_bench(program, device, path):
    """Per shape: (error of the chosen, mean error of those near the best, regret), each way."""
    measured = json.loads(pathlib.Path(path).read_text())
    words = measured["command"].split()
    options = []
    for option in ("--dtype", "--accumulation", "--scaling"):
        if option in words:
            options += [option, words[words.index(option) + 1]]
    rows = measured["rows"]
    if "--weights" in words:
        weights, _, tokens_type = words[words.index("--weights") + 1].partition("-")
        options += ["--weights", weights] + (["--dtype", tokens_type] if tokens_type else [])
        folded = [{**row, **row["beside"]["folded"], "sums": "folded"} for row in rows
                  if "folded" in row["beside"]]
        rows = rows + folded

    def ways(row):
        tokens = row.get("tokens", row.get("m"))
        product = shape_words(row.get("groups"), tokens, row["n"], row["k"]) + options
        product += ["--sums", row["sums"]] if "sums" in row else []
        run = subprocess.run([program, "predict", *product, "--as", device, "--configs", "all",
                              "--json"], capture_output=True, text=True, check=True)
        return dict(occurrences(json.loads(run.stdout)["configs"]))

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(ways, rows))
    found = {"counts": [], "cost": [], "both": []}
    for row, configs in zip(rows, said):
        tried = [(t["us"], configs[key]) for key, t in occurrences(row["tried"])
                 if key in configs and configs[key]["predicted_us"]]
        if not tried:
            continue
        best = min(us for us, _ in tried)
        for c in (c for _, c in tried):
            c["both"] = math.sqrt(c["predicted_us"] * c["cost_us"])
        for how, name in (("counts", "predicted_us"), ("cost", "cost_us"), ("both", "both")):
            us, chosen = min(tried, key=lambda t: t[1][name])
            near = [abs(c[name] / u - 1) for u, c in tried if u < 1.3 * best]
            found[how].append((abs(chosen[name] / us - 1), sum(near) / len(near), us / best))
    return found


def compare(program, device, paths):
    """Prints the choices, of each file and of all."""
    everything = collections.defaultdict(list)
    print("| measured | by | shapes | mean error of the chosen | worst | mean error near the best "
          "| regret, geomean | worst |\n|---|---|---:|---:|---:|---:|---:|---:|")

    def line(name, how, rows):
        mean = [sum(r[i] for r in rows) / len(rows) for i in (0, 1)]
        regret = math.exp(sum(math.log(r[2]) for r in rows) / len(rows)) - 1
        print(f"| {name} | {how} | {len(rows)} | {100 * mean[0]:.1f}% "
              f"| {100 * max(r[0] for r in rows):.0f}% | {100 * mean[1]:.1f}% "
              f"| {100 * regret:.1f}% "
              f"| {100 * (max(r[2] for r in rows) - 1):.0f}% |")

    for path in paths:
        for how, rows in hold_against_bench(program, device, path).items():
            line(pathlib.Path(path).stem, how, rows)
            everything[how] += rows
    for how, rows in everything.items():
        line("all", how, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rows", help="a file with tables as this prints them")
    parser.add_argument("--only", default="", help="tables whose name begins so")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="only each N-th row")
    parser.add_argument("--most", type=float, help="percent of mean error at most")
    parser.add_argument("--bench", nargs="+", help="files of `bench dense|w4a8 --json`")
    parser.add_argument("--packed", help="the log with a table of int4 weights")
    parser.add_argument("--routed", help="the log with a table of groups as a router draws them")
    parser.add_argument("--as", dest="device", default="h200", help="but for the log's rows")
    args = parser.parse_args()
    if args.bench:
        compare(args.program, args.device, args.bench)
        return
    if args.packed:
        compare_log(args.program, args.device, measured_packed(pathlib.Path(args.packed)))
        return
    if args.routed:
        compare_log(args.program, args.device, measured_routed(pathlib.Path(args.routed)))
        return
    read = measured_elsewhere(pathlib.Path(args.rows)) if args.rows else measured(
        pathlib.Path(__file__).parents[1] / "docs/log/performance.md")
    rows = [r for r in read if r[0].startswith(args.only)]
    rows = rows[:: args.every]
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda row: predicted(args.program, row), rows))
    errors = {}
    if args.markdown:
        print("| table | M x N x K | kernel | measured us | predicted | error | bounded by |")
        print("|---|---|---|---:|---:|---:|---|")
    for row, (what, why) in zip(rows, said):
        table, _, shape, name, us = row
        at = "x".join(shape)
        if what is None:
            print(f"left out: {table} {at} {name}: {why}")
            continue
        error = what["microseconds"] / us - 1
        errors.setdefault(table, []).append((abs(error), at))
        if args.markdown:
            print(f"| {table} | {at} | {name} | {us:.2f} | {what['microseconds']:.2f} "
                  f"| {100 * error:+.1f}% | {what['limit']} |")
        else:
            b = what["breakdown"]
            parts = " ".join(f"{b[p]:7.2f}" for p in ("start", "multiply", "loads", "epilogue"))
            print(f"{table[:12]:12} {at:18} {name:36} {us:8.2f} {what['microseconds']:8.2f} "
                  f"{100 * error:+6.1f}% {parts} {what['clock_ghz']:.2f} {what['limit']} "
                  f"k {what['clocks']['k_tile']:.0f} tile {what['clocks']['tile']:.0f}")
    every = [e for table in errors.values() for e in table]
    if not every:
        sys.exit("no row was predicted")
    for table, found in [*errors.items(), ("all", every)]:
        worst = max(found)
        print(f"- {table}: mean absolute error {100 * sum(e for e, _ in found) / len(found):.1f}% "
              f"of {len(found)}, worst {100 * worst[0]:.1f}% ({worst[1]})")
    mean = 100 * sum(e for e, _ in every) / len(every)
    if args.most is not None and mean > args.most:
        sys.exit(f"the mean error is {mean:.1f}%, and at most {args.most}% are asked")


if __name__ == "__main__":
    main()
