"""Every array argument of every call as views of all kinds: the result is that of a contiguous
copy, bit by bit, or a Refusal. Memory behind each view cannot be read, and what lies between the
elements of a result stays as it was."""
import sys
import time
import unittest

import ml_dtypes
import numpy as np

import warpwright as wp
from view_kinds import kinds

bf16, e4m3, e8m0 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
SEED = int(time.time())
rng = np.random.default_rng(SEED)
ALL = "--all" in sys.argv


def normal(*shape, dtype=bf16):
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def integers(low, high, shape, dtype):
    return rng.integers(low, high, shape).astype(dtype)


def positive(*shape, dtype=np.float32):
    return (0.5 + rng.random(shape)).astype(dtype)


def flat(result):
    """The arrays of a result as one."""
    if isinstance(result, wp.PackedWeights):
        result = result.data
    parts = result if isinstance(result, tuple) else (result,)
    return b"".join(np.ascontiguousarray(np.asarray(part)).tobytes() for part in parts)


def packed_moe(x, ids, weights, data13, data2, scale_w13, scale_w2):
    return wp.moe(x, ids, weights, wp.PackedWeights(data13), wp.PackedWeights(data2),
                  scale_w13=scale_w13, scale_w2=scale_w2)


def on_rtx5090(**product):
    return wp.gemm(plan=wp.plan(**product, device="model:rtx5090"), **product)


