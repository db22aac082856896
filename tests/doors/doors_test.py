#!/usr/bin/env python3
"""Three doors, one library: the command line, C (libwarpwright.so.2 by ctypes) and Python. (What C
reads is what C++ is called with.)

    doors_test.py BUILD WARPWRIGHT [SEED]    in the environment of wheel_test.py

Whatever the command line plans, the others plan, by the same kernel: for all words of its options,
which are asked of itself. And random products by files have the same bits through all doors: 100
in a campaign, and 20 of formats whose scales the tensor core multiplies, on the model of an RTX
5090 (a process of its own, so that the C++ door has it too).
"""
import ctypes
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402
import tensor_files  # noqa: E402

try:
    import ml_dtypes
    import numpy as np
    import warpwright as wp
except ImportError as missing:
    print(f"did not run: doors_test.py: {missing}")
    sys.exit(77)

# Names of the command line's types: the number of the library, the one of safetensors, numpy's.
TYPES = {"f32": (1, "F32", np.float32), "tf32": (2, "F32", np.float32),
         "fp16": (3, "F16", np.float16),
         "bf16": (4, "BF16", ml_dtypes.bfloat16), "e4m3": (5, "F8_E4M3", ml_dtypes.float8_e4m3fn),
         "e5m2": (6, "F8_E5M2", ml_dtypes.float8_e5m2), "s8": (13, "I8", np.int8)}
# For formats: the operands' type, the scales', and elements that share one.
BLOCK_SCALED = {"mxf8": (5, 10, 32), "mxf8-e5m2": (6, 10, 32), "mxf6": (7, 10, 32),
                "mxf6-e3m2": (8, 10, 32), "mxf4": (9, 10, 32), "nvf4": (9, 11, 16)}
MIXED = ["mxf8,mxf4", "mxf4,mxf8-e5m2", "mxf6,mxf6-e3m2"]
# Types that numpy has no dense ones of: bits of an element, and what safetensors calls them.
RAW = {7: (6, "F6_E2M3"), 8: (6, "F6_E3M2"), 9: (4, "F4"), 10: (8, "F8_E8M0"), 11: (8, "F8_E4M3")}
SPECS = {1: "f32", 2: "f32", 3: "f16", 4: "bf16", 5: "e4m3", 6: "e5m2", 7: "float6_e2m3fn",
         8: "float6_e3m2fn", 9: "float4_e2m1fn_x2", 10: "float8_e8m0fnu", 11: "e4m3", 13: "int8"}
SCALINGS = ["none", "tensor", "row-column", "blockwise", "group", "block_scaled"]
# By their numbers in C.
ACTIVATIONS = ["none", "relu", "gelu", "silu", "quick_gelu", "swiglu_oai", "relu2"]
GATE_NUMBERS = ["gate-limit", "gate-alpha", "gate-beta"]
BIASES = ["none", "rows", "columns"]
SUMS = ["exact", "chained", "folded", "table"]
FORMATS_ALONE = os.environ.get("WARPWRIGHT_MODEL") == "rtx5090"
# Options of products, by whether every door has them: a new one is to be put here, and into `walk`
# or, where it is a choice of the plan or only of the command line, into the others.
MEANING = {"batch", "d-dtype", "layout", "dtype", "alpha", "beta", "scaling", "scale-d", "scale-a",
           "scale-b", "accumulation", "weights", "group", "sums", "zero-points", "bias",
           "activation", "gated", "gate-up", *GATE_NUMBERS, "a", "b", "c", "groups", "offsets",
           "as", "expected-lengths", "block"}
OTHERS = {"help", "random", "n", "k", "total", "tokens", "bad-offsets", "expected-tokens", "device",
          "sms", "out", "check", "check-offsets", "repeat", "bench", "json", "seed", "mode",
          "tile-tokens", "search", "cluster", "tile-m", "tile-n", "schedule", "swap-ab", "kernel",
          "cluster-k", "ctas", "batch-invariant", "no-tuning", "pair", "scheduler",
          "accumulators", "machine", "correction", "or-fp8",
          # How memory lies, which other doors say by strides and addresses.
          "in-place", "pitch", "scales-major", "scales-layout",
          # Every door has them, with tests of their own: a D of two tensors, and tokens by index.
          "quantise-d", "rows-index", "rows-divisor"}


