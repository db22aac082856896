"""Weights of 4-bit floats (mxf4, nvf4), packed for Hopper: docs/weights.md."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._interop import Refusal, move_to, shape_of
from ._prepare import FORMS, PackedWeights, loaded, packed_checkpoint, packed_like

if TYPE_CHECKING:
    from ._types import Fp4Encoding, Fp4Layout, Tensor


def pack_fp4(weights: Any, *, encoding: Fp4Encoding = "mxf4") -> PackedWeights:
    """Weights of float32, bfloat16 or float16, N x K or G x N x K, quantised and packed.

    encoding  "mxf4": ue8m0 scales of 32, for tokens of e4m3; "mxf4-exact" the same with scales as
              they are; "mxf4-bf16" and "mxf4-fp16" for tokens of bf16 and float16; "nvf4-bf16"
              (or "nvf4"), "nvf4-fp16": ue4m3 scales of 16, and a factor for each matrix
              (``alpha``).

    Works in host memory, on all processors, and gives the result to the library and the device of
    `weights`.
    """
    is_batch = len(shape_of(weights, "weights")) == 3
    made = _core.quantise_weights(move_to(weights, "cpu"), 0, encoding, None, False, True)
    return packed_like(weights, made, is_batch)


def pack_fp4_checkpoint(layout: Fp4Layout, codes: Any, scales: Tensor,
                        tensor_scale: Tensor | None = None, *,
                        encoding: Fp4Encoding | None = None) -> PackedWeights:
    """Packs mxf4 or nvf4 weights as checkpoints have them, from tensors in memory.

    layout  "gpt-oss" (codes N x K/32 x 16, or N x K/2), "deepseek-mxfp4",
            "compressed-tensors-mxfp4", "compressed-tensors-nvfp4" or "modelopt-nvfp4":
            docs/low_precision.md says which types each has. A dimension in front of N is experts,
            of which tensor_scale has one each.
    encoding  as of pack_fp4; default: for mxf4 "mxf4", or "mxf4-exact" where scales of a row span
              too far to be folded, for nvf4 "nvf4-bf16". No weight is rounded.

    Tensors on a CUDA device are packed there.
    """
    shape = tuple(shape_of(codes, "codes"))
    if layout.startswith("gpt-oss") and len(shape) == len(shape_of(scales, "scales")) + 1:
        codes = codes.reshape(*shape[:-2], shape[-2] * shape[-1])  # blocks of 16 bytes
    is_batch = len(shape_of(codes, "codes")) == 3
    return packed_like(codes, packed_checkpoint(layout, (codes, scales, None, None, tensor_scale),
                                                encoding, None, True), is_batch)


def load_fp4(file: str, layout: Fp4Layout | None = None, *,
             encoding: Fp4Encoding | None = None) -> PackedWeights:
    """The mxf4 or nvf4 weights of "model.safetensors:model.layers.0.mlp.down_proj": a layer of a
    checkpoint that `warpwright pack --for` reads, or a tensor that is packed. A `*` in the name
    stands for the numbers of experts. The bytes lie in host memory, as a numpy array where numpy is
    there; for a GPU: ``w.on(torch.from_numpy(w.data).to("cuda"))``."""
    made = loaded(_core.load_packed(file, layout, 0, encoding, None, False, True), file)
    if not FORMS[made.form[4]].is_float:
        raise Refusal(f"{file} holds int4 weights: load_int4 reads them", "bad_type")
    return made
