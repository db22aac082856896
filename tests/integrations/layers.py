"""Layers of experts and dense ones in each format that checkpoints have, with random weights: the
tensors as an engine's loader leaves them, and the weights that they stand for, in float64."""
import math

import ml_dtypes
import numpy as np
import torch

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def to_torch(array):
    """An array as a tensor: of PyTorch, or of the stub."""
    array = np.ascontiguousarray(array)
    if not hasattr(torch, "from_numpy"):
        return torch.tensor(array)
    name = array.dtype.name
    if name in ("bfloat16", "float8_e4m3fn"):
        bits = array.view(f"int{8 * array.dtype.itemsize}")
        return torch.from_numpy(bits).view(getattr(torch, name))
    return torch.from_numpy(array)


def to_numpy(tensor):
    """A tensor's values in float64."""
    if isinstance(tensor, np.ndarray):
        return np.asarray(tensor).astype(np.float64)
    return tensor.detach().double().numpy()


def bf16(values):
    return np.asarray(values).astype(ml_dtypes.bfloat16)


def in_words(codes, axis, order=tuple(range(8))):
    """Codes of 4 bits, eight along an axis in a word, the first of `order` lowest."""
    codes = np.moveaxis(codes.astype(np.uint32), axis, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, 8)
    words = sum(codes[..., code] << np.uint32(4 * place) for place, code in enumerate(order))
    return np.moveaxis(words.astype(np.uint32).view(np.int32), -1, axis)


class Draw:
    """Weights of experts x n x k by seed: (parameters by name, what they stand for)."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def floats(self, *shape):
        return self.random.standard_normal(shape) / np.sqrt(shape[-1])

    def dense16(self, e, n, k):
        weights = bf16(self.floats(e, n, k))
        return {"weight": weights}, weights.astype(np.float64)

    def _e4m3(self, e, n, k):
        return self.random.uniform(-60, 60, (e, n, k)).astype(ml_dtypes.float8_e4m3fn)

    def fp8_blocks(self, e, n, k, name="weight_scale_inv", block=128):
        codes = self._e4m3(e, n, k)
        blocks = (e, -(-n // block), -(-k // block))
        scales = self.random.uniform(1, 2, blocks).astype(np.float32) / 600
        each = scales.repeat(block, 1)[:, :n].repeat(block, 2)[..., :k]
        return {"weight": codes, name: scales}, codes.astype(np.float64) * each

    def fp8_rows(self, e, n, k):
        codes = self._e4m3(e, n, k)
        scales = self.random.uniform(1, 2, (e, n, 1)).astype(np.float32) / 600
        return {"weight": codes, "weight_scale": scales}, codes.astype(np.float64) * scales

    def fp8_tensors(self, e, n, k, parts=1):
        codes = self._e4m3(e, n, k)
        scales = self.random.uniform(1, 2, (e, parts)).astype(np.float32) / 600
        each = scales.repeat(n // parts, 1)[..., None]
        return ({"weight": codes, "weight_scale": scales if parts > 1 else scales[:, 0]},
                codes.astype(np.float64) * each)

    def _e2m1(self, e, n, k):
        codes = self.random.integers(0, 16, (e, n, k))
        return (codes[..., ::2] | codes[..., 1::2] << 4).astype(np.uint8), E2M1[codes]

    def mxfp4(self, e, n, k, name="weight"):
        codes, values = self._e2m1(e, n, k)
        scales = self.random.integers(120, 124, (e, n, k // 32)).astype(np.uint8)
        return ({name: codes, "weight_scale": scales},
                values * (2.0 ** (scales.astype(np.float64) - 127)).repeat(32, 2))

    def nvfp4(self, e, n, k, parts=1, compressed=False):
        codes, values = self._e2m1(e, n, k)
        scales = self.random.uniform(8, 40, (e, n, k // 16)).astype(ml_dtypes.float8_e4m3fn)
        factors = (2.0 ** self.random.integers(-10, -8, (e, parts))).astype(np.float32)
        weights = values * scales.astype(np.float64).repeat(16, 2) \
            * factors.repeat(n // parts, 1)[..., None]
        factors = factors if parts > 1 else factors[:, 0]
        names = ("weight_packed", "weight_global_scale") if compressed else ("weight",
                                                                               "weight_scale_2")
        return {names[0]: codes, "weight_scale": scales,
                names[1]: 1 / factors if compressed else factors}, weights

    def _int4(self, e, n, k, group):
        codes = self.random.integers(0, 16, (e, n, k))
        scales = bf16(self.random.uniform(1, 2, (e, n, k // group)) / 60)
        return codes, scales, scales.astype(np.float64).repeat(group, 2)

    def int4_compressed(self, e, n, k, group=32):
        """K first, as vLLM holds those of experts."""
        codes, scales, each = self._int4(e, n, k, group)
        return {"weight_packed": in_words(codes, 2).swapaxes(1, 2),
                "weight_scale": scales.swapaxes(1, 2)}, (codes - 8.0) * each

    def int4_gptq(self, e, n, k, group=32):
        codes, scales, each = self._int4(e, n, k, group)
        return {"qweight": in_words(codes, 2).swapaxes(1, 2),
                "scales": scales.swapaxes(1, 2)}, (codes - 8.0) * each

    def int4_awq(self, e, n, k, group=32):
        codes, scales, each = self._int4(e, n, k, group)
        zeros = self.random.integers(5, 11, scales.shape)
        return {"qweight": in_words(codes.swapaxes(1, 2), 2, AWQ_ORDER),
                "scales": scales.swapaxes(1, 2),
                "qzeros": in_words(zeros.swapaxes(1, 2), 2, AWQ_ORDER)}, \
            (codes - zeros.repeat(group, 2).astype(np.float64)) * each


def gate(both, kind):
    """Rows of gate and up in float64 as the engine's word says."""
    if kind.startswith("swigluoai"):
        g, u = (both[..., ::2], both[..., 1::2]) if kind == "swigluoai" else np.split(both, 2, -1)
        g, u = np.minimum(g, 7), np.clip(u, -7, 7)
        return g / (1 + np.exp(-1.702 * g)) * (u + 1)
    if kind == "relu2_no_mul":
        return np.maximum(both, 0) ** 2
    g, u = np.split(both, 2, -1)
    if kind == "gelu":
        return g / 2 * (1 + np.vectorize(math.erf)(g / 2 ** 0.5)) * u
    return g / (1 + np.exp(-g)) * u


def reference(x, ids, weights, w13, w2, kind="silu", bias13=None, bias2=None):
    """The layer in float64, slot by slot; ids that are no expert's are left out."""
    out = np.zeros((len(x), w2.shape[1]))
    for t, j in np.ndindex(*ids.shape):
        e = ids[t, j]
        if 0 <= e < len(w13):
            both = w13[e] @ x[t] + (0 if bias13 is None else bias13[e])
            y = w2[e] @ gate(both, kind) + (0 if bias2 is None else bias2[e])
            out[t] += weights[t, j] * y
    return out
