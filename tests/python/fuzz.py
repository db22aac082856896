"""Random calls of the Python surface: fuzz.py [CALLS [SEED]].

Every call gives a result or a Refusal of one sentence; a plain product that is computed is right.
Prints its seed; a fault is told with the call that shows it.
"""
import random
import sys
import time

import ml_dtypes
import numpy as np

import warpwright as wp
from fakes import Fake

TYPES = [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float32,
         np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_, np.complex64, ">f4"]
GARBAGE = [None, 1.5, -3, "x", b"x", object(), [[1.0, 2.0]], (), {}, np, int, float("nan"), True,
           np.float32(1), wp.Spec((16, 32)), Ellipsis]


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
        if self.likely(0.1) and array.ndim >= 2:
            array = self.random.choice([
                lambda: array[::-1], lambda: array[..., ::2], lambda: array.swapaxes(-1, -2),
                lambda: np.asfortranarray(array), lambda: array[1:], lambda: array[:, 1:],
                lambda: np.broadcast_to(array[:1], array.shape), lambda: array[None],
                lambda: array.reshape(-1),
                lambda: np.concatenate([array, array], -1)[..., :array.shape[-1]]])()
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

    def keywords(self, m, n, k, dtype, grouped):
        choose = self.random.choice
        groups = 3
        wide = {ml_dtypes.bfloat16: "bf16", np.float16: "f16"}.get(dtype, "bf16")
        narrow = dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
        result = np.float16 if wide == "f16" else ml_dtypes.bfloat16
        lead = (groups,) if grouped else ()
        all_of_them = {
            "out": lambda: self.tensor((m, n), result),
            "c": lambda: self.tensor((m, n), result),
            "alpha": lambda: choose([0, 1, -2.5, float("inf"), float("nan"), 1e300, "x"]),
            "beta": lambda: choose([0, 1, float("nan"), -1]),
            "bias": lambda: self.tensor(choose([(n,), lead + (n,), (m,)]),
                                        choose([np.float32, result])),
            "bias_along": lambda: choose(["rows", "columns", "x", 3]),
            "activation": lambda: choose(["none", "relu", "gelu", "silu", "quick_gelu", "tanh", 1]),
            "gated": lambda: choose([True, False, 1]),
            "scale_d": lambda: self.tensor((), np.float32),
            "scaling": lambda: choose(["none", "tensor", "row_column", "block", "group", "x", 1]),
            "accumulation": lambda: choose(["fast", "promoted", "slow"]),
            "dtype": lambda: choose(["bf16", "f32", "f16", "e4m3", "e5m2", "f64", 3, np.float32,
                                     ml_dtypes.bfloat16, object()]),
            "batch_invariant": lambda: choose([True, False, "x"]),
            "kernel": lambda: choose(["hopper_bf16_bf16_128x64_sw_sk", "x", "", 3]),
            "cluster": lambda: choose([(1, 1), (2, 1), (1, 2), (3, 3), (0, 1), 3, (1 << 70, 1)]),
            "expected_tokens": lambda: choose([0, 3.5, -1, float("nan"), "x"]),
            "check_offsets": lambda: choose([True, False]),
            "dependent": lambda: choose([True, False, None]),
            "stream": lambda: choose([0, 1, -1, "x", 1 << 80, object()]),
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
        for name in self.random.sample(sorted(all_of_them), choose([0, 0, 1, 1, 2, 4])):
            given[name] = all_of_them[name]()
        return given

    def workspace(self):
        made = wp.Workspace(self.random.choice([256, 1 << 20]), "model")
        if self.likely(0.3):
            made.close()
        return made

    def plan(self):
        return wp.plan(wp.Spec((16, 64)), wp.Spec((32, 64)),
                       device=self.random.choice(["model", "h200", "b200"]))

    def call(self):
        m, n = self.extent(), self.extent()
        k = self.random.choice([0, 8, 16, 32, 64, 128, 256, self.extent()])
        dtype = self.random.choice(TYPES[:4] * 8 + TYPES)
        grouped = self.likely(0.3)
        verb = self.random.choices(["gemm", "plan", "check", "trace"], [20, 4, 1, 1])[0]
        arguments = [self.tensor((m, k), dtype),
                     self.tensor(((3,) if grouped else ()) + (n, k), dtype)]
        keywords = self.keywords(m, n, k, dtype, grouped)
        if grouped:
            cuts = sorted(self.random.randrange(m + 1) for _ in range(2))
            offsets = np.array([0] + cuts + [m], self.random.choice([np.int32, np.int64]))
            if self.likely(0.1):
                offsets = self.random.choice([offsets[::-1], offsets * 1000, -offsets, offsets[:3],
                                              offsets.astype(np.float32), offsets.reshape(2, 2)])
            arguments.append(offsets if self.likely(0.97) else self.random.choice(GARBAGE))
            verb = "grouped_gemm" if verb == "gemm" else verb
        else:
            keywords.pop("expected_tokens", None)
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


def wrong_result(arguments, keywords, d):
    """Of a plain product of small whole numbers: what is wrong with it, or nothing."""
    if keywords or not all(isinstance(x, np.ndarray) for x in arguments) or len(arguments) != 2:
        return None
    a, b = (x.astype(np.float32) for x in arguments)
    want = np.matmul(a, b.swapaxes(-1, -2))
    off = np.abs(d.astype(np.float32) - want)
    allowed = 0.01 * np.abs(want).max(initial=0) + 1e-3
    return None if off.size == 0 or off.max() <= allowed else f"it is off by {off.max()}"


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
    print(f"{calls} random calls, seed {seed}", flush=True)
    caller = Caller(seed)
    done, codes, start = 0, {}, time.monotonic()
    for i in range(calls):
        verb, arguments, keywords = caller.call()
        fault = None
        try:
            result = getattr(wp, verb)(*arguments, **keywords)
            done += 1
            if verb == "gemm":
                fault = wrong_result(arguments, keywords, result)
        except wp.Refusal as refusal:
            codes[refusal.code] = codes.get(refusal.code, 0) + 1
            reason = str(refusal)
            if len(reason) < 10 or "\n" in reason:
                fault = f"no sentence: {reason!r}"
        except Exception as other:  # pylint: disable=broad-except
            fault = f"{type(other).__name__}: {other}"
        if fault:
            print(f"call {i} of seed {seed}: {verb}(*{arguments!r}, **{keywords!r}): {fault}")
            return 1
    print(f"{done} computed, {sum(codes.values())} refused {dict(sorted(codes.items()))}, in "
          f"{time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
