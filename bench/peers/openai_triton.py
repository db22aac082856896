"""OpenAI's triton_kernels, as vLLM carries them: its default for gpt-oss on Hopper."""
from __future__ import annotations

import types
from typing import Any

import torch
from cases import ALPHA, LIMIT, Case, Packed
from engine import activation_of, as_float, version  # noqa: F401
from vllm.model_executor.layers.fused_moe.experts.gpt_oss_triton_kernels_moe import (
    make_routing_data, triton_kernel_fused_experts)
from vllm.model_executor.layers.quantization.utils.mxfp4_utils import _swizzle_mxfp4
from vllm.utils.import_utils import has_triton_kernels

if not has_triton_kernels():
    raise ImportError("vllm found no triton_kernels")
from triton_kernels.matmul_ogs import FlexCtx, PrecisionConfig, matmul_ogs  # noqa: E402

NAME = "triton-kernels"
KINDS = ("mxf4-bf16",)


def _swizzled(w: Packed) -> tuple[Any, Any]:
    codes, flex, scales = _swizzle_mxfp4(w.codes, w.scales)
    return codes, PrecisionConfig(weight_scale=scales, flex_ctx=FlexCtx(rhs_data=flex))


def layer(case: Case) -> Any:
    (w13, how13), (w2, how2) = _swizzled(case.w13), _swizzled(case.w2)
    top, experts, hidden = case.layer.top_k, case.layer.experts, case.layer.hidden
    config = types.SimpleNamespace(w1_precision=how13, w2_precision=how2,
                                   w1_bias=as_float(case.bias13), w2_bias=as_float(case.bias2))

    def fused(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        routing, gather, scatter = make_routing_data(ids, weights, experts)
        return triton_kernel_fused_experts(
            torch.empty_like(x), x, w13, w2, routing, gather, scatter, top,
            activation=activation_of(case.layer), quant_config=config, swiglu_alpha=ALPHA,
            swiglu_limit=LIMIT)

    def unfused(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        # Its fused gate is gpt-oss's only: silu is a launch between the products.
        routing, gather, scatter = make_routing_data(ids, weights, experts)
        rows = matmul_ogs(x, w13, None, routing, gather_indx=gather, precision_config=how13)
        inner = torch.empty(rows.shape[-2], rows.shape[-1] // 2, device=x.device, dtype=x.dtype)
        torch.ops._C.silu_and_mul(inner, rows.view(-1, rows.shape[-1]))
        out = matmul_ogs(inner, w2, None, routing, scatter_indx=scatter, precision_config=how2,
                         gammas=routing.gate_scal)
        return out.view(-1, hidden)
    return fused if case.layer.gpt_oss else unfused
