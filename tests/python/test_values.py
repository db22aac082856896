"""What warpwright computes on the model, and what it says of plans; doors_test.py has the bits of
every option, fuzz.py float64."""
import inspect
import logging
import pickle
import subprocess
import sys
import threading
import unittest

import ml_dtypes
import numpy as np

import warpwright as wp

bf16 = np.dtype(ml_dtypes.bfloat16)
e4m3 = np.dtype(ml_dtypes.float8_e4m3fn)
rng = np.random.default_rng(2026)


def normal(*shape, dtype=bf16):
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def f32(x):
    return np.asarray(x).astype(np.float32)


class Values(unittest.TestCase):
    def close(self, d, want, tolerance=0.02):
        scale = max(1.0, float(np.abs(want).max()))
        self.assertEqual(d.shape, want.shape)
        self.assertLess(float(np.abs(f32(d) - want).max()), tolerance * scale)

    def test_any_alignment(self):
        for dtype, k in [(bf16, 33), (np.dtype(np.float16), 1), (e4m3, 100)]:
            a, b = normal(20, k, dtype=dtype), normal(37, k, dtype=dtype)
            self.close(wp.gemm(a, b), f32(a) @ f32(b).T)
            self.close(wp.gemm(normal(20, k + 1, dtype=dtype)[:, 1:] * 0 + a, b), f32(a) @ f32(b).T)
        self.assertIn("copied to the workspace first", wp.plan(a, b, device="h200").explain())

    def test_out_is_written_and_returned(self):
        a, b = normal(3, 32), normal(16, 32)
        whole = np.full((3, 40), np.nan, dtype=bf16)
        out = whole[:, 8:24]
        self.assertIs(wp.gemm(a, b, out=out), out)
        self.close(out, f32(a) @ f32(b).T)
        self.assertTrue(np.isnan(f32(whole[:, :8])).all() and np.isnan(f32(whole[:, 24:])).all())

    def test_scales(self):
        a, b = normal(20, 256, dtype=e4m3), normal(128, 256, dtype=e4m3)
        one = np.array(0.5, np.float32)
        self.close(wp.gemm(a, b, scale_a=one, scale_b=one), f32(a) @ f32(b).T / 4)
        sa = rng.random(20, dtype=np.float32)
        sb = rng.random(128, dtype=np.float32)
        self.close(wp.gemm(a, b, scale_a=sa, scale_b=sb), f32(a) @ f32(b).T * np.outer(sa, sb))
        ka, kb = rng.random((20, 2), dtype=np.float32), rng.random((1, 2), dtype=np.float32)
        want = sum((f32(a)[:, k * 128:][:, :128] @ f32(b)[:, k * 128:][:, :128].T)
                   * np.outer(ka[:, k], np.repeat(kb[:, k], 128)) for k in range(2))
        self.close(wp.gemm(a, b, scale_a=ka, scale_b=kb), want)
        self.close(wp.gemm(a, b, accumulation="promoted"), f32(a) @ f32(b).T)

    def test_codes_and_scales(self):
        def values(codes, scales):
            wide = np.repeat(f32(scales), 128, axis=-1)
            return f32(codes) * wide[..., :codes.shape[-1]]

        a, b = normal(20, 256, dtype=e4m3), normal(592, 256, dtype=e4m3)
        sums = f32(a) @ f32(b).T
        gate, up = sums[:, :296], sums[:, 296:]
        want = gate / (1 + np.exp(-gate)) * up
        codes, scales = wp.gemm(a, b, gated=True, quantise_d="1x128")
        self.assertEqual((codes.dtype, codes.shape, scales.shape), (e4m3, (20, 296), (20, 3)))
        self.assertLess(np.abs(values(codes, scales) - want).max() / np.abs(want).max(), 0.04)
        largest = np.abs(want[:, :128]).max(axis=1)
        np.testing.assert_allclose(f32(scales)[:, 0], largest / 448, rtol=2e-3)
        out, d_scales = np.empty((20, 592), e4m3), np.empty((20, 5), np.float32)
        both = wp.gemm(a, b, quantise_d="1x128", out=out, d_scales=d_scales)
        self.assertIs(both[0], out)
        self.assertIs(both[1], d_scales)
        self.assertLess(np.abs(values(out, d_scales) - sums).max() / np.abs(sums).max(), 0.04)
        offsets = np.array([0, 7, 7, 20], np.int32)
        grouped, of_rows = wp.grouped_gemm(a, np.stack([b, b, b]), offsets, gated=True,
                                           quantise_d="1x128")
        np.testing.assert_array_equal(f32(grouped), f32(codes))
        np.testing.assert_array_equal(f32(of_rows), f32(scales))
        self.assertTrue(wp.plan(a, b, gated=True, quantise_d="1x128").kernel.endswith("_q"))
        self.assertTrue(wp.check(a, b, gated=True, quantise_d="1x128", schedules=2))
        with self.assertRaisesRegex(wp.Refusal, "d_scales is given"):
            wp.gemm(a, b, d_scales=d_scales)
        with self.assertRaisesRegex(wp.Refusal, "d_scales is 20 x 4"):
            wp.gemm(a, b, quantise_d="1x128", d_scales=d_scales[:, :4])

    def test_one_token_has_one_scale(self):
        a, b = normal(1, 256, dtype=e4m3), normal(128, 256, dtype=e4m3)
        sa, sb = rng.random(1, dtype=np.float32), rng.random(128, dtype=np.float32)
        want = f32(a) @ f32(b).T * np.outer(sa, sb)
        self.close(wp.gemm(a, b, scale_a=sa, scale_b=sb), want)
        self.close(wp.gemm(a, b, scale_a=sa, scale_b=sb, scaling="row_column"), want)
        self.assertTrue(wp.plan(a, b, scale_a=sa, scale_b=sb))
        bs, sbs = normal(3, 48, 256, dtype=e4m3), rng.random((3, 48), dtype=np.float32)
        d = wp.grouped_gemm(a, bs, np.array([0, 0, 1, 1], np.int32), scale_a=sa, scale_b=sbs)
        self.close(d, f32(a) @ f32(bs)[1].T * np.outer(sa, sbs[1]))
        ones = np.ones(1, np.float32)  # of one row and one column both are the same
        self.close(wp.gemm(a, b[:1], scale_a=ones, scale_b=ones), f32(a) @ f32(b)[:1].T)

    def test_the_experts_of_gpt_oss(self):
        # A gate and what it is for in turns, with biases and limits, by their formula.
        x, w = 2 * normal(20, 64).astype(np.float32), normal(3, 48, 64)
        x, bias = x.astype(bf16), normal(3, 48).astype(np.float32)
        offsets = np.array([0, 3, 3, 20], np.int32)
        for gate_up in ("halves", "interleaved"):
            d = wp.grouped_gemm(x, w, offsets, bias=bias, gated=True, gate_up=gate_up,
                                activation="swiglu_oai")
            for g in (0, 2):  # the other one is empty
                rows = slice(offsets[g], offsets[g + 1])
                sums = f32(x)[rows] @ f32(w)[g].T + bias[g]
                halves = {"halves": (sums[:, :24], sums[:, 24:]),
                          "interleaved": (sums[:, ::2], sums[:, 1::2])}
                gate, up = halves[gate_up]
                gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
                self.close(d[rows], (up + 1) * gate / (1 + np.exp(-1.702 * gate)), 0.01)
        self.assertGreater((np.abs(sums) > 7).mean(), 0.1)

    def test_activations_of_large_values(self):
        """What is finite stays finite; infinities have the limits; NaN comes only of NaN."""
        x = np.array([[1.9e19], [-1.9e19], [1e25], [-1e25], [3e38], [-3e38], [np.inf], [-np.inf],
                      [np.nan]], np.float32).astype(bf16)
        one = np.ones((1, 1), bf16)
        for activation in ("relu", "gelu", "silu", "quick_gelu"):
            d = f32(wp.gemm(x, one, activation=activation, dtype="f32"))
            np.testing.assert_array_equal(d, np.where(f32(x) < 0, 0, f32(x)), activation)
        gates = np.concatenate([x, np.ones_like(x)], 1)  # as rows of x; B picks them
        b = np.zeros((16, 2), np.float32).astype(bf16)
        b[:8, 0], b[8:, 1] = 1, 1
        for activation, most, up in (("silu", np.inf, 1), ("swiglu_oai", 7, 2)):
            want = np.minimum(f32(x), most)
            want = np.where(want < 0, 0, want / (1 + np.exp(-1.702 * want)) * up)
            clean = gates.copy()  # an infinity times B's zeros is NaN in what it is for
            clean[~np.isfinite(f32(x)[:, 0]), 0] = 0
            want = np.where(np.isfinite(f32(x)), want, 0)
            d = f32(wp.gemm(clean, b, activation=activation, gated=True, dtype=bf16))
            np.testing.assert_allclose(d, np.broadcast_to(want, d.shape), 0.01)

    def test_tokens_by_index(self):
        x, b = normal(10, 64), normal(3, 48, 64)
        offsets = np.array([0, 5, 5, 20], np.int32)
        slots = np.random.default_rng(3).permutation(20).astype(np.int32)
        gathered = wp.grouped_gemm(np.ascontiguousarray(x[slots // 2]), b, offsets)
        for rows, divisor in ((slots, 2), (slots // 2, None)):
            d = wp.grouped_gemm(x, b, offsets, rows=rows, rows_divisor=divisor)
            self.assertEqual(d.shape, (20, 48))
            self.close(d, f32(gathered))
        slots[[0, 7]] = [20, -1]  # no tokens
        out = np.full((20, 48), 7, bf16)
        wp.grouped_gemm(x, b, offsets, out=out, rows=slots, rows_divisor=2)
        self.assertTrue((f32(out)[[0, 7]] == 0).all() and (f32(out)[1:7] != 0).any(axis=1).all())
        self.assertIn("by index", wp.plan(x, b, offsets, rows=slots, rows_divisor=2).explain())

    def test_rows_in_no_group(self):
        a, b = normal(20, 64), normal(2, 48, 64)
        offsets = np.array([3, 9, 12], np.int32)
        kept = np.full((20, 48), 7, bf16)
        for _ in range(3):  # where memory of other arrays was
            fresh = wp.grouped_gemm(a, b, offsets)
            self.assertTrue((f32(fresh)[:3] == 0).all() and (f32(fresh)[12:] == 0).all())
            self.assertTrue((f32(fresh)[3:12] != 0).any(axis=1).all())
            del fresh
            np.full((20, 48), np.nan, bf16)
        wp.grouped_gemm(a, b, offsets, out=kept)
        self.assertTrue((f32(kept)[:3] == 7).all() and (f32(kept)[12:] == 7).all())

    def test_batch_invariant(self):
        a, b = normal(70, 512, dtype=e4m3), normal(64, 512, dtype=e4m3)
        whole = wp.gemm(a, b, batch_invariant=True)
        for row in (0, 33, 69):
            alone = wp.gemm(a[row:row + 1], b, batch_invariant=True)
            self.assertEqual(alone.tobytes(), whole[row:row + 1].tobytes())

    def test_workspaces_and_plans(self):
        a, b = normal(20, 512), normal(128, 512)
        plan = wp.plan(a, b, kernel="hopper_bf16_bf16_128x64_sw_sk")
        self.assertGreater(plan.workspace_bytes, 0)
        want = f32(a) @ f32(b).T
        with wp.Workspace(plan.workspace_bytes, "model") as workspace:
            plan.prepare(workspace)
            self.close(wp.gemm(a, b, plan=plan, workspace=workspace), want)
        self.assertEqual(workspace.nbytes, 0)
        self.close(wp.gemm(a, b, plan=plan), want)
        self.close(wp.gemm(a, b, kernel=plan.kernel), want)

    def test_empty_extents(self):
        self.assertEqual(wp.gemm(normal(0, 32), normal(16, 32)).shape, (0, 16))
        self.assertTrue((f32(wp.gemm(normal(4, 0), normal(16, 0))) == 0).all())

    def test_arrays_of_our_own(self):
        array = wp.empty((4, 8), "f32", "model")
        self.assertEqual((array.shape, array.dtype), ((4, 8), "f32"))
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        self.assertEqual(repr(array), "<warpwright.Array 4 x 8 f32 in host memory (the model)>")
        view = np.from_dlpack(array)
        self.assertTrue(np.shares_memory(np.asarray(array), view))
        self.assertEqual(np.asarray(array, np.float64).dtype, np.float64)
        self.assertFalse(np.shares_memory(np.array(array, copy=True), view))
        with self.assertRaises(ValueError):
            np.array(array, np.float64, copy=False)
        narrow = np.asarray(wp.empty((2, 3), "e4m3", "model"))
        self.assertEqual((narrow.dtype, narrow.shape), (e4m3, (2, 3)))
        del array
        a, b = normal(4, 32), normal(8, 32)
        wp.gemm(a, b, out=view)
        self.close(view, f32(a) @ f32(b).T)

        class Box:  # a library whose tensors we cannot make
            def __init__(self, array):
                self.array = array

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __dlpack__(self, **how):
                return self.array.__dlpack__(**how)
        d = wp.gemm(Box(np.float16(np.ones((4, 32)))), Box(np.float16(np.ones((8, 32)))))
        self.assertIsInstance(d, wp.Array)
        self.assertTrue((np.from_dlpack(d) == 32).all())

    def test_capsules(self):
        a, b = np.ones((4, 32), np.float16), np.ones((8, 32), np.float16)
        out = np.zeros((4, 8), np.float16)
        wp.gemm(a.__dlpack__(), b.__dlpack__(max_version=(1, 0)), out=out)
        self.assertTrue((out == 32).all())

    def test_read_only_inputs(self):
        a, b = normal(4, 32), normal(8, 32)
        a.flags.writeable = False
        self.close(wp.gemm(a, b), f32(a) @ f32(b).T)

    def test_many_threads(self):
        a, b = normal(20, 64), normal(48, 64)
        want = f32(a) @ f32(b).T
        wrong = []

        def work():
            for m in (1, 20, 7):
                d = wp.gemm(a[:m], b)
                if np.abs(f32(d) - want[:m]).max() > 0.5:
                    wrong.append(m)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_no_reference_is_lost(self):
        a, b = normal(1, 32), normal(8, 32)
        out = np.zeros((1, 8), bf16)
        before = [sys.getrefcount(x) for x in (a, b, out, None)]
        for _ in range(50):
            wp.gemm(a, b, out=out)
            try:
                wp.gemm(a, b[:, :16], out=out)
            except wp.Refusal:
                pass
        after = [sys.getrefcount(x) for x in (a, b, out, None)]
        for x, y in zip(before, after):
            self.assertLess(abs(y - x), 20)


class Plans(unittest.TestCase):
    def test_plans_explain_themselves_without_tensors(self):
        plan = wp.plan(wp.Spec((4096, 4096)), wp.Spec((4096, 4096)), device="h200")
        self.assertIn("132 SMs", plan.explain())
        self.assertIn(plan.kernel, plan.name)
        self.assertIn("on h200", repr(plan))
        self.assertEqual(plan.device, "h200")
        grouped = wp.plan(wp.Spec((64, 128), e4m3), wp.Spec((8, 256, 128), "float8_e4m3fn"),
                          wp.Spec((9,), "int32"), device="model")
        self.assertTrue(grouped.kernel.startswith("grouped_e4m3"))

    def test_new_plans_are_logged_once(self):
        a, b = normal(11, 32), normal(24, 32)
        with self.assertLogs("warpwright", logging.DEBUG) as log:
            wp.gemm(a, b)
            wp.gemm(a, b)
        self.assertEqual(len(log.output), 1)
        self.assertIn("D[11,24]", log.output[0])
        self.assertIn("hopper_bf16", log.output[0])

    def test_check(self):
        report = wp.check(normal(20, 64), normal(48, 64), schedules=6)
        self.assertTrue(report)
        self.assertEqual((report.schedules, report.failing), (6, 0))
        self.assertIn("no findings", str(report))

    def test_trace_has_a_picture_for_notebooks(self):
        trace = wp.trace(normal(20, 64), normal(3, 48, 64), np.array([0, 5, 5, 20], np.int32))
        self.assertTrue(trace._repr_svg_().lstrip().startswith("<svg"))
        self.assertGreater(trace.cycles, 0)
        self.assertGreater(len(trace.perfetto), 100)

    def test_functions_document_themselves(self):
        for function in (wp.gemm, wp.grouped_gemm, wp.plan):
            parameters = inspect.signature(function).parameters
            self.assertLessEqual({"out", "operands", "sums", "scale_a"}, set(parameters))
            self.assertIn("PackedWeights", function.__doc__)
            # Every argument is one that the function takes, and the verbs know the same.
            with self.assertRaisesRegex((TypeError, wp.Refusal), "missing|no tensor"):
                function(**dict.fromkeys(parameters))
        for word in ("operands", "sums", "PackedWeights", "Refusal", "'tf32'", "'chained'"):
            self.assertIn(word, wp.gemm.__doc__)
        self.assertIn("explain()", wp.plan.__doc__)
        for name in wp.__all__:
            what = getattr(wp, name)
            self.assertTrue(not callable(what) or what.__doc__, name)

    def test_methods_take_names(self):
        plan = wp.plan(normal(4, 32), normal(8, 32))
        with wp.Workspace(nbytes=1024, device="model") as workspace:
            plan.prepare(workspace=workspace, stream=None)
        self.assertEqual(wp.empty(shape=(2, 3), dtype="f32", device="model").shape, (2, 3))
        self.assertEqual(list(inspect.signature(wp.Workspace).parameters), ["nbytes", "device"])

    def test_refusals_travel_between_processes(self):
        refusal = pickle.loads(pickle.dumps(wp.Refusal("a sentence", "bad_stride")))
        self.assertEqual((str(refusal), refusal.code), ("a sentence", "bad_stride"))

    def test_the_command_line(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-m", "warpwright", *arguments],
                                  capture_output=True, text=True, check=False)
        version = run("--version")
        self.assertEqual(version.stdout.strip(), f"warpwright {wp.__version__}")
        checked = run("gemm", "--random", "24", "48", "64", "--check")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("check: PASS", checked.stdout + checked.stderr)
        wrong = run("gemm", "--random", "24", "48", "63", "--dtype", "nvf4", "--as", "rtx5090")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("nearest legal", wrong.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
