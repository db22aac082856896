"""All of the public surface as a careful user has it: `mypy --strict` finds nothing here. It also
runs (types_test.py)."""
import pathlib
import sys
import tempfile
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import warpwright as wp

Floats = npt.NDArray[Any]


def layer(x: Floats, w: Floats, bias: Floats) -> Floats:
    """The result is what A is."""
    return wp.gemm(x, w, bias=bias, bias_along="columns", activation="gelu", alpha=0.5, dtype="f32")


def norm(tensor: wp.Tensor) -> tuple[int, int]:
    return tensor.__dlpack_device__()


def mistakes(x: Floats, w: Floats) -> None:
    """What a type checker must catch: an ignore that is not needed is an error too. Nobody calls
    it."""
    wp.plan(x, w, nonsense=1)  # type: ignore[call-arg]
    wp.plan()  # type: ignore[call-arg]
    wp.plan(x, w, activation="tanh")  # type: ignore[arg-type]
    wp.gemm(x, w, activation="tanh")  # type: ignore[arg-type]
    wp.gemm(x, w, operands="int4")  # type: ignore[arg-type]
    wp.gemm(x, w, a_type="fp4")  # type: ignore[arg-type]
    wp.quantise(x, "nvf4", recipe="best")  # type: ignore[arg-type]
    wp.gemm([[1.0]], w)  # type: ignore[type-var]
    wp.gemm(x, w, wp.Spec((3,)))  # type: ignore[arg-type, call-arg]
    wp.grouped_gemm(x, w)  # type: ignore[call-arg]
    wp.grouped_gemm(x, w, x, sums="best")  # type: ignore[arg-type]
    wp.moe(x, x, x, w)  # type: ignore[call-arg]
    wp.moe(x, x, x, w, w, activation="tanh")  # type: ignore[arg-type]
    wp.moe(x, x, x, w, w, plan=wp.plan(x, w))  # type: ignore[arg-type]
    wp.moe(x, x, x, w, wp.Spec((8, 16)))  # type: ignore[arg-type]
    wp.check(x, w, nonsense=1)  # type: ignore[call-arg]
    wp.trace(x, w, bias_along=3)  # type: ignore[arg-type]
    wp.quantise(x, "none")  # type: ignore[arg-type]
    wp.pack_int4(x, encoding="s4")  # type: ignore[arg-type]
    wp.PackedWeights.spec(16, 128, scales="e4m3")  # type: ignore[arg-type]
    wp.Workspace("1 MiB")  # type: ignore[arg-type]
    wp.Plan.prepare(wp.plan(x, w), 3)  # type: ignore[arg-type]
    wp.Spec(3)  # type: ignore[arg-type]
    wp.empty([4, 8], "bf16", "model")  # type: ignore[arg-type]
    wp.check_ptx("share.ptx")  # type: ignore[call-arg]
    wp.check_ptx("share.ptx", args=[x], block="64")  # type: ignore[arg-type]
    wp.check_ptx("share.ptx", args=[x], block=64, expect={"x": x})  # type: ignore[dict-item]
    wp.TensorMap([1.0], (8, 8))  # type: ignore[arg-type]


