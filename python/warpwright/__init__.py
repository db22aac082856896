"""Matrix products on NVIDIA tensor cores, and on a model of the machine where there is no GPU.

    import warpwright as wp

    d = wp.gemm(x, w)                        # x @ w.T, by the current stream of x's library
    wp.gemm(x, w, out=d, bias=b, activation="gelu")
    y = wp.grouped_gemm(x, experts, offsets) # rows in groups
    y = wp.moe(x, ids, weights, w13, w2)     # a mixture of experts
    print(wp.plan(x, w).explain())           # how, and why

Tensors come and go by DLPack (PyTorch, CuPy, JAX, numpy). Those in host memory are multiplied by
the machine model, with all its checks: right, and slow. What cannot be done is a ``Refusal``: one
sentence with the tensor, the rule and the nearest legal value. docs/python.md has the rest.
"""
from . import _core
from ._core import (Array, MoePlan, Plan, Workspace, devices, empty, fastest, gemm, grouped_gemm,
                    moe, plan, plan_moe)
from ._experts import fused_experts, mlp
from ._formats import block_scales, pack_elements
from ._fp4 import load_fp4, pack_fp4, pack_fp4_checkpoint
from ._interop import Refusal, Spec
from ._prepare import (PackedWeights, load_int4, pack_int4, pack_int4_checkpoint, quantise,
                       sort_slots)
from ._ptx import Finding, Mutant, PtxCheck, TensorMap, check_ptx
from ._study import Check, Trace, check, trace
from ._types import Tensor

__version__ = _core.version
#: Was the GPU side built? (Whether there is a GPU, ``devices`` says.)
built_with_cuda = _core.built_with_cuda

__all__ = ["Array", "Check", "Finding", "MoePlan", "Mutant", "PackedWeights", "Plan", "PtxCheck",
           "Refusal", "Spec", "Tensor", "TensorMap",
           "Trace", "Workspace", "block_scales", "built_with_cuda", "check", "check_ptx", "devices",
           "empty", "fastest", "fused_experts", "gemm", "grouped_gemm", "load_fp4", "load_int4",
           "mlp", "moe", "pack_elements", "pack_fp4", "pack_fp4_checkpoint", "pack_int4",
           "pack_int4_checkpoint", "plan", "plan_moe", "quantise", "sort_slots", "trace"]
