#!/usr/bin/env python3
"""What nvcc makes of the register family's words, for Turing to GeForce Blackwell, without a GPU.

    register_ptx_test.py ROOT

Compiles register_forms.cu for sm_75, sm_80, sm_89 and sm_120f, ptxas included, without spills, and
compares the instructions of its kernels with those that the PTX manual gives these targets; the
main loop in register_loops.cu for sm_80, sm_86 and sm_89, whose instructions are counted; and a
kernel of the family for each of these and sm_120f: by the seed of the run for some of these
targets, and, in script/campaign, every kernel for all. Where a
disassembler is there too, looks for the tensor core's own in the machine code. (nvcc 13 has no
sm_70: Volta's m8n8k4 is compiled for sm_75, which has it too.) Exits 77 where there is no nvcc.
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402
from samples import CAMPAIGN as ALL, sampled  # noqa: E402

ROOT = None
NVCC = None
DISASSEMBLER = None

VOLTA = {f"m8n8k4.{a}.{b}.{sums}.f16.f16.{sums}" for a in ("row", "col") for b in ("row", "col")
         for sums in ("f16", "f32")}
TURING = {"m16n8k8.row.col.f16.f16.f16.f16", "m16n8k8.row.col.f32.f16.f16.f32",
          "m8n8k16.row.col.s32.s8.s8.s32"}
AMPERE = {"m16n8k16.row.col.f16.f16.f16.f16", "m16n8k16.row.col.f32.f16.f16.f32",
          "m16n8k8.row.col.f32.bf16.bf16.f32", "m16n8k16.row.col.f32.bf16.bf16.f32",
          "m16n8k4.row.col.f32.tf32.tf32.f32", "m16n8k8.row.col.f32.tf32.tf32.f32",
          "m16n8k16.row.col.s32.s8.u8.s32", "m16n8k32.row.col.s32.s8.s8.s32",
          "m16n8k32.row.col.s32.u8.s8.s32", "m16n8k64.row.col.s32.s4.s4.s32"}
ADA = {"m16n8k16.row.col.f32.e4m3.e5m2.f32", "m16n8k32.row.col.f32.e4m3.e4m3.f32",
       "m16n8k32.row.col.f32.e5m2.e5m2.f32", "m16n8k32.row.col.f16.e4m3.e4m3.f16"}
SCALED = {f"m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.{a}.{b}.f32.ue8m0"
          for a, b in (("e4m3", "e4m3"), ("e5m2", "e5m2"), ("e2m3", "e2m3"), ("e3m2", "e3m2"),
                       ("e4m3", "e2m1"), ("e2m1", "e5m2"), ("e3m2", "e2m1"), ("e2m1", "e2m1"))}
SCALED |= {f"m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{x}.f32.e2m1.e2m1.f32.{scale}"
           for kind, x, scale in (("mxf4", "2X", "ue8m0"), ("mxf4nvf4", "2X", "ue8m0"),
                                  ("mxf4nvf4", "4X", "ue4m3"))}
EXPECTED = {75: VOLTA | TURING, 80: VOLTA | TURING | AMPERE, 89: VOLTA | TURING | AMPERE | ADA,
            120: VOLTA | TURING | AMPERE | ADA | SCALED}
SASS = {75: ("HMMA.884", "HMMA.1688", "IMMA.8816", "LDSM.16.M88.4", "LDSM.16.MT88.4"),
        80: ("HMMA.1688", "HMMA.16816", "IMMA.16832", "LDSM.16.M88.4", "LDGSTS"),
        89: ("HMMA.16816", "IMMA.16832", "QMMA.16832", "LDGSTS"),
        120: ("QMMA.SF.16832", "OMMA.SF.16864")}
COPIES = ("cp.async.ca.shared.global [%], [%], 4, %;", "cp.async.ca.shared.global [%], [%], 8, %;",
          "cp.async.cg.shared.global [%], [%], 16, %;", "cp.async.commit_group;",
          "cp.async.wait_group 3;")


# For the main loop: MMAs of a block of K, a warp's; ldmatrix of it, and of the first step; copies
# of a block, in the loop and ahead of it.
LOOPS = {80: ("m16n8k16.row.col.f32.bf16.bf16.f32", 2 * 4 * 8, (2 + 1) * (4 + 4), 2 * 6),
         86: ("m16n8k32.row.col.s32.s8.s8.s32", 2 * 4 * 8, (2 + 1) * (4 + 4), 2 * 8),
         89: ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 4 * 4 * 8, (4 + 1) * (4 + 4), 2 * 16)}


# A kernel of the table (kernel/registers/table.h) for each target, with what feeds it.
KERNELS = {75: ["registers_m16n8k8_f16_f16_64x64_any"], 80: ["registers_bf16_bf16_128x256"],
           86: ["registers_s8_bf16_64x64_any"], 89: ["registers_e4m3_bf16_64x64_any"],
           120: ["registers_bf16_bf16_128x128_tma_pp_clc", "registers_nvf4_bf16_128x128_tma",
                 "registers_mxf6e3m2xmxf4_bf16_128x128_tma"]}
# ldmatrix that gives narrow elements bytes, four matrices of 4 and of 6 bits.
PADDED = ("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64",
          "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b6x16_p32")
# What plain sm_120 has not: setmaxnreg.
FORMS = {120: "120f"}
# In script/campaign: all rows, as far as they are for the target.
NO_ROW, NO_KERNEL = "the table has no such row", "this is no kernel for the target"


def build(source, target, folder, *defines):
    """The PTX of a source and what ptxas says of it, which ignores setmaxnreg for calls' sake."""
    made = ptx_test.run(NVCC, "-std=c++20", "-O2", "--expt-relaxed-constexpr", f"-I{ROOT}",
                        f"-DTARGET={target}", *defines,
                        f"-arch=sm_{FORMS.get(target, target)}", "-cubin",
                        "-Xptxas=-v", "--keep", f"--keep-dir={folder}",
                        "-o", f"{folder}/forms.cubin",
                        ROOT / "tests/ptx" / source)
    if made.returncode != 0 or re.search(r"[1-9]\d* bytes spill|ignored", made.stderr):
        raise AssertionError(made.stderr)
    return pathlib.Path(folder, source).with_suffix(".ptx").read_text(), made.stderr


