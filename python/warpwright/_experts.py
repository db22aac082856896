"""The mixture of experts as servers call it: `fused_experts`, with vLLM's argument names."""
from __future__ import annotations

from typing import Any

from . import _core
from ._interop import Refusal, dtype_name

# Words of servers for the activation, and how gate and up lie in their weights.
_ACTIVATIONS = {"silu": ("silu", "halves"), "gelu": ("gelu_erf", "halves"),
                "gelu_tanh": ("gelu", "halves"),
                "swigluoai": ("swiglu_oai", "interleaved"),
                "swiglu_oai": ("swiglu_oai", "interleaved"),
                "swigluoai_uninterleave": ("swiglu_oai", "halves"),
                # Without a gate.
                "silu_no_mul": ("silu", None), "gelu_tanh_no_mul": ("gelu", None),
                "relu2_no_mul": ("relu2", None)}


def _rows(x: Any) -> Any:
    """x, or a copy of it, with the elements of a row side by side."""
    return x if x.shape[-1] < 2 or x.stride(-1) == 1 else x.contiguous()


def _routed(x: Any, ids: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Tokens and what a router says of them, in layouts and types that the library takes."""
    if dtype_name(ids.dtype) not in ("int32", "int64"):
        import torch
        ids = ids.to(dtype=torch.int32)
    if dtype_name(weights.dtype) not in ("float32", "bfloat16", "float16"):
        weights = weights.float()
    return _rows(x), _rows(ids), _rows(weights)


def mixture(x: Any, ids: Any, weights: Any, w13: Any, w2: Any, *, out: Any = None,
            **how: Any) -> Any:
    """torch.ops.warpwright.moe, or moe_out, of tensors of PyTorch's of any layout, with ids of any
    integers and weights of any floats."""
    import torch

    from . import torch as _  # noqa: F401  the operators
    tensors = (*_routed(x, ids, weights), w13, w2)
    if out is None:
        return torch.ops.warpwright.moe(*tensors, **how)
    torch.ops.warpwright.moe_out(*tensors, out, **how)
    return out


def mlp(x: Any, w13: Any, w2: Any, **how: Any) -> Any:
    """The MLP of a dense model in one call: d = activation(gate) * up @ w2.T, of x @ w13.T, whose
    first half is the gate (as ``gate_up`` says), and whose second half is up.

    x    T x H of bf16, f16, or e4m3 with scale_x.
    w13  2I x H, or I x H where ``gated`` is False; w2  H x I; both of x's type, e4m3 with scale_w13
         and scale_w2 (tokens are quantised by the call then), or PackedWeights. A dimension of 1 in
         front of them, their scales and biases is legal.

    It is ``moe`` of one expert without a router, with all of its keywords but what a router says:
    ``plan_moe(x, None, None, w13, w2)`` is its plan. Returns d, T x H, or ``out``. Raises
    Refusal."""
    return _core.moe(x, None, None, w13, w2, **how)


def _refuse(what: str, tensor: str = "", code: str = "unsupported") -> None:
    raise Refusal(what, code, tensor)


def block_of(block: Any, what: str) -> int:
    """The rows, and K, of a square block of scales that is served."""
    sizes = [int(size) for size in block]
    nearest = min((128, 64, 32), key=lambda size: sum(abs(size - its) for its in sizes))
    if sizes != [nearest, nearest]:
        _refuse(f"{what} {list(block)}; the nearest legal is [{nearest}, {nearest}]")
    return nearest


def _no_integers(tensor: Any) -> bool:
    import torch
    return bool(tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


def _check_shapes(x: Any, w1: Any, w2: Any, weights: Any, ids: Any, parts: int) -> None:
    if x.dim() != 2 or w1.dim() != 3 or w2.dim() != 3:
        _refuse(f"hidden_states, w1 and w2 have {x.dim()}, {w1.dim()} and {w2.dim()} dimensions; "
                "they are tokens x hidden, experts x 2 inner x hidden (without a gate inner) and "
                "experts x hidden x inner",
                code="bad_shape")
    experts, rows, hidden = w1.shape
    if rows % parts != 0 or hidden != x.shape[1] \
            or tuple(w2.shape) != (experts, x.shape[1], rows // parts):
        _refuse(f"hidden_states is {tuple(x.shape)}, w1 {tuple(w1.shape)} and w2 "
                f"{tuple(w2.shape)}; w1 is experts x {'2 ' if parts == 2 else ''}inner x "
                f"{x.shape[1]}, and w2 is experts x {x.shape[1]} x inner", "w2", "bad_shape")
    if ids.dim() != 2 or ids.shape[0] != x.shape[0] or ids.shape != weights.shape:
        _refuse(f"topk_ids is {tuple(ids.shape)} and topk_weights {tuple(weights.shape)}; both are "
                f"{x.shape[0]} x top-k", "topk_ids", "bad_shape")
    if _no_integers(ids):
        _refuse(f"topk_ids is {ids.dtype}; the nearest legal is int32", "topk_ids", "bad_type")


def _local(ids: Any, expert_map: Any, total: int, experts: int) -> Any:
    """The numbers of this rank's experts, and -1 for others: no value is read on the host."""
    import torch
    if expert_map is None:
        if total not in (-1, experts):
            _refuse(f"global_num_experts is {total}, w1 has {experts} experts, and no expert_map "
                    "says which of all they are: give one, or leave global_num_experts out")
        return ids
    if expert_map.dim() != 1 or total not in (-1, expert_map.shape[0]):
        _refuse(f"expert_map is {tuple(expert_map.shape)}; it has a number for each of all experts"
                + (f", {total}" if total != -1 else ""), "expert_map", "bad_shape")
    if _no_integers(expert_map):
        _refuse(f"expert_map is {expert_map.dtype}; the nearest legal is int32", "expert_map",
                "bad_type")
    known = (ids >= 0) & (ids < expert_map.shape[0])
    return torch.where(known, expert_map[torch.where(known, ids, 0).long()].to(torch.int32), -1)


def _scaling_of(w1: Any, w2: Any, fp8: bool, scales: tuple[Any, Any], block: Any) -> \
        tuple[str, tuple[Any, Any]]:
    if not fp8:
        if scales != (None, None):
            _refuse("w1_scale or w2_scale is given and use_fp8_w8a8 is False; only weights of "
                    "float8_e4m3fn have scales here", "w1_scale")
        if block is not None:
            _refuse("block_shape is given and use_fp8_w8a8 is False, so no scale has a block: "
                    "leave it out")
        return "none", scales
    for name, w, scale in (("w1", w1, scales[0]), ("w2", w2, scales[1])):
        if str(w.dtype) != "torch.float8_e4m3fn":
            _refuse(f"{name} is {w.dtype} and use_fp8_w8a8 is True; the nearest legal is "
                    "float8_e4m3fn", name, "bad_type")
        if scale is None:
            _refuse(f"{name}_scale is not given and use_fp8_w8a8 is True", f"{name}_scale",
                    "bad_pointer")
    if block is not None:
        block_of(block, "block_shape is")
        return "blockwise", scales
    # One scale an expert serves all of its rows.
    rows = tuple(scale.reshape(w.shape[0], -1).expand(w.shape[0], w.shape[1])
                 for w, scale in ((w1, scales[0]), (w2, scales[1])))
    return "row_column", rows


def fused_experts(hidden_states: Any, w1: Any, w2: Any, topk_weights: Any, topk_ids: Any,
                  inplace: bool = False, activation: str = "silu",
                  apply_router_weight_on_input: bool = False, use_fp8_w8a8: bool = False,
                  per_channel_quant: bool = False, global_num_experts: int = -1,
                  expert_map: Any = None, w1_scale: Any = None, w2_scale: Any = None,
                  block_shape: Any = None, w1_bias: Any = None, w2_bias: Any = None,
                  gate_up: str | None = None, clamp_limit: float | None = None,
                  a1_scale: Any = None, routed_scaling_factor: float = 1.0,
                  shared_output: Any = None, **others: Any) -> Any:
    """A layer of experts with vLLM's argument names, for PyTorch's tensors; returns tokens x hidden
    of hidden_states' type.

    hidden_states   tokens x hidden, bf16
    w1, w2          experts x 2 inner x hidden (gate and up), and experts x hidden x inner
    topk_weights, topk_ids   tokens x top-k; slots whose id is -1, or no expert's, are left out
    inplace         the result takes hidden_states' place
    activation      'silu', 'gelu' (by the error function), 'gelu_tanh' or
                    'swigluoai_uninterleave', gate above up; 'swigluoai', as gpt-oss has it, rows of
                    both in turns; 'silu_no_mul', 'gelu_tanh_no_mul' or
                    'relu2_no_mul' without a gate: w1 is experts x inner x hidden
    apply_router_weight_on_input   for top-1: hidden_states times topk_weights is what experts take
    a1_scale        of hidden_states that are float8_e4m3fn already: tokens x 1 or 1, or with
                    block_shape tokens x hidden / block; the result is bfloat16 then
    routed_scaling_factor   multiplied to topk_weights
    shared_output   tokens x hidden, added to the result
    gate_up         'halves' or 'interleaved', where that is otherwise
    clamp_limit     of the gate from above and of up from both sides, as DeepSeek-V4's 10; default:
                    none for 'silu', 7 for 'swigluoai'
    use_fp8_w8a8    weights of float8_e4m3fn, with w1_scale and w2_scale: for blocks with
                    block_shape=[128, 128], [64, 64] or [32, 32], for rows with per_channel_quant,
                    else one an expert. Tokens are quantised here, by 1 x block or by row
    expert_map      for each of global_num_experts experts its number here, or -1; any order
    w1_bias, w2_bias   experts x 2 inner, experts x hidden

    Nothing is read on the host. Other arguments of vLLM's, such as use_int4_w4a16 or a2_scale,
    raise Refusal unless they are None, False or 0.
    """
    import torch
    for name, value in others.items():
        if isinstance(value, torch.Tensor) or value:
            _refuse(f"{name} is given; this call does not serve it: leave it out")
    if activation not in _ACTIVATIONS:
        _refuse(f"activation is {activation!r}; it is one of "
                f"{', '.join(map(repr, _ACTIVATIONS))}", code="bad_value")
    function, places = _ACTIVATIONS[activation]
    _check_shapes(hidden_states, w1, w2, topk_weights, topk_ids, 2 if places else 1)
    scaling, scales = _scaling_of(w1, w2, use_fp8_w8a8, (w1_scale, w2_scale), block_shape)
    if per_channel_quant and scaling != "row_column":
        _refuse("per_channel_quant is True, and the weights' scales are not of rows: leave it out")
    ids = _local(topk_ids, expert_map, global_num_experts, w1.shape[0])
    # As far as a plan cares: how many experts all ranks have.
    total = w1.shape[0] if expert_map is None else max(w1.shape[0], expert_map.shape[0])
    in_place = inplace and a1_scale is None and _rows(hidden_states) is hidden_states
    if inplace and a1_scale is not None:
        _refuse("inplace is True and hidden_states are codes; the result is bfloat16: leave it out")
    made = mixture(hidden_states, ids, topk_weights, w1, w2, activation=function,
                   gated=places is not None, gate_up=gate_up or places or "halves",
                   apply_router_weight_on_input=apply_router_weight_on_input, scale_x=a1_scale,
                   routed_scaling_factor=routed_scaling_factor, shared_output=shared_output,
                   gate_limit=clamp_limit, scaling=scaling,
                   scale_w13=scales[0], scale_w2=scales[1], bias13=w1_bias, bias2=w2_bias,
                   experts_total=total, out=hidden_states if in_place else None)
    return hidden_states.copy_(made) if inplace and not in_place else made
