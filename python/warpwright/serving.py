"""A layer of experts as an engine keeps it, for plug-ins: warpwright-vllm and warpwright-sglang.

    weights = serving.fp8(w13, w2, scale13, scale2, block=(128, 128))
    experts = serving.Experts(weights, "silu", top_k=8)  # raises Refusal where it is not served
    experts(out, x, topk_ids, topk_weights, expert_map)

The functions below read what a loader leaves in memory: w13 is experts x 2 inner x hidden, w2 is
experts x hidden x inner, with their scales. What a layer needs is asked of the library: whatever
`plan_moe` refuses raises its Refusal, before a weight is packed or a tensor of the layer touched.
"""
from __future__ import annotations

import dataclasses
import functools
import logging
from typing import Any, Callable

from ._core import Workspace, moe, plan_moe, version
from ._experts import _ACTIVATIONS, _local, _refuse, _routed, block_of
from ._fp4 import pack_fp4_checkpoint
from ._interop import Refusal, Spec, dtype_name
from ._prepare import PackedWeights, pack_int4_checkpoint

__all__ = ["Experts", "Lines", "Refusal", "Weights", "block_of", "dense16", "fp4", "fp8", "gate_of",
           "int4", "place_of", "token_word"]


class Lines:
    """What an engine's log says of us, each line once."""

    def __init__(self, log: logging.Logger, engine: str) -> None:
        self.log, self.engine = log, engine
        self.said: set[str] = set()

    def say(self, line: str) -> None:
        if line not in self.said:
            self.said.add(line)
            self.log.info("%s", line)

    def serves(self, what: str) -> None:
        self.say(f"Warpwright {version} serves {what}")

    def leaves(self, what: str, reason: Any) -> None:
        self.say(f"Warpwright leaves {what} to {self.engine}: {reason}")


@dataclasses.dataclass(frozen=True)
class Weights:
    """Both weights of a layer, and what `moe` must be told of them."""

    what: str  #: in a few words, for a log
    place: Any  #: a tensor of the layer
    w13: Any  #: a tensor, or PackedWeights without memory where `pack` makes those with
    w2: Any
    how: dict[str, Any] = dataclasses.field(default_factory=dict)
    pack: Callable[[], tuple[Any, Any, dict[str, Any]]] | None = None
    turned: bool = False  #: rows of gates and ups lay in turns, and are put into halves by `pack`

    @property
    def experts(self) -> int:
        return int(self.w13.shape[0])

    @property
    def hidden(self) -> int:
        return int(self.w2.shape[1])

    @property
    def inner(self) -> int:
        return int(self.w2.shape[2])


def place_of(tensor: Any, on_model: bool = False) -> str:
    """Where a layer lies, in the words of `plan`; in host memory only if `on_model` says so."""
    device = tensor.device
    if device.type == "cuda":
        return f"cuda:{device.index or 0}"
    if not on_model:
        _refuse(f"the layer lies on {device.type}; the nearest served is a CUDA device",
                code="wrong_device")
    return "model"


def token_word(dtype: Any) -> str:
    """"bf16" or "fp16", as encodings of packed weights end."""
    name = dtype_name(dtype)
    if name not in ("bfloat16", "float16"):
        _refuse(f"tokens are {name}; the nearest legal is bfloat16", "x", "bad_type")
    return "bf16" if name == "bfloat16" else "fp16"


def gate_of(activation: str, limit: float | None = None, alpha: float | None = None,
            beta: float | None = None) -> dict[str, Any]:
    """An engine's word for the gate, and its numbers, as `moe` takes them. A word that is not known
    here goes on to the library, which says what it has."""
    if activation == "gelu_no_mul":
        _refuse("activation is gelu_no_mul, by the error function without a gate; the nearest is "
                "gelu_tanh_no_mul")
    word, places = _ACTIVATIONS.get(activation, (activation, "halves"))
    gate = {"activation": word, "gate_limit": limit}
    if places is None:
        return gate | {"gated": False}
    if word == "swiglu_oai":
        if activation == "swigluoai_uninterleave":
            alpha, beta = (1.0 if alpha is None else alpha), (0.0 if beta is None else beta)
        gate |= {"gate_alpha": alpha, "gate_beta": beta}
    return gate | {"gate_up": places}


def dense16(w13: Any, w2: Any) -> Weights:
    """Weights of 16 bits."""
    return Weights(dtype_name(w13.dtype), w13, w13, w2)


