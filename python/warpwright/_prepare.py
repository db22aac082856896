"""What is made of tensors before they are multiplied: fp8 codes of activations, packed weights."""
from __future__ import annotations

import dataclasses
import struct
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from . import _core
from ._formats import FORMATS, quantise_blocks
from ._interop import (Refusal, Spec, adopted, device_of, empty_like, empty_scales, library_of,
                       move_to, shape_of)

if TYPE_CHECKING:
    from ._types import Encoding, Fp4Encoding, Layout, Recipe, ScaleType, Tensor

#: Packed bytes, an Array of the host or a tensor of a device, and the factors of the experts'
#: tensors.
Packed = tuple[Any, tuple[float, ...]]


class Form(NamedTuple):
    """A form of packed weights, a row of the library's table of them."""

    number: int
    word: str  #: the encoding
    format: str
    tokens: str  #: what they are multiplied by
    scales: list[str]  #: their types, the usual one first
    groups: list[int]  #: the usual one last
    has_factor: int
    is_float: int


#: By number.
FORMS = {row[0]: Form(*row) for row in _core.packed_forms()}
_WORDS = {form.word: form for _, form in sorted(FORMS.items())}
# By the numbers of the library's types.
_SCALES = {3: "f16", 4: "bf16", 1: "f32", 10: "ue8m0", 11: "ue4m3"}
_NUMBERS = {name: number for number, name in _SCALES.items()}


