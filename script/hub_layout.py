#!/usr/bin/env python3
"""Lays out a built wheel as a kernel of Hugging Face's hub: hub_layout.py WHEEL OUT

    hub_layout.py build/wheels/warpwright-....whl hub --torch 2.11,2.12,2.13,2.14 --cuda 13.0

OUT/build/torch211-cxx11-cu130-x86_64-linux/ and so on, one for each version of PyTorch: the package
in warpwright/, an __init__.py that is it, and metadata.json with the digests of all files. The
module has no symbol of PyTorch (tests/integrations/hub_test.py), so all have the same files.
Without --cuda it is a kernel for CPUs: the machine model.

The layout is that of the package `kernels`, docs/source/kernel-requirements.md of
github.com/huggingface/kernels (8ac69fc). What it asks and we do not have is said: glibc 2.28, and
operators under a name of each version's own: two versions cannot be loaded by one process.
"""
import argparse
import base64
import hashlib
import json
import pathlib
import re
import sys
import zipfile

NAME = "warpwright"
ENTRY = '''"""Warpwright as a kernel of the hub: the package warpwright, under any name."""
import importlib.util
import pathlib
import sys

if "warpwright" in sys.modules:
    _package = sys.modules["warpwright"]
else:  # its compiled module asks for it by this name
    _where = pathlib.Path(__file__).resolve().parent / "warpwright"
    _spec = importlib.util.spec_from_file_location(
        "warpwright", _where / "__init__.py", submodule_search_locations=[str(_where)])
    _package = importlib.util.module_from_spec(_spec)
    sys.modules["warpwright"] = _package
    try:
        _spec.loader.exec_module(_package)
    except BaseException:
        del sys.modules["warpwright"]
        raise
__all__ = list(_package.__all__)
globals().update({name: getattr(_package, name) for name in __all__})
'''


def digests(folder):
    """Base64 SHA-256 of the files of a variant, by their paths."""
    return {path.relative_to(folder).as_posix():
            base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix != ".pyc" and path.name != "metadata.json"}


def version(word):
    found = re.fullmatch(r"(\d+)\.(\d+)", word)
    if not found:
        sys.exit(f"{word!r} is no version; it is two numbers with a dot, such as 2.11")
    return found[1] + found[2]


def lay_out(wheel, out, torches, cuda, archs, number, build):
    machine = re.search(r"manylinux_(\d+)_(\d+)_(\w+)\.whl$", wheel.name)
    if not machine:
        sys.exit(f"{wheel.name} says no glibc; script/wheel makes wheels that do")
    if out.exists() and any(out.iterdir()):
        sys.exit(f"{out} is there and not empty; give a folder that is not")
    backend = {"type": "cuda", "archs": archs} if cuda else {"type": "cpu"}
    platform = f"cu{version(cuda)}" if cuda else "cpu"
    made = []
    for torch in torches:
        folder = out / "build" / f"torch{version(torch)}-cxx11-{platform}-{machine[3]}-linux"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist()
                                        if name.startswith(f"{NAME}/")])
        (folder / "__init__.py").write_text(ENTRY)
        about = {"name": NAME, "id": f"_{NAME}_{backend['type']}_{build}", "version": number,
                 "license": "Apache-2.0", "python-depends": [], "backend": backend,
                 "digest": {"algorithm": "sha256", "files": digests(folder)}}
        (folder / "metadata.json").write_text(json.dumps(about, indent=2) + "\n")
        made.append(folder)
    if (int(machine[1]), int(machine[2])) > (2, 28):
        print(f"note: these modules need glibc {machine[1]}.{machine[2]}; the hub asks for 2.28",
              file=sys.stderr)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--torch", default="2.11,2.12,2.13,2.14", help="versions of PyTorch")
    parser.add_argument("--cuda", help="of a build with its GPU side, such as 13.0")
    parser.add_argument("--archs", default="9.0a", help="what it was built for, with commas")
    parser.add_argument("--version", type=int, default=0, help="the kernel's; 0 is not yet stable")
    parser.add_argument("--build", default="local", help="a word for this build: its commit")
    given = parser.parse_args()
    if not re.fullmatch(r"\w+", given.build):
        sys.exit(f"--build is {given.build!r}; it is letters, digits and _, part of a name")
    for folder in lay_out(given.wheel, given.out, given.torch.split(","), given.cuda,
                          given.archs.split(","), given.version, given.build):
        print(folder)


if __name__ == "__main__":
    main()
