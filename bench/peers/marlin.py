"""Marlin, as vLLM calls it for 4-bit weights of 16-bit tokens."""
from __future__ import annotations

import types
from typing import Any

import torch
from cases import ALPHA, LIMIT, Case, DenseCase, Packed
from engine import activation_of, version  # noqa: F401
from vllm import _custom_ops as ops
from vllm.model_executor.layers.fused_moe.experts.marlin_moe import fused_marlin_moe
from vllm.model_executor.layers.quantization.utils.marlin_utils import (
    apply_gptq_marlin_linear, marlin_make_empty_g_idx, marlin_make_workspace_new,
    marlin_moe_permute_scales)
from vllm.model_executor.layers.quantization.utils.marlin_utils_fp4 import (
    apply_fp4_marlin_linear, prepare_fp4_layer_for_marlin, prepare_moe_mxfp4_layer_for_marlin,
    prepare_nvfp4_moe_layer_for_marlin)
from vllm.scalar_type import scalar_types

NAME = "marlin"
KINDS = DENSE = ("mxf4-bf16", "nvf4-bf16", "int4-bf16")


def _int4(w: Packed) -> tuple[torch.Tensor, torch.Tensor]:
    experts, rows, half = w.codes.shape
    words = w.codes.contiguous().view(torch.int32).transpose(1, 2).contiguous()
    none = torch.empty(experts, 0, dtype=torch.int32, device=words.device)
    assert w.scales is not None
    scales = marlin_moe_permute_scales(w.scales.transpose(1, 2).contiguous(), 2 * half, rows, 128)
    return ops.gptq_marlin_moe_repack(words, none, 2 * half, rows, 4), scales


def layer(case: Case) -> Any:
    w13, w2, how = case.w13, case.w2, {}
    facts = types.SimpleNamespace(
        params_dtype=torch.bfloat16, num_experts=case.layer.experts,
        hidden_size=case.layer.hidden, intermediate_size_per_partition=case.layer.inner)
    bias13, bias2 = case.bias13, case.bias2
    if case.kind == "int4-bf16":
        if bias13 is not None:
            raise NotImplementedError("no engine has int4 weights with biases")
        (codes13, scales13), (codes2, scales2) = _int4(w13), _int4(w2)
        kind = scalar_types.uint4b8
    elif case.kind == "nvf4-bf16":
        if bias13 is not None:
            raise NotImplementedError("no engine has NVFP4 weights with biases")
        codes13, scales13, factor13, codes2, scales2, factor2 = prepare_nvfp4_moe_layer_for_marlin(
            facts, w13.codes, w13.scales, w13.factor, w2.codes, w2.scales, w2.factor,
            is_act_and_mul=True)
        how = {"global_scale1": factor13, "global_scale2": factor2}
        kind = scalar_types.float4_e2m1f
    else:
        codes13, codes2, scales13, scales2, bias13, bias2 = prepare_moe_mxfp4_layer_for_marlin(
            facts, w13.codes, w2.codes, w13.scales, w2.scales, bias13, bias2)
        kind = scalar_types.float4_e2m1f
    if case.layer.gpt_oss:
        how |= {"clamp_limit": LIMIT, "gemm1_alpha": ALPHA, "gemm1_beta": 1.0}
    workspace = marlin_make_workspace_new(codes13.device, 4)
    activation = activation_of(case.layer)
    return lambda x, ids, weights: fused_marlin_moe(
        x, codes13, codes2, bias13, bias2, scales13, scales2, weights, ids, kind.id,
        global_num_experts=case.layer.experts, activation=activation, workspace=workspace, **how)


def dense(case: DenseCase) -> Any:
    w, n, k = case.w, case.layer.n, case.layer.k
    if case.kind == "int4-bf16":
        codes, scales = _int4(w)
        none = marlin_make_empty_g_idx(codes.device)
        workspace = marlin_make_workspace_new(codes.device)
        return lambda x: apply_gptq_marlin_linear(
            x, codes[0], scales[0], none, none, none, workspace, scalar_types.uint4b8, n, k, True)
    assert w.scales is not None
    facts = types.SimpleNamespace(
        weight=w.codes[0], weight_scale=w.scales[0], output_size_per_partition=n,
        input_size_per_partition=k, params_dtype=torch.bfloat16)
    if w.factor is not None:
        facts.weight_global_scale = w.factor[0]
    prepare_fp4_layer_for_marlin(facts)
    return lambda x: apply_fp4_marlin_linear(
        x, facts.weight, facts.weight_scale, getattr(facts, "weight_global_scale", None),
        facts.workspace, n, k)
