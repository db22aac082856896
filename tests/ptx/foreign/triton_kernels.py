"""Kernels in Triton, our own and others' by their source, as PTX; without a GPU.

    python triton_kernels.py NAME TO.ptx [SOURCE.py]

Prints the launch: {"entry": ..., "threads": ..., "shared": ..., "triton": its version}.
"""
import ast
import inspect
import json
import pathlib
import sys
import tempfile

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def product(a, b, d, m, n, k, pitch_a, pitch_b, pitch_d,
            M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """D = A x B by pointers; K divides k."""
    rows = (tl.program_id(0) * M + tl.arange(0, M)) % m
    columns = (tl.program_id(1) * N + tl.arange(0, N)) % n
    depth = tl.arange(0, K)
    a_at = a + rows[:, None] * pitch_a + depth[None, :]
    b_at = b + depth[:, None] * pitch_b + columns[None, :]
    sums = tl.zeros((M, N), dtype=tl.float32)
    for _ in range(0, k, K):
        sums = tl.dot(tl.load(a_at), tl.load(b_at), sums)
        a_at += K
        b_at += K * pitch_b
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(d + rows[:, None] * pitch_d + columns[None, :], sums.to(tl.float16), mask=inside)


@triton.jit
def persistent(a, b, d, m, n, k, ctas,
               M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """D = A x B^T by TMA, tile after tile."""
    across = tl.cdiv(n, N)
    tiles = tl.cdiv(m, M) * across
    for tile in tl.range(tl.program_id(0), tiles, ctas, flatten=True):
        row = tile // across * M
        column = tile % across * N
        sums = tl.zeros((M, N), dtype=tl.float32)
        for at in range(0, k, K):
            sums = tl.dot(a.load([row, at]), b.load([column, at]).T, sums)
        d.store([row, column], sums.to(tl.float16))


TILE = {"M": 64, "N": 64, "K": 32}
PITCHES = ["m", "n", "k", "pitch_a", "pitch_b", "pitch_d"]
BY_POINTERS = ({"a": "*fp16", "b": "*fp16", "d": "*fp16", **dict.fromkeys(PITCHES, "i32")}, TILE,
               ("a", "b", "d", "k", "pitch_a", "pitch_b", "pitch_d"))
BY_MAPS = ({"a": "tensordesc<fp16[64, 32]>", "b": "tensordesc<fp16[64, 32]>",
            "d": "tensordesc<fp16[64, 64]>", "m": "i32", "n": "i32", "k": "i32", "ctas": "i32"},
           TILE, ())


def moe_kernel(path):
    """The fused mixture of vLLM as SGLang has it: bf16, no scales."""
    text = pathlib.Path(path).read_text()
    names = ("write_zeros_to_output", "fused_moe_kernel")
    parts = [ast.get_source_segment(text, node) for node in ast.parse(text).body
             if isinstance(node, ast.FunctionDef) and node.name in names]
    source = pathlib.Path(tempfile.mkdtemp()) / "moe.py"
    source.write_text("import triton\nimport triton.language as tl\n\n\n" +
                      "\n\n\n".join("@triton.jit\n" + part for part in parts))
    sys.path.insert(0, str(source.parent))
    import moe  # pylint: disable=import-error
    return moe.fused_moe_kernel


def moe(path, fp8=False):
    """Its signature: arguments that are not there are None."""
    kernel = moe_kernel(path)
    element = "*fp8e4nv" if fp8 else "*bf16"
    given = {"a_ptr": element, "b_ptr": element, "c_ptr": "*bf16", "topk_weights_ptr": "*fp32",
             "sorted_token_ids_ptr": "*i32", "expert_ids_ptr": "*i32",
             "num_tokens_post_padded_ptr": "*i32",
             **dict.fromkeys(("N", "K", "EM", "num_valid_tokens", "stride_am", "stride_be",
                              "stride_bn", "stride_cm"), "i32")}
    constants = {"stride_ak": 1, "stride_bk": 1, "stride_cn": 1, "group_n": 0, "group_k": 0,
                 "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1,
                 "MUL_ROUTED_WEIGHT": True, "top_k": 2, "compute_type": tl.bfloat16,
                 "use_fp8_w8a8": False, "use_int8_w8a8": False, "use_int8_w8a16": False,
                 "per_channel_quant": False, "even_Ks": True, "c_sorted": False, "swap_ab": False,
                 "FUSE_ADD_TO_OUTPUT": False, "MASK_OUTPUT": False, "FUSE_SUM_ALL_REDUCE": False,
                 "ROUTER_TOPK": 2, "FUSE_SWIGLU": False, "USE_GDC": False, "GDC_EARLY": False,
                 "A_OUTPUT_SLICES": 1, "A_OUTPUT_SLICE_WIDTH": 0, "A_OUTPUT_SLICE_K": 0}
    if fp8:
        given |= {"a_scale_ptr": "*fp32", "b_scale_ptr": "*fp32",
                  **dict.fromkeys(("stride_asm", "stride_bse", "stride_bsn"), "i32")}
        constants |= {"use_fp8_w8a8": True, "group_n": 128, "group_k": 128, "BLOCK_SIZE_K": 128,
                      "stride_ask": 1, "stride_bsk": 1}
    names = list(inspect.signature(kernel.fn).parameters)
    signature = {name: given.get(name, "constexpr") for name in names}
    constants = {name: constants.get(name) for name in names if name not in given}
    by_16 = tuple(name for name in given if name not in ("num_valid_tokens", "EM"))
    return kernel, signature, constants, by_16


def source_of(name, path):
    if name.startswith("moe"):
        kernel, signature, constants, by_16 = moe(path, name.startswith("moe_fp8"))
    else:
        kernel = persistent if name.startswith("persistent") else product
        signature, constants, by_16 = BY_MAPS if kernel is persistent else BY_POINTERS
        signature = signature | dict.fromkeys(constants, "constexpr")
    places = {name: (i,) for i, name in enumerate(signature)}
    return ASTSource(fn=kernel, signature=signature,
                     constexprs={places[n]: value for n, value in constants.items()},
                     attrs={places[n]: [["tt.divisibility", 16]] for n in by_16})


def main():
    name, to, path = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    target = GPUTarget("cuda", 80 if name.endswith("_sm80") else 90, 32)
    options = {"num_stages": 3, "num_warps": 4, "ptx_version": 90}
    made = triton.compile(source_of(name, path), target=target, options=options)
    pathlib.Path(to).write_text(made.asm["ptx"])
    print(json.dumps({"entry": made.metadata.name, "threads": 32 * made.metadata.num_warps,
                      "shared": made.metadata.shared,
                      "triton": triton.__version__}))


if __name__ == "__main__":
    main()
