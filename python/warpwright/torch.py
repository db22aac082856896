"""torch.ops.warpwright: products as operators of PyTorch, for torch.compile and CUDA graphs.

    import warpwright.torch

    y = torch.ops.warpwright.gemm(x, w)  # x @ w.T
    y = torch.ops.warpwright.gemm(x, w, bias=b, activation="gelu")
    torch.ops.warpwright.gemm_out(x, w, y)
    y = torch.ops.warpwright.scaled_gemm(x8, w8, scale_x, scale_w)
    y = torch.ops.warpwright.grouped_gemm(x, experts, offsets)
    y = torch.ops.warpwright.moe(x, topk_ids, topk_weights, w13, w2)  # a mixture of experts
    y = torch.ops.warpwright.mlp(x, w13, w2)  # an MLP
    x8, scale_x = torch.ops.warpwright.quantise(x)  # e4m3, a scale a row
    x8, scale_x = torch.ops.warpwright.quantise(x, "mxf8")  # a scale each 32, in tiles
    x4, scale_x, s = torch.ops.warpwright.quantise_nvf4(x)  # a scale each 16, and one of all
    scale_w = torch.ops.warpwright.block_scales(scales)  # of a checkpoint, in tiles
    y = torch.ops.warpwright.packed_moe(x, topk_ids, topk_weights, w13.data, w13.form, w2.data,
                                      w2.form)  # of warpwright.PackedWeights
    w = warpwright.pack_int4(weight)
    y = torch.ops.warpwright.packed_gemm(x8, w.data, w.form, scale_a=scale_x)
    y = torch.ops.warpwright.packed_grouped_gemm(x8, w.data, w.form, offsets, scale_a=scale_x)

Tensors on a CUDA device are multiplied there, on the current stream, without waiting; those of the
CPU by the machine model. The operators have no backward: a tensor that requires a gradient is
refused while gradients are recorded. Arguments are those of warpwright.gemm, grouped_gemm and moe.
"""
import torch

from . import _core, _formats, _interop, _prepare

_LIBRARY = torch.library.Library("warpwright", "DEF")
_TYPES = {"Tensor": "Tensor", "float": "float", "bool": "bool", "int": "SymInt",
          "Any": "ScalarType?"}  # and words are str


def _keywords(verb, keep):
    """Those of a verb's keywords, as a schema has them."""
    return ", ".join(
        _TYPES.get(kind.split(" |")[0], "str") + ("?" if kind.endswith("| None") else "")
        + f" {name}={usual}" for name, kind, usual in _core.keywords[verb] if keep(name))


def _of(verb, names):
    return _keywords(verb, names.split().__contains__)


def _result_type(a, dtype):
    if dtype is not None:
        return dtype
    return a.dtype if a.dtype.itemsize >= 2 else torch.bfloat16


def _check_dimensions(**tensors):
    for name, tensor in tensors.items():
        if tensor.dim() in (2, 3):
            continue
        row = f" (of one row 1 x {tensor.shape[0]})" if tensor.dim() == 1 else ""
        raise _interop.Refusal(f"{name} has {tensor.dim()} dimensions; the nearest legal is "
                               f"2{row}, or 3 for a batch", "bad_shape", name)


def _columns(b, gated):
    return b.shape[-2] // 2 if gated else b.shape[-2]


def _dense_result(a, b, gated, dtype):
    _check_dimensions(A=a, B=b)
    batch = a.shape[:-2] or b.shape[:-2]
    return a.new_empty((*batch, a.shape[-2], _columns(b, gated)), dtype=_result_type(a, dtype))


def _gemm(a, b, scale_a=None, scale_b=None, *, dtype=None, gated=False, **rest):
    out = _dense_result(a, b, gated, dtype)
    return _core.gemm(a, b, out=out, scale_a=scale_a, scale_b=scale_b, gated=gated, **rest)


def _into(verb):
    """The verb with its result behind its other tensors."""
    def run(*tensors, **rest):
        verb(*tensors[:-1], out=tensors[-1], **rest)
    return run


def _packed_moe(x, topk_ids, topk_weights, packed13, form13, packed2, form2, **rest):
    return _core.moe(x, topk_ids, topk_weights, _packed(packed13, form13), _packed(packed2, form2),
                     **rest)


def _fake_moe(x, topk_ids, *rest, dtype=None, combine="sum", **keywords):
    _check_places(x, topk_ids, *rest, **keywords)
    shape = x.shape if combine == "sum" else (*topk_ids.shape, x.shape[1])
    own = torch.bfloat16 if x.dtype == torch.float8_e4m3fn else x.dtype
    return x.new_empty(shape, dtype=dtype or own)


def _mlp(x, w13, w2, **rest):
    return _core.moe(x, None, None, w13, w2, **rest)


def _packed_mlp(x, packed13, form13, packed2, form2, **rest):
    return _mlp(x, _packed(packed13, form13), _packed(packed2, form2), **rest)


