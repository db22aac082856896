"""humming (PyPI: humming-kernels), vLLM's default for 4-bit weights on Hopper: sort by vLLM's
kernel, its indexed products, gate and quantising in its one launch, the sum by vLLM's kernel."""
from __future__ import annotations

import dataclasses
import importlib.metadata
from typing import Any

import torch
from cases import ALPHA, LIMIT, Case, DenseCase, Packed
from engine import version as engine_version
from humming.forward import humming_forward, may_process_input
from humming.layer import HummingLayer
from humming.tune import get_heuristics_config
from vllm.model_executor.layers.fused_moe.moe_align_block_size import moe_align_block_size
from vllm.model_executor.layers.fused_moe.moe_fused_mul_sum import moe_fused_mul_sum

NAME = "humming"
KINDS = DENSE = ("e4m3-block", "mxf4-bf16", "mxf4-e4m3", "nvf4-bf16", "int4-bf16")
WEIGHTS: dict[str, dict[str, Any]] = {
    "e4m3-block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    "mxf4-bf16": {"quant_method": "mxfp4"}, "mxf4-e4m3": {"quant_method": "mxfp4"},
    "nvf4-bf16": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "int4-bf16": {"quant_method": "compressed-tensors", "format": "pack-quantized", "type": "int",
                  "num_bits": 4, "strategy": "group", "group_size": 128}}
# Tokens of 8 bits: e4m3 with scales of 128, or for MXFP4 weights of a token, as vLLM pairs them.
TOKENS: dict[str, dict[str, Any]] = {"e4m3-block": {"dtype": "float8e4m3", "group_size": 128},
                                     "mxf4-e4m3": {"dtype": "float8e4m3"}}
GATES = {"silu": {"activation_type": "binary_split", "activation_impl": "a / (1.f + expf(-a)) * b"},
         "swiglu_oai": {"activation_type": "binary_interleaved", "activation_impl":
                        f"fminf(a, {LIMIT}f) / (1.f + expf(-{ALPHA}f * fminf(a, {LIMIT}f)))"
                        f" * (fmaxf(fminf(b, {LIMIT}f), -{LIMIT}f) + 1.f)"}}


def version() -> str:
    return f"humming-kernels {importlib.metadata.version('humming-kernels')}, {engine_version()}"


def _tensors(kind: str, w: Packed, bias: torch.Tensor | None) -> dict[str, torch.Tensor]:
    assert w.scales is not None
    if kind == "e4m3-block":
        made = {"weight": w.codes, "weight_scale_inv": w.scales}
    elif kind == "int4-bf16":
        made = {"weight_packed": w.codes.contiguous().view(torch.int32), "weight_scale": w.scales}
    else:
        made = {"weight": w.codes, "weight_scale": w.scales}
        if w.factor is not None:
            made["weight_scale_2"] = w.factor
    return made if bias is None else made | {"bias": bias}


def _half(case: Case | DenseCase, w: Packed, bias: torch.Tensor | None, rows: int, depth: int,
          experts: int | None) -> HummingLayer:
    made = HummingLayer(shape_n=rows, shape_k=depth, weight_config=dict(WEIGHTS[case.kind]),
                        input_config=dict(TOKENS.get(case.kind, {})),
                        num_experts=experts, has_bias=bias is not None,
                        pad_n_to_multiple=256, pad_k_to_multiple=128,  # as vLLM has it
                        torch_dtype=torch.bfloat16).to(case.device)
    made.load_from_tensors(_tensors(case.kind, w, bias))
    made.transform()
    return made


def layer(case: Case) -> Any:
    hidden, inner, top = case.layer.hidden, case.layer.inner, case.layer.top_k
    experts = case.layer.experts
    halves = [_half(case, case.w13, case.bias13, 2 * inner, hidden, experts),
              _half(case, case.w2, case.bias2, hidden, inner, experts)]
    tuning = [get_heuristics_config(layer_config=half.humming_config, gemm_type="indexed")
              for half in halves]

    def block_of(which: int, slots: int) -> int:
        return next((config["block_shape"][0] for low, high, config in tuning[which]
                     if low < slots <= high), 64)

    def product(which: int, x: torch.Tensor, slots: int, count: int, sort: Any,
                gate: dict[str, str]) -> torch.Tensor:
        half = halves[which]
        codes, groups, tokens = may_process_input(half.humming_config, inputs=x, **gate)
        out = torch.empty(slots, half.shape_n, device=x.device, dtype=torch.bfloat16)
        return humming_forward(
            half.humming_config, inputs=codes, outputs=out, weight=half.weight,
            weight_scale=getattr(half, "weight_scale", None), bias=getattr(half, "bias", None),
            weight_scale_2=getattr(half, "weight_scale_2", None),
            input_scale=groups if groups is not None else tokens, locks=half.locks,
            sorted_ids=sort[0], expert_ids=sort[1], num_tokens_padded=sort[2], top_k=count,
            valid_shape_m=slots, compute_config={"gemm_type": "indexed"},
            tuning_config=tuning[which])

    def step(x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        slots = ids.numel()
        blocks = [block_of(which, slots) for which in (0, 1)]
        sorts = [moe_align_block_size(ids, blocks[0], experts)]
        sorts.append(sorts[0] if blocks[0] == blocks[1] else
                     moe_align_block_size(ids, blocks[1], experts))
        rows = product(0, x, slots, top, sorts[0], {})
        rows = product(1, rows, slots, 1, sorts[1], GATES[case.layer.gate])
        return moe_fused_mul_sum(rows.view(*ids.shape, hidden), weights, torch.empty_like(x))
    return step


def dense(case: DenseCase) -> Any:
    scales = None if case.w.scales is None else case.w.scales[0]
    one = dataclasses.replace(case.w, codes=case.w.codes[0], scales=scales)
    made = _half(case, one, None, case.layer.n, case.layer.k, None)
    tuning = get_heuristics_config(layer_config=made.humming_config, gemm_type="dense")
    return lambda x: made(x, valid_shape_m=x.shape[0], compute_config={"gemm_type": "dense"},
                          tuning_config=tuning)
