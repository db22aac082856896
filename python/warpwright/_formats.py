"""Operands whose scales the tensor core multiplies (mxf8, mxf6, mxf4, nvf4): codes and scales made
of wider tensors, scales of checkpoints in the order that products read, dense elements."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._interop import (Refusal, adopted, as_tiles, device_of, dtype_name, empty_halves, empty_like,
                       library_of, shape_of)

if TYPE_CHECKING:
    from ._types import Format, Recipe, Tensor

#: For a format's word: its elements' type, their bits, the scales' type, elements that share one.
FORMATS: dict[str, tuple[str, int, str, int]] = _core.formats


def quantise_blocks(x: Any, form: Format, *, scale: Any = None, out: Any = None,
                    scales: Any = None, recipe: Recipe | None = None,
                    offsets: Tensor | None = None, linear: bool = False,
                    stream: Any = None) -> tuple[Any, ...]:
    """quantise(x, form, ...) of a format."""
    element, bits, scale_type, block = FORMATS[form]
    shape = shape_of(x, "x")
    is_nested = scale_type == "ue4m3"
    if len(shape) not in (2, 3):
        raise Refusal(f"x has {len(shape)} dimension{'s' * (len(shape) != 1)}; the nearest legal "
                      "is 2: rows to quantise, or 3: matrices of them", "bad_shape")
    if len(shape) == 3 and offsets is not None:
        raise Refusal("offsets are of the rows of one matrix, and x has 3 dimensions: leave them "
                      "out", "bad_shape")
    if scale is not None and not is_nested:
        raise Refusal(f"scale is given, and {form} has no scale of the whole tensor, which nvf4 "
                      "has: leave it out")
    device = device_of(x)
    rows, k = shape[-2:]
    if k * bits % 8 != 0:
        whole = 2 if bits == 4 else 4
        raise Refusal(f"x has rows of {k} elements, and {whole} of {element} are whole bytes: the "
                      f"nearest legal number is {-(-k // whole) * whole}", "bad_shape")
    codes = out if out is not None else _empty_codes(x, (*shape[:-1], k), element, bits, device)
    blocks = -(-k // block)
    made = scales
    if made is None:
        extents = ((*shape[:-1], blocks) if linear else
                   _tile_extents(shape[:-2], rows, blocks, offsets))
        made = empty_like(x, extents, _SCALES[scale_type], device)
    takes_scale = is_nested and not isinstance(scale, (int, float))
    if isinstance(scale, (int, float)) and scale != 1:
        raise Refusal(f"scale is {scale}, and a scale that is read lies in x's memory; the nearest "
                      "legal are a (1,) float32 tensor there, and 1")
    whole = scale
    if takes_scale and scale is None:
        whole = empty_like(x, (1,), "f32", device)
    _core.quantise(x, form, recipe, scale is not None, codes, made, whole if takes_scale else None,
                   linear, offsets, stream)
    codes = codes if out is not None else adopted(x, codes)
    if scales is None:
        made = adopted(x, made) if linear else as_tiles(adopted(x, made), shape[:-2])
    if not is_nested:
        return codes, made
    return codes, made, whole if scale is not None else adopted(x, whole)


def block_scales(scales: Any, offsets: Tensor | None = None, *,
                 block: tuple[int, int] | None = None, out: Any = None,
                 stream: Any = None) -> Any:
    """Scales of rows, as checkpoints have them, in the tiles of 128 x 4 that products read.

    scales   M x ceil(K/32) (ue8m0) or M x ceil(K/16) (ue4m3): float8_e8m0fnu, float8_e4m3fn or
             uint8, a scale for each block of a row; or a batch of such, each with tiles of its own.
    offsets  G + 1 of int32 or int64, in the memory of the scales: the rows are tokens in groups, as
             grouped_gemm(offsets=) takes them, and each group's scales begin at a tile.
    block    what a scale serves, rows x elements of K, where that is more: (1, 128) of fp8 tokens,
             (128, 128) of fp8 weights. They become the scales of mxf8: ceil(M/rows) x ceil(K/128)
             of float8_e8m0fnu or uint8, or of float32 (also with (1, 32)), whose values are powers
             of two: others are refused in host memory and become NaN on a GPU.
    out      memory for the result.

    Returns them, M rounded up to 128 x the blocks rounded up to 4, with offsets
    (M + 127 G) // 128 * 128 rows, in the very layout of cuBLASLt and of PyTorch's SWIZZLE_32_4_4.
    They are one row a matrix, of whatever length, for a shape of rows x blocks would look like
    scales that lie row by row. What lies between and behind rows becomes 1 (float8_e8m0fnu) or 0.
    One launch, which nothing waits for.
    """
    shape = shape_of(scales, "scales")
    if len(shape) not in (2, 3):
        raise Refusal(f"scales has {len(shape)} dimension{'s' * (len(shape) != 1)}; the nearest "
                      "legal is 2: those of a matrix, row by row", "bad_shape")
    if len(shape) == 3 and offsets is not None:
        raise Refusal("offsets are of the rows of one matrix, and scales has 3 dimensions: leave "
                      "them out", "bad_shape")
    rows_each, k_each = block or (1, 32)
    if k_each not in (32, 128):
        raise Refusal(f"block is {block}; a scale serves 1 or 128 rows and 32 or 128 of K: the "
                      "nearest is (1, 128)")
    made = out
    if made is None:
        extents = _tile_extents(shape[:-2], shape[-2] * rows_each, shape[-1] * (k_each // 32),
                                offsets)
        name = dtype_name(scales.dtype)
        # Powers of two become ue8m0, where a block is named. For other types the library says why
        # it takes none.
        stays = name in ("uint8", *_SCALES.values()) or (name == "float32" and block is None)
        made = empty_like(scales, extents, name if stays else _SCALES["ue8m0"], device_of(scales))
    _core.order_scales(scales, made, offsets, stream, rows_each, k_each // 32, block is not None)
    return made if out is not None else as_tiles(adopted(scales, made), shape[:-2])


def pack_elements(x: Any, dtype: Any = None) -> Any:
    """Elements of 4 or 6 bits with a byte each, as ml_dtypes has them, as the dense bytes (uint8)
    that products read: two of e2m1 in a byte, four of e2m3 or e3m2 in three, from the low bits up.

    x      of numpy: float4_e2m1fn, float6_e2m3fn or float6_e3m2fn; or of numpy, PyTorch or CuPy:
           uint8, each a code, whose type `dtype` says ("e2m1", "e2m3" or "e3m2").
    """
    if not hasattr(x, "dtype") or len(shape_of(x, "x")) == 0:
        raise Refusal("x is no tensor of elements in rows", "bad_type")
    name = dtype_name(x.dtype)
    of = _UNPACKED.get(name, "" if dtype is None else dtype_name(dtype))
    bits = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(of, 0)
    if bits == 0 or (name != "uint8" and name not in _UNPACKED):
        raise Refusal(f"x is {name}, dtype {dtype!r}; elements with a byte each are ml_dtypes' of "
                      "4 and 6 bits, or uint8 of which dtype says 'e2m1', 'e2m3' or 'e3m2'",
                      "bad_type")
    codes = x if name == "uint8" else x.view("uint8")
    each = 2 if bits == 4 else 4
    if codes.shape[-1] % each != 0:
        raise Refusal(f"x has rows of {codes.shape[-1]} elements, and {each} of {of} are whole "
                      f"bytes: the nearest is {-(-codes.shape[-1] // each) * each}", "bad_shape")
    c = [codes[..., i::each] for i in range(each)]
    if bits == 4:
        return c[0] & 15 | c[1] << 4
    dense = codes[..., :codes.shape[-1] // 4 * 3] | 0  # of the same library, as large as it will be
    dense[..., 0::3] = c[0] & 63 | c[1] << 6
    dense[..., 1::3] = (c[1] & 63) >> 2 | c[2] << 4
    dense[..., 2::3] = (c[2] & 63) >> 4 | c[3] << 2
    return dense


# Types of ml_dtypes with a byte for each element.
_UNPACKED = {"float4_e2m1fn": "e2m1", "float6_e2m3fn": "e2m3", "float6_e3m2fn": "e3m2"}
_SCALES = {"ue8m0": "float8_e8m0fnu", "ue4m3": "float8_e4m3fn"}


def _tile_extents(lead: tuple[int, ...], rows: int, blocks: int,
                  offsets: Any) -> tuple[int, ...]:
    groups = 0 if offsets is None else max(shape_of(offsets, "offsets")[0] - 1, 0)
    padded = (rows + 127 * groups) // 128 * 128 if groups else -(-rows // 128) * 128
    return (*lead, padded, -(-blocks // 4) * 4)


def _empty_codes(x: Any, shape: tuple[int, ...], element: str, bits: int, device: int) -> Any:
    if bits == 8:
        return empty_like(x, shape, element, device)
    packed = (*shape[:-1], shape[-1] * bits // 8)
    if bits == 4 or library_of(x) == "numpy":
        return empty_halves(x, packed, device)
    return empty_like(x, packed, "u8", device)
