"""Operands whose scales the tensor core multiplies (mxf8, mxf6, mxf4, nvf4): how their elements and
scales lie in other libraries' tensors, what makes them, and what they are multiplied to.

The model has the instructions of the RTX 5090 here. A format without a kernel in a build is planned
for, and its refusal says that there is none.
"""
import os
import unittest
import unittest.mock

import ml_dtypes
import numpy as np

import warpwright as wp
from common import Case, bf16, e4m3, f32

model = unittest.mock.patch.dict(os.environ, WARPWRIGHT_MODEL="rtx5090")
setUpModule, tearDownModule = model.start, model.stop

e8m0 = np.dtype(ml_dtypes.float8_e8m0fnu)
SEED = 20261124
rng = np.random.default_rng(SEED)
# For a format: its elements in ml_dtypes, their bits, the scales' type, elements that share one.
FORMATS = {"mxf8": (ml_dtypes.float8_e4m3fn, 8, e8m0, 32),
           "mxf8-e5m2": (ml_dtypes.float8_e5m2, 8, e8m0, 32),
           "mxf6": (ml_dtypes.float6_e2m3fn, 6, e8m0, 32),
           "mxf6-e3m2": (ml_dtypes.float6_e3m2fn, 6, e8m0, 32),
           "mxf4": (ml_dtypes.float4_e2m1fn, 4, e8m0, 32),
           "nvf4": (ml_dtypes.float4_e2m1fn, 4, e4m3, 16)}


def elements(codes, word):
    """The values of dense codes."""
    kind, bits, _, _ = FORMATS[word]
    raw = np.unpackbits(np.asarray(codes).view(np.uint8), axis=-1, bitorder="little")
    each = raw.reshape(*raw.shape[:-1], -1, bits) << np.arange(bits, dtype=np.uint8)
    return f32(each.sum(-1).astype(np.uint8).view(kind))


