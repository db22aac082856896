#!/usr/bin/env python3
"""Packages for a machine without a network: downloaded here, cut into parts, put together there.

    carry.py unpack PART... TO    there: TO is what PYTHONPATH names

What is brought is said by who needs it: `bench/peers bring`, `integrations/vllm/compare.py bring`.
"""
from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
from typing import Callable

PART = 48 << 20
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (39, 35, 34, 31, 28, 27, 24, 17)] + [
    "manylinux2014_x86_64", "manylinux1_x86_64"]


def bring(to: pathlib.Path, packages: list[str], is_needed: Callable[[str], bool]) -> None:
    """Wheels of the packages, and of nothing that these need, for Python 3.12; what is needed of
    them in parts."""
    site = to / "site"
    shutil.rmtree(site, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile",
                    "--only-binary=:all:", "--python-version", "3.12", "--implementation", "cp",
                    *(f"--platform={each}" for each in PLATFORMS), "--target", site, *packages],
                   check=True)
    pack(site, to, is_needed)


def pack(site: pathlib.Path, to: pathlib.Path, is_needed: Callable[[str], bool]) -> None:
    """part.0 and so on in `to`, of the files below `site`."""
    for old in to.glob("part.*"):
        old.unlink()
    names = sorted(str(file.relative_to(site)) for file in site.rglob("*") if file.is_file())
    whole = to / "whole.tar.xz"
    with open(whole, "wb") as out:
        tar = subprocess.Popen(["tar", "-C", site, "-cf", "-", "--null", "-T", "-"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        xz = subprocess.Popen(["xz", "-T0", "-3", "--block-size=16MiB"], stdin=tar.stdout,
                              stdout=out)
        assert tar.stdin is not None
        with tar.stdin:
            tar.stdin.write("\0".join(filter(is_needed, names)).encode())
        if tar.wait() != 0 or xz.wait() != 0:
            sys.exit("the parts could not be packed")
    with open(whole, "rb") as content:
        for number, part in enumerate(iter(lambda: content.read(PART), b"")):
            (to / f"part.{number}").write_bytes(part)
            print(f"{to}/part.{number}: {-(-len(part) >> 20)} MiB", file=sys.stderr)
    whole.unlink()


def unpack(parts: list[pathlib.Path], to: pathlib.Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    xz = subprocess.Popen(f"xz -dcq -T0 | tar -C '{to}' -xf -", shell=True, stdin=subprocess.PIPE)
    assert xz.stdin is not None
    with xz.stdin:
        for part in sorted(parts, key=lambda name: int(name.suffix[1:])):
            xz.stdin.write(part.read_bytes())
    if xz.wait() != 0:
        sys.exit("the parts are not whole: all of them are needed")


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] != "unpack":
        print(__doc__)
        sys.exit(2)
    *given, folder = map(pathlib.Path, sys.argv[2:])
    unpack(given, folder)
