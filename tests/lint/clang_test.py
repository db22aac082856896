#!/usr/bin/env python3
"""The public headers, the kernels and the tables through clang++, where there is one.

    clang_test.py ROOT

Warnings are errors, and nothing is made (-fsyntax-only): a build with clang++ takes minutes, this
takes seconds. CONTRIBUTING.md says how to make one. Two of the tables, the API and the families'
kernels are looked at, by the seed of the run; all in script/campaign.
"""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402

HEADERS = [["warpwright.h", "run.h", "model.h"], ["kernel/hopper/gemm.h"],
           ["kernel/blackwell/gemm.h", "kernel/registers/gemm.h"]]


def main():
    root = pathlib.Path(sys.argv[1])
    clang = shutil.which("clang++") or shutil.which("clang++-14")
    if clang is None:
        print("did not run: there is no clang++ here")
        return 77
    command = [clang, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unknown-pragmas",
               "-Werror", f"-I{root}"]
    # cmake/cuda.cmake gives that file the same number of steps.
    runs = [(command + ["-fconstexpr-steps=100000000", root / "cmake/kernel_rows.cpp"], None)]
    for headers in HEADERS:
        includes = "".join(f"#include <warpwright/{header}>\n" for header in headers)
        runs.append((command + ["-x", "c++", "-"], includes))
    started = [(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True), text)
               for words, text in samples.sampled(runs, 2)]
    status = 0
    for process, text in started:
        said = process.communicate(text)[0]
        if process.returncode != 0:
            print(said)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
