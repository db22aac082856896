"""Random calls of all public functions of Python: fuzz.py [CALLS [SEED]].

Every call gives a result or a Refusal of one sentence, or a TypeError where an argument is of no
type that it takes; a product that is computed is right. Prints its seed; a fault is told with the
call that shows it.
"""
import copy
import math
import pathlib
import pickle
import random
import sys
import time
import typing

import ml_dtypes
import numpy as np

import warpwright as wp
from warpwright import _types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402
from fakes import Fake  # noqa: E402
from view_kinds import kinds  # noqa: E402

TYPES = [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float32,
         np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_, np.complex64, ">f4"]
GARBAGE = [None, 1.5, -3, "x", b"x", object(), [[1.0, 2.0]], (), {}, np, int, float("nan"), True,
           np.float32(1), wp.Spec((16, 32)), Ellipsis]


# What arguments that are no tensors may be, by name or else by type.
VALUES = {
    "bool": [True, False, 1], "bool | None": [True, False, None, "x"],
    "float | None": [0.5, 1, 2.25, 10, 0, -1, float("nan"), float("inf"), "x"],
    "routed_scaling_factor": [2.5, -1, 0, float("nan"), 1e300, "x"],
    "alpha": [0, 1, -2.5, float("inf"), float("nan"), 1e300, "x"],
    "beta": [0, 1, float("nan"), -1],
    "dtype": ["bf16", "f32", "f16", "e4m3", "e5m2", "f64", 3, np.float32, ml_dtypes.bfloat16,
              object()],
    "str | None": ["hopper_bf16_bf16_128x64_sw_sk", "x", "", 3],
    "format": ["mxf8", "nvf4", "mxf8,mxf4", "x", 1],
    "device": ["model", "h200", "b200", "cuda:7", "", 3],
    "cluster": [(1, 1), (2, 1), (1, 2), (3, 3), (0, 1), 3, (1 << 70, 1)],
    "expected_lengths": ["routed", "equal", "zipf:1", "zipf:9", "x", 1],
    "int": [0, 4, 256, 257, -1, "x", 1 << 70], "int | None": [0, 1, 3, 9, -1, 1 << 70, "x"],
    "stream": [0, 1, -1, "x", 1 << 80, object()],
}


# For a gate, with what an activation has by itself.
GATE_NUMBERS = ("gate_limit", "gate_alpha", "gate_beta")
GATES = {"silu": (np.inf, 1, 0), "gelu": (np.inf, 1, 0),
         "gelu_erf": (np.inf, 1, 0), "swiglu_oai": (7, 1.702, 1)}


class Bad:
    """Lies, or raises, when it is asked for its memory."""

    def __init__(self, what):
        self.what = what

    def __dlpack_device__(self):
        return self.what if isinstance(self.what, tuple) else (1, 0)

    def __dlpack__(self, **_):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


