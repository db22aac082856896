"""Tensors in .npy and .safetensors files, written and read after the formats' own descriptions and
with Python's library only.

A tensor is (type, shape, bytes); a spec is PATH.npy or PATH.safetensors:NAME, as on the command
line.
"""
import ast
import json
import math
import pathlib
import random
import struct

# The command line's word: what .safetensors calls the type, what .npy does, and an element's bytes.
TYPES = {"f32": ("F32", "<f4", 4), "f16": ("F16", "<f2", 2), "bf16": ("BF16", None, 2),
         "e4m3": ("F8_E4M3", None, 1), "e5m2": ("F8_E5M2", None, 1), "s8": ("I8", "|i1", 1),
         "u8": ("U8", "|u1", 1), "i32": ("I32", "<i4", 4), "i64": ("I64", "<i8", 8)}
INTEGERS = {"s8": "b", "u8": "B", "i32": "i", "i64": "q"}
NAMED = {names[i]: word for word, names in TYPES.items() for i in (0, 1) if names[i]}


def elements(shape):
    return math.prod(shape)


def small_float(word, code):
    """The value of an 8-bit float's code."""
    mantissa = 3 if word == "e4m3" else 2
    sign = -1 if code >> 7 else 1
    exponent, fraction = code >> mantissa & (127 >> mantissa), code & ((1 << mantissa) - 1)
    if word == "e4m3" and code & 127 == 127:
        return math.nan
    if word == "e5m2" and exponent == 31:
        return math.nan if fraction else sign * math.inf
    bias = 7 if word == "e4m3" else 15
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias - mantissa)
    return sign * (1 + fraction / (1 << mantissa)) * 2.0 ** (exponent - bias)


def small_codes(word):
    return {value: code for code in range(255, -1, -1)
            if not math.isnan(value := small_float(word, code))}


def f32(x):
    try:
        return struct.pack("<f", x)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, x))


def encoded(word, values):
    """The bytes of these values, rounded to nearest even (8-bit floats have to be exact)."""
    if word in INTEGERS:
        # As two's complement: a number without a sign is taken too.
        whole = 256 ** TYPES[word][2]
        return struct.pack(f"<{len(values)}{INTEGERS[word].upper()}",
                           *(int(x) % whole for x in values))
    if word == "f32":
        return b"".join(map(f32, values))
    if word == "f16":
        return struct.pack(f"<{len(values)}e", *values)
    if word == "bf16":
        words = struct.unpack(f"<{len(values)}I", b"".join(map(f32, values)))
        return struct.pack(f"<{len(values)}H",
                           *((w + 0x7fff + (w >> 16 & 1)) >> 16 if w & 0x7fffffff <= 0x7f800000
                             else 0x7fff for w in words))
    codes = small_codes(word)
    return bytes(127 if math.isnan(x) else codes[x] for x in values)


def decoded(word, data):
    count = len(data) // TYPES[word][2]
    if word in INTEGERS:
        return struct.unpack(f"<{count}{INTEGERS[word]}", data)
    if word == "bf16":
        words = struct.unpack(f"<{count}H", data)
        return struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *(w << 16 for w in words)))
    if word in ("f32", "f16"):
        return struct.unpack(f"<{count}{'f' if word == 'f32' else 'e'}", data)
    return tuple(small_float(word, code) for code in data)


def random_bytes(word, count, name):
    """Values of about 1, the same ones for a name; for f32 positive ones, which serve as scales."""
    dice = random.Random(name)
    if word == "f32":
        return encoded(word, [dice.uniform(0.5, 2) for _ in range(count)])
    if word == "bf16":
        return struct.pack(f"<{count}H", *(dice.choice((0x3f00, 0xbf00)) + dice.randrange(256)
                                           for _ in range(count)))
    if word == "f16":
        return encoded(word, [dice.uniform(-2, 2) for _ in range(count)])
    if word in INTEGERS:
        return encoded(word, [dice.randrange(-99, 100) for _ in range(count)])
    low = 0x30 if word == "e4m3" else 0x38
    return bytes(dice.choice((low, low | 0x80)) + dice.randrange(16 if word == "e4m3" else 8)
                 for _ in range(count))


def split(spec):
    """The path and the tensor's name."""
    path, _, name = spec.partition(".safetensors:")
    return (pathlib.Path(path + ".safetensors"), name) if name else (pathlib.Path(spec), "")


def write_safetensors(path, tensors):
    """A file of {name: (safetensors type, shape, bytes)}, in this order."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """{name: (safetensors type, shape, bytes)}, and the header."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    data = content[8 + size:]
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])])
            for name, t in header.items() if name != "__metadata__"}, header


def write(spec, tensor):
    """Writes (type, shape, bytes), of a .safetensors file beside what is there."""
    path, name = split(spec)
    word, shape, data = tensor
    assert len(data) == elements(shape) * TYPES[word][2], (spec, shape, len(data))
    if name:
        others = read_safetensors(path)[0] if path.exists() else {}
        others[name] = (TYPES[word][0], shape, data)
        # The widest elements first, so that each is aligned.
        write_safetensors(path, dict(sorted(others.items(),
                                            key=lambda t: -TYPES[NAMED[t[1][0]]][2])))
        return
    extents = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    header = f"{{'descr': '{TYPES[word][1]}', 'fortran_order': False, 'shape': {extents}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data)


def read(spec):
    path, name = split(spec)
    if name:
        dtype, shape, data = read_safetensors(path)[0][name]
        return NAMED[dtype], shape, data
    content = path.read_bytes()
    size = struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:10 + size].decode())
    assert not header["fortran_order"], spec
    return NAMED[header["descr"]], list(header["shape"]), content[10 + size:]
