#!/usr/bin/env python3
"""The GPU side compiles for architectures other than sm_90, without a GPU.

    architectures_test.py ROOT KERNEL_ROWS BUILD

Configures the project in BUILD as a user does who names an architecture, with two kernels of each
family that it has, and hands nvcc every source with kernels, as the build would. By turns, drawn
from the commit: one of sm_75, sm_80, sm_100a and sm_120a, and device code only. With
WARPWRIGHT_CAMPAIGN=1 builds all objects of warpwright_device, through script/nvcc-launcher with its
bounds, for every word of WARPWRIGHT_CUDA_ARCHS and for lists, and with the first and the last of
these what tests launch on a GPU. KERNEL_ROWS is the program of a build of ROOT. Exits 77 where
there is no nvcc.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402

ROOT = NVCC = KERNEL_ROWS = BUILD = None
ALL = os.environ.get("WARPWRIGHT_CAMPAIGN") == "1"

REGISTERS = ("registers_bf16_bf16_128x128", "registers_s8_bf16_64x64_any")
HOPPER = ("hopper_bf16_bf16_128x128_pp", "hopper_bf16_bf16_128x64_sw")
BLACKWELL = ("blackwell_f16_bf16_one_clc", "blackwell_mxf4nvf4_bf16_pair_clc")
GEFORCE = ("registers_bf16_bf16_128x128_tma_pp", "registers_nvf4_bf16_128x128_tma")
TURING = ("registers_m16n8k8_f16_f16_64x64_any", "registers_bf16_bf16_64x64_any")
TURNS = {"80": REGISTERS, "100a": BLACKWELL, "120a": GEFORCE, "75": TURING}
WORDS = ("75", "80", "86", "89", "90a", "100a", "100f", "103a", "103f", "120a", "120f", "121a",
         "121f", "75-virtual", "80-virtual", "86-virtual", "89-virtual", "80;90a;100a",
         "75;80;86;89;90a;100a;103a;120a;80-virtual")
FAMILIES = ("hopper", "blackwell", "registers")


def run(*command, **how):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          **how)


def architecture_of_this_commit():
    commit = run("git", "-C", ROOT, "rev-parse", "HEAD").stdout.strip()
    return list(TURNS)[int(commit or "0", 16) % len(TURNS)]


def without_nvcc_s_launcher(command):
    words = shlex.split(command)
    return words[next(i for i, w in enumerate(words) if w.endswith("nvcc")):]


class Architectures(unittest.TestCase):
    def configure(self, folder, architectures, kernels, tests="OFF"):
        made = run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
                   "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_UNITY_BUILD=ON",
                   "-DWARPWRIGHT_CUDA=ON", "-DWARPWRIGHT_WERROR=ON",
                   f"-DWARPWRIGHT_TESTS={tests}", "-DWARPWRIGHT_CLI=OFF",
                   "-DWARPWRIGHT_PYTHON=OFF", "-DWARPWRIGHT_INSTALL=OFF",
                   f"-DWARPWRIGHT_CUDA_ARCHS={architectures}",
                   f"-DWARPWRIGHT_KERNELS={','.join(kernels)}",
                   env={**os.environ, "CUDACXX": NVCC})
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        entries = json.loads((folder / "compile_commands.json").read_text())
        return [e for e in entries if e["file"].endswith(".cu") and
                "warpwright/CMakeFiles/warpwright_reference" not in e["command"]]

    @unittest.skipIf(ALL, "script/campaign builds all")
    def test_the_sources_with_kernels_compile(self):
        architecture = architecture_of_this_commit()
        print(f"for sm_{architecture}, by turns", flush=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as made:
            folder = pathlib.Path(made)
            entries = self.configure(folder, architecture, TURNS[architecture])
            for family in FAMILIES:
                written = run(KERNEL_ROWS, family, ",".join(TURNS[architecture]), 1,
                              folder / "kernels")
                self.assertEqual(written.returncode, 0, written.stderr)
            compiled = []
            for entry in entries:
                source = pathlib.Path(entry["file"])
                if not re.search(r'__global__|\.cuh"', source.read_text()):
                    continue
                words = without_nvcc_s_launcher(entry["command"])
                words[words.index("-c")] = "-cubin"
                words[words.index("-o") + 1] = "kernels.cubin"
                if ROOT in source.parents:
                    words.append("-Xcicc=-O1")  # a third of the time; GEMMs are compiled as ever
                ran = run(*words, cwd=entry["directory"])
                self.assertEqual(ran.returncode, 0, f"{source.name}: {ran.stdout}{ran.stderr}")
                self.assertIn(f"sm_{architecture}", ran.stdout + ran.stderr)
                compiled.append(source.name)
            self.assertIn("cuda_kernels.cu", compiled)
            self.assertTrue([name for name in compiled if name.endswith("_0.cu")], compiled)
            self.assertNotIn("calibrate.cu", compiled)  # it is Hopper's

    @unittest.skipUnless(ALL, "all of them only in script/campaign")
    def test_every_word_builds_whole(self):
        everything = sorted({k for kernels in TURNS.values() for k in kernels} | {*HOPPER})
        for words in WORDS:
            with tempfile.TemporaryDirectory(dir=BUILD) as made, self.subTest(words):
                folder = pathlib.Path(made)
                tests = "ON" if words in (WORDS[0], WORDS[-1]) else "OFF"  # those on a GPU too
                entries = self.configure(folder, words, everything, tests)
                objects = [re.search(r" -o (\S+)", e["command"])[1] for e in entries]
                built = run("ninja", "-C", folder, *objects)
                self.assertEqual(built.returncode, 0, built.stdout[-4000:])


if __name__ == "__main__":
    ROOT, NVCC = ptx_test.root_and_nvcc()
    KERNEL_ROWS, BUILD = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
    BUILD.mkdir(parents=True, exist_ok=True)
    unittest.main()
