"""What the compiled module asks of Python: other libraries' tensors and streams, and the log."""
from __future__ import annotations

import logging
import math
import operator
import sys
from typing import Any, Iterable

from . import _core

log = logging.getLogger("warpwright")


class Refusal(ValueError):
    """Why something was not done: a sentence with the tensor, the rule, the nearest legal value.

    ``code`` is its kind for programs, such as ``"bad_stride"``; docs/api.md lists them. Sentences
    may change from version to version, codes keep their meaning. ``tensor`` ("A", "scale_a",
    "bias"), ``rule`` and ``nearest``, what would be accepted, are what the rule that refused knows
    of them, or empty.
    """

    def __init__(self, reason: str, code: str = "bad_value", tensor: str = "", rule: str = "",
                 nearest: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.tensor = tensor
        self.rule = rule
        self.nearest = nearest

    def __reduce__(self) -> tuple[type[Refusal], tuple[str, str, str, str, str]]:
        return Refusal, (self.reason, self.code, self.tensor, self.rule, self.nearest)


# Names of types: those of an Array, and those that only operands, scales and offsets have.
NAMES = _core.array_types
ALL_NAMES = {**NAMES, **_core.other_types}
# What numpy has without ml_dtypes.
_OF_NUMPY = ("float32", "float16", "uint8", "int8", "int32", "int64")


class Spec:
    """A tensor without memory, for ``plan``.

    ``shape`` and ``strides`` are in elements, packed without strides; ``dtype`` is a name ("bf16",
    "float8_e4m3fn", "int32") or the dtype of some library. Raises Refusal for what is neither.
    """

    def __init__(self, shape: Iterable[int], dtype: Any = "bf16",
                 strides: Iterable[int] | None = None) -> None:
        self.shape = _integers("shape", shape, "bad_shape")
        if any(extent < 0 for extent in self.shape):
            raise Refusal(f"the shape of a Spec is {self.shape}; extents are 0 or more",
                          "bad_shape")
        self.dtype = dtype_name(dtype)
        known = {*ALL_NAMES, *ALL_NAMES.values()}
        if self.dtype not in known:
            raise Refusal(f"a Spec has the dtype {self.dtype!r}; it is one of "
                          f"{', '.join(sorted(known))}", "bad_type")
        if strides is None:
            found: list[int] = []
            packed = 1
            for extent in reversed(self.shape):
                found.insert(0, packed)
                packed *= extent
            strides = found
        self.strides = _integers("strides", strides, "bad_stride")
        if len(self.strides) != len(self.shape):
            raise Refusal(f"a Spec of {len(self.shape)} dimensions has {len(self.strides)} strides;"
                          " it has one a dimension", "bad_stride")

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype!r}, strides={self.strides})"


def _integers(name: str, values: Iterable[int], code: str) -> tuple[int, ...]:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise Refusal(f"a Spec has the {name} {values!r}; it has whole numbers, one a "
                      "dimension", code) from None


