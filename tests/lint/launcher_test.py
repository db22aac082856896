#!/usr/bin/env python3
"""script/nvcc-launcher stops developers at what ptxas only remarks on, and tells others.

    launcher_test.py LAUNCHER            with a stand-in for nvcc that prints what ptxas prints
    launcher_test.py LAUNCHER --nvcc P   with nvcc itself, on the .cu files beside this one
"""
import pathlib
import stat
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LAUNCHER = None
NVCC = None

INFO = "ptxas info    : "
ENTRY = INFO + "Compiling entry function '_Z4goodPf' for 'sm_90a'\n"
CLEAN = (INFO + "0 bytes gmem\n" + ENTRY + INFO + "Function properties for _Z4goodPf\n"
         "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n" +
         INFO + "Used 154 registers, used 3 barriers, 1024 bytes smem\n")
SPILLED = CLEAN.replace("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
                        "64 bytes stack frame, 48 bytes spill stores, 52 bytes spill loads")
SERIALISED = CLEAN + (
    INFO + "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "insufficient register resources for the wgmma pipeline in the function '_Z4goodPf'\n")
SETMAXNREG = ENTRY + INFO + (
    "(C7508) Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register "
    "requirements.\n")


def cubin(lines, architecture=90):
    """What the launcher reads of one: an ELF file with the code of `_Z4goodPf`."""
    names = b"\0.shstrtab\0.text._Z4goodPf\0"
    sections = 64 + len(names)
    header = bytearray(64)
    struct.pack_into("<Q", header, 0x28, sections)
    struct.pack_into("<I", header, 0x30, 0x6000004 | architecture << 8)
    struct.pack_into("<HHH", header, 0x3A, 64, 2, 0)
    rows = [struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0),
            struct.pack("<IIQQQQIIQQ", 11, 1, 6, 0, 0, 16 * lines, 0, 0, 128, 0)]
    return bytes(header) + names + b"".join(rows)


