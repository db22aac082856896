"""Warpwright, from PYTHONPATH: weights are packed once, where they lie."""
from __future__ import annotations

import dataclasses
from typing import Any

import torch
from cases import ALPHA, LIMIT, Case, DenseCase, Packed

import warpwright as wp

NAME = "ours"
KINDS = ("bf16", "e4m3-block", "mxf4-bf16", "mxf4-e4m3", "nvf4-bf16", "int4-bf16")
DENSE = KINDS
CPU = True  # on the model


def version() -> str:
    return f"warpwright {wp.__version__}"


def packed_weight(kind: str, w: Packed) -> Any:
    if kind == "bf16":
        return w.codes
    if kind == "int4-bf16":
        words = w.codes.contiguous().view(torch.int32)
        return wp.pack_int4_checkpoint("compressed-tensors", words, w.scales, encoding="ex-bf16")
    if kind == "nvf4-bf16":
        return wp.pack_fp4_checkpoint("modelopt-nvfp4", w.codes, w.scales, w.factor,
                                      encoding="nvf4-bf16")
    return wp.pack_fp4_checkpoint("compressed-tensors-mxfp4", w.codes, w.scales,
                                  encoding="mxf4" if kind == "mxf4-e4m3" else kind)


def one_matrix(w: Packed) -> Packed:
    return dataclasses.replace(w, codes=w.codes[0],
                               scales=None if w.scales is None else w.scales[0])


def in_halves(case: Case) -> Case:
    """Rows of gate and up in turns as all gates, then all ups: packed weights lie so."""
    def ordered(rows: Any) -> Any:
        return torch.cat((rows[:, ::2], rows[:, 1::2]), 1)
    w13 = dataclasses.replace(case.w13, codes=ordered(case.w13.codes),
                              scales=ordered(case.w13.scales))
    return dataclasses.replace(case, w13=w13, bias13=ordered(case.bias13))


def layer(case: Case) -> Any:
    how: dict[str, Any] = {}
    halves = case.layer.gpt_oss and case.kind not in ("bf16", "e4m3-block")
    if halves:
        case = in_halves(case)
    if case.layer.gpt_oss:
        how = {"activation": "swiglu_oai", "gate_up": "halves" if halves else "interleaved",
               "gate_limit": LIMIT, "gate_alpha": ALPHA,
               "bias13": case.bias13, "bias2": case.bias2}
    if case.kind == "e4m3-block":
        how |= {"scaling": "blockwise", "scale_w13": case.w13.scales, "scale_w2": case.w2.scales}
        w13, w2 = case.w13.codes, case.w2.codes
    else:
        w13, w2 = packed_weight(case.kind, case.w13), packed_weight(case.kind, case.w2)
        if case.w13.factor is not None and case.w2.factor is not None:
            how |= {"scale_w13": case.w13.factor, "scale_w2": case.w2.factor}
    return lambda x, ids, weights: wp.moe(x, ids, weights, w13, w2, **how)


def dense(case: DenseCase) -> Any:
    if case.kind == "bf16":
        w = case.w.codes[0]
        return lambda x: wp.gemm(x, w)
    if case.kind == "e4m3-block":
        assert case.w.scales is not None
        w, scales = case.w.codes[0], case.w.scales[0]

        def blocks(x: torch.Tensor) -> torch.Tensor:
            codes, scale = wp.quantise(x, "blockwise")
            return wp.gemm(codes, w, scale_a=scale, scale_b=scales, scaling="blockwise",
                           dtype="bf16")
        return blocks
    packed = packed_weight(case.kind, one_matrix(case.w))
    if case.tokens_type == "bf16":
        return lambda x: wp.gemm(x, packed)

    def rows(x: torch.Tensor) -> torch.Tensor:
        codes, scale = wp.quantise(x, "row_column")
        return wp.gemm(codes, packed, scale_a=scale, dtype="bf16")
    return rows
