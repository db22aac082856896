#!/usr/bin/env python3
"""Kernels as nvcc compiles them run on the model, to the bits of their bodies in C++.

    on_model_test.py ROOT PTX_BESIDE KERNEL_ROWS [--keep]

Texts that are kept under tests/ptx/texts/ run always, and edits of them are found. Where nvcc is,
it makes those of a few more kernels of the usual build, drawn from each family by the commit, for
a target that is drawn too; with WARPWRIGHT_CAMPAIGN=1 of all, for all of their targets. --keep
makes the kept texts anew: a launch's parameters must be those of the sources.
"""
import collections
import functools
import gzip
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402

ROOT = BESIDE = KERNEL_ROWS = None
ALL = os.environ.get("WARPWRIGHT_CAMPAIGN") == "1"
TEXTS = pathlib.Path(__file__).resolve().parent / "texts"
PART = 10  # that nvcc compiles together

# A family: the headers of its kernels, the class that has their parameters and what runs, CTAs of
# an SM, the targets that they are compiled for, how many are drawn; those whose texts are kept.
Family = collections.namedtuple("Family", "headers kernel ctas targets sample kept")
FAMILIES = {
    "hopper": Family(("hopper/gemm.h", "hopper/table.h"), "HopperGemm",
                     "kernel::{tag}::config.ctas_per_sm", ("90a",), 10,
                     ("hopper_bf16_bf16_64x64", "hopper_bf16_bf16_128x16_sw_ck",
                      "grouped_s4xe4m3_bf16_128x32_b_pr_sw2")),
    "blackwell": Family(("blackwell/gemm.h", "blackwell/table.h"), "BlackwellGemm", "1",
                        ("100a", "103a"), 6,
                        ("blackwell_f16_bf16_one_clc_sw128", "blackwell_mxf4nvf4_bf16_pair_clc")),
    "registers": Family(("registers/gemm.h", "registers/table.h"), "RegistersGemm",
                        "kernel::{tag}::config.ctas_per_sm", ("75", "80", "86", "89", "120f"), 8,
                        ("registers_e4m3_bf16_128x128",)),
}
KEPT = {name: family for family, f in FAMILIES.items() for name in f.kept}

