#!/usr/bin/env python3
"""The build's lists of words: what is taken, and what is refused with the nearest.

    build_options_test.py CMAKE KERNEL_ROWS

WARPWRIGHT_CUDA_ARCHS as CMake reads it, and WARPWRIGHT_KERNELS as the program that the build has
for it. Neither needs nvcc.
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CMAKE = KERNEL_ROWS = None


def archs(words):
    ran = subprocess.run([CMAKE, f"-DARCHS={words}", "-P", HERE / "check_archs.cmake"],
                         capture_output=True, text=True, check=False)
    return ran.returncode, " ".join(ran.stderr.split())


def rows(kernels, family="registers"):
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run([KERNEL_ROWS, family, kernels, "1", folder], capture_output=True,
                             text=True, check=False)
        return ran.returncode, ran.stderr


class Words(unittest.TestCase):
    def test_architectures_become_flags(self):
        for words, flags in (
                ("75;80;86;89", ("compute_75,code=sm_75", "compute_80,code=sm_80",
                                 "compute_86,code=sm_86", "compute_89,code=sm_89")),
                ("90a;100a;120a;121f", ("compute_90a,code=sm_90a", "compute_100a,code=sm_100a",
                                        "compute_120a,code=sm_120a", "compute_121f,code=sm_121f")),
                ("80-virtual;90a", ("compute_80,code=compute_80", "compute_90a,code=sm_90a"))):
            status, said = archs(words)
            self.assertEqual(said, ";".join(f"SHELL:-gencode arch={flag}" for flag in flags))
            self.assertEqual(status, 0)

    def test_others_are_refused_with_the_nearest(self):
        for words, nearest in (("90", "90a"), ("100", "100a"), ("120", "120a"), ("sm_80", "80"),
                               ("80-real", "80"), ("compute_86", "86-virtual"), ("87", "86"),
                               ("88-virtual", "86-virtual"), ("90a-virtual", "80-virtual"),
                               ("110", "80-virtual"), ("native", "90a"), ("80;9", "75"),
                               ("", "90a")):
            with self.subTest(words):
                status, said = archs(words)
                self.assertEqual(status, 1)
                self.assertRegex(said, rf"the nearest is {nearest}( \(H100 and H200\))?\. ")
                self.assertEqual(archs(nearest)[0], 0)
        for words in ("70", "sm_70", "80;70", "70-virtual"):
            status, said = archs(words)
            self.assertEqual(status, 1)
            self.assertIn("nvcc 13 has no sm_70: kernels for V100 run on the model (--as v100)",
                          said)

    def test_names_of_kernels(self):
        for kernels in ("common", "all", "common,hopper_bf16_bf16_128x128_pp",
                        "registers_bf16_bf16_128x128,"):
            self.assertEqual(rows(kernels), (0, ""))
        for kernels, nearest in (
                ("registers_nvf4_bf16_128x128_tma_clc", "registers_nvf4_bf16_128x128_tma"),
                ("common,hoper_bf16_bf16_128x128_pp", "hopper_bf16_bf16_128x128_pp"),
                ("blackwell_f16_bf16_pair_cl", "blackwell_f16_bf16_pair_clc"), ("al", "all")):
            status, said = rows(kernels)
            self.assertEqual(status, 2)
            self.assertTrue(said.endswith(f"the nearest is {nearest}.\n"), said)
            self.assertEqual(rows(nearest), (0, ""))


if __name__ == "__main__":
    CMAKE, KERNEL_ROWS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
