#!/usr/bin/env python3
"""`warpwright pack` against writers of checkpoints and a reader of its results that share nothing
with it.

    pack_test.py WARPWRIGHT [SEED]

Writers of every layout and a reader of packed tensors, both only after docs/packing.md and without
its tricks: every bit of every code is put and taken where the page says.
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tensor_files  # noqa: E402
from tensor_files import NAMED, TYPES, decoded, encoded  # noqa: E402


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def save(path, tensors):
    """{name: (type, shape, values)} as a .safetensors file, the widest type first."""
    widest = sorted(tensors.items(), key=lambda t: -TYPES[NAMED[t[1][0]]][2])
    tensor_files.write_safetensors(path, {
        name: (kind, shape, encoded(NAMED[kind], values))
        for name, (kind, shape, values) in widest})


class Weights:
    """Codes 0..15 (8 more than their values), scales and zero points of one matrix."""

    def __init__(self, draw, n, k, group, zeros=None, scale="BF16", least=-8):
        self.n, self.k, self.group, self.scale = n, k, group, scale
        self.codes = [[draw.randrange(least + 8, 16) for _ in range(k)] for _ in range(n)]
        self.codes[0][:16] = [max(c, least + 8) for c in range(16)]
        self.scales = [[draw.randrange(128, 256) * 2.0 ** draw.randrange(-14, -8)
                        for _ in range(k // group)] for _ in range(n)]
        zero = (lambda: draw.randrange(*zeros)) if zeros else (lambda: 8)
        self.zeros = [[zero() for _ in range(k // group)] for _ in range(n)]

    def value(self, n, k):
        g = k // self.group
        return self.scales[n][g] * (self.codes[n][k] - self.zeros[n][g])

    def transposed_scales(self):
        return [self.scales[n][g] for g in range(self.k // self.group) for n in range(self.n)]


def words(numbers):
    """Eight numbers a word, the first in the lowest bits."""
    return [sum(x << 4 * i for i, x in enumerate(numbers[at:at + 8]))
            for at in range(0, len(numbers), 8)]


def compressed_tensors(w, name, zeros=False):
    tensors = {
        name + ".weight_packed": ("I32", [w.n, w.k // 8], words(sum(w.codes, []))),
        name + ".weight_scale": (w.scale, [w.n, w.k // w.group], sum(w.scales, [])),
        name + ".weight_shape": ("I64", [2], [w.n, w.k])}
    if zeros:
        packed = []
        for n in range(0, w.n, 8):
            for g in range(w.k // w.group):
                packed += words([w.zeros[n + i][g] if n + i < w.n else 0 for i in range(8)])
        tensors[name + ".weight_zero_point"] = ("I32", [(w.n + 7) // 8, w.k // w.group], packed)
    return tensors


def gptq(w, name, bias=1, index=True):
    groups = w.k // w.group
    codes = [words([w.codes[n][k + i] for i in range(8)])[0]
             for k in range(0, w.k, 8) for n in range(w.n)]
    zeros = [words([(w.zeros[n + i][g] - bias) & 15 for i in range(8)])[0]
             for g in range(groups) for n in range(0, w.n, 8)]
    tensors = {name + ".qweight": ("I32", [w.k // 8, w.n], codes),
               name + ".qzeros": ("I32", [groups, w.n // 8], zeros),
               name + ".scales": (w.scale, [groups, w.n], w.transposed_scales())}
    if index:
        tensors[name + ".g_idx"] = ("I32", [w.k], [k // w.group for k in range(w.k)])
    return tensors


def awq(w, name):
    groups = w.k // w.group
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    codes = [words([w.codes[n + i][k] for i in order])[0]
             for k in range(w.k) for n in range(0, w.n, 8)]
    zeros = [words([w.zeros[n + i][g] for i in order])[0]
             for g in range(groups) for n in range(0, w.n, 8)]
    return {name + ".qweight": ("I32", [w.k, w.n // 8], codes),
            name + ".qzeros": ("I32", [groups, w.n // 8], zeros),
            name + ".scales": (w.scale, [groups, w.n], w.transposed_scales())}


def signed_bytes(w):
    return [(row[k] ^ 8) | (row[k + 1] ^ 8) << 4 for row in w.codes for k in range(0, w.k, 2)]


def w4afp8(experts, name, interleaved):
    w = experts[0]
    groups = w.k // w.group
    if interleaved:
        scales = [e.scales[n][g + i] for e in experts for g in range(0, groups, 4)
                  for n in range(w.n) for i in range(4)]
        shape = [len(experts), groups // 4, 4 * w.n]
    else:
        scales = [s for e in experts for row in e.scales for s in row]
        shape = [len(experts), w.n, groups]
    codes = sum((signed_bytes(e) for e in experts), [])
    return {name: ("I8", [len(experts), w.n, w.k // 2], codes),
            name + "_scale_inv": (w.scale, shape, scales)}


def int4(w, name):
    return {name: ("U8", [w.n, w.k // 2], signed_bytes(w)),
            name + "_scale": (w.scale, [w.n, w.k // w.group], sum(w.scales, []))}


class Packed:
    """A packed tensor, read after docs/packing.md."""

    def __init__(self, data):
        assert data[:8] == b"WWINT4\r\n" and struct.unpack("<II", data[8:16]) == (1, 128)
        encoding, scale, zeros, _, self.group = struct.unpack("<BBBBI", data[16:24])
        (self.experts, self.n, self.k, self.padded_n, self.padded_k, self.tile, size,
         _) = struct.unpack("<8Q", data[24:88])
        self.source = data[88:120].rstrip(b"\0").decode()
        self.encoding = ("sm", "ex")[encoding]
        self.scale = ("bf16", "f16", "f32")[scale]
        self.zeros = zeros
        self.data = data[128:]
        assert len(self.data) == size
        self.bytes = {"bf16": 2, "f16": 2, "f32": 4}[self.scale]

    def value(self, e, n, k):
        tile = ((e * self.padded_n + n // 64 * 64) // 64 * (self.padded_k // 128) + k // 128)
        data = self.data[tile * self.tile:(tile + 1) * self.tile]
        row, k = n % 64, k % 128
        thread = row // 16 * 32 + row % 8 * 4 + k // 4 % 4
        word = k // 64 * 2048 + 16 * thread + 4 * (k // 32 % 2 * 2 + k // 16 % 2)
        i = k % 4
        if row % 16 < 8:
            sign, magnitude = data[word + i] >> 7, data[word + i] & 7
        else:
            sign, magnitude = data[word + (i + 1) % 4] >> 3 & 1, data[word + i] >> 4 & 7
        code = -(magnitude + (self.encoding == "ex")) if sign else magnitude
        pair = row // 16 * 8 + row % 8
        slices = 128 // self.group
        at = 4096 + (k // self.group * 64 + 2 * pair + row // 8 % 2) * self.bytes
        scale = decoded(self.scale, data[at:at + self.bytes])[0] / 512
        zero = 8
        if self.zeros:
            byte = data[4096 + slices * 64 * self.bytes + 4 * pair + k // self.group]
            zero = byte >> 4 if row % 16 >= 8 else byte & 15
        return scale * (code + 8 - zero)


class Tester:
    def __init__(self, program, folder, seed):
        self.program, self.folder, self.draw = program, folder, random.Random(seed)
        self.count = 0

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True,
                              text=True, check=False)

    def pack(self, tensors, name, *options):
        """Packs `name` of a file of these tensors."""
        save(self.folder / "in.safetensors", tensors)
        (self.folder / "out.safetensors").unlink(missing_ok=True)
        done = self.run("pack", "in.safetensors" + (":" + name if name else ""),
                        "out.safetensors:w", *options)
        assert done.returncode == 0, done.stderr
        tensors, header = tensor_files.read_safetensors(self.folder / "out.safetensors")
        kind, _, data = tensors["w"]
        assert kind == "U8" and "warpwright.w" in header["__metadata__"]
        self.count += 1
        return Packed(data)

    def expect(self, packed, experts, source):
        assert packed.source == source, packed.source
        w = experts[0]
        assert (packed.experts, packed.n, packed.k) == (len(experts), w.n, w.k)
        for e, weights in enumerate(experts):
            for n in range(packed.padded_n):
                for k in range(packed.padded_k):
                    want = weights.value(n, k) if n < w.n and k < w.k else 0
                    assert packed.value(e, n, k) == want, (source, e, n, k)

    def refused(self, part, *arguments):
        done = self.run(*arguments)
        assert done.returncode == 2 and done.stdout == "", (arguments, done)
        assert part in done.stderr and done.stderr.count("\n") == 1, (part, done.stderr)
        self.count += 1

    def refused_pack(self, part, tensors, name, *options):
        save(self.folder / "in.safetensors", tensors)
        self.refused(part, "pack", "in.safetensors:" + name, "none.safetensors:w", *options)
        assert not (self.folder / "none.safetensors").exists()


def test_layouts(t):
    draw = t.draw
    w = Weights(draw, 72, 192, 64)
    t.expect(t.pack(compressed_tensors(w, "a.b"), "a.b"), [w], "compressed-tensors")
    t.expect(t.pack(compressed_tensors(w, "a.b"), ""), [w], "compressed-tensors")
    w = Weights(draw, 37, 160, 32, (0, 16), "F16")
    t.expect(t.pack(compressed_tensors(w, "x", True), "x"), [w], "compressed-tensors")
    w = Weights(draw, 64, 256, 128, None, "F16")
    t.expect(t.pack(gptq(w, "x"), "x"), [w], "gptq")
    t.expect(t.pack(gptq(w, "x", 0), "x.qweight"), [w], "gptq-v2")
    w = Weights(draw, 72, 128, 32, (1, 16), "F16")
    packed = t.pack(gptq(w, "x", 1, False), "x", "--from", "gptq")
    t.expect(packed, [w], "gptq")
    assert packed.encoding == "ex" and packed.scale == "f16" and packed.group == 32
    w = Weights(draw, 72, 128, 64, (0, 16))
    t.expect(t.pack(gptq(w, "x", 0), "x", "--from", "gptq-v2"), [w], "gptq-v2")
    t.expect(t.pack(awq(w, "x"), "x"), [w], "awq")
    experts = [Weights(draw, 8, 512, 128, None, "F32") for _ in range(3)]
    for interleaved in (False, True):
        packed = t.pack(w4afp8(experts, "w13_weight", interleaved), "w13_weight")
        t.expect(packed, experts, "w4afp8")
        assert packed.scale == "f32"
    w = Weights(draw, 130, 128, 32, None, "F32", -7)
    packed = t.pack(int4(w, "x.weight"), "x", "--scales", "bf16")
    t.expect(packed, [w], "int4")
    assert packed.encoding == "sm" and packed.scale == "bf16"
    # One scale for 256 of K serves two tiles.
    w = Weights(draw, 16, 512, 256)
    packed = t.pack(int4(w, "x"), "x", "--encoding", "ex")
    t.expect(packed, [w], "int4")
    assert packed.group == 128 and packed.encoding == "ex"
    # Experts that are tensors of their own, more than ten of them.
    experts = [Weights(draw, 8, 32, 32) for _ in range(12)]
    tensors = {}
    for i, e in enumerate(experts):
        tensors.update(compressed_tensors(e, f"m.experts.{i}.up"))
        tensors.update(compressed_tensors(Weights(draw, 8, 32, 32), f"m.experts.{i}.down"))
    for pattern in ("m.experts.*.up", "m.experts.{}.up"):
        t.expect(t.pack(tensors, pattern), experts, "compressed-tensors")
    del tensors["m.experts.7.up.weight_packed"], tensors["m.experts.7.up.weight_scale"]
    del tensors["m.experts.7.up.weight_shape"]
    t.refused_pack("has no expert 7", tensors, "m.experts.*.up")
    t.refused_pack("two places", tensors, "m.*.*.up")


def test_quantise(t):
    n, k, group = 66, 192, 64
    values = [[f32(t.draw.gauss(0, 1)) for _ in range(k)] for _ in range(n)]
    values[3][64:128] = [0.0] * 64
    tensors = {"x.weight": ("F32", [n, k], sum(values, []))}
    for encoding, least in (("ex", -8), ("sm", -7)):
        packed = t.pack(tensors, "x", "--group", str(group), "--encoding", encoding)
        assert packed.encoding == encoding and packed.source == "f32" and packed.scale == "bf16"
        for row in range(n):
            for first in range(0, k, group):
                part = values[row][first:first + group]
                exact = max(max(part + [0]) / 7, min(part + [0]) / least)
                scale = decoded("bf16", encoded("bf16", [exact]))[0]
                for i, x in enumerate(part):
                    want = 0
                    if scale:
                        want = scale * min(7, max(least, round(f32(x / scale))))
                    assert packed.value(0, row, first + i) == want, (encoding, row, first + i)


    # With zero points: a fifteenth of the range, and the code of 0.
    packed = t.pack(tensors, "x", "--group", str(group), "--zero-points", "--scales", "f32")
    for row in range(n):
        for first in range(0, k, group):
            part = values[row][first:first + group]
            low = min(part + [0])
            scale = f32((max(part + [0]) - low) / 15)
            zero = min(15, round(f32(-low / scale))) if scale else 8
            for i, x in enumerate(part):
                code = min(15 - zero, max(-zero, round(f32(x / scale)))) if scale else 0
                assert abs(packed.value(0, row, first + i) - scale * code) <= 1e-12, (row, first, i)


def test_refusals(t):
    w = Weights(t.draw, 16, 128, 64)
    tensors = gptq(w, "x")
    shuffled = list(tensors["x.g_idx"][2])
    shuffled[3], shuffled[100] = 1, 0
    tensors["x.g_idx"] = ("I32", [128], shuffled)
    t.refused_pack("weights in act-order are not packed", tensors, "x")
    some = Weights(t.draw, 16, 128, 64, (0, 9))
    some.zeros[5][1] = 0
    t.refused_pack("stands for 16", gptq(some, "x"), "x", "--from", "gptq")
    t.refused_pack("--from gptq-v2", gptq(some, "x"), "x")
    t.refused_pack("which the encoding sm does not have", int4(w, "x"), "x", "--encoding", "sm")
    t.refused_pack("in layout awq", int4(w, "x"), "x", "--from", "awq")
    t.refused_pack("it must be modelopt-nvfp4, compressed-", int4(w, "x"), "x", "--from", "gguf")
    t.refused_pack("only floats can be grouped", int4(w, "x"), "x", "--group", "32")
    t.refused_pack("--zero-points is of floats", int4(w, "x"), "x", "--zero-points")
    t.refused_pack("it must be 32, 64 or 128", int4(w, "x"), "x", "--group", "16")
    t.refused_pack('--scales is "e4m3"', int4(w, "x"), "x", "--scales", "e4m3")
    t.refused_pack('no weights "y"', int4(w, "x"), "y")
    floats = {"x": ("F32", [2, 96], [1.0] * 192)}
    t.refused_pack("K = 96 is no multiple of the group of 128", floats, "x")
    tensors = int4(w, "x")
    tensors["x_scale"] = ("BF16", [16, 3], [1.0] * 48)
    t.refused_pack("K = 128 is no multiple of its 3 groups", tensors, "x")
    tensors["x_scale"] = ("BF16", [16, 8], [1.0] * 128)
    t.refused_pack("groups of 16", tensors, "x")
    tensors["x_scale"] = ("BF16", [15, 2], [1.0] * 30)
    t.refused_pack("N = 15 and N = 16", tensors, "x")
    tensors["x_scale"] = ("BF16", [16, 2], [float("inf")] + [1.0] * 31)
    t.refused_pack("is infinite", tensors, "x")
    tensors = compressed_tensors(w, "x")
    tensors["x.weight_shape"] = ("I64", [2], [16, 256])
    t.refused_pack("says 16x256", tensors, "x")
    t.refused_pack("or take a checkpoint without desc_act", tensors_in_act_order(w), "x")


def tensors_in_act_order(w):
    tensors = gptq(w, "x")
    tensors["x.g_idx"] = ("I32", [w.k], [w.k // w.group - 1 - k // w.group for k in range(w.k)])
    return tensors


def split(t, tensors, names, index=False):
    """The tensors in two files, those of `names` in the second."""
    for old in t.folder.glob("model*"):
        old.unlink()
    paths = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    for i, path in enumerate(paths):
        save(t.folder / path,
             {n: v for n, v in tensors.items() if (n in names) == (i == 1)})
    if index:
        listed = {n: paths[n in names] for n in tensors}
        (t.folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    return paths


def test_files_of_a_checkpoint(t):
    w = Weights(t.draw, 64, 256, 128, (1, 16), "F16")
    tensors = awq(w, "a.b") | {"n": ("BF16", [4, 128], [1.0] * 512)}
    want = t.pack(tensors, "a.b").data
    for index in (False, True):
        paths = split(t, tensors, ("a.b.scales", "a.b.qzeros"), index)
        for path in paths + ["model.safetensors.index.json"] * index:
            (t.folder / "out.safetensors").unlink()
            done = t.run("pack", path + ":a.b", "out.safetensors:w")
            assert done.returncode == 0, done.stderr
            read = tensor_files.read_safetensors(t.folder / "out.safetensors")[0]["w"][2]
            assert read[128:] == want, path
            t.count += 1
    # Any command reads it: the product of a tensor in another file than is named.
    for path in (paths[1], "model.safetensors.index.json"):
        done = t.run("gemm", "--a", path + ":n", "--b", path + ":n", "--out", "d.npy", "--check")
        assert done.returncode == 0 and "PASS" in done.stderr, done.stderr
    (t.folder / paths[1]).unlink()
    t.refused(f"and {paths[1]} is not there", "pack", paths[0] + ":a.c.scales", "none.safetensors")
    t.refused("some of its tensors would be missed", "pack", paths[0] + ":a.*", "none.safetensors")
    done = t.run("gemm", "--a", paths[0] + ":n", "--b", paths[0] + ":n")
    assert done.returncode == 0, done.stderr  # what is there is enough
    # Experts in several files, and one that is there twice.
    experts = [Weights(t.draw, 8, 32, 32) for _ in range(3)]
    tensors = {}
    for i, e in enumerate(experts):
        tensors.update(compressed_tensors(e, f"e.{i}.up"))
    paths = split(t, tensors, [n for n in tensors if n.startswith("e.1")])
    (t.folder / "out.safetensors").unlink()
    assert t.run("pack", paths[0] + ":e.*.up", "out.safetensors:w").returncode == 0
    t.expect(Packed(tensor_files.read_safetensors(t.folder / "out.safetensors")[0]["w"][2]),
             experts, "compressed-tensors")
    save(t.folder / paths[1], tensors)
    t.refused("share no name", "pack", paths[0] + ":e.*.up", "none.safetensors")
    for text, part in (("{}", 'an object "weight_map"'), ("[", 'an object "weight_map"'),
                       ('{"weight_map": {"x": "../y.safetensors"}}', "file beside it"),
                       ('{"weight_map": {"x": 3}}', "file beside it"),
                       ('{"weight_map": {}}', "names a tensor"),
                       ('{"weight_map": {"x": "in.safetensors"}}', "and it is not there")):
        (t.folder / "bad.safetensors.index.json").write_text(text)
        t.refused(part, "pack", "bad.safetensors.index.json:x", "none.safetensors")
    t.refused("is read and not written", "pack", "in.safetensors:a.b", "x.safetensors.index.json:w")


def test_looks_before_it_takes(t):
    """Codes of 8 bits, one a byte, zero points of another layout, widths, a K of no whole word."""
    w = Weights(t.draw, 64, 256, 128)
    wide = {"x": ("I8", [64, 256], [t.draw.randrange(256) for _ in range(64 * 256)]),
            "x_scale": ("BF16", [64, 2], [1.0] * 128)}
    t.refused_pack("codes of 8 bits may have as well", wide, "x")
    t.refused_pack("codes of 8 bits may have as well",
                   {"x": ("I8", [4, 64], [1] * 256), "x_scale": ("F32", [4, 1], [1.0] * 4)}, "x")
    one = {"x": ("U8", [64, 256], [(c ^ 8) - 8 & 255 for row in w.codes for c in row]),
           "x_scale": ("BF16", [64, 2], [1.0] * 128)}
    t.refused_pack("so it has a code a byte", one, "x")
    t.refused_pack("so it has a code a byte", one, "x", "--from", "int4")
    for end in ("x_zero_point", "x_zeros"):
        t.refused_pack("have zero points", int4(w, "x") | {end: ("U8", [64, 2], [8] * 128)}, "x")
    signed = int4(w, "x")
    signed["x"] = ("I8", *signed["x"][1:])
    t.expect(t.pack(signed, "x", "--from", "int4"), [w], "int4")
    wide = compressed_tensors(w, "x")
    wide["x.weight_shape"] = ("I64", [2], [64, 128])
    t.refused_pack("says 64x128, and as 4 bits the codes are 64x256", wide, "x")
    del wide["x.weight_shape"]
    t.refused_pack("without their shape", wide, "x")
    t.expect(t.pack(wide, "x", "--from", "compressed-tensors"), [w], "compressed-tensors")
    row = Weights(t.draw, 64, 256, 256)
    ragged = compressed_tensors(row, "x")
    ragged["x.weight_shape"] = ("I64", [2], [64, 250])
    t.refused_pack("are packed: the nearest legal K is 256, with zeros behind the rows of weights",
                   ragged, "x")
    rows = compressed_tensors(row, "x")
    rows["x.weight_scale"] = ("BF16", [64], rows["x.weight_scale"][2])
    t.expect(t.pack(rows, "x"), [row], "compressed-tensors")
    # Modules may keep the floats of fused experts as K x N, which nothing tells.
    for options, name, is_told in (((), "e.gate_up_proj", True), ((), "e.up_proj", False),
                                   (("--to", "mxf4"), "e.down_proj", True)):
        tensor_files.write_safetensors(t.folder / "in.safetensors",
                                       {name: ("F32", [2, 64, 128], bytes(4 * 2 * 64 * 128))})
        done = t.run("pack", "in.safetensors:" + name, "out.safetensors:w", *options)
        assert done.returncode == 0, done.stderr
        assert ("2x64x128, experts x N x K" in done.stderr) == is_told, done.stderr
    # Those are read by a layout of their own, for every format.
    values = [t.draw.uniform(-1, 1) for _ in range(2 * 64 * 128)]
    turned = [values[(e * 64 + n) * 128 + k]
              for e in range(2) for k in range(128) for n in range(64)]
    for options in ((), ("--to", "nvf4")):
        files = []
        for name, shape, floats, layout in (("nk", [2, 64, 128], values, "bf16"),
                                            ("kn", [2, 128, 64], turned, "bf16-kn")):
            save(t.folder / "in.safetensors", {"w": ("F32", shape, floats)})
            done = t.run("pack", "in.safetensors:w", name + ".safetensors", "--from", layout,
                         *options)
            assert done.returncode == 0, done.stderr
            files.append((t.folder / (name + ".safetensors")).read_bytes())
        assert files[0] == files[1], options
    # Fused experts have names of their own.
    experts = compressed_tensors(w, "e.gate_up_proj")
    fused = {name.replace(".weight_", "_"): value for name, value in experts.items()}
    t.expect(t.pack(fused, "e.gate_up_proj"), [w], "compressed-tensors-experts")
    for bits in (2, 8):
        tensors = gptq(w, "x", index=False)
        kind, _, codes = tensors["x.qweight"]
        tensors["x.qweight"] = (kind, [256 * bits // 32, 64], (codes * 2)[:256 * bits * 2])
        tensors["x.qzeros"] = ("I32", [2, 64 * bits // 32], [0] * (4 * bits))
        if bits == 2:  # K counts 128 then
            tensors["x.scales"] = ("BF16", [2, 64], [1.0] * 128)
        t.refused_pack(f'Tensor "x.qzeros" says that the codes have {bits} bits', tensors, "x")
    tensors = gptq(w, "x")
    del tensors["x.qzeros"]
    t.refused_pack("nothing says of how many bits", tensors, "x")
    save(t.folder / "in.safetensors", gptq(w, "x", 0))
    done = t.run("pack", "in.safetensors:x", "out.safetensors:w", "--from", "gptq")
    assert done.returncode == 0 and "which --from gptq-v2 reads" in done.stderr, done.stderr
    t.refused_pack("fp8 needs no packing, so multiply it by `warpwright gemm",
                   {"x.weight": ("F8_E4M3", [8, 32], [1.0] * 256),
                    "x.weight_scale": ("F32", [8, 1], [1.0] * 8)}, "x")
    for to in ("mxf4", "nvf4", "mxf8", "int4"):
        for bad, word in ((float("inf"), "infinite"), (float("nan"), "NaN")):
            values = [1.0] * 256
            values[200] = bad
            part = f"is {word}: {to} has no code for it" if to != "int4" else "is NaN or infinite"
            t.refused_pack(part, {"x": ("F32", [2, 128], values)}, "x", "--to", to)
            if to == "nvf4":
                t.refused_pack(part, {"x": ("F32", [2, 128], values)}, "x", "--to", to, "--for",
                               "bf16")


def test_explain(t):
    w = Weights(t.draw, 72, 256, 64, (0, 16))
    t.pack(compressed_tensors(w, "x", True), "x")
    done = t.run("explain", "packed", "out.safetensors", "--tile", "0,1,1", "--threads", "128")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    codes = [line for line in lines if "thread" in line and "row" in line and line[:3] == "   "]
    assert len(codes) == 1024, len(codes)
    # Thread 9 of half 1: row 64 + 2, k 128 + 64 + 4 and on.
    want = " ".join(f"{c - 8:2d}" for c in w.codes[66][196:200])
    at = f"{2048 + 16 * 9:5d}  "
    line = next(line for line in codes if line.strip().startswith(at.strip() + " "))
    assert f"thread   9:  row 66, k 196..199: {want}" in line, line
    scale = next(line for line in lines if "row 66: " in line and "k 192..255" in line)
    assert f"row 66: {w.scales[66][3]:g} (zero point {w.zeros[66][3]})" in scale, scale
    t.refused("the nearest legal value is 1", "explain", "packed", "out.safetensors:w", "--tile",
              "0,2,0")
    path = t.folder / "out.safetensors"
    content = bytearray(path.read_bytes())
    begin = content.find(b"WWINT4")
    for at, part in ((5000, "its tiles do not add up"), (8, "has version 5"),
                     (33, "its header does not add up"), (3, "holds no packed weights")):
        damaged = bytearray(content)
        damaged[begin + at] ^= 4
        (t.folder / "bad.safetensors").write_bytes(damaged)
        t.refused(part, "explain", "packed", "bad.safetensors:w")
    t.refused("has type BF16; packed weights are U8", "explain", "packed",
              "in.safetensors:x.weight_scale")


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        t = Tester(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(name), seed)
        for test in (test_layouts, test_quantise, test_refusals, test_explain,
                     test_files_of_a_checkpoint, test_looks_before_it_takes):
            test(t)
    print(f"{t.count} packed or refused")


if __name__ == "__main__":
    main()
