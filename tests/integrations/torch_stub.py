"""As much of PyTorch as the plug-ins touch, on numpy: where torch is not installed, so in CI.

`install()` puts it into sys.modules as torch. Tensors are numpy arrays, types those of numpy and
ml_dtypes; operators are functions, and nothing is compiled.
"""
import sys
import types

import ml_dtypes
import numpy as np


class _Device:
    type, index = "cpu", None


class Tensor(np.ndarray):
    """An array with the names of PyTorch's methods."""

    data = property(lambda self: self)
    device = property(lambda self: _Device)
    is_cuda = False

    def stride(self, dim=None):
        steps = tuple(step // self.itemsize for step in self.strides)
        return steps if dim is None else steps[dim]

    def to(self, where=None, dtype=None):
        kind = dtype if dtype is not None else where
        return self.astype(kind) if isinstance(kind, np.dtype) and kind != self.dtype else self

    def float(self):
        return self.to(np.dtype(np.float32))

    def long(self):
        return self.to(np.dtype(np.int64))

    def contiguous(self):
        return np.ascontiguousarray(self).view(Tensor)

    def dim(self):
        return self.ndim

    def t(self):
        return self.T

    def data_ptr(self):
        return self.ctypes.data

    def numel(self):
        return int(self.size)

    def expand(self, *shape):
        return np.broadcast_to(self, shape).view(Tensor)

    def repeat_interleave(self, count, dim):
        return np.repeat(self, count, dim).view(Tensor)

    def new_empty(self, shape, dtype=None):
        return np.empty(shape, dtype or self.dtype).view(Tensor)

    def new_ones(self, shape):
        return np.ones(shape, self.dtype).view(Tensor)

    def is_floating_point(self):
        return self.dtype.kind == "f" or self.dtype.name.startswith(("bfloat", "float"))

    def is_complex(self):
        return self.dtype.kind == "c"

    def clone(self):
        return self.copy()


def tensor(values, dtype=None):
    return np.asarray(values, dtype).view(Tensor)


class Module:
    def register_parameter(self, name, value):
        setattr(self, name, value)


class _Library:
    def __init__(self, name, kind):
        self.ops = sys.modules["torch"].ops.__dict__.setdefault(name, types.SimpleNamespace())

    def define(self, schema, tags=()):
        pass

    def impl(self, name, function, key):
        setattr(self.ops, name, function)


def install():
    made = types.ModuleType("torch")
    Tensor.__module__ = "torch"  # as the library tells whose a tensor is
    made.Tensor, made.tensor = Tensor, tensor
    for name in ("float32", "float16", "int8", "uint8", "int32", "int64", "bool"):
        setattr(made, name, np.dtype(name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"):
        setattr(made, name, np.dtype(getattr(ml_dtypes, name)))
    made.is_grad_enabled = lambda: False
    made.empty = lambda *shape, dtype=np.float32, device=None: tensor(
        np.zeros(shape[0] if isinstance(shape[0], tuple) else shape, dtype))
    made.ones = lambda *shape, dtype=np.float32: tensor(np.ones(shape, dtype))
    made.empty_like = lambda like, dtype=None: like.new_empty(like.shape, dtype)
    made.where = lambda *given: np.where(*given).view(Tensor)
    made.from_dlpack = lambda array: np.asarray(array).view(Tensor)
    made.ops = types.SimpleNamespace()
    made.Tag = types.SimpleNamespace(pt2_compliant_tag=0, needs_exact_strides=1)
    made.nn = types.ModuleType("torch.nn")
    made.nn.Module = Module
    made.nn.Parameter = lambda data, requires_grad=False: np.asarray(data).view(Tensor)
    made.library = types.ModuleType("torch.library")
    made.library.Library = _Library
    made.library.register_fake = lambda name, function, lib: None
    sys.modules.update({"torch": made, "torch.nn": made.nn, "torch.library": made.library})
    return made
