#!/usr/bin/env python3
"""`warpwright pack` of weights with scales of blocks, against writers of checkpoints and a reader
of its results that share nothing with it: only after docs/low_precision.md.

    pack_micro_test.py WARPWRIGHT [SEED]
"""
import pathlib
import random
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tensor_files  # noqa: E402
from pack_test import Tester  # noqa: E402

VALUES = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def scale_value(kind, code):
    if kind == "ue8m0":
        return 2.0 ** (code - 127)
    exponent, fraction = code >> 3, code & 7
    return (1 + fraction / 8) * 2.0 ** (exponent - 7) if exponent else fraction * 2.0 ** -9


class Weights:
    """Codes, scales as bytes and the factor of one matrix."""

    def __init__(self, draw, n, k, kind):
        self.n, self.k, self.kind = n, k, kind
        self.block = 16 if kind == "ue4m3" else 32
        self.codes = [[draw.randrange(16) for _ in range(k)] for _ in range(n)]
        self.scales = [[draw.randrange(127 if kind == "ue4m3" else 255)
                        for _ in range(k // self.block)] for _ in range(n)]
        self.factor = f32(draw.randrange(1, 1000) / 2.0 ** 20) if kind == "ue4m3" else 1

    def code_bytes(self):
        return bytes(row[i] | row[i + 1] << 4 for row in self.codes for i in range(0, self.k, 2))

    def scale_bytes(self):
        return bytes(s for row in self.scales for s in row)

    def value(self, n, k):
        return VALUES[self.codes[n][k]] * scale_value(self.kind, self.scales[n][k // self.block])


def scalar(x):
    return struct.pack("<f", x)


def modelopt(w, name):
    return {name + ".weight_scale_2": ("F32", [], scalar(w.factor)),
            name + ".input_scale": ("F32", [], scalar(1)),
            name + ".weight": ("U8", [w.n, w.k // 2], w.code_bytes()),
            name + ".weight_scale": ("F8_E4M3", [w.n, w.k // 16], w.scale_bytes())}


def compressed_nvfp4(w, name):
    return {name + ".weight_global_scale": ("F32", [1], scalar(1 / w.factor)),
            name + ".weight_packed": ("U8", [w.n, w.k // 2], w.code_bytes()),
            name + ".weight_scale": ("F8_E4M3", [w.n, w.k // 16], w.scale_bytes())}


def compressed_mxfp4(w, name):
    return {name + ".weight_packed": ("U8", [w.n, w.k // 2], w.code_bytes()),
            name + ".weight_scale": ("U8", [w.n, w.k // 32], w.scale_bytes())}


def quark(w, name):
    return {name + ".weight": ("U8", [w.n, w.k // 2], w.code_bytes()),
            name + ".weight_scale": ("U8", [w.n, w.k // 32], w.scale_bytes())}


def deepseek(w, name):
    return {name + ".weight": ("I8", [w.n, w.k // 2], w.code_bytes()),
            name + ".scale": ("F8_E8M0", [w.n, w.k // 32], w.scale_bytes())}


def gpt_oss(experts, name, dot="_"):
    n, k = experts[0].n, experts[0].k
    return {name + dot + "blocks": ("U8", [len(experts), n, k // 32, 16],
                                    b"".join(e.code_bytes() for e in experts)),
            name + dot + "scales": ("U8", [len(experts), n, k // 32],
                                    b"".join(e.scale_bytes() for e in experts))}


class Packed:
    """What is written for a name."""

    def __init__(self, path, name):
        tensors, header = tensor_files.read_safetensors(path)
        kind, shape, self.codes = tensors[name]
        scale_kind, scale_shape, self.scales = tensors[name + "_scale"]
        assert kind == "F4", kind
        self.kind = {"F8_E4M3": "ue4m3", "F8_E8M0": "ue8m0"}[scale_kind]
        self.block = 16 if self.kind == "ue4m3" else 32
        self.experts = shape[0] if len(shape) == 3 else 1
        assert len(shape) == len(scale_shape)
        self.n, self.k = shape[-2:]
        self.rows, self.columns = scale_shape[-2:]
        assert self.rows == (self.n + 127) // 128 * 128
        assert self.columns == (self.k // self.block + 3) // 4 * 4
        self.alpha = None
        if name + "_alpha" in tensors:
            kind, shape, data = tensors[name + "_alpha"]
            assert kind == "F32" and shape == [self.experts]
            self.alpha = struct.unpack(f"<{self.experts}f", data)
        self.note = header["__metadata__"]["warpwright." + name]

    def scale(self, e, n, block):
        """For any row and block of the tiles, padding too."""
        tile = (n // 128) * (self.columns // 4) + block // 4
        at = tile * 512 + n % 32 * 16 + n % 128 // 32 * 4 + block % 4
        return self.scales[e * self.rows * self.columns + at]

    def value(self, e, n, k):
        byte = self.codes[((e * self.n + n) * self.k + k) // 2]
        return (VALUES[byte >> 4 if k % 2 else byte & 15]
                * scale_value(self.kind, self.scale(e, n, k // self.block)))


class MicroTester(Tester):
    def pack_micro(self, tensors, name, *options):
        tensor_files.write_safetensors(self.folder / "in.safetensors", tensors)
        done = self.run("pack", "in.safetensors" + (":" + name if name else ""),
                        "out.safetensors:w", *options)
        assert done.returncode == 0, done.stderr
        self.count += 1
        return Packed(self.folder / "out.safetensors", "w")

    def expect_micro(self, packed, experts, source):
        w = experts[0]
        assert packed.note.endswith("from " + source), packed.note
        assert (packed.experts, packed.n, packed.k, packed.kind) == (len(experts), w.n, w.k, w.kind)
        assert (packed.alpha is None) == (w.kind == "ue8m0")
        padding = 0 if w.kind == "ue4m3" else 127
        for e, weights in enumerate(experts):
            if packed.alpha is not None:
                assert abs(packed.alpha[e] / weights.factor - 1) < 2e-7, (source, e)
            for n in range(w.n):
                for k in range(w.k):
                    assert packed.value(e, n, k) == weights.value(n, k), (source, e, n, k)
            for n in range(packed.rows):
                for block in range(packed.columns):
                    if n >= w.n or block >= w.k // w.block:
                        assert packed.scale(e, n, block) == padding, (source, e, n, block)

    def refused_micro(self, part, tensors, name, *options):
        tensor_files.write_safetensors(self.folder / "in.safetensors", tensors)
        self.refused(part, "pack", "in.safetensors:" + name, "none.safetensors:w", *options)
        assert not (self.folder / "none.safetensors").exists()


def test_layouts(t):
    draw = t.draw
    for write, kind, source in ((modelopt, "ue4m3", "modelopt-nvfp4"),
                                (compressed_nvfp4, "ue4m3", "compressed-tensors-nvfp4"),
                                (compressed_mxfp4, "ue8m0", "compressed-tensors-mxfp4"),
                                (quark, "ue8m0", "quark-mxfp4"),
                                (deepseek, "ue8m0", "deepseek-mxfp4")):
        w = Weights(draw, draw.choice((1, 33, 130)), 32 * draw.randrange(1, 6), kind)
        t.expect_micro(t.pack_micro(write(w, "a.b"), "a.b"), [w], source)
        t.expect_micro(t.pack_micro(write(w, "a.b"), "", "--from", source), [w], source)
        experts = [Weights(draw, 24, 64, kind) for _ in range(11)]
        tensors = {}
        for i, e in enumerate(experts):
            tensors.update(write(e, f"m.experts.{i}.w1"))
            tensors.update(write(Weights(draw, 8, 32, kind), f"m.experts.{i}.w2"))
        t.expect_micro(t.pack_micro(tensors, "m.experts.*.w1"), experts, source)
    experts = [Weights(draw, 40, 96, "ue8m0") for _ in range(3)]
    t.expect_micro(t.pack_micro(gpt_oss(experts, "m.gate_up_proj"), "m.gate_up_proj"), experts,
                   "gpt-oss")
    t.expect_micro(t.pack_micro(gpt_oss(experts, "mlp1", "."), "mlp1.blocks"), experts,
                   "gpt-oss-original")
    for name, note in (("m.gate_up_proj", True), ("m.down_proj", False)):
        tensor_files.write_safetensors(t.folder / "in.safetensors", gpt_oss(experts, name))
        done = t.run("pack", "in.safetensors:" + name, "out.safetensors:w")
        assert done.returncode == 0 and (name + '" alternate' in done.stderr) == note, done.stderr
    # A factor for a gate and one for an up, where both are rows of one tensor.
    w = Weights(draw, 32, 64, "ue4m3")
    pair = modelopt(w, "x")
    pair["x.weight_scale_2"] = ("F32", [1, 2], 2 * scalar(w.factor))
    t.expect_micro(t.pack_micro(pair, "x"), [w], "modelopt-nvfp4")
    pair["x.weight_scale_2"] = ("F32", [1, 2], scalar(w.factor) + scalar(w.factor / 2))
    t.refused_micro("for gate and up of expert 0", pair, "x")


def test_blocks_of_fp8(t):
    """Powers of two for each 128 x 128, as float32 and as bytes: mxf8."""
    n, k = 200, 288
    codes = bytes(t.draw.randrange(0x78) for _ in range(n * k))
    powers = bytes(t.draw.randrange(100, 150) for _ in range(6))
    floats = struct.pack("<6f", *(2.0 ** (p - 127) for p in powers))
    halves = b"".join(floats[4 * i + 2:4 * i + 4] for i in range(6))
    for suffix, kind, data, source in ((".weight_scale_inv", "F32", floats, "deepseek-fp8"),
                                       (".weight_scale_inv", "BF16", halves, "deepseek-fp8"),
                                       (".scale", "F8_E8M0", powers, "deepseek-fp8-ue8m0")):
        tensors = {"a.weight": ("F8_E4M3", [n, k], codes), "a" + suffix: (kind, [2, 3], data)}
        tensor_files.write_safetensors(t.folder / "in.safetensors", tensors)
        for name, options in (("a", ()), ("", ("--from", source))):
            done = t.run("pack", "in.safetensors" + (name and ":" + name), "out.safetensors:w",
                         *options)
            assert done.returncode == 0, done.stderr
            t.count += 1
            packed, _ = tensor_files.read_safetensors(t.folder / "out.safetensors")
            kind_of, shape, stored = packed["w"]
            assert (list(shape), stored) == ([n, k], codes)
            tiles = packed["w_scale"][2]
            assert len(tiles) == 256 * 12
            for row in range(n):
                for block in range(9):
                    at = ((row // 128 * 3 + block // 4) * 512 + row % 32 * 16 + row // 32 % 4 * 4
                          + block % 4)
                    assert tiles[at] == powers[row // 128 * 3 + block // 4], (row, block)
        t.refused_micro("packed for tokens are int4, mxf4 and nvf4", tensors, "a", "--for", "e4m3")
        t.refused_micro("fp8 already", tensors, "a", "--as", "fp8")
    tensors["a.scale"] = ("F8_E8M0", [2, 2], powers[:4])
    t.refused_micro("have a scale for each 128 x 128: 2 x 3", tensors, "a")
    del tensors["a.scale"]
    tensors["a.weight_scale_inv"] = ("F32", [2, 3], struct.pack("<6f", 1, 1, 1, .3, 1, 1))
    t.refused_micro("are for products with blockwise scaling", tensors, "a")


def test_floats(t):
    """Round up, element by element; the rest of the recipes are the library's own tests'."""
    n, k = 5, 96
    values = [[f32(t.draw.gauss(0, 1)) for _ in range(k)] for _ in range(n)]
    values[2][32:64] = [0.0] * 32
    tensors = {"x": ("F32", [n, k], struct.pack(f"<{n * k}f", *sum(values, [])))}
    packed = t.pack_micro(tensors, "x", "--to", "mxf4")
    assert packed.alpha is None and packed.note.endswith("from f32")
    for row in range(n):
        for first in range(0, k, 32):
            part = values[row][first:first + 32]
            scale, exponent = 1.0, -40
            if any(part):
                while 6 * 2.0 ** exponent < max(map(abs, part)):
                    exponent += 1
                scale = 2.0 ** exponent
            assert scale_value("ue8m0", packed.scale(0, row, first // 32)) == scale
            for i, x in enumerate(part):
                # The one of two as near whose last bit is 0: its number among the magnitudes.
                near = min(range(8), key=lambda c: (abs(VALUES[c] - abs(x) / scale), c % 2))
                want = VALUES[near] * scale * (-1 if x < 0 else 1)
                assert packed.value(0, row, first + i) == want, (row, first + i, x)
    packed = t.pack_micro(tensors, "x", "--to", "nvf4")
    largest = max(abs(x) for row in values for x in row)
    assert packed.alpha == (f32(largest / 2688),)
    for row in range(n):
        for i, x in enumerate(values[row]):
            part = values[row][i // 16 * 16:i // 16 * 16 + 16]
            bound = max(map(abs, part)) * (1 / 6 + 0.07)
            assert abs(packed.value(0, row, i) * packed.alpha[0] - x) <= bound, (row, i)
    # What is written anew leaves nothing of what was there.
    t.pack_micro(tensors, "x", "--to", "mxf4")
    assert Packed(t.folder / "out.safetensors", "w").alpha is None
    t.refused_micro("is NaN: mxf4 has no code for it", {
        "x": ("F32", [1, 32], struct.pack("<32f", *[float("nan")] * 32))}, "x", "--to", "mxf4")
    t.refused_micro("the nearest legal K is 32", {
        "x": ("F32", [1, 31], struct.pack("<31f", *[1.0] * 31))}, "x", "--to", "nvf4")
    t.refused_micro("it must be int4, mxf8", tensors, "x", "--to", "fp4")
    t.refused_micro("that of mxf4 is floor or up", tensors, "x", "--to", "mxf4", "--recipe",
                    "nested")
    t.refused_micro("recipes are of mxf8", tensors, "x", "--recipe", "up")
    t.refused_micro("--zero-points is given", tensors, "x", "--to", "mxf4", "--zero-points")


def changed(tensors, name, **fields):
    kind, shape, data = tensors[name]
    kept = dict(tensors)
    kept[name] = (fields.get("kind", kind), fields.get("shape", shape), fields.get("data", data))
    return kept


def test_refusals(t):
    w = Weights(t.draw, 8, 64, "ue4m3")
    w.scales[0][0] = 126  # 448
    tensors = modelopt(w, "x")
    scales = w.scale_bytes()
    for code, what in ((0x7f, "0x7f, NaN"), (0xff, "0xff, NaN"), (0x81, "0x81, negative")):
        bad = scales[:9] + bytes([code]) + scales[10:]
        t.refused_micro("The scale of row 2 and k = 16 of expert 0 is " + what,
                        changed(tensors, "x.weight_scale", data=bad), "x")
    t.refused_micro("codes for 8 x 64 have a scale for each 16 of K: 8 x 4",
                    changed(tensors, "x.weight_scale", shape=[4, 8]), "x")
    t.refused_micro("is 4 x 3; codes for 4 x 52 have a scale for each 16 of K: 4 x 4, and K a "
                    "multiple", {
                        "x.weight_scale_2": ("F32", [], scalar(0.001)),
                        "x.weight": ("U8", [4, 26], bytes(104)),
                        "x.weight_scale": ("F8_E4M3", [4, 3], bytes(12))}, "x")
    t.refused_micro("matrices", changed(tensors, "x.weight_scale", shape=[2, 4, 4]), "x", "--from",
                    "modelopt-nvfp4")
    t.refused_micro("it is e4m3 in layout modelopt-nvfp4",
                    changed(tensors, "x.weight_scale", kind="U8"), "x", "--from", "modelopt-nvfp4")
    for stored in (0.0, -1.0, float("nan"), float("inf")):
        t.refused_micro("the scale of a tensor is a positive number",
                        changed(tensors, "x.weight_scale_2", data=scalar(stored)), "x")
    # 448 * 6 / amax where its inverse belongs, and the other way round.
    t.refused_micro("is 2688, by which codes and scales are multiplied: weights would go up to "
                    "7.22534e+06, so it looks like a divisor: the nearest legal is 0.000372024",
                    changed(tensors, "x.weight_scale_2", data=scalar(2688)), "x")
    other = changed(compressed_nvfp4(w, "x"), "x.weight_global_scale", data=scalar(0.25))
    t.refused_micro("so it looks like a factor: the nearest legal is 4", other, "x")
    del tensors["x.weight_scale_2"]
    t.refused_micro("weight_scale_2 is missing", tensors, "x", "--from", "modelopt-nvfp4")
    t.refused_micro("weight_scale_2 is missing, and weights in layout modelopt", tensors, "x")
    tensors = compressed_nvfp4(w, "x")
    del tensors["x.weight_global_scale"]
    t.refused_micro("weight_global_scale is missing, and weights in layout compressed", tensors,
                    "x")
    # For the second expert there are no scales: the sentence has the tensors' names as they are.
    tensors = {**deepseek(Weights(t.draw, 8, 64, "ue8m0"), "e.0.w1"),
               **deepseek(Weights(t.draw, 8, 64, "ue8m0"), "e.1.w1")}
    del tensors["e.1.w1.scale"]
    for name in ("e.*.w1", "e.*.w1.weight"):
        t.refused_micro('would be "e.1.w1.weight" and "e.1.w1.scale"', tensors, name)
    m = Weights(t.draw, 8, 64, "ue8m0")
    tensors = deepseek(m, "x")
    bad = m.scale_bytes()[:-1] + b"\xff"
    t.refused_micro("The scale of row 7 and k = 32 of expert 0 is 0xff, NaN",
                    changed(tensors, "x.scale", data=bad), "x")
    t.refused_micro("--group is given", tensors, "x", "--group", "32")
    t.refused_micro("--to is given", tensors, "x", "--to", "mxf4")
    tensors = gpt_oss([m], "x")
    t.refused_micro("no weights", changed(tensors, "x_blocks", shape=[1, 8, 4, 8]), "x", "--from",
                    "gpt-oss")
    # A file cut short.
    path = t.folder / "in.safetensors"
    tensor_files.write_safetensors(path, gpt_oss([m], "x"))
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) - 40, 100, 9, 0):
        path.write_bytes(whole[:size])
        t.refused("is no legal .safetensors file", "pack", "in.safetensors:x", "none.safetensors:w")


def test_products(t):
    """What is packed is multiplied as it says, and scales that are none are refused."""
    draw = t.draw
    a, b = Weights(draw, 3, 64, "ue4m3"), Weights(draw, 5, 64, "ue4m3")
    for w in (a, b):  # so that sums are exact in float32
        w.scales = [[draw.randrange(0x30, 0x40) for _ in row] for row in w.scales]
    t.pack_micro({**modelopt(a, "a"), **modelopt(b, "b")}, "a")
    path = t.folder / "out.safetensors"
    t.run("pack", "in.safetensors:b", "out.safetensors:v")
    names = ["--a", "out.safetensors:w", "--scale-a", "out.safetensors:w_scale",
             "--b", "out.safetensors:v", "--scale-b", "out.safetensors:v_scale"]
    gemm = ["gemm", "--as", "rtx5090", "--dtype", "nvf4"]
    done = t.run(*gemm, *names, "--out", "d.safetensors:d")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("in alpha, come with it") == 2, done.stderr  # also with --scale-b
    kind, shape, data = tensor_files.read_safetensors(t.folder / "d.safetensors")[0]["d"]
    assert kind == "BF16" and shape == [3, 5]
    got = tensor_files.decoded("bf16", data)
    for i in range(3):
        for j in range(5):
            want = a.factor * b.factor * sum(a.value(i, k) * b.value(j, k) for k in range(64))
            assert abs(got[5 * i + j] - want) <= abs(want) / 256, (i, j, got[5 * i + j], want)
    tensors, _ = tensor_files.read_safetensors(path)
    for code, row, block, what in ((0x7f, 2, 3, "NaN"), (0xff, 4, 0, "NaN"),
                                   (0x90, 1, 0, "a negative number")):
        at = row * 16 + block
        kind, shape, data = tensors["v_scale"]
        bad = dict(tensors)
        bad["v_scale"] = (kind, shape, data[:at] + bytes([code]) + data[at + 1:])
        tensor_files.write_safetensors(path, dict(sorted(
            bad.items(), key=lambda x: {"F32": 0, "F8_E4M3": 1, "F4": 2}[x[1][0]])))
        t.refused(f"has {what} at row {row}, block {block}", *gemm, *names)


def with_factor(packed, factor):
    """The packed tensor with another factor in its header, and the header's sum."""
    header = packed[:116] + struct.pack("<f", factor)
    total, whole = 0, 2 ** 64
    for i in range(0, 120, 8):
        x = (int.from_bytes(header[i:i + 8], "little") ^ i // 8 * 0x9e3779b97f4a7c15 % whole)
        x = x * 0xbf58476d1ce4e5b9 % whole
        total += x ^ x >> 32
    return header + (total % whole).to_bytes(8, "little") + packed[128:]


def test_the_factor_of_a_packed_tensor(t):
    """It lies in the header, and beside; one of both is enough, and none is refused."""
    m = Weights(t.draw, 64, 128, "ue4m3")
    m.scales = [[t.draw.randrange(0x30, 0x40) for _ in row] for row in m.scales]
    x = tensor_files.encoded("bf16", [1.0] * 128)
    path = t.folder / "in.safetensors"
    tensor_files.write_safetensors(path, {**modelopt(m, "m"), "x": ("BF16", [1, 128], x)})
    done = t.run("pack", "in.safetensors:m", "p.safetensors:w", "--for", "bf16")
    assert done.returncode == 0, done.stderr
    tensors, _ = tensor_files.read_safetensors(t.folder / "p.safetensors")
    kind, shape, data = tensors["w"]
    assert struct.unpack("<f", data[116:120])[0] == m.factor

    def product(packed, alpha, *more):
        written = {"w": (kind, shape, packed)}
        if alpha is not None:
            written["w_alpha"] = ("F32", [1], scalar(alpha))
        tensor_files.write_safetensors(t.folder / "q.safetensors", dict(sorted(
            written.items(), key=lambda each: each[1][0])))
        return ("gemm", "--weights", "nvf4", "--dtype", "bf16", "--a", "in.safetensors:x", "--b",
                "q.safetensors:w", "--out", "d.safetensors:d", *more)

    def result(*arguments):
        done = t.run(*arguments)
        assert done.returncode == 0, done.stderr
        return tensor_files.read_safetensors(t.folder / "d.safetensors")[0]["d"][2]

    want = result(*product(data, m.factor))
    for j, got in enumerate(tensor_files.decoded("bf16", want)):
        right = m.factor * sum(m.value(j, k) for k in range(128))
        assert abs(got - right) <= abs(right) / 128 + 1e-6, (j, got, right)
    assert with_factor(data, m.factor) == data
    unknown = with_factor(data, 0)
    assert result(*product(data, None)) == want
    assert result(*product(unknown, m.factor)) == want
    t.refused("other factors than", *product(data, 2 * m.factor))
    says = "are neither in their header nor beside them"
    t.refused(says, *product(unknown, None))
    t.refused(says, "unpack", "q.safetensors:w", "u.safetensors:w")
    tensor_files.write_safetensors(path, {"x": ("BF16", [1, 128], x),
                                          "s": ("BF16", [1], tensor_files.encoded("bf16", [0.5]))})
    # Scales that are given take its place; those of bf16 are widened.
    half = result(*product(unknown, None, "--scaling", "tensor", "--scale-b", "in.safetensors:s"))
    assert half == result(*product(data, None, "--scaling", "tensor", "--scale-b",
                                   "in.safetensors:s"))
    for got, right in zip(tensor_files.decoded("bf16", half), tensor_files.decoded("bf16", want)):
        assert abs(got * m.factor * 2 - right) <= abs(right) / 64 + 1e-6


def main(program, seed=None):
    seed = int(seed) if seed else random.randrange(1 << 32)
    with tempfile.TemporaryDirectory() as folder:
        t = MicroTester(pathlib.Path(program).resolve(), pathlib.Path(folder), seed)
        try:
            for test in (test_layouts, test_blocks_of_fp8, test_floats, test_refusals,
                         test_products, test_the_factor_of_a_packed_tensor):
                test(t)
        except AssertionError:
            print(f"seed {seed}")
            raise
        print(f"seed {seed}: {t.count} calls of pack are as the page says")


if __name__ == "__main__":
    main(*sys.argv[1:])
