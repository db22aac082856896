"""`check_ptx`: kernels in PTX on the model, with the arrays of a caller for their memory."""
import ctypes
import gzip
import importlib.util
import pathlib
import pickle
import re
import tempfile
import unittest

import ml_dtypes
import numpy as np

import warpwright as wp

TEXTS = pathlib.Path(__file__).resolve().parents[1] / "ptx" / "texts"

# Thread 0 hands a word to all others, and nobody waits for it: line 13 reads, line 12 writes.
SHARE = """.version 8.0
.target sm_90
.visible .entry share(.param .u64 to)
{
  .reg .b64 %to, %at, %far;
  .reg .b32 %i, %word;
  .reg .pred %other;
  .shared .align 4 .b32 given;
  ld.param.u64 %to, [to];
  mov.u32 %i, %tid.x;
  setp.ne.u32 %other, %i, 0;
  @!%other st.shared.u32 [given], 7;
  ld.shared.u32 %word, [given];
  mul.wide.u32 %far, %i, 4;
  add.s64 %at, %to, %far;
  st.global.u32 [%at], %word;
  ret;
}
"""
MENDED = SHARE.replace("  ld.shared", "  bar.sync 0;\n  ld.shared")

# y[i] = x[i] * by, for 64 threads of a CTA.
SCALE = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u64 y)
.maxntid 64, 1, 1
{
  .reg .b64 %x, %y, %at;
  .reg .b32 %i, %cta;
  .reg .f32 %v, %by;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.f32 %by, [by];
  mov.u32 %i, %tid.x;
  mov.u32 %cta, %ctaid.x;
  mad.lo.u32 %i, %cta, 64, %i;
  mul.wide.u32 %at, %i, 4;
  add.s64 %x, %x, %at;
  add.s64 %y, %y, %at;
  ld.global.f32 %v, [%x];
  mul.f32 %v, %v, %by;
  st.global.f32 [%y], %v;
  ret;
}
"""

# Stores what a parameter of 8 bytes says: two words.
WORDS = """.version 8.5
.target sm_90a
.visible .entry words(.param .align 8 .b8 given[8], .param .u64 to)
{
  .reg .b64 %to;
  .reg .b32 %a, %b;
  ld.param.u32 %a, [given];
  ld.param.u32 %b, [given+4];
  ld.param.u64 %to, [to];
  st.global.v2.u32 [%to], {%a, %b};
  ret;
}
"""

# A box of 8 rows of 64 bytes by TMA; each of 128 threads stores a word of it.
TILE = """.version 8.5
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 memory[];
.visible .entry tile(.param .align 64 .b8 map[128], .param .u64 to)
{
  .reg .b64 %map, %to, %at, %state;
  .reg .b32 %i, %sm, %bar, %w, %zero;
  .reg .pred %lead, %p;
  ld.param.u64 %to, [to];
  mov.b64 %map, map;
  cvta.param.u64 %map, %map;
  mov.u32 %sm, memory;
  add.u32 %bar, %sm, 512;
  mov.u32 %i, %tid.x;
  mov.u32 %zero, 0;
  setp.eq.u32 %lead, %i, 0;
  @!%lead bra MADE;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %state, [%bar], 512;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes """ \
  """[%sm], [%map, {%zero, %zero}], [%bar];
MADE:
  bar.sync 0;
WAIT:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%bar], 0;
  @!%p bra WAIT;
  shl.b32 %w, %i, 2;
  add.u32 %sm, %sm, %w;
  ld.shared.u32 %w, [%sm];
  mul.wide.u32 %at, %i, 4;
  add.s64 %to, %to, %at;
  st.global.u32 [%to], %w;
  ret;
}
"""


def words(count=64):
    return np.zeros(count, np.int32)


class CheckPtx(unittest.TestCase):
    def refused(self, sentence, ptx=SCALE, code="bad_value", **call):
        with self.assertRaises(wp.Refusal) as caught:
            wp.check_ptx(ptx, **{"block": 64, "schedules": 1, **call})
        self.assertIn(sentence, str(caught.exception))
        self.assertEqual(caught.exception.code, code)
        self.assertNotIn("\n", str(caught.exception))

    def test_a_race_and_its_line(self):
        report = wp.check_ptx(SHARE, args=[words()], block=64, schedules=3)
        self.assertFalse(report)
        self.assertEqual((report.kernel, report.schedules, report.failing), ("share", 3, 3))
        finding, = report.findings
        self.assertEqual((finding.code, finding.name, finding.place, finding.schedules,
                          finding.first), ("O1", "data race", "ptx:13", 3, "eager"))
        self.assertIn("at ptx:12", finding.sentence)
        for text in (str(report), repr(report)):
            self.assertIn("share under 3 schedules: 1 finding", text)
            self.assertIn("O1 data race at ptx:13: the write", text)
        again = wp.check_ptx(SHARE, args=[words()], block=64, replay=finding.first)
        self.assertEqual((again.schedules, again.findings[0].sentence), (1, finding.sentence))
        self.assertEqual(pickle.loads(pickle.dumps(report)), report)

    def test_a_clean_kernel_writes(self):
        to = words()
        report = wp.check_ptx(MENDED, "share", [to], block=64, schedules=12, jobs=2)
        self.assertTrue(report)
        self.assertEqual(report.findings, [])
        self.assertIn("share under 12 schedules: no findings", repr(report))
        np.testing.assert_array_equal(to, 7)

    def test_mutants(self):
        to = words()
        report = wp.check_ptx(MENDED, args=[to], block=64, schedules=4, mutate=True)
        self.assertTrue(report)
        self.assertEqual(report.score, "mutation score: 100% (killed 7 of 7, equivalent 0)")
        self.assertEqual(report.mutants[0], wp.Mutant("dropped", "named barrier at ptx:13",
                                                      "dropped", "killed", "O1", 1))
        self.assertEqual({m.fate for m in report.mutants}, {"killed"})
        self.assertIn(f"no findings\n{report.score}", str(report))
        np.testing.assert_array_equal(to, 7)  # of the kernel, not of a mutant
        # One that is broken already has no mutants; one that nothing reads survives.
        report = wp.check_ptx(SHARE, args=[to], block=64, schedules=1, mutate=True)
        self.assertEqual((report.mutants, report.score), ([], ""))
        more = MENDED.replace("  mul.wide", "  bar.sync 0;\n  mul.wide")
        report = wp.check_ptx(more, args=[to], block=64, schedules=2, mutate=True)
        self.assertIn("survived", {m.fate for m in report.mutants})
        self.assertIn("  SURVIVED: ", str(report))

    def test_texts_and_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "share.ptx"
            path.write_text(SHARE)
            for ptx, place in ((path, "share.ptx:13"), (str(path), "share.ptx:13"),
                               (SHARE.encode(), "ptx:13")):
                report = wp.check_ptx(ptx, args=[words()], block=64, schedules=1)
                self.assertEqual(report.findings[0].place, place)
            path.unlink()
            self.refused("cannot be read: No such file", path, "file_error")
        self.refused("it is a text, or the path of one", 5)

    def test_values_and_expected_ones(self):
        x = np.arange(128, dtype=np.float32)
        y = np.zeros(128, np.float32)
        for by in (np.float32(0.5), ("f32", 0.5), np.float32(0.5).tobytes(), ctypes.c_float(0.5)):
            y[:] = 0
            call = {"args": [x, by, y], "grid": 2, "block": (64,), "schedules": 3}
            self.assertTrue(wp.check_ptx(SCALE, **call, expect={2: x / 2, 0: x}))
            np.testing.assert_array_equal(y, x / 2)
        report = wp.check_ptx(SCALE, **call, expect={2: x})
        self.assertEqual([f.code for f in report.findings], ["R1"])
        self.assertIn("byte 6 of argument 3 is not the expected one", report.findings[0].sentence)
        np.testing.assert_array_equal(y, x / 2)

    def test_each_schedule_begins_anew(self):
        x = np.arange(1, 65, dtype=np.float32)
        self.assertTrue(wp.check_ptx(SCALE, args=[x, ("f32", 2), x], block=64, schedules=6))
        np.testing.assert_array_equal(x, np.arange(1, 65) * 2)

    def test_arrays_that_share_memory(self):
        both = np.arange(128, dtype=np.float32)
        self.assertTrue(wp.check_ptx(SCALE, args=[both[64:], ("f32", 3), both], block=64,
                                     schedules=2))
        np.testing.assert_array_equal(both, [*(3 * np.arange(64, 128)), *range(64, 128)])
        # Behind an array is nothing.
        report = wp.check_ptx(SCALE, args=[both[:64], ("f32", 3), both[64:127]], block=64,
                              replay="eager")
        self.assertEqual([f.code for f in report.findings], ["M3"])
        self.assertEqual(report.findings[0].place, "ptx:21")

    def test_read_only_arrays_are_inputs(self):
        x, y = np.ones((2, 64), np.float32)
        y.flags.writeable = False
        report = wp.check_ptx(SCALE, args=[x, ("f32", 3), y], block=64, replay="eager")
        self.assertIn("writes to argument 3, which is an input", report.findings[0].sentence)
        np.testing.assert_array_equal(y, 1)

    def test_structs(self):
        class Two(ctypes.Structure):
            _fields_ = [("a", ctypes.c_uint32), ("b", ctypes.c_int32)]
        pair = np.zeros((), [("a", "<u4"), ("b", "<i4")])
        pair["a"], pair["b"] = 5, -1
        for given in (Two(5, -1), pair[()], b"\5\0\0\0\xff\xff\xff\xff", bytearray(b"\5\0\0\0") +
                      b"\xff" * 4, ("u64", 0xffffffff00000005), ("s64", 5 - (1 << 32))):
            to = words(2)
            self.assertTrue(wp.check_ptx(WORDS, args=[given, to], block=1, schedules=1))
            self.assertEqual(to.tolist(), [5, -1])
        self.assertTrue(wp.check_ptx(WORDS, args=[None, to], block=1, schedules=1))
        self.assertEqual(to.tolist(), [0, 0])

    def test_tensor_maps(self):
        to = words(128)
        x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32).astype(ml_dtypes.bfloat16)
        kinds = {"as it is": (wp.TensorMap(x, (8, 32)), x[:8]),
                 "at an offset": (wp.TensorMap(x[4:], (8, 32)), x[4:12]),
                 "of two rows": (wp.TensorMap(x, (8, 32), extents=(8, 32), pitches=(128,)),
                                 x[::2]),
                 "bytes": (wp.TensorMap(x.view(np.uint8), (8, 64), dtype="u8"), x[:8]),
                 "of no type": (wp.TensorMap(x.view(np.uint16), [8, 32]), x[:8])}
        for name, (given, right) in kinds.items():
            with self.subTest(name):
                self.assertTrue(wp.check_ptx(TILE, args=[given, to], block=128, smem=520,
                                             schedules=4))
                self.assertEqual(to.tobytes(), right.tobytes())
        # 16 bytes go where the row says: swizzled rows of 64 bytes, by the second and third bit.
        self.assertTrue(wp.check_ptx(TILE, args=[wp.TensorMap(x, (8, 32), 64), to], block=128,
                                     smem=520, schedules=1))
        chunks = x[:8].view(np.uint8).reshape(8, 4, 16)
        right = [chunks[row, at ^ (row // 2 % 4)] for row in range(8) for at in range(4)]
        self.assertEqual(to.tobytes(), b"".join(each.tobytes() for each in right))
        unfenced = re.sub("  fence.*\n", "", TILE)
        report = wp.check_ptx(unfenced, args=[wp.TensorMap(x, (8, 32)), to], block=128, smem=520,
                              schedules=2)
        self.assertEqual([(f.code, f.place) for f in report.findings], [("B9", "ptx:21")])

    def test_tensor_maps_that_cannot_be(self):
        x, to = np.zeros((16, 32), ml_dtypes.bfloat16), words(128)
        call = {"ptx": TILE, "block": 128, "smem": 520}
        for given, sentence in (
                (wp.TensorMap(x, (8,)), "argument 1 is a map, which takes a box of as many"),
                (wp.TensorMap(x, (8, 300)), "extents from 1 to 256"),
                (wp.TensorMap(x, (8, 32), 48), "a swizzle of none, 32, 64 or 128"),
                (wp.TensorMap(x, (8, 32), 129), "the swizzle of argument 1 is 129; the nearest "
                                                "legal value is 128"),
                (wp.TensorMap(x, (8, "32")), "the box of argument 1 is no whole number"),
                (wp.TensorMap(x, (8, 32), pitches=(64, 64)),
                 "a pitch for each extent but the innermost"),
                (wp.TensorMap(x, (8, 64), 64), "argument 1: "),
                (wp.TensorMap(x, (8, 32), struct_bytes=192), "argument 1 has 192 bytes, and the "
                                                             "parameter map 128")):
            with self.subTest(sentence):
                self.refused(sentence, args=[given, to], **call)
        self.refused("the nearest is \"u8\"", code="bad_type", **call,
                     args=[wp.TensorMap(x, (8, 32), dtype="e2m1"), to])
        self.refused("a map of a transposed view", code="bad_stride", **call,
                     args=[wp.TensorMap(x.T, (8, 32)), to])

    def test_arguments_that_do_not_fit(self):
        x = np.zeros(64, np.float32)
        self.refused("2 arguments for scale, which takes 3 parameters", args=[x, ("f32", 1)])
        self.refused("argument 2 has 8 bytes, and the parameter by 4", args=[x, ("f64", 1), x])
        self.refused('argument 2 is 0.5, and PTX does not say of which type: the nearest is '
                     '("f32", 0.5)', args=[x, 0.5, x])
        self.refused('the nearest is "u32"', args=[x, ("word", 0.5), x])
        self.refused("argument 2 is 300; the nearest legal value is 127",
                     args=[x, ("s8", 300), x])
        self.refused("argument 2 is no integer of u8", args=[x, ("u8", -1), x])
        self.refused("argument 2 is no number", args=[x, ("f32", "1"), x])
        self.refused("argument 2 is a builtins.object", args=[x, object(), x])
        self.refused("argument 1 has gaps", code="bad_stride", args=[x[::2], ("f32", 1), x])
        self.refused("argument 1 has gaps", code="bad_stride", args=[x[::-1], ("f32", 1), x])
        self.refused("argument 3 is a warpwright._interop.Spec",
                     args=[x, ("f32", 1), wp.Spec((64,))])
        args = [x, ("f32", 1), np.ones(64, np.float32)]
        self.refused("what is expected of argument 3 has 4 bytes, and that has 256", args=args,
                     code="bad_shape", expect={2: words(1)})
        self.refused("what is expected of argument 3 is a Spec", args=args, code="bad_pointer",
                     expect={2: wp.Spec((64,))})
        self.refused("expect has something for argument 2, which is no tensor", args=args,
                     expect={1: x})
        self.refused("keys are indices of args", args=args, expect={"y": x})
        np.testing.assert_array_equal(args[2], 1)

    def test_launches_that_cannot_be(self):
        x = np.zeros(64, np.float32)
        args = [x, ("f32", 1), x]
        self.refused("the block has 128 threads, and scale takes at most 64", args=args, block=128)
        self.refused("block is (8, 8, 1, 1); it is one to three", args=args, block=(8, 8, 1, 1))
        self.refused("grid is 'all'; it is one to three", args=args, grid="all")
        for name, value, nearest in (("cluster", 17, 16), ("smem", -1, 0), ("registers", 8, 24),
                                     ("sms", 0, 1), ("schedules", 0, 1), ("jobs", 0, 1)):
            self.refused(f"{name} is {value}; the nearest legal value is {nearest}", args=args,
                         **{name: value})
        self.refused("schedules is no whole number", args=args, schedules="all")
        self.refused('replay is "first"; ', args=args, replay="first")
        with self.assertRaises(TypeError):
            wp.check_ptx(SCALE, args=args)

    def test_texts_that_cannot_be(self):
        self.refused('ptx, line 10: "mov.u33" is not in the subset; the nearest instruction is '
                     "mov.u32", SHARE.replace("mov.u32", "mov.u33"), args=[words()])
        self.refused("there is no entry shared; the nearest is share", SHARE, entry="shared",
                     args=[words()])
        cut = "".join(SHARE.splitlines(True)[:14])
        self.refused("ptx, line 15: the text ends inside of the entry share", cut, args=[words()])
        self.refused("ptx, line 1: .version 10.4 is newer than what is known",
                     SHARE.replace("8.0", "10.4"), args=[words()])
        self.refused("", b"\xff\xfe\n\0" * 9, args=[words()])
        self.refused("", "\n", args=[words()])

    def test_a_text_of_our_own(self):
        name = "registers_e4m3_bf16_128x128"
        text = gzip.decompress((TEXTS / f"{name}.ptx.gz").read_bytes())
        self.refused(f"0 arguments for {name}, which takes 1 parameter", text, block=256)
        self.refused("argument 1 has 8 bytes, and the parameter", text, block=256, args=[None])
        self.refused("line 1615: a line is missing", text[:len(text) // 2],
                     block=256, args=[bytes(1728)])
        # Parameters of zeros: a product without tiles.
        call = {"args": [bytes(1728)], "block": 256, "schedules": 1}
        self.assertTrue(wp.check_ptx(text, **call, smem=200 << 10))
        # Without its shared memory: places are those of the source, and of the text.
        name = "hopper_bf16_bf16_64x64"
        text = gzip.decompress((TEXTS / f"{name}.ptx.gz").read_bytes())
        call["args"] = [bytes(1600)]
        finding = wp.check_ptx(text, **call).findings[0]
        self.assertEqual(finding.code, "T2")
        self.assertRegex(finding.place, r"isa/mbarrier.h:\d+ in .*, ptx:\d+$")

    def test_a_capsule(self):
        x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        capsule = y.__dlpack__()
        call = {"args": [x, ("f32", 2), capsule], "block": 64}
        self.assertTrue(wp.check_ptx(SCALE, **call, schedules=1))
        np.testing.assert_array_equal(y, x * 2)
        self.refused("was used before", **call)

    def test_an_array_of_ours(self):
        array = wp.empty((64,), "f32", "model")
        x = np.arange(64, dtype=np.float32)
        self.assertTrue(wp.check_ptx(SCALE, args=[x, ("f32", 2), array], block=64, schedules=2))
        np.testing.assert_array_equal(np.asarray(array), x * 2)


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not here")
class WithTorch(unittest.TestCase):
    def test_tensors_of_the_host(self):
        import torch  # pylint: disable=import-outside-toplevel
        x = torch.arange(64, dtype=torch.float32)
        y = torch.zeros(64)
        self.assertTrue(wp.check_ptx(SCALE, args=[x, ("f32", 2), y], block=64, schedules=2,
                                     expect={2: x * 2}))
        torch.testing.assert_close(y, x * 2)
        tile, to = torch.rand(8, 32).bfloat16(), torch.zeros(8, 32, dtype=torch.bfloat16)
        self.assertTrue(wp.check_ptx(TILE, args=[wp.TensorMap(tile, (8, 32)), to], block=128,
                                     smem=520, schedules=1))
        torch.testing.assert_close(to, tile)


if __name__ == "__main__":
    unittest.main(verbosity=2)
