#!/usr/bin/env python3
"""Layers of experts as servers and transformers call them, on the model: experts_test.py

Against transformers: whole models whose experts are ours, and the experts of gpt-oss by themselves.
Their class, GptOssExperts, computes in float32; ours multiplies the same weights in bf16, and in
e4m3 with a scale a row (theirs then are the values of these codes). Weights are K x N for each
expert there, and N x K here, with rows of gates and ups in turns in both.
"""
import pathlib
import sys
import unittest

try:
    import torch
    import transformers
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts
except ImportError as missing:
    print(f"did not run: experts_test.py: {missing}")
    sys.exit(77)
import warpwright as wp
import warpwright.transformers

EXPERTS, TOP_K, HIDDEN, INNER = 6, 3, 96, 80


def theirs():
    """Their experts, in values that bf16 holds. Some sums lie beyond the limits of 7."""
    config = transformers.GptOssConfig(hidden_size=HIDDEN, intermediate_size=INNER,
                                       num_local_experts=EXPERTS, num_experts_per_tok=TOP_K)
    experts = GptOssExperts(config)
    with torch.no_grad():
        for weight in experts.parameters():
            weight.copy_(0.5 * torch.randn(weight.shape).bfloat16())
    return experts


def routed(tokens):
    """Their experts' arguments: for each token its experts, and what each counts."""
    index = torch.stack([torch.randperm(EXPERTS)[:TOP_K] for _ in range(tokens)])
    return index, torch.softmax(torch.randn(tokens, TOP_K), -1)


def sorted_slots(index):
    """Slots by expert, and where each expert's begin."""
    order = torch.argsort(index.reshape(-1), stable=True)
    ends = torch.bincount(index.reshape(-1), minlength=EXPERTS).cumsum(0)
    return order, torch.cat([torch.zeros(1, dtype=ends.dtype), ends]).int()


def rows_by_k(weight):
    """K x N of each expert as N x K."""
    return weight.detach().bfloat16().transpose(-1, -2).contiguous()


def in_bf16(experts, x, offsets):
    h = wp.grouped_gemm(x, rows_by_k(experts.gate_up_proj), offsets, gated=True,
                        activation="swiglu_oai", gate_up="interleaved",
                        bias=experts.gate_up_proj_bias.detach().float())
    return h, wp.grouped_gemm(h, rows_by_k(experts.down_proj), offsets,
                              bias=experts.down_proj_bias.detach().float())


def quantised(x):
    scale = x.float().abs().amax(-1) / 448
    return (x.float() / scale[..., None]).to(torch.float8_e4m3fn), scale


def rounded(x):
    codes, scale = quantised(x)
    return codes.float() * scale[..., None]


def round_to_e4m3(experts, x):
    """Leaves what e4m3 holds: of the experts' weights in place, and of the tokens."""
    with torch.no_grad():
        for weight in (experts.gate_up_proj, experts.down_proj):
            weight.copy_(rounded(weight.transpose(-1, -2)).transpose(-1, -2))
    return rounded(x)


def in_e4m3(experts, x, offsets):
    codes, scale = quantised(x)
    w, scale_w = quantised(experts.gate_up_proj.detach().transpose(-1, -2).contiguous())
    h = wp.grouped_gemm(codes, w, offsets, scale_a=scale, scale_b=scale_w, scaling="row_column",
                        gated=True, activation="swiglu_oai", gate_up="interleaved",
                        bias=experts.gate_up_proj_bias.detach().float())
    codes, scale = quantised(h)
    w, scale_w = quantised(experts.down_proj.detach().transpose(-1, -2).contiguous())
    return h, wp.grouped_gemm(codes, w, offsets, scale_a=scale, scale_b=scale_w,
                              scaling="row_column",
                              bias=experts.down_proj_bias.detach().float())