def quantise(x: Any, scaling: Literal["row_column", "blockwise", "tensor", "mxf8", "mxf8-e5m2",
                                      "mxf6", "mxf6-e3m2", "mxf4", "nvf4"] = "row_column", *,
             scale: Any = None, out: Tensor | None = None, scales: Tensor | None = None,
             block: int = 128, recipe: Recipe | None = None, offsets: Tensor | None = None,
             linear: bool = False, stream: Any = None) -> tuple[Any, ...]:
    """Activations or weights as codes and scales: returns (codes, scales), with x about codes *
    scales; for 'nvf4' (codes, scales, scale), x about codes * scales * scale.

    x        M x K of float32, bfloat16 or float16, rows contiguous; on a CUDA device or the host,
             with the same bits. For a format also G x N x K.
    scaling  of e4m3 codes with float32 scales: 'row_column': a scale for each row, M; 'blockwise':
             for each 1 x block, M x ceil(K/block), the scales of rows side by side, as products
             read them fastest; 'tensor': one. Or a format, 'mxf8', 'mxf8-e5m2', 'mxf6',
             'mxf6-e3m2', 'mxf4' (a float8_e8m0fnu each 32 of K) or 'nvf4' (a float8_e4m3fn each
             16). These are what gemm(scale_a=) takes. Codes of e2m1 are PyTorch's
             float4_e2m1fn_x2, elsewhere uint8, as are those of e2m3 and e3m2: gemm(a_type=) says
             what they are.
    scale    for 'tensor' and 'nvf4': the scale, a (1,) float32 tensor where x lies; without it the
             scale is found, by three launches instead of one. For 'nvf4' it is what codes are
             multiplied by, alpha of a product, never the divisor that some checkpoints have; 1
             leaves it out.
    block    for 'blockwise': 128, 64 or 32, as the weights have it.
    recipe   of a format: 'floor' (OCP MX 1.0) or 'up' (default: nothing is cut off) of
             float8_e8m0fnu scales; 'nested' (default) or '4-or-6' of nvf4 (docs/packing.md).
    offsets  of a format: rows in groups, whose scales begin at a tile each (block_scales).
    linear   of a format: scales row by row, M x ceil(K/32) or ceil(K/16), not in tiles of 128 x 4.
    out, scales   memory for the results.

    A float32 scale is the largest finite magnitude over 448, and 1 where all are 0. Codes are
    rounded to nearest even; infinities and NaN become NaN, for elements without NaN by their scale.
    On a CUDA device one launch, which nothing waits for; legal in a graph's capture where out and
    scales are given.
    """
    if block not in (128, 64, 32):
        is_number = isinstance(block, (int, float))
        nearest = min((128, 64, 32), key=lambda size: abs(size - block) if is_number else 0)
        raise Refusal(f"block is {block!r}; blocks are of 128, 64 or 32: the nearest is {nearest}")
    if block != 128 and scaling != "blockwise":
        raise Refusal(f"block is {block}, and scaling is {scaling!r}, which has no such blocks; "
                      "the nearest is to leave it out")
    if scaling in FORMATS:
        return quantise_blocks(x, scaling, scale=scale, out=out,  # type: ignore[arg-type]
                               scales=scales, recipe=recipe, offsets=offsets, linear=linear,
                               stream=stream)
    for name, value in (("recipe", recipe), ("offsets", offsets), ("linear", linear or None)):
        if value is not None:
            raise Refusal(f"{name} is given, and scaling is {scaling!r}, which is no format with "
                          f"scales of blocks; the nearest is to leave it out, or 'mxf8'")
    shape = shape_of(x, "x")
    if len(shape) != 2:
        raise Refusal(f"x has {len(shape)} dimension{'s' * (len(shape) != 1)}; the nearest legal "
                      "is 2: rows to quantise", "bad_shape")
    if scale is not None and scales is not None:
        raise Refusal("scale and scales are given; one of them has the scale: leave one out")
    device = device_of(x)
    codes = empty_like(x, shape, "e4m3", device) if out is None else out
    found = scale if scales is None else scales
    if found is None and scaling == "blockwise":
        found = empty_scales(x, (shape[0], -(-shape[1] // block)), device)
    elif found is None:
        found = empty_like(x, (1,) if scaling == "tensor" else (shape[0],), "f32", device)
    _core.quantise(x, scaling, None, scale is not None, codes, found, None, False, None, stream)
    return (codes if out is not None else adopted(x, codes),
            found if scale is not None or scales is not None else adopted(x, found))


def sort_slots(topk_ids: Any, experts: int, *, first_expert: int = 0,
               experts_total: int | None = None, stream: Any = None) -> tuple[Any, Any, Any]:
    """Slots of a mixture, sorted by expert: returns (offsets, slots, rows), all int32.

    topk_ids  tokens x top_k of int32 or int64, of numpy, PyTorch or CuPy: the experts of each
              token. Slot token * top_k + j is expert j of a token.
    experts   of this rank, 1 to 1,024: first_expert and those behind it, of experts_total in all.

    offsets   experts + 1: rows offsets[e] to offsets[e + 1] - 1 are those of expert e, as
              grouped_gemm(offsets=) takes them.
    slots     tokens * top_k: the slot of a row, whose token is slot // top_k; the slots of an
              expert are in order. Behind the last row -1.
    rows      tokens * top_k: the row of a slot, or -1 where it is left out: -1 as an id, an expert
              of another rank, or an id that is no expert.

    On a CUDA device one launch, which nothing waits for.
    """
    shape = shape_of(topk_ids, "topk_ids")
    device = device_of(topk_ids)
    if library_of(topk_ids) not in ("numpy", "torch", "cupy"):
        raise Refusal(f"topk_ids is of {type(topk_ids).__module__}, which has no integers that can "
                      "be written here; the nearest is a tensor of numpy, PyTorch or CuPy")
    if len(shape) != 2:
        raise Refusal(f"topk_ids has {len(shape)} dimension{'s' * (len(shape) != 1)}; the nearest "
                      "legal is 2: the experts of each token", "bad_shape")
    count = shape[0] * shape[1]
    lengths = (max(experts, 0) + 1, count, count)
    offsets, slots, rows = (empty_like(topk_ids, (length,), "int32", device) for length in lengths)
    _core.sort_slots(topk_ids, experts, first_expert,
                     experts if experts_total is None else experts_total, offsets, slots, rows,
                     stream)
    return offsets, slots, rows


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PackedWeights:
    """Weights of 4 bits in packed form, for gemm(x, w) and grouped_gemm(x, w, offsets) with x of
    e4m3, bf16 or float16, as `encoding` says. pack_int4, pack_int4_checkpoint and load_int4 make
    them. Or mxf4 and nvf4 weights, which pack_fp4, pack_fp4_checkpoint and load_fp4 make.

    PackedWeights(data) takes bytes that were packed before: a contiguous row of uint8, the header
    in front, of any library and device. ``data`` is that row: what a module registers as its buffer
    and a checkpoint keeps. A Spec of (bytes,) and "uint8" is planned with, see PackedWeights.spec.
    """

    data: Any
    #: experts, n, k, group, encoding, type of the scales, zero points, is there a batch of experts;
    #: the bits of the factor that all experts have, of float32 (0: not known, NaN: one each)
    form: tuple[int, int, int, int, int, int, int, bool, int] = None  # type: ignore[assignment]
    origin: str = ""  #: what they were made of: "gptq"
    #: For nvf4 weights each expert's tensor factor; empty where all are 1, and None where the
    #: bytes do not say it (those of experts whose factors differ, and of versions before 0.4):
    #: give it then. Products are multiplied by it, but those of experts whose factors differ, and
    #: moe, take the factors as scale_b (scale_w13, scale_w2), in the operands' memory, and are
    #: refused without. A scale_b that is given takes the factors' place in every product.
    alpha: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        form: Any = self.form
        if form is None:
            *form, factor, origin = _core.packed_form(self.data)
            form = (*form, form[0] > 1, factor)
            object.__setattr__(self, "origin", origin)
        form = (*form, 0)[:9]
        has_factor = FORMS[form[4]].has_factor
        if self.alpha is not None and len(self.alpha) not in (0, form[0] if has_factor else 0):
            raise Refusal(f"alpha has {len(self.alpha)} numbers; "
                          + (f"{form[0]} experts have one each" if has_factor else
                             "only nvf4 weights have factors: leave it out"))
        if not has_factor:
            object.__setattr__(self, "alpha", ())
        elif self.alpha is None:
            said = struct.unpack("<f", struct.pack("<I", form[8]))[0]
            known = (said,) * (form[0] if said != 1 else 0) if said > 0 else None
            object.__setattr__(self, "alpha", known)
        else:
            factors = set(self.alpha) or {1.0}
            of_all = factors.pop() if len(factors) == 1 else float("nan")
            form = (*form[:8], struct.unpack("<I", struct.pack("<f", of_all))[0])
        object.__setattr__(self, "form", form)

    @staticmethod
    def spec(n: int, k: int, experts: int | None = None, *, group: int = 128,
             encoding: Encoding | Fp4Encoding = "ex", scales: ScaleType = "bf16",
             zero_points: bool = False) -> PackedWeights:
        """Weights without memory, for plan(). Those of mxf4 and nvf4 have groups and scales of
        their own, and no others."""
        usual = next((form for form in FORMS.values() if form.is_float and form.format == encoding),
                     None)
        if usual:
            encoding = usual.word  # type: ignore[assignment]
        if encoding not in _WORDS:
            raise Refusal(f"encoding is {encoding!r}; it is one of {', '.join(_WORDS)}")
        count = 1 if experts is None else experts
        asked = _WORDS[encoding]
        if len(asked.groups) == 1:
            for name, value, legal in (("group", group, (128, *asked.groups)),
                                       ("scales", scales, ("bf16",))):
                if value not in legal:
                    raise Refusal(f"{name} is given, and {encoding} weights have their own: leave "
                                  "it out")
            group, scales = asked.groups[0], asked.scales[0]  # type: ignore[assignment]
        if scales not in asked.scales:
            raise Refusal(f"scales is {scales!r}; it is one of {', '.join(asked.scales)}")
        scale = _NUMBERS[scales]
        size = _core.packed_bytes(count, n, k, group, asked.number, scale, zero_points)
        form = (count, n, k, group, asked.number, scale, int(zero_points), experts is not None, 0)
        return PackedWeights(Spec((size,), "uint8"), form, alpha=())

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, k), or (experts, n, k)."""
        experts, n, k = self.form[:3]
        return (experts, n, k) if self.form[7] else (n, k)

    @property
    def group(self) -> int:
        """Weights along K that share a scale."""
        return self.form[3]

    @property
    def encoding(self) -> str:
        """"ex" (-8 to 7), "sm" (-7 to 7) or, for x of 16 bits, "ex-bf16" or "ex-fp16"; for weights
        that are no int4 "mxf4" or "mxf4-exact" (for e4m3), "mxf4-bf16", "mxf4-fp16", "nvf4-bf16" or
        "nvf4-fp16"."""
        return FORMS[self.form[4]].word

    @property
    def scales(self) -> str:
        """The type of the scales: "bf16", "f16" or "f32"; for mxf4 "ue8m0", for nvf4 "ue4m3"."""
        return _SCALES[self.form[5]]

    @property
    def zero_points(self) -> bool:
        """Has each scale a zero point?"""
        return bool(self.form[6])

    def on(self, data: Any) -> PackedWeights:
        """The same weights whose bytes are `data`: a copy of them elsewhere, a module's buffer."""
        return dataclasses.replace(self, data=data)

    def to(self, *where: Any) -> PackedWeights:
        """The same weights in another place: what data.to(*where) gives (of PyTorch's tensors)."""
        return self.on(move_to(self.data, *where))

    def values(self) -> Any:
        """All weights as float32, of (experts,) n x k, in host memory: codes times scales, and of
        nvf4 times alpha."""
        import numpy  # pylint: disable=import-outside-toplevel
        if self.alpha is None:
            raise Refusal("the factors (alpha) of these nvf4 weights are not known: make them as "
                          "PackedWeights(data, alpha=(FACTOR,)), with one for each expert")
        values = numpy.asarray(_core.packed_values(self.data)).reshape(self.shape)
        if not self.alpha:
            return values
        factors = numpy.float32(self.alpha).reshape((-1, 1, 1) if self.form[7] else (1, 1))
        return values * factors

    def __repr__(self) -> str:
        extents = " x ".join(str(extent) for extent in self.shape)
        return (f"<warpwright.PackedWeights {extents} {self.encoding}, groups of {self.group}, "
                f"{self.scales} scales{', zero points' * self.zero_points}>")


def pack_int4(weights: Any, *, group: int = 128, encoding: Encoding | None = None,
              scales: ScaleType = "bf16", zero_points: bool = False) -> PackedWeights:
    """Weights of float32, bfloat16 or float16, N x K or G x N x K, as packed int4.

    group        weights along K that share a scale: 32, 64 or 128.
    encoding     "ex" (codes -8 to 7, the default), "sm" (-7 to 7, which some kernels convert
                 faster), or "ex-bf16", "ex-fp16": -8 to 7 for x of bf16, for float16.
    scales       their type: "bf16", "f16" or "f32".
    zero_points  a zero point beside each scale, for weights that do not lie around 0.

    Works in host memory, on all processors, and gives the result to the library and the device of
    `weights`.
    """
    is_batch = len(shape_of(weights, "weights")) == 3
    made = _core.quantise_weights(move_to(weights, "cpu"), group, encoding, scales, zero_points,
                                  False)
    return packed_like(weights, made, is_batch)


def pack_int4_checkpoint(layout: Layout, codes: Any, scales: Tensor, zeros: Tensor | None = None,
                         group_index: Tensor | None = None, *, encoding: Encoding | None = None,
                         scale_type: ScaleType | None = None) -> PackedWeights:
    """Packs int4 weights as checkpoints have them, from tensors in memory.

    layout  "compressed-tensors" (and "-experts"), "gptq", "gptq-v2", "awq", "w4afp8" or "int4":
            docs/packing.md says which types and shapes each has. codes, scales, zeros (zero points)
            and group_index are its tensors; a third dimension in front is experts.
            Give group_index (g_idx) where a GPTQ layer has it: weights in act-order are refused by
            it, and without it they cannot be told from others, and would be wrong.
    encoding, scale_type   of the packed form; default: what the codes allow, what the scales are.

    Tensors on a CUDA device are packed there.
    """
    is_batch = len(shape_of(codes, "codes")) == 3
    return packed_like(codes, packed_checkpoint(layout, (codes, scales, zeros, group_index, None),
                                                encoding, scale_type, False), is_batch)


def load_int4(file: str, layout: Layout | None = None, *, group: int | None = None,
              encoding: Encoding | None = None, scales: ScaleType | None = None,
              zero_points: bool = False) -> PackedWeights:
    """The int4 weights of "model.safetensors:model.layers.0.mlp.down_proj" (or of the index of a
    checkpoint, "model.safetensors.index.json:..."): a layer
    in any layout that `warpwright pack` reads (floats are quantised), or a tensor that is packed.
    A `*` in the name stands for the numbers of experts. The bytes lie in host memory, as a numpy
    array where numpy is there; for a GPU: ``w.on(torch.from_numpy(w.data).to("cuda"))``."""
    return loaded(_core.load_packed(file, layout, group or 0, encoding, scales, zero_points, False),
                  file)


def packed_checkpoint(layout: str, tensors: tuple[Any, ...], encoding: str | None,
                      scale_type: str | None, of_floats: bool) -> Packed:
    """Codes, scales, zero points, group index and scale of the tensor as packed bytes, where the
    codes lie."""
    # A build without the CUDA side packs in host memory. The last two are read at once.
    where = tensors[0] if _core.built_with_cuda and device_of(tensors[0]) >= 0 else "cpu"
    places = (where, where, where, "cpu", "cpu")
    moved: list[Any] = [None if t is None else move_to(t, to) for t, to in zip(tensors, places)]
    codes, scales, zeros, group_index, factor = moved
    return _core.pack_checkpoint(layout, codes, scales, zeros, group_index, factor, encoding,
                                 scale_type, of_floats)


def loaded(made: Packed, file: str) -> PackedWeights:
    """The weights of `file`, whose bytes and factors these are."""
    packed, alpha = made
    *form, factor, origin = _core.packed_form(packed)
    try:
        import numpy  # pylint: disable=import-outside-toplevel
        data: Any = numpy.asarray(packed)
    except ImportError:
        data = packed
    whole: Any = (*form, form[0] > 1 or "*" in file, factor)
    return PackedWeights(data, whole, origin, _factors(alpha))


def packed_like(like: Any, made: Packed, is_batch: bool) -> PackedWeights:
    """Packed bytes in the library and the place of `like`, and their factors."""
    packed, alpha = made
    *form, factor, origin = _core.packed_form(packed)
    data = move_to(adopted_bytes(like, packed), like)
    whole: Any = (*form, is_batch, factor)
    return PackedWeights(data, whole, origin, _factors(alpha))


def _factors(alpha: tuple[float, ...]) -> tuple[float, ...]:
    return () if all(each == 1 for each in alpha) else alpha


def adopted_bytes(like: Any, array: _core.Array) -> Any:
    """A row of bytes as an array of the library of `like`, in host memory."""
    library = library_of(like)
    if library == "torch":
        import torch  # pylint: disable=import-outside-toplevel
        return torch.from_dlpack(array)
    if library == "numpy":
        import numpy  # pylint: disable=import-outside-toplevel
        return numpy.asarray(array)
    return adopted(like, array)
