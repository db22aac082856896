#!/usr/bin/env python3
"""What nvcc makes of the Blackwell kernels, for sm_100a and sm_103a, without a GPU.

    ptx_test.py ROOT

Compiles configurations of kernel/blackwell/table.h (with WARPWRIGHT_CAMPAIGN=1 every one, for both
architectures; else a sixth of them by the seed of the run, each for one) to PTX, lets ptxas
assemble it without spills, and looks for the instructions that make the configuration what it is;
each is also looked for where it must not be. Where a disassembler is there too, the machine code is
read as well. Exits 77 where there is no nvcc.
"""
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402

ROOT = None
NVCC = None
DISASSEMBLER = None
ARCHITECTURES = ("100a", "103a")

SOURCE = """
#include "warpwright/kernel/blackwell/gemm.h"
#include "warpwright/kernel/blackwell/table.h"
using namespace warpwright;
"""
ENTRY = """
extern "C" __global__ void __launch_bounds__(kernel::threads(kernel::{tag}::config), 1)
    {tag}(const __grid_constant__ kernel::BlackwellGemm<kernel::{tag}>::Params params) {{
  kernel::BlackwellGemm<kernel::{tag}>::run(params);
}}
"""

# An instruction, and for which configurations it must be in the PTX (in all others it must not).
EXPECTED = [
    (r"tcgen05\.mma\.cta_group::2\.kind::", lambda c: c["pair"]),
    (r"tcgen05\.mma\.cta_group::1\.kind::", lambda c: not c["pair"]),
    (r"tcgen05\.mma\.cta_group::[12]\.kind::f16 ", lambda c: c["kind"] == "f16"),
    (r"tcgen05\.mma\.cta_group::[12]\.kind::f8f6f4 ", lambda c: c["kind"] == "f8f6f4"),
    (r"cp\.async\.bulk\.tensor\.3d\.shared::cluster\.global\.mbarrier::complete_tx::bytes"
     r"\.multicast::cluster\.cta_group::2", lambda c: c["pair"]),
    (r"cp\.async\.bulk\.tensor\.3d\.shared::cluster\.global\.mbarrier::complete_tx::bytes"
     r"\.multicast::cluster \[",
     lambda c: not c["pair"]),
    # Gates and ups in one box, tokens that may be by index, groups found by a warp together.
    (r"cp\.async\.bulk\.tensor\.4d\.shared::cluster", lambda c: c["gated"]),
    (r"cp\.async\.bulk\.tensor\.2d\.shared::cluster\S*\.tile::gather4", lambda c: c["index"]),
    (r"vote\.sync\.ballot", lambda c: c["groups"]),
    (r"tcgen05\.commit\.cta_group::2\S*\.multicast::cluster\.b64", lambda c: c["pair"]),
    (r"tcgen05\.commit\.cta_group::1\S*\.multicast::cluster\.b64", lambda c: not c["pair"]),
    (r"tcgen05\.alloc\.cta_group::2", lambda c: c["pair"]),
    (r"tcgen05\.dealloc\.cta_group::1", lambda c: not c["pair"]),
    (r"kind::mxf8f6f4\.block_scale\.block32 ", lambda c: c["kind"] == "mxf8f6f4"),
    # A launch says whether scales are mxf4's or nvf4's.
    (r"kind::mxf4nvf4\.block_scale\.block32 ", lambda c: c["kind"] == "mxf4nvf4"),
    (r"kind::mxf4nvf4\.block_scale\.block16 ", lambda c: c["kind"] == "mxf4nvf4"),
    (r"tcgen05\.cp\.cta_group::1\.32x128b\.warpx4", lambda c: c["scales"] and not c["pair"]),
    (r"tcgen05\.cp\.cta_group::2\.32x128b\.warpx4", lambda c: c["scales"] and c["pair"]),
    (r"tcgen05\.ld\.sync\.aligned\.16x256b", lambda c: not c["codes"]),
    (r"tcgen05\.ld\.sync\.aligned\.32x32b", lambda c: c["codes"]),
    (r"cvt\.rn\.satfinite\.e2m1x2", lambda c: c["result"] == "e2m1"),
    (r"clusterlaunchcontrol\.try_cancel\S*\.multicast::cluster::all",
     lambda c: c["tiles"] == "clc"),
    (r"clusterlaunchcontrol\.query_cancel\.is_canceled",
     lambda c: c["tiles"] == "clc"),
    (r"\bwgmma\.", lambda c: False),
    # Parts of tiles through the workspace.
    (r"(ld|atom|red)\.\S*acquire\.gpu|ld\.acquire\.gpu", lambda c: c["splits"]),
]
# The same in machine code, where it can be read.
EXPECTED_SASS = [
    (r"\bUTC\w*MMA\b", lambda c: True),
    (r"\bUTCCP\b", lambda c: c["scales"]),
    (r"\bUTCOMMA\b", lambda c: c["kind"] == "mxf4nvf4"),
    # A scale each 16: sm_100's word, and sm_103's.
    (r"\bUTCOMMA\S*\.(4X|BLOCK16)", lambda c: c["kind"] == "mxf4nvf4"),
    (r"\bUTCQMMA\b", lambda c: c["kind"] in ("f8f6f4", "mxf8f6f4")),
    (r"\bUTMALDG\S*\.MULTICAST", lambda c: True),
]


def cuda_program(name):
    return shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")


def root_and_nvcc():
    """The project, which is the first argument, and the compiler; skips the test without one."""
    nvcc = cuda_program("nvcc")
    if nvcc is None:
        print("did not run: no nvcc here")
        sys.exit(77)
    return pathlib.Path(sys.argv.pop(1)).resolve(), nvcc


