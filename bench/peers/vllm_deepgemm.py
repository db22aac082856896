"""vLLM's chain around DeepGEMM: its permutation, quantising, two grouped products and the sum."""
from __future__ import annotations

from typing import Any

import torch
from cases import Case, DenseCase
from engine import activation_of, version  # noqa: F401
from vllm.model_executor.layers.fused_moe.config import fp8_w8a8_moe_quant_config
from vllm.model_executor.layers.fused_moe.experts.deep_gemm_moe import DeepGemmExperts
from vllm.model_executor.layers.fused_moe.utils import moe_kernel_quantize_input
from vllm.model_executor.layers.quantization.utils.fp8_utils import per_token_group_quant_fp8
from vllm.utils.deep_gemm import fp8_gemm_nt

NAME = "vllm-deepgemm"
KINDS = DENSE = ("e4m3-block",)


def layer(case: Case) -> Any:
    if case.layer.gpt_oss:
        raise NotImplementedError("it has no biases")
    experts, inner, top = case.layer.experts, case.layer.inner, case.layer.top_k
    # Its constructor wants the whole configuration of an engine.
    chain = DeepGemmExperts.__new__(DeepGemmExperts)
    chain.quant_config = fp8_w8a8_moe_quant_config(
        w1_scale=case.w13.scales, w2_scale=case.w2.scales, block_shape=[128, 128])
    chain.mxfp8, chain.gemm1_clamp_limit = False, None
    chain.gemm1_alpha, chain.gemm1_beta = 1.0, 0.0
    activation = activation_of(case.layer)

    def step(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        codes, scales = moe_kernel_quantize_input(
            A=x, A_scale=None, quant_dtype=torch.float8_e4m3fn, per_act_token_quant=False,
            block_shape=[128, 128])
        shapes = chain.workspace_shapes(x.shape[0], 2 * inner, x.shape[1], top, experts, experts,
                                        None, activation)
        first, second, out = (torch.empty(s, device=x.device, dtype=x.dtype) for s in shapes)
        chain.apply(out, codes, case.w13.codes, case.w2.codes, weights, ids, activation, experts,
                    None, scales, None, first, second, None, False)
        return out
    return step


def dense(case: DenseCase) -> Any:
    assert case.w.scales is not None
    w = case.w.codes[0], case.w.scales[0]

    def step(x: torch.Tensor) -> torch.Tensor:
        tokens = per_token_group_quant_fp8(x, 128, column_major_scales=True,
                                           tma_aligned_scales=True, use_ue8m0=False)
        out = torch.empty(x.shape[0], case.layer.n, device=x.device, dtype=x.dtype)
        fp8_gemm_nt(tokens, w, out, is_deep_gemm_e8m0_used=False)
        return out
    return step