LAYERS = """
#include "warpwright/kernel/hopper/warp_layer.h"
using namespace warpwright;
"""
LAYER = """
extern "C" __global__ void __launch_bounds__(kernel::LayerKernelOf<kernel::{tag}>::threads,
                                             kernel::LayerKernelOf<kernel::{tag}>::ctas_per_sm)
    {tag}(const __grid_constant__ kernel::LayerKernelOf<kernel::{tag}>::Params params) {{
  kernel::LayerKernelOf<kernel::{tag}>::run(params);
}}
"""
ENTRY = """
extern "C" __global__ void __launch_bounds__(kernel::threads(kernel::{tag}::config), {ctas})
    {tag}(const __grid_constant__ kernel::{kernel}<kernel::{tag}>::Params params) {{
  kernel::{kernel}<kernel::{tag}>::run(params);
}}
"""
# Lines of kept texts, what becomes of them, and what is found then.
EDITS = {
    "hopper_bf16_bf16_64x64": (
        (r"\twgmma\.fence\.sync\.aligned;", "", "W1"),
        (r"\twgmma\.wait_group\.sync\.aligned 0;", "", "W2"),
        (r"\tfence\.proxy\.async\.shared::cta;", "", "P1"),
        (r"\tfence\.mbarrier_init\.release\.cluster;", "", "B9"),
        (r"(expect_tx.*) (%r\d+);", r"\1 32;", "B4"),
        (r"(\tstmatrix.*\[)(%r\d+)\]", r"\1\2+16]", r"D\[0"),
        (r"\tmbarrier\.try_wait\.parity.* p, .*;", "\tsetp.eq.u32 p, 0, 0;", "B4|B5|T4"),
    ),
    "blackwell_f16_bf16_one_clc_sw128": (
        (r"\ttcgen05\.wait::ld\.sync\.aligned;", "", "W2"),
        (r"\ttcgen05\.commit\..*;", "", "D1"),
        (r"\ttcgen05\.fence::after_thread_sync;", "", "U6"),
        (r"\ttcgen05\.fence::before_thread_sync;", "", "U6"),
        (r"\ttcgen05\.dealloc\..*;", "", "U1"),
        (r"(\ttcgen05\.alloc.*), (%r\d+);", r"\1, 32;", "U1"),
        (r"(\ttcgen05\.ld.*\[)(%r\d+)\]", r"\1\2+1]", "M1"),
        (r"(expect_tx.*) (%r\d+);", r"\1 32;", "B4"),
        (r"\tclusterlaunchcontrol\.query_cancel\.is_canceled.*;", "\tsetp.eq.u32 p, 0, 0;", "C2"),
        # The instruction descriptor: a reserved bit, and the one that says A is MN-major.
        (r"(\ttcgen05\.mma.*), (%r\d+), p;", r"\tor.b32 \2, \2, 4;\n\1, \2, p;", "U3"),
        (r"(\ttcgen05\.mma.*), (%r\d+), p;", r"\tor.b32 \2, \2, 32768;\n\1, \2, p;", r"D\[0"),
        (r"(\ttcgen05\.mma.*) p;", r"\1 0;", r"D\[0"),  # adds up nothing
        ("4611756662049538048", "2305913643835850240", "W4"),  # another swizzle of A and B
    ),
    "blackwell_mxf4nvf4_bf16_pair_clc": (
        (r"\[(%r\d+)\], \[(%r\d+)\], p;", r"[\2], [\1], p;", r"D\[0"),  # scales of A and B
        ("block16", "block32", "U3"),
        (r"\ttcgen05\.cp\..*;", "", "M1"),
        (r"(\ttcgen05\.commit\S+ \[%r\d+\], )(%rs\d+)", r"\g<1>1", "B5"),
        (r"(\t@?!?p? ?cp\.async\.bulk\.tensor\S+)\.cta_group::2", r"\1", "T1"),
    ),
    "registers_e4m3_bf16_128x128": (
        (r"\tcp\.async\.wait_group 1;", "", "T4"),
        (r"\tcp\.async\.wait_group 1;", "\tcp.async.wait_group 2;", "T4"),
        (r"\tcp\.async\.commit_group;", "", "T4"),
        (r"(\tcp\.async\.cg.*, 16), %r\d+;", r"\1, 8;", r"D\[0"),
        (r"\tbarrier\.cta\.sync\.aligned .*;", "", "T4"),
        (r"(\tbarrier\.cta\.sync\.aligned %r\d+), %r\d+;", r"\1, 128;", "O1"),
        (r"\tbar\.warp\.sync \t-1;", "", "O1"),
        (r"(\tldmatrix.*\[)(%r\d+)\]", r"\1\2+16]", "T4"),
        (r"(\tmma\.sync.*\{)(%r\d+), (%r\d+)(\}, \{%f)", r"\1\3, \2\4", r"D\[0"),
        (r"(\tmma\.sync.*)e4m3\.e4m3", r"\1e5m2.e4m3", r"D\[0"),
    ),
}