class Launcher(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.table = self.folder / "registers.tsv"

    def launch(self, *arguments, errors=True):
        how = ["--errors"] if errors else []
        return subprocess.run([LAUNCHER, f"--table={self.table}", *how, *map(str, arguments)],
                              capture_output=True, text=True, check=False, cwd=self.folder)

    def compile(self, said, *more, status=0, out="a.o", lines=48, architecture=90,
                errors=True):
        """Compiles with a stand-in that says what it is given, writes the object, and leaves the
        cubin in the folder that its last argument names."""
        fake = self.folder / "nvcc"
        (self.folder / "cubin").write_bytes(cubin(lines, architecture))
        (self.folder / "said").write_text(said, encoding="utf-8")
        fake.write_text(f'#!/bin/sh\ncat "{self.folder}/said" >&2\n: >{out}\n'
                        f'for kept; do :; done\ncp "{self.folder}/cubin" "$kept/a.cubin"\n'
                        f"exit {status}\n", encoding="utf-8")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
        return self.launch(fake, "-c", "a.cu", "-o", out, *more, errors=errors)

    def rows(self):
        return self.table.read_text(encoding="utf-8").splitlines()[1:]

    def test_a_clean_kernel_passes_quietly_into_the_table(self):
        ran = self.compile(CLEAN)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        self.assertEqual(self.rows(), ["good(float*)\tsm_90a\t154\t48\t0\t0\t0\t1024\ta.o"])

    def test_the_table_is_sorted_and_keeps_one_entry_an_object(self):
        self.compile(CLEAN, out="b.o")
        self.compile(CLEAN, out="a.o")
        self.compile(CLEAN.replace("154", "99"), out="b.o")
        self.assertEqual({(r.split("\t")[2], r.split("\t")[8]) for r in self.rows()},
                         {("154", "a.o"), ("99", "b.o")})
        self.assertEqual(self.rows(), sorted(self.rows()))
        (self.folder / "a.o").unlink()
        self.compile(CLEAN, out="b.o")
        self.assertEqual(len(self.rows()), 1)

    def test_serialised_wgmma_fails_and_leaves_no_object(self):
        ran = self.compile(SERIALISED)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("good(float*): ptxas remarks C7510; every wgmma of this kernel waits",
                      ran.stderr)
        self.assertFalse((self.folder / "a.o").exists())

    def test_ignored_setmaxnreg_fails_and_names_the_kernel_being_compiled(self):
        ran = self.compile(SETMAXNREG)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("good(float*): ptxas remarks C7508; the registers are not moved", ran.stderr)

    def test_a_spill_fails(self):
        ran = self.compile(SPILLED)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("good(float*) (sm_90a): 48 bytes of registers are spilled", ran.stderr)
        self.assertFalse(self.table.exists())

    def test_a_long_kernel_fails_but_in_builds_that_look_into_it(self):
        ran = self.compile(CLEAN, lines=6201)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("good(float*) (sm_90a): 6201 lines of SASS, more than 6200", ran.stderr)
        self.assertEqual(self.compile(CLEAN, lines=6200).returncode, 0)
        self.assertEqual(self.compile(CLEAN, "-DWARPWRIGHT_TRACE=1", lines=6201).returncode, 0)

    def test_others_than_developers_get_a_note_and_the_object(self):
        for said, lines in ((SERIALISED, 48), (SPILLED, 48), (CLEAN, 6201)):
            ran = self.compile(said, lines=lines, errors=False)
            self.assertEqual((ran.returncode, ran.stderr.count("note: good(float*)")), (0, 1))
            self.assertNotIn("error", ran.stderr)
            self.assertTrue((self.folder / "a.o").exists())
            self.assertEqual(len(self.rows()), 1)

    def test_bounds_are_wider_where_nothing_is_measured(self):
        clean, spilled = (said.replace("sm_90a", "sm_80") for said in (CLEAN, SPILLED))
        for said, lines in ((clean, 7200), (spilled, 48)):
            self.assertEqual(self.compile(said, lines=lines, architecture=80).returncode, 0)
        much = spilled.replace("48 bytes spill", "72 bytes spill")
        for said, lines, words in ((clean, 7201, "7201 lines of SASS, more than 7200"),
                                   (much, 48, "72 bytes of registers are spilled")):
            ran = self.compile(said, lines=lines, architecture=80)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(words, ran.stderr)

    def test_device_debugging_lets_both_pass(self):
        for said in (SPILLED, SERIALISED):
            self.assertEqual(self.compile(said, "-G").returncode, 0)

    def test_the_compiler_s_own_words_and_status_come_through(self):
        ran = self.compile("a.cu(3): error: no\n", status=2)
        self.assertEqual((ran.returncode, ran.stdout), (2, "a.cu(3): error: no\n"))
        ran = self.compile(CLEAN + "a.cu(3): remark: hm\n")
        self.assertEqual((ran.returncode, ran.stdout), (0, "a.cu(3): remark: hm\n"))


class WithNvcc(Launcher):
    """The same on what ptxas really prints: remarks are reworded between releases."""

    def nvcc(self, name):
        return self.launch(NVCC, "-std=c++20", "-gencode", "arch=compute_90a,code=sm_90a",
                           "-Xptxas=-v", "-x", "cu", "-c", HERE / name, "-o", "a.o")

    def test_nvcc_clean(self):
        ran = self.nvcc("clean.cu")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        self.assertRegex(self.rows()[0], r"clean\(float\*\)\tsm_90a\t\d+\t[1-9]\d*\t")

    def test_nvcc_serialised(self):
        ran = self.nvcc("serialised.cu")
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"serialised\(.*ptxas remarks C75\d\d; every wgmma")

    def test_nvcc_spill(self):
        ran = self.nvcc("spill.cu")
        self.assertEqual(ran.returncode, 1)
        self.assertRegex(ran.stderr, r"spills\(.*bytes of registers are spilled")


if __name__ == "__main__":
    LAUNCHER = sys.argv[1]
    if len(sys.argv) > 2:
        NVCC = sys.argv[3]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(WithNvcc if NVCC else Launcher)
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
