#!/usr/bin/env python3
"""script/hub_layout.py, and what the module links: hub_test.py BUILD

The wheel's module has no symbol of PyTorch, so that one serves every version. The folder that is
laid out of it has what the loader of Hugging Face's `kernels` asks for, with the digests of
its files, and is imported under a name of the loader's own. Where `kernels` is installed, its
loader loads it.
"""
import base64
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOAD = """
import importlib.util, pathlib, sys
folder = pathlib.Path(sys.argv[1])
spec = importlib.util.spec_from_file_location("loaded_1", folder / "__init__.py",
                                              submodule_search_locations=[str(folder)])
sys.modules["loaded_1"] = made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
import warpwright
assert made.gemm is warpwright.gemm and made.Refusal is warpwright.Refusal
assert str(folder) in warpwright.__file__, warpwright.__file__
assert "64" in made.plan(made.Spec((64, 128)), made.Spec((256, 128)), device="h200").explain()
"""
WITH_KERNELS = """
import pathlib, sys, torch
from kernels import get_local_kernel
made = get_local_kernel(pathlib.Path(sys.argv[1]), backend="cpu")
x, w = torch.randn(8, 64).bfloat16(), torch.randn(16, 64).bfloat16()
assert torch.allclose(made.gemm(x, w).float(), x.float() @ w.float().T, rtol=0.02, atol=0.1)
"""


WHEELS = sorted(pathlib.Path(sys.argv[1]).glob("wheels/*.whl"))
if not WHEELS:
    print("did not run: hub_test.py: this build has packed no wheel")
    sys.exit(77)


def lay_out(out, *options):
    return subprocess.run([sys.executable, ROOT / "script" / "hub_layout.py", WHEELS[0], out,
                           *options], capture_output=True, text=True, check=False)


class Hub(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = pathlib.Path(self.folder.name) / "hub"

    def tearDown(self):
        self.folder.cleanup()

    def test_the_layout(self):
        done = lay_out(self.out, "--torch", "2.11,2.14", "--cuda", "13.0", "--build", "abc1234")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = sorted(path.name for path in (self.out / "build").iterdir())
        self.assertEqual(names, ["torch211-cxx11-cu130-x86_64-linux",
                                 "torch214-cxx11-cu130-x86_64-linux"])
        for name in names:
            variant = self.out / "build" / name
            about = json.loads((variant / "metadata.json").read_text())
            self.assertEqual(about["name"], "warpwright")
            self.assertEqual(about["id"], "_warpwright_cuda_abc1234")
            self.assertTrue(about["id"].isidentifier())
            self.assertEqual(about["python-depends"], [])
            self.assertEqual(about["backend"], {"type": "cuda", "archs": ["9.0a"]})
            files = {path.relative_to(variant).as_posix() for path in variant.rglob("*")
                     if path.is_file()} - {"metadata.json"}
            self.assertEqual(set(about["digest"]["files"]), files)
            self.assertLessEqual({"__init__.py", "warpwright/__init__.py",
                                  "warpwright/_core.abi3.so"}, files)
            for file, digest in about["digest"]["files"].items():
                found = hashlib.sha256((variant / file).read_bytes()).digest()
                self.assertEqual(base64.b64encode(found).decode(), digest)
            subprocess.run([sys.executable, "-I", "-c", LOAD, variant], check=True)

    def test_symbols(self):
        """CPython's and glibc's, and none else: tensors come by DLPack, operators are Python's."""
        with zipfile.ZipFile(WHEELS[0]) as archive:
            module = archive.extract("warpwright/_core.abi3.so", self.folder.name)
        said = subprocess.run(["nm", "-D", "--undefined-only", module], capture_output=True,
                              text=True, check=True).stdout
        needed = re.findall(r"^ +U (\S+)$", said, re.M)
        self.assertGreater(len(needed), 50)
        self.assertEqual([name for name in needed
                          if not re.match(r"_?Py|.*@(GLIBC|GCC)_", name)], [])

    def test_refusals(self):
        for options, words in ((("--torch", "2"), "'2' is no version"),
                               (("--build", "a-b"), "--build is 'a-b'")):
            done = lay_out(self.out, *options)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)
        self.out.mkdir()
        (self.out / "mine").touch()
        self.assertIn("is there and not empty", lay_out(self.out).stderr)

    def test_the_loader(self):
        try:
            import kernels  # noqa: F401  pylint: disable=unused-import
            import torch
        except ImportError as missing:
            print(f"did not run: the loader of the package kernels: {missing}")
            return
        self.assertEqual(lay_out(self.out, "--torch", torch.__version__.rsplit(".", 1)[0]
                                 ).returncode, 0)
        subprocess.run([sys.executable, "-I", "-c", WITH_KERNELS, self.out], check=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
