#!/usr/bin/env python3
"""Kernels of other projects, compiled where they are, run on the model from their PTX.

    foreign_test.py WARPWRIGHT [unittest's words]

None of their code is in this tree. Each test runs where an environment variable says where the
project is, and says so where none does:

    WARPWRIGHT_TRITON     a Python that has Triton
    WARPWRIGHT_SGLANG     SGLang's fused_moe_triton_kernels.py (with Triton)
    WARPWRIGHT_CUTLASS    a checkout of CUTLASS (with nvcc)
    WARPWRIGHT_DEEPGEMM   a checkout of DeepGEMM (with CUTLASS and nvcc)

What each of them is found to be is in docs/log/ptx.md. A finding that stands there is expected
here, and so is that it is gone, and the numbers are right, with the edge that it names in place.
"""
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "foreign"
PLACES = {name: os.environ.get(f"WARPWRIGHT_{name}")
          for name in ("TRITON", "SGLANG", "CUTLASS", "DEEPGEMM")}
WARPWRIGHT = None
E4M3 = (0x00, 0x38, 0x40, 0x44, 0x48)  # 0 to 4
# An edit of a text: a fence behind each mbarrier that is made.
PUBLISHES = (r"(mbarrier\.init\.shared::cta\.b64 [^;]*;)",
             r"\1 fence.mbarrier_init.release.cluster;")


def drawn(seed, rows, columns):
    """Small integers, whose products and sums are exact in every type here."""
    draw = random.Random(seed)
    return [[draw.randrange(-4, 5) for _ in range(columns)] for _ in range(rows)]


def product(a, b):
    """A x B^T."""
    return [[sum(x * y for x, y in zip(row, other)) for other in b] for row in a]


def transposed(rows):
    return [list(column) for column in zip(*rows)]


def f16(rows):
    return b"".join(struct.pack(f"<{len(row)}e", *row) for row in rows)


def f32(rows):
    return b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)


def s32(*values):
    return struct.pack(f"<{len(values)}i", *values)


def bf16(rows):
    """Rounded to nearest even."""
    codes = [struct.unpack("<I", struct.pack("<f", x))[0] for row in rows for x in row]
    return struct.pack(f"<{len(codes)}H", *((c + 0x7fff + (c >> 16 & 1)) >> 16 for c in codes))


def e4m3(rows):
    return bytes(E4M3[abs(x)] | (128 if x < 0 else 0) for row in rows for x in row)


def needs(*names):
    lacking = [f"WARPWRIGHT_{name}" for name in names if not PLACES[name]]
    return unittest.skipIf(lacking, f"without {' and '.join(lacking)}")


