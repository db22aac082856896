"""What is made before a product: fp8 codes of activations, packed weights; and numbers and scales
in the forms that others have them."""
import pathlib
import tempfile
import typing
import unittest

import numpy as np

import warpwright as wp
from common import Case, bf16, e4m3, f32
from warpwright import _prepare, _types

rng = np.random.default_rng(20261123)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


class Quantise(Case):
    def test_codes_times_scales(self):
        for dtype in (np.float32, bf16, np.float16):
            x = normal(20, 300, dtype=dtype)
            x[3] = 0
            codes, scales = wp.quantise(x)
            self.assertEqual((codes.dtype, codes.shape), (e4m3, (20, 300)))
            self.assertEqual((scales.dtype, scales.shape), (np.float32, (20,)))
            self.assertEqual(scales[3], 1)
            want = np.abs(f32(x)).max(1) / np.float32(448)
            want[3] = 1
            np.testing.assert_array_equal(scales, want)
            self.close(f32(codes) * scales[:, None], f32(x), 0.04)
            codes, scales = wp.quantise(x, "blockwise")
            self.assertEqual(scales.shape, (20, 3))
            self.assertEqual(scales.strides[0], 4)  # tokens side by side
            self.close(f32(codes) * np.repeat(scales, 128, 1)[:, :300], f32(x), 0.04)
            for block in (64, 32):
                codes, scales = wp.quantise(x, "blockwise", block=block)
                self.assertEqual(scales.shape, (20, -(-300 // block)))
                self.close(f32(codes) * np.repeat(scales, block, 1)[:, :300], f32(x), 0.04)
                w = normal(192, 300)
                by = rng.uniform(0.01, 0.02, (192 // block, -(-300 // block))).astype(np.float32)
                full = by.repeat(block, 0).repeat(block, 1)[:, :300]
                coded = (f32(w) / full).astype(e4m3)
                # The shapes say the block.
                self.close(f32(wp.gemm(codes, coded, scale_a=scales, scale_b=by)),
                           (f32(codes) * np.repeat(scales, block, 1)[:, :300])
                           @ (f32(coded) * full).T, 0.02)
            for how, says in (({"block": 48}, "the nearest is 64"),
                              ({"block": 100}, "the nearest is 128"),
                              ({"block": 64, "scaling": "row_column"}, "leave it out")):
                self.says(says, wp.quantise, x, **{"scaling": "blockwise", **how})
            codes, one = wp.quantise(x, "tensor")
            self.assertEqual(one[0], np.abs(f32(x)).max() / np.float32(448))
            again, same = wp.quantise(x, "tensor", scale=one)
            self.assertEqual(again.tobytes(), codes.tobytes())
            self.assertIs(same, one)

    def test_what_cannot_be_scaled(self):
        x = np.array([[np.nan, np.inf, -np.inf, 2.0]], np.float32)
        for dtype in (np.float32, bf16, np.float16):
            for scaling in ("row_column", "blockwise", "tensor"):
                codes, scales = wp.quantise(x.astype(dtype), scaling)
                self.assertEqual(scales.reshape(-1)[0], np.float32(2) / np.float32(448))
                self.assertEqual(list(codes.view(np.uint8)[0]), [0x7F, 0x7F, 0x7F, 0x7E])
        # A given scale that is too small cuts numbers, not what is none.
        codes, _ = wp.quantise(np.array([[np.inf, 3e38]], np.float32), "tensor",
                               scale=np.full(1, 1e-37, np.float32))
        self.assertEqual(list(codes.view(np.uint8)[0]), [0x7F, 0x7E])
        for scaling in ("row_column", "blockwise", "tensor"):
            self.assertEqual(wp.quantise(np.zeros((0, 5), np.float32), scaling)[0].shape, (0, 5))

    def test_memory_of_ones_own(self):
        x = normal(6, 256)
        codes, scales = np.zeros((6, 256), e4m3), np.zeros((6, 2), np.float32)
        got = wp.quantise(x, "blockwise", out=codes, scales=scales)
        self.assertIs(got[0], codes)
        self.assertIs(got[1], scales)
        self.assertEqual(codes.tobytes(), wp.quantise(x, "blockwise")[0].tobytes())

    def test_refusals(self):
        x = normal(4, 32)
        self.refused("bad_value", '"row_column"', wp.quantise, x, "rows")
        self.refused("bad_shape", "1 dimension;", wp.quantise, x[0])
        self.refused("bad_type", "x is f64", wp.quantise, x.astype(np.float64))
        self.refused("bad_value", "a scale is given", wp.quantise, x, scale=np.ones(4, np.float32))
        self.refused("bad_type", "the codes are bf16", wp.quantise, x, out=np.ones((4, 32), bf16))
        nothing = type("X", (), {"shape": (1, 2)})()
        self.refused("bad_value", "no __dlpack_device__", wp.quantise, nothing)
        frozen = np.zeros((4, 32), e4m3)
        frozen.flags.writeable = False
        self.refused("bad_pointer", "read-only", wp.quantise, x, out=frozen)

    def test_a_layer_in_fp8(self):
        x, w = normal(40, 512, dtype=bf16), normal(256, 512, dtype=bf16)
        x8, sx = wp.quantise(x)
        w8, sw = wp.quantise(w)
        self.close(wp.gemm(x8, w8, scale_a=sx, scale_b=sw), f32(x) @ f32(w).T, 0.05)


class SortSlots(Case):
    def test_rows_and_slots(self):
        for ids_type in (np.int32, np.int64):
            ids = rng.integers(0, 12, (50, 6)).astype(ids_type)
            ids[7] = -1
            ids[9, :2] = (12, -5)  # no experts
            for first, experts in ((0, 12), (4, 5)):
                offsets, slots, rows = wp.sort_slots(ids[:, :3], experts, first_expert=first,
                                                     experts_total=12)
                flat = ids[:, :3].reshape(-1)
                kept = np.flatnonzero((flat >= first) & (flat < first + experts))
                want = kept[np.argsort(flat[kept], kind="stable")]
                self.assertEqual({each.dtype for each in (offsets, slots, rows)},
                                 {np.dtype(np.int32)})
                lengths = np.bincount(flat[kept] - first, minlength=experts)
                np.testing.assert_array_equal(offsets, [0, *np.cumsum(lengths)])
                np.testing.assert_array_equal(slots[:len(want)], want)
                self.assertTrue((slots[len(want):] == -1).all())
                np.testing.assert_array_equal(rows[want], np.arange(len(want)))
                self.assertEqual(int((rows == -1).sum()), 150 - len(want))

    def test_no_tokens(self):
        offsets, slots, rows = wp.sort_slots(np.zeros((0, 2), np.int32), 3)
        self.assertEqual(list(offsets), [0, 0, 0, 0])
        self.assertEqual((slots.shape, rows.shape), ((0,), (0,)))

    def test_refusals(self):
        ids = np.zeros((4, 2), np.int32)
        self.refused("bad_value", "experts is 0", wp.sort_slots, ids, 0)
        self.refused("bad_value", "experts is 1025", wp.sort_slots, ids, 1025)
        self.refused("bad_value", "first_expert is 3", wp.sort_slots, ids, 2, first_expert=3,
                     experts_total=4)
        self.refused("bad_value", "experts_total is 1", wp.sort_slots, ids, 2, experts_total=1)
        self.refused("bad_shape", "1 dimension;", wp.sort_slots, ids[0], 2)
        self.refused("bad_type", "int32 or int64", wp.sort_slots, ids.astype(np.float32), 2)
        self.refused("bad_stride", "column stride of 2", wp.sort_slots,
                     np.zeros((4, 4), np.int32)[:, ::2], 2)
        self.refused("bad_value", "numpy, PyTorch or CuPy", wp.sort_slots,
                     wp.empty((4, 2), "f32", "model"), 2)


class Int4(Case):
    def test_weights_in_floats(self):
        for group, encoding, scales, zeros in [(128, "ex", "bf16", False), (64, "sm", "f16", False),
                                               (32, "ex", "f32", True)]:
            w = normal(200, 384)
            packed = wp.pack_int4(w, group=group, encoding=encoding, scales=scales,
                                  zero_points=zeros)
            self.assertEqual((packed.shape, packed.group, packed.encoding, packed.scales,
                              packed.zero_points), ((200, 384), group, encoding, scales, zeros))
            self.assertEqual(packed.data.dtype, np.uint8)
            self.close(packed.values(), w, 0.11)
            again = wp.PackedWeights(packed.data)
            self.assertEqual(again.form, packed.form)
            self.assertEqual(wp.PackedWeights.spec(200, 384, group=group, encoding=encoding,
                                                 scales=scales, zero_points=zeros).data.shape,
                             packed.data.shape)

    def test_products(self):
        x = normal(24, 384, dtype=e4m3)
        offsets = np.array([0, 24], np.int32)
        for n, sums, off in [(256, "exact", 0.03), (256, "chained", 0.03), (192, "folded", 0.08),
                             (256, "table", 0.08)]:
            packed = wp.pack_int4(normal(1, n, 384), encoding="sm")
            d = wp.grouped_gemm(x, packed, offsets, sums=sums)
            self.assertEqual(d.dtype, bf16)
            self.close(d, f32(x) @ packed.values()[0].T, off)
        packed = wp.pack_int4(normal(256, 384))
        self.says("chained and the product has no groups", wp.gemm, x, packed, sums="chained")
        one = wp.gemm(x[None], packed)  # a batch of one stays one
        self.assertEqual(one.shape, (1, 24, 256))
        self.assertTrue((one[0] == wp.gemm(x, packed)).all())
        zeros = wp.pack_int4(normal(256, 384) + 1, zero_points=True)
        self.close(wp.gemm(x, zeros, scale_a=0.5, scale_b=2.0), f32(x) @ zeros.values().T, 0.03)

    def test_experts(self):
        x, w = normal(40, 256, dtype=e4m3), normal(3, 128, 256)
        packed = wp.pack_int4(w)
        self.assertEqual(packed.shape, (3, 128, 256))
        offsets = np.array([0, 7, 7, 40], np.int32)
        want = np.concatenate([f32(x)[i:j] @ packed.values()[g].T
                               for g, (i, j) in enumerate(zip(offsets, offsets[1:]))])
        self.close(wp.grouped_gemm(x, packed, offsets), want, 0.03)
        one = wp.pack_int4(w[:1])
        self.close(wp.grouped_gemm(x, one, np.array([0, 40], np.int32)),
                   f32(x) @ one.values()[0].T, 0.03)
        self.refused("bad_shape", "of one matrix", wp.grouped_gemm, x, wp.pack_int4(w[0]),
                     np.array([0, 40], np.int32))

    def test_a_class_of_ones_own(self):
        """What is derived from a library's tensors is one of that library."""
        class Parameter(np.ndarray):
            __module__ = "server.parameter"
        w = normal(128, 256).view(Parameter)
        for packed in (wp.pack_int4(w), wp.pack_fp4(w)):
            self.assertIsInstance(packed.data, np.ndarray)
        self.assertIsInstance(wp.quantise(w, "mxf4")[0], np.ndarray)
        ids = np.zeros((3, 2), np.int32).view(Parameter)
        self.assertTrue((wp.sort_slots(ids, 4)[0] == [0, 6, 6, 6, 6]).all())

    def test_checkpoints(self):
        # The plain layout: two codes in a byte along K, the even one low.
        codes = rng.integers(-8, 8, (64, 256), dtype=np.int8)
        scales = (0.01 + rng.random((64, 2))).astype(np.float16)
        bytes_ = ((codes[:, 0::2] & 15) | (codes[:, 1::2] & 15) << 4).astype(np.int8)
        packed = wp.pack_int4_checkpoint("int4", bytes_, scales)
        self.assertEqual(packed.scales, "f16")
        want = codes * np.repeat(f32(scales), 128, 1)
        np.testing.assert_allclose(packed.values(), want, rtol=1e-6)
        x = normal(16, 256, dtype=e4m3)
        self.close(wp.gemm(x, packed, dtype="f16"), f32(x) @ want.T, 0.03)
        # GPTQ: eight codes along K in a word, zero points stored less 1.
        words = np.zeros((32, 64), np.uint32)
        for i in range(8):
            words |= (codes.T[i::8].astype(np.int64) + 8).astype(np.uint32) << np.uint32(4 * i)
        zeros = np.full((2, 8), 0x77777777, np.uint32)
        gptq = wp.pack_int4_checkpoint("gptq", words.view(np.int32),
                                       np.ascontiguousarray(scales.T), zeros.view(np.int32))
        self.assertEqual(gptq.origin, "gptq")
        np.testing.assert_allclose(gptq.values(), want, rtol=1e-6)
        self.refused("bad_value", "gptq", wp.pack_int4_checkpoint, "nobody's", bytes_, scales)

    def test_files(self):
        w = normal(64, 256)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "w.safetensors"
            header = b'{"w":{"dtype":"F32","shape":[64,256],"data_offsets":[0,65536]}}'
            header += b" " * (-len(header) % 8)
            path.write_bytes(len(header).to_bytes(8, "little") + header + w.tobytes())
            loaded = wp.load_int4(f"{path}:w", group=64)
            self.assertEqual(loaded.data.tobytes(), wp.pack_int4(w, group=64).data.tobytes())
            self.assertEqual(loaded.shape, (64, 256))
            self.refused("file_error", "give their layout by layout=", wp.load_int4, f"{path}:v")
        self.refused("file_error", "", wp.load_int4, "/nowhere.safetensors:w")

    def test_fp4(self):
        """Packed from floats, from tensors and from a file: the same bytes, whose values are the
        codes times the scales; and multiplied."""
        random = np.random.default_rng(3)
        codes = random.integers(0, 256, (2, 72, 96), np.uint8)
        nibbles = np.stack([codes & 15, codes >> 4], -1).reshape(2, 72, 192)
        table = np.array([0, .5, 1, 1.5, 2, 3, 4, 6] + [-0., -.5, -1, -1.5, -2, -3, -4, -6],
                         np.float32)
        exponents = random.integers(124, 130, (2, 72, 6), np.uint8)
        want = table[nibbles] * np.repeat(2.0 ** (exponents.astype(np.float32) - 127), 32, -1)
        for encoding in (None, "mxf4-exact", "mxf4-bf16", "mxf4-fp16"):
            packed = wp.pack_fp4_checkpoint("gpt-oss", codes, exponents, encoding=encoding)
            self.assertEqual((packed.encoding, packed.shape, packed.group, packed.scales),
                             (encoding or "mxf4", (2, 72, 192), 32, "ue8m0"))
            np.testing.assert_array_equal(packed.values(), want)
            spec = wp.PackedWeights.spec(72, 192, 2, encoding=packed.encoding)
            self.assertEqual(spec.form, packed.form)
            x = random.integers(-3, 4, (9, 192)).astype(np.float32)
            half = encoding == "mxf4-fp16"
            tokens = x.astype(np.float16 if half else bf16 if encoding == "mxf4-bf16" else e4m3)
            offsets = np.array([0, 4, 9], np.int32)
            y = wp.grouped_gemm(tokens, packed, offsets, dtype="f16" if half else "bf16")
            right = np.concatenate([x[:4] @ want[0].T, x[4:] @ want[1].T])
            np.testing.assert_allclose(y.astype(np.float32), right, rtol=0.01, atol=0.02)
        # A factor for each expert.
        scales = random.integers(0x30, 0x40, (2, 72, 12), np.uint8).view(e4m3)
        factors = np.array([0.25, 2], np.float32)
        packed = wp.pack_fp4_checkpoint("modelopt-nvfp4", codes, scales, factors)
        self.assertEqual(packed.alpha, (0.25, 2))
        want = table[nibbles] * np.repeat(scales.astype(np.float32), 16, -1)
        want *= factors[:, None, None]
        np.testing.assert_array_equal(packed.values(), want)
        x = random.integers(-3, 4, (9, 192)).astype(bf16)
        self.refused("bad_value", "scale_b is not given", wp.grouped_gemm, x, packed, offsets)
        y = wp.grouped_gemm(x, packed, offsets, scale_b=factors)
        plain = x.astype(np.float32)
        right = np.concatenate([plain[:4] @ want[0].T, plain[4:] @ want[1].T])
        np.testing.assert_allclose(y.astype(np.float32), right, rtol=0.01, atol=0.05)
        rows = np.repeat(factors[:, None], 72, 1)
        np.testing.assert_array_equal(wp.grouped_gemm(x, packed, offsets, scale_b=rows), y)
        one = wp.pack_fp4_checkpoint("modelopt-nvfp4", codes[1], scales[1], factors[1:])
        np.testing.assert_allclose(wp.gemm(x, one).astype(np.float32), plain @ want[1].T,
                                   rtol=0.01, atol=0.05)
        # Gates have a factor, ups another: both as scales of rows.
        pair = np.array([[0.25, 2]], np.float32)
        two = (random.integers(0, 256, (1, 128, 96), np.uint8),
               random.integers(0x30, 0x40, (1, 128, 12), np.uint8).view(e4m3))
        self.refused("unsupported", "and the two as scales of rows (scale_w13, scale_b)",
                     wp.pack_fp4_checkpoint, "modelopt-nvfp4", *two, pair)
        both = wp.pack_fp4_checkpoint("modelopt-nvfp4", *two, np.ones((1, 2), np.float32))
        x = (random.integers(-3, 4, (9, 192)) / 64).astype(bf16)
        gates, ups = np.split(x.astype(np.float32) @ both.values()[0].T, 2, axis=1)
        y = wp.grouped_gemm(x, both, np.array([0, 9], np.int32), gated=True, activation="silu",
                            scale_b=np.repeat(pair, 64, 1))
        right = 0.25 * gates / (1 + np.exp(-0.25 * gates)) * 2 * ups
        np.testing.assert_allclose(y.astype(np.float32), right, rtol=0.02, atol=0.02)
        # Floats, of which the error is that of the formats.
        w = normal(64, 256)
        for encoding, most in (("mxf4", 0.13), ("nvf4-bf16", 0.11)):
            packed = wp.pack_fp4(w, encoding=encoding)
            off = packed.values() - w.astype(np.float32)
            self.assertLess(np.sqrt((off ** 2).mean() / (w.astype(np.float32) ** 2).mean()), most)
        self.refused("bad_value", "mxf4", wp.pack_fp4, w, encoding="fp4")
        self.refused("bad_value", "pack_int4_checkpoint packs it", wp.pack_fp4_checkpoint, "int4",
                     codes, exponents)
        self.refused("bad_value", "encoding is of nvf4 weights", wp.pack_fp4_checkpoint, "gpt-oss",
                     codes, exponents, encoding="nvf4-bf16")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "w.safetensors"
            header = (b'{"w_blocks":{"dtype":"U8","shape":[2,72,6,16],"data_offsets":[0,%d]},'
                      b'"w_scales":{"dtype":"U8","shape":[2,72,6],"data_offsets":[%d,%d]}}'
                      % (codes.size, codes.size, codes.size + exponents.size))
            header += b" " * (-len(header) % 8)
            path.write_bytes(len(header).to_bytes(8, "little") + header + codes.tobytes() +
                             exponents.tobytes())
            loaded = wp.load_fp4(f"{path}:w", encoding="mxf4-bf16")
            again = wp.pack_fp4_checkpoint("gpt-oss", codes, exponents, encoding="mxf4-bf16")
            self.assertEqual(loaded.data.tobytes(), again.data.tobytes())
            self.refused("bad_value", "are in layout gpt-oss; load_fp4 reads them", wp.load_int4,
                         f"{path}:w")
        # As they lie in the file: 16 bytes of a block in a dimension of their own.
        for of in (slice(None), 1):
            blocks = codes.reshape(2, 72, 6, 16)[of]
            same = wp.pack_fp4_checkpoint("gpt-oss", blocks, exponents[of], encoding="mxf4-bf16")
            flat = wp.pack_fp4_checkpoint("gpt-oss", codes[of], exponents[of], encoding="mxf4-bf16")
            self.assertEqual((same.form, same.data.tobytes()), (flat.form, flat.data.tobytes()))
        self.refused("bad_shape", "is 72 x 5; codes for 72 x 192", wp.pack_fp4_checkpoint,
                     "gpt-oss", codes.reshape(2, 72, 6, 16), exponents[..., :5].copy())
        self.refused("file_error", "", wp.load_fp4, "/nowhere.safetensors:w")

    def test_the_factor_of_nvf4_is_not_lost(self):
        x, offsets = normal(9, 256, dtype=bf16), np.array([0, 4, 9], np.int32)
        one = wp.pack_fp4(normal(64, 256), encoding="nvf4")
        self.assertEqual(len(one.alpha), 1)
        want = wp.gemm(x, one)
        # The bytes bring it along.
        again = wp.PackedWeights(one.data)
        self.assertEqual((again.alpha, again.form), (one.alpha, one.form))
        np.testing.assert_array_equal(wp.gemm(x, again), want)
        np.testing.assert_array_equal(again.values(), one.values())
        self.refused("bad_value", "the factor of B", wp.gemm, x, one, alpha=one.alpha[0])
        # Scales that are given take its place, in every product.
        factor = np.float32(one.alpha)
        np.testing.assert_array_equal(wp.gemm(x, one, scale_b=factor), want)
        np.testing.assert_array_equal(wp.gemm(x, one, scale_b=np.repeat(factor, 64)), want)
        twice = wp.PackedWeights(one.data, alpha=(2 * one.alpha[0],))
        np.testing.assert_array_equal(wp.gemm(x, twice), 2 * want)
        # Bytes of earlier versions do not say it.
        bare = wp.PackedWeights(one.data, (*one.form[:8], 0))
        eight = wp.PackedWeights(one.data, one.form[:8])
        for unknown in (bare, eight):
            self.assertIsNone(unknown.alpha)
            self.refused("bad_value", "factor (alpha) is not known", wp.gemm, x, unknown)
            self.refused("bad_value", "are not known", unknown.values)
            np.testing.assert_array_equal(wp.gemm(x, unknown, scale_b=factor), want)
        # Those of experts whose factors differ lie beside.
        w = normal(2, 64, 256).astype(np.float32)
        w[1] *= 3
        experts = wp.pack_fp4(w, encoding="nvf4")
        self.assertEqual(len(set(experts.alpha)), 2)
        self.assertIsNone(wp.PackedWeights(experts.data).alpha)
        for each in (experts, wp.PackedWeights(experts.data)):
            self.refused("bad_value", "scale_b is not given", wp.grouped_gemm, x, each, offsets)
        alike = wp.pack_fp4(np.stack([w[0], w[0]]), encoding="nvf4")
        factors = np.float32(alike.alpha)
        np.testing.assert_array_equal(
            wp.grouped_gemm(x, wp.PackedWeights(alike.data), offsets),
            wp.grouped_gemm(x, alike, offsets, scale_b=factors))
        self.refused("bad_value", "only nvf4 weights have factors", wp.PackedWeights,
                     wp.pack_int4(normal(64, 256)).data, alpha=(2.0,))
        self.refused("bad_value", "2 experts have one each", wp.PackedWeights, experts.data,
                     alpha=(2.0,))

    def test_every_form(self):
        """Rows of the library's table, by themselves: words, sizes, plans, and others' tokens."""
        forms = _prepare.FORMS.values()
        words = {*typing.get_args(_types.Encoding), *typing.get_args(_types.Fp4Encoding)}
        self.assertEqual({form.word for form in forms}, words - {form.format for form in forms}
                         | {"mxf4"})
        for form in forms:
            w = wp.PackedWeights.spec(128, 256, encoding=form.word)
            self.assertEqual((w.encoding, w.scales), (form.word, form.scales[0]))
            for tokens in {each.tokens for each in forms}:
                x = wp.Spec((16, 256), tokens)
                if tokens == form.tokens:
                    self.assertIn(f"x{tokens}", wp.plan(x, w, device="h200").kernel)
                else:
                    self.refused("bad_type", "packed for tokens of", wp.plan, x, w, device="h200")

    def test_plans_without_memory(self):
        w = wp.PackedWeights.spec(4096, 4096)
        plan = wp.plan(wp.Spec((16, 4096), "e4m3"), w, device="h200")
        self.assertIn("s4xe4m3", plan.kernel)
        grouped = wp.plan(wp.Spec((64, 4096), "e4m3"), wp.PackedWeights.spec(4096, 4096, 8),
                          wp.Spec((9,), "int32"), device="h200")
        self.assertIn("grouped_s4xe4m3", grouped.kernel)
        for encoding, kernel in (("ex-fp16", "s4xf16"), ("nvf4-fp16", "e2m1xf16")):
            half = wp.plan(wp.Spec((16, 4096), "f16"),
                           wp.PackedWeights.spec(4096, 4096, encoding=encoding), device="h200")
            self.assertIn(kernel, half.kernel)

    def test_the_faster_of_two_plans(self):
        spec = wp.Spec
        for rows, which in ((8 * 16, 0), (8 * 4096, 1)):
            tokens = (spec((rows, 4096), "e4m3"),)
            how = {"scale_a": spec((rows, 32), "f32"), "scaling": "blockwise", "device": "h200"}
            offsets = spec((9,), "int32")
            packed = wp.plan(*tokens,
                             wp.PackedWeights.spec(4096, 4096, 8, encoding="mxf4"), offsets,
                             **how)
            fp8 = wp.plan(*tokens, spec((8, 4096, 4096), "e4m3"), offsets,
                          scale_b=spec((8, 32, 32), "f32"), accumulation="promoted", **how)
            plan, index = wp.fastest(packed, fp8)
            self.assertEqual(index, which)
            self.assertEqual(plan.name, (packed, fp8)[which].name)
            self.assertIn("predicted to be faster than", plan.explain())
        other = wp.plan(spec((16, 4096)), spec((4096, 4096)), device="h200")
        self.refused("bad_value", "of one product, but for its weights", wp.fastest, packed, other)
        self.refused("bad_value", "there is no plan", wp.fastest)

    def test_refusals(self):
        x, packed = normal(8, 128, dtype=e4m3), wp.pack_int4(normal(64, 128))
        self.refused("bad_value", "B are no PackedWeights", wp.gemm, x, x, sums="exact")
        self.refused("bad_value", '"exact"', wp.gemm, x, packed, sums="quick")
        self.refused("bad_shape", "no contiguous row", wp.gemm, x, packed.on(packed.data[:-1]))
        self.refused("unsupported", "groups of 32, 64 or 128", wp.pack_int4, normal(8, 128),
                     group=7)
        self.refused("bad_type", "bf16", wp.gemm, normal(8, 128, dtype=bf16), packed)
        damaged = packed.data.copy()
        damaged[40] ^= 1
        self.refused("file_error", "damaged", wp.PackedWeights, damaged)
        nan = normal(8, 128)
        nan[0, 0] = np.nan
        self.refused("bad_value", "NaN", wp.pack_int4, nan)


class Numbers(Case):
    def test_tf32(self):
        a, b = normal(20, 64), normal(48, 64)
        plan = wp.plan(a, b, operands="tf32", device="model:a100")
        d = wp.gemm(a, b, operands="tf32", plan=plan)
        self.assertEqual(d.dtype, np.float32)
        self.close(d, a @ b.T, 2e-3)
        self.refused("bad_type", "to be multiplied as tf32, which lies as float32", wp.gemm,
                     a.astype(bf16), b, operands="tf32")

    def test_scales_that_are_numbers(self):
        a, b = normal(20, 64, dtype=e4m3), normal(48, 64, dtype=e4m3)
        self.close(wp.gemm(a, b, scale_a=0.5, scale_b=3), f32(a) @ f32(b).T * 1.5)
        self.refused("bad_value", "two numbers", wp.gemm, a, b, scale_a=0.5,
                     scale_b=np.ones((), np.float32))

    def test_scales_as_others_have_them(self):
        a, b = normal(20, 256, dtype=e4m3), normal(48, 256, dtype=e4m3)
        sa, sb = (np.asarray(0.5 + rng.random(m), np.float32) for m in (20, 48))
        bias = normal(48, dtype=bf16)
        want = wp.gemm(a, b, scale_a=sa, scale_b=sb, bias=bias, scaling="row_column")
        for of_a, of_b in (((20, 1), (48, 1)), ((20, 1), (1, 48)), ((1, 20), (48, 1))):
            for scaling in ({}, {"scaling": "row_column"}):
                d = wp.gemm(a, b, scale_a=sa.reshape(of_a), scale_b=sb.reshape(of_b),
                            bias=bias.reshape(of_b), **scaling)
                np.testing.assert_array_equal(d, want)
        # Those of 16 bits are widened.
        for kind in (bf16, np.float16):
            narrow = sa.astype(kind), sb.astype(kind)
            wide = [s.astype(np.float32) for s in narrow]
            np.testing.assert_array_equal(wp.gemm(a, b, scale_a=narrow[0], scale_b=narrow[1]),
                                          wp.gemm(a, b, scale_a=wide[0], scale_b=wide[1]))
        blocks = np.ones((20, 2), np.float32), np.ones((1, 2), bf16)
        wp.gemm(a, b, scale_a=blocks[0], scale_b=blocks[1])
        # A batch, and groups with one scale for all.
        two = np.stack([a, a]), np.stack([b, b])
        d = wp.gemm(*two, scale_a=np.stack([sa, sa])[..., None],
                    scale_b=np.stack([sb, sb])[:, None], scaling="row_column", bias=bias[None])
        np.testing.assert_array_equal(d, np.stack([want, want]))
        offsets = np.array([0, 9, 20], np.int32)
        one = np.full(1, 2, np.float32)
        np.testing.assert_array_equal(
            wp.grouped_gemm(a, two[1], offsets, scale_a=one, scale_b=one),
            wp.grouped_gemm(a, two[1], offsets, scale_a=one, scale_b=np.full(2, 2, np.float32)))

    def test_linear_scales_are_no_tiles(self):
        x = normal(128, 256).astype(np.float32)
        codes, tiles = wp.quantise(x, "mxf8")
        _, linear = wp.quantise(x, "mxf8", linear=True)
        self.assertEqual((tiles.size, linear.shape), (linear.size, (128, 8)))
        for wrong in (linear, tiles.reshape(128, 8)):
            self.refused("bad_shape", "which scales row by row are", wp.plan, codes, codes,
                         operands="mxf8", scale_a=wrong, scale_b=tiles, device="rtx5090")
        wp.plan(codes, codes, operands="mxf8", scale_a=wp.block_scales(linear), scale_b=tiles,
                device="rtx5090")

    def test_messages(self):
        a, b = normal(16, 32, dtype=bf16), normal(24, 32, dtype=bf16)
        self.refused("bad_type", "A is f64", wp.gemm, a.astype(np.float64), b.astype(np.float64))
        self.refused("bad_stride", "lies backwards", wp.gemm, a[:, ::-1], b)
        groups = normal(2, 24, 32, dtype=bf16)
        for offsets in (np.array([0, 3, 16], np.int16), np.array([0, 3, 16], np.uint32)):
            self.refused("bad_type", "the nearest is int32", wp.grouped_gemm, a, groups, offsets)
        a8, b8 = normal(16, 128, dtype=e4m3), normal(24, 128, dtype=e4m3)
        self.refused("bad_shape", "that scaling is blockwise was taken from the shapes", wp.gemm,
                     a8, b8, scale_a=np.ones((16, 1), np.float32),
                     scale_b=np.ones((1, 25), np.float32))


if __name__ == "__main__":
    unittest.main(verbosity=2)