def main() -> int:
    bf16, e4m3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
    x: Floats = np.ones((20, 256), bf16)
    w: Floats = np.ones((64, 256), bf16)
    y = layer(x, w, np.ones(64, np.float32))
    out: Floats = np.zeros((20, 64), bf16)
    wp.gemm(x, w, out=out, c=out, beta=0.5, accumulation="fast", batch_invariant=True,
            cluster=(1, 1), kernel=None, dependent=False, stream=None)
    wp.gemm(x, np.ones((128, 256), bf16), gated=True)
    wp.gemm(np.ones((4, 8), np.float32), np.ones((8, 8), np.float32), operands="tf32")

    codes4, tiles, whole = wp.quantise(x, "nvf4", recipe="4-or-6")
    assert whole.shape == (1,)
    wp.plan(codes4, codes4, a_type="nvf4", b_type="e2m1", scale_a=tiles, scale_b=tiles,
            device="rtx5090")
    assert wp.block_scales(wp.quantise(x, "mxf4", linear=True)[1]).shape == (1024,)
    assert wp.pack_elements(np.zeros((2, 4), np.uint8), "e2m1").shape == (2, 2)

    x8, scale = wp.quantise(x)
    blocks, block_scales = wp.quantise(x, "blockwise")
    packed: wp.PackedWeights = wp.pack_int4(np.ones((128, 256), np.float32), group=64,
                                            encoding="ex",
                                          scales="f16", zero_points=False)
    wp.gemm(x8, packed, scale_a=scale, sums="exact")
    wp.gemm(blocks, np.ones((128, 256), e4m3), scale_a=block_scales,
            scale_b=np.ones((1, 2), np.float32), scaling="blockwise")
    wp.gemm(np.ones((4, 32), e4m3), np.ones((8, 32), e4m3), scale_a=0.5, scale_b=2.0)
    assert packed.shape == (128, 256) and packed.group == 64 and packed.encoding == "ex"
    assert packed.scales == "f16" and not packed.zero_points and packed.origin
    assert packed.values().shape == packed.on(packed.data).to("cpu").shape
    codes, scales = np.zeros((128, 128), np.uint8), np.ones((128, 2), np.float16)
    plain = wp.pack_int4_checkpoint("int4", codes, scales, scale_type="bf16")
    with tempfile.TemporaryDirectory() as folder:
        try:
            wp.load_int4(str(pathlib.Path(folder) / "w.safetensors:w"), "gptq")
        except wp.Refusal as refusal:
            assert refusal.code == "file_error" and refusal.reason == str(refusal)

    experts: Floats = np.ones((2, 64, 256), bf16)
    offsets = np.array([0, 3, 20], np.int32)
    grouped = wp.grouped_gemm(x, experts, offsets, expected_tokens=10.0, check_offsets=True)

    ids, shares = np.zeros((20, 2), np.int32), np.ones((20, 2), np.float32)
    down: Floats = np.ones((2, 256, 32), bf16)
    mixed = wp.moe(x, ids, shares, experts, down, activation="silu", gate_up="interleaved",
                   first_expert=1, experts_total=4, dtype="f32", check_ids=True)
    mixture: wp.MoePlan = wp.plan_moe(x, ids, shares, experts, down, batch_invariant=True,
                                      by_index=None, expected_lengths="zipf:1")
    mixture.prepare()
    with wp.Workspace(mixture.workspace_bytes, device="model") as workspace:
        wp.moe(x, ids, shares, experts, down, out=np.zeros((20, 256), bf16), plan=mixture,
               workspace=workspace)
    kernels: tuple[str, str] = mixture.kernels
    launches: int = mixture.launches

    plan: wp.Plan = wp.plan(x, w, activation="relu")
    there = wp.plan(wp.Spec((4096, 7168)), wp.Spec((2048, 7168), "bf16", strides=(7168, 1)),
                    device="h200", batch_invariant=True)
    int4 = wp.plan(wp.Spec((16, 4096), "e4m3"), wp.PackedWeights.spec(4096, 4096, 8),
                   wp.Spec((9,), "int32"), device="h200", sums="folded")
    with wp.Workspace(1 << 20, device="model") as workspace:
        plan.prepare(workspace=workspace)
        wp.gemm(x, w, activation="relu", plan=plan, workspace=workspace)
        nbytes: int = workspace.nbytes
    texts: list[str] = [plan.name, plan.kernel, plan.line, plan.device, plan.explain(), there.name,
                        int4.kernel, wp.__version__, *wp.devices(), *kernels, mixture.name,
                        mixture.line, mixture.device, mixture.explain()]

    array: wp.Array = wp.empty((4, 8), dtype="bf16", device="model")
    shape: tuple[int, ...] = array.shape
    texts += [array.dtype, array.device]
    host: Floats = np.asarray(array)

    report: wp.Check = wp.check(x, w, schedules=2, seed=3, jobs=1, sms=4, activation="silu")
    found: list[tuple[str, int, str]] = report.findings
    counts: tuple[int, int] = (report.schedules, report.failing)
    timeline: wp.Trace = wp.trace(x, experts, offsets, sms=4)
    with tempfile.TemporaryDirectory() as folder:
        saved: pathlib.Path = timeline.save(pathlib.Path(folder) / "timeline.svg")
        assert saved.suffix == ".svg"
    texts += [timeline.svg, timeline.grid_svg, report.plan.name, str(report)]
    empty = "\n".join((".version 8.0", ".target sm_90", ".visible .entry none(.param .u64 to)",
                       "{", "ret;", "}"))
    of_ptx: wp.PtxCheck = wp.check_ptx(empty, "none", [x], block=(32, 1), grid=2, expect={0: x},
                                       schedules=2, seed=3, jobs=1, sms=4, replay=None,
                                       strict=True, cluster=1, smem=0, registers=None)
    faults: list[wp.Finding] = of_ptx.findings
    mutants: list[wp.Mutant] = of_ptx.mutants
    assert not mutants and not of_ptx.score
    texts += [of_ptx.kernel, str(of_ptx), *(f.code + f.place + f.sentence for f in faults)]
    assert wp.TensorMap(x, (8, 64), swizzle=128, dtype=bf16).array is x and of_ptx
    cycles: int = timeline.cycles
    data: bytes = timeline.perfetto
    right = (bool(report) and not found and counts == (2, 0) and cycles > 0 and data
             and nbytes == 1 << 20 and shape == host.shape and all(texts) and norm(array)[0] == 1
             and launches > 2 and mixed.shape == x.shape and y.shape == grouped.shape
             and plain.shape == (128, 256)
             and isinstance(wp.built_with_cuda, bool))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
