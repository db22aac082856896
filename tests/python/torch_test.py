#!/usr/bin/env python3
"""torch.ops.warpwright with PyTorch, where it is installed: torch_test.py [--host]

On the CPU (the model) always; on a CUDA device where there is one: opcheck, torch.compile, CUDA
graphs, streams, several devices. --host also measures what a call takes of the host, beside
torch.mm and the launch of an empty kernel. What could not run is named in the last lines.
"""
import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import time
import unittest

try:
    import torch
except ImportError:
    print("did not run: torch_test.py: PyTorch is not here")
    sys.exit(77)
import warpwright as wp
import warpwright.torch  # noqa: F401  pylint: disable=unused-import

ops = torch.ops.warpwright
CUDA = torch.cuda.is_available()
DEVICES = ["cpu"] + (["cuda"] if CUDA else [])
LEFT_OUT = [] if CUDA else ["all that needs a CUDA device"]


PRODUCTS = """
import sys, torch, warpwright as wp, warpwright.torch
ops = torch.ops.warpwright
torch.manual_seed(2026)
x, w = torch.randn(20, 256), torch.randn(136, 256)
want = x @ w.T
def close(d, tolerance):
    assert d.shape == want.shape and d.dtype == torch.bfloat16
    assert (d.float() - want).abs().max() < tolerance * want.abs().max()
a, sa, of_a = ops.quantise_nvf4(x)
b, sb, of_b = ops.quantise_nvf4(w)
assert a.dtype == torch.float4_e2m1fn_x2
alpha = of_a.item() * of_b.item()
close(ops.scaled_gemm(a, b, sa, sb, alpha=alpha), 0.2)
close(wp.gemm(a.view(torch.uint8), b, operands="nvf4", scale_a=sa, scale_b=sb, alpha=alpha), 0.2)
weight, of_weight = ops.quantise(w, "mxf8")
def layer(x):
    codes, scales = ops.quantise(x, "mxf8")
    return ops.scaled_gemm(codes, weight, scales, of_weight, bias=torch.zeros(136))
close(layer(x), 0.05)
compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
close(compiled(x), 0.05)
close(torch.cat([compiled(x[:7]), compiled(x[7:])]), 0.05)
here = {"torch": torch, "wp": wp, "ops": ops}
exec(sys.argv[1], here)  # the layer of docs/inference.md, with a checkpoint's tensors
codes, linear, whole = wp.quantise(w, "nvf4", linear=True)
close(here["Nvf4Linear"](codes.view(torch.uint8), linear, whole, of_a)(x), 0.2)
print("all right")
"""


def normal(*shape, device, dtype=torch.bfloat16):
    return torch.randn(shape, device=device).to(dtype)


def grouped(device, dtype=torch.bfloat16):
    offsets = torch.tensor([0, 3, 3, 18, 20], dtype=torch.int32, device=device)
    return normal(20, 128, device=device, dtype=dtype), normal(4, 64, 128, device=device,
                                                               dtype=dtype), offsets


def mixture(device, tokens=20, dtype=torch.bfloat16):
    """(x, topk_ids, topk_weights, w13, w2): 6 experts, 2 a token, and a slot of none."""
    ids = torch.stack([torch.randperm(6)[:2] for _ in range(tokens)]).to(device)
    ids[0, 0] = -1
    return (normal(tokens, 128, device=device, dtype=dtype), ids,
            torch.rand(tokens, 2, device=device),
            normal(6, 256, 128, device=device, dtype=dtype) / 8,
            normal(6, 128, 128, device=device, dtype=dtype) / 8)


def mixture_sums(x, ids, weights, w13, w2):
    """What a mixture is, in float32."""
    out = torch.zeros(x.shape, device=x.device)
    for e in range(len(w13)):
        gate, up = (x.float() @ w13[e].float().T).chunk(2, -1)
        made = (torch.nn.functional.silu(gate) * up) @ w2[e].float().T
        out += ((ids == e) * weights).sum(1, keepdim=True) * made
    return out


