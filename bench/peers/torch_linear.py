"""PyTorch's own linear: the kernel that cuBLASLt picks first."""
from __future__ import annotations

from typing import Any

import torch
from cases import DenseCase

NAME = "torch"
KINDS = ()
DENSE = ("bf16",)
CPU = True


def version() -> str:
    return f"torch {torch.__version__}"


def dense(case: DenseCase) -> Any:
    w = case.w.codes[0]
    return lambda x: torch.nn.functional.linear(x, w)