def dtype_name(dtype: Any) -> str:
    """"bfloat16" of "bfloat16", torch.bfloat16, numpy.dtype(ml_dtypes.bfloat16), jnp.bfloat16."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    name = name or getattr(dtype, "__name__", None) or str(dtype)
    return name.rsplit(".", 1)[-1]


def _capsule(tensor: Any, stream: int) -> Any:
    on_cuda = tensor.__dlpack_device__()[0] in (2, 13)
    # DLPack numbers the default stream 1.
    how = {"stream": stream or 1} if on_cuda else {}
    try:
        return tensor.__dlpack__(max_version=(1, 0), **how)
    except TypeError:  # a library from before DLPack 1.0
        return tensor.__dlpack__(**how)


def export(tensor: Any, stream: int) -> tuple[Any, ...]:
    """(capsule, the type's name where DLPack does not say it, whether it is read-only), or of a
    Spec (None, dtype, shape, strides)."""
    if isinstance(tensor, Spec):
        return None, tensor.dtype, tensor.shape, tensor.strides
    if not hasattr(tensor, "__dlpack__"):
        kind = type(tensor)
        raise TypeError(f"a {kind.__module__}.{kind.__qualname__} has no __dlpack__")
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(tensor, numpy.ndarray):
        # JAX lends its arrays, which never change, without saying so.
        return _capsule(tensor, stream), None, _is_jax(tensor)
    name = tensor.dtype.name
    if name in ALL_NAMES.values() and name not in _OF_NUMPY:
        codes = tensor.view(f"uint{8 * tensor.dtype.itemsize}")
        return _capsule(codes, stream), name, not tensor.flags.writeable
    return _capsule(tensor, stream), None, not tensor.flags.writeable


def _is_jax(tensor: Any) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(tensor, jax.Array)


def grad_is_on() -> bool:
    torch = sys.modules.get("torch")
    return torch is None or bool(torch.is_grad_enabled())


def stream_handle(stream: Any) -> int:
    """The cudaStream_t of a stream of cuda.core, PyTorch or CuPy."""
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    kind = type(stream)
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__} is neither an integer nor a stream")


def shape_of(x: Any, name: str) -> tuple[int, ...]:
    if not hasattr(x, "shape"):
        raise Refusal(f"{name} is no tensor: a {type(x).__module__}.{type(x).__qualname__} has no "
                      "shape")
    return tuple(x.shape)


def library_of(tensor: Any) -> str:
    """"torch", "numpy", "cupy", or another package: whose tensor it is, or that of a class derived
    from theirs, such as the parameters of a server."""
    names = [kind.__module__.split(".")[0] for kind in type(tensor).__mro__]
    return next((name for name in names if name in ("torch", "numpy", "cupy")), names[0])


def device_of(x: Any) -> int:
    if not hasattr(x, "__dlpack_device__"):
        raise Refusal(f"x is no tensor: a {type(x).__module__}.{type(x).__qualname__} has no "
                      "__dlpack_device__")
    kind, index = x.__dlpack_device__()
    return int(index) if int(kind) in (2, 13) else -1


def empty_like(tensor: Any, shape: tuple[int, ...], dtype: str, device: int) -> Any:
    """A tensor of the same library as `tensor`, and on its device; where that library's tensors
    cannot be written, or have no such type, an Array."""
    name = NAMES.get(dtype, dtype)
    library = library_of(tensor)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return torch.empty(shape, dtype=getattr(torch, name), device=tensor.device)
    if library == "cupy":
        import cupy  # pylint: disable=import-outside-toplevel
        try:
            with cupy.cuda.Device(device):
                return cupy.empty(shape, dtype=_numpy_type(name))
        except TypeError:
            pass
    if library == "numpy":
        import numpy  # pylint: disable=import-outside-toplevel
        return numpy.empty(shape, dtype=_numpy_type(name))
    return _core.empty(shape, dtype, "model" if device < 0 else f"cuda:{device}")


def empty_halves(tensor: Any, shape: tuple[int, ...], device: int) -> Any:
    """The same of two elements of 4 bits each: PyTorch's float4_e2m1fn_x2, or bytes. The memory
    begins where copies that pad may begin, at a multiple of 32 bytes."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        name = "float4_e2m1fn_x2" if hasattr(torch, "float4_e2m1fn_x2") else "u8"
        return empty_like(tensor, shape, name, device)
    if library_of(tensor) != "numpy":
        return empty_like(tensor, shape, "u8", device)
    import numpy  # pylint: disable=import-outside-toplevel
    count = math.prod(shape)
    memory: Any = numpy.empty(count + 63, numpy.uint8)
    first = -memory.ctypes.data % 64
    return memory[first:first + count].reshape(shape)


def empty_scales(tensor: Any, shape: tuple[int, ...], device: int) -> Any:
    """An uninitialised float32 tensor of block scales, as `empty_like`: the scales of rows side by
    side, where the library has views, as the products that take them read them fastest."""
    if len(shape) == 2:
        turned = empty_like(tensor, (shape[1], (shape[0] + 3) // 4 * 4), "f32", device)
        if hasattr(turned, "T"):
            return turned.T[:shape[0]]
    return empty_like(tensor, shape, "f32", device)


def adopted(tensor: Any, array: Any) -> Any:
    """Our `array` as an array of the library of `tensor`, where that takes over what it cannot have
    written; else the Array itself."""
    if not _is_jax(tensor):
        return array
    import jax  # pylint: disable=import-outside-toplevel
    return jax.dlpack.from_dlpack(array)


def move_to(tensor: Any, where: Any) -> Any:
    """`tensor` where `where` says: "cpu", or another tensor's place. For libraries without devices,
    and for tensors that are there, the very same."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return tensor.to(where.device if isinstance(where, torch.Tensor) else where)
    if library_of(tensor) == "cupy" and where == "cpu":
        return tensor.get()
    if library_of(where) == "cupy":
        import cupy  # pylint: disable=import-outside-toplevel
        return cupy.asarray(tensor)
    return tensor


def as_tiles(scales: Any, lead: tuple[int, ...]) -> Any:
    """Scales in tiles as one row a matrix, a shape that scales row by row never have."""
    return scales.reshape((*lead, -1)) if hasattr(scales, "reshape") else scales


def widened(tensor: Any) -> Any:
    """A float32 copy of a tensor of 16 bits, by its own library and on its stream; None of one that
    has no such copy."""
    if hasattr(tensor, "float"):
        return tensor.float()
    if hasattr(tensor, "astype"):
        return tensor.astype("float32")
    return None


class _Codes:
    """An Array's memory as integers, for numpy, which keeps the array alive."""

    def __init__(self, array: _core.Array, itemsize: int) -> None:
        self.array = array
        self.__array_interface__ = {"version": 3, "shape": array.shape, "typestr": f"<u{itemsize}",
                                    "data": (array._address, False)}


def as_numpy(array: _core.Array, dtype: Any, copy: bool | None) -> Any:
    """``numpy.asarray(array)``: the same memory, or a copy of it in another type."""
    import numpy  # pylint: disable=import-outside-toplevel
    if array.__dlpack_device__()[0] != 1:
        raise Refusal(f"the array lies in {array.device}, and numpy takes host memory; give it to "
                      "a library for GPUs, by from_dlpack", "wrong_device")
    own = _numpy_type(NAMES[array.dtype])
    taken = numpy.asarray(_Codes(array, own.itemsize)).view(own)
    if dtype is not None and numpy.dtype(dtype) != own:
        if copy is False:
            raise ValueError(f"an array of {own} is one of {numpy.dtype(dtype)} only by a copy")
        return taken.astype(dtype)
    return taken.copy() if copy else taken


def _numpy_type(name: str) -> Any:
    import numpy  # pylint: disable=import-outside-toplevel
    if name in _OF_NUMPY:
        return numpy.dtype(name)
    try:
        import ml_dtypes  # pylint: disable=import-outside-toplevel
    except ImportError:
        raise Refusal(f"numpy has no {name}; pip install ml_dtypes, which adds it",
                      "bad_type") from None
    if not hasattr(ml_dtypes, name):
        raise Refusal(f"ml_dtypes {ml_dtypes.__version__} has no {name}; pip install a newer one",
                      "bad_type")
    return numpy.dtype(getattr(ml_dtypes, name))


def log_plan(line: str) -> None:
    log.debug("plan: %s", line)


def __getattr__(name: str) -> Any:
    if name == "PackedWeights":  # which itself asks this module
        from ._prepare import PackedWeights  # pylint: disable=import-outside-toplevel
        return PackedWeights
    raise AttributeError(name)
