#!/usr/bin/env python3
"""Packs the wheel of a build, installs it in a fresh environment, and tests it there.

    wheel_test.py BUILD          as script/test does: the tests, and a sample of the random calls
    wheel_test.py BUILD --fuzz   all views and 30,000 random calls, as script/campaign does
    wheel_test.py BUILD --pip    `pip install` of this checkout, which compiles all of it
    wheel_test.py BUILD --torch  with PyTorch, which it has pip install (some gigabytes)
    wheel_test.py BUILD --transformers  the same with transformers, whose experts are ours then
    wheel_test.py BUILD --jax    with JAX (a hundred megabytes)

The environment gets numpy and ml_dtypes from wherever pip finds packages. Where it finds none, what
needs them is left out, with a line "did not run: ...", and the exit status is 77.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "docs"))
import commands_test  # noqa: E402
ALONE = """
import sys, warpwright as wp
plan = wp.plan(wp.Spec((64, 128)), wp.Spec((256, 128)), device="h200")
assert "132 SMs" in plan.explain()
try:
    wp.plan(wp.Spec((64, 100), strides=(99, 1)), wp.Spec((256, 100)), device="b200")
except wp.Refusal as refusal:
    assert refusal.code == "bad_stride" and "nearest legal" in str(refusal)
else:
    sys.exit("nothing was refused")
print("CPython", sys.version.split()[0])
"""
# All that a wheel may ask of a machine: of glibc, which every CPython has.
LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2",
             "librt.so.1"}


def run(*command, **how):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          **how)
    if done.returncode != 0:
        sys.exit(f"this failed with {done.returncode}: {' '.join(map(str, command))}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout


def environment(build, wheel):
    """A fresh one with the wheel; its Python, and why numpy is not in it, or nothing."""
    folder = build / "python" / "venv"
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel)
    got = subprocess.run([python, "-m", "pip", "install", "-q", "numpy>=2.1", "ml_dtypes"],
                         capture_output=True, text=True, check=False)
    if got.returncode == 0:
        return python, None
    return python, f"pip finds no numpy and ml_dtypes here ({got.stderr.strip().splitlines()[-1]})"


def installed_from_source(build):
    """What `pip install .` gives, beside the checkout's own build."""
    venv = build / "python" / "venv-pip"
    shutil.rmtree(venv, ignore_errors=True)
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "python", "-m", "pip", "install", "-q", ROOT, "-C",
        f"build-dir={build / 'python' / 'from-source'}")
    print(run(venv / "bin" / "python", "-c", ALONE, cwd=venv), end="")
    print(run(venv / "bin" / "warpwright", "--version", cwd=venv), end="")


def with_library(build, folder, libraries, tests):
    """Runs tests beside other libraries; returns the largest exit status."""
    library = libraries[-1]
    venv = build / "python" / f"venv-{library}"
    if not (venv / "bin" / "python").exists():
        run(sys.executable, "-m", "venv", venv)
    got = subprocess.run([venv / "bin" / "python", "-m", "pip", "install", "-q", *libraries,
                          "numpy", "ml_dtypes"], capture_output=True, text=True, check=False)
    if got.returncode != 0:
        why = got.stderr.splitlines()[-1]
        print(f"did not run: {', '.join(tests)}: pip finds no {library} here ({why})")
        return 77
    return max(subprocess.run([venv / "bin" / "python", HERE / test], check=False,
                              env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin"}).returncode
               for test in tests)


def other_pythons():
    """Every CPython of 3.10 and later that this machine has."""
    found = {}
    folders = [pathlib.Path("/usr/bin"), pathlib.Path("/usr/local/bin"),
               *(pathlib.Path.home() / ".pyenv/versions").glob("*/bin")]
    for folder in folders:
        for path in folder.glob("python3.*"):
            if re.fullmatch(r"python3\.1[0-9]", path.name):
                found.setdefault(path.name, path)
    return found.values()


def samples(python, folder):
    """Runs the samples of the documents that need neither PyTorch nor a GPU. (A piece of a program
    imports nothing; those with PyTorch are torch_test.py's.)"""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for sample in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S):
            if "warpwright as wp" in sample and "import torch" not in sample:
                files = commands_test.FILES.get(str(page.relative_to(ROOT)), {})
                for file, content in files.items():
                    commands_test.write_file(folder / file, content)
                run(python, "-c", sample, cwd=folder)
                print(f"a sample of {page.name} runs")


