"""Layers of experts and dense products that all peers get alike: shapes, weights, ids and what a
right result is.

Weights are drawn once by a seed and quantised once; every peer has the same codes and scales, and
the reference multiplies what they stand for in float64.
"""
from __future__ import annotations

import dataclasses
import functools
from typing import Any, Callable

import torch

# As `warpwright bench moe --model` has them: experts, top-k, hidden, inner; and the layer's gate.
LAYERS = {"qwen3-30b": (128, 8, 2048, 768, "silu"), "mixtral": (8, 2, 4096, 14336, "silu"),
          "qwen3-235b": (128, 8, 4096, 1536, "silu"), "deepseek-v3": (256, 8, 7168, 2048, "silu"),
          "gpt-oss-120b": (128, 4, 2880, 2880, "swiglu_oai")}
# Numbers of the gate of gpt-oss: gate and up in turns, with biases.
ALPHA, LIMIT = 1.702, 7.0


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer of experts; the gate "swiglu_oai" has rows of gate and up in turns, and biases."""
    name: str
    experts: int
    top_k: int
    hidden: int
    inner: int
    gate: str

    @property
    def gpt_oss(self) -> bool:
        return self.gate == "swiglu_oai"


@dataclasses.dataclass(frozen=True)
class Dense:
    """A product of tokens and a weight, N x K."""
    name: str
    n: int
    k: int


def layer_of(words: str) -> Layer | Dense:
    """NxK; qwen3-30b; qwen3-30b/192 with another inner, as a rank of tensor parallelism has it; or
    EXPERTSxTOPxHIDDENxINNER, and with xoai behind it gpt-oss's gate."""
    name, _, inner = words.partition("/")
    if name in LAYERS:
        experts, top, hidden, whole, gate = LAYERS[name]
        return Layer(words, experts, top, hidden, int(inner or whole), gate)
    shape = name.removesuffix("xoai")
    try:
        if name.count("x") == 1 and not inner:
            return Dense(words, *(int(word) for word in name.split("x")))
        experts, top, hidden, whole = (int(word) for word in shape.split("x"))
    except ValueError:
        raise SystemExit(f"peers: {name!r} is no layer; they are {', '.join(LAYERS)}, "
                         "EXPERTSxTOPxHIDDENxINNER with or without xoai, /INNER behind one, and "
                         "NxK for a dense product") from None
    return Layer(words, experts, top, hidden, int(inner or whole),
                 "silu" if shape == name else "swiglu_oai")


@dataclasses.dataclass(frozen=True)
class Packed:
    """A weight's codes and scales as checkpoints have them, experts x N x ..., and the values.

    codes   e4m3 N x K; 4 bits N x K/2 bytes, the first in the low half: e2m1, or int4 plus 8
    scales  e4m3: float32 of 128 x 128 blocks; MXFP4: ue8m0 bytes of 32; NVFP4: e4m3 of 16, times
            `factor` (float32, of an expert); int4: bf16 of 128
    """
    codes: torch.Tensor
    scales: torch.Tensor | None
    factor: torch.Tensor | None
    value_of: Callable[[int], torch.Tensor]  # an expert's N x K, float64


E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def e2m1_codes(values: torch.Tensor) -> torch.Tensor:
    """Codes nearest to float32 values; where two are as near, the larger."""
    middles = torch.tensor([(a + b) / 2 for a, b in zip(E2M1, E2M1[1:])], device=values.device)
    return torch.bucketize(values.abs(), middles, right=True).to(torch.uint8) \
        + (values < 0).to(torch.uint8) * 8


def e2m1_values(codes: torch.Tensor) -> torch.Tensor:
    table = torch.tensor(E2M1 + tuple(-v for v in E2M1), dtype=torch.float64, device=codes.device)
    return table[codes.long()]


def halves(codes: torch.Tensor) -> torch.Tensor:
    """Two codes a byte, the first in the low half."""
    return codes[..., ::2] | codes[..., 1::2] << 4


def wholes(packed: torch.Tensor) -> torch.Tensor:
    return torch.stack((packed & 15, packed >> 4), -1).flatten(-2)


