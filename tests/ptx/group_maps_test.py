#!/usr/bin/env python3
"""What nvcc makes of tensor maps made on the device, for sm_90a, without a GPU.

    group_maps_test.py ROOT

Compiles both grids of examples/studies/group_maps, ptxas included, and looks for the instructions
in each, and where they must not be. Exits 77 where there is no nvcc.
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

# An instruction, and how many of them each grid has: of X and of Y in the maker; the product
# acquires both maps, and stores through one.
REPLACE = "tensormap.replace.tile.{}.shared::cta.b1024."
EXPECTED = [
    (REPLACE.format("global_address") + "b64", {"make_maps": 2}),
    (REPLACE.format("global_dim") + "b32", {"make_maps": 2}),
    ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned",
     {"make_maps": 2}),
    ("fence.proxy.tensormap::generic.acquire.gpu", {"grouped_gemm": 2}),
    ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", {"grouped_gemm": 1}),
]


class GroupMaps(unittest.TestCase):
    def test_maps_are_made_released_acquired_and_used(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            ptx = folder / "maps.ptx"
            made = ptx_test.run(NVCC, "-std=c++20", "-O2", f"-I{ROOT}", "--expt-relaxed-constexpr",
                                "-ptx", f"-arch=compute_{ARCHITECTURE}", "-o", ptx,
                                ROOT / "examples/studies/group_maps/main.cu")
            self.assertEqual(made.returncode, 0, made.stderr)
            assembled = ptx_test.run(NVCC, "-cubin", f"-arch=sm_{ARCHITECTURE}", "-Xptxas=-v", "-o",
                                     folder / "maps.cubin", ptx)
            self.assertEqual(assembled.returncode, 0, assembled.stderr)
            spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads",
                                assembled.stderr)
            self.assertEqual(set(spills), {("0", "0")}, assembled.stderr)
            kernels = {re.search(r"(make_maps|grouped_gemm)", entry)[1]: text
                       for entry, text in ptx_test.entries(ptx.read_text()).items()}
        self.assertEqual(set(kernels), {"make_maps", "grouped_gemm"})
        for form, counts in EXPECTED:
            for grid, text in kernels.items():
                with self.subTest(grid=grid, form=form):
                    self.assertEqual(text.count(form), counts.get(grid, 0))


if __name__ == "__main__":
    ROOT, NVCC = ptx_test.root_and_nvcc()
    unittest.main()