def fp8(w13: Any, w2: Any, scale13: Any, scale2: Any, block: Any = None) -> Weights:
    """float8_e4m3fn weights with factors: of blocks of 128 x 128, 64 x 64 or 32 x 32;
    or experts x rows (x 1), experts x 2 (gates, ups), or one an expert, which each of its rows has
    then. Nothing is quantised anew."""
    if block is not None:
        block_of(block, "the weights' blocks are")
        return Weights("e4m3 in blocks", w13, w13, w2,
                       {"scaling": "blockwise", "scale_w13": scale13, "scale_w2": scale2})
    return Weights("e4m3 by rows", w13, w13, w2,
                   {"scaling": "row_column", "scale_w13": _of_rows(scale13, w13),
                    "scale_w2": _of_rows(scale2, w2)})


def _of_rows(scale: Any, weights: Any) -> Any:
    """A factor for each row of each expert, from one for each of equal parts of the rows."""
    experts, rows = weights.shape[:2]
    parts = scale.reshape(experts, -1)
    each = rows // parts.shape[1] if parts.shape[1] else 0
    if each * parts.shape[1] != rows:
        _refuse(f"the weights' factors are {tuple(scale.shape)}; they are one for each of "
                f"{experts} experts, or for each of its {rows} rows", "scale", "bad_shape")
    return parts if each == 1 else parts.repeat_interleave(each, 1)


def _in_halves(tensor: Any) -> Any:
    """Rows of gates and ups in turns, as those of all gates and then of all ups."""
    experts, rows, *rest = tensor.shape
    return tensor.reshape(experts, rows // 2, 2, *rest).swapaxes(1, 2).reshape(tensor.shape)


def fp4(layout: str, codes13: Any, codes2: Any, scales13: Any, scales2: Any,
        factor13: Any = None, factor2: Any = None, *, tokens: str = "bf16",
        interleaved: bool = False) -> Weights:
    """mxf4 or nvf4 weights, for tokens of 16 bits: codes experts x rows x K/2, scales experts x
    rows x K/32 or K/16; for nvf4 factors of experts, or of gates and ups (experts x 2). They are
    packed as the library's tiles are, with gates above ups."""
    is_nvf4 = layout.endswith("nvfp4")
    encoding = f"{'nvf4' if is_nvf4 else 'mxf4'}-{tokens}"
    specs = [PackedWeights.spec(codes.shape[1], codes.shape[2] * 2, codes.shape[0],
                                encoding=encoding)  # type: ignore[arg-type]
             for codes in (codes13, codes2)]
    how: dict[str, Any] = {}
    if is_nvf4:
        how = {"scale_w13": _of_rows(_factors(layout, factor13), codes13),
               "scale_w2": _of_rows(_factors(layout, factor2), codes2)}

    def pack() -> tuple[Any, Any, dict[str, Any]]:
        codes, scales = (map(_in_halves, (codes13, scales13)) if interleaved
                         else (codes13, scales13))
        # The factors go beside the weights: those of gates and ups may differ.
        one = None if not is_nvf4 else _ones(codes13)
        return (pack_fp4_checkpoint(layout, codes, scales, one,  # type: ignore[arg-type]
                                    encoding=encoding),  # type: ignore[arg-type]
                pack_fp4_checkpoint(layout, codes2, scales2, one,  # type: ignore[arg-type]
                                    encoding=encoding), how)  # type: ignore[arg-type]
    return Weights(encoding, codes13, specs[0], specs[1], how, pack, interleaved)


def _factors(layout: str, factors: Any) -> Any:
    """What codes are multiplied by: compressed-tensors has divisors."""
    return 1.0 / factors if layout.startswith("compressed-tensors") else factors


def _ones(like: Any) -> Any:
    import torch
    return torch.ones(like.shape[0], dtype=torch.float32)


def int4(layout: str, codes13: Any, codes2: Any, scales13: Any, scales2: Any, zeros13: Any = None,
         zeros2: Any = None, *, tokens: str = "bf16") -> Weights:
    """int4 weights, for tokens of 16 bits, as `pack_int4_checkpoint` takes them, or with layout
    "compressed-tensors-turned" those whose tensors lie K first: codes experts x K/8 x rows, scales
    experts x K/group x rows, zero points experts x K/group x rows/8."""
    given = [codes13, codes2, scales13, scales2, zeros13, zeros2]
    if layout.endswith("-turned"):
        layout = layout.removesuffix("-turned")
        given = [None if t is None else t.swapaxes(1, 2) for t in given]
    if layout == "awq":
        shapes = [(t.shape[2] * 8, t.shape[1]) for t in given[:2]]
        groups = [t.shape[1] for t in given[2:4]]
    else:
        shapes = [(t.shape[1], t.shape[2] * 8) for t in given[:2]]
        groups = [t.shape[2] for t in given[2:4]]
    encoding = f"ex-{tokens}"
    scale_type = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}.get(
        dtype_name(scales13.dtype), dtype_name(scales13.dtype))
    specs = [PackedWeights.spec(n, k, codes13.shape[0], group=k // max(1, count),
                                encoding=encoding,  # type: ignore[arg-type]
                                scales=scale_type,  # type: ignore[arg-type]
                                zero_points=zeros13 is not None)
             for (n, k), count in zip(shapes, groups)]

    def pack() -> tuple[Any, Any, dict[str, Any]]:
        one, two = (pack_int4_checkpoint(
            layout, _whole(given[i]), _whole(given[i + 2]),  # type: ignore[arg-type]
            None if given[i + 4] is None else _whole(given[i + 4]),
            encoding=encoding) for i in (0, 1))  # type: ignore[arg-type]
        return one, two, {}
    return Weights(f"int4 in groups of {specs[0].group}", codes13, specs[0], specs[1], {}, pack)