def tiles(scales):
    """Scales, rows x blocks, in tiles of 128 x 4, written down once more."""
    rows, blocks = scales.shape
    padded = np.zeros((-(-rows // 128) * 128, -(-blocks // 4) * 4), np.uint8)
    padded[:rows, :blocks] = scales.view(np.uint8)
    m, n = padded.shape
    return padded.reshape(m // 128, 4, 32, n // 4, 4).transpose(0, 3, 2, 1, 4).reshape(m, n)


def linear(scales, rows, blocks):
    """The other way."""
    m, n = -(-rows // 128) * 128, -(-blocks // 4) * 4
    back = np.asarray(scales).reshape(m // 128, n // 4, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    return back.reshape(m, n)[:rows, :blocks]


def values(codes, scales, word):
    """What codes and linear scales stand for."""
    return elements(codes, word) * np.repeat(f32(scales), FORMATS[word][3], -1)


class MicroCase(Case):
    def multiplied(self, want, *arguments, function=None, **keywords):
        """A product, or where this build has no kernel of such formats, that it says so."""
        try:
            d = (function or wp.gemm)(*arguments, alpha=1, **keywords)
        except wp.Refusal as refusal:
            self.assertIn(refusal.code, ("no_kernel", "unsupported"), str(refusal))
            return False
        self.close(d, want, 0.01)
        return True


class Quantised(MicroCase):
    def test_every_format_stands_for_its_values(self):
        for word, (kind, bits, scale_type, block) in FORMATS.items():
            for dtype, lead in ((np.float32, ()), (bf16, (2,))):
                x = (rng.standard_normal((*lead, 20, 128)) * 3).astype(dtype)
                codes, scales, *whole = wp.quantise(x, word)
                self.assertEqual(codes.shape, (*lead, 20, 128 * bits // 8), word)
                self.assertEqual(codes.dtype, kind if bits == 8 else np.uint8)
                blocks = 128 // block
                self.assertEqual((scales.dtype, scales.shape), (scale_type, (*lead, 128 * blocks)))
                factor = float(whole[0][0]) if word == "nvf4" else 1.0
                for i in np.ndindex(*lead):
                    got = values(codes[i], linear(scales[i], 20, blocks), word) * factor
                    most = {"mxf8": 0.07, "mxf8-e5m2": 0.13, "mxf6": 0.07, "mxf6-e3m2": 0.13}
                    self.assertLess(np.abs(got - f32(x[i])).max() / np.abs(f32(x[i])).max(),
                                    most.get(word, 0.26), word)
                # The same scales row by row.
                again = wp.quantise(x, word, linear=True)
                self.assertEqual(again[0].tobytes(), codes.tobytes())
                self.assertEqual(again[1].shape, (*lead, 20, blocks))
                self.assertEqual(np.asarray(wp.block_scales(again[1])).tobytes(), scales.tobytes())

    def test_matrices_of_a_batch_share_a_scale(self):
        x = rng.standard_normal((3, 130, 32)).astype(np.float32)
        x[1] *= 100
        codes, scales, whole = wp.quantise(x, "nvf4")
        self.assertEqual(scales.shape, (3, 1024))
        self.assertEqual(whole[0], np.abs(x).max() / np.float32(448 * 6))
        for i in range(3):
            one, of_one, same = wp.quantise(x[i], "nvf4", scale=whole)
            self.assertIs(same, whole)
            self.assertEqual(one.tobytes(), codes[i].tobytes())
            self.assertEqual(of_one.tobytes(), scales[i].tobytes())

    def test_recipes_and_memory(self):
        x = rng.standard_normal((20, 64)).astype(np.float32)
        x[3] = 0
        x[0, 0] = np.nan
        out, scales = np.empty((20, 32), np.uint8), np.empty((128, 4), np.uint8)
        same = wp.quantise(x, "mxf4", out=out, scales=scales, recipe="floor")
        self.assertIs(same[0], out)
        self.assertIs(same[1], scales)
        back = linear(scales, 20, 2)
        self.assertEqual((back[3, 0], out[3].any()), (127, False))
        self.assertEqual(back[0, 0], 0xff)  # e2m1 has no NaN: the scale is it
        up = wp.quantise(x, "mxf4", recipe="up")[1]
        self.assertNotEqual(np.asarray(up).tobytes(), scales.tobytes())
        x[0, 0] = 0
        six = wp.quantise(x, "nvf4", scale=1)
        self.assertEqual(six[2], 1)
        errors = []
        for recipe in ("nested", "4-or-6"):
            codes, of, whole = wp.quantise(x, "nvf4", recipe=recipe, linear=True)
            errors.append(np.square(values(codes, of, "nvf4") * whole[0] - x).sum())
        self.assertLess(errors[1], errors[0])

    def test_refusals(self):
        x = rng.standard_normal((20, 64)).astype(np.float32)
        self.refused("bad_value", "recipe is", wp.quantise, x, "mxf8", recipe="nested")
        self.refused("bad_value", 'recipe is "x"', wp.quantise, x, "mxf8", recipe="x")
        self.refused("bad_value", "no scale of the whole", wp.quantise, x, "mxf8",
                     scale=np.ones(1, np.float32))
        self.refused("bad_value", "(1,) float32", wp.quantise, x, "nvf4", scale=0.5)
        self.refused("bad_value", "no format", wp.quantise, x, "row_column", linear=True)
        self.refused("bad_shape", "the nearest legal number is 4", wp.quantise,
                     np.ones((4, 3), np.float32), "mxf6")
        self.refused("bad_type", "codes of mxf4", wp.quantise, x, "mxf4", out=np.empty(
            (20, 64), e4m3))
        self.refused("bad_value", "scaling is", wp.quantise, x, "mxf5")
        self.refused("bad_shape", "dimension", wp.quantise, x[0], "mxf4")


class Scales(MicroCase):
    def test_rows_become_tiles(self):
        for rows, blocks in ((1, 1), (20, 8), (128, 4), (130, 5), (300, 7)):
            for kind in (e8m0, e4m3, np.dtype(np.uint8)):
                scales = rng.integers(1, 100, (rows, blocks), np.uint8)
                got = wp.block_scales(scales.view(kind))
                self.assertEqual(got.dtype, kind)
                self.assertTrue((linear(got.view(np.uint8), rows, blocks) == scales).all())
                want = tiles(scales)
                want[want == 0] = 127 if kind == e8m0 else 0
                self.assertEqual(got.tobytes(), want.tobytes())

    def test_groups_begin_at_tiles(self):
        offsets = np.array([0, 3, 3, 133, 140], np.int64)
        scales = rng.integers(1, 100, (142, 4), np.uint8)
        got = wp.block_scales(scales, offsets)
        self.assertEqual(got.shape, ((142 + 127 * 4) // 128 * 512,))
        at = 0
        for begin, end in zip(offsets, offsets[1:]):
            rows = -(-(end - begin) // 128) * 128
            back = linear(got[4 * at:4 * (at + rows)], end - begin, 4)
            self.assertTrue((back == scales[begin:end]).all())
            at += rows

    def test_blocks_of_fp8(self):
        for block in ((1, 32), (1, 128), (128, 128)):
            shape = (-(-300 // block[0]), -(-416 // block[1]))
            codes = rng.integers(100, 140, shape, np.uint8)
            want = codes.repeat(block[0], 0)[:300].repeat(block[1] // 32, 1)[:, :13]
            powers = np.ldexp(np.float32(1), codes.astype(np.int32) - 127)
            for scales in (codes, codes.view(e8m0), powers):
                got = wp.block_scales(scales, block=block)
                self.assertEqual(got.shape, (384 * 16,))
                self.assertTrue((linear(got.view(np.uint8), 300, 13) == want).all())
                self.assertEqual(got.dtype, np.uint8 if scales is codes else e8m0)
        self.refused("bad_value", "is 0.75", wp.block_scales, np.full((4, 4), .75, np.float32),
                     block=(1, 128))
        self.refused("bad_value", "1 or 128 rows", wp.block_scales, codes, block=(64, 128))
        self.refused("bad_value", "32 or 128 of K", wp.block_scales, codes, block=(1, 64))
        self.refused("bad_type", "ue8m0", wp.block_scales, codes.view(e4m3), block=(1, 128))

    def test_refusals(self):
        self.refused("bad_type", "the nearest is ue8m0", wp.block_scales,
                     np.ones((4, 4), np.float32))
        for other in (np.float64, np.complex64, np.bool_, np.int8, np.float16):
            with self.subTest(dtype=other):
                self.refused("bad_type", "", wp.block_scales, np.ones((4, 4), other))
                self.refused("bad_type", "", wp.block_scales, np.ones((4, 4), other),
                             block=(1, 128))
        self.refused("bad_shape", "2: those of a matrix", wp.block_scales, np.ones(4, np.uint8))
        self.refused("bad_type", "offsets", wp.block_scales, np.ones((4, 4), np.uint8),
                     np.ones(2, np.float32))
        self.refused("bad_shape", "scales in tiles are", wp.block_scales, np.ones((4, 4), np.uint8),
                     out=np.empty((4, 4), np.uint8))


class Elements(MicroCase):
    def test_packed(self):
        for word in ("mxf4", "mxf6", "mxf6-e3m2"):
            kind, bits, _, _ = FORMATS[word]
            codes = rng.integers(0, 1 << bits, (3, 8), np.uint8)
            dense = wp.pack_elements(codes.view(kind))
            self.assertEqual((dense.dtype, dense.shape), (np.uint8, (3, bits)))
            self.assertTrue((elements(dense, word) == f32(codes.view(kind))).all(), word)
            name = {"mxf4": "e2m1", "mxf6": "e2m3", "mxf6-e3m2": "e3m2"}[word]
            self.assertTrue((wp.pack_elements(codes | 0xc0 if bits == 6 else codes, name)
                             == dense).all())
        for wrong in ((np.ones((2, 4), np.uint8),), (np.ones((2, 4), np.float32), "e2m1"), (3,),
                      (np.ones((2, 4), np.uint8), "bf16")):
            self.refused("bad_type", "elements", wp.pack_elements, *wrong)
        self.refused("bad_shape", "the nearest is 8", wp.pack_elements, np.ones((2, 6), np.uint8),
                     "e2m3")

    def test_a_byte_each_is_refused(self):
        for kind in (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn):
            x = np.zeros((4, 128), kind)
            self.refused("bad_type", "warpwright.pack_elements(A)", wp.gemm, x, x)


class Products(MicroCase):
    def operands(self, word, rows, k=256, lead=()):
        """(codes, linear scales, values) of a random matrix; for nvf4 without a tensor's scale."""
        x = rng.standard_normal((*lead, rows, k)) * 2.0 ** rng.integers(-3, 4, (*lead, rows, k))
        scale = {"scale": 1} if word == "nvf4" else {}
        codes, scales, *_ = wp.quantise(x.astype(np.float32), word, linear=True, **scale)
        return codes, scales, values(codes, scales, word)

    def test_formats_and_mixed_ones(self):
        ran = []
        for a_word in FORMATS:
            for b_word in FORMATS:
                if (a_word == "nvf4") != (b_word == "nvf4"):
                    continue
                a, sa, wide_a = self.operands(a_word, 20)
                b, sb, wide_b = self.operands(b_word, 136)
                scales = {"scale_a": wp.block_scales(sa), "scale_b": wp.block_scales(sb)}
                if self.multiplied(wide_a @ wide_b.T, a, b, a_type=a_word, b_type=b_word,
                                   **scales):
                    ran.append((a_word, b_word))
        self.assertIn(("nvf4", "nvf4"), ran)
        self.assertIn(("mxf8", "mxf8"), ran)

    def test_what_says_the_format(self):
        a, sa, wide_a = self.operands("nvf4", 20)
        b, sb, wide_b = self.operands("nvf4", 136)
        ta, tb = wp.block_scales(sa), wp.block_scales(sb)
        want = wp.gemm(a, b, operands="nvf4", scale_a=ta, scale_b=tb, alpha=1)
        self.refused("bad_value", "alpha is not given, and nvf4 operands have a factor", wp.gemm, a,
                     b, operands="nvf4", scale_a=ta, scale_b=tb)
        self.close(want, wide_a @ wide_b.T, 0.01)
        alike = [{"operands": "e2m1"}, {"a_type": "nvf4", "b_type": "e2m1"},
                 {"operands": "e2m1", "scaling": "block_scaled"}]
        for words in alike:
            d = wp.gemm(a, b, scale_a=ta.reshape(-1), scale_b=tb, alpha=1, **words)
            self.assertEqual(d.tobytes(), want.tobytes(), words)
        raw = {"scale_a": ta.view(np.uint8), "scale_b": tb.view(np.uint8)}
        d = wp.gemm(a, b, a_type="nvf4", b_type="e2m1", alpha=1, **raw)
        self.assertEqual(d.tobytes(), want.tobytes())
        self.refused("bad_type", "may be float8_e4m3fn (nvf4) or float8_e8m0fnu (mxf4)", wp.gemm,
                     a, b, operands="e2m1", **raw)

    def test_batches(self):
        a, sa, wide_a = self.operands("nvf4", 20, lead=(2,))
        b, sb, wide_b = self.operands("nvf4", 136)
        want = np.stack([x @ wide_b.T for x in wide_a])
        self.multiplied(want, a, b, operands="nvf4", scale_a=wp.block_scales(sa),
                        scale_b=wp.block_scales(sb))

    def test_groups(self):
        for word in ("nvf4", "mxf8", "mxf4"):
            offsets = np.array([0, 3, 3, 133, 140], np.int32)
            a, sa, wide_a = self.operands(word, 142)
            b, sb, wide_b = self.operands(word, 136, lead=(4,))
            want = np.zeros((142, 136), np.float32)
            for g, (begin, end) in enumerate(zip(offsets, offsets[1:])):
                want[begin:end] = wide_a[begin:end] @ wide_b[g].T
            self.multiplied(want, a, b, offsets, function=wp.grouped_gemm, operands=word,
                            scale_a=wp.block_scales(sa, offsets), scale_b=wp.block_scales(sb))

    def test_alpha_is_the_scales_of_the_tensors(self):
        x, w = rng.standard_normal((20, 128)), rng.standard_normal((136, 128))
        a, sa, whole_a = wp.quantise(x.astype(np.float32), "nvf4")
        b, sb, whole_b = wp.quantise(w.astype(np.float32), "nvf4")
        d = wp.gemm(a, b, operands="nvf4", scale_a=sa, scale_b=sb,
                    alpha=float(whole_a[0] * whole_b[0]))
        self.close(d, (x @ w.T).astype(np.float32), 0.2)

    def test_specs(self):
        def plan(a, b, **keywords):
            return wp.plan(a, b, device="rtx5090", **keywords).kernel
        scales = {"scale_a": wp.Spec((128, 8), e4m3), "scale_b": wp.Spec((256, 8), e4m3)}
        kernel = plan(wp.Spec((20, 64), "float4_e2m1fn_x2"), wp.Spec((136, 64), "uint8"),
                      b_type="nvf4", **scales)
        # For "e2m1" a Spec counts elements.
        self.assertEqual(plan(wp.Spec((20, 128), "e2m1"), wp.Spec((136, 128), "float4_e2m1fn"),
                              **scales), kernel)

    def test_refusals(self):
        a, sa, _ = self.operands("nvf4", 20)
        b, sb, _ = self.operands("nvf4", 136)
        good = {"operands": "nvf4", "scale_a": wp.block_scales(sa),
                "scale_b": wp.block_scales(sb), "alpha": 1}
        def refused(code, says, *tensors, **changed):
            self.refused(code, says, wp.gemm, *(tensors or (a, b)), **{**good, **changed})
        refused("bad_value", "which says both", a_type="e2m1")
        refused("bad_value", '"mxf6-e3m2", "mxf4", "nvf4"', operands="fp4")
        refused("bad_type", "A is f32", f32(a), b)
        refused("bad_shape", "linear ones become that by warpwright.block_scales(scale_a)",
                scale_a=sa)
        refused("bad_type", "the scales of nvf4 are float8_e4m3fn",
                scale_a=good["scale_a"].astype(np.float32))
        refused("bad_type", "only by nvf4", operands=None, a_type="mxf4", b_type="nvf4",
                scale_a=np.full((128, 8), 127, np.uint8))
        refused("bad_shape", "4 elements of e2m3 are 3", a[:, :64], b, operands="mxf6",
                scale_a=None, scale_b=None)
        refused("bad_stride", "lie next to each other", a[:, ::2], b[:, ::2])
        refused("bad_pointer", "scale_a is a null pointer", scale_a=None)
        refused("bad_type", "A is s8", a.view(np.int8), b)


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main(verbosity=2)
