"""vLLM's Triton kernel for experts, with the tuned files that it ships: its default for bf16 and
FP8 on Hopper."""
from __future__ import annotations

from typing import Any

from cases import Case
from engine import activation_of, version  # noqa: F401
from vllm.model_executor.layers.fused_moe.config import (biased_moe_quant_config,
                                                         fp8_w8a8_moe_quant_config)
from vllm.model_executor.layers.fused_moe.fused_moe import fused_experts

NAME = "vllm-triton"
KINDS = ("bf16", "e4m3-block")


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