class Operators(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2026)

    def close(self, d, want):
        scale = max(1.0, want.abs().max().item())
        self.assertEqual(d.shape, want.shape)
        self.assertLess((d.float() - want).abs().max().item(), 0.02 * scale)

    def test_values(self):
        for device in DEVICES:
            a, b = normal(20, 128, device=device), normal(64, 128, device=device)
            want = a.float() @ b.float().T
            self.close(ops.gemm(a, b), want)
            bias = normal(64, device=device)
            self.close(ops.gemm(a, b, bias=bias, activation="relu"), (want + bias.float()).relu())
            self.close(ops.gemm(a, b, c=want.bfloat16(), alpha=0.5, beta=-1.0), -0.5 * want)
            self.assertEqual(ops.gemm(a, b, dtype=torch.float32).dtype, torch.float32)
            out = torch.empty(20, 64, dtype=torch.bfloat16, device=device)
            ops.gemm_out(a, b, out)
            self.close(out, want)
            self.close(ops.gemm(a[None].expand(3, 20, 128), b), want.expand(3, 20, 64))

    def test_fp8(self):
        for device in DEVICES:
            a = normal(20, 256, device=device, dtype=torch.float8_e4m3fn)
            b = normal(128, 256, device=device, dtype=torch.float8_e4m3fn)
            sa, sb = torch.rand(20, 2, device=device), torch.rand(1, 2, device=device)
            d = ops.scaled_gemm(a, b, sa, sb)
            want = sum((a.float()[:, i * 128:][:, :128] @ b.float()[:, i * 128:][:, :128].T)
                       * sa[:, i:i + 1] * sb[0, i] for i in range(2))
            self.close(d, want)

    def test_formats(self):
        """Codes and scales of formats; the product where the machine's tensor cores have it, which
        the model of an H200 has not (test_formats.py multiplies them on that of an RTX 5090)."""
        for device in DEVICES:
            x, w = normal(20, 128, device=device), normal(2, 64, 128, device=device)
            for form, codes_type in (("mxf8", torch.float8_e4m3fn), ("mxf6", torch.uint8),
                                     ("mxf4", torch.float4_e2m1fn_x2)):
                codes, scales = ops.quantise(x, form)
                self.assertEqual((codes.dtype, scales.dtype), (codes_type, torch.float8_e8m0fnu))
                linear = wp.quantise(x, form, linear=True)[1]
                self.assertTrue(torch.equal(ops.block_scales(linear).view(torch.uint8),
                                            scales.view(torch.uint8)))
                with self.assertRaisesRegex(wp.Refusal, "multiply no scales|no kernel"):
                    ops.scaled_gemm(codes, codes, scales, scales, operands=form)
            codes, scales, whole = ops.quantise_nvf4(w)
            self.assertEqual((codes.shape, scales.shape), ((2, 64, 64), (2, 1024)))
            self.assertEqual(whole.item(), (w.float().abs().max() / (448 * 6)).item())
            again = ops.quantise_nvf4(w, whole)
            self.assertTrue(torch.equal(again[0].view(torch.uint8), codes.view(torch.uint8)))
            offsets = torch.tensor([0, 3, 20], dtype=torch.int32, device=device)
            rows = wp.quantise(x, "nvf4", scale=whole, linear=True)[1]
            self.assertEqual(ops.block_scales(rows, offsets).shape, (2048,))
            # PyTorch's float4_e2m1fn_x2 says what it is: a plan needs no word.
            one = codes[0]
            kernel = wp.plan(one, one, scale_a=scales[0], scale_b=scales[0],
                             device="rtx5090").kernel
            self.assertIn("nvf4", kernel)

    def test_products_of_formats(self):
        """In a process of its own: which instructions the model has is read once."""
        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "inference.md"
        (sample,) = (text for text in page.read_text().split("```python\n")
                     if text.startswith("class Nvf4Linear"))
        done = subprocess.run([sys.executable, "-c", PRODUCTS, sample.split("```")[0]],
                              capture_output=True, text=True,
                              env={**os.environ, "WARPWRIGHT_MODEL": "rtx5090"}, check=False)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "all right"), done.stderr)

    def test_groups(self):
        for device in DEVICES:
            a, b, offsets = grouped(device)
            d = ops.grouped_gemm(a, b, offsets)
            cuts = offsets.tolist()
            want = torch.cat([a.float()[x:y] @ b.float()[g].T
                              for g, (x, y) in enumerate(zip(cuts, cuts[1:]))])
            self.close(d, want)
            out = torch.zeros_like(d)
            ops.grouped_gemm_out(a, b, offsets, out)
            self.assertTrue(torch.equal(out, d))

    def test_tokens_by_index(self):
        for device in DEVICES:
            x, w, offsets = grouped(device)
            rows = torch.randint(0, 40, (20,), dtype=torch.int32, device=device)
            d = ops.grouped_gemm(x, w, offsets, rows=rows, rows_divisor=2)
            self.assertTrue(torch.equal(d, ops.grouped_gemm(x[rows // 2], w, offsets)))

    def test_mixtures(self):
        for device in DEVICES:
            tensors = mixture(device)
            want = mixture_sums(*tensors)
            d = ops.moe(*tensors)
            self.close(d, want)
            self.assertTrue(torch.equal(d, wp.moe(*tensors)))
            self.assertEqual(ops.moe(*tensors, dtype=torch.float32).dtype, torch.float32)
            x = tensors[0].clone()
            ops.moe_out(x, *tensors[1:], x)
            self.assertTrue(torch.equal(x, d))
            x, ids, weights, w13, w2 = tensors
            shares = [ops.moe(x, ids, weights, w13[e:e + 3], w2[e:e + 3], first_expert=e,
                              experts_total=6, batch_invariant=True).float() for e in (0, 3)]
            self.close(shares[0] + shares[1], want)
            # A scale a row: half of the weights, twice.
            half = (torch.full((6, 256), 0.5, device=device),
                    torch.full((6, 128), 2., device=device))
            e4m3 = [w.to(torch.float8_e4m3fn) for w in (w13, w2)]
            d = ops.moe(x, ids, weights, *e4m3, scale_w13=half[0], scale_w2=half[1])
            want = mixture_sums(x, ids, weights, e4m3[0].float() * 0.5, e4m3[1].float() * 2)
            self.assertLess(((d.float() - want).norm() / want.norm()).item(), 0.05)
            packed = [wp.pack_int4(w) for w in (w13, w2)]
            d = ops.packed_moe(x, ids, weights, packed[0].data, packed[0].form, packed[1].data,
                             packed[1].form)
            values = [torch.from_numpy(w.values()).to(device) for w in packed]
            want = mixture_sums(x, ids, weights, *values)
            self.assertLess(((d.float() - want).norm() / want.norm()).item(), 0.05)

    def test_an_mlp(self):
        for device in DEVICES:
            x, w13, w2 = (normal(9, 128, device=device), normal(128, 128, device=device),
                          normal(128, 64, device=device))
            gate, up = (x.float() @ w13.float().T).chunk(2, 1)
            want = torch.nn.functional.silu(gate) * up @ w2.float().T
            d = ops.mlp(x, w13, w2)
            self.assertLess(((d.float() - want).norm() / want.norm()).item(), 0.01)
            out = torch.empty_like(d)
            ops.mlp_out(x, w13, w2, out)
            self.assertTrue(torch.equal(out, d))

    def test_int4_and_quantised_tokens(self):
        for device in DEVICES:
            x, w = normal(24, 256, device=device), normal(128, 256, device=device)
            x8, scale = ops.quantise(x)
            self.assertEqual((x8.dtype, scale.shape), (torch.float8_e4m3fn, (24,)))
            here = ops.quantise(x.cpu())
            self.assertTrue(torch.equal(here[0].view(torch.uint8), x8.cpu().view(torch.uint8)))
            self.assertTrue(torch.equal(here[1], scale.cpu()))
            packed = wp.pack_int4(w)
            self.assertEqual((packed.data.device, packed.data.dtype), (w.device, torch.uint8))
            values = torch.from_numpy(packed.values()).to(device)
            d = ops.packed_gemm(x8, packed.data, packed.form, scale_a=scale,
                              scale_b=torch.ones(128, device=device))
            self.close(d, (x8.float() * scale[:, None]) @ values.T)
            experts = wp.pack_int4(torch.stack([w, -w]))
            offsets = torch.tensor([0, 10, 24], dtype=torch.int32, device=device)
            d = ops.packed_grouped_gemm(x8, experts.data, experts.form, offsets)
            one, other = torch.from_numpy(experts.values()).to(device)
            self.close(d, torch.cat([x8.float()[:10] @ one.T, x8.float()[10:] @ other.T]))
            moved = experts.to(device)
            self.assertEqual(moved.form, experts.form)

    def test_the_factor_of_nvf4_goes_where_the_form_goes(self):
        for device in DEVICES:
            x, w = normal(24, 256, device=device), normal(64, 256, device=device)
            packed = wp.pack_fp4(w, encoding="nvf4")
            want = wp.gemm(x, packed)
            self.assertLess(((want.float() - x.float() @ w.float().T).norm() / want.norm()).item(),
                            0.2)
            for form in (packed.form, list(packed.form)):
                self.assertTrue(torch.equal(ops.packed_gemm(x, packed.data, form), want))
            factor = torch.tensor(packed.alpha, device=device)
            unknown = packed.form[:8]  # as it was before there was a factor in it
            self.assertTrue(torch.equal(ops.packed_gemm(x, packed.data, unknown, scale_b=factor),
                                        want))
            experts = wp.pack_fp4(torch.stack([w, 3 * w]), encoding="nvf4")
            offsets = torch.tensor([0, 10, 24], dtype=torch.int32, device=device)
            ids = torch.zeros(24, 1, dtype=torch.int32, device=device)
            both = (experts.data, experts.form)
            for call in (lambda: ops.packed_gemm(x, packed.data, unknown),
                         lambda: ops.packed_grouped_gemm(x, *both, offsets),
                         lambda: ops.packed_moe(x, ids, ids.float(), *both, *both)):
                with self.assertRaisesRegex(wp.Refusal, "alpha"):
                    call()
            with self.assertRaisesRegex(wp.Refusal, "which has 9"):
                ops.packed_gemm(x, packed.data, [1, 8])
            for call in (lambda: ops.gemm(x[0], w), lambda: ops.packed_gemm(x[0], *both)):
                with self.assertRaisesRegex(wp.Refusal, "of one row 1 x 256"):
                    call()

    def test_scales_of_16_bits_and_columns(self):
        for device in DEVICES:
            a, b = (normal(m, 128, device=device).to(torch.float8_e4m3fn) for m in (24, 64))
            sa = (torch.rand(24, 1, device=device) + 0.5).bfloat16()
            sb = (torch.rand(1, 64, device=device) + 0.5).bfloat16()
            want = wp.gemm(a, b, scale_a=sa.float().reshape(-1), scale_b=sb.float().reshape(-1))
            self.assertTrue(torch.equal(ops.scaled_gemm(a, b, sa, sb), want))

    def test_blocks_side_by_side(self):
        for device, block in itertools.product(DEVICES, (128, 64, 32)):
            count = -(-304 // block)
            x8, scales = ops.quantise(normal(21, 304, device=device), "blockwise", block=block)
            self.assertEqual((scales.shape, scales.stride()), ((21, count), (1, 24)))
            w8 = normal(128, 304, device=device).to(torch.float8_e4m3fn)
            d = ops.scaled_gemm(x8, w8, scales, torch.ones(128 // block, count, device=device))
            want = sum((x8.float()[:, i:i + block] @ w8.float()[:, i:i + block].T)
                       * scales[:, i // block:][:, :1] for i in range(0, 304, block))
            self.close(d, want)

    def test_a_tensor_without_memory_beside_others(self):
        a, b = normal(20, 128, device="cpu"), normal(64, 128, device="cpu")
        for call in (lambda: ops.gemm(a, b.to("meta")), lambda: ops.gemm(a.to("meta"), b),
                     lambda: ops.gemm_out(a, b.to("meta"), torch.empty(20, 64))):
            with self.assertRaisesRegex(ValueError, "must lie on one device"):
                call()
        self.assertEqual(ops.gemm(a.to("meta"), b.to("meta")).device.type, "meta")

    def test_a_minus_that_dlpack_does_not_tell(self):
        a, b = normal(20, 128, device="cpu"), normal(64, 128, device="cpu")
        minus = torch._neg_view(a)
        with self.assertRaisesRegex(wp.Refusal, "resolve_neg"):
            wp.gemm(minus, b)
        self.assertTrue(torch.equal(wp.gemm(minus.resolve_neg(), b), -wp.gemm(a, b)))

    def test_opcheck(self):
        for device in DEVICES:
            a, b = normal(20, 128, device=device), normal(64, 128, device=device)
            out = torch.empty(20, 64, dtype=torch.bfloat16, device=device)
            bias = normal(64, device=device)
            a8 = a.to(torch.float8_e4m3fn)
            b8 = b.to(torch.float8_e4m3fn)
            one = torch.ones((), device=device)
            int4 = wp.pack_int4(b)
            experts = wp.pack_int4(torch.stack([torch.cat([b, b]), torch.cat([b, b])]))
            down = wp.pack_int4(torch.stack([b.T.contiguous()] * 2), group=64)
            two = torch.tensor([0, 7, 20], dtype=torch.int32, device=device)
            for op, arguments, keywords in [
                    (ops.gemm, (a, b), {}),
                    (ops.gemm, (a, b), {"bias": bias, "activation": "gelu", "alpha": 0.5}),
                    (ops.gemm, (a, b), {"gated": True, "activation": "silu"}),
                    (ops.gemm_out, (a, b, out), {}),
                    (ops.scaled_gemm, (a8, b8, one, one), {}),
                    (ops.quantise, (a,), {}),
                    (ops.quantise, (a, "blockwise"), {}),
                    (ops.quantise, (a, "blockwise"), {"block": 64}),
                    (ops.quantise, (a, "tensor", one), {}),
                    (ops.quantise, (a, "mxf8"), {}),
                    (ops.quantise_nvf4, (a,), {}),
                    (ops.block_scales, (torch.ones(20, 8, dtype=torch.uint8, device=device),), {}),
                    (ops.packed_gemm, (a8, int4.data, int4.form), {}),
                    (ops.packed_grouped_gemm, (a8, experts.data, experts.form, two), {}),
                    (ops.grouped_gemm, grouped(device), {}),
                    (ops.grouped_gemm, grouped(device), {"rows": torch.zeros(
                        31, dtype=torch.int32, device=device)}),
                    (ops.moe, mixture(device), {}),
                    (ops.moe, mixture(device), {"dtype": torch.float32, "experts_total": 9}),
                    (ops.mlp, (a, torch.cat((b, b)), normal(128, 64, device=device)), {}),
                    (ops.packed_moe, (*mixture(device)[:3], experts.data, experts.form, down.data,
                                    down.form), {"first_expert": 2, "experts_total": 6}),
                    (ops.moe_out, (*mixture(device), torch.zeros(
                        20, 128, dtype=torch.bfloat16, device=device)), {}),
                    (ops.grouped_gemm_out, (*grouped(device), out), {})]:
                # PyTorch's own test of schemas compares inputs in a way that fp8 does not have.
                tests = ["test_autograd_registration", "test_faketensor",
                         "test_aot_dispatch_dynamic"]
                if op not in (ops.scaled_gemm, ops.packed_gemm, ops.packed_grouped_gemm,
                              ops.quantise,
                              ops.quantise_nvf4):
                    tests.append("test_schema")
                torch.library.opcheck(op.default, arguments, keywords, test_utils=tests)

    def test_compile_has_no_graph_break(self):
        for device in DEVICES:
            a, b = normal(20, 128, device=device), normal(64, 128, device=device)

            def layer(x, w):
                return ops.gemm(torch.relu(x), w, activation="silu") + 1

            compiled = torch.compile(layer, fullgraph=True,
                                     backend="inductor" if device == "cuda" else "aot_eager")
            self.close(compiled(a, b), layer(a, b).float())

            def experts(x, w, offsets):
                return ops.grouped_gemm(x * 2, w, offsets)
            a, b, offsets = grouped(device)
            compiled = torch.compile(experts, fullgraph=True, dynamic=True,
                                     backend="inductor" if device == "cuda" else "aot_eager")
            self.close(compiled(a, b, offsets), experts(a, b, offsets).float())

            def moe(x, *tensors):
                return ops.moe(x * 2, *tensors) + 1
            compiled = torch.compile(moe, fullgraph=True, dynamic=True,
                                     backend="inductor" if device == "cuda" else "aot_eager")
            for tokens in (20, 5):
                tensors = mixture(device, tokens)
                self.close(compiled(*tensors), moe(*tensors).float())

    def test_modules_of_the_documents(self):
        """docs/inference.md: what takes the place of nn.Linear and of experts."""
        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "inference.md"
        (sample,) = (text for text in page.read_text().split("```python\n")
                     if "class Fp8Linear" in text)
        here = {}
        exec(sample.split("```")[0], here)  # pylint: disable=exec-used
        for device in DEVICES:
            linear = torch.nn.Linear(256, 384).to(device, torch.bfloat16)
            x = normal(2, 5, 256, device=device)
            with torch.inference_mode():
                want = linear(x).float()
                for name, error in (("Fp8Linear", 0.06), ("Int4Linear", 0.12)):
                    y = here[name](linear)(x)
                    self.assertEqual(y.dtype, torch.bfloat16)
                    self.assertLess((y.float() - want).norm() / want.norm(), error)
                gate_up = normal(4, 256, 128, device=device)
                down = normal(4, 128, 128, device=device)
                x, _, offsets = grouped(device)
                y = here["Fp8Experts"](gate_up / 8, down / 8)(x, offsets).float()
                for g in range(4):
                    some = slice(offsets[g].item(), offsets[g + 1].item())
                    p = x[some].float() @ (gate_up[g] / 8).float().T
                    h = torch.nn.functional.silu(p[:, :128]) * p[:, 128:]
                    want = h @ (down[g] / 8).float().T
                    self.assertLessEqual((y[some] - want).norm(), 0.12 * want.norm())

    def test_gradients_are_refused_while_they_are_recorded(self):
        a, b = normal(4, 32, device="cpu"), normal(8, 32, device="cpu").requires_grad_()
        for call in (wp.gemm, ops.gemm):
            with self.assertRaisesRegex(ValueError, "B requires a gradient"):
                call(a, b)
            with torch.no_grad():
                call(a, b)

    def test_refusals_pass_through_operators(self):
        a, b = normal(4, 33, device="cpu"), normal(8, 33, device="cpu")
        with self.assertRaisesRegex(wp.Refusal, "the bias is 7 x 1"):
            ops.gemm(a, b, bias=torch.ones(7))
        with self.assertRaisesRegex(wp.Refusal, "A cannot be read|A lies|A is no tensor"):
            wp.gemm(torch.empty(4, 32, dtype=torch.bfloat16, device="meta"), b)


@unittest.skipUnless(CUDA, "no CUDA device")
class Gpu(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2026)

    def test_cuda_graphs_take_new_values(self):
        a, b = normal(64, 4096, device="cuda"), normal(1024, 4096, device="cuda")
        x, w, offsets = grouped("cuda")
        # Some products split K, whose workspace a capture cannot allocate.
        for _ in range(2):
            ops.gemm(a, b), ops.grouped_gemm(x, w, offsets)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            d = ops.gemm(a, b)
            y = ops.grouped_gemm(x, w, offsets)
        for cuts in ([0, 3, 3, 18, 20], [0, 0, 20, 20, 20]):
            a.copy_(torch.randn_like(a))
            offsets.copy_(torch.tensor(cuts, dtype=torch.int32))
            graph.replay()
            self.assertLess((d.float() - a.float() @ b.float().T).abs().max().item(), 2)
            want = torch.cat([x.float()[p:q] @ w.float()[g].T
                              for g, (p, q) in enumerate(zip(cuts, cuts[1:]))])
            self.assertLess((y.float() - want).abs().max().item(), 1)

    def test_cuda_graphs_of_mixtures(self):
        x, ids, weights, w13, w2 = tensors = mixture("cuda", 300)
        blocks = [torch.ones(6, w.shape[1] // 128, 1, device="cuda") for w in (w13, w2)]
        codes = [w.to(torch.float8_e4m3fn) for w in (w13, w2)]

        def layers():
            return (ops.moe(*tensors), ops.moe(x, ids, weights, *codes, scale_w13=blocks[0],
                                               scale_w2=blocks[1], scaling="blockwise"),
                    wp.fused_experts(x, w13, w2, weights, ids))
        stream = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(stream):
            layers()
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                made = layers()
            for seed in range(3):
                torch.manual_seed(seed)
                for old, new in zip(tensors[:3], mixture("cuda", 300)):
                    old.copy_(new)
                graph.replay()
                stream.synchronize()
                want = mixture_sums(*tensors)
                of_codes = mixture_sums(*tensors[:3], *(c.to(x.dtype) for c in codes))
                for y, right, error in zip(made, (want, of_codes, want), (0.01, 0.06, 0.01)):
                    self.assertLess((y.float() - right).norm(), error * right.norm())

    def test_checkpoints_are_packed_where_they_lie(self):
        n, k = 200, 384
        codes = torch.randint(0, 256, (2, n, k // 2), dtype=torch.uint8)
        words = torch.randint(-2**31, 2**31, (2, k // 8, n), dtype=torch.int32)
        zeros = torch.full((2, 3, n // 8), 0x76767676, dtype=torch.int32)
        powers = torch.randint(115, 135, (2, n, k // 32), dtype=torch.uint8)
        f8 = torch.randint(0, 126, (2, n, k // 16), dtype=torch.uint8).view(torch.float8_e4m3fn)
        scales = torch.rand(2, 3, n).bfloat16() + 0.5
        layers = [(wp.pack_fp4_checkpoint, "gpt-oss", (codes, powers), "mxf4-bf16"),
                  (wp.pack_fp4_checkpoint, "quark-mxfp4", (codes, powers), None),
                  (wp.pack_fp4_checkpoint, "modelopt-nvfp4", (codes, f8, torch.rand(2)), None),
                  (wp.pack_int4_checkpoint, "gptq", (words, scales, zeros), "ex-fp16"),
                  (wp.pack_int4_checkpoint, "awq", (words.reshape(2, k, n // 8), scales, zeros),
                   "ex-bf16"),
                  (wp.pack_int4_checkpoint, "int4", (codes, scales.mT.contiguous()), None)]
        for pack, layout, tensors, encoding in layers:
            with self.subTest(layout):
                host = pack(layout, *tensors, encoding=encoding)
                there = pack(layout, *(t.cuda() for t in tensors), encoding=encoding)
                self.assertEqual(there.data.device.type, "cuda")
                self.assertEqual((there.form, there.alpha), (host.form, host.alpha))
                self.assertTrue(torch.equal(there.data.cpu(), host.data))
        powers[1, 7, 3] = 255
        scales[0, 1, 5] = torch.inf
        for pack, layout, tensors in ((wp.pack_fp4_checkpoint, "gpt-oss", (codes, powers)),
                                      (wp.pack_int4_checkpoint, "gptq", (words, scales, zeros))):
            said = []
            for each in (tensors, [t.cuda() for t in tensors]):
                with self.assertRaises(wp.Refusal) as caught:
                    pack(layout, *each)
                said.append(str(caught.exception))
            self.assertEqual(*said)

    def test_cuda_graphs_of_quantised_products(self):
        """As docs/inference.md captures them: tokens are quantised in the graph."""
        w = normal(512, 1024, device="cuda") / 8
        w8, scale_w = wp.quantise(w)
        int4 = wp.pack_int4(w, encoding="sm")
        experts, scales = wp.quantise(torch.stack([w] * 3).reshape(-1, 1024))
        experts, scales = experts.reshape(3, 512, 1024), scales.reshape(3, 512)
        x, offsets = normal(16, 1024, device="cuda"), torch.tensor([0, 3, 3, 16], device="cuda",
                                                                   dtype=torch.int32)

        def products():
            x8, scale = ops.quantise(x)
            return (ops.scaled_gemm(x8, w8, scale, scale_w),
                    ops.packed_gemm(x8, int4.data, int4.form, scale_a=scale),
                    ops.grouped_gemm(x8, experts, offsets, scale_a=scale, scale_b=scales,
                                     scaling="row_column"))
        stream = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(2):
                products()
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                made = products()
            x.copy_(torch.randn_like(x))
            offsets.copy_(torch.tensor([0, 8, 16, 16], dtype=torch.int32))
            graph.replay()
            stream.synchronize()
            want = x.float() @ w.float().T
            for y, error in zip(made, (0.06, 0.2, 0.06)):
                self.assertLess((y.float() - want).norm(), error * want.norm())

    def test_the_current_stream_is_taken(self):
        a, b = normal(512, 512, device="cuda"), normal(512, 512, device="cuda")
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            a.mul_(2)
            d = wp.gemm(a, b)
            want = a.float() @ b.float().T
        stream.synchronize()
        self.assertLess((d.float() - want).abs().max().item(), 4)
        self.assertTrue(torch.equal(wp.gemm(a, b, stream=stream), wp.gemm(a, b)))

    def test_nothing_is_allocated_and_nothing_waits(self):
        a, b = normal(64, 4096, device="cuda"), normal(1024, 4096, device="cuda")
        out = torch.empty(64, 1024, dtype=torch.bfloat16, device="cuda")
        wp.gemm(a, b, out=out)
        torch.cuda.synchronize()
        before = torch.cuda.mem_get_info()[0]
        torch.cuda._sleep(200_000_000)  # a tenth of a second
        start = time.perf_counter()
        for _ in range(100):
            wp.gemm(a, b, out=out)
        took = time.perf_counter() - start
        self.assertLess(took, 0.05)
        self.assertEqual(torch.cuda.mem_get_info()[0], before)
        torch.cuda.synchronize()

    def test_bits_do_not_depend_on_the_batch(self):
        b = normal(2048, 7168, device="cuda")
        a = normal(512, 7168, device="cuda")
        whole = wp.gemm(a, b, batch_invariant=True)
        for m in (1, 2, 7, 16, 33, 64, 100, 256, 511):
            self.assertTrue(torch.equal(wp.gemm(a[:m], b, batch_invariant=True), whole[:m]))

    def test_bad_input(self):
        a, b = normal(64, 64, device="cuda"), normal(64, 64, device="cuda")
        out = torch.empty(64, 64, dtype=torch.bfloat16, device="cuda")
        plan = wp.plan(a, b)
        host = [x.cpu() for x in (a, b, out)]
        for code, call in [
                ("wrong_device", lambda: wp.gemm(host[0], host[1], out=host[2], plan=plan)),
                ("wrong_device", lambda: wp.gemm(a, host[1])),
                ("wrong_device", lambda: wp.gemm(a, b, workspace=wp.Workspace(1024, "model"))),
                ("bad_stride", lambda: wp.gemm(a[:, ::2], b[:, ::2])),
                ("bad_value", lambda: wp.gemm(a, b, stream="x"))]:
            with self.assertRaises(wp.Refusal) as caught:
                call()
            self.assertEqual(caught.exception.code, code, str(caught.exception))
        workspace = wp.Workspace(1 << 20, "cuda")
        workspace.close()
        with self.assertRaisesRegex(wp.Refusal, "is closed"):
            wp.gemm(a, b, workspace=workspace)

    def test_cupy(self):
        try:
            import cupy  # pylint: disable=import-outside-toplevel
        except ImportError:
            LEFT_OUT.append("CuPy, which is not here")
            return
        a = cupy.ones((64, 128), cupy.float16)
        d = wp.gemm(a, a)
        self.assertIsInstance(d, cupy.ndarray)
        self.assertTrue((d == 128).all())
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            self.assertTrue((wp.gemm(a * 2, a, stream=stream) == 256).all())

    def test_jax(self):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        try:
            import jax  # pylint: disable=import-outside-toplevel
            import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
        except ImportError:
            LEFT_OUT.append("JAX, which is not here")
            return
        a = jnp.ones((64, 128), jnp.bfloat16)
        d = wp.gemm(a, a)
        self.assertIsInstance(d, jax.Array)  # which JAX has taken over
        self.assertTrue((d == 128).all())

    @unittest.skipUnless(torch.cuda.device_count() > 1, "one CUDA device")
    def test_several_devices(self):
        a, b = normal(64, 64, device="cuda:1"), normal(64, 64, device="cuda:1")
        self.assertLess((wp.gemm(a, b).float() - a.float() @ b.float().T).abs().max().item(), 1)
        self.assertEqual(torch.cuda.current_device(), 0)
        with self.assertRaisesRegex(wp.Refusal, "stream is of CUDA device 0"):
            wp.gemm(a, b, stream=torch.cuda.Stream("cuda:0"))
        with self.assertRaisesRegex(wp.Refusal, "B lies in cuda:0 and A in cuda:1"):
            wp.gemm(a, b.to("cuda:0"))


def host_time(call, calls=40, rounds=200):
    """Microseconds of the host for a call: the median of rounds that begin with an empty queue and
    are far from filling it."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def measure_host():
    """What a small product takes of the host. Kernels are short beside the host's time."""
    a, b = normal(16, 64, device="cuda"), normal(64, 64, device="cuda")
    out = torch.empty(16, 64, dtype=torch.bfloat16, device="cuda")
    bt = b.T.contiguous()
    x, w, offsets = grouped("cuda")
    y = torch.empty(20, 64, dtype=torch.bfloat16, device="cuda")
    z = torch.empty(16, 128, dtype=torch.bfloat16, device="cuda")
    tensors = mixture("cuda", 16)
    rows = [
        ("torch.cuda._sleep(0): the launch of an empty kernel", lambda: torch.cuda._sleep(0)),
        ("wp.gemm(out=...)", lambda: wp.gemm(a, b, out=out)),
        ("wp.grouped_gemm(out=...)", lambda: wp.grouped_gemm(x, w, offsets, out=y)),
        ("wp.gemm", lambda: wp.gemm(a, b)),
        ("torch.mm(out=...)", lambda: torch.mm(a, bt, out=out)),
        ("torch.mm", lambda: torch.mm(a, bt)),
        ("torch.ops.warpwright.gemm_out", lambda: ops.gemm_out(a, b, out)),
        ("torch.ops.warpwright.gemm", lambda: ops.gemm(a, b)),
        ("wp.moe(out=...)", lambda: wp.moe(*tensors, out=z)),
        ("torch.ops.warpwright.moe", lambda: ops.moe(*tensors)),
    ]
    print("\n| call | host, us |\n|---|---:|")
    with torch.inference_mode():
        for name, call in rows:
            for _ in range(100):
                call()
            print(f"| `{name}` | {host_time(call):.2f} |")


if __name__ == "__main__":
    host = "--host" in sys.argv
    if host:
        sys.argv.remove("--host")
    result = unittest.main(verbosity=2, exit=False).result
    if host and CUDA:
        measure_host()
    for what in LEFT_OUT:
        print(f"did not run: torch_test.py: {what}")
    sys.exit(0 if result.wasSuccessful() else 1)