class Foreign(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, data):
        (self.folder / name).write_bytes(data)
        return f"{name}=file:{self.folder / name},in"

    def bytes(self, name, data):
        (self.folder / name).write_bytes(data)
        return f"bytes:{self.folder / name}"

    def check(self, text, arguments, result, expected, code=0):
        """Runs a text; what is printed."""
        (self.folder / "expected").write_bytes(expected)
        ran = subprocess.run(
            [WARPWRIGHT, "check", "ptx", text, *map(str, arguments), "--schedules", "8",
             "--expect", f"{result}={self.folder / 'expected'}"],
            capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout

    def check_mended(self, text, edits, *arguments):
        """Clean and right with edits; each of them changes something."""
        words = text.read_text()
        for pattern, to in edits:
            words, count = re.subn(pattern, to, words, flags=re.MULTILINE)
            self.assertGreater(count, 0, pattern)
        mended = self.folder / "mended.ptx"
        mended.write_text(words)
        self.check(mended, *arguments)

    def triton(self, name):
        """The text of a kernel of foreign/triton_kernels.py, and its launch."""
        text = self.folder / f"{name}.ptx"
        words = [PLACES["TRITON"], HERE / "triton_kernels.py", name, text]
        made = subprocess.run(words + ([PLACES["SGLANG"]] if PLACES["SGLANG"] else []),
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "TRITON_CACHE_DIR": str(self.folder / "cache")})
        self.assertEqual(made.returncode, 0, made.stderr)
        launch = json.loads(made.stdout)
        return text, ["--block", launch["threads"], "--smem", launch["shared"]]

    def nvcc(self, source, standard, *folders):
        """The text of a kernel that a driver of foreign/ asks for, and its name."""
        text = self.folder / f"{source}.ptx"
        made = subprocess.run(
            [ptx_test.NVCC, "-ptx", f"-std={standard}", "-arch=sm_90a", "-lineinfo",
             "--expt-relaxed-constexpr", *(f"-I{f}" for f in folders), "-o", text,
             HERE / f"{source}.cu"], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        return text, re.findall(r"\.entry (\w+)", text.read_text())

    @needs("TRITON")
    def test_triton_product_by_pointers(self):
        text, launch = self.triton("product")
        a, b = drawn(1, 96, 160), drawn(2, 64, 160)
        arguments = [*launch, "--grid", "2,1", "--arg", self.file("a", f16(a)),
                     "--arg", self.file("b", f16(transposed(b))), "--arg", "d=96x64:fp16"]
        for value in (96, 64, 160, 160, 64, 64):
            arguments += ["--arg", f"s32:{value}"]
        self.check(text, arguments + ["--arg", "u64:0", "--arg", "u64:0"], "d", f16(product(a, b)))

    @needs("TRITON")
    def test_triton_persistent_product_by_tma(self):
        text, launch = self.triton("persistent")
        a, b = drawn(3, 192, 160), drawn(4, 128, 160)
        arguments = [*launch, "--grid", 2, "--buffer", self.file("a", f16(a)),
                     "--buffer", self.file("b", f16(b)), "--buffer", "d=192x128:fp16"]
        for name, rows, columns, box, swizzle in (("a", 192, 160, "64x32", 64),
                                                  ("b", 128, 160, "64x32", 64),
                                                  ("d", 192, 128, "64x64", 128)):
            arguments += ["--arg", f"map:{name},fp16,{rows}x{columns},box:{box},swizzle:{swizzle}"]
            for value in (f"s32:{rows}", f"s32:{columns}", f"s64:{columns}", "s64:1"):
                arguments += ["--arg", value]
        for value in ("s32:192", "s32:128", "s32:160", "s32:2", "u64:0", "u64:0"):
            arguments += ["--arg", value]
        result = "d", f16(product(a, b))
        said = self.check(text, arguments, *result, code=1)
        self.assertEqual(set(re.findall(r"^([A-Z]\d+) ", said, re.MULTILINE)), {"B9"}, said)
        self.check_mended(text, [PUBLISHES], arguments, *result)

    def mixture(self, fp8):
        """SGLang's fused mixture: two of three experts a token."""
        text, launch = self.triton("moe_fp8" if fp8 else "moe")
        tokens, experts, n, k = 40, 3, 128, 256
        draw = random.Random(5)
        a = drawn(6, tokens, k)
        b = [drawn(7 + e, n, k) for e in range(experts)]
        ids = [e for _ in range(tokens) for e in draw.sample(range(experts), 2)]
        weights = [2.0 ** draw.randrange(-2, 1) for _ in ids]
        order, blocks = [], []
        for e in range(experts):
            mine = [slot for slot, expert in enumerate(ids) if expert == e]
            mine += [len(ids)] * (-len(mine) % 64)
            order += mine
            blocks += [e] * (len(mine) // 64)
        scales_a = [[2.0 ** draw.randrange(-1, 2) for _ in range(k // 128)] for _ in a]
        scales_b = [[2.0 ** draw.randrange(-1, 2) for _ in range(k // 128)] for _ in b]
        rows = []
        for slot, expert in enumerate(ids):
            row = [0.0] * n
            for part in range(k // 128):
                here = slice(128 * part, 128 * part + 128)
                scale = scales_a[slot // 2][part] * scales_b[expert][part] if fp8 else 1
                sums = product([a[slot // 2][here]], [w[here] for w in b[expert]])[0]
                row = [x + y * scale for x, y in zip(row, sums)]
            rows.append([x * weights[slot] for x in row])
        code = e4m3 if fp8 else bf16
        given = [self.file("a", code(a)), self.file("b", b"".join(map(code, b))),
                 f"c={len(ids)}x{n}:bf16"]
        if fp8:
            given += [self.file("sa", f32(scales_a)), self.file("sb", f32(scales_b))]
        given += [self.file("w", f32([weights])), self.file("o", s32(*order)),
                  self.file("e", s32(*blocks)), self.file("p", s32(len(order)))]
        numbers = [n, k, len(order), len(ids), k, n * k, k, n, *([2, 2, 2] if fp8 else [])]
        given += [f"s32:{number}" for number in numbers] + ["u64:0", "u64:0"]
        arguments = [*launch, "--grid", len(order) // 64 * (n // 64)]
        for argument in given:
            arguments += ["--arg", argument]
        self.check(text, arguments, "c", bf16(rows))

    @needs("TRITON", "SGLANG")
    def test_sglang_fused_mixture(self):
        self.mixture(fp8=False)

    @needs("TRITON", "SGLANG")
    def test_sglang_fused_mixture_of_fp8_with_block_scales(self):
        self.mixture(fp8=True)

    @needs("CUTLASS")
    def test_cute_product_by_tma(self):
        root = pathlib.Path(PLACES["CUTLASS"])
        text, names = self.nvcc("cute_tma", "c++17", root / "include", root / "tools/util/include",
                                root / "examples/cute/tutorial/hopper")
        entry = next(name for name in names if "F32F16F16" in name)
        a, b = drawn(8, 256, 320), drawn(9, 128, 320)
        maps = [f"map:{name},fp16,{rows}x320,box:128x64,swizzle:128,struct:256"
                for name, rows in (("a", 256), ("b", 128))]
        given = [self.bytes("mnk", s32(256, 128, 320)), self.bytes("tiler", bytes(1)), "a", maps[0],
                 "b", maps[1], "c=131072,zeros", self.bytes("pitch", s32(256)),
                 self.bytes("mma", s32(1, 0)), "f32:1", "f32:0"]
        arguments = ["--entry", entry, "--grid", "2,1", "--cluster", 2, "--block", 128, "--smem",
                     98352, "--buffer", self.file("a", f16(a)), "--buffer", self.file("b", f16(b))]
        for argument in given:
            arguments += ["--arg", argument]
        result = "c", f32(transposed(product(a, b)))
        said = self.check(text, arguments, *result, code=1)
        self.assertEqual(set(re.findall(r"^([A-Z]\d+) ", said, re.MULTILINE)), {"B9"}, said)
        self.check_mended(text, [PUBLISHES], arguments, *result)

    @needs("CUTLASS", "DEEPGEMM")
    def test_deepgemm_fp8_with_block_scales(self):
        text, _ = self.nvcc("deepgemm_fp8", "c++20", pathlib.Path(PLACES["CUTLASS"]) / "include",
                            pathlib.Path(PLACES["DEEPGEMM"]) / "deep_gemm/include")
        m, n, k = 128, 128, 640
        draw = random.Random(10)
        a, b = drawn(11, m, k), drawn(12, n, k)
        scales_a = [[2.0 ** draw.randrange(-1, 2) for _ in range(m)] for _ in range(k // 128)]
        scales_b = [2.0 ** draw.randrange(-1, 2) for _ in range(k // 128)]
        d = [[0.0] * n for _ in range(m)]
        for part in range(k // 128):
            here = slice(128 * part, 128 * part + 128)
            sums = product([row[here] for row in a], [row[here] for row in b])
            d = [[x + y * scales_a[part][i] * scales_b[part] for x, y in zip(row, more)]
                 for i, (row, more) in enumerate(zip(d, sums))]
        arguments = ["--grid", 2, "--block", 256, "--smem", 60000, "--registers", 248]
        for buffer in (self.file("a", e4m3(a)), self.file("b", e4m3(b)), f"d={m}x{n}:bf16",
                       self.file("sa", f32(scales_a))):
            arguments += ["--buffer", buffer]
        for argument in (self.file("sb", f32([scales_b])), "u64:0", f"u32:{m}", f"u32:{n}",
                         f"u32:{k}", f"map:a,e4m3,{m}x{k},box:64x128,swizzle:128",
                         f"map:b,e4m3,{n}x{k},box:64x128,swizzle:128",
                         f"map:d,bf16,{m}x{n},box:64x64,swizzle:128",
                         f"map:sa,f32,{k // 128}x{m},box:1x64"):
            arguments += ["--arg", argument]
        result = "d", bf16(d)
        said = self.check(text, arguments, *result, code=1)
        self.assertEqual(set(re.findall(r"^([A-Z]\d+) ", said, re.MULTILINE)), {"O1", "M2"}, said)
        self.check_mended(text, [(r"(wgmma\.wait_group\.sync\.aligned 0;)",
                                  r"\1 bar.warp.sync 0xffffffff;"),
                                 (r"^(\s*)ret;", r"\1cp.async.bulk.wait_group.read 0; ret;")],
                          arguments, *result)


if __name__ == "__main__":
    WARPWRIGHT = str(pathlib.Path(sys.argv.pop(1)).resolve())
    ptx_test.NVCC = ptx_test.cuda_program("nvcc")
    if ptx_test.NVCC is None:
        PLACES["CUTLASS"] = None
    if not PLACES["TRITON"] and not PLACES["CUTLASS"]:
        print("did not run: no kernels of other projects here; WARPWRIGHT_TRITON, _SGLANG, "
              "_CUTLASS and _DEEPGEMM say where they are (tests/ptx/foreign_test.py)")
        sys.exit(77)
    unittest.main()
