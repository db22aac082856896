#!/usr/bin/env python3
"""wp.moe with weights of mxf8 to nvf4, whose scales the tensor core multiplies, against float32 in
numpy. The model has the instructions of the B200 here."""
import os
import unittest
import unittest.mock

import ml_dtypes
import numpy as np

import warpwright as wp
from common import Case, bf16, f32

model = unittest.mock.patch.dict(os.environ, WARPWRIGHT_MODEL="b200")
setUpModule, tearDownModule = model.start, model.stop

SEED = 20261127
rng = np.random.default_rng(SEED)
BLOCK = {"mxf8": 32, "mxf4": 32, "nvf4": 16}
TYPE = {"mxf8": ml_dtypes.float8_e4m3fn, "mxf4": ml_dtypes.float4_e2m1fn,
        "nvf4": ml_dtypes.float4_e2m1fn}


def decoded(codes, scales, word):
    """What codes and linear scales stand for."""
    raw = np.asarray(codes).view(np.uint8)
    if TYPE[word] is ml_dtypes.float4_e2m1fn:
        raw = np.stack([raw & 15, raw >> 4], -1).reshape(*raw.shape[:-1], -1)
    return f32(raw.view(TYPE[word])) * np.repeat(f32(scales), BLOCK[word], -1)


class Layer:
    """Codes, scales in tiles and factors of a mixture, and its weights in float32."""

    def __init__(self, word, tokens=7, hidden=256, inner=192, experts=4, top_k=2, turns=False):
        self.turns = turns
        self.word = word
        self.x = rng.standard_normal((tokens, hidden), dtype=np.float32).astype(bf16)
        self.ids = rng.random((tokens, experts)).argsort(1)[:, :top_k].astype(np.int32)
        self.weights = rng.random((tokens, top_k), dtype=np.float32)
        self.factors = {}
        w13, self.wide13, f13 = self.weights_of(experts, 2 * inner, hidden)
        w2, self.wide2, f2 = self.weights_of(experts, hidden, inner)
        self.w13, scales = w13
        self.w2, scales2 = w2
        # Gates, then ups, whichever way their rows lie.
        halves = scales.reshape(experts, inner, 2, -1).swapaxes(1, 2) if turns else scales
        self.scales = {
            "scale_w13": wp.block_scales(np.ascontiguousarray(
                halves.reshape(2 * experts, inner, -1))),
            "scale_w2": wp.block_scales(scales2)}
        if word == "nvf4":
            self.factors = {"factor_w13": f13, "factor_w2": f2, "factor_x": np.float32([0.002]),
                            "factor_inner": np.float32([0.01])}

    def weights_of(self, experts, rows, k):
        values = rng.standard_normal((experts, rows, k), dtype=np.float32) / np.sqrt(k)
        codes, scales, wide, factors = [], [], [], []
        for expert in range(experts):
            made = wp.quantise(values[expert].astype(np.float32), self.word, linear=True)
            codes.append(np.asarray(made[0]))
            scales.append(np.asarray(made[1]))
            factors.append(float(np.asarray(made[2])[0]) if self.word == "nvf4" else 1.0)
            wide.append(decoded(codes[-1], scales[-1], self.word) * factors[-1])
        return (np.stack(codes), np.stack(scales)), np.stack(wide), np.float32(factors)

    def want(self):
        x = f32(self.x)
        d = np.zeros_like(x)
        inner = self.wide2.shape[2]
        for t, j in np.ndindex(self.ids.shape):
            e = self.ids[t, j]
            p = self.wide13[e] @ x[t]
            gate, up = (p[0::2], p[1::2]) if self.turns else (p[:inner], p[inner:])
            d[t] += self.weights[t, j] * (self.wide2[e] @ (gate / (1 + np.exp(-gate)) * up))
        return d

    def run(self, **how):
        return f32(wp.moe(self.x, self.ids, self.weights, self.w13, self.w2,
                          gate_up="interleaved" if self.turns else "halves",
                          **self.scales, **self.factors, **how))


class MoeFormats(Case):
    def close(self, got, want, most):
        self.assertFalse(np.isnan(got).any())
        off = np.sqrt(np.square(got - want).mean() / np.square(want).mean())
        self.assertLess(off, most, f"seed {SEED}")

    def test_agrees_with_float32(self):
        for word, most in (("mxf8", 0.06), ("nvf4", 0.25)):
            for turns in (False, True):
                with self.subTest(word=word, turns=turns):
                    layer = Layer(word, turns=turns)
                    self.close(layer.run(format=word), layer.want(), most)

    def test_types_say_the_format(self):
        layer = Layer("mxf8")
        layer.w13, layer.w2 = (w.view(ml_dtypes.float8_e4m3fn) for w in (layer.w13, layer.w2))
        layer.scales = {n: np.asarray(s).view(ml_dtypes.float8_e8m0fnu)
                        for n, s in layer.scales.items()}
        np.testing.assert_array_equal(layer.run(), layer.run(format="mxf8"))

    def test_factors_are_multiplied(self):
        layer = Layer("nvf4")
        want = layer.run(format="nvf4")
        layer.factors["factor_w2"] = 2 * layer.factors["factor_w2"]
        np.testing.assert_array_equal(layer.run(format="nvf4"), 2 * want)

    def test_plans(self):
        layer = Layer("nvf4")
        plan = wp.plan_moe(layer.x, layer.ids, layer.weights, layer.w13, layer.w2, device="b200",
                           format="nvf4", **layer.scales, **layer.factors)
        self.assertIn("nvf4", plan.explain())
        self.assertIn("blackwell_mxf4nvf4", plan.kernels[1])

    def test_refusals(self):
        layer = Layer("mxf8")
        self.refused("bad_value", 'format is "mxf5"', layer.run, format="mxf5")
        wide = Layer("mxf8")
        wide.w13 = wide.w13.astype(bf16)
        self.refused("bad_type", "w13 is bf16, and format says mxf8", wide.run, format="mxf8")
        layer.factors = {"factor_x": np.float32([1])}
        self.refused("bad_value", "factor_x is given; tokens of nvf4", layer.run, format="mxf8")
        layer = Layer("mxf8")
        layer.scales["scale_w13"] = np.asarray(layer.scales["scale_w13"])[:1]
        self.refused("bad_shape", "scale_w13 has", layer.run, format="mxf8")


if __name__ == "__main__":
    unittest.main()
