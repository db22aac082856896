#!/usr/bin/env python3
"""What nvcc makes of every form of the sm_100 instructions in isa/, without a GPU.

    isa_test.py ROOT

Compiles isa_forms.cu for sm_100a and sm_103a, ptxas included, and looks for each form in the PTX of
the kernel that has it; where nvdisasm is there too, for the tensor core's words in the machine
code. Exits 77 where there is no nvcc.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402

ROOT = None
NVCC = None
DISASSEMBLER = None

LOAD = "cp.async.bulk.tensor.{rank}d.shared::{to}.global.mbarrier::complete_tx::bytes"
GATHER = ("cp.async.bulk.tensor.2d.shared::{to}.global.tile::gather4"
          ".mbarrier::complete_tx::bytes")
SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group ["
COMMIT = "tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster"
SCALED = (("mxf8f6f4", 32), ("mxf4", 32), ("mxf4nvf4", 32), ("mxf4nvf4", 16))
COPIES = ("32x128b.warpx4", "128x256b", "128x128b", "4x256b", "64x128b.warpx2::02_13",
          "64x128b.warpx2::01_23")
# The machine's own words, where they can be read. MMAs of 16 bits, of 8 bits and less, with scales
# too (behind the descriptor of the instruction), of packed 4 bits with a scale each 32 and each 16;
# copies to tensor memory.
SCALES = r"[^;\n]*idesc\[UR\d+\], tmem"
SASS = (r"UTCHMMA\b", r"UTCQMMA\b", rf"UTCQMMA(\.2CTA)? {SCALES}", rf"UTCOMMA(\.2CTA)? {SCALES}",
        rf"UTCOMMA(\.2CTA)?\.{{sixteen}} {SCALES}", r"UTCCP\.T\.S(\.2CTA)?\.4x32dp128bit ",
        r"UTCCP\S*2x64dp128bit_lw01_lw23\.U6x16P32 ", r"UTCCP\S*\.U4x16P64 ")
SIXTEEN = {"100a": "4X", "103a": "BLOCK16"}
CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"


def forms(group):
    """The mnemonics that the kernel of this group must contain."""
    own = f"tcgen05.{{}}.cta_group::{group}"
    found = [own.format(name) for name in ("alloc", "dealloc", "relinquish_alloc_permit")]
    found += [own.format("mma") + f".kind::{kind} " for kind in ("f16", "tf32", "f8f6f4")]
    for kind, block in SCALED:
        scaled = own.format("mma") + f".kind::{kind}.block_scale.block{block} [%r"
        found += [scaled]
    for shape in COPIES:
        copy = own.format("cp") + f".{shape}"
        found += [f"{copy} [", f"{copy}.b8x16.b4x16_p64 [", f"{copy}.b8x16.b6x16_p32 ["]
    commit = COMMIT.format(group=group)
    found += [commit + ".b64", commit + ".multicast::cluster.b64"]
    pair = ".cta_group::2" if group == 2 else ""
    for rank in (1, 2, 3):
        to_all = LOAD.format(rank=rank, to="cluster")
        load = to_all if group == 2 else LOAD.format(rank=rank, to="cta")
        found += [f"{load}{pair} [", f"{to_all}.multicast::cluster{pair} ["]
    to_all = GATHER.format(to="cluster")
    gather = to_all if group == 2 else GATHER.format(to="cta")
    found += [f"{gather}{pair} [", f"{to_all}.multicast::cluster{pair} [", SCATTER]
    for way in ("ld", "st"):
        found += [f"tcgen05.{way}.sync.aligned.32x32b.x{1 << i}.b32" for i in range(8)]
        found += [f"tcgen05.{way}.sync.aligned.16x256b.x{1 << i}.b32" for i in range(6)]
        found += [f"tcgen05.wait::{way}.sync.aligned"]
    found += ["tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"]
    found += [CANCEL + ".b128", CANCEL + ".multicast::cluster::all.b128"]
    query = "clusterlaunchcontrol.query_cancel."
    return found + [query + "is_canceled.pred.b128", query + "get_first_ctaid::x.b32.b128"]


class Forms(unittest.TestCase):
    def test_every_form_compiles_and_is_there(self):
        for architecture in ptx_test.ARCHITECTURES:
            with tempfile.TemporaryDirectory() as folder:
                made = subprocess.run(
                    [NVCC, "-std=c++20", "-O2", f"-I{ROOT}", "--expt-relaxed-constexpr", "-cubin",
                     f"-arch=sm_{architecture}", f"--keep-dir={folder}", "--keep",
                     "-o", f"{folder}/forms.cubin", ROOT / "tests/ptx/isa_forms.cu"],
                    capture_output=True, text=True, check=False)
                self.assertEqual(made.returncode, 0, made.stderr)
                kernels = ptx_test.entries(pathlib.Path(folder, "isa_forms.ptx").read_text())
                if DISASSEMBLER is not None:
                    sass = ptx_test.run(DISASSEMBLER, "-c", f"{folder}/forms.cubin").stdout
                    for word in SASS:
                        word = word.replace("{sixteen}", SIXTEEN[architecture])
                        with self.subTest(architecture=architecture, sass=word):
                            self.assertIsNotNone(re.search(word, sass))
            for group in (1, 2):
                for form in forms(group):
                    with self.subTest(architecture=architecture, group=group, form=form):
                        self.assertIn(form, kernels[f"group_{group}"])
                # One of every kind of MMA has A in shared memory, and one in tensor memory.
                for kind in ("f16 ", "tf32 ", "f8f6f4 ", *(
                        f"{kind}.block_scale.block{block} " for kind, block in SCALED)):
                    from_tmem = rf"mma\.cta_group::{group}\.kind::{kind}\[%r\d+\], \["
                    with self.subTest(architecture=architecture, group=group, form=from_tmem):
                        self.assertRegex(kernels[f"group_{group}"], from_tmem)

    def test_rows_by_number_are_refused_on_sm_120(self):
        # ptxas has a form of the gather there, so the header says no.
        for use, why in (("isa::tensor_gather4_to(0, 1024, map, 8, 0, {1, 2, 3, 4})",
                          "tensor_gather4_to is for sm_100, sm_103 and sm_110"),
                         ("isa::tensor_scatter4(map, 1024, 0, {1, 2, 3, 4})",
                          "'.tile::scatter4' not supported on .target 'sm_120a'")):
            with self.subTest(use=use), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder, "use.cu")
                source.write_text(
                    '#include "warpwright/isa/tma.h"\nusing namespace warpwright;\n'
                    "__global__ void use(const __grid_constant__ isa::TensorMap map) {\n"
                    f"  {use};\n}}\n")
                made = subprocess.run(
                    [NVCC, "-std=c++20", f"-I{ROOT}", "--expt-relaxed-constexpr", "-cubin",
                     "-arch=sm_120a", "-o", f"{folder}/use.cubin", source],
                    capture_output=True, text=True, check=False)
                self.assertNotEqual(made.returncode, 0)
                self.assertIn(why, made.stderr)

    def test_the_groups_are_told_apart(self):
        self.assertTrue(set(forms(1)) - set(forms(2)))
        self.assertGreater(len(forms(1)), 65)


if __name__ == "__main__":
    ROOT, NVCC = ptx_test.root_and_nvcc()
    DISASSEMBLER = ptx_test.cuda_program("nvdisasm")
    unittest.main()
