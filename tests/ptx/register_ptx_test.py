#!/usr/bin/env python3
"""What nvcc makes of the register family's words, for Turing, Ampere and Ada, without a GPU.

    register_ptx_test.py ROOT

Compiles register_forms.cu for sm_75, sm_80 and sm_89, ptxas included, without spills, and compares
the instructions of its kernels with those that the PTX manual gives these targets; where a
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
EXPECTED = {75: VOLTA | TURING, 80: VOLTA | TURING | AMPERE, 89: VOLTA | TURING | AMPERE | ADA}
SASS = {75: ("HMMA.884", "HMMA.1688", "IMMA.8816", "LDSM.16.M88.4", "LDSM.16.MT88.4"),
        80: ("HMMA.1688", "HMMA.16816", "IMMA.16832", "LDSM.16.M88.4", "LDGSTS"),
        89: ("HMMA.16816", "IMMA.16832", "QMMA.16832", "LDGSTS")}
COPIES = ("cp.async.ca.shared.global [%], [%], 4, %;", "cp.async.ca.shared.global [%], [%], 8, %;",
          "cp.async.cg.shared.global [%], [%], 16, %;", "cp.async.commit_group;",
          "cp.async.wait_group 3;")


class Register(unittest.TestCase):
    def test_every_target_has_what_the_manual_says(self):
        for target, expected in EXPECTED.items():
            with tempfile.TemporaryDirectory() as folder, self.subTest(target=target):
                made = ptx_test.run(NVCC, "-std=c++20", "-O2", "--expt-relaxed-constexpr",
                                    f"-I{ROOT}", f"-DTARGET={target}", f"-arch=sm_{target}",
                                    "-cubin", "-Xptxas=-v", "--keep", f"--keep-dir={folder}",
                                    "-o", f"{folder}/forms.cubin",
                                    ROOT / "tests/ptx/register_forms.cu")
                self.assertEqual(made.returncode, 0, made.stderr)
                self.assertNotRegex(made.stderr, r"[1-9]\d* bytes spill")
                ptx = pathlib.Path(folder, "register_forms.ptx").read_text()
                found = re.findall(r"mma\.sync\.aligned\.([\w.]+)", ptx)
                self.assertEqual(sorted(found), sorted(expected))
                for matrices in ("x4.shared.b16", "x4.trans.shared.b16"):
                    self.assertIn(f"ldmatrix.sync.aligned.m8n8.{matrices}", ptx)
                plain = re.sub(r"%\w+", "%", ptx)
                for copy in COPIES:
                    (self.assertIn if target >= 80 else self.assertNotIn)(copy, plain)
                if DISASSEMBLER is not None:
                    sass = ptx_test.run(DISASSEMBLER, f"{folder}/forms.cubin").stdout
                    for name in SASS[target]:
                        self.assertIn(name, sass)


if __name__ == "__main__":
    ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
    NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    DISASSEMBLER = shutil.which("nvdisasm") or shutil.which("/usr/local/cuda/bin/nvdisasm")
    if NVCC is None:
        print("did not run: no nvcc here")
        sys.exit(77)
    unittest.main()