def _whole(tensor: Any) -> Any:
    return tensor.contiguous()


class Experts:
    """A layer that is served: `experts(out, x, topk_ids, topk_weights)`.

    weights   of dense16, fp8, fp4 or int4
    activation, limit, alpha, beta   the engine's word and numbers of the gate
    top_k     experts a token
    tokens    the tokens' type
    device    where the layer lies, as for plan: "cuda:0", "model"
    total     experts of all ranks
    more      arguments of `moe` that a layer has once for all: routed_scaling_factor,
              apply_router_weight_on_input
    """

    def __init__(self, weights: Weights, activation: str, *, top_k: int, tokens: Any = "bfloat16",
                 limit: float | None = None, alpha: float | None = None,
                 beta: float | None = None, bias13: Any = None, bias2: Any = None,
                 total: int | None = None, device: str | None = None,
                 batch_invariant: bool = False, **more: Any) -> None:
        gate = gate_of(activation, limit, alpha, beta)
        if weights.turned:  # made into halves as they are packed
            gate["gate_up"] = "halves"
            bias13 = None if bias13 is None else _in_halves(bias13)
        self.weights = weights
        self.count = weights.experts
        self.how = {**gate, **weights.how, "bias13": bias13, "bias2": bias2,
                    "experts_total": max(self.count, total or 0),
                    "batch_invariant": batch_invariant, **more}
        how = {name: _spec(value) for name, value in self.how.items()}
        token_type, hidden = dtype_name(tokens), weights.hidden
        specs = _spec(weights.w13), _spec(weights.w2)

        @functools.cache
        def plan(count: int) -> Any:
            ids, by = Spec((count, top_k), "int32"), Spec((count, top_k), "float32")
            return plan_moe(Spec((count, hidden), token_type), ids, by, *specs,
                            device=device, **how)
        self.plan_of = plan
        for count in (1, 4096):
            self.plan = plan(count)
        self.w13, self.w2 = weights.w13, weights.w2
        #: Are the weights copies in a form of their own?
        self.packed = weights.pack is not None
        if weights.pack is not None:
            self.w13, self.w2, more = weights.pack()
            self.how.update(more)
            # What they were made of is the engine's to let go.
            self.weights = dataclasses.replace(weights, place=None, pack=None)
        self.line = (f"{self.count} experts of {weights.hidden} x {weights.inner}, {weights.what}, "
                     f"{gate['activation']}, top-{top_k}")

    def workspace_bytes(self, tokens: int) -> int:
        """Bytes of a tensor that serves as the workspace of a call with so many tokens, wherever
        it begins."""
        return int(self.plan_of(tokens).workspace_bytes) + 256

    def __call__(self, out: Any, x: Any, topk_ids: Any, topk_weights: Any,
                 expert_map: Any = None, workspace: Any = None) -> None:
        """`workspace`: a tensor of the engine's, of workspace_bytes of any content; without it, or
        where it is too small for this call, the stream keeps one of its own."""
        if expert_map is not None:
            topk_ids = _local(topk_ids, expert_map, -1, self.count)
        tensors = (*_routed(x, topk_ids, topk_weights), self.w13, self.w2)
        if workspace is not None and workspace.numel() > 0:
            try:
                moe(*tensors, out=out, workspace=Workspace(workspace), **self.how)
                return
            except Refusal as refusal:
                if refusal.code != "bad_workspace":
                    raise
        moe(*tensors, out=out, **self.how)


def _spec(value: Any) -> Any:
    """A tensor without its memory; what is none as it is."""
    if isinstance(value, PackedWeights) or not hasattr(value, "shape"):
        return value
    return Spec(tuple(value.shape), value.dtype, tuple(value.stride()))
