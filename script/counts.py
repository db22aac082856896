#!/usr/bin/env python3
"""Makes plan/cost/kernel_work.tar.xz: what one SM does with each kernel's tiles, by the model.

script/counts.py build/bin/warpwright [--only WORD] [--text FOLDER]
For kernels that the build does not have the kept lines stay; so a build with
-DWARPWRIGHT_KERNELS=all makes them all anew (half an hour on two cores). Kernels that no command
line asks for have none, and lines of kernels that are no more go. The test SampleWork remakes a
sample. --text only writes what is kept into a folder, a file for each family.
"""
import argparse
import io
import json
import pathlib
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor

ARCHIVE = pathlib.Path(__file__).parents[1] / "warpwright/plan/cost/kernel_work.tar.xz"
HEAD = "# Made by script/counts.py; docs/predict.md says what it means.\n"


def texts():
    """The archive's files, as texts by their names."""
    with tarfile.open(ARCHIVE) as archive:
        return {each.name: archive.extractfile(each).read().decode() for each in archive}


def kept():
    """The lines of each kernel by its name."""
    kernels = {}
    for text in texts().values():
        name = ""
        for line in text.splitlines(keepends=True):
            if not line.startswith((" ", "#")):
                name = line.strip()
                kernels[name] = ""
            if name:
                kernels[name] += line
    return kernels


def keep(files, archive_file=ARCHIVE):
    """Writes the archive: the same bytes for the same texts."""
    with tarfile.open(archive_file, "w:xz", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def made(program, name):
    """The lines of a kernel as the model counts them, or why there are none."""
    run = subprocess.run([program, "predict", "kernel", name, "--counts"], capture_output=True,
                         text=True, check=False)
    return run.stdout if run.returncode == 0 else "", run.stderr.strip().split("\n")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="kernels whose name has this")
    parser.add_argument("--text", type=pathlib.Path, help="write the kept texts there, make none")
    args = parser.parse_args()
    if args.text:
        args.text.mkdir(parents=True, exist_ok=True)
        for name, text in texts().items():
            (args.text / name).write_text(text)
        return
    listed = json.loads(subprocess.run([args.program, "kernels", "--json"], capture_output=True,
                                       text=True, check=True).stdout)["kernels"]
    before = kept()
    # In the order that is kept, new ones behind it: builds list kernels in different orders.
    place = {name: i for i, name in enumerate(before)}
    listed.sort(key=lambda k: place.get(k["kernel"], len(place)))
    names = [k["kernel"] for k in listed if k["built"] and args.only in k["kernel"]]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(names, pool.map(lambda name: made(args.program, name), names)))
    files = {}
    for k in listed:
        name = k["family"].removesuffix("_gemm") + ".tsv"
        lines, why = found.get(k["kernel"], ("", ""))
        if why:
            print(f"left out: {k['kernel']}: {why}")
        files[name] = files.get(name, HEAD) + (lines or before.get(k["kernel"], ""))
    keep(files)


if __name__ == "__main__":
    main()
