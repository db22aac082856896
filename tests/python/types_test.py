#!/usr/bin/env python3
"""The types of the package, as a user's type checker has them: `mypy --strict` of typed_sample.py,
which uses all of it and makes mistakes that must be caught, and mypy's stubtest, which compares
types with what is there at run time.

    types_test.py BUILD    in the environment of wheel_test.py, which gets mypy where pip finds it
"""
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = """[mypy]
ignore_missing_imports = True
# For stubtest, whose subject it is not: reading it takes most of the time.
[mypy-numpy.*]
follow_imports = skip
"""
ALLOWED = r"""
# An alias of Literal words is taken for one of a Union.
warpwright\._types\.(Accumulation|Activation|Along|Combine|Encoding|Format|GateUp|Layout)
warpwright\._types\.(Fp4Encoding|Fp4Layout|Operands|QuantiseD|Recipe|ScaleType|Scaling|Sums)
# None is replaced as an object is made.
warpwright\._prepare\.PackedWeights\.(__init__|form)
# A type of keywords, only for checkers.
warpwright\._core\.Product
# They need PyTorch and transformers.
warpwright\.torch
warpwright\.transformers
"""


def main():
    folder = pathlib.Path(sys.argv[1]).resolve() / "python"
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        print(f"did not run: {HERE.name}/types_test.py: wheel_test.py has made no {python}")
        return 77

    def run(*command):
        return subprocess.run([python, *command], capture_output=True, text=True, check=False,
                              cwd=folder)
    got = run("-m", "pip", "install", "-q", "mypy", "numpy>=2.1", "ml_dtypes")
    if got.returncode != 0:
        print("did not run: types_test.py: pip finds no mypy, numpy and ml_dtypes here "
              f"({got.stderr.strip().splitlines()[-1]})")
        return 77
    (folder / "stubtest.ini").write_text(CONFIG)
    (folder / "stubtest.txt").write_text(ALLOWED)
    status = 0
    for command in (("-m", "mypy", "--strict", "--cache-dir", folder / "mypy_cache",
                     HERE / "typed_sample.py"),
                    ("-m", "mypy.stubtest", "warpwright", "--concise", "--mypy-config-file",
                     "stubtest.ini", "--allowlist", "stubtest.txt", "--ignore-unused-allowlist"),
                    (HERE / "typed_sample.py",)):
        done = run(*command)
        print(" ".join(map(str, command)), done.stdout, done.stderr, sep="\n")
        status = status or done.returncode
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
