#!/usr/bin/env python3
"""The experts of gpt-oss as transformers has them, against ours on the model: gpt_oss_test.py

Their class, GptOssExperts, computes in float32; ours multiplies the same weights in bf16, and in
e4m3 with a scale a row (theirs then are the values of these codes). Weights are K x N for each
expert there, and N x K here, with rows of gates and ups in turns in both.
"""
import sys
import unittest

try:
    import torch
    from transformers.models.gpt_oss.configuration_gpt_oss import GptOssConfig
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts
except ImportError as missing:
    print(f"did not run: gpt_oss_test.py: {missing}")
    sys.exit(77)
import warpwright as wp

EXPERTS, TOP_K, HIDDEN, INNER = 6, 3, 96, 80


def theirs():
    """Their experts, in values that bf16 holds. Some sums lie beyond the limits of 7."""
    config = GptOssConfig(hidden_size=HIDDEN, intermediate_size=INNER, num_local_experts=EXPERTS,
                          num_experts_per_tok=TOP_K)
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
        off = ((d - want).norm() / want.norm()).item()
        self.assertLess(off, most)
        print(f"{tokens} tokens, {ours.__name__}: {off:.2e} off (norm over norm), "
              f"{100 * beyond:.0f}% of the sums beyond the limits")

    def test_bf16(self):
        for tokens in (1, 9, 70):
            self.compare(in_bf16, tokens, 0.006)

    def test_e4m3(self):
        for tokens in (1, 40):
            self.compare(in_e4m3, tokens, 0.04)  # h in e4m3, and its own sums


if __name__ == "__main__":
    unittest.main(verbosity=2)