def check_wheel(wheel, folder):
    """Its name, its files, and what its module links."""
    named = re.fullmatch(r"warpwright-[0-9.]+-(cp310-abi3-manylinux_2_(\d+)_\w+)\.whl", wheel.name)
    if not named:
        sys.exit(f"{wheel.name} is no wheel for every CPython from 3.10 on, and for a glibc")
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for file in ("_core.abi3.so", "_core.pyi", "py.typed", "__main__.py"):
        if not (folder / "warpwright" / file).is_file():
            sys.exit(f"{wheel.name} lacks {file}")
    linked = set(re.findall(r"NEEDED.*\[(.*)\]",
                            run("readelf", "-d", folder / "warpwright" / "_core.abi3.so")))
    if not linked <= LIBRARIES:
        sys.exit(f"_core.abi3.so needs {', '.join(linked - LIBRARIES)}, which a machine may lack")
    needed = re.findall(r"\bGLIBC_2\.(\d+)", run("readelf", "-W", "--version-info",
                                                 folder / "warpwright" / "_core.abi3.so"))
    if max(map(int, needed)) != int(named[2]):
        sys.exit(f"{wheel.name} says not that it needs glibc 2.{max(map(int, needed))}")
    (about,) = folder.glob("*.dist-info/WHEEL")
    if f"\nTag: {named[1]}\n" not in about.read_text():
        sys.exit(f"{wheel.name} has another tag inside:\n{about.read_text()}")
    if "\nLicense-Expression: Apache-2.0\n" not in (about.parent / "METADATA").read_text():
        sys.exit(f"{wheel.name} does not name its licence in an expression")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if "--pip" in sys.argv:
        installed_from_source(build)
        return 0
    wheel = pathlib.Path(run(ROOT / "script" / "wheel", "--packed", build).split()[-1])
    folder = build / "python" / "unpacked"
    check_wheel(wheel, folder)
    for option, libraries, tests in [
            ("--torch", ["torch"], ["torch_test.py", "engine_shapes_test.py",
                                     "test_check_ptx.py"]),
            ("--jax", ["jax"], ["test_jax.py"]),
            ("--transformers", ["torch", "transformers"], ["experts_test.py"])]:
        if option in sys.argv:
            return with_library(build, folder, libraries, tests)
    for python in other_pythons():
        print(run(python, "-c", ALONE, env={"PYTHONPATH": str(folder)}), end="")
    python, why_not = environment(build, wheel)
    # From a folder that is not the checkout, so that what is tested is what was installed.
    print(run(python, "-c", ALONE, cwd=folder.parent), end="")
    if why_not:
        print(f"did not run: the Python tests: {why_not}")
        return 77
    if "--fuzz" in sys.argv:
        print(run(python, HERE / "test_views.py", "--all"), end="")
        print(run(python, HERE / "fuzz.py", "30000"), end="")
        return 0
    # In one process: what one of them sets, a device of the model, is not to leak into another.
    tests = [HERE / f"test_{name}.py" for name in (
        "values", "refusals", "prepare", "formats", "moe", "moe_formats", "views", "unread",
        "interrupt", "check_ptx")]
    done = subprocess.run([python, "-m", "unittest", "-v", *tests], cwd=HERE, capture_output=True,
                          text=True, check=False)
    print(done.stderr)
    if done.returncode != 0:
        return 1
    print(run(python, HERE / "fuzz.py", "2000"), end="")
    samples(python, build / "python")
    print("did not run: torch_test.py, test_jax.py: PyTorch and JAX are for script/campaign")
    return 0


if __name__ == "__main__":
    sys.exit(main())
