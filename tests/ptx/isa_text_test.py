#!/usr/bin/env python3
"""The PTX of every function of isa/, whole and with its modifiers, on sm_90a and sm_100a.

    isa_text_test.py ROOT [PTX_BESIDE]

Compiles isa_text.cu and compares the inline assembly of each kernel with the text beside it; looks
that every instruction that isa/ writes is in some text there, or among isa_test.py's forms; and,
given PTX_BESIDE, that check ptx reads all of these texts.
Exits 77 where there is no nvcc.
"""
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import isa_test  # noqa: E402
import ptx_test  # noqa: E402

ROOT = None
NVCC = None
BESIDE = None
ARCHITECTURES = ("90a", "100a")
# One register four times: no kernel has such lists, and check ptx refuses them.
NOT_READ = {"wgmma_registers", "wgmma_registers_e4m3"}
STRING = r'"(?:[^"\\]|\\.)*"'


def texts(source):
    """What each TEXT of the source expects, by its name."""
    found = {}
    for match in re.finditer(rf"^TEXT\(\s*(\w+),\s*((?:{STRING}\s*)+),", source, re.MULTILINE):
        found[match[1]] = "".join(part[1:-1] for part in re.findall(STRING, match[2]))
    return found


def plain(text):
    """A text without its registers, its comments and the shape of its white space."""
    text = re.sub(r"%\w+", "%", re.sub(r"//[^\n]*", "", text))
    return " ".join(text.split()).replace("{ %", "{%").replace("% }", "%}")


def assembly(kernel):
    """The inline assembly of a kernel's PTX; empty pieces, which only pin registers, left out."""
    parts = re.findall(r"// begin inline asm\n(.*?)// end inline asm", kernel, re.DOTALL)
    return " ".join(filter(None, map(plain, parts)))


class Text(unittest.TestCase):
    def test_every_function_is_its_instruction(self):
        source = ROOT / "tests/ptx/isa_text.cu"
        expected = texts(source.read_text())
        seen = set()
        for architecture in ARCHITECTURES:
            with tempfile.TemporaryDirectory() as folder:
                ptx = pathlib.Path(folder) / "text.ptx"
                made = ptx_test.run(NVCC, "-std=c++20", "-O2", f"-I{ROOT}",
                                    "--expt-relaxed-constexpr", "-ptx",
                                    f"-DTEXT_ARCHITECTURE={architecture[:-1]}",
                                    f"-arch=compute_{architecture}", "-o", ptx, source)
                self.assertEqual(made.returncode, 0, made.stderr)
                kernels = ptx_test.entries(ptx.read_text())
                if BESIDE is not None:
                    read = ptx_test.run(BESIDE, "--reads", ptx, *(set(kernels) - NOT_READ))
                    self.assertEqual(read.returncode, 0, read.stdout + read.stderr)
            seen |= set(kernels)
            for name, kernel in kernels.items():
                with self.subTest(architecture=architecture, name=name):
                    if expected[name].startswith("... "):
                        self.assertIn(expected[name][4:], plain(kernel))
                    else:
                        self.assertEqual(assembly(kernel), expected[name])
        self.assertEqual(seen, set(expected))

    def test_every_instruction_of_isa_has_a_text(self):
        known = " ".join(texts((ROOT / "tests/ptx/isa_text.cu").read_text()).values())
        known += " ".join(isa_test.forms(1) + isa_test.forms(2))
        for header in sorted((ROOT / "warpwright/isa").glob("*.h")):
            strings = re.findall(r'asm(?: volatile)?\(\s*' + rf"((?:{STRING}\s*)+)",
                                 header.read_text())
            for text in strings:
                text = "".join(part[1:-1] for part in re.findall(STRING, text))
                for word in re.findall(r"(?:^|[;{}]|\\[nt]|\s)([a-z]\w+(?:\.[\w:]+)+)",
                                       text.replace("\\n", " ").replace("\\t", " ")):
                    if word.startswith(("mov.", "selp.", "setp.")) or word == "ex2.approx.ftz.f32":
                        continue
                    with self.subTest(header=header.name, instruction=word):
                        stem = ".".join(word.split(".")[:2])
                        self.assertIn(stem, known)

    def test_an_emptied_instruction_is_seen(self):
        text = '// begin inline asm\n\tfence.proxy.async.global;\n\t// end inline asm\n'
        self.assertEqual(assembly(text), "fence.proxy.async.global;")
        self.assertEqual(assembly(text.replace("fence.proxy.async.global;", "")), "")


if __name__ == "__main__":
    ROOT, NVCC = ptx_test.root_and_nvcc()
    if len(sys.argv) > 1 and not sys.argv[1].startswith(("-", "Text")):
        BESIDE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
