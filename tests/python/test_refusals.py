"""Bad input: each gets a Refusal of one sentence, and the interpreter goes on."""
import gc
import pickle
import sys
import types
import unittest
import unittest.mock

import ml_dtypes
import numpy as np

import warpwright as wp
from common import Case, bf16
from fakes import Fake


def ones(*shape, dtype=bf16):
    return np.ones(shape, dtype)


class Refusals(Case):
    def test_what_a_rule_knows_is_an_attribute(self):
        with self.assertRaises(wp.Refusal) as caught:
            wp.gemm(ones(16, 64)[:, ::2], ones(24, 32))
        copy = pickle.loads(pickle.dumps(caught.exception))
        for refusal in (caught.exception, copy):
            self.assertEqual(refusal.tensor, "A")
            self.assertEqual(refusal.rule, "one of them is 1")
            self.assertEqual(refusal.nearest, "K-major, column stride 1")
        self.assertEqual(wp.Refusal("why").nearest, "")

    def test_host_tensors_to_a_plan_of_a_gpu(self):
        a, b = ones(16, 32), ones(24, 32)
        plan = wp.plan(a, b, device="h200")
        self.refused("wrong_device", "plan for these tensors", wp.gemm, a, b, plan=plan)

    def test_tensors_of_different_devices(self):
        self.refused("wrong_device", "B lies in cuda:0 and A in host memory", wp.gemm, ones(16, 32),
                     Fake((24, 32)))
        self.refused("wrong_device", "D lies in cuda:1 and A in cuda:0", wp.gemm, Fake((16, 32)),
                     Fake((24, 32), address=1 << 24), out=Fake((16, 24), device=(2, 1)))

    def test_a_gpu_that_is_not_there(self):
        with self.assertRaises(wp.Refusal):
            wp.gemm(Fake((16, 32), device=(2, 77)), Fake((24, 32), device=(2, 77), address=1 << 24),
                    out=Fake((16, 24), device=(2, 77), address=1 << 28))
        self.refused("no_device", "nearest legal", wp.gemm, Fake((16, 32), device=(10, 0)),
                     ones(24, 32))
        self.refused("no_device", "CUDA device -1", wp.gemm, Fake((16, 32), device=(2, -1)),
                     ones(24, 32))
        self.refused("no_device", "rtx", wp.plan, ones(16, 32), ones(24, 32), device="rtx")

    def test_rows_that_are_not_contiguous(self):
        self.refused("bad_stride", "nearest legal", wp.gemm, ones(16, 64)[:, ::2], ones(24, 32))
        self.refused("bad_stride", "nearest legal", wp.plan, wp.Spec((16, 32), strides=(31, 1)),
                     wp.Spec((24, 32)), device="b200")
        self.refused("bad_stride", "D has a column stride of 2", wp.gemm, ones(16, 32),
                     ones(24, 32), out=ones(16, 48)[:, ::2])
        self.refused("bad_stride", "", wp.gemm, ones(16, 32)[::-1], ones(24, 32))

    def test_wrong_types(self):
        self.refused("bad_type", "nearest", wp.gemm, ones(16, 32, dtype=np.uint8),
                     ones(24, 32, dtype=np.uint8))
        for dtype in (np.float32, np.float64):
            self.refused("bad_type", "", wp.gemm, ones(16, 32, dtype=dtype),
                         ones(24, 32, dtype=dtype))
        self.refused("bad_type", "", wp.gemm, ones(16, 32), ones(24, 32, dtype=np.float16))
        self.refused("bad_type", "integers", wp.gemm, ones(16, 32, dtype=np.int32), ones(24, 32))
        self.refused("bad_type", "dtype is", wp.gemm, ones(16, 32), ones(24, 32), dtype="bf17")
        self.refused("bad_type", "D is bf16", wp.gemm, ones(16, 32), ones(24, 32), out=ones(16, 24),
                     dtype="f32")
        self.refused("bad_type", "offsets", wp.grouped_gemm, ones(16, 32), ones(1, 24, 32),
                     np.array([0.0, 16.0], np.float32))

    def test_tensors_that_ask_for_a_gradient(self):
        asks = Fake((16, 32), device=(1, 0), requires_grad=True)
        self.refused("unsupported", "A requires a gradient", wp.gemm, asks, ones(24, 32))

    def test_a_stream_where_there_is_none(self):
        self.refused("bad_value", "host memory", wp.gemm, ones(16, 32), ones(24, 32), stream=0)
        self.refused("bad_value", "neither an integer nor a stream", wp.gemm, ones(16, 32),
                     ones(24, 32), stream="s")
        self.refused("bad_value", "nearest legal is 0", wp.gemm, ones(16, 32), ones(24, 32),
                     stream=-5)

    def test_memory_that_is_no_workspace(self):
        memory = np.zeros((64, 64), np.uint8)
        self.refused("bad_value", "leave device out", wp.Workspace, memory, "model")
        self.refused("bad_workspace", "has gaps", wp.Workspace, memory[:, ::2])
        self.refused("bad_workspace", "no bytes from a multiple", wp.Workspace, memory[0, :0])
        memory.flags.writeable = False
        self.refused("bad_workspace", "read-only", wp.Workspace, memory)

    def test_a_closed_workspace(self):
        workspace = wp.Workspace(1 << 20, "model")
        workspace.close()
        workspace.close()
        self.refused("bad_workspace", "is closed", wp.gemm, ones(16, 32), ones(24, 32),
                     workspace=workspace)
        self.refused("bad_workspace", "no warpwright.Workspace", wp.gemm, ones(16, 32),
                     ones(24, 32), workspace=object())
        self.refused("bad_workspace", "nearest legal is 1", wp.Workspace, 0, "model")
        plan = wp.plan(ones(16, 512), ones(128, 512), kernel="hopper_bf16_bf16_128x64_sw_sk")
        with wp.Workspace(256, "model") as small:
            self.refused("bad_workspace", "has 256 bytes", wp.gemm, ones(16, 512), ones(128, 512),
                         plan=plan, workspace=small)

    def test_a_capsule_used_twice(self):
        a, b = np.ones((16, 32), np.float16), np.ones((24, 32), np.float16)
        out = np.empty((16, 24), np.float16)
        capsule = a.__dlpack__()
        wp.gemm(capsule, b, out=out)
        self.refused("bad_value", "was used before", wp.gemm, capsule, b, out=out)
        fake = Fake((16, 32), device=(1, 0))
        capsule = fake.__dlpack__()
        self.refused("bad_shape", "", wp.gemm, capsule, ones(24, 16))
        self.assertEqual(fake.deleted, 1)  # given back, although refused
        self.refused("bad_value", "was used before", wp.gemm, capsule, ones(24, 16))

    def test_tensors_whose_owner_is_gone(self):
        capsules = [np.ones((16, 32), np.float16).__dlpack__() for _ in range(2)]
        gc.collect()
        wp.gemm(*[np.ones((16, 32), np.float16).__dlpack__() for _ in range(2)],
                out=np.empty((16, 16), np.float16))
        del capsules

        class Gone:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **_):
                raise BufferError("the memory is gone")
        self.refused("bad_value", "A is no tensor: the memory is gone", wp.gemm, Gone(),
                     ones(24, 32))

    def test_interrupts_are_not_swallowed(self):
        class Interrupted(Fake):
            def __dlpack__(self, stream=None):
                raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            wp.gemm(Interrupted((16, 32), device=(1, 0)), ones(24, 32))

    def test_what_is_no_tensor(self):
        for nothing in ([[1.0]], 1.0, "a", object(), np):
            self.refused("bad_value", "A is no tensor", wp.gemm, nothing, ones(24, 32))
        self.refused("bad_shape", "1 dimension;", wp.gemm, ones(32), ones(24, 32))
        self.refused("bad_shape", "dimensions", wp.gemm, ones(1, 1, 1, 1, 1, 32), ones(24, 32))
        self.refused("bad_shape", "extents are 0 or more", wp.Spec, (-1, 64))
        self.refused("bad_value", "scale_a or scale_b is NaN", wp.gemm, ones(16, 32), ones(24, 32),
                     scale_a=float("nan"), scale_b=1.0)
        self.refused("bad_shape", "nearest legal is 3", wp.grouped_gemm, ones(16, 32), ones(24, 32),
                     np.array([0, 16], np.int32))
        self.refused("bad_pointer", "Spec", wp.gemm, wp.Spec((16, 32)), wp.Spec((24, 32)))

    def test_rows_by_index(self):
        groups = (ones(16, 32), ones(1, 24, 32), np.array([0, 8], np.int32))
        rows = np.arange(8, dtype=np.int32)
        for code, says, keywords in [
                ("bad_value", "without rows", {"rows_divisor": 2}),
                ("bad_value", "nearest is 1", {"rows": rows, "rows_divisor": 0}),
                ("bad_type", "int32", {"rows": rows.astype(np.int64)}),
                ("bad_shape", "(8,)", {"rows": rows.reshape(2, 4)}),
                ("bad_shape", "is 8", {"rows": rows, "out": ones(9, 24)})]:
            self.refused(code, says, wp.grouped_gemm, *groups, **keywords)
        self.refused("bad_value", "no groups", wp.gemm, ones(16, 32), ones(24, 32), rows=rows)

    def test_the_nearest_is_what_was_meant(self):
        x, ids, weights = ones(9, 128), np.zeros((9, 2), np.int32), np.ones((9, 2), np.float32)
        w13, w2 = ones(8, 128, 128), ones(8, 128, 64)
        for kind in (np.int16, np.uint32, np.bool_):
            self.refused("bad_type", "the nearest is int32", wp.moe, x, ids.astype(kind), weights,
                         w13, w2)
            self.refused("bad_type", "the nearest is int32", wp.sort_slots, ids.astype(kind), 8)
        self.refused("bad_shape", "the nearest legal is 9 x 32", wp.moe, x,
                     np.zeros((9, 33), np.int32), np.ones((9, 33), np.float32), w13, w2)
        wp.moe(x, np.full((9, 32), -1, np.int32), np.ones((9, 32), np.float32), w13, w2)
        self.refused("bad_value", "the nearest legal experts_total is 8", wp.moe, x, ids, weights,
                     w13, w2, experts_total=4)
        self.refused("bad_value", "the nearest legal first_expert is 2", wp.moe, x, ids, weights,
                     w13, w2, experts_total=10, first_expert=5)
        self.refused("bad_shape", "of one row 1 x 32", wp.gemm, ones(32), ones(24, 32))
        for word, says in (("foo", '"bf16"'), ("int8", "bf16"), ("f64", "f32")):
            self.refused("bad_type", f"the nearest is {says}", wp.empty, (2, 2), word, "model")
        for word, says in ((("activation", "SILU"), '"gelu", "silu", "swiglu_oai"'),
                           (("scaling", "block"), '"none", "row_column", "blockwise"')):
            self.refused("bad_value", "it is one of " + says, wp.moe, x, ids, weights, w13, w2,
                         **dict([word]))
        for word, says in ((("activation", "SILU"), '"silu"'),
                           (("scaling", "block"), '"blockwise"'),
                           (("activation", "swigluoai"),
                            '"swiglu_oai", with gate_up="interleaved" for rows')):
            self.refused("bad_value", f": the nearest is {says}", wp.moe, x, ids, weights, w13, w2,
                         **dict([word]))
        # A K that packed weights cannot have, and tokens of it.
        for pack, how in ((wp.pack_int4, {}), (wp.pack_fp4, {"encoding": "nvf4"})):
            with self.assertRaisesRegex(wp.Refusal, "256, with zeros behind the rows of weights") \
                    as refused:
                pack(ones(64, 250), **how)
            self.assertEqual((refused.exception.code, refused.exception.nearest),
                             ("bad_shape", "256"))
        packed = [wp.pack_int4(ones(2, n, k), encoding="ex-bf16")
                  for n, k in ((256, 256), (256, 128))]
        short = ones(9, 250)
        self.refused("bad_shape", "A is 9 x 256, with zeros behind its rows", wp.grouped_gemm,
                     short, packed[0], np.array([0, 4, 9], np.int32))
        self.refused("bad_shape", "x is 9 x 256, with zeros behind its rows", wp.moe, short,
                     ids, weights, *packed)
        # B cannot be read at all; A would be copied.
        self.refused("bad_stride", "B is e4m3 and MN-major", wp.gemm,
                     ones(7, 200, dtype=ml_dtypes.float8_e4m3fn),
                     ones(200, 32, dtype=ml_dtypes.float8_e4m3fn).T)

    def test_wrong_words_and_numbers(self):
        a, b = ones(16, 32), ones(24, 32)
        for keywords, says in [({"activation": "tanh"}, '"gelu"'),
                               ({"activation": "gelu_erf"}, "by the error function is a"),
                               ({"activation": 3}, "no text"),
                               ({"beta": 0.5}, "beta is 0.5, and there is no C"),
                               ({"alpha": "x"}, "no number"), ({"alpha": float("nan")}, "NaN"),
                               ({"gated": 1}, "neither True nor False"),
                               ({"gate_limit": 10}, "the epilogue is not gated"),
                               ({"gate_limit": 0, "gated": True}, "a number above 0"),
                               ({"gate_limit": -10, "gated": True}, "nearest legal is 10"),
                               ({"gate_alpha": float("nan"), "gated": True}, "gate_alpha is nan"),
                               ({"gate_alpha": float("inf"), "gated": True}, "finite"),
                               ({"gate_beta": float("-inf"), "gated": True}, "finite"),
                               ({"gate_beta": "x", "gated": True}, "no number"),
                               ({"scaling": "rows"}, '"row_column"'),
                               ({"cluster": (3, "x")}, "(1, 1)"),
                               ({"cluster": 2}, "(1, 1)"), ({"expected_tokens": 3}, "no groups"),
                               ({"measure": -1}, "0"), ({"measure": 4}, None),
                               ({"dependent": None}, None)]:
            if says is None:
                wp.gemm(a, b, **keywords)
            else:
                self.refused("bad_value", says, wp.gemm, a, b, **keywords)
        offsets = np.array([0, 16], np.int32)
        for words, says in [("even", "nearest legal is routed"), ("zipf:9", "from 0 to 8"),
                            ("zipf:nan", "zipf:S"), (1, "no text")]:
            self.refused("bad_value", says, wp.grouped_gemm, a, b[None], offsets,
                         expected_lengths=words)
        for words in ("routed", "equal", "zipf:0.5", None):
            wp.grouped_gemm(a, b[None], offsets, expected_lengths=words)
        self.refused("no_kernel", "", wp.gemm, a, b, kernel="nobody")
        self.refused("bad_value", "nearest legal value is 1", wp.check, a, b, schedules=0)

    def test_what_c_cannot_hold(self):
        for call in (lambda: wp.Workspace(1 << 80, "model"), lambda: wp.Workspace(4096, "\0"),
                     lambda: wp.empty((1 << 80,), "bf16", "model"),
                     lambda: wp.pack_int4(np.ones((8, 64), np.float32), encoding="\udc80"),
                     lambda: wp.PackedWeights.spec(1 << 80, 128)):
            self.refused("bad_value", "out of range", call)
        self.refused("bad_value", "x is no tensor", wp.quantise, ())
        self.refused("bad_value", "weights is no tensor", wp.pack_int4, "x")
        self.refused("bad_value", "encoding is 'zz'", wp.PackedWeights.spec, 16, 128, encoding="zz")
        self.refused("bad_shape", "fit into a memory", wp.PackedWeights.spec, 1 << 31, 1 << 31,
                     1 << 31)
        with self.assertRaises(TypeError):
            wp.Workspace("x")

    def test_results_that_cannot_be_written(self):
        a, b = ones(16, 32), ones(24, 32)
        out = ones(16, 24)
        out.flags.writeable = False
        self.refused("bad_pointer", "read-only", wp.gemm, a, b, out=out)
        memory = ones(16, 64)
        self.refused("overlap", "D overlaps A", wp.gemm, memory[:, :32], b, out=memory[:, 8:32])
        self.refused("bad_shape", "D is 16 x 23", wp.gemm, a, b, out=ones(16, 23))

    def test_arrays_of_jax_stay_as_they_are(self):
        # As JAX lends its arrays: writable, by what the capsule says. test_jax.py has real ones.
        class Array:
            def __init__(self, values):
                self.values = np.asarray(values)

            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **_):
                return self.values.__dlpack__()
        a, b = Array(np.ones((16, 32), np.float16)), Array(np.ones((24, 32), np.float16))
        out = Array(np.zeros((16, 24), np.float16))
        fake = types.SimpleNamespace(Array=Array, dlpack=types.SimpleNamespace(from_dlpack=Array))
        with unittest.mock.patch.dict(sys.modules, jax=fake):
            self.refused("bad_pointer", "D is read-only", wp.gemm, a, b, out=out)
            made = wp.gemm(a, b)
        self.assertTrue((out.values == 0).all())
        self.assertIsInstance(made, Array)
        self.assertTrue((made.values == 32).all())

    def test_specs_of_nothing(self):
        for code, says, arguments in [("bad_shape", "whole numbers", ((20.5, 64),)),
                                      ("bad_shape", "whole numbers", (20,)),
                                      ("bad_type", "'foo'", ((20, 64), "foo")),
                                      ("bad_stride", "whole numbers", ((2, 4), "bf16", (4.0, 1))),
                                      ("bad_stride", "one a dimension", ((2, 4), "bf16", (4,)))]:
            self.refused(code, says, wp.Spec, *arguments)

    def test_offsets_out_of_order(self):
        a, b = ones(16, 32), ones(2, 24, 32)
        out = np.zeros((16, 24), bf16)
        wrong = np.array([0, 20, 16], np.int32)
        wp.grouped_gemm(a, b, wrong, out=out)
        self.refused("bad_value", "offsets of group 0 are not in order", wp.grouped_gemm, a, b,
                     wrong, out=out, check_offsets=True)
        self.refused("bad_shape", "nearest legal shape is (3,)", wp.grouped_gemm, a, b,
                     np.array([0, 16], np.int32))
        self.refused("bad_stride", "stride of 2", wp.grouped_gemm, a, b,
                     np.zeros(6, np.int32)[::2])

    def test_numbers_of_tokens(self):
        a, b = ones(8, 32), ones(2, 24, 32)
        offsets = np.array([0, 10, 16], np.int32)
        rows = np.arange(16, dtype=np.int32)
        wp.grouped_gemm(a, b, offsets, rows=rows, rows_divisor=2, check_offsets=True)
        for at, number in (15, 16), (9, -3):
            rows[at] = number
            wp.grouped_gemm(a, b, offsets, rows=rows, rows_divisor=2)
            self.refused("bad_value", f"rows[{at}] is {number} and names no row of A",
                         wp.grouped_gemm, a, b, offsets, rows=rows, rows_divisor=2,
                         check_offsets=True)

    def test_offsets_are_checked_in_every_memory(self):
        """More tiles than the grid takes at once; other kernels and groups: run/offsets_test.cpp"""
        e4m3 = ml_dtypes.float8_e4m3fn
        a, b = np.ones((300, 64), e4m3), np.ones((4, 512, 64), e4m3)
        wrong = np.array([0, 160, 30, 160, 300], np.int32)
        kernel = "grouped_e4m3_bf16_128x128_v_pp_dyn"
        plan = wp.plan(a, b, wrong, kernel=kernel)
        with wp.Workspace(plan.workspace_bytes, "model") as own:
            for keywords in ({"kernel": kernel}, {"plan": plan}, {"plan": plan, "workspace": own},
                             {"kernel": kernel, "workspace": own}):
                with self.subTest(**keywords):
                    self.refused("bad_value", "offsets of group 1 are not in order",
                                 wp.grouped_gemm, a, b, wrong, check_offsets=True, **keywords)
        # Without a check too: no fault of the library's.
        self.refused("bad_value", "which of them wins is open", wp.grouped_gemm, a, b, wrong,
                     kernel=kernel)

    def test_choices_beside_a_plan(self):
        a, b = ones(16, 4096), ones(256, 4096)
        plan = wp.plan(a, b, kernel="hopper_bf16_bf16_128x16_sw_ck")
        wp.gemm(a, b, plan=plan, kernel=plan.kernel, cluster=(1, 1))
        for keywords, says in [({"kernel": "no_such_kernel"}, "kernel is no_such_kernel"),
                               ({"cluster": (2, 1)}, "cluster is 2x1, and the plan's is 1x1"),
                               ({"batch_invariant": True}, "shares tiles along K")]:
            self.refused("bad_choice", says, wp.gemm, a, b, plan=plan, **keywords)
        invariant = wp.plan(a, b, batch_invariant=True)
        wp.gemm(a, b, plan=invariant, batch_invariant=True)

    def test_wrong_calls_are_type_errors(self):
        a, b = ones(16, 32), ones(24, 32)
        for call in (lambda: wp.gemm(), lambda: wp.gemm(a), lambda: wp.gemm(a, b, a),
                     lambda: wp.gemm(a, b, a=a), lambda: wp.gemm(a, b, nonsense=1),
                     lambda: wp.gemm(a, b, offsets=a), lambda: wp.gemm(a, b, device="model"),
                     lambda: wp.Workspace(), lambda: wp.Plan(), lambda: wp.Array()):
            with self.assertRaises(TypeError):
                call()


if __name__ == "__main__":
    unittest.main(verbosity=2)