class Caller:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def likely(self, share):
        return self.random.random() < share

    def extent(self):
        return self.random.choice([0, 1, 2, 7, 8, 16, 17, 32, 64, 100, 128])

    def array(self, shape, dtype):
        values = self.numbers.integers(-3, 4, shape)
        array = values.astype(dtype)
        if self.likely(0.06) and array.ndim >= 2:  # of other values or another shape
            array = self.random.choice([
                lambda: array[..., ::2], lambda: array.swapaxes(-1, -2), lambda: array[1:],
                lambda: array[:, 1:], lambda: array[None], lambda: array.reshape(-1)])()
        if self.likely(0.15) and array.ndim:
            array = self.random.choice(list(kinds(array.ndim).values()))(array)
        if self.likely(0.02):
            array = array.copy()
            array.flags.writeable = False
        return array

    def tensor(self, shape, dtype):
        """Mostly what fits, else anything."""
        if self.likely(0.94):
            if self.likely(0.03):
                shape = shape[:-1] + (self.extent(),)
            if self.likely(0.03):
                dtype = self.random.choice(TYPES)
            array = self.array(shape, dtype)
            if array.dtype == np.float16 and array.flags.writeable and self.likely(0.1):
                capsule = array.__dlpack__()  # whose array may be gone when it is used
                if self.likely(0.2):
                    wp_use(capsule)
                return capsule
            return array
        return self.random.choice([
            lambda: self.random.choice(GARBAGE),
            lambda: Fake(shape, device=(self.random.choice([2, 2, 3, 10, 99, -1]),
                                        self.random.choice([0, 1, 99, -1])),
                         code=self.random.choice([4, 2, 10, 0, 200]),
                         bits=self.random.choice([16, 8, 32, 0, 64]),
                         address=self.random.choice([0, 1 << 20, 1 << 40, 7])),
            lambda: Fake((1,) * self.random.randrange(9), device=(1, 0), address=0),
            lambda: Bad(self.random.choice([ValueError("no"), BufferError("gone"), 3, None, "x",
                                            (2, 0), ("a", "b"), (99, 99)])),
            lambda: wp.empty((self.extent(), self.extent()), "bf16", "model"),
        ])()

    def value(self, name, kind):
        """For an argument that is no tensor: mostly what its type in arguments.inc says."""
        words = typing.get_args(getattr(_types, kind.split(" |")[0], None))
        if words:
            return self.random.choice([*words, *words, "x", 1])
        return self.random.choice(VALUES.get(name) or VALUES[kind])

    def some(self, verb, tensors):
        """A few of a verb's keywords: `tensors` makes those that are tensors."""
        kinds = {name: kind for name, kind, _ in wp._core.keywords[verb]}
        given = {}
        for name in self.random.sample(sorted(kinds), self.random.choice([0, 0, 1, 1, 2, 4])):
            if name in tensors:
                given[name] = tensors[name]()
            elif not kinds[name].startswith("Tensor"):
                given[name] = self.value(name, kinds[name])
        return given

    def keywords(self, m, n, k, dtype, grouped):
        choose = self.random.choice
        groups = 3
        wide = {ml_dtypes.bfloat16: "bf16", np.float16: "f16"}.get(dtype, "bf16")
        narrow = dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
        result = np.float16 if wide == "f16" else ml_dtypes.bfloat16
        lead = (groups,) if grouped else ()
        tensors = {
            "out": lambda: self.tensor((m, n), result),
            "c": lambda: self.tensor((m, n), result),
            "bias": lambda: self.tensor(choose([(n,), lead + (n,), (m,)]),
                                        choose([np.float32, result])),
            "scale_d": lambda: self.tensor((), np.float32),
            "workspace": lambda: choose([self.workspace(), 3]),
            "plan": lambda: choose([self.plan(), "x"]),
        }
        given = {}
        if narrow and self.likely(0.7):
            blocks = (k + 127) // 128
            given["scale_a"], given["scale_b"] = choose([
                lambda: (self.tensor((), np.float32), self.tensor(lead[:1] or (), np.float32)),
                lambda: (self.tensor((m,), np.float32), self.tensor(lead + (n,), np.float32)),
                lambda: (self.tensor((m, blocks), np.float32),
                         self.tensor(lead + ((n + 127) // 128, blocks), np.float32))])()
        return {**given, **self.some("grouped_gemm" if grouped else "gemm", tensors)}

    def workspace(self):
        size = self.random.choice([256, 1 << 20])
        made = wp.Workspace(np.empty(size + 255, np.uint8)) if self.likely(0.5) \
            else wp.Workspace(size, "model")
        if self.likely(0.3):
            made.close()
        return made

    def plan(self):
        return wp.plan(wp.Spec((16, 64)), wp.Spec((32, 64)),
                       device=self.random.choice(["model", "h200", "b200"]))

    def weights(self, n, k, experts):
        """int4 weights, or what is refused in their place; their values are small whole numbers."""
        if self.likely(0.2):
            return wp.PackedWeights.spec(n, 256, experts)
        values = self.numbers.integers(-3, 4, (() if experts is None else (experts,)) + (n, k))
        values[..., ::32] = 7  # so that scales are 1
        try:
            return wp.pack_int4(values.astype(np.float32), group=32)
        except wp.Refusal:
            return None

    def number(self):
        return self.random.choice([0, 1, 2, 8, 16, 64, 128, 384, -1, 1 << 31, 1 << 40, 1 << 62,
                                   1 << 80, -(1 << 63), True, 1.5, "x", None])

    def word(self, *words):
        return self.random.choice([*words, *words, "x", "", None, 3, "\0", "\udc80"])

    def other(self):
        """A call of what prepares tensors, and of what holds them."""
        choose = self.random.choice
        floats = choose([np.float32, np.float16, ml_dtypes.bfloat16])
        m, k = self.extent(), choose([0, 32, 64, 128, 256, self.extent()])
        group = choose([32, 64, 128, 48, self.number()])

        def quantise():
            keywords = {}
            if self.likely(0.2):
                keywords["scale"] = self.tensor(choose([(), (1,), (m,)]), np.float32)
            if self.likely(0.2):
                keywords["out"] = self.tensor((m, k), ml_dtypes.float8_e4m3fn)
            if self.likely(0.2):
                keywords["scales"] = self.tensor(choose([(m,), (1,), (m, (k + 127) // 128)]),
                                                 np.float32)
            if self.likely(0.05):
                keywords["stream"] = choose([0, -1, "x", 1 << 80])
            if self.likely(0.2):
                keywords["recipe"] = self.word("floor", "up", "nested", "4-or-6")
            if self.likely(0.2):
                keywords["linear"] = choose([True, False, "x"])
            return "quantise", (self.tensor(choose([(m, k), (2, m, k)]), floats),
                                self.word("row_column", "blockwise", "tensor", "mxf8", "mxf6",
                                          "mxf4", "nvf4")), keywords

        def scales():
            kind = choose([np.uint8, ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn, floats])
            rows = choose([(m, k), (2, m, k), (m,)])
            return "block_scales", (self.tensor(rows, kind), choose(
                [None, None, np.array([0, m // 2, m], np.int32), self.tensor((3,), floats)])), {}

        def elements():
            return "pack_elements", (self.tensor((m, k), choose([
                np.uint8, ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, floats])),
                                     self.word("e2m1", "e2m3", "bf16", None)), {}

        def pack():
            shape = choose([(m, k), (2, m, k)])
            return "pack_int4", (self.tensor(shape, floats),), {
                "group": group, "encoding": self.word("ex", "sm", None),
                "scales": self.word("bf16", "f16", "f32"), "zero_points": choose([True, False])}

        def checkpoint():
            return "pack_int4_checkpoint", (
                self.word("compressed-tensors", "gptq", "gptq-v2", "awq", "w4afp8", "int4"),
                self.tensor((m, k // 2), choose([np.uint8, np.int8, np.int32])),
                self.tensor((m, max(1, k // 32)), floats),
                choose([None, self.tensor((m, k // 64), choose([np.uint8, np.int32]))]),
                choose([None, self.tensor((k,), np.int32)])), {
                    "encoding": self.word("ex", "sm", None), "scale_type": self.word("bf16", None)}

        def load():
            return "load_int4", (choose(["", "x", "/nowhere/a.safetensors:w", "/proc/self/mem:w",
                                         "a.npy", self.number()]),
                                 self.word("gptq", None)), {"group": self.number()}

        def form():
            return "PackedWeights.spec", (self.number(), self.number(), self.number()), {
                "group": group, "encoding": self.word("ex", "sm"),
                "scales": self.word("bf16", "f16"), "zero_points": choose([True, False])}

        def packed():
            return "PackedWeights", (self.tensor((choose([0, 127, 128, 4352]),), np.uint8),), {}

        def spec():
            return "Spec", (choose([(m, k), (self.number(), self.number()), self.number(), "ab"]),
                            self.word("bf16", "float8_e4m3fn", "int32"),
                            choose([None, (k, 1), (1,), self.number()])), {}

        def empty():
            return "empty", (choose([(m, k), (self.number(),), (self.number(), self.number()),
                                     [1, 2], 3]),
                             self.word("bf16", "f32", "e4m3", "s4", "f64"),
                             self.word("model", "model", "cuda:7", "h200")), {}

        def workspace():
            # A number of bytes that a machine may have is not asked for.
            size = self.number()
            if self.likely(0.5):
                return "Workspace", (self.tensor((m, k), floats),), {}
            return "Workspace", (4096 if size == 1 << 31 else size,
                                 self.word("model", "model", "cuda", "h200")), {}
        return choose([quantise, quantise, scales, elements, pack, pack, checkpoint, load, form,
                       packed, spec, empty, workspace])()

    def moe(self):
        """A mixture of experts."""
        choose = self.random.choice
        tokens, experts, top_k = choose([0, 1, 2, 7, 17]), choose([1, 2, 4]), choose([1, 2, 3])
        hidden, inner = choose([8, 32, 64, 100, 128]), choose([8, 32, 64, 128])
        kind = choose([ml_dtypes.bfloat16] * 3 + [ml_dtypes.float8_e4m3fn, "int4", np.float16])
        x_type = np.float16 if kind is np.float16 else ml_dtypes.bfloat16
        ids = self.numbers.integers(-1, experts + 1, (tokens, top_k))
        ids = ids.astype(choose([np.int32, np.int64]))
        if self.likely(0.05):
            ids = choose([ids[::-1], ids.T, ids * 1000, ids.astype(np.float32), ids[:, 0], 3])
        given = {}
        rows13 = 2 * inner
        if self.likely(0.15):
            rows13, given["gated"] = inner, False
            given["activation"] = choose(["relu2", "silu", "gelu"])
        if self.likely(0.15):
            given["combine"] = choose(["weighted", "none"])
        if top_k == 1 and self.likely(0.3):
            given["apply_router_weight_on_input"] = True
        if kind == "int4":
            w13, w2 = self.weights(rows13, hidden, experts), self.weights(hidden, inner, experts)
        else:
            w13 = self.tensor((experts, rows13, hidden), kind)
            w2 = self.tensor((experts, hidden, inner), kind)
        if kind is ml_dtypes.float8_e4m3fn:
            def blocks(extent):
                return (extent + 127) // 128
            shapes = choose([((experts, rows13), (experts, hidden), (tokens,)),
                             ((experts, blocks(rows13), blocks(hidden)),
                              (experts, blocks(hidden), blocks(inner)),
                              (tokens, blocks(hidden)))])
            names = ["scale_w13", "scale_w2"]
            if self.likely(0.3):  # tokens as codes
                x_type = kind
                names.append("scale_x")
            given |= {name: self.tensor(s, np.float32) for name, s in zip(names, shapes)}
        wide = ml_dtypes.bfloat16 if x_type is ml_dtypes.float8_e4m3fn else x_type
        rows = (tokens, top_k) if "combine" in given else (tokens,)
        tensors = {
            "shared_output": lambda: self.tensor((tokens, hidden), choose([wide, np.float32])),
            "scale_x": lambda: self.tensor(choose([(tokens,), (1,)]), np.float32),
            "scale_w13": lambda: self.tensor((experts, rows13), np.float32),
            "bias13": lambda: self.tensor((experts, rows13), choose([np.float32, wide])),
            "bias2": lambda: self.tensor((experts, hidden), choose([np.float32, wide])),
            "out": lambda: self.tensor((*rows, hidden), choose([wide, np.float32])),
            "workspace": lambda: choose([self.workspace(), 3]),
            "plan": lambda: choose([self.plan(), "x"]),
        }
        verb = choose(["moe"] * 5 + ["plan_moe"])
        given.update(self.some(verb, tensors))
        weights = self.tensor((tokens, top_k), choose([np.float32, np.float32, ml_dtypes.bfloat16]))
        return verb, [self.tensor((tokens, hidden), x_type), ids, weights, w13, w2], given

    def call(self):
        if self.likely(0.25):
            return self.other()
        if self.likely(0.1):
            return self.moe()
        m, n = self.extent(), self.extent()
        k = self.random.choice([0, 8, 16, 32, 64, 128, 256, self.extent()])
        dtype = self.random.choice(TYPES[:4] * 8 + TYPES)
        grouped = self.likely(0.3)
        verb = self.random.choices(["gemm", "plan", "check", "trace"], [20, 4, 1, 1])[0]
        batch = (2,) if not grouped and self.likely(0.1) else ()
        arguments = [self.tensor(batch + (m, k), dtype),
                     self.tensor(((3,) if grouped else ()) + (n, k), dtype)]
        keywords = self.keywords(m, n, k, dtype, grouped)
        if dtype == np.float32 and self.likely(0.9):
            keywords["operands"] = "tf32"
        if dtype == ml_dtypes.float8_e4m3fn and self.likely(0.2):
            arguments[1] = self.weights(n, k, 3 if grouped else None)
            if self.likely(0.5):
                keywords["sums"] = self.random.choice(["exact", "chained", "folded", "table"])
        if grouped:
            cuts = sorted(self.random.randrange(m + 1) for _ in range(2))
            offsets = np.array([0] + cuts + [m], self.random.choice([np.int32, np.int64]))
            if self.likely(0.1):
                offsets = self.random.choice([offsets[::-1], offsets * 1000, -offsets, offsets[:3],
                                              offsets.astype(np.float32), offsets.reshape(2, 2)])
            arguments.append(offsets if self.likely(0.97) else self.random.choice(GARBAGE))
            verb = "grouped_gemm" if verb == "gemm" else verb
        if verb in ("check", "trace"):
            keywords.pop("stream", None)
        if verb == "check":
            keywords["schedules"] = self.random.choice([1, 2, 0, "x"])
        if verb == "plan" and self.likely(0.5):
            keywords["device"] = self.random.choice(["model", "h200", "b200", "cuda:7", "", 3])
        return verb, arguments, keywords


def wp_use(capsule):
    """Takes the tensor out of a capsule."""
    try:
        wp.gemm(capsule, capsule)
    except wp.Refusal:
        pass


def f64(x):
    return np.asarray(x).astype(np.float64)


def activated(name, x):
    if name == "relu":
        return np.maximum(x, 0)
    if name == "relu2":
        return np.maximum(x, 0) ** 2
    if name in ("silu", "quick_gelu"):
        return x / (1 + np.exp(-x if name == "silu" else -1.702 * x))
    if name == "gelu_erf":
        return x / 2 * (1 + np.vectorize(math.erf, otypes=[float])(x * 0.5 ** 0.5))
    if name == "gelu":
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return x


def gate_times(keywords, gate, up):
    """A gate and what it is for."""
    own = GATES[keywords.get("activation") or "silu"]
    limit, alpha, beta = (its if keywords.get(name) is None else keywords[name]
                          for name, its in zip(GATE_NUMBERS, own))
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    if (keywords.get("activation") or "silu").startswith("gelu"):
        return activated(keywords["activation"], gate) * (up + beta)
    return gate / (1 + np.exp(-alpha * gate)) * (up + beta)


def value_of(b):
    return f64(b.values()) if isinstance(b, wp.PackedWeights) else f64(b)


KNOWN = {"alpha", "bias", "bias_along", "activation", "gated", "gate_up", *GATE_NUMBERS,
         "batch_invariant", "accumulation", "operands", "sums", "dtype", "cluster", "check_offsets",
         "dependent", "expected_tokens", "expected_lengths", "measure", "scale_a", "scale_b",
         "workspace", "kernel", "c", "beta", "scaling"}


def reference(verb, arguments, keywords):
    """What a product must be, in float64; None of those that nothing is known of."""
    tensors = [*arguments, *(keywords[name] for name in ("bias", "scale_a", "scale_b", "c")
                             if keywords.get(name) is not None)]
    if not set(keywords) <= KNOWN or not all(isinstance(x, (np.ndarray, wp.PackedWeights))
                                             for x in tensors):
        return None
    if keywords.get("dtype") in ("e4m3", "e5m2") or keywords.get("operands") not in (None, "tf32"):
        return None
    a, b = f64(arguments[0]), value_of(arguments[1])
    scale_a, scale_b = keywords.get("scale_a"), keywords.get("scale_b")
    if max(0 if scale_a is None else scale_a.ndim, 0 if scale_b is None else scale_b.ndim) > 1 or \
            keywords.get("scaling") not in (None, "row_column"):
        return None
    if verb == "grouped_gemm":
        if not (scale_a is None and scale_b is None):
            return None
        offsets = arguments[2].tolist()
        if offsets != sorted(offsets) or offsets[0] < 0 or offsets[-1] > len(a):
            return None
        a = a[0] if a.ndim == 3 else a  # a batch of one is a matrix
        rows = np.searchsorted(offsets, np.arange(len(a)), side="right") - 1
        rows[rows >= len(b)] = -1
        sums = np.einsum("mk,mnk->mn", a, b[rows])
    else:
        rows = None
        sums = np.matmul(a, b.swapaxes(-1, -2))
    if sums.size == 0:
        return None
    alpha = float(np.float32(keywords.get("alpha", 1)))  # as the product has it
    sums = alpha * sums if alpha != 0 and a.shape[-1] != 0 else 0 * sums
    if a.shape[-1] == 0 or alpha == 0:
        scale_a = scale_b = None  # of nothing; they are not looked at
    if scale_a is not None:
        sums = sums * f64(scale_a).reshape(-1, 1)
    if scale_b is not None:
        sums = sums * f64(scale_b).reshape(1, -1)
    if keywords.get("c") is not None and keywords.get("beta", 1) != 0:
        c = f64(keywords["c"])
        c = c.reshape(sums.shape) if c.size == sums.size else c  # a batch of one is a matrix
        sums = sums + keywords.get("beta", 1) * c
    if keywords.get("bias") is not None:
        bias = f64(keywords["bias"])
        if rows is not None and bias.ndim == 2 and keywords.get("bias_along") != "rows":
            bias = bias[rows]
        sums = sums + (bias[..., None] if keywords.get("bias_along") == "rows" else bias)
    if keywords.get("gated"):
        half = sums.shape[-1] // 2
        gate, up = sums[..., :half], sums[..., half:]
        if keywords.get("gate_up") == "interleaved":
            gate, up = sums[..., ::2], sums[..., 1::2]
        want = gate_times(keywords, gate, up)
    else:
        want = activated(keywords.get("activation"), sums)
    if rows is not None:
        want[rows < 0] = 0
        want = want.reshape(*arguments[0].shape[:-1], want.shape[-1])
    return want


MOE_KNOWN = {"activation", "gated", "gate_up", *GATE_NUMBERS, "bias13", "bias2", "first_expert",
             "routed_scaling_factor", "shared_output", "experts_total", "dtype", "combine",
             "apply_router_weight_on_input", "expected_lengths", "batch_invariant", "by_index",
             "gates_in_epilogue", "sort_with_gather", "check_ids", "dependent", "workspace"}


def wrong_mixture(arguments, keywords, d):
    """The same of a mixture with weights of 16 bits."""
    given = ("bias13", "bias2", "shared_output")
    biases = [keywords[n] for n in given if keywords.get(n) is not None]
    tensors = [*arguments, *biases]
    if not set(keywords) <= MOE_KNOWN or not all(isinstance(x, np.ndarray) for x in tensors):
        return None, False
    x, ids, weights, w13, w2 = arguments
    x, weights, w13, w2 = (f64(each) for each in (x, weights, w13, w2))
    combine = keywords.get("combine") or "sum"
    on_input = keywords.get("apply_router_weight_on_input")
    want, terms = np.zeros((*ids.shape, x.shape[1])), np.zeros((*ids.shape, x.shape[1]))
    largest = 0.0  # of what is rounded to 16 bits on the way
    for t, j in np.ndindex(*ids.shape):
        e = int(ids[t, j]) - keywords.get("first_expert", 0)
        if not 0 <= e < len(w13) or ids[t, j] < 0:
            continue
        weight = weights[t, j] * keywords.get("routed_scaling_factor", 1)
        token = x[t] * weight if on_input else x[t]
        both = w13[e] @ token
        if keywords.get("bias13") is not None:
            both = both + f64(keywords["bias13"][e])
        if keywords.get("gated", True):
            gate, up = np.split(both, 2)
            if keywords.get("gate_up") == "interleaved":
                gate, up = both[::2], both[1::2]
            h = gate_times(keywords, gate, up)
        else:
            h = activated(keywords.get("activation") or "silu", both)
        bias = f64(keywords["bias2"][e]) if keywords.get("bias2") is not None else 0
        weight = 1 if on_input or combine == "none" else weight
        want[t, j] = weight * (w2[e] @ h + bias)
        largest = max([largest, *(np.abs(r).max(initial=0) for r in (token, both, h, w2[e] @ h))])
        terms[t, j] = np.abs(weight) * (np.abs(w2[e]) @ np.abs(h) + np.abs(bias))
    if combine == "sum":
        want, terms = want.sum(1), terms.sum(1)
    if keywords.get("shared_output") is not None:
        want += f64(keywords["shared_output"])
    if want.shape != d.shape:
        return f"it is of {d.shape} and should be of {want.shape}", True
    if arguments[0].dtype == np.float16 and not max(largest, np.abs(want).max(initial=0)) < 6e4:
        return None, False
    off = np.abs(f64(d) - want)
    allowed = 0.01 * (np.abs(want) + terms) + 1e-2
    return None if (off <= allowed).all() else f"it is off by {(off - allowed).max()}", True


def wrong_result(verb, arguments, keywords, d):
    """What is wrong with a result, or nothing; whether anything was known of it."""
    if verb == "moe":
        with np.errstate(all="ignore"):
            return wrong_mixture(arguments, keywords, d)
    with np.errstate(all="ignore"):
        want = reference(verb, arguments, keywords)
    if want is None or not np.isfinite(want).all() or np.abs(want).max(initial=0) > 6e4:
        return None, False
    if {"c", "bias"} & set(keywords) and want.ndim > d.ndim and want.size == d.size:
        want = want.reshape(d.shape)  # of a batch of one beside what is none
    if want.shape != d.shape:
        return f"it is of {d.shape} and should be of {want.shape}", True
    off = np.abs(f64(d) - want)
    allowed = 0.01 * np.abs(want).max(initial=0) + 1e-2
    return None if off.size == 0 or off.max() <= allowed else f"it is off by {off.max()}", True


def use(result, draw):
    """What may be asked of a result."""
    if isinstance(result, wp.Plan):
        for text in (result.name, result.kernel, result.line, result.device, result.explain(),
                     repr(result)):
            assert text
        assert result.workspace_bytes >= 0
        if draw.likely(0.1):
            result.prepare(draw.random.choice([None, draw.workspace(), 3]),
                           draw.random.choice([None, None, 0, "x", 1 << 80]))
    elif isinstance(result, wp.MoePlan):
        assert all((result.name, *result.kernels, result.line, result.device, result.explain(),
                    repr(result)) if result.launches else (result.line, repr(result)))
        if result.device == "model":
            result.prepare()
    elif isinstance(result, wp.PackedWeights):
        assert len(repr(result)) > 10 and result.shape and result.group
        copied = pickle.loads(pickle.dumps(result.form)), copy.copy(result)
        assert copied[0] == copied[1].form
        if not isinstance(result.data, wp.Spec):
            assert result.values().shape == result.shape
    elif isinstance(result, wp.Array):
        assert len(repr(result)) > 10
        if draw.likely(0.5):
            np.asarray(result)
    elif isinstance(result, wp.Workspace):
        if draw.likely(0.5):
            result.close()
        result.close()
        assert result.nbytes == 0
    elif isinstance(result, wp.Check):
        assert result and str(result)


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else samples.run_seed()
    print(f"{calls} random calls, seed {seed}", flush=True)
    caller = Caller(seed)
    done, checked, codes, start = 0, 0, {}, time.monotonic()
    for i in range(calls):
        verb, arguments, keywords = caller.call()
        fault = None
        try:
            function = wp
            for part in verb.split("."):
                function = getattr(function, part)
            result = function(*arguments, **keywords)
            done += 1
            if verb in ("gemm", "grouped_gemm", "moe"):
                fault, known = wrong_result(verb, arguments, keywords, result)
                checked += known
            use(result, caller)
        except wp.Refusal as refusal:
            codes[refusal.code] = codes.get(refusal.code, 0) + 1
            reason = str(refusal)
            if len(reason) < 10 or "\n" in reason:
                fault = f"no sentence: {reason!r}"
        except TypeError as other:
            codes["TypeError"] = codes.get("TypeError", 0) + 1
            if verb in ("gemm", "grouped_gemm", "plan", "check", "trace", "moe", "plan_moe") or \
                    len(str(other)) < 10:
                fault = f"TypeError: {other}"
        except MemoryError:
            codes["MemoryError"] = codes.get("MemoryError", 0) + 1
            if verb not in ("Workspace", "empty"):
                fault = "MemoryError"
        except Exception as other:  # pylint: disable=broad-except
            fault = f"{type(other).__name__}: {other}"
        if fault:
            np.set_printoptions(threshold=8, edgeitems=2)  # the seed gives the whole of it
            print(f"call {i} of seed {seed}: {verb}(*{arguments!r}, **{keywords!r}): {fault}")
            return 1
    print(f"{done} computed, {checked} of them products compared with float64, "
          f"{sum(codes.values())} refused {dict(sorted(codes.items()))}, in "
          f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
