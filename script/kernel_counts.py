#!/usr/bin/env python3
"""Writes how many kernels there are into the pages that say so, from `warpwright kernels --json`.

    kernel_counts.py PROGRAM           writes the tables of this checkout
    kernel_counts.py PROGRAM --check   fails where a page has another one, and shows how it differs

PROGRAM is of a usual build: what it has is `common`, what the tables have is `all`. A table begins
behind a line with MARK and ends before the next blank line.
"""
import difflib
import json
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
MARK = "<!-- Written by script/kernel_counts.py -->"


def serves(kernel, tokens, weights):
    return kernel["a_dtypes"] == [tokens] and kernel["b_dtypes"] == [weights]


def packed(kernels):
    """Hopper's kernels of packed weights: Blackwell multiplies e2m1 as it is."""
    return [k for k in kernels if k["family"] == "hopper_gemm"]


def by_family(kernels):
    families = {"Hopper": "hopper_gemm", "Blackwell": "blackwell_gemm",
                "register kernels": "registers_gemm"}
    yield ["`WARPWRIGHT_KERNELS`", *families]
    for build, these in (("common", [k for k in kernels if k["built"]]), ("all", kernels)):
        yield [f"`{build}`", *(sum(k["family"] == f for k in these) for f in families.values())]


def common_and_all(kernels, is_one):
    found = [k for k in packed(kernels) if is_one(k)]
    return f"{sum(k['built'] for k in found)}, {len(found)}"


def by_weights(kernels):
    tokens = ("e4m3", "bf16", "fp16")
    yield ["kernels in a usual build, in one of `all`", *(f"{t} tokens" for t in tokens)]
    for name, weights in (("MXFP4 and NVFP4", "e2m1"), ("int4", "s4")):
        yield [name, *(common_and_all(kernels, lambda k, t=t, w=weights: serves(k, t, w))
                       for t in tokens)]


def by_sums(kernels):
    sums = ("exact", "chained", "folded", "table")
    yield ["kernels of e4m3 tokens", *sums]
    yield ["in a usual build, in one of `all`",
           *(common_and_all(kernels, lambda k, s=s: serves(k, "e4m3", "s4") and any(
               f.split(",")[0] == f"{s} sums" for f in k["features"])) for s in sums)]


TABLES = {"install.md": by_family, "weights.md": by_weights, "w4a8.md": by_sums}


def table_text(rows):
    head, *rest = [[str(cell) for cell in row] for row in rows]
    lines = [head, ["---", *("---:" for _ in head[1:])], *rest]
    return "".join("|" + "|".join(c if c.startswith("---") else f" {c} " for c in line) + "|\n"
                   for line in lines)


def with_table(page, text):
    """The page with this table behind its mark."""
    before, mark, after = page.partition(MARK + "\n")
    if not mark:
        raise ValueError(f"no line is {MARK}")
    return before + mark + text + after[after.index("\n\n") + 1:]


def main():
    program, *options = sys.argv[1:]
    said = subprocess.run([program, "kernels", "--json"], capture_output=True, text=True,
                          check=True).stdout
    kernels = json.loads(said)["kernels"]
    fault = False
    for name, rows in TABLES.items():
        page = DOCS / name
        there = page.read_text(encoding="utf-8")
        made = with_table(there, table_text(rows(kernels)))
        if "--check" not in options:
            page.write_text(made, encoding="utf-8")
        elif made != there:
            fault = True
            lines = (there.splitlines(True), made.splitlines(True))
            print("".join(difflib.unified_diff(*lines, f"docs/{name}", "kernel_counts.py", n=0)),
                  end="")
    if fault:
        print("The pages count other kernels than there are: "
              f"run script/kernel_counts.py {program}")
    return int(fault)


if __name__ == "__main__":
    sys.exit(main())