@functools.cache
def built_kernels(family):
    """The kernels of this build, each with the N of sm_N that it is for."""
    listed = subprocess.run([BESIDE, "--list"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in listed.splitlines()]
    return {name: targets for of, name, *targets in lines if of == f"{family}_gemm"}


def targets_of(kernel, family):
    """Those of the family that the kernel is for."""
    return [t for t in FAMILIES[family].targets if t.rstrip("af") in built_kernels(family)[kernel]]


def layers():
    """The kernels of layers in one launch."""
    text = (pathlib.Path(ROOT) / "warpwright/kernel/hopper/layer_config.h").read_text()
    return re.findall(r"struct (\w+) : LayerInstance", text)


def drawn(names, count):
    """So many of them, by the commit, if there are."""
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return random.Random(commit).sample(names, min(count, len(names)))


def source_of(names, family, folder):
    """A file of these kernels, as headers take a part of nvcc's time."""
    if family is None:
        return LAYERS + "".join(LAYER.format(tag=name) for name in names)
    subprocess.run([KERNEL_ROWS, family, ",".join(names), "1", folder], check=True)
    f = FAMILIES[family]
    headers = [f"warpwright/kernel/{header}" for header in f.headers] + [f"{family}_0.h"]
    return ("".join(f'#include "{header}"\n' for header in headers)
            + "using namespace warpwright;\n"
            + "".join(ENTRY.format(tag=name, kernel=f.kernel, ctas=f.ctas.format(tag=name))
                      for name in names))


def compiled(names, folder, family, target, *options):
    """Their text; family None: layers in one launch."""
    source = folder / "kernels.cu"
    source.write_text(source_of(names, family, folder))
    made = folder / "kernels.ptx"
    ran = subprocess.run(
        [ptx_test.NVCC, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-lineinfo",
         f"-arch=sm_{target}", *options, f"-I{ROOT}", f"-I{folder}", "-ptx", "-o", str(made),
         str(source)],
        capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(ran.stdout + ran.stderr)
    return made


def beside(*arguments):
    return subprocess.run([BESIDE, *map(str, arguments)], capture_output=True, text=True,
                          check=False)


class OnModel(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)

    def kept(self, name):
        path = self.folder / f"{name}.ptx"
        path.write_bytes(gzip.decompress((TEXTS / f"{name}.ptx.gz").read_bytes()))
        return path

    def expect_same(self, *arguments):
        ran = beside(*arguments)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        print(ran.stdout, end="", flush=True)

    def test_kept_texts_give_the_bits_of_cpp(self):
        self.expect_same("--schedules", 4, *(f"{name}={self.kept(name)}" for name in KEPT))

    def test_edits_are_found(self):
        for name, edits in EDITS.items():
            text = self.kept(name).read_text()
            for pattern, to, code in edits:
                with self.subTest(name, edit=pattern):
                    edited, count = re.subn(pattern, to, text)
                    self.assertGreater(count, 0)
                    path = self.folder / "edited.ptx"
                    path.write_text(edited)
                    ran = beside("--full", f"{name}={path}")
                    self.assertEqual(ran.returncode, 1, ran.stdout)
                    self.assertRegex(ran.stdout, rf": ({code})")

    def check_fresh(self, family):
        f = FAMILIES[family]
        targets = f.targets if ALL else drawn(f.targets, 1)
        parts = []
        for target in targets:
            names = [n for n in built_kernels(family) if target in targets_of(n, family)]
            names = names if ALL else drawn(names, f.sample)
            parts += [(target, names[i:i + PART]) for i in range(0, len(names), PART)]
        # By turns as they are built, and with products and sums that are rounded one by one.
        first = drawn([0, 1], 1)[0] + list(FAMILIES).index(family)
        for turn, (target, names) in enumerate(parts, first):
            apart = turn % 2 == 1
            made = compiled(names, self.folder, family, target,
                            *(["-fmad=false"] if apart else []))
            how = ["--schedules", 4 if ALL else 1, *(["--full", "--strict"] if apart else [])]
            print(f"{family}, sm_{target}{', -fmad=false' if apart else ''}:", flush=True)
            self.expect_same(*how, *(f"{n}={made}" for n in names))

    def test_layers_in_one_launch_are_right(self):
        if ptx_test.NVCC is None:
            self.skipTest("no nvcc: no layer ran")
        names = layers() if ALL else drawn(layers(), 1)
        made = compiled(names, self.folder, None, "90a")
        self.expect_same("--schedules", 4 if ALL else 1, *(f"{n}={made}" for n in names))


def add_fresh(family):
    """A test of fresh texts of a family."""
    def check(self):
        if ptx_test.NVCC is None:
            self.skipTest("no nvcc: only the kept texts ran")
        self.check_fresh(family)
    setattr(OnModel, f"test_fresh_{family}", check)


def keep():
    TEXTS.mkdir(exist_ok=True)
    for name, family in KEPT.items():
        with tempfile.TemporaryDirectory() as folder:
            text = compiled([name], pathlib.Path(folder), family,
                            targets_of(name, family)[0]).read_text()
        # Sources have their names in the project; debug information goes.
        text = text.replace(f'"{ROOT}/', '"').replace(folder, "")
        text = re.sub(r"\n\t?\.section.*", "\n", text, flags=re.S)
        (TEXTS / f"{name}.ptx.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    makes = "--keep" in sys.argv
    ROOT, BESIDE, KERNEL_ROWS = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(3))
    ptx_test.NVCC = ptx_test.cuda_program("nvcc")
    for one in FAMILIES:
        add_fresh(one)
    if makes:
        keep()
    else:
        unittest.main()
