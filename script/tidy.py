#!/usr/bin/env python3
"""Runs clang-tidy over the project's .cpp files, in parallel:
    tidy.py --build BUILD_DIR [--full | --part R/N]

It looks at what the build compiles: where that is several sources at once (CMAKE_UNITY_BUILD), at
those together. It is looked at again only when it, a project header it sees, its compile command
or the checks changed: the hash of all these is kept in BUILD_DIR/tidy/ once it was found clean.
Without --full the tests are left out, and the checks that take most of the time, the analyzer's
among them. With --part only every N-th source is looked at, from the R-th on, and what has a .cpp
that differs from origin's branch, or from the commit before.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

TOOL = "clang-tidy-14"
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.dont_write_bytecode = True
import samples  # noqa: E402

# Nine tenths of the time of all checks; script/campaign has them.
SLOW = ("clang-analyzer-*", "performance-unnecessary-value-param", "bugprone-reserved-identifier")
# Tests and examples say one thing from beginning to end.
LONG = ("{InheritParentConfig: true, CheckOptions: ["
        "{key: readability-function-size.LineThreshold, value: '79'},"
        "{key: readability-function-size.BranchThreshold, value: '1000'}]}")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
_seen = {}


def includes(path):
    """The project's own headers that this file names."""
    if path not in _seen:
        text = path.read_text(errors="replace")
        found = []
        for name in INCLUDE.findall(text):
            for place in (path.parent / name, ROOT / name):
                if place.is_file() and ROOT in place.resolve().parents:
                    found.append(place.resolve())
                    break
        _seen[path] = (hashlib.sha256(text.encode()).hexdigest(), found)
    return _seen[path]


def closure(path):
    """This file and every project header it sees, in a fixed order."""
    todo, done = [path], set()
    while todo:
        one = todo.pop()
        if one not in done:
            done.add(one)
            todo += includes(one)[1]
    return sorted(done)


def fingerprint(path, command, version, checks):
    digest = hashlib.sha256(version + checks.encode())
    for folder in path.parents:
        if ROOT in (folder, *folder.parents) and (folder / ".clang-tidy").is_file():
            digest.update((folder / ".clang-tidy").read_bytes())
    digest.update(command.encode())
    for one in closure(path):
        digest.update(f"{os.path.relpath(one, ROOT)} {includes(one)[0]}\n".encode())
    return digest.hexdigest()


def includes_one_of(path, files):
    """Is this source one of them, or made of one (Unity)?"""
    return path in files or path.parent.name == "Unity" and any(
        pathlib.Path(name) in files for name in INCLUDE.findall(path.read_text(errors="replace")))


def limits_of(path, build):
    """What clang-tidy is told of the functions of a source."""
    may_be_long = any(root / room in path.parents for root in (ROOT, build)
                      for room in ("tests", "examples"))
    return [f"--config={LONG}"] if may_be_long else []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--part", default="0/1", help="R/N: every N-th source, and what changed")
    parser.add_argument("--full", action="store_true", help="with the checks that take long")
    options = parser.parse_args()
    build = options.build.resolve()
    clean = build / "tidy"
    clean.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    # The processor is named there too; another one finds nothing else.
    version = b"\n".join(l for l in version.splitlines() if b"CPU" not in l)

    # Sources compiled together are included by a file that the build makes.
    off = ["bugprone-suspicious-include"] + ([] if options.full else list(SLOW))
    checks = ",".join("-" + name for name in off)

    first, step = map(int, options.part.split("/"))
    new = samples.changed(ROOT) if step > 1 else set()
    jobs, sources = [], 0
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        ours = path.suffix == ".cpp" and ROOT in path.parents and build not in path.parents
        if not options.full and (ROOT / "tests" in path.parents or build / "tests" in path.parents):
            continue
        if ours or path.parent.name == "Unity":
            sources += 1
            if (sources - 1) % step != first and not includes_one_of(path, new):
                continue
            told = checks + "".join(limits_of(path, build))
            mark = clean / fingerprint(path, entry["command"], version, told)
            if not mark.exists():
                jobs.append((path, mark))
    jobs.sort(key=lambda job: -job[0].stat().st_size)  # the long ones first

    def look(job):
        path, mark = job
        ran = subprocess.run([TOOL, "--quiet", "-p", build, f"--checks={checks}",
                              *limits_of(path, build),
                              "--extra-arg=-Wno-unknown-warning-option",
                              # The names of all kernels are computed while compiling.
                              "--extra-arg=-fconstexpr-steps=200000000", path],
                             capture_output=True, text=True, check=False)
        if ran.returncode == 0:
            mark.write_text(os.path.relpath(path, ROOT) + "\n")
            return path, ""
        return path, ran.stdout + "".join(
            line for line in ran.stderr.splitlines(True) if "warnings generated" not in line)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for count, (path, findings) in enumerate(pool.map(look, jobs), 1):
            if sys.stderr.isatty():
                print(f"\r{count}/{len(jobs)} files", end="", file=sys.stderr, flush=True)
            if findings:
                bad += 1
                print(f"clang-tidy: {os.path.relpath(path, ROOT)}\n{findings}", flush=True)
    if sys.stderr.isatty() and jobs:
        print(file=sys.stderr)
    of = f" (part {options.part} of {sources}, and what git says has changed)" if step > 1 else ""
    print(f"clang-tidy: {len(jobs) - bad} of {len(jobs)} new or changed files are clean{of}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
