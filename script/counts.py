#!/usr/bin/env python3
"""Writes counts/*.tsv: what one SM does with each kernel's tiles, by the model.

script/counts.py build/bin/warpwright [--only WORD]
For kernels that the build does not have the kept lines stay; so a build with
-DWARPWRIGHT_KERNELS=all makes them all anew (half an hour on two cores). Kernels that no command
line asks for have none. The test SampleWork remakes a sample.
"""
import argparse
import json
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

FOLDER = pathlib.Path(__file__).parents[1] / "counts"
HEAD = "# Made by script/counts.py; docs/predict.md says what it means.\n"


def kept():
    """The lines of each kernel by its name."""
    kernels = {}
    for path in sorted(FOLDER.glob("*.tsv")):
        name = ""
        for line in path.read_text().splitlines(keepends=True):
            if not line.startswith((" ", "#")):
                name = line.strip()
                kernels[name] = ""
            if name:
                kernels[name] += line
    return kernels


def made(program, name):
    """The lines of a kernel as the model counts them, or why there are none."""
    run = subprocess.run([program, "predict", "kernel", name, "--counts"], capture_output=True,
                         text=True, check=False)
    return run.stdout if run.returncode == 0 else "", run.stderr.strip().split("\n")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="kernels whose name has this")
    args = parser.parse_args()
    listed = json.loads(subprocess.run([args.program, "kernels", "--json"], capture_output=True,
                                       text=True, check=True).stdout)["kernels"]
    before = kept()
    # In the order that is kept, new ones behind it: builds list kernels in different orders.
    place = {name: i for i, name in enumerate(before)}
    listed.sort(key=lambda k: place.get(k["kernel"], len(place)))
    chosen = [k for k in listed if k["built"] and args.only in k["kernel"]]
    with ThreadPoolExecutor(2) as pool:
        names = [k["kernel"] for k in chosen]
        found = dict(zip(names, pool.map(lambda name: made(args.program, name), names)))
    FOLDER.mkdir(exist_ok=True)
    for family in dict.fromkeys(k["family"] for k in listed):
        text = HEAD
        for k in listed:
            if k["family"] != family:
                continue
            lines, why = found.get(k["kernel"], ("", ""))
            if why:
                print(f"left out: {k['kernel']}: {why}")
            text += lines or before.get(k["kernel"], "")
        (FOLDER / (family.removesuffix("_gemm") + ".tsv")).write_text(text)


if __name__ == "__main__":
    main()