def _e4m3(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
    rows, depth = w.shape
    across, along = -(-rows // 128), -(-depth // 128)
    padded = torch.zeros(across * 128, along * 128, device=w.device)
    padded[:rows, :depth] = w
    blocks = padded.view(across, 128, along, 128)
    scales = blocks.abs().amax((1, 3)).clamp_min(1e-12) / 448
    codes = (blocks / scales[:, None, :, None]).reshape(padded.shape)[:rows, :depth]
    return codes.to(torch.float8_e4m3fn), scales, None


def _mxf4(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
    groups = w.view(w.shape[0], -1, 32)
    power = torch.floor(torch.log2(groups.abs().amax(-1).clamp_min(2.0 ** -120))) - 2
    codes = e2m1_codes(groups / torch.exp2(power)[..., None])
    return halves(codes.view(w.shape)), (power + 127).to(torch.uint8), None


def _nvf4(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    groups = w.view(w.shape[0], -1, 16)
    most = groups.abs().amax(-1)
    factor = most.max() / (6 * 448)
    scales = (most / 6 / factor).to(torch.float8_e4m3fn)
    whole = scales.float()[..., None] * factor
    codes = e2m1_codes(torch.where(whole > 0, groups / whole, 0.0))
    return halves(codes.view(w.shape)), scales, factor


def _int4(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
    groups = w.view(w.shape[0], -1, 128)
    scales = (groups.abs().amax(-1).clamp_min(1e-12) / 7).bfloat16()
    codes = (groups / scales.float()[..., None]).round().clamp(-8, 7) + 8
    return halves(codes.to(torch.uint8).view(w.shape)), scales, None


def _value_e4m3(p: Packed, e: int) -> torch.Tensor:
    codes = p.codes[e].double()
    scales = p.scales[e].double().repeat_interleave(128, 0).repeat_interleave(128, 1)
    return codes * scales[:codes.shape[0], :codes.shape[1]]


def _value_four_bits(p: Packed, e: int) -> torch.Tensor:
    codes, scales = wholes(p.codes[e]), p.scales[e]
    if scales.dtype == torch.bfloat16:
        values, group, scales = codes.double() - 8, 128, scales.double()
    elif scales.dtype == torch.uint8:
        values, group, scales = e2m1_values(codes), 32, torch.exp2(scales.double() - 127)
    else:
        values, group, scales = e2m1_values(codes), 16, scales.double() * p.factor[e].double()
    return values * scales.repeat_interleave(group, 1)


# Kinds of weights: how they are quantised, what they stand for, and the tokens' type.
KINDS: dict[str, tuple[Any, Any, str]] = {
    "bf16": (None, None, "bf16"), "e4m3-block": (_e4m3, _value_e4m3, "e4m3"),
    "mxf4-bf16": (_mxf4, _value_four_bits, "bf16"), "mxf4-e4m3": (_mxf4, _value_four_bits, "e4m3"),
    "nvf4-bf16": (_nvf4, _value_four_bits, "bf16"), "int4-bf16": (_int4, _value_four_bits, "bf16")}


# Neighbours along K that share a scale, of which a weight has whole groups.
GROUPS = {"mxf4-bf16": 32, "mxf4-e4m3": 32, "nvf4-bf16": 16, "int4-bf16": 128}


def unfit(layer: Layer | Dense, kind: str) -> str | None:
    """Why a layer has no weights of a kind, or None."""
    group = GROUPS.get(kind, 1)
    depths = [layer.k] if isinstance(layer, Dense) else [layer.hidden, layer.inner]
    wrong = [depth for depth in depths if depth % group != 0]
    return f"K of {wrong[0]} is no multiple of its groups of {group}" if wrong else None


def drawn_weight(kind: str, experts: int, rows: int, depth: int, seed: int, device: str) -> Packed:
    quantise, value, _ = KINDS[kind]
    generator = torch.Generator(device=device).manual_seed(seed)
    made = []
    for _ in range(experts):
        w = torch.randn(rows, depth, device=device, generator=generator) * depth ** -0.5
        w = w.bfloat16()
        made.append((w, None, None) if quantise is None else quantise(w.float()))
    codes, scales, factor = (None if parts[0] is None else torch.stack(parts)
                             for parts in zip(*made))
    packed = Packed(codes, scales, factor, lambda e: codes[e].double())
    if value is not None:
        packed = dataclasses.replace(packed, value_of=functools.partial(value, packed))
    return packed


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer with its weights: what a peer makes a step of."""
    layer: Layer
    kind: str
    device: str
    w13: Packed
    w2: Packed
    bias13: torch.Tensor | None  # bf16, experts x 2 inner
    bias2: torch.Tensor | None

    @property
    def tokens_type(self) -> str:
        return KINDS[self.kind][2]


@dataclasses.dataclass(frozen=True)
class DenseCase:
    """A dense product's weight, whose experts are one: what a peer makes a step of."""
    layer: Dense
    kind: str
    device: str
    w: Packed

    @property
    def tokens_type(self) -> str:
        return KINDS[self.kind][2]

    def copy(self) -> DenseCase:
        """The same weight in other memory: the cache has only one."""
        held = {name: None if (part := getattr(self.w, name)) is None else part.clone()
                for name in ("codes", "scales", "factor")}
        return dataclasses.replace(self, w=dataclasses.replace(self.w, **held))


def case_of(layer: Layer | Dense, kind: str, device: str) -> Case | DenseCase:
    if isinstance(layer, Dense):
        return DenseCase(layer, kind, device, drawn_weight(kind, 1, layer.n, layer.k, 3, device))
    biases: list[torch.Tensor | None] = [None, None]
    if layer.gpt_oss:
        generator = torch.Generator(device=device).manual_seed(5)
        biases = [(torch.randn(layer.experts, n, device=device, generator=generator) / 8).bfloat16()
                  for n in (2 * layer.inner, layer.hidden)]
    return Case(layer, kind, device,
                drawn_weight(kind, layer.experts, 2 * layer.inner, layer.hidden, 3, device),
                drawn_weight(kind, layer.experts, layer.hidden, layer.inner, 4, device), *biases)


def drawn_sets(layer: Layer | Dense, routing: str, tokens: int, count: int,
               device: str) -> list[Any]:
    """Tokens and what a router says of them. routing: uniform, or zipf:S, where expert e is liked
    by (e + 1) ** -S: x bf16, ids int32, router weights float32. For a dense product x, and which
    copy of the weight is meant."""
    generator = torch.Generator(device=device).manual_seed(100 + tokens)
    if isinstance(layer, Dense):
        return [(torch.randn(tokens, layer.k, device=device, generator=generator).bfloat16(), i)
                for i in range(count)]
    likes = torch.zeros(layer.experts, device=device)
    if routing != "uniform":
        likes = -float(routing.partition(":")[2]) * torch.arange(1, layer.experts + 1,
                                                                 device=device).log()
    sets = []
    for _ in range(count):
        x = torch.randn(tokens, layer.hidden, device=device, generator=generator).bfloat16()
        # The largest of likes + Gumbel noise are drawn without putting back.
        noise = -(-torch.rand(tokens, layer.experts, device=device,
                              generator=generator).clamp_min(1e-20).log()).log()
        ids = (likes + noise).topk(layer.top_k, dim=1).indices.int().contiguous()
        weights = torch.rand(tokens, layer.top_k, device=device, generator=generator)
        sets.append((x, ids, (weights / weights.sum(1, keepdim=True)).contiguous()))
    return sets


def gated(layer: Layer, rows: torch.Tensor) -> torch.Tensor:
    if not layer.gpt_oss:
        gate, up = rows.chunk(2, -1)
        return torch.nn.functional.silu(gate) * up
    gate, up = rows[..., ::2].clamp(max=LIMIT), rows[..., 1::2].clamp(-LIMIT, LIMIT)
    return gate * torch.sigmoid(ALPHA * gate) * (up + 1)


def reference(case: Case | DenseCase, one: Any, rows: torch.Tensor) -> torch.Tensor:
    """Those rows of the result in float64, of tokens as they are: nothing of them is quantised."""
    if isinstance(case, DenseCase):
        return one[0][rows].double() @ case.w.value_of(0).T
    x, ids, weights = one
    out = torch.zeros(len(rows), case.layer.hidden, dtype=torch.float64, device=x.device)
    x, ids, weights = x[rows].double(), ids[rows], weights[rows].double()
    for e in ids.unique().tolist():
        token, slot = (ids == e).nonzero(as_tuple=True)
        inner = x[token] @ case.w13.value_of(e).T
        if case.bias13 is not None:
            inner = inner + case.bias13[e].double()
        part = gated(case.layer, inner) @ case.w2.value_of(e).T
        if case.bias2 is not None:
            part = part + case.bias2[e].double()
        out.index_add_(0, token, part * weights[token, slot, None])
    return out