def table_rows(root, nvcc, family, kernels):
    """The rows of a family's table as the build gives them to its sources, and their names."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "kernel_rows"
        made = run(nvcc, "-std=c++20", f"-I{root}", "-o", program, root / "cmake/kernel_rows.cpp")
        assert made.returncode == 0, made.stderr
        assert run(program, family, kernels, "1", folder).returncode == 0
        text = (pathlib.Path(folder) / f"{family}_0.h").read_text()
    return text, re.findall(r"struct (\w+) :", text)


@functools.cache
def configurations():
    """Those of the table, which follow from the names; and the table's rows as C++."""
    rows, names = table_rows(ROOT, NVCC, "blackwell", "all")
    found = []
    for name in names:
        _, kind, result, ctas, *special = name.split("_")
        kind = {"e4m3xmx": "mxf8f6f4"}.get(kind, kind)  # plain tokens by any format of the kind
        groups = any(word.startswith("grouped") for word in special)
        found.append({"tag": name, "kind": kind, "result": result, "pair": ctas == "pair",
                      "tiles": "clc" if "clc" in special else "others",
                      "splits": "sk" in special,
                      "gated": "gated" in special, "groups": groups,
                      "index": groups and ctas == "one" and "bs" not in special,
                      "scales": kind in ("mxf8f6f4", "mxf4nvf4"),
                      "codes": result in ("mxf8", "e2m1")})
    return found, rows


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def entries(ptx):
    """The text of each kernel in a PTX file."""
    parts = re.split(r"\.entry (\w+)", ptx)
    return dict(zip(parts[1::2], parts[2::2]))


def machine_code(disassembler, cubin):
    """The machine code of each kernel in a file, by cuobjdump or nvdisasm."""
    is_cuobjdump = "cuobjdump" in pathlib.Path(disassembler).name
    text = run(disassembler, "-sass" if is_cuobjdump else "-c", cubin).stdout
    parts = re.split(r"Function : (\w+)" if is_cuobjdump else r"\n\.text\.(\w+):", text)
    return dict(zip(parts[1::2], parts[2::2]))


class Ptx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, group, architecture):
        """PTX of the configurations, and ptxas's remarks and machine code."""
        source = self.folder / "kernels.cu"
        source.write_text(SOURCE + configurations()[1] + "".join(ENTRY.format(**c) for c in group))
        ptx = self.folder / "kernels.ptx"
        made = run(NVCC, "-std=c++20", "-O2", f"-I{ROOT}", "--expt-relaxed-constexpr", "-ptx",
                   f"-arch=compute_{architecture}", "-o", ptx, source)
        self.assertEqual(made.returncode, 0, made.stderr)
        cubin = self.folder / "kernels.cubin"
        # nvcc finds the ptxas that belongs to it.
        assembled = run(NVCC, "-cubin", f"-arch=sm_{architecture}", "-Xptxas=-v", "-o", cubin, ptx)
        self.assertEqual(assembled.returncode, 0, assembled.stderr)
        return ptx.read_text(), assembled.stderr, cubin

    def look_for(self, expected, text, configuration, where):
        for pattern, wanted in expected:
            with self.subTest(tag=configuration["tag"], where=where, pattern=pattern):
                found = re.search(pattern, text) is not None
                self.assertEqual(found, wanted(configuration))

    def check(self, kind, result):
        group = [c for c in configurations()[0] if (c["kind"], c["result"]) == (kind, result)]
        self.assertNotEqual(group, [])
        architectures = ARCHITECTURES
        if not samples.CAMPAIGN:
            if group[0]["scales"] and result in ("f16", "f32"):
                self.skipTest("a part of script/campaign")
            group = samples.sampled(group, 3)
            architectures = samples.sampled(ARCHITECTURES, 2)
        for architecture in architectures:
            ptx, remarks, cubin = self.compile(group, architecture)
            spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", remarks)
            self.assertEqual(set(spills), {("0", "0")}, remarks)
            kernels = entries(ptx)
            self.assertEqual(set(kernels), {c["tag"] for c in group})
            for c in group:
                self.look_for(EXPECTED, kernels[c["tag"]], c, f"PTX of sm_{architecture}")
            if DISASSEMBLER is None:
                continue
            words = machine_code(DISASSEMBLER, cubin)
            for c in group:
                self.look_for(EXPECTED_SASS, words[c["tag"]], c, f"SASS of sm_{architecture}")

    def test_a_missing_instruction_is_noticed(self):
        """The patterns tell configurations apart: the PTX of one is not that of another."""
        everything = {"pair": True, "kind": "f16", "tiles": "clc", "splits": True,
                      "gated": True, "index": True, "groups": True,
                      "scales": True, "codes": False, "result": "bf16"}
        nothing = "ret;"
        misses = [p for p, wanted in EXPECTED
                  if wanted(everything) and re.search(p, nothing) is None]
        self.assertEqual(len(misses), sum(1 for _, wanted in EXPECTED if wanted(everything)))
        self.assertGreater(len(misses), 6)


def add_case(kind, result):
    setattr(Ptx, f"test_{kind}_{result}", lambda self: self.check(kind, result))


if __name__ == "__main__":
    ROOT, NVCC = root_and_nvcc()
    DISASSEMBLER = cuda_program("cuobjdump") or cuda_program("nvdisasm")
    if DISASSEMBLER is None:
        print("the machine code is not read: no cuobjdump and no nvdisasm here (pip has "
              "nvidia-cuda-nvdisasm)")
    for one in samples.sampled(sorted({(c["kind"], c["result"]) for c in configurations()[0]}), 2):
        add_case(*one)
    unittest.main()
