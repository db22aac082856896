"""An argument that is given where it means nothing is refused: every optional argument of every
call changes the result there, or is a hint that must not, or the call is refused."""
import inspect
import re
import unittest

import ml_dtypes
import numpy as np

import warpwright as wp

bf16, e4m3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
rng = np.random.default_rng(21)

# What says how a product is computed, and not what it is: the result is the same.
HINTS = {"batch_invariant", "kernel", "cluster", "measure", "dependent", "workspace", "plan",
         "expected_tokens", "expected_lengths", "check_offsets", "check_ids", "experts_total",
         "first_kernel", "second_kernel", "by_index", "quantises_in_epilogue",
         "gates_in_epilogue", "early_weights", "sort_with_gather", "one_launch", "out"}


def normal(*shape, dtype=bf16):
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def twos(*shape):
    return np.full(shape, 2, np.float32)


VALUES = {"c": normal(24, 48), "alpha": 2, "beta": 0.5, "bias": twos(48), "bias_along": "rows",
          "activation": "relu", "gated": True, "gate_up": "interleaved", "scale_a": twos(1),
          "scale_b": twos(1), "scale_d": twos(1), "scaling": "tensor", "accumulation": "promoted",
          "operands": "nvf4", "a_type": "nvf4", "b_type": "nvf4", "sums": "exact", "dtype": "f32",
          "quantise_d": "1x128", "d_scales": twos(24, 1), "rows": np.zeros(24, np.int32),
          "rows_divisor": 2, "expected_tokens": 3, "expected_lengths": "equal",
          "check_offsets": True, "stream": 1, "scale_w13": twos(4), "scale_w2": twos(4),
          "factor_w13": twos(4), "factor_w2": twos(4), "factor_x": twos(1),
          "factor_inner": twos(1), "format": "nvf4", "bias13": twos(4, 128), "bias2": twos(4, 128),
          "first_expert": 1, "combine": "weighted", "apply_router_weight_on_input": True,
          "routed_scaling_factor": 2, "shared_output": twos(3, 128), "scale_x": twos(1),
          "group": 64, "encoding": "nvf4-bf16", "scales": "f16",
          "zero_points": True, "zeros": np.zeros((48, 1), np.uint8),
          "offsets": np.int32([0, 5, 24]),
          "group_index": np.zeros(128, np.int32), "tensor_scale": twos(1), "scale": twos(1),
          "recipe": "floor", "linear": True, "block": (1, 128), "scale_type": "f32"}


def options(function):
    """The names of what has a default."""
    try:
        return [name for name, p in inspect.signature(function).parameters.items()
                if p.default is not inspect.Parameter.empty]
    except ValueError:
        return re.findall(r"(\w+)=", function.__doc__.split("--")[0])


def flat(result):
    if isinstance(result, wp.PackedWeights):
        result = result.data
    parts = result if isinstance(result, tuple) else (result,)
    return b"".join(np.ascontiguousarray(np.asarray(part)).tobytes() for part in parts)


class Unread(unittest.TestCase):
    def walk(self, function, *arrays, but=(), **given):
        base = flat(function(*arrays, **given))
        for name in options(function):
            if name in given or name in but or name not in VALUES:
                continue
            with self.subTest(function=function.__name__, argument=name):
                try:
                    got = flat(function(*arrays, **given, **{name: VALUES[name]}))
                except wp.Refusal:
                    continue
                self.assertTrue(got != base or name in HINTS, "taken, and read by nobody")

    def test_products(self):
        a, b = normal(24, 512), normal(48, 512)  # long enough that sums differ by how they are made
        self.walk(wp.gemm, a, b)
        self.walk(wp.gemm, a.astype(e4m3), b.astype(e4m3))
        # Sums of int4 weights are promoted anyway.
        self.walk(wp.gemm, a.astype(e4m3), wp.pack_int4(b), but=("accumulation", "sums"))
        self.walk(wp.grouped_gemm, a, normal(1, 48, 512), np.int32([0, 24]), but=("rows",))

    def test_mixtures(self):
        x, ids, weights = normal(3, 128), np.int32([[0, 1], [2, 3], [1, 2]]), twos(3, 2)
        self.walk(wp.moe, x, ids, weights, normal(4, 128, 128), normal(4, 128, 64), but=("gated",))
        self.walk(wp.moe, x, ids[:, :1], weights[:, :1], normal(4, 64, 128), normal(4, 128, 64),
                  gated=False, but=("combine",))  # a sum of one slot is its row
        packed = wp.pack_int4(normal(4, 256, 128)), wp.pack_int4(normal(4, 128, 128))
        self.walk(wp.moe, x, ids, weights, *packed, but=("sums", "gated"))

    def test_quantising(self):
        x = normal(24, 128, dtype=np.float32)
        for scaling in ("row_column", "blockwise", "tensor", "mxf8", "nvf4"):
            self.walk(wp.quantise, x, scaling=scaling, but=("scales",))
        self.walk(wp.block_scales, np.full((24, 4), 127, np.uint8), but=("offsets",))

    def test_packing(self):
        self.walk(wp.pack_int4, normal(48, 128))
        self.walk(wp.pack_fp4, normal(48, 128))
        codes = rng.integers(0, 256, (48, 64), np.uint8)
        self.walk(wp.pack_int4_checkpoint, "int4", codes.view(np.int8), normal(48, 1))
        self.walk(wp.pack_int4_checkpoint, "awq", rng.integers(-9, 9, (128, 6)).astype(np.int32),
                  normal(1, 48, dtype=np.float16), np.zeros((1, 6), np.int32),
                  but=("zeros",))
        self.walk(wp.pack_fp4_checkpoint, "gpt-oss", codes,
                  np.full((48, 4), 127, np.uint8), but=("encoding",))
        for encoding in ("mxf4", "nvf4-bf16"):
            for name in ("group", "scales", "zero_points"):
                with self.subTest(encoding=encoding, argument=name):
                    with self.assertRaises(wp.Refusal):
                        wp.PackedWeights.spec(64, 128, encoding=encoding, **{name: VALUES[name]})

    def test_beside_a_plan(self):
        a, b = normal(24, 512), normal(48, 512)  # long enough that sums differ by how they are made
        plan = wp.plan(a, b)
        for name, value in (("measure", 2), ("expected_tokens", 3), ("expected_lengths", "equal")):
            with self.subTest(argument=name), self.assertRaisesRegex(wp.Refusal, name):
                wp.gemm(a, b, plan=plan, **{name: value})
        for function in (wp.plan, wp.check, wp.trace):
            for name, value in (("plan", plan), ("workspace", wp.Workspace(64, "model")),
                                ("check_offsets", True), ("dependent", True)):
                with self.subTest(function=function.__name__, argument=name):
                    with self.assertRaisesRegex(wp.Refusal, f"{name} is given"):
                        function(a, b, **{name: value})


if __name__ == "__main__":
    unittest.main()
