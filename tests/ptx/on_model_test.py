#!/usr/bin/env python3
"""Hopper kernels as nvcc compiles them run on the model, to the bits of their bodies in C++.

    on_model_test.py ROOT PTX_BESIDE KERNEL_ROWS [--keep]

Three texts that are kept under tests/ptx/texts/ run always, and edits of them are found. Where nvcc
is, it makes those of a few more kernels of the usual build, drawn from the commit; with
WARPWRIGHT_CAMPAIGN=1 of all. --keep makes the kept texts anew: a launch's parameters must be those
of the sources.
"""
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
KEPT = ("hopper_bf16_bf16_64x64", "hopper_bf16_bf16_128x16_sw_ck",
        "grouped_s4xe4m3_bf16_128x32_b_pr_sw2")
SAMPLE = 20
PART = 10  # that nvcc compiles together

SOURCE = """
#include "warpwright/kernel/hopper/gemm.h"
#include "warpwright/kernel/hopper/table.h"
#include "hopper_0.h"
using namespace warpwright;
"""
LAYERS = """
#include "warpwright/kernel/hopper/layer.h"
using namespace warpwright;
"""
LAYER = """
extern "C" __global__ void __launch_bounds__(kernel::LayerKernel<kernel::{tag}>::threads, 1)
    {tag}(const __grid_constant__ kernel::LayerParams params) {{
  kernel::LayerKernel<kernel::{tag}>::run(params);
}}
"""
ENTRY = """
extern "C" __global__ void
    __launch_bounds__(kernel::threads(kernel::{tag}::config), kernel::{tag}::config.ctas_per_sm)
    {tag}(const __grid_constant__ kernel::HopperGemm<kernel::{tag}>::Params params) {{
  kernel::HopperGemm<kernel::{tag}>::run(params);
}}
"""
# Lines of the first kept text, what becomes of them, and what is found then.
EDITS = (
    (r"\twgmma\.fence\.sync\.aligned;", "", "W1"),
    (r"\twgmma\.wait_group\.sync\.aligned 0;", "", "W2"),
    (r"\tfence\.proxy\.async\.shared::cta;", "", "P1"),
    (r"\tfence\.mbarrier_init\.release\.cluster;", "", "B9"),
    (r"(expect_tx.*) (%r\d+);", r"\1 32;", "B4"),
    (r"(\tstmatrix.*\[)(%r\d+)\]", r"\1\2+16]", r"D\[0"),
    (r"\tmbarrier\.try_wait\.parity.* p, .*;", "\tsetp.eq.u32 p, 0, 0;", "B4|B5|T4"),
)


def built_kernels():
    """The Hopper kernels of the usual build."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([KERNEL_ROWS, "hopper", "common", "1", folder], check=True)
        text = (pathlib.Path(folder) / "hopper_0.h").read_text()
    return re.findall(r"struct (\w+) : Instance", text)


def layers():
    """The kernels of layers in one launch."""
    text = (pathlib.Path(ROOT) / "warpwright/kernel/hopper/layer_config.h").read_text()
    return re.findall(r"struct (\w+) : LayerInstance", text)


def drawn(names, count):
    """So many of them, by the commit."""
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return random.Random(commit).sample(names, count)


def compiled(names, folder, *options):
    """Their text: one file, as its headers take a part of nvcc's time."""
    source = folder / "kernels.cu"
    if names[0] in layers():
        source.write_text(LAYERS + "".join(LAYER.format(tag=name) for name in names))
    else:
        subprocess.run([KERNEL_ROWS, "hopper", ",".join(names), "1", folder], check=True)
        source.write_text(SOURCE + "".join(ENTRY.format(tag=name) for name in names))
    made = folder / "kernels.ptx"
    ran = subprocess.run(
        [ptx_test.NVCC, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-lineinfo",
         "-arch=sm_90a", *options, f"-I{ROOT}", f"-I{folder}", "-ptx", "-o", str(made),
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
        name = KEPT[0]
        text = self.kept(name).read_text()
        for pattern, to, code in EDITS:
            with self.subTest(pattern):
                edited, count = re.subn(pattern, to, text)
                self.assertGreater(count, 0)
                path = self.folder / "edited.ptx"
                path.write_text(edited)
                ran = beside("--full", f"{name}={path}")
                self.assertEqual(ran.returncode, 1, ran.stdout)
                self.assertRegex(ran.stdout, rf": ({code})")

    def test_fresh_texts_give_the_bits_of_cpp(self):
        if ptx_test.NVCC is None:
            self.skipTest("no nvcc: only the kept texts ran")
        names = built_kernels()
        if not ALL:
            names = drawn(names, SAMPLE)
        for i in range(0, len(names), PART):
            part = names[i:i + PART]
            # By turns as they are built, and with products and sums that are rounded one by one.
            apart = i // PART % 2 == 1
            made = compiled(part, self.folder, *(["-fmad=false"] if apart else []))
            how = ["--schedules", 4 if ALL else 1, *(["--full", "--strict"] if apart else [])]
            self.expect_same(*how, *(f"{n}={made}" for n in part))

    def test_layers_in_one_launch_are_right(self):
        if ptx_test.NVCC is None:
            self.skipTest("no nvcc: no layer ran")
        names = layers() if ALL else drawn(layers(), 1)
        made = compiled(names, self.folder)
        self.expect_same("--schedules", 4 if ALL else 1, *(f"{n}={made}" for n in names))


def keep():
    TEXTS.mkdir(exist_ok=True)
    for name in KEPT:
        with tempfile.TemporaryDirectory() as folder:
            text = compiled([name], pathlib.Path(folder)).read_text()
        # Sources have their names in the project; debug information goes.
        text = text.replace(f'"{ROOT}/', '"').replace(folder, "")
        text = re.sub(r"\n\t?\.section.*", "\n", text, flags=re.S)
        (TEXTS / f"{name}.ptx.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    makes = "--keep" in sys.argv
    ROOT, BESIDE, KERNEL_ROWS = (str(pathlib.Path(sys.argv.pop(1)).resolve()) for _ in range(3))
    ptx_test.NVCC = ptx_test.cuda_program("nvcc")
    if makes:
        keep()
    else:
        unittest.main()
