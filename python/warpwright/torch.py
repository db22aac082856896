"""torch.ops.warpwright: products as operators of PyTorch, for torch.compile and CUDA graphs.

    import warpwright.torch

    y = torch.ops.warpwright.gemm(x, w)  # x @ w.T
    y = torch.ops.warpwright.gemm(x, w, bias=b, activation="gelu")
    torch.ops.warpwright.gemm_out(x, w, y)
    y = torch.ops.warpwright.scaled_gemm(x8, w8, scale_x, scale_w)
    y = torch.ops.warpwright.grouped_gemm(x, experts, offsets)

Tensors on a CUDA device are multiplied there, on the current stream, without waiting; those of the
CPU by the machine model. The operators have no backward: a tensor that requires a gradient is
refused while gradients are recorded. Arguments are those of warpwright.gemm and grouped_gemm.
"""
import torch

from . import _core

_LIBRARY = torch.library.Library("warpwright", "DEF")
_EPILOGUE = ("Tensor? bias=None, str activation='none', bool gated=False, "
             "bool batch_invariant=False")
_SCALES = "Tensor? scale_d=None, str? scaling=None, str accumulation='fast'"


def _result_type(a, dtype):
    if dtype is not None:
        return dtype
    return a.dtype if a.dtype.itemsize == 2 else torch.bfloat16


def _columns(b, gated):
    return b.shape[-2] // 2 if gated else b.shape[-2]


def _dense_result(a, b, gated, dtype):
    batch = a.shape[:-2] or b.shape[:-2]
    return a.new_empty((*batch, a.shape[-2], _columns(b, gated)), dtype=_result_type(a, dtype))


def _gemm(a, b, *, dtype=None, gated=False, **rest):
    out = _dense_result(a, b, gated, dtype)
    return _core.gemm(a, b, out=out, gated=gated, **rest)


def _gemm_out(a, b, out, **rest):
    _core.gemm(a, b, out=out, **rest)


def _scaled_gemm(a, b, scale_a, scale_b, *, dtype=None, gated=False, **rest):
    out = _dense_result(a, b, gated, dtype)
    return _core.gemm(a, b, out=out, scale_a=scale_a, scale_b=scale_b, gated=gated, **rest)


def _grouped_gemm(a, b, offsets, **rest):
    return _core.grouped_gemm(a, b, offsets, **rest)


def _grouped_gemm_out(a, b, offsets, out, **rest):
    _core.grouped_gemm(a, b, offsets, out=out, **rest)


def _check_places(*tensors, **keywords):
    """A tensor without memory beside others would give a result that nobody computes."""
    places = {t.device.type for t in (*tensors, *keywords.values()) if isinstance(t, torch.Tensor)}
    if len(places) > 1:
        raise ValueError("the tensors lie on " + " and ".join(sorted(places))
                         + "; they must lie on one device")


def _fake_dense(a, b, *rest, dtype=None, gated=False, **keywords):
    _check_places(a, b, *rest, **keywords)
    return _dense_result(a, b, gated, dtype)


def _fake_grouped(a, b, *rest, dtype=None, gated=False, **keywords):
    _check_places(a, b, *rest, **keywords)
    return a.new_empty((a.shape[0], _columns(b, gated)), dtype=_result_type(a, dtype))


def _fake_out(*tensors, **keywords):
    _check_places(*tensors, **keywords)


def _register(schema, function, fake):
    name = schema.split("(")[0]
    # Kernels are chosen by strides, and what the compiler saw is what must come.
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
    for key in ("CUDA", "CPU"):
        _LIBRARY.impl(name, function, key)
    torch.library.register_fake(f"warpwright::{name}", fake, lib=_LIBRARY)


_register("gemm(Tensor a, Tensor b, *, Tensor? c=None, float alpha=1.0, float beta=1.0, "
          f"{_EPILOGUE}, ScalarType? dtype=None) -> Tensor", _gemm, _fake_dense)
_register("gemm_out(Tensor a, Tensor b, Tensor(a!) out, *, Tensor? c=None, float alpha=1.0, "
          f"float beta=1.0, {_EPILOGUE}) -> ()", _gemm_out, _fake_out)
_register("scaled_gemm(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, *, "
          f"{_EPILOGUE}, {_SCALES}, ScalarType? dtype=None) -> Tensor", _scaled_gemm, _fake_dense)
_register("grouped_gemm(Tensor a, Tensor b, Tensor offsets, *, Tensor? scale_a=None, "
          f"Tensor? scale_b=None, {_EPILOGUE}, {_SCALES}, float expected_tokens=0.0, "
          "ScalarType? dtype=None) -> Tensor", _grouped_gemm, _fake_grouped)
_register("grouped_gemm_out(Tensor a, Tensor b, Tensor offsets, Tensor(a!) out, *, "
          f"Tensor? scale_a=None, Tensor? scale_b=None, {_EPILOGUE}, {_SCALES}, "
          "float expected_tokens=0.0) -> ()", _grouped_gemm_out, _fake_out)