def calls():
    """(name, function, arrays that are read, arrays that are written, the rest)."""
    m, n, k, g = 24, 48, 128, 3
    a, b = normal(m, k), normal(n, k)
    offsets = np.array([0, 5, 5, m], np.int32)
    bs = normal(g, n, k)
    yield ("gemm", wp.gemm, {"a": a, "b": b, "c": normal(m, n), "bias": normal(n)},
           {"out": (m, n, bf16)}, {"activation": "relu"})
    yield ("batches", wp.gemm, {"a": normal(2, m, k), "b": normal(2, n, k), "c": normal(2, m, n),
                                "bias": normal(2, m)}, {}, {"bias_along": "rows"})
    for scaling, sa, sb in (("tensor", (1,), (1,)), ("row_column", (m,), (n,)),
                            ("row_column", (m, 1), (1, n)), ("blockwise", (m, 1), (1, 1))):
        yield (scaling, wp.gemm, {"a": normal(m, k, dtype=e4m3), "b": normal(n, k, dtype=e4m3),
                                  "scale_a": positive(*sa), "scale_b": positive(*sb)}, {},
               {"scaling": scaling})
    yield ("1x128 result", wp.gemm, {"a": normal(m, k, dtype=e4m3),
                                     "b": normal(128, k, dtype=e4m3)},
           {"out": (m, 128, e4m3), "d_scales": (m, 1, np.float32)}, {"quantise_d": "1x128"})
    for word in ("mxf8", "nvf4"):
        codes, scales, *_ = wp.quantise(normal(m, k, dtype=np.float32), word)
        yield (word, on_rtx5090, {"a": codes.view(np.uint8), "b": codes.view(np.uint8),
                               "scale_a": scales, "scale_b": scales}, {},
               {"operands": word, "alpha": 1.0, "dtype": "bf16"})
    yield ("grouped", wp.grouped_gemm, {"a": a, "b": bs, "offsets": offsets,
                                        "bias": normal(g, n)}, {"out": (m, n, bf16)}, {})
    yield ("by index", wp.grouped_gemm, {"a": a, "b": bs, "offsets": offsets,
                                         "rows": integers(0, m, m, np.int32)}, {}, {})
    yield ("grouped fp8", wp.grouped_gemm, {
        "a": normal(m, k, dtype=e4m3), "b": normal(g, n, k, dtype=e4m3), "offsets": offsets,
        "scale_a": positive(m), "scale_b": positive(g, n)}, {}, {"scaling": "row_column"})
    e, h, inner, top = 2, 128, 64, 2
    router = {"topk_ids": integers(0, e, (3, top), np.int32), "topk_weights": positive(3, top)}
    w13, w2 = normal(e, 2 * inner, h), normal(e, h, inner)
    yield ("moe", wp.moe, {"x": normal(3, h), **router, "w13": w13, "w2": w2,
                           "bias13": positive(e, 2 * inner), "bias2": positive(e, h)},
           {"out": (3, h, bf16)}, {})
    yield ("moe fp8", wp.moe, {"x": normal(3, h), **router, "w13": w13.astype(e4m3),
                               "w2": w2.astype(e4m3), "scale_w13": positive(e, 2 * inner),
                               "scale_w2": positive(e, h)}, {}, {"scaling": "row_column"})
    yield ("moe of codes", wp.moe, {"x": normal(3, h, dtype=e4m3), **router,
                                    "w13": w13.astype(e4m3), "w2": w2.astype(e4m3),
                                    "scale_x": positive(3), "shared_output": normal(3, h),
                                    "scale_w13": positive(e, 2 * inner),
                                    "scale_w2": positive(e, h)}, {}, {"scaling": "row_column"})
    yield ("moe by slots", wp.moe, {"x": normal(3, h), **router, "w13": w13, "w2": w2},
           {"out": (3, top, h, bf16)}, {"combine": "weighted"})
    packed = [wp.pack_fp4(normal(e, rows, 128), encoding="nvf4-bf16") for rows in (256, 128)]
    yield ("moe packed", packed_moe, {"x": normal(3, 128), "ids": router["topk_ids"],
                                      "weights": router["topk_weights"],
                                      "data13": packed[0].data, "data2": packed[1].data,
                                      "scale_w13": positive(e), "scale_w2": positive(e, 128)},
           {}, {})
    yield ("packed", lambda a, data, scale_b: wp.gemm(a, wp.PackedWeights(data), scale_b=scale_b),
           {"a": a, "data": wp.pack_fp4(b, encoding="nvf4-bf16").data, "scale_b": positive(1)},
           {}, {})
    yield ("values", lambda data: wp.PackedWeights(data).values(),
           {"data": wp.pack_int4(b).data}, {}, {})
    x = normal(m, k, dtype=np.float32)
    for scaling, shape in (("row_column", (m,)), ("blockwise", (m, 1)), ("tensor", (1,))):
        yield (f"quantise {scaling}", wp.quantise, {"x": x},
               {"out": (m, k, e4m3), "scales": (*shape, np.float32)}, {"scaling": scaling})
    for word in ("mxf8", "mxf4", "nvf4"):
        bits, blocks = (8 if word == "mxf8" else 4), k // (16 if word == "nvf4" else 32)
        kind = e4m3 if word == "nvf4" else e8m0
        for linear in (False, True):
            yield (f"quantise {word}", wp.quantise, {"x": x},
                   {"out": (m, k * bits // 8, np.uint8),
                    "scales": (m if linear else 128, blocks, kind)},
                   {"scaling": word, "linear": linear})
    yield ("quantise by scale", wp.quantise, {"x": x, "scale": positive(1)}, {},
           {"scaling": "nvf4"})
    linear = integers(120, 130, (m, 4), np.uint8).view(e8m0)
    yield ("block_scales", wp.block_scales, {"scales": linear}, {"out": (128, 4, e8m0)}, {})
    yield ("block_scales in groups", wp.block_scales, {"scales": linear, "offsets": offsets}, {},
           {})
    yield ("block_scales of blocks", wp.block_scales,
           {"scales": np.exp2(integers(-3, 4, (2, 3), np.float32))}, {}, {"block": (128, 128)})
    yield ("sort_slots", wp.sort_slots, {"topk_ids": router["topk_ids"]}, {}, {"experts": e})
    yield ("pack_elements", lambda x: wp.pack_elements(x.view(ml_dtypes.float4_e2m1fn)),
           {"x": integers(0, 16, (m, k), np.uint8)}, {}, {})
    for function in (wp.pack_int4, wp.pack_fp4):
        for shape in ((n, k), (2, n, k)):
            yield (function.__name__, function, {"weights": normal(*shape)}, {}, {})
    words = integers(-2 ** 31, 2 ** 31, (n, k // 8), np.int32)
    yield ("compressed-tensors", wp.pack_int4_checkpoint,
           {"codes": words, "scales": normal(n, 1),
            "zeros": integers(0, 99, (n // 8, 1), np.int32)}, {}, {"layout": "compressed-tensors"})
    for layout, codes in (("gptq-v2", (k // 8, n)), ("awq", (k, n // 8))):
        more = {} if layout == "awq" else {"group_index": np.zeros(k, np.int32)}
        yield (layout, wp.pack_int4_checkpoint,
               {"codes": integers(-2 ** 31, 2 ** 31, codes, np.int32),
                "scales": normal(1, n, dtype=np.float16),
                "zeros": integers(-2 ** 31, 2 ** 31, (1, n // 8), np.int32), **more}, {},
               {"layout": layout})
    yield ("int4", wp.pack_int4_checkpoint,
           {"codes": integers(-128, 128, (2, n, k // 2), np.int8), "scales": normal(2, n, 1)}, {},
           {"layout": "int4"})
    codes = integers(0, 256, (2, n, k // 2), np.uint8)
    yield ("gpt-oss", wp.pack_fp4_checkpoint,
           {"codes": codes, "scales": integers(120, 124, (2, n, k // 32), np.uint8)}, {},
           {"layout": "gpt-oss"})
    yield ("modelopt-nvfp4", wp.pack_fp4_checkpoint,
           {"codes": codes, "scales": positive(2, n, k // 16).astype(e4m3),
            "tensor_scale": positive(2)}, {}, {"layout": "modelopt-nvfp4"})


class Views(unittest.TestCase):
    def told(self, function, read, rest):
        try:
            return flat(function(**read, **rest))
        except wp.Refusal:
            return None

    def test_arrays_that_are_read(self):
        equal = refused = 0
        for name, function, read, _, rest in calls():
            with self.subTest(name):
                right = flat(function(**read, **rest))
            for argument, array in read.items():
                for kind, of in kinds(array.ndim).items():
                    # A mixture on the model takes long: a sample, all of them with --all.
                    if name.startswith("moe") and not ALL and rng.random() > 0.3:
                        continue
                    view = of(array)
                    copy = {**read, argument: np.ascontiguousarray(view)}
                    got = self.told(function, {**read, argument: view}, rest)
                    want = right
                    if got is not None and kind.startswith("broadcast"):
                        want = self.told(function, copy, rest)
                    with self.subTest(name, argument=argument, kind=kind):
                        self.assertTrue(got is None or got == want)
                        if kind == "as it is":
                            self.assertIsNotNone(got)
                    equal += got is not None
                    refused += got is None
        print(f"{equal} views gave what a copy gives, {refused} were refused")
        self.assertGreater(equal, refused)

    def test_arrays_that_are_written(self):
        for name, function, read, written, rest in calls():
            for argument, (*shape, dtype) in written.items():
                others = {each: np.zeros(tuple(extents), kind)
                          for each, (*extents, kind) in written.items()}
                right = {**others, argument: np.zeros(tuple(shape), dtype)}
                function(**read, **right, **rest)
                for kind, of in kinds(len(shape)).items():
                    base = view = of(np.zeros(tuple(shape), dtype))
                    while isinstance(base.base, np.ndarray):
                        base = base.base
                    before = base.view(np.uint8).copy()
                    bytes_of = base.view(np.uint8)
                    with self.subTest(name, argument=argument, kind=kind):
                        try:
                            function(**read, **{**others, argument: view}, **rest)
                        except wp.Refusal:
                            np.testing.assert_array_equal(bytes_of, before)
                            continue
                        self.assertEqual(np.ascontiguousarray(view).tobytes(),
                                         right[argument].tobytes())
                        view[...] = np.zeros((), dtype)  # one place holds no two results
                        np.testing.assert_array_equal(bytes_of, before)


if __name__ == "__main__":
    print(f"seed {SEED}")
    unittest.main(argv=[each for each in sys.argv if each != "--all"])