def _check_places(*tensors, **keywords):
    """A tensor without memory beside others would give a result that nobody computes."""
    places = {t.device.type for t in (*tensors, *keywords.values()) if isinstance(t, torch.Tensor)}
    if len(places) > 1:
        raise ValueError("the tensors lie on " + " and ".join(sorted(places))
                         + "; they must lie on one device")


def _check_form(form):
    if len(form) not in (8, 9):
        raise _interop.Refusal(f"form has {len(form)} numbers; it is the form of a PackedWeights, "
                               "which has 9")


def _packed(packed, form):
    _check_form(form)
    return _prepare.PackedWeights(packed, (*form[:7], bool(form[7]), *form[8:]))


def _packed_gemm(a, packed, form, *, dtype=None, gated=False, **rest):
    out = _packed_result(a, form, gated, dtype)
    return _core.gemm(a, _packed(packed, form), out=out, gated=gated, **rest)


def _packed_grouped_gemm(a, packed, form, offsets, **rest):
    return _core.grouped_gemm(a, _packed(packed, form), offsets, **rest)


def _packed_result(a, form, gated, dtype):
    _check_dimensions(A=a)
    _check_form(form)
    batch = a.shape[:-2] or ((form[0],) if form[7] else ())
    return a.new_empty((*batch, a.shape[-2], form[1] // 2 if gated else form[1]),
                       dtype=_result_type(a, dtype))


def _quantise(x, scaling="row_column", scale=None, block=128):
    if scaling == "nvf4":
        raise ValueError("nvf4 has a scale of the whole tensor too: quantise_nvf4 returns it")
    codes, scales = _prepare.quantise(x, scaling, scale=scale, block=block)
    # An operator's result is no view of its input.
    return codes, scales.clone() if scale is not None else scales


def _quantise_nvf4(x, scale=None, recipe=None):
    codes, scales, whole = _prepare.quantise(x, "nvf4", scale=scale, recipe=recipe)
    return codes, scales, whole.clone() if scale is not None else whole


def _fake_blocks(x, form):
    element, bits, scale, block = _formats.FORMATS[form]
    *lead, m, k = x.shape
    types = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
             "e2m1": getattr(torch, "float4_e2m1fn_x2", torch.uint8)}
    codes = x.new_empty((*lead, m, k * bits // 8), dtype=types.get(element, torch.uint8))
    tiles = (*lead, (m + 127) // 128 * 128 * ((k + 4 * block - 1) // (4 * block) * 4))
    return codes, x.new_empty(tiles, dtype=torch.float8_e8m0fnu if scale == "ue8m0"
                              else torch.float8_e4m3fn)


def _fake_quantise_nvf4(x, scale=None, recipe=None):  # pylint: disable=unused-argument
    return (*_fake_blocks(x, "nvf4"),
            x.new_empty((1,), dtype=torch.float32) if scale is None else torch.empty_like(scale))


def _fake_block_scales(scales, offsets=None):
    *lead, m, blocks = scales.shape
    groups = 0 if offsets is None else offsets.shape[0] - 1
    rows = (m + 127 * groups) // 128 * 128 if groups else (m + 127) // 128 * 128
    return scales.new_empty((*lead, rows * ((blocks + 3) // 4 * 4)))


def _fake_quantise(x, scaling="row_column", scale=None, block=128):
    if scaling in _formats.FORMATS:
        return _fake_blocks(x, scaling)
    m, k = x.shape
    if scaling == "blockwise":
        scales = x.new_empty((-(-k // block), (m + 3) // 4 * 4), dtype=torch.float32).T[:m]
    elif scale is not None:
        scales = torch.empty_like(scale)
    else:
        scales = x.new_empty((1,) if scaling == "tensor" else (m,), dtype=torch.float32)
    return x.new_empty((m, k), dtype=torch.float8_e4m3fn), scales


def _fake_packed(a, packed, form, *rest, dtype=None, gated=False, **keywords):
    _check_places(a, packed, *rest, **keywords)
    return _packed_result(a, form, gated, dtype)


def _fake_packed_grouped(a, packed, form, *rest, dtype=None, gated=False, **keywords):
    _check_places(a, packed, *rest, **keywords)
    _check_form(form)
    columns = form[1] // 2 if gated else form[1]
    return a.new_empty((a.shape[0], columns), dtype=_result_type(a, dtype))


def _fake_dense(a, b, *rest, dtype=None, gated=False, **keywords):
    _check_places(a, b, *rest, **keywords)
    return _dense_result(a, b, gated, dtype)


def _fake_grouped(a, b, *rest, dtype=None, gated=False, rows=None, **keywords):
    _check_places(a, b, *rest, rows=rows, **keywords)
    count = a.shape[0] if rows is None else rows.shape[0]
    return a.new_empty((count, _columns(b, gated)), dtype=_result_type(a, dtype))


def _fake_out(*tensors, **keywords):
    _check_places(*tensors, **keywords)


def _register(schema, function, fake):
    name = schema.split("(")[0]
    # Kernels are chosen by strides, and what the compiler saw is what must come.
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
    for key in ("CUDA", "CPU"):
        _LIBRARY.impl(name, function, key)
    torch.library.register_fake(f"warpwright::{name}", fake, lib=_LIBRARY)


_EPILOGUE = _of("gemm", "bias activation gated gate_up gate_limit gate_alpha gate_beta "
                "batch_invariant")
_SCALES = _of("gemm", "scale_d scaling accumulation")
_OPERANDS = _of("gemm", "operands a_type b_type")
_DTYPE = _of("gemm", "dtype")
_EXPECTED = _of("grouped_gemm", "expected_tokens expected_lengths")
_ROWS = _of("grouped_gemm", "rows rows_divisor")
_ROUTED = "Tensor x, Tensor topk_ids, Tensor topk_weights"
_MOE = f"{_ROUTED}, Tensor w13, Tensor w2"
# The plan chooses the rest, or what is called says it.
_EXPERTS = _keywords("plan_moe", lambda name: name not in (
    "device", "out", "dtype", "sums", "first_kernel", "second_kernel", "by_index",
    "quantises_in_epilogue", "gates_in_epilogue", "early_weights", "sort_with_gather",
    "one_launch"))
# What is not of a router.
_MLP = _of("plan_moe", "activation gated gate_up gate_limit gate_alpha gate_beta scaling scale_x "
           "scale_w13 scale_w2 bias13 bias2 batch_invariant")
_PACKED = "Tensor packed, int[] form"
_PACKED_PAIR = "Tensor packed13, int[] form13, Tensor packed2, int[] form2"
_WITH = f"{_of('gemm', 'scale_a scale_b')}, {_EPILOGUE}, {_SCALES}"

_register("gemm(Tensor a, Tensor b, *, Tensor? c=None, float alpha=1.0, float beta=1.0, "
          f"{_EPILOGUE}, {_OPERANDS}, {_DTYPE}) -> Tensor", _gemm, _fake_dense)
_register("gemm_out(Tensor a, Tensor b, Tensor(a!) out, *, Tensor? c=None, float alpha=1.0, "
          f"float beta=1.0, {_EPILOGUE}, {_OPERANDS}) -> ()", _into(_core.gemm), _fake_out)
_register("scaled_gemm(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, *, "
          f"{_EPILOGUE}, {_SCALES}, {_OPERANDS}, float? alpha=None, {_DTYPE}) -> Tensor",
          _gemm, _fake_dense)
_register(f"grouped_gemm(Tensor a, Tensor b, Tensor offsets, *, {_WITH}, "
          f"{_OPERANDS}, float? alpha=None, {_EXPECTED}, {_ROWS}, {_DTYPE}) -> Tensor",
          _core.grouped_gemm, _fake_grouped)
_register(f"grouped_gemm_out(Tensor a, Tensor b, Tensor offsets, Tensor(a!) out, *, {_WITH}, "
          f"{_OPERANDS}, float? alpha=None, {_EXPECTED}, {_ROWS}) -> ()",
          _into(_core.grouped_gemm), _fake_out)
_register(f"moe({_MOE}, *, {_EXPERTS}, {_DTYPE}) -> Tensor", _core.moe, _fake_moe)
_register(f"packed_moe({_ROUTED}, {_PACKED_PAIR}, *, {_EXPERTS}, str? sums=None, {_DTYPE}) "
          "-> Tensor", _packed_moe, _fake_moe)
_register(f"moe_out({_MOE}, Tensor(a!) out, *, {_EXPERTS}) -> ()", _into(_core.moe), _fake_out)
_register(f"mlp(Tensor x, Tensor w13, Tensor w2, *, {_MLP}, {_DTYPE}) -> Tensor", _mlp, _fake_moe)
_register(f"packed_mlp(Tensor x, {_PACKED_PAIR}, *, {_MLP}, str? sums=None, {_DTYPE}) -> Tensor",
          _packed_mlp, _fake_moe)
_register(f"mlp_out(Tensor x, Tensor w13, Tensor w2, Tensor(a!) out, *, {_MLP}) -> ()",
          _into(_mlp), _fake_out)
_register(f"packed_gemm(Tensor a, {_PACKED}, *, {_WITH}, str? sums=None, {_DTYPE}) -> Tensor",
          _packed_gemm, _fake_packed)
_register(f"packed_grouped_gemm(Tensor a, {_PACKED}, Tensor offsets, *, {_WITH}, str? sums=None, "
          f"{_EXPECTED}, {_DTYPE}) -> Tensor", _packed_grouped_gemm,
          _fake_packed_grouped)
_register("quantise(Tensor x, str scaling='row_column', Tensor? scale=None, int block=128) -> "
          "(Tensor, Tensor)", _quantise, _fake_quantise)
_register("quantise_nvf4(Tensor x, Tensor? scale=None, str? recipe=None) -> "
          "(Tensor, Tensor, Tensor)", _quantise_nvf4, _fake_quantise_nvf4)
_register("block_scales(Tensor scales, Tensor? offsets=None) -> Tensor", _formats.block_scales,
          _fake_block_scales)
