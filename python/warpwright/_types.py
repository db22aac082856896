"""What the functions take, for type checkers and for annotations of one's own."""
from __future__ import annotations

from typing import Any, Literal, Protocol, TypeVar


class Tensor(Protocol):
    """Anything that speaks DLPack: an array of numpy, PyTorch, CuPy, JAX, or a warpwright.Array."""

    def __dlpack__(self, *args: Any, **keywords: Any) -> Any:
        """A capsule of its memory."""

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """The kind of its device, and which one."""


T = TypeVar("T", bound=Tensor)
Along = Literal["rows", "columns"]
Activation = Literal["none", "relu", "gelu", "silu", "quick_gelu", "relu2", "swiglu_oai",
                     "gelu_erf"]
Combine = Literal["sum", "weighted", "none"]
GateUp = Literal["halves", "interleaved"]
Scaling = Literal["none", "tensor", "row_column", "blockwise", "group", "block_scaled"]
QuantiseD = Literal["none", "1x128", "mxf8-1x32", "nvf4-1x16", "mxf4-1x32"]
Accumulation = Literal["fast", "promoted"]
Format = Literal["mxf8", "mxf8-e5m2", "mxf6", "mxf6-e3m2", "mxf4", "nvf4"]
Operands = Literal["tf32", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "mxf8", "mxf8-e5m2", "mxf6",
                   "mxf6-e3m2", "mxf4", "nvf4"]
Recipe = Literal["floor", "up", "nested", "4-or-6"]
Sums = Literal["exact", "chained", "folded", "table"]
Encoding = Literal["ex", "sm", "ex-bf16", "ex-fp16"]
Fp4Encoding = Literal["mxf4", "mxf4-exact", "mxf4-bf16", "mxf4-fp16", "nvf4", "nvf4-bf16",
                      "nvf4-fp16"]
Fp4Layout = Literal["gpt-oss", "gpt-oss-original", "deepseek-mxfp4", "quark-mxfp4",
                    "compressed-tensors-mxfp4",
                    "compressed-tensors-nvfp4", "modelopt-nvfp4"]
ScaleType = Literal["bf16", "f16", "f32"]
Layout = Literal["compressed-tensors", "compressed-tensors-experts", "gptq", "gptq-v2", "awq",
                 "w4afp8", "int4"]