class View:
    """A matrix, or a batch of them, in a case's memory, or without."""

    def __init__(self, dtype, rows, columns, batch=1, turned=False, file_shape=None):
        self.dtype, self.rows, self.columns, self.batch = dtype, rows, columns, batch
        self.strides = (1, rows) if turned else (columns, 1)
        self.batch_stride = rows * columns if batch > 1 else 0
        self.offset, self.file_shape = -1, file_shape

    def as_spec(self, vector=False, scalar=False, batched=False):
        """What Python takes of it."""
        lead, steps = (), ()
        if batched or self.batch > 1:
            lead, steps = (self.batch,), (self.batch_stride,)
        shape, strides = (self.rows, self.columns), self.strides
        if self.dtype == 9:  # two in a byte
            shape, strides = (self.rows, self.columns // 2), (self.columns // 2, 1)
            steps = tuple(step // 2 for step in steps)
        if scalar:
            return wp.Spec((1,), SPECS[self.dtype])
        if vector:
            return wp.Spec(lead + (self.rows,), SPECS[self.dtype], steps + (strides[0],))
        return wp.Spec(lead + shape, SPECS[self.dtype], steps + strides)


class Case:
    """A product as all doors have it. `how`: the options of the command line beside its files."""

    def __init__(self, m, n, k, how):
        self.m, self.n, self.k, self.how = m, n, k, how
        self.views, self.words, self.int4, self.groups, self.width = {}, {}, None, 0, 4
        self.memory = None
        self.device = how.get("as", "model")
        self.build()

    def build(self):
        how, m, n, k = self.how, self.m, self.n, self.k
        self.groups = how.get("groups", 0)
        batch = how.get("batch", 1)
        of_b = self.groups or batch
        types = (how.get("dtype", "bf16").split(",") * 2)[:2]
        self.formats = types if types[0] in BLOCK_SCALED else None
        block_scaled = [BLOCK_SCALED[each] for each in self.formats or ()]
        a, b = ([each[0] for each in block_scaled] or [TYPES[each][0] for each in types])
        layout = how.get("layout", "NT")
        self.views["a"] = View(a, m, k, 1 if self.groups else batch,
                               layout[0] == "T")
        if "weights" in how:
            encoding = 0 if how.get("sums") == "table" and "zero-points" not in how else 1
            self.int4 = (of_b, n, k, how.get("group", 128), encoding, 4,
                         int("zero-points" in how))
            self.words["sums"] = SUMS.index(how.get("sums", "exact"))
        else:
            # B is stored N x K for T, and K x N for N.
            self.views["b"] = View(b, n, k, of_b, layout[1] == "N")
        columns = n // 2 if "gated" in how else n
        usual = "f32" if a == 2 else types[0] if a in (3, 4) else "bf16"
        d = TYPES[how.get("d-dtype", usual)][0]
        of_d = 1 if self.groups else batch
        self.views["d"] = View(d, m, columns, of_d)
        if "beta" in how:
            self.views["c"] = View(d, m, n, of_d)
            self.words["beta"] = how["beta"]
        if "alpha" in how:
            self.words["alpha"] = how["alpha"]
        scaling = how.get("scaling", "block_scaled" if block_scaled else "none")
        self.scales(SCALINGS.index(scaling), of_b, block_scaled)
        if "scale-d" in how:
            self.views["scale_d"] = View(1, 1, 1)
        if how.get("accumulation") == "promoted":
            self.words["accumulation"] = 1
        activation = how.get("activation", "silu" if "gated" in how else "none")
        self.words["activation"] = ACTIVATIONS.index(activation)
        self.words["gated"] = ("gated" in how) + (how.get("gate-up") == "interleaved")
        self.words |= {name.replace("-", "_"): how[name] for name in GATE_NUMBERS if name in how}
        along = BIASES.index(how.get("bias", "none"))
        if along:
            self.words["bias_along"] = along
            rows = m if along == 1 else n
            each = of_b if self.groups and along == 2 else 1
            self.views["bias"] = View(1, rows, 1, each, file_shape=None)
        self.width = 8 if how.get("offsets") == "int64" else 4
        spread = how.get("expected-lengths", "routed")
        self.words["expected_lengths"] = int(spread == "equal")
        self.words["expected_zipf"] = float(spread[5:]) if spread.startswith("zipf:") else 0.0

    def scales(self, scaling, of_b, block_scaled):
        m, n, k = self.m, self.n, self.k
        self.words["scaling"] = scaling
        block, groups = int(self.how.get("block", 128)), self.groups
        blocks = -(-k // block)
        of_a = self.views["a"].batch
        shapes = {1: ((1, 1, 1), (1, 1, 1)), 2: ((m, 1, of_a), (n, 1, of_b)),
                  3: ((m, blocks, of_a), (-(-n // block), blocks, of_b)),
                  4: ((groups, 1, 1), (groups, 1, 1))}
        if scaling == 5:
            of = [-(-k // each[2] // 4) * 4 for each in block_scaled]
            rows = (m + 127 * groups) // 128 * 128 if groups else -(-m // 128) * 128
            sides = ((rows, of[0], of_a), (-(-n // 128) * 128, of[1], of_b))
        elif scaling in shapes:
            sides = shapes[scaling]
        else:
            return
        for i, (rows, columns, batch) in enumerate(sides):
            name = ("scale_a", "scale_b")[i]
            if name == "scale_b" and self.int4 and scaling == 3:
                continue
            self.views[name] = View(block_scaled[i][1] if scaling == 5 else 1, rows, columns,
                                    batch)

    # -- Memory, for those that run

    def fill(self, draw):
        size, places = 4096, {}
        for name, view in self.views.items():
            places[name] = view.offset = size
            size += (self.bytes(view) + 511) // 256 * 256
        packed = None
        if self.int4:
            values = draw.integers(-7, 8, self.int4[:3]).astype(np.float32)
            packed = np.asarray(wp.pack_int4(values, group=self.int4[3], scales="bf16",
                                             encoding=("sm", "ex")[self.int4[4]],
                                             zero_points=bool(self.int4[6])).data)
            places["int4"] = size
            size += (packed.size + 511) // 256 * 256
        places["offsets"] = size
        size += 4096
        self.memory = aligned(size)
        for name, view in self.views.items():
            if name == "d":
                # NaN, or what no product of such operands is; 0 may be one. Rows in no group
                # stay as they are, and the command line's are 0.
                if not self.groups:
                    self.memory[view.offset:view.offset + self.bytes(view)] = 0x7f
                continue
            count = view.rows * view.columns * view.batch
            if view.dtype in RAW:
                low, high = {10: (122, 133), 11: (0x30, 0x48)}.get(view.dtype, (0, 256))
                self.flat(self.memory, view)[:] = draw.integers(low, high, self.bytes(view))
                continue
            drawn = (draw.choice([0.25, 0.5, 1, 2], count) if name.startswith("scale")
                     else draw.integers(-6, 7, count) / (1 if view.dtype == 13 else 2))
            self.flat(self.memory, view)[:] = drawn.astype(self.numpy(view))
        if packed is not None:
            self.memory[places["int4"]:][:packed.size] = packed
            self.int4_bytes = packed.size
        self.places = places
        if self.groups:
            cuts = np.sort(draw.integers(0, self.m + 1, self.groups + 1))
            cuts[0] = 0
            self.memory[places["offsets"]:][:cuts.size * self.width].view(
                np.int64 if self.width == 8 else np.int32)[:] = cuts

    @staticmethod
    def numpy(view):
        if view.dtype in RAW:
            return np.uint8
        return next(t for number, _, t in TYPES.values() if number == view.dtype)

    def bytes(self, view):
        bits = RAW[view.dtype][0] if view.dtype in RAW else 8 * np.dtype(self.numpy(view)).itemsize
        return view.rows * view.columns * view.batch * bits // 8

    def flat(self, memory, view):
        """All elements as they lie; for types without an own one in numpy their bytes."""
        return memory[view.offset:view.offset + self.bytes(view)].view(self.numpy(view))

    def array(self, memory, view, vector=False):
        """As Python's functions take it."""
        flat = self.flat(memory, view)
        turned = view.strides[0] == 1 and view.columns > 1
        columns = flat.size // (view.rows * view.batch)
        shape = (columns, view.rows) if turned else (view.rows, columns)
        made = flat.reshape((view.batch,) + shape)
        made = made.swapaxes(-1, -2) if turned else made
        made = made[..., 0] if vector else made
        return made[0] if view.batch == 1 else made


def aligned(size):
    raw = np.zeros(size + 4096, np.uint8)
    return raw[-raw.ctypes.data % 4096:][:size]


def copy_of(memory):
    made = aligned(memory.size)
    made[:] = memory
    return made


# -- The doors: each returns ("ok", kernel) or (code, sentence), and with memory computes in it.

class Matrix(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), *[(name, ctypes.c_int64) for name in (
        "rows", "columns", "row_stride", "column_stride", "batch", "batch_stride")],
                ("dtype", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class Int4(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *[(name, ctypes.c_int64) for name in (
        "experts", "n", "k")], *[(name, ctypes.c_int32) for name in (
            "group", "encoding", "scale", "zero_points")]]


class Gate(ctypes.Structure):
    _fields_ = [*[(name, ctypes.c_float) for name in ("alpha", "beta", "limit")],
                ("reserved", ctypes.c_int32)]


class Gemm(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *[(name, Matrix) for name in "abcd"],
                ("alpha", ctypes.c_float), ("beta", ctypes.c_float),
                *[(name, ctypes.c_int32) for name in (
                    "scaling", "accumulation", "activation", "bias_along", "gated", "grouped")],
                *[(name, Matrix) for name in ("scale_a", "scale_b", "scale_d", "bias")],
                ("offsets", ctypes.c_void_p), ("offset_type", ctypes.c_int32),
                ("expected_lengths", ctypes.c_int32), ("expected_tokens", ctypes.c_double),
                ("int4", ctypes.POINTER(Int4)), ("sums", ctypes.c_int32),
                ("quantise_d", ctypes.c_int32), ("d_scales", Matrix), ("rows", ctypes.c_void_p),
                ("rows_divisor", ctypes.c_int32), ("expected_zipf", ctypes.c_float),
                ("gate", Gate), ("no_factors", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class C:
    def __init__(self, build):
        self.lib = ctypes.CDLL(str(build / "libwarpwright.so.2"))
        pointer = ctypes.c_void_p
        for name in ("ww_run", "ww_plan_make", "ww_device_open"):
            getattr(self.lib, name).restype = pointer
        for name in ("ww_refusal_text", "ww_refusal_code", "ww_plan_kernel"):
            getattr(self.lib, name).restype = ctypes.c_char_p
            getattr(self.lib, name).argtypes = [pointer]
        for name in ("ww_refusal_free", "ww_plan_free", "ww_device_free"):
            getattr(self.lib, name).argtypes = [pointer]
            getattr(self.lib, name).restype = None
        assert self.lib.ww_abi_version() == 2

    def told(self, refused):
        answer = (self.lib.ww_refusal_code(refused).decode(),
                  self.lib.ww_refusal_text(refused).decode())
        self.lib.ww_refusal_free(refused)
        return answer

    def __call__(self, case, memory):
        g = Gemm()
        self.lib.ww_gemm_init_sized(ctypes.byref(g), ctypes.c_size_t(ctypes.sizeof(g)))
        g.no_factors = 1  # an alpha of 1 is meant
        base = memory.ctypes.data if memory is not None else 0
        for name, view in case.views.items():
            setattr(g, name, Matrix(base + view.offset if base else None, view.rows, view.columns,
                                    *view.strides, view.batch, view.batch_stride, view.dtype, 0))
        for name, value in case.words.items():
            of_gate = name.startswith("gate_")
            setattr(g.gate if of_gate else g, name.removeprefix("gate_"), value)
        if case.groups:
            g.grouped, g.offset_type = 1, int(case.width == 8)
            g.offsets = base + case.places["offsets"] if base else None
        if case.int4:
            form = Int4(ctypes.sizeof(Int4), *case.int4)
            g.int4 = ctypes.pointer(form)
            g.b.data = base + case.places["int4"] if base else None
        plan = ctypes.c_void_p()
        if base:
            refused = self.lib.ww_run(ctypes.byref(g), ctypes.c_int32(-1), None, None, None, None)
            return self.told(refused) if refused else ("ok", "")
        device = ctypes.c_void_p()
        refused = self.lib.ww_device_open(case.device.encode(), ctypes.byref(device))
        if refused:
            return self.told(refused)
        refused = self.lib.ww_plan_make(ctypes.byref(g), device, None, ctypes.byref(plan))
        self.lib.ww_device_free(device)
        if refused:
            return self.told(refused)
        kernel = self.lib.ww_plan_kernel(plan).decode()
        self.lib.ww_plan_free(plan)
        return "ok", kernel


def as_one_row(scales):
    shape = (*scales.shape[:-2], scales.shape[-2] * scales.shape[-1])
    return wp.Spec(shape, scales.dtype) if isinstance(scales, wp.Spec) else scales.reshape(shape)


class Python:
    def __call__(self, case, memory):
        def of(name, vector=False, scalar=False):
            view = case.views[name]
            if memory is None:
                batched = bool(case.groups) and name in ("b", "scale_b") and not scalar
                return view.as_spec(vector, scalar, batched)
            return case.array(memory, view, vector or scalar)
        scaling = case.words["scaling"]
        given = {"alpha": case.words.get("alpha", 1), "gated": bool(case.words["gated"])}
        activation = ACTIVATIONS[case.words["activation"]]
        if not given["gated"] or activation != "silu":
            given["activation"] = activation
        if case.words["gated"] == 2:
            given["gate_up"] = "interleaved"
        given |= {name: value for name, value in case.words.items() if name.startswith("gate_")}
        if "c" in case.views:
            given["c"], given["beta"] = of("c"), case.words["beta"]
        if scaling:
            given["scaling"] = SCALINGS[scaling].replace("-", "_")
        for name in ("scale_a", "scale_b"):
            if name in case.views:
                given[name] = of(name, vector=scaling in (2, 4), scalar=scaling == 1)
                if scaling == 5:  # in tiles, of which Python wants no shape of rows
                    given[name] = as_one_row(given[name])
        if "scale_d" in case.views:
            given["scale_d"] = of("scale_d", scalar=True)
        if "accumulation" in case.words:
            given["accumulation"] = "promoted"
        if "bias" in case.views:
            given["bias"] = of("bias", vector=True)
            given["bias_along"] = BIASES[case.words["bias_along"]]
        if case.views["a"].dtype == 2:
            given["operands"] = "tf32"
        if case.formats and memory is not None:
            given["a_type"], given["b_type"] = case.formats
        a = of("a")
        if case.int4:
            experts, n, k, group, encoding, _, zeros = case.int4
            batch = experts if case.groups or experts > 1 else None
            given["sums"] = SUMS[case.words["sums"]]
            b = wp.PackedWeights.spec(n, k, batch, group=group, encoding=("sm", "ex")[encoding],
                                    zero_points=bool(zeros))
            if memory is not None:
                at = case.places["int4"]
                b = b.on(memory[at:at + case.int4_bytes])
        else:
            b = of("b")
            if memory is not None and case.groups and b.ndim == 2:
                b = b[None]
        arguments = [a, b]
        if case.groups:
            if "expected-lengths" in case.how:
                given["expected_lengths"] = case.how["expected-lengths"]
            integers = np.int64 if case.width == 8 else np.int32
            arguments.append(wp.Spec((case.groups + 1,), np.dtype(integers)) if memory is None else
                             memory[case.places["offsets"]:][:(case.groups + 1) * case.width]
                             .view(integers))
        try:
            if memory is None:
                d = next(name for name, of_type in TYPES.items()
                         if of_type[0] == case.views["d"].dtype and name != "tf32")
                plan = wp.plan(*arguments, dtype={"fp16": "f16"}.get(d, d), device=case.device,
                               **given)
                return "ok", plan.kernel
            verb = wp.grouped_gemm if case.groups else wp.gemm
            verb(*arguments, out=of("d"), **given)
            return "ok", ""
        except wp.Refusal as refusal:
            return refusal.code, str(refusal)


class CommandLine:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True,
                              check=False)

    def words(self, option, *beside):
        """What an option may be, as its own refusal of another word lists it."""
        said = self.run("gemm", "--random", 16, 256, 128, *beside, option, "nonsense").stderr
        listed = re.search(r"(?:it must be|nearest legal value is) ([^:.]*)", said)
        assert listed, f"{option}: {said}"
        words = re.findall(r"[A-Za-z][\w-]*\b(?!=)", listed[1].split(" for ")[0])
        return [w for w in words
                if w not in ("or", "two", "floats", "as", "bit", "of", "the", "last")]

    def all_options(self):
        found = set()
        for verb in ("gemm", "grouped"):
            said = self.run(verb, "--help").stdout
            found |= set(re.findall(r"^ +(?:-\w,)?--([a-z0-9-]+)", said, re.M))
        return found

    @staticmethod
    def options(case):
        """All but the files, and what is said of random tensors."""
        for name, value in case.how.items():
            if name in ("groups", "scale-d", "offsets", "m"):
                continue
            yield f"--{name}"
            if value is not True:
                yield str(value)

    def plan(self, case):
        if case.groups:
            said = ["grouped", "--groups", case.groups, "--tokens", case.m // case.groups, "--n",
                    case.n, "--k", case.k]
            if "offsets" in case.how:
                said += ["--offsets", case.how["offsets"]]
        else:
            said = ["gemm", "--random", case.m, case.n, case.k]
        done = self.run("explain", *said, *self.options(case))
        kernel = re.search(r"^kernel +\w+, (\w+?)(?:_c\d+x\d+(?:x\d+)?)?:", done.stdout, re.M)
        if done.returncode == 0 and kernel:
            return "ok", kernel[1]
        assert done.returncode == 2, (done, list(self.options(case)))
        return "refused", done.stderr

    def __call__(self, case, memory):
        tensors = {}
        for name, view in case.views.items():
            if name in ("d", "scale_d"):
                continue
            turned = view.strides[0] == 1 and view.columns > 1
            shape = [view.columns, view.rows] if turned else [view.rows, view.columns]
            if name == "b" and view.strides[0] == 1:  # K x N
                shape = [view.columns, view.rows]
            if view.batch > 1 or (case.groups and name == "b"):
                shape = [view.batch, *shape]
            names = {number: text for number, text, _ in TYPES.values()}
            names |= {number: text for number, (_, text) in RAW.items()}
            tensors[name] = (names[view.dtype], shape, case.flat(memory, view).tobytes())
        if case.int4:
            data = memory[case.places["int4"]:][:case.int4_bytes]
            tensors["b"] = ("U8", [data.size], data.tobytes())
        said = ["grouped" if case.groups else "gemm", *self.options(case), "--no-tuning"]
        said += ["--scales-layout", "tiles"] if case.formats else []
        if case.groups:
            data = memory[case.places["offsets"]:][:(case.groups + 1) * case.width]
            tensors["offsets"] = ("I64" if case.width == 8 else "I32", [case.groups + 1],
                                  data.tobytes())
        file = self.folder / "in.safetensors"
        tensor_files.write_safetensors(file, tensors)
        for name in tensors:
            option = f"--{name.replace('_', '-')}"
            if name == "bias":
                said[said.index("--bias") + 1] += f"={file}:bias"
            else:
                said += [option, f"{file}:{name}"]
        if "scale_d" in case.views:
            said += ["--scale-d", float(case.flat(memory, case.views["scale_d"])[0])]
        said = [word for i, word in enumerate(said)
                if not (word in ("--group", "--zero-points") or (i and said[i - 1] == "--group"))]
        out = self.folder / "out.safetensors"
        out.unlink(missing_ok=True)
        done = self.run(*said, "--out", f"{out}:d")
        if done.returncode != 0:
            assert done.returncode == 2, (said, done)
            return "refused", done.stderr
        data = tensor_files.read_safetensors(out)[0]["d"][2]
        case.flat(memory, case.views["d"]).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
        return "ok", ""


# -- Every word of the command line

def walk(line):
    """Options of products that together have every word, many beside others."""
    options = line.all_options()
    assert MEANING <= options, f"there is no longer --{MEANING - options}"
    assert options <= MEANING | OTHERS, f"has every door {options - MEANING - OTHERS}?"
    dtypes = line.words("--dtype")
    known = {*TYPES, *BLOCK_SCALED} - {"f32"}
    assert known == set(dtypes), f"this test does not know all of {dtypes}"
    scalings, layouts = line.words("--scaling"), line.words("--layout")
    assert len(layouts) == 4 and set(scalings) < set(SCALINGS), (layouts, scalings)
    singles = {"accumulation": line.words("--accumulation"), "bias": line.words("--bias"),
               "activation": line.words("--activation"), "d-dtype": line.words("--d-dtype"),
               "gated": [True], "batch": [3], "beta": [0.5], "alpha": [2.0]}
    assert set(singles["activation"]) == set(ACTIVATIONS) and len(singles["d-dtype"]) >= 5
    sums = line.words("--sums", "--weights", "int4")
    assert line.words("--weights")[:1] == ["int4"] and set(sums) == set(SUMS)
    dense = []
    for dtype in dtypes + ["e4m3,e5m2", "e5m2,e4m3"] + MIXED:
        for scaling in scalings:
            dense += [{"dtype": dtype, "scaling": scaling, "layout": layout} for layout in layouts]
        dense += [{"dtype": dtype, "scaling": "blockwise", "block": block, **more}
                  for block in ("64", "32") for more in ({}, {"gated": True})]
        for option, words in singles.items():
            dense += [{"dtype": dtype, option: word} for word in words]
        if dtype.split(",")[0] in BLOCK_SCALED or dtype in ("tf32", "s8"):
            dense += [{"dtype": dtype, "as": "rtx5090"}, {"dtype": dtype, "as": "a100"}]
    assert line.words("--gate-up") == ["halves", "interleaved"]
    dense += [{"dtype": dtype, "gated": True, **more} for dtype in dtypes
              for more in ({"gate-up": "halves"}, {"gate-up": "interleaved"},
                           {"activation": "swiglu_oai", "gate-up": "interleaved"},
                           {"gate-limit": 2.5, "gate-alpha": 0.5, "gate-beta": 1.0})]
    grouped = [{**each, "groups": 4, "offsets": ("int32", "int64")[i % 2]}
               for i, each in enumerate(dense)
               if not {"batch", "layout", "as"} & set(each) or each.get("layout") == "NT"]
    int4 = [{"dtype": "e4m3", "weights": "int4", "group": group, "sums": each, **more}
            for group in (32, 64, 128) for each in sums
            for more in ({}, {"zero-points": True}, {"bias": "columns"}, {"gated": True},
                         *({"scaling": scaling} for scaling in scalings))]
    # As many and as short that the spread of lengths decides the kernel.
    spread = [{"dtype": dtype, "scaling": scaling, "groups": 128, "as": "h200", "m": 2048,
               "expected-lengths": lengths}
              for dtype, scaling in (("bf16", "none"), ("e4m3", "tensor"), ("e4m3", "blockwise"))
              for lengths in ("routed", "equal", "zipf:1", "zipf:2.5")]
    return dense + grouped + int4 + spread + [{**each, "groups": 4} for each in int4]


def every_word(line, doors):
    failures, planned, cases = [], 0, samples.sampled(walk(line), 5)
    for how in cases:
        if how["dtype"].split(",")[0] in BLOCK_SCALED and "scaling" in how:
            continue  # they are scaled already, which the command line refuses
        size = (how["m"], 1536, 2048) if "m" in how else (40, 256, 256)
        case = Case(*size, how)
        asked = line.plan(case)
        answers = {name: door(case, None) for name, door in doors.items()}
        planned += asked[0] == "ok"
        kernels = {answer[1] if answer[0] == "ok" else answer[0] for answer in answers.values()}
        if len(kernels) != 1 or (asked[0] == "ok" and kernels != {asked[1]}):
            failures.append(f"{how}\n  command line: {asked}\n  "
                            + "\n  ".join(f"{name}: {answer}" for name, answer in answers.items()))
    print(f"{len(cases)} products of all words: {planned} planned, {len(failures)} differ")
    return failures


# -- Random products by all doors

def random_how(draw):
    """Options of a product, many of which are legal."""
    kind = draw.choice(["bf16", "fp16", "e4m3", "e5m2", "e4m3,e5m2", "tf32", "s8", "int4", "int4"])
    narrow = kind in ("e4m3", "e5m2", "e4m3,e5m2", "int4")
    how = {"dtype": "e4m3" if kind == "int4" else kind}
    if kind == "int4":
        how |= {"weights": "int4", "group": draw.choice([32, 64, 128]),
                "sums": draw.choice(SUMS)}
    if draw.random() < 0.3:
        how |= {"groups": draw.choice([1, 2, 4]), "offsets": draw.choice(["int32", "int64"])}
    elif draw.random() < 0.25:
        how["batch"] = draw.choice([2, 3])
    if "groups" not in how and kind in ("bf16", "fp16") and draw.random() < 0.5:
        how["layout"] = draw.choice(["NT", "NN", "TN", "TT"])
    if narrow and draw.random() < 0.7:
        how["scaling"] = draw.choice(["tensor", "row-column", "blockwise"]
                                     + ["group"] * ("groups" in how))
        if how["scaling"] == "blockwise" and kind != "int4":
            how["block"] = draw.choice(["128", "64", "32"])
    if kind == "s8" and draw.random() < 0.5:
        how["scaling"] = "row-column"
    if draw.random() < 0.3:
        how["bias"] = draw.choice(["columns", "columns", "rows"])
    if draw.random() < 0.4:
        how["activation"] = draw.choice(ACTIVATIONS)
    elif draw.random() < 0.2 and kind not in ("tf32", "s8"):
        how["gated"] = True
        how["activation"] = draw.choice(["silu", "swiglu_oai"])
        how["gate-up"] = draw.choice(["halves", "interleaved"])
        how |= {name: draw.choice([0.25, 1.5, 10.0]) for name in GATE_NUMBERS
                if draw.random() < 0.3}
    elif draw.random() < 0.3:
        how["beta"] = draw.choice([0.5, 1.0, -2.0])
    if draw.random() < 0.3:
        how["alpha"] = draw.choice([0.5, -1.0, 3.0])
    if kind in ("e4m3", "e5m2") and draw.random() < 0.2 and "beta" not in how:
        how["d-dtype"] = "e4m3"
        if draw.random() < 0.5:
            how["scale-d"] = True
    elif draw.random() < 0.2:
        how["d-dtype"] = "f32"
    return how


def format_how(draw):
    """The same of formats, on the model of an RTX 5090."""
    a, b = draw.choice([(each, each) for each in BLOCK_SCALED] * 2 + [m.split(",") for m in MIXED])
    how = {"dtype": a if a == b else f"{a},{b}", "as": "rtx5090"}
    if draw.random() < 0.3:
        how |= {"groups": draw.choice([1, 2, 4]), "offsets": draw.choice(["int32", "int64"])}
    elif draw.random() < 0.25:
        how["batch"] = draw.choice([2, 3])
    if draw.random() < 0.3:
        how["bias"] = "columns"
    if draw.random() < 0.4:
        how["activation"] = draw.choice(ACTIVATIONS[:5])
    elif draw.random() < 0.3:
        how["beta"] = draw.choice([0.5, 1.0, -2.0])
    if draw.random() < 0.3:
        how["alpha"] = draw.choice([0.5, -1.0, 3.0])
    return how


def same_bits(line, doors, seed, wanted=100 if samples.CAMPAIGN else 30, draws=random_how):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    failures, computed, refused = [], 0, 0
    everyone = {"command line": line, **doors}
    # The command line wanted a file of scales beside int4 weights, which have their own.
    always = [{"dtype": "e4m3", "weights": "int4", "scaling": "blockwise"}]
    if draws is not random_how:
        always = [{"dtype": "nvf4", "as": "rtx5090"}, {"dtype": "mxf8", "as": "rtx5090"}]
    while computed < wanted and refused < 8 * wanted:
        how = always.pop() if always else draws(draw)
        # A row by itself, stored K x 1, is a row of any pitch only to Python.
        m = draw.choice([1, 5, 16, 40][how.get("layout", "NT")[0] == "T":])
        n = draw.choice([128, 256]) if "gated" in how or "weights" in how else \
            draw.choice([8, 17, 64, 130])
        if "gated" in how and ("weights" in how or how.get("scaling") == "blockwise"):
            n = 256
        k = draw.choice([128, 256]) if "weights" in how else draw.choice([16, 32, 45, 128, 144])
        case = Case(m, n, draw.choice([128, 256, 384]) if draws is format_how else k, how)
        case.device = f"model:{how['as']}" if "as" in how else case.device
        case.fill(numbers)
        answers, memories = {}, {}
        for name, door in everyone.items():
            memories[name] = copy_of(case.memory)
            answers[name] = door(case, memories[name])
            # A 0's sign is the epilogue's: -1 * 0 is -0, and 0 more of a bias makes it 0. A row
            # by itself has any pitch to Python, so that it may be written the shorter way.
            if m == 1:
                d = case.flat(memories[name], case.views["d"])
                d[d == 0] = 0
        accepted = {answer[0] == "ok" for answer in answers.values()}
        codes = {answers[name][0] for name in doors}
        same = len({memory.tobytes() for memory in memories.values()}) == 1
        if len(accepted) != 1 or len(codes) != 1 or not same:
            failures.append(f"{m} x {n} x {k}, {how}: bits {'agree' if same else 'differ'}\n  "
                            + "\n  ".join(f"{name}: {answer}" for name, answer in answers.items()))
        elif accepted == {True}:
            computed += 1
            if (memories["C"] == case.memory).all() and case.flat(
                    case.memory, case.views["d"]).size and not case.groups:
                failures.append(f"{how}: nothing was computed")
        refused += accepted == {False}
    print(f"seed {seed}: {computed} products have the same bits by {', '.join(everyone)}; "
          f"{refused} were refused by all")
    if computed < wanted:
        failures.append(f"only {computed} of {wanted} products were computed")
    return failures


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else samples.run_seed()
    with tempfile.TemporaryDirectory() as folder:
        line = CommandLine(sys.argv[2], pathlib.Path(folder))
        doors = {"C": C(build), "Python": Python()}
        if FORMATS_ALONE:
            failures = same_bits(line, doors, seed, 20 if samples.CAMPAIGN else 6, format_how)
        else:
            failures = every_word(line, doors) + same_bits(line, doors, seed)
    for each in failures[:12]:
        print(each)
    if failures or FORMATS_ALONE:
        return 1 if failures else 0
    sys.stdout.flush()
    return subprocess.run([sys.executable, *sys.argv[:3], str(seed)], check=False,
                          env={**os.environ, "WARPWRIGHT_MODEL": "rtx5090"}).returncode


if __name__ == "__main__":
    sys.exit(main())
