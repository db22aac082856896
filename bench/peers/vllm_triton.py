"""vLLM's Triton kernel for experts, with the tuned files that it ships: its default for bf16 and
FP8 on Hopper."""
from __future__ import annotations

from typing import Any

import torch
from cases import Case, DenseCase
from engine import activation_of, version  # noqa: F401
from vllm.model_executor.layers.fused_moe.config import (biased_moe_quant_config,
                                                         fp8_w8a8_moe_quant_config)
from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts
from vllm.model_executor.layers.quantization.utils.fp8_utils import (per_token_group_quant_fp8,
                                                                     w8a8_triton_block_scaled_mm)

NAME = "vllm-triton"
KINDS = ("bf16", "e4m3-block")
DENSE = ("e4m3-block",)


def layer(case: Case) -> Any:
    config = None
    if case.kind == "e4m3-block":
        config = fp8_w8a8_moe_quant_config(
            w1_scale=case.w13.scales, w2_scale=case.w2.scales, block_shape=[128, 128],
            w1_bias=case.bias13, w2_bias=case.bias2)
    elif case.layer.gpt_oss:
        config = biased_moe_quant_config(case.bias13, case.bias2)
    activation = activation_of(case.layer)
    return lambda x, ids, weights: fused_experts(x, case.w13.codes, case.w2.codes, weights, ids,
                                                 activation=activation, quant_config=config)


def dense(case: DenseCase) -> Any:
    assert case.w.scales is not None
    w, scales = case.w.codes[0], case.w.scales[0]

    def step(x: torch.Tensor) -> torch.Tensor:
        codes, scale = per_token_group_quant_fp8(x, 128, use_ue8m0=False)
        return w8a8_triton_block_scaled_mm(codes, w, scale, scales, [128, 128], torch.bfloat16)
    return step
