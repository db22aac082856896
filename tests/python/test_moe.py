#!/usr/bin/env python3
"""wp.moe on the model, against float32 in numpy; its plans and its refusals."""
import logging
import math
import unittest

import ml_dtypes
import numpy as np

import warpwright as wp
from common import Case, bf16, e4m3, f32

f16 = np.dtype(np.float16)
SEED = 2026
rng = np.random.default_rng(SEED)
Spec = wp.Spec


def normal(*shape, dtype=bf16, scale=1.0):
    return (scale * rng.standard_normal(shape, dtype=np.float32)).astype(dtype)


def silu(gate, up):
    return gate / (1 + np.exp(-gate)) * up


def swiglu_oai(gate, up):
    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
    return (up + 1) * gate / (1 + np.exp(-1.702 * gate))


class Layer:
    """Tensors of a mixture, and what it is in float32."""

    def __init__(self, tokens=9, hidden=128, inner=64, experts=8, top_k=2, ids=np.int64):
        self.x = normal(tokens, hidden)
        self.ids = rng.random((tokens, experts)).argsort(1)[:, :top_k].astype(ids)
        self.weights = rng.random((tokens, top_k), dtype=np.float32)
        self.w13 = normal(experts, 2 * inner, hidden, scale=hidden ** -0.5)
        self.w2 = normal(experts, hidden, inner, scale=inner ** -0.5)
        self.biases = {}
        self.scales = {}

    @property
    def tensors(self):
        return self.x, self.ids, self.weights, self.w13, self.w2

    def add_biases(self, dtype):
        experts, rows, hidden = self.w13.shape
        self.biases = {"bias13": normal(experts, rows, dtype=dtype),
                       "bias2": normal(experts, hidden, dtype=dtype)}

    def quantise(self, scaling, block=128):
        """Weights as e4m3 codes whose scales are of rows or of blocks."""
        for name in ("w13", "w2"):
            w = f32(getattr(self, name))
            experts, rows, columns = w.shape
            if scaling == "row_column":
                scale = rng.random((experts, rows), dtype=np.float32) / 200 + 0.01
                full = scale[:, :, None]
            else:
                extents = (experts, -(-rows // block), -(-columns // block))
                scale = rng.random(extents, dtype=np.float32) / 200 + 0.01
                full = scale.repeat(block, 1).repeat(block, 2)[:, :rows, :columns]
            setattr(self, name, (w / full).astype(e4m3))
            self.scales["scale_" + name] = scale
            self.scales["full_" + name] = full

    def call(self, **how):
        scales = {name: s for name, s in self.scales.items() if name.startswith("scale_")}
        return wp.moe(*self.tensors, **{**scales, **self.biases, **how})

    def right(self, act=silu, interleaved=False, experts=None):
        w13 = f32(self.w13) * self.scales.get("full_w13", 1)
        w2 = f32(self.w2) * self.scales.get("full_w2", 1)
        bias13, bias2 = (f32(self.biases.get(name, np.zeros(len(w2)))) for name in
                         ("bias13", "bias2"))
        out = np.zeros(self.x.shape, np.float32)
        for t, j in np.ndindex(*self.ids.shape):
            e = self.ids[t, j]
            if e not in (range(len(w2)) if experts is None else experts):
                continue
            both = w13[e] @ f32(self.x[t]) + bias13[e]
            gate, up = (both[::2], both[1::2]) if interleaved else np.split(both, 2)
            out[t] += f32(self.weights[t, j]) * (w2[e] @ act(gate, up) + bias2[e])
        return out


class Moe(Case):
    def close(self, d, want, most=0.01):
        self.assertEqual(d.shape, want.shape)
        off = np.linalg.norm(f32(d) - want) / max(1e-6, np.linalg.norm(want))
        self.assertLess(off, most, f"seed {SEED}")

    def test_slots_by_themselves(self):
        layer = Layer()
        layer.ids[4] = -1
        d = layer.call(combine="weighted", dtype="f32")
        self.assertEqual(d.shape, (9, 2, 128))
        self.close(d.sum(1), layer.right())
        self.assertFalse(d[4].any())
        rows = layer.call(combine="none", out=np.empty((9, 2, 128), np.float32))
        np.testing.assert_array_equal(rows * layer.weights[:, :, None], d)
        one = Layer(top_k=1)
        self.assertEqual(one.call(combine="none").shape, (9, 1, 128))
        self.says("a row for each slot", layer.call,
                  combine="none", out=np.empty((9, 128), np.float32))
        self.says("lie evenly", layer.call,
                  combine="none", out=np.empty((9, 3, 128), np.float32)[:, :2])

    def test_an_mlp_is_the_only_expert(self):
        layer = Layer(experts=1, top_k=1)
        layer.weights[:] = 1
        want = layer.right()
        self.close(wp.mlp(layer.x, layer.w13, layer.w2), want)
        d = wp.mlp(layer.x, layer.w13[0], layer.w2[0])
        self.close(d, want)
        plan = wp.plan_moe(layer.x, None, None, layer.w13[0], layer.w2[0])
        self.assertEqual(plan.launches, 2)
        out = np.empty_like(d)
        self.assertIs(wp.mlp(layer.x, layer.w13[0], layer.w2[0], out=out, plan=plan), out)
        np.testing.assert_array_equal(out, d)
        layer.add_biases(np.float32)
        self.close(wp.mlp(layer.x, layer.w13, layer.w2, **{n: b[0] for n, b in
                                                         layer.biases.items()}), layer.right())
        for scaling in ("row_column", "blockwise"):
            layer = Layer(experts=1, top_k=1, hidden=256, inner=128)
            layer.weights[:] = 1
            layer.quantise(scaling)
            scales = {n: s[0] for n, s in layer.scales.items() if n.startswith("scale_")}
            self.close(wp.mlp(layer.x, layer.w13[0], layer.w2[0], **scales), layer.right(), 0.05)
        packed = [wp.pack_int4(f32(w)) for w in (normal(256, 128), normal(128, 128))]
        x = normal(5, 128)
        gate, up = np.split(f32(x) @ packed[0].values().T, 2, 1)
        self.close(wp.mlp(x, *packed), silu(gate, up) @ packed[1].values().T, 0.06)
        self.says("it is of layers with a router", wp.mlp,
                  layer.x, layer.w13, layer.w2, combine="none", **scales)
        self.says("a layer without a router has one", wp.mlp,
                  normal(3, 64), normal(2, 64, 64), normal(2, 64, 32))

    def test_a_shared_output_and_a_factor(self):
        layer = Layer()
        shared = normal(9, 128, dtype=np.float32)
        d = layer.call(shared_output=shared, routed_scaling_factor=2.5)
        self.close(d, 2.5 * layer.right() + shared)
        plan = wp.plan_moe(*layer.tensors, shared_output=shared)
        np.testing.assert_array_equal(
            layer.call(shared_output=shared, routed_scaling_factor=2.5, plan=plan), d)
        self.says("added to the sum over", layer.call, shared_output=shared, combine="none")

    def test_router_weights_on_the_input(self):
        layer = Layer(top_k=1)
        d = layer.call(apply_router_weight_on_input=True)
        layer.x = (f32(layer.x) * layer.weights).astype(bf16)
        layer.weights[:] = 1
        np.testing.assert_array_equal(d, layer.call())
        self.says("has one expert", Layer().call, apply_router_weight_on_input=True)

    def test_tokens_that_are_codes(self):
        for scaling in ("row_column", "blockwise"):
            layer = Layer(hidden=256)
            layer.quantise(scaling)
            want = layer.call(scaling=scaling)
            codes, scales = wp.quantise(layer.x, scaling)
            layer.x = codes
            d = layer.call(scaling=scaling, scale_x=scales)
            self.assertEqual(d.dtype, bf16)
            np.testing.assert_array_equal(d, want)
            self.says("scale_x is left out", layer.call, scaling=scaling)
            if scaling == "row_column":
                half = np.full(9, 0.5, np.float32)
                np.testing.assert_array_equal(layer.call(scaling=scaling, scale_x=half[:1]),
                                              layer.call(scaling=scaling, scale_x=half))

    def test_without_a_gate(self):
        acts = {"relu2": lambda x: np.maximum(x, 0) ** 2,
                "silu": lambda x: x / (1 + np.exp(-x)),
                "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi)
                                                       * (x + 0.044715 * x ** 3)))}
        layer = Layer()
        whole = layer.w13
        for name, act in acts.items():
            layer.w13 = whole
            self.close(layer.call(activation="gelu"),
                       layer.right(lambda gate, up: acts["gelu"](gate) * up))
            erf = np.vectorize(math.erf)
            self.close(layer.call(activation="gelu_erf"),
                       layer.right(lambda gate, up: gate / 2 * (1 + erf(gate / 2 ** 0.5)) * up))
            # Both halves alike: what is one's gate is the other's up.
            layer.w13 = np.concatenate([whole[:, :64]] * 2, 1)
            want = layer.right(lambda gate, up: act(up))
            layer.w13 = whole[:, :64]
            self.close(layer.call(activation=name, gated=False), want)
        self.says("activation", layer.call, activation="swiglu_oai", gated=False)

    def test_types(self):
        for ids in (np.int32, np.int64):
            layer = Layer(ids=ids)
            d = layer.call()
            self.assertEqual(d.dtype, bf16)
            self.close(d, layer.right())
        wide = layer.call(dtype="f32")
        self.assertEqual(wide.dtype, np.float32)
        np.testing.assert_array_equal(wide.astype(bf16), layer.call())
        for dtype in (bf16, f16):
            layer.weights = f32(layer.weights).astype(dtype)
            self.close(layer.call(), layer.right())

    def test_scales(self):
        for scaling in ("row_column", "blockwise"):
            layer = Layer(5, 256, 128, 3)
            layer.quantise(scaling)
            d = layer.call()  # which scaling it is, the shapes say
            self.close(d, layer.right(), 0.06)
            np.testing.assert_array_equal(d, layer.call(scaling=scaling))
            plan = wp.plan_moe(*layer.tensors, scale_w13=layer.scales["scale_w13"],
                               scale_w2=layer.scales["scale_w2"])
            self.assertIn(scaling.replace("_", "-") + " scaling", plan.explain())
        layer = Layer(5, 256, 128, 3)
        layer.quantise("row_column")
        with_column = {name: layer.scales[name][..., None] for name in ("scale_w13", "scale_w2")}
        np.testing.assert_array_equal(layer.call(**with_column), layer.call())

    def test_int4_weights(self):
        layer = Layer(5, 256, 128, 3)
        codes = {name: wp.pack_int4(getattr(layer, name)) for name in ("w13", "w2")}
        for name, packed in codes.items():
            setattr(layer, name, packed.values())
        want = layer.right()
        tensors = (layer.x, layer.ids, layer.weights, codes["w13"], codes["w2"])
        for how in ({}, {"scaling": "blockwise"}, {"sums": "chained"}):
            self.close(wp.moe(*tensors, **how), want, 0.06)
        self.assertIn("s4", wp.plan_moe(*tensors).explain())
        there = wp.plan_moe(Spec((64, 2048)), Spec((64, 8), "int32"), Spec((64, 8), "f32"),
                            wp.PackedWeights.spec(1536, 2048, 128),
                            wp.PackedWeights.spec(2048, 768, 128), device="h200")
        self.assertIn("floors together", there.explain())
        one = wp.pack_int4(normal(256, 256, dtype=np.float32))
        for weights, how, says in [((one, codes["w2"]), {}, "w13 are packed weights of one matrix"),
                                   ((codes["w13"], layer.w2), {}, "both weights are of one type"),
                                   ((codes["w13"], codes["w2"]), {"sums": "best"}, '"exact"')]:
            self.says(says, wp.moe, *tensors[:3], *weights, **how)
        self.says("sums is given, and w2 are no PackedWeights", Layer().call, sums="exact")

    def test_fp4_weights(self):
        for encoding in ("mxf4", "mxf4-bf16", "nvf4-bf16"):
            layer = Layer(5, 256, 128, 3)
            codes = {name: wp.pack_fp4(getattr(layer, name), encoding=encoding)
                     for name in ("w13", "w2")}
            factors = {}
            for name, packed in codes.items():
                each = np.asarray(packed.alpha or [1] * len(layer.w13), np.float32)
                setattr(layer, name, packed.values())
                rows = getattr(layer, name).shape[1]
                factors["scale_" + name] = np.repeat(each[:, None], rows, axis=1)
            tensors = (layer.x, layer.ids, layer.weights, codes["w13"], codes["w2"])
            how = factors if encoding == "nvf4-bf16" else {}
            self.close(wp.moe(*tensors, **how), layer.right(), 0.06)
            self.assertIn("e2m1", wp.plan_moe(*tensors, **how).explain())
            if encoding == "nvf4-bf16":
                self.says("scale_w13 is not given", wp.moe, *tensors)
                bare = [wp.PackedWeights(w.data) for w in codes.values()]
                self.says("scale_w13 is not given", wp.moe, *tensors[:3], *bare)
                want = wp.moe(*tensors, **how)
                for shape in ((-1,), (-1, 1)):  # one an expert
                    each = {"scale_" + name: np.float32(w.alpha).reshape(shape)
                            for name, w in codes.items()}
                    np.testing.assert_array_equal(wp.moe(*tensors[:3], *bare, **each), want)
        there = wp.plan_moe(Spec((64, 2048)), Spec((64, 8), "int32"), Spec((64, 8), "f32"),
                            wp.PackedWeights.spec(1536, 2048, 128, encoding="mxf4"),
                            wp.PackedWeights.spec(2048, 768, 128, encoding="mxf4"), device="h200")
        self.assertIn("packed mxf4", there.explain())

    def test_factors_are_of_nvf4(self):
        layer = Layer(hidden=256, inner=128)
        for name in ("factor_w13", "factor_w2", "factor_x", "factor_inner"):
            self.says(f"{name} is given", layer.call, **{name: np.ones(1, np.float32)})
            self.says(f"{name} is no tensor", layer.call, **{name: "abc"})

    def test_the_faster_of_two_plans(self):
        layer = Layer(hidden=256, inner=128)
        codes = [wp.pack_fp4(getattr(layer, name), encoding="mxf4") for name in ("w13", "w2")]
        for name, packed in zip(("w13", "w2"), codes):
            setattr(layer, name, packed.values())
        # A unit of its own for each 128 x 128, in which e4m3 has all of the values.
        fp8, scales = [], {}
        for name in ("w13", "w2"):
            w = getattr(layer, name)
            e, n, k = w.shape
            blocks = w.reshape(e, n // 128, 128, k // 128, 128)
            largest = np.abs(blocks).max((2, 4))
            unit = np.exp2(np.ceil(np.log2(largest / 448))).astype(np.float32)
            exact = (blocks / unit[:, :, None, :, None]).reshape(w.shape)
            fp8.append(exact.astype(ml_dtypes.float8_e4m3fn))
            np.testing.assert_array_equal(fp8[-1].astype(np.float32), exact)
            scales["scale_" + name] = unit
        first = (layer.x, layer.ids, layer.weights)
        how = {"scaling": "blockwise"}
        plans = [wp.plan_moe(*first, *codes, **how), wp.plan_moe(*first, *fp8, **scales, **how)]
        plan, index = wp.fastest(*plans)
        self.assertEqual(plan.name, plans[index].name)
        self.assertIn("predicted to be faster than", plan.explain())
        results = [wp.moe(*first, *codes, plan=plans[0], **how),
                   wp.moe(*first, *fp8, plan=plans[1], **scales, **how)]
        for result in results:
            self.close(result, layer.right(), 0.06)
        chosen = ((codes, {}), (fp8, scales))[index]
        again = wp.moe(*first, *chosen[0], plan=plan, **chosen[1], **how)
        np.testing.assert_array_equal(np.asarray(again), np.asarray(results[index]))
        for bad, says in ((plans[:1] + [None], "plan is no warpwright.MoePlan"),
                          ([wp.plan_moe(*Layer().tensors), plans[0]], "of one mixture, but for")):
            self.says(says, wp.fastest, *bad)

    def test_small_blocks(self):
        """A rank's share of 192 ups; blocks by the scales' shapes."""
        for block in (64, 32):
            layer = Layer(hidden=256, inner=192)
            layer.quantise("blockwise", block)
            self.close(layer.call(), layer.right(), 0.06)
            self.assertIn("gated and quantised by a launch of their own",
                          wp.plan_moe(*layer.tensors, scale_w13=layer.scales["scale_w13"],
                                      scale_w2=layer.scales["scale_w2"]).explain())
            layer.scales["scale_w2"] = layer.scales["scale_w2"][:, :, :1].copy()
            self.says("128 x 128, 64 x 64 or 32 x 32", layer.call)

    def test_ways_give_the_same(self):
        layer = Layer(hidden=256, inner=128)
        layer.quantise("blockwise")
        for by_index, fused in ((True, False), (False, False), (False, True)):
            self.close(layer.call(by_index=by_index, quantises_in_epilogue=fused), layer.right(),
                       0.06)
        layer = Layer(hidden=256, inner=128)
        np.testing.assert_array_equal(layer.call(by_index=False, sort_with_gather=True),
                                      layer.call(by_index=False, sort_with_gather=False))
        np.testing.assert_array_equal(layer.call(one_launch=True), layer.call(one_launch=False))
        self.assertIn("1 launch;", wp.plan_moe(*layer.tensors, one_launch=True).explain())
        one = layer.call(batch_invariant=True)
        layer.x, layer.ids, layer.weights = (t[3:5] for t in (layer.x, layer.ids, layer.weights))
        np.testing.assert_array_equal(layer.call(batch_invariant=True), one[3:5])

    def test_the_experts_of_gpt_oss(self):
        layer = Layer(hidden=96, inner=80)
        layer.x = (layer.x * bf16.type(4)).astype(bf16)  # so that the limits cut
        for dtype in (np.float32, bf16):
            layer.add_biases(dtype)
            for gate_up in ("halves", "interleaved"):
                self.close(layer.call(activation="swiglu_oai", gate_up=gate_up),
                           layer.right(swiglu_oai, gate_up == "interleaved"))

    def test_the_numbers_of_a_gate(self):
        layer = Layer(hidden=96, inner=80)
        layer.x = (layer.x * bf16.type(4)).astype(bf16)

        def limited(gate, up):  # as DeepSeek-V4 has it, with 10
            return silu(np.minimum(gate, 2), np.clip(up, -2, 2))

        def other(gate, up):
            gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
            return (up - 0.5) * gate / (1 + np.exp(-0.75 * gate))
        self.close(layer.call(gate_limit=2), layer.right(limited))
        self.close(layer.call(activation="swiglu_oai", gate_alpha=0.75, gate_beta=-0.5),
                   layer.right(other))
        plan = wp.plan_moe(*layer.tensors, gate_limit=5)
        self.close(layer.call(plan=plan, gate_limit=2), layer.right(limited))

    def test_slots_that_are_left_out(self):
        layer = Layer()
        layer.ids[0] = -1
        layer.ids[1, 0], layer.ids[2, 1] = 8, 1 << 40
        d = layer.call()
        self.close(d, layer.right())
        self.assertTrue((f32(d[0]) == 0).all())
        with self.assertRaisesRegex(wp.Refusal, "an id that is neither -1 nor") as told:
            layer.call(check_ids=True)
        self.assertEqual(told.exception.code, "bad_value")
        layer.ids[1, 0], layer.ids[2, 1] = -1, 3
        self.close(layer.call(check_ids=True), layer.right())
        # NaN in an expert touches only its own tokens.
        layer.w2[3] = np.nan
        np.testing.assert_array_equal(np.isnan(f32(layer.call())).any(1), (layer.ids == 3).any(1))

    def test_ranks(self):
        layer = Layer(experts=7, top_k=3)
        whole = layer.right()
        sums = np.zeros(whole.shape, np.float32)
        w13, w2 = layer.w13, layer.w2
        for first, last in ((0, 2), (2, 3), (3, 7)):
            d = wp.moe(layer.x, layer.ids, layer.weights, w13[first:last], w2[first:last],
                       first_expert=first, experts_total=7, dtype="f32", check_ids=True)
            self.close(d, layer.right(experts=range(first, last)))
            sums += d
        self.close(sums, whole)

    def test_results(self):
        layer = Layer()
        want = layer.call()
        whole = np.full((9, 150), np.nan, bf16)
        out = whole[:, 10:138]
        self.assertIs(layer.call(out=out), out)
        np.testing.assert_array_equal(out, want)
        self.assertTrue(np.isnan(f32(whole[:, :10])).all() and np.isnan(f32(whole[:, 138:])).all())
        x = layer.x = layer.x.copy()
        self.assertIs(layer.call(out=x), x)
        np.testing.assert_array_equal(x, want)
        layer = Layer(tokens=0)
        self.assertEqual(layer.call().shape, (0, 128))

    def test_rows_that_lie_apart(self):
        layer = Layer()
        want = layer.call()
        together = np.concatenate([layer.ids.astype(np.int32), layer.weights.view(np.int32)], 1)
        layer.ids, layer.weights = together[:, :2], together[:, 2:].view(np.float32)
        wide = np.zeros((9, 200), bf16)
        wide[:, :128] = layer.x
        layer.x = wide[:, :128]
        np.testing.assert_array_equal(layer.call(), want)

    def test_plans_and_workspaces(self):
        layer = Layer()
        plan = wp.plan_moe(*layer.tensors)
        self.assertIsInstance(plan, wp.MoePlan)
        for words in ("sort_slots", plan.kernels[0], plan.kernels[1], "9 tokens x 128"):
            self.assertIn(words, plan.explain())
        self.assertIn(plan.name, plan.line)
        self.assertIn(plan.line, repr(plan))
        self.assertEqual(plan.device, "model")
        self.assertGreaterEqual(plan.launches, 3)
        plan.prepare()
        with wp.Workspace(plan.workspace_bytes, "model") as memory:
            d = layer.call(plan=plan, workspace=memory)
        np.testing.assert_array_equal(d, layer.call())
        mine = np.full(plan.workspace_bytes + 256, 0xa5, np.uint8)  # from wherever it begins
        with wp.Workspace(mine) as memory:
            self.assertLess(memory.nbytes - plan.workspace_bytes, 257)
            np.testing.assert_array_equal(layer.call(plan=plan, workspace=memory), d)
        self.assertTrue((mine != 0xa5).any())
        same = wp.plan_moe(*layer.tensors, first_kernel=plan.kernels[0],
                           second_kernel=plan.kernels[1])
        self.assertEqual(same.kernels, plan.kernels)
        fixed = wp.plan_moe(*layer.tensors, by_index=False)
        self.assertIn("sort_gather", fixed.explain())
        fixed = wp.plan_moe(*layer.tensors, by_index=False, sort_with_gather=False)
        self.assertIn("gather_rows", fixed.explain())
        self.says("by_index is true, and the plan's is false", layer.call,
                  plan=fixed, by_index=True)

    def test_plans_without_tensors(self):
        there = wp.plan_moe(Spec((64, 2048)), Spec((64, 8), "int32"), Spec((64, 8), "f32"),
                            Spec((128, 1536, 2048)), Spec((128, 2048, 768)), device="h200")
        self.assertIn("floors together", there.explain())
        self.assertNotIn("floor", wp.plan_moe(*Layer().tensors).explain())
        routed, skewed = (wp.plan_moe(
            Spec((64, 2048)), Spec((64, 8), "int32"), Spec((64, 8), "f32"), Spec((128, 1536, 2048)),
            Spec((128, 2048, 768)), device="h200", expected_lengths=words).explain()
            for words in ("routed", "zipf:2"))
        self.assertNotEqual(routed, skewed)
        self.says("not here", there.prepare)
        self.says("and the tensors lie in host memory", Layer().call, plan=there)

    def test_a_new_plan_is_logged_once(self):
        layer = Layer(tokens=5, hidden=136)
        with self.assertLogs("warpwright", logging.DEBUG) as logged:
            layer.call()
            layer.call()
        (line,) = logged.output
        self.assertIn("5 tokens x 136", line)


class Refusals(Case):
    def refused_call(self, code, tensor, says, layer, **how):
        self.assertEqual(self.refused(code, says, layer.call, **how).tensor, tensor)

    def test_tensors(self):
        for name, change, code, says in [
                ("w2", lambda w: w[:, :, :32], "bad_shape", "the nearest legal is 8 x 128 x 64"),
                ("w13", lambda w: w[0], "bad_shape", "it has a matrix an expert"),
                ("w13", lambda w: w[:, 1:], "bad_shape", "gate and up"),
                ("w13", lambda w: w.astype(f16), "bad_type", "weights are of x's type"),
                ("x", lambda x: x.astype(np.float32), "bad_type", "tokens are bf16 or fp16"),
                ("x", lambda x: x[:, ::-1], "bad_stride", "backwards"),
                ("x", lambda x: x[None], "bad_shape", "it has a row a token"),
                ("ids", lambda i: i.astype(np.float32), "bad_type", "nearest is int32"),
                ("ids", lambda i: i[:, 0], "bad_shape", "1 dimension"),
                ("ids", lambda i: i.repeat(20, 1), "bad_shape", "1 to 32 experts"),
                ("weights", lambda w: w[:, :1], "bad_shape", "there is one for each id"),
                ("weights", lambda w: w[:4], "bad_shape", "there is one for each id")]:
            layer = Layer()
            setattr(layer, name, change(getattr(layer, name)))
            tensor = {"ids": "topk_ids", "weights": "topk_weights"}.get(name, name)
            self.refused_call(code, tensor, says, layer)
        layer = Layer()
        layer.add_biases(np.float32)
        layer.biases["bias13"] = layer.biases["bias13"][:, :-1]
        self.says("product with w13.*bias", layer.call)

    def test_results(self):
        layer = Layer()
        frozen = np.zeros((9, 128), bf16)
        frozen.flags.writeable = False
        self.refused_call("bad_pointer", "d", "read-only", layer, out=frozen)
        self.refused_call("bad_type", "d", "leave dtype out", layer, out=np.zeros((9, 128), bf16),
                     dtype="f32")
        self.refused_call("bad_shape", "d", "the result has the shape of x", layer,
                     out=np.zeros((9, 64), bf16))
        self.refused_call("overlap", "d", "the result may lie only over x", layer,
                     out=layer.w13[0, :9])

    def test_words_and_numbers(self):
        layer = Layer()
        for how, says in [({"activation": "relu"},
                           'it is one of "gelu", "silu", "swiglu_oai", "gelu_erf"'),
                          ({"activation": "tanh"}, '"silu"'), ({"gate_up": "turns"}, '"halves"'),
                          ({"scaling": "blockwise"}, "weights of 16 bits have no scales"),
                          ({"scaling": "rows"}, '"row_column"'),
                          ({"gate_limit": -3}, "the nearest legal is 3"),
                          ({"gate_alpha": 0}, "gate_alpha is 0"),
                          ({"by_index": 2}, "True nor False"),
                          ({"first_expert": -1}, "nearest legal value is 0"),
                          ({"first_expert": 4}, "first_expert is 4"),
                          ({"experts_total": 7}, "the nearest legal experts_total is 8"),
                          ({"experts_total": 0}, "nearest legal value is 1"),
                          ({"expected_lengths": "even"}, "nearest legal is routed"),
                          ({"check_ids": 1}, "neither True nor False"),
                          ({"stream": 3}, "leave it out"), ({"plan": 3}, "plan_moe() makes one"),
                          ({"plan": wp.plan(Spec((4, 8)), Spec((8, 8)))}, "no warpwright.MoePlan")]:
            self.refused_call("bad_value", "", says, layer, **how)
        scales = {"scale_w2": np.ones((8, 128), np.float32), "scaling": "none"}
        self.refused_call("bad_value", "scale_w2", "is given and scaling is none", layer, **scales)
        self.refused_call("bad_choice", "", "scales of blocks of 128 x 128 have it", layer,
                     quantises_in_epilogue=True)
        self.refused_call("no_kernel", "", "the product with w2", layer, second_kernel="nobody")
        self.refused_call("bad_workspace", "", "workspace", layer,
                          workspace=wp.Workspace(256, "model"))
        self.refused_call("bad_pointer", "x", "call plan_moe()", type("Layer", (Layer,), {
            "tensors": tuple(Spec(t.shape) for t in layer.tensors)})())

    def test_wrong_calls_are_type_errors(self):
        layer = Layer()
        for call, says in [(lambda: wp.moe(*layer.tensors[:4]), "missing required argument 'w2'"),
                           (lambda: wp.moe(*layer.tensors, None), "at most 5 arguments"),
                           (lambda: wp.moe(*layer.tensors, alpha=2.0), "'alpha'"),
                           (lambda: wp.plan_moe(*layer.tensors, stream=0), "'stream'"),
                           (lambda: wp.gemm(layer.x, layer.x, w13=layer.x), "'w13'"),
                           (lambda: wp.moe(*layer.tensors, x=layer.x), "multiple values")]:
            with self.assertRaisesRegex(TypeError, says):
                call()


if __name__ == "__main__":
    unittest.main(verbosity=2)
