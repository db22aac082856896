#!/usr/bin/env python3
"""Small PTX texts that the tests run on the model: ptxas takes each of them.

    legal_texts_test.py TEST_PTX_TEXTS

TEST_PTX_TEXTS writes those that ended without a finding to a folder; ptxas assembles each for its
target. Exits 77 where there is no ptxas.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import ptx_test  # noqa: E402
import samples  # noqa: E402

TESTS = None
PTXAS = None


def assembled(text):
    """What ptxas says of a text that it does not take; empty where it does."""
    target = re.search(r"^\.target (\w+)", text.read_text(), re.MULTILINE)[1]
    made = ptx_test.run(PTXAS, f"-arch={target}", "-o", text.with_suffix(".cubin"), text)
    return "" if made.returncode == 0 else text.read_text() + made.stderr


class Legal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_every_text_that_runs_clean(self):
        ran = subprocess.run([TESTS], capture_output=True, text=True, check=False,
                             env={**os.environ, "WARPWRIGHT_PTX_TEXTS": str(self.folder)})
        self.assertEqual(ran.returncode, 0, ran.stdout)
        texts = sorted(self.folder.glob("*.ptx"))
        self.assertGreater(len(texts), 200)
        for instruction in ("kind::i8 ", "mma.ws.", "tcgen05.shift."):
            self.assertTrue(any(instruction in t.read_text() for t in texts), instruction)
        if not samples.CAMPAIGN:
            texts = samples.sampled(texts, 3)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual([said for said in pool.map(assembled, texts) if said], [])

    def test_a_text_that_is_none_is_noticed(self):
        text = self.folder / "none.ptx"
        text.write_text(".version 9.0\n.target sm_103a\n.address_size 64\n.entry k()\n{\n"
                        ".reg .b64 %x;\n.reg .b32 %r;\n.reg .pred %p;\n"
                        "tcgen05.mma.cta_group::1.kind::i8 [%r], %x, %x, %r, %p;\nret;\n}\n")
        self.assertIn("'.kind::i8' not supported", assembled(text))


if __name__ == "__main__":
    PTXAS = ptx_test.cuda_program("ptxas")
    if PTXAS is None:
        print("did not run: no ptxas here")
        sys.exit(77)
    TESTS = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