def in_one_call(experts, x, index, weights, codes):
    """The whole mixture, in bf16 or of e4m3 codes with a scale a row."""
    w13, w2 = (w.detach().transpose(-1, -2).contiguous()
               for w in (experts.gate_up_proj, experts.down_proj))
    scales = {}
    if codes:
        (w13, scales["scale_w13"]), (w2, scales["scale_w2"]) = quantised(w13), quantised(w2)
    else:
        w13, w2 = w13.bfloat16(), w2.bfloat16()
    return wp.moe(x.bfloat16(), index, weights, w13, w2, activation="swiglu_oai",
                  gate_up="interleaved", bias13=experts.gate_up_proj_bias.detach().float(),
                  bias2=experts.down_proj_bias.detach().float(), **scales)


class GptOss(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(2026)

    def compare(self, ours, tokens, most):
        experts = theirs()
        x = torch.randn(tokens, HIDDEN).bfloat16()
        index, weights = routed(tokens)
        if ours is in_e4m3:
            x = round_to_e4m3(experts, x)
        with torch.no_grad():
            want = experts.float()(x.float(), index, weights)
            sums = (x.float()[:, None] @ experts.gate_up_proj[index[:, 0]]).squeeze(1)
            beyond = (sums.abs() > 7).float().mean().item()
        self.assertGreater(beyond, 0.02, "the limits cut nothing")
        order, offsets = sorted_slots(index)
        h, y = ours(experts, x[order // TOP_K].contiguous(), offsets)
        self.assertEqual(tuple(h.shape), (tokens * TOP_K, INNER))
        slots = torch.empty(y.shape)
        slots[order] = y.float()
        d = (slots.reshape(tokens, TOP_K, HIDDEN) * weights[..., None]).sum(1)
        whole = in_one_call(experts, x, index, weights, ours is in_e4m3).float()
        off, off_whole = (((got - want).norm() / want.norm()).item() for got in (d, whole))
        self.assertLess(off, most)
        self.assertLess(off_whole, most)
        print(f"{tokens} tokens, {ours.__name__}: {off:.2e} off (norm over norm), in one call "
              f"{off_whole:.2e}, {100 * beyond:.0f}% of the sums beyond the limits")

    def test_bf16(self):
        for tokens in (1, 9, 70):
            self.compare(in_bf16, tokens, 0.006)

    def test_e4m3(self):
        for tokens in (1, 40):
            self.compare(in_e4m3, tokens, 0.04)  # h in e4m3, and its own sums


def plain(x, ids, weights, w1, w2, biases=None, limit=float("inf")):
    """A gated SiLU mixture in float32, slot by slot."""
    out = torch.zeros(x.shape)
    for t, j in ((t, j) for t in range(len(x)) for j in range(ids.shape[1])):
        e = int(ids[t, j])
        if 0 <= e < len(w1):
            both = w1[e].float() @ x[t].float() + (biases[0][e] if biases else 0)
            gate, up = both.chunk(2)
            gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
            y = w2[e].float() @ (torch.nn.functional.silu(gate) * up)
            out[t] += weights[t, j] * (y + (biases[1][e] if biases else 0))
    return out


class FusedExperts(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        self.x = torch.randn(20, 128).bfloat16()
        self.w1 = (torch.randn(6, 2 * 128, 128) / 8).bfloat16()
        self.w2 = (torch.randn(6, 128, 128) / 8).bfloat16()
        self.ids, self.weights = routed(20)

    def close(self, d, want, most=0.01):
        self.assertEqual(d.dtype, torch.bfloat16)
        self.assertLess(((d.float() - want).norm() / want.norm()).item(), most)

    def call(self, *tensors, **how):
        given = dict(zip(("x", "w1", "w2", "weights", "ids"), tensors))
        return wp.fused_experts(*(given.get(name, getattr(self, name))
                                  for name in ("x", "w1", "w2", "weights", "ids")), **how)

    def test_bf16(self):
        want = plain(self.x, self.ids, self.weights, self.w1, self.w2)
        self.close(self.call(), want)
        for dtype in (torch.int32, torch.int64):
            self.close(self.call(self.x, self.w1, self.w2, self.weights, self.ids.to(dtype)), want)
        x = self.x.clone()
        self.assertIs(self.call(x, inplace=True), x)
        self.close(x, want)
        self.assertTrue(torch.equal(x, self.call()))
        turned = self.x.T.contiguous().T  # no rows that lie together
        self.assertIs(self.call(turned, inplace=True), turned)
        self.assertTrue(torch.equal(turned, x))
        for dtype in (torch.int16, torch.uint32):
            self.close(self.call(self.x, self.w1, self.w2, self.weights.double(),
                                 self.ids.to(dtype)), want)
        biases = torch.randn(6, 256), torch.randn(6, 128)
        self.close(self.call(w1_bias=biases[0], w2_bias=biases[1]),
                   plain(self.x, self.ids, self.weights, self.w1, self.w2, biases))
        turned = self.w1.reshape(6, 2, 128, 128).transpose(1, 2).reshape(6, 256, 128).contiguous()
        self.assertTrue(torch.equal(self.call(self.x, turned, gate_up="interleaved"), self.call()))
        self.assertEqual(tuple(self.call(self.x[:0], self.w1, self.w2, self.weights[:0],
                                         self.ids[:0]).shape), (0, 128))

    def test_a_gate_that_is_cut(self):
        x = self.x * 8
        want = plain(x, self.ids, self.weights, self.w1, self.w2, limit=3)
        self.assertGreater((plain(x, self.ids, self.weights, self.w1, self.w2) - want).abs().max(),
                           want.abs().max() / 4)
        self.close(self.call(x, clamp_limit=3.0), want)

    def test_weights_on_the_input(self):
        ids, weights = self.ids[:, :1], self.weights[:, :1].float()
        d = self.call(self.x, self.w1, self.w2, weights, ids, apply_router_weight_on_input=True)
        x = (self.x.float() * weights).bfloat16()
        ones = torch.ones_like(weights)
        self.assertTrue(torch.equal(d, self.call(x, self.w1, self.w2, ones, ids)))

    def test_words_of_activations(self):
        rows = self.w1[:, :self.w1.shape[1] // 2].contiguous()
        how = [("gelu_tanh", self.w1, {"activation": "gelu"}),
               ("gelu", self.w1, {"activation": "gelu_erf"}),
               ("swigluoai_uninterleave", self.w1, {"activation": "swiglu_oai"}),
               ("relu2_no_mul", rows, {"activation": "relu2", "gated": False}),
               ("silu_no_mul", rows, {"gated": False})]
        for word, w1, same in how:
            self.assertTrue(torch.equal(
                self.call(self.x, w1, activation=word),
                wp.moe(self.x, self.ids, self.weights.float(), w1, self.w2, **same)), word)

    def test_a_factor_and_a_shared_output(self):
        shared = torch.randn(self.x.shape).bfloat16()
        want = plain(self.x, self.ids, self.weights, self.w1, self.w2)
        self.close(self.call(routed_scaling_factor=2.5, shared_output=shared), 2.5 * want + shared)

    def test_slots_that_are_left_out(self):
        ids = self.ids.clone()
        ids[0] = -1
        ids[1, 0], ids[2, 1] = 6, 1 << 20
        d = self.call(self.x, self.w1, self.w2, self.weights, ids)
        self.close(d, plain(self.x, ids, self.weights, self.w1, self.w2))
        self.assertTrue((d[0] == 0).all())
        # An expert of NaN touches only its own tokens.
        w2 = self.w2.clone()
        w2[3] = float("nan")
        d = self.call(self.x, self.w1, w2)
        self.assertTrue(torch.equal(d.isnan().any(1), (self.ids == 3).any(1)))

    def test_experts_on_ranks(self):
        """Any map: two ranks' shares add up to the whole."""
        want = plain(self.x, self.ids, self.weights, self.w1, self.w2)
        total = torch.zeros(want.shape)
        for mine in ([4, 0, 2], [1, 3, 5]):
            expert_map = torch.full((6,), -1, dtype=torch.int32)
            expert_map[mine] = torch.arange(3, dtype=torch.int32)
            total += self.call(self.x, self.w1[mine].contiguous(), self.w2[mine].contiguous(),
                               expert_map=expert_map, global_num_experts=6).float()
        self.close(total.bfloat16(), want)

    def test_fp8(self):
        def rows(w):
            return quantised(w.reshape(-1, 128))
        (c1, s1), (c2, s2) = rows(self.w1), rows(self.w2)
        c1, c2 = c1.reshape(self.w1.shape), c2.reshape(self.w2.shape)
        want = plain(self.x, self.ids, self.weights, c1.float() * s1.reshape(6, -1, 1),
                     c2.float() * s2.reshape(6, -1, 1))
        d = self.call(self.x, c1, c2, use_fp8_w8a8=True, per_channel_quant=True,
                      w1_scale=s1.reshape(6, -1, 1), w2_scale=s2.reshape(6, -1, 1))
        self.close(d, want, 0.05)
        codes, scales = quantised(self.x)
        again = self.call(codes, c1, c2, use_fp8_w8a8=True, per_channel_quant=True,
                          w1_scale=s1.reshape(6, -1, 1), w2_scale=s2.reshape(6, -1, 1),
                          a1_scale=scales.reshape(-1, 1))
        self.assertEqual(again.dtype, torch.bfloat16)
        self.close(again, want, 0.05)
        of_experts = torch.rand(6) + 0.5, torch.rand(6) + 0.5
        want = plain(self.x, self.ids, self.weights, c1.float() * of_experts[0][:, None, None] / 64,
                     c2.float() * of_experts[1][:, None, None] / 64)
        self.close(self.call(self.x, c1, c2, use_fp8_w8a8=True, w1_scale=of_experts[0] / 64,
                             w2_scale=of_experts[1] / 64), want, 0.05)
        blocks = torch.rand(6, 2, 1) + 0.5, torch.rand(6, 1, 1) + 0.5
        full = [s.repeat_interleave(128, 1) / 64 for s in blocks]
        want = plain(self.x, self.ids, self.weights, c1.float() * full[0], c2.float() * full[1])
        self.close(self.call(self.x, c1, c2, use_fp8_w8a8=True, block_shape=[128, 128],
                             w1_scale=blocks[0] / 64, w2_scale=blocks[1] / 64), want, 0.05)
        for size in (64, 32):
            blocks = [torch.rand(6, -(-c.shape[1] // size), -(-c.shape[2] // size)) + 0.5
                      for c in (c1, c2)]
            full = [s.repeat_interleave(size, 1).repeat_interleave(size, 2)
                    [:, :c.shape[1], :c.shape[2]] / 64 for s, c in zip(blocks, (c1, c2))]
            want = plain(self.x, self.ids, self.weights, c1.float() * full[0], c2.float() * full[1])
            self.close(self.call(self.x, c1, c2, use_fp8_w8a8=True, block_shape=[size, size],
                                 w1_scale=blocks[0] / 64, w2_scale=blocks[1] / 64), want, 0.05)

    def test_what_is_refused(self):
        for how, words in [
                ({"activation": "tanh"}, "activation is 'tanh'; it is one of 'silu'"),
                ({"use_int4_w4a16": True}, "use_int4_w4a16 is given"),
                ({"a1_scale": torch.ones(1)}, "only tokens that are e4m3 have scales"),
                ({"a2_scale": torch.ones(1)}, "a2_scale is given"),
                ({"apply_router_weight_on_input": True}, "has one expert"),
                ({"w1_scale": torch.ones(6)}, "use_fp8_w8a8 is False"),
                ({"use_fp8_w8a8": True}, "w1 is torch.bfloat16 and use_fp8_w8a8 is True"),
                ({"per_channel_quant": True}, "the weights' scales are not of rows"),
                ({"global_num_experts": 12}, "no expert_map"),
                ({"expert_map": torch.zeros(5), "global_num_experts": 6},
                 "expert_map is [(]5,[)]")]:
            with self.assertRaisesRegex(wp.Refusal, words):
                self.call(**how)
        for tensors, words in [((self.x, self.w1, self.w2[:, :64]), "w2 is experts x 128 x inner"),
                               ((self.x[:5],), "both are 5 x top-k"),
                               ((self.x[0],), "1, 3 and 3 dimensions"),
                               ((self.x, self.w1, self.w2, self.weights, self.weights),
                                "topk_ids is torch.float32")]:
            with self.assertRaisesRegex(wp.Refusal, words):
                self.call(*tensors)
        self.assertIsNotNone(self.call(use_int4_w4a16=False, a1_scale=None))

    def test_the_page(self):
        """docs/serving.md"""
        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "serving.md"
        sample = page.read_text().split("```python\n")[1]
        exec(sample.split("```")[0], {})  # pylint: disable=exec-used

    def test_compiled(self):
        compiled = torch.compile(wp.fused_experts, backend="eager", fullgraph=True)
        got = compiled(self.x, self.w1, self.w2, self.weights, self.ids)
        self.assertTrue(torch.equal(got, self.call()))
        # Through what makes graphs functional, in place, with any number of tokens.
        compiled = torch.compile(wp.fused_experts, backend="aot_eager", fullgraph=True,
                                 dynamic=True)
        expert_map = torch.tensor([2, -1, 0, 1, -1, -1])
        for tokens in (20, 7):
            given = (self.w1[:3], self.w2[:3], self.weights[:tokens], self.ids[:tokens])
            x = self.x[:tokens].clone()
            want = self.call(x.clone(), *given, expert_map=expert_map)
            got = compiled(x, *given, inplace=True, expert_map=expert_map)
            self.assertTrue(torch.equal(got, want))
            self.assertTrue(torch.equal(x, want))


class Models(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(11)
        warpwright.transformers.register()

    def compare(self, model, most=0.02):
        model = model.bfloat16().eval()
        tokens = torch.randint(0, 100, (2, 7))
        with torch.inference_mode():
            model.set_experts_implementation("eager")
            want = model(input_ids=tokens).logits.float()
            model.set_experts_implementation("warpwright")
            got = model(input_ids=tokens).logits.float()
        off = ((got - want).norm() / want.norm()).item()
        print(f"{type(model).__name__}: logits {off:.2e} off")
        self.assertLess(off, most)
        self.assertGreater(off, 0, "the experts were not ours")

    def test_qwen3(self):
        self.compare(transformers.Qwen3MoeForCausalLM(transformers.Qwen3MoeConfig(
            vocab_size=100, hidden_size=64, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, head_dim=32, num_experts=8,
            num_experts_per_tok=2, moe_intermediate_size=48)))

    def test_gpt_oss(self):
        # One layer: a rounding may send a token of a second one to another expert.
        config = transformers.GptOssConfig(
            vocab_size=100, hidden_size=64, intermediate_size=48, num_hidden_layers=1,
            num_attention_heads=2, num_key_value_heads=1, head_dim=32, num_local_experts=8,
            num_experts_per_tok=2)
        model = transformers.GptOssForCausalLM(config)
        with torch.no_grad():
            for layer in model.model.layers:  # that the limits have something to cut
                layer.mlp.experts.gate_up_proj.mul_(40)
                layer.mlp.experts.gate_up_proj_bias.normal_()
                layer.mlp.experts.down_proj_bias.normal_()
        self.compare(model)

    def test_gelu(self):
        """transformers' own words: by the error function and by tanh."""
        for word, ours in (("gelu", "gelu_erf"), ("gelu_pytorch_tanh", "gelu")):
            config = transformers.Qwen3MoeConfig(
                vocab_size=100, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
                num_attention_heads=2, num_key_value_heads=1, head_dim=32, num_experts=8,
                num_experts_per_tok=2, moe_intermediate_size=48, hidden_act=word)
            model = transformers.Qwen3MoeForCausalLM(config)
            self.compare(model)
            self.assertEqual(model.model.layers[0].mlp.experts._warpwright[1]["activation"], ours)

    def test_another_gate_is_refused(self):
        experts = theirs()
        experts._apply_gate = lambda both: both[..., ::2] * both[..., 1::2]
        experts.config._experts_implementation = "warpwright"
        with self.assertRaisesRegex(wp.Refusal, "the gate of GptOssExperts is neither"):
            with torch.inference_mode():
                experts(torch.randn(3, HIDDEN).bfloat16(), *routed(3))


if __name__ == "__main__":
    unittest.main(verbosity=2)
