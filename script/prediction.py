#!/usr/bin/env python3
"""Holds `warpwright predict` against the times that docs/log/performance.md has of an H200.

script/prediction.py build/bin/warpwright [--rows docs/log/prediction.md] [--only bf16] [--markdown]
With --rows it takes the rows of that file's tables, as it prints them itself, instead of the log's.
Prints each row and, of each table and of all, the mean absolute error and the worst. With --most X
it fails where the mean of all is above X percent.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HEADING = re.compile(r"^### (.*?): `(.*)`")
ROW = re.compile(r"^\| (\d+)x(\d+)x(\d+) \| ([\d.]+) \(\d+\) \| [\d.]+% \| (\w+) \| ([\d.]+) \|")
OTHER = re.compile(r"^\| (bf16|e4m3) \| (\d+)x(\d+)x(\d+) \| (\w+) \| ([\d.]+) \|")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rows", help="a file with tables as this prints them")
    parser.add_argument("--only", default="", help="tables whose name begins so")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--every", type=int, default=1, help="each N-th row alone")
    parser.add_argument("--most", type=float, help="percent of mean error at most")
    args = parser.parse_args()
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