class Register(unittest.TestCase):
    def test_every_target_has_what_the_manual_says(self):
        for target, expected in sampled(EXPECTED.items(), 2):
            with tempfile.TemporaryDirectory() as folder, self.subTest(target=target):
                ptx, _ = build("register_forms.cu", target, folder)
                found = re.findall(r"mma\.sync\.aligned\.([\w.:]+)", ptx)
                self.assertEqual(sorted(found), sorted(expected))
                for matrices in ("x4.shared.b16", "x4.trans.shared.b16"):
                    self.assertIn(f"ldmatrix.sync.aligned.m8n8.{matrices}", ptx)
                for padded in PADDED:
                    (self.assertIn if target >= 120 else self.assertNotIn)(padded, ptx)
                plain = re.sub(r"%\w+", "%", ptx)
                for copy in COPIES:
                    (self.assertIn if target >= 80 else self.assertNotIn)(copy, plain)
                if DISASSEMBLER is not None:
                    sass = ptx_test.run(DISASSEMBLER, f"{folder}/forms.cubin").stdout
                    for name in SASS[target]:
                        self.assertIn(name, sass)

    def test_the_main_loop_fits_its_registers(self):
        for target, (mma, mmas, matrices, copies) in sampled(LOOPS.items(), 2):
            with tempfile.TemporaryDirectory() as folder, self.subTest(target=target):
                ptx, said = build("register_loops.cu", target, folder)
                self.assertEqual(ptx.count(f"mma.sync.aligned.{mma} "), mmas)
                self.assertEqual(ptx.count("ldmatrix.sync.aligned.m8n8.x4.shared.b16"), matrices)
                self.assertEqual(ptx.count("cp.async.cg.shared.global"), copies)
                # One barrier ahead of the loop, and one in it.
                self.assertEqual(ptx.count("barrier.cta.sync.aligned"), 2)
                self.assertEqual(ptx.count("cp.async.wait_group"), 2)
                registers = int(re.search(r"Used (\d+) registers", said)[1])
                self.assertGreater(registers, 128)
                if DISASSEMBLER is not None:
                    sass = ptx_test.run(DISASSEMBLER, f"{folder}/forms.cubin").stdout
                    for name in ("LDGSTS", "LDSM.16.M88.4"):
                        self.assertIn(name, sass)

    def check_kernel(self, target, row):
        with tempfile.TemporaryDirectory() as folder, self.subTest(target=target, row=row):
            ptx, said = build("register_kernels.cu", target, folder, f"-DROW={row}")
            self.assertRegex(said, r"Used \d+ registers")
            if target == 120:
                self.check_producer(ptx)
                return
            # Nothing of a later target, but in code that a configuration leaves out.
            for later in ("stmatrix", "cp.async.bulk", "griddepcontrol", "clusterid"):
                self.assertNotIn(later, ptx)
            self.assertIn("mma.sync.aligned.m", ptx)
            (self.assertIn if target >= 80 else self.assertNotIn)("cp.async", ptx)

    def check_producer(self, ptx):
        if "cp.async.bulk" not in ptx:
            return
        self.assertIn("setmaxnreg.inc.sync.aligned.u32 232", ptx)
        self.assertIn("stmatrix", ptx)
        loads = re.findall(r"cp\.async\.bulk\.tensor\.3d\.(\S+?)\.global", ptx)
        # A load to .shared::cluster would be a system call.
        self.assertEqual(set(loads), {"shared::cta"})

    def test_kernels_fit_their_registers(self):
        kernels = [(target, name) for target, names in KERNELS.items() for name in names]
        for target, name in sampled(kernels, 3):
            self.check_kernel(target, f'row_named("{name}")')

    @unittest.skipUnless(ALL, "all of them only in script/campaign")
    def test_all_kernels_fit_their_registers(self):
        for target in KERNELS:
            compiled, row = 0, 0
            while True:
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        build("register_kernels.cu", target, folder, f"-DROW={row}")
                        compiled += 1
                    except AssertionError as error:
                        if NO_ROW in str(error):
                            break
                        if NO_KERNEL not in str(error):
                            raise
                row += 1
            self.assertGreater(compiled, 3, target)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    DISASSEMBLER = shutil.which("nvdisasm") or shutil.which("/usr/local/cuda/bin/nvdisasm")
    if NVCC is None:
        print("did not run: no nvcc here")
        sys.exit(77)
    unittest.main()
