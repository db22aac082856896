#!/usr/bin/env python3
"""What nvcc makes of grouped kernels with per-group tensor maps, for sm_90a, without a GPU.

    group_maps_test.py ROOT

Compiles the kernel that makes the maps, and for every common configuration with maps of groups
(kernel/hopper/table.h) the kernel that uses them and its twin with one map, ptxas included;
and looks for the instructions in each, and where they must not be. Exits 77 where there is no nvcc.
"""
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402

ROOT = None
NVCC = None
ARCHITECTURE = "90a"

SOURCE = """
#include "warpwright/kernel/hopper/group_maps.h"
#include "warpwright/kernel/hopper/table.h"
#include "warpwright/kernel/hopper/gemm.h"
using namespace warpwright;
extern "C" __global__ void __launch_bounds__(kernel::GroupMapsKernel::threads)
    maker(const __grid_constant__ kernel::GroupMapsParams params) {
  kernel::GroupMapsKernel::run(params);
}
"""
ENTRY = """
extern "C" __global__ void __launch_bounds__(kernel::threads(kernel::{0}::config), 1)
    {0}(const __grid_constant__ kernel::GemmParams params) {{
  kernel::HopperGemm<kernel::{0}>::run(params);
}}
"""

# An instruction, and how many of them a kernel of each kind has at least: of X and of Y in the
# maker; a user acquires both and stores; its twin does none of it.
REPLACE = "tensormap.replace.tile.{}.shared::cta.b1024."
EXPECTED = [
    (REPLACE.format("global_address") + "b64", {"maker": 2}),
    (REPLACE.format("global_dim") + "b32", {"maker": 2}),
    ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned",
     {"maker": 2}),
    ("fence.proxy.tensormap::generic.acquire.gpu", {"user": 2}),
]
STORE = "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group"


class GroupMaps(unittest.TestCase):
    def test_builds_for_older_targets_leave_the_maker_empty(self):
        """Its file is compiled for every architecture of a build: sm_80 has no tensor maps."""
        none = [f"-DWARPWRIGHT_{family}_CUDA_CHUNKS=0"
                for family in ("Hopper", "Blackwell", "Registers")]
        with tempfile.TemporaryDirectory() as name:
            made = ptx_test.run(NVCC, "-std=c++20", "-O2", f"-I{ROOT}", "--expt-relaxed-constexpr",
                                *none, "-gencode", "arch=compute_80,code=sm_80", "-c", "-o",
                                pathlib.Path(name) / "kernels.o",
                                ROOT / "warpwright/device/cuda_kernels.cu")
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_maps_are_made_released_acquired_and_used(self):
        rows, names = ptx_test.table_rows(ROOT, NVCC, "hopper", "common")
        users = [name for name in names if name.endswith("_gm")]
        self.assertGreaterEqual(len(users), 2)
        twins = [u.removesuffix("_gm") for u in users]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source, ptx = folder / "kernels.cu", folder / "kernels.ptx"
            source.write_text(SOURCE + rows + "".join(ENTRY.format(tag) for tag in users + twins))
            made = ptx_test.run(NVCC, "-std=c++20", "-O2", f"-I{ROOT}", "--expt-relaxed-constexpr",
                                "-ptx", f"-arch=compute_{ARCHITECTURE}", "-o", ptx, source)
            self.assertEqual(made.returncode, 0, made.stderr)
            assembled = ptx_test.run(NVCC, "-cubin", f"-arch=sm_{ARCHITECTURE}", "-Xptxas=-v", "-o",
                                     folder / "kernels.cubin", ptx)
            self.assertEqual(assembled.returncode, 0, assembled.stderr)
            spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads",
                                assembled.stderr)
            self.assertEqual(set(spills), {("0", "0")}, assembled.stderr)
            kernels = ptx_test.entries(ptx.read_text())
        self.assertEqual(set(kernels), {"maker", *users, *twins})
        for tag, text in kernels.items():
            kind = "maker" if tag == "maker" else "user" if tag in users else "twin"
            for form, counts in EXPECTED:
                with self.subTest(tag=tag, form=form):
                    if kind in counts:
                        self.assertGreaterEqual(text.count(form), counts[kind])
                    else:
                        self.assertNotIn(form, text)
            with self.subTest(tag=tag, form=STORE):
                self.assertEqual(STORE in text, kind == "user")


if __name__ == "__main__":
    ROOT, NVCC = ptx_test.root_and_nvcc()
    unittest.main()
