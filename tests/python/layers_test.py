#!/usr/bin/env python3
"""Layers of experts in one launch on a GPU: layers_test.py [LAUNCHES] [SEED]

Layers drawn by seed, of the forms that one launch serves, beside the same by a launch for each
step: with batch_invariant the same bits, else within roundings. Every third layer runs beside
products in another stream, which hold SMs; every third in a graph that is replayed; every third in
two streams at once.
"""
import random
import sys

try:
    import torch
except ImportError:
    print("did not run: layers_test.py: PyTorch is not here")
    sys.exit(77)
if not torch.cuda.is_available():
    print("did not run: layers_test.py: there is no CUDA device")
    sys.exit(77)
import warpwright as wp

EACH = 40  # launches of a layer


def in_blocks(weights):
    """Codes of e4m3 and the scales of their blocks of 128 x 128."""
    experts, n, k = weights.shape
    blocks = weights.float().reshape(experts, n // 128, 128, k // 128, 128)
    scales = blocks.abs().amax((2, 4), keepdim=True).clamp(min=1e-10) / 448
    codes = (blocks / scales).to(torch.float8_e4m3fn).reshape(weights.shape)
    return codes, scales.reshape(experts, n // 128, k // 128)


class Layer:
    """Weights that a seed draws, and tokens again and again."""

    def __init__(self, seed):
        draw = self.draw = random.Random(seed)
        self.values = torch.Generator("cuda").manual_seed(seed)
        self.experts = draw.choice([1, 3, 8, 40])
        self.top_k = draw.randint(1, min(8, self.experts))
        self.hidden = 128 * draw.randint(1, 12)
        self.inner = 128 * draw.choice([1, 2, 3, 6, 9, 17, 24])
        self.tokens = draw.randint(1, draw.choice([4, 16, 256 // self.top_k]))
        self.form = draw.choice(["bf16", "bf16", "e4m3", "int4", "mxf4", "nvf4"])
        if self.form == "e4m3":  # one launch takes few slots of small experts, and leaves bits open
            self.inner = min(self.inner, 128 * 6)
            most = (1 << 24) // (self.top_k * self.inner * self.hidden)
            self.tokens = min(self.tokens, 16 // self.top_k, most, 7)
        self.more = {}
        w13 = self.normal(self.experts, 2 * self.inner, self.hidden) * self.hidden**-0.5
        w2 = self.normal(self.experts, self.hidden, self.inner) * self.inner**-0.5
        if self.form == "e4m3":
            w13, self.more["scale_w13"] = in_blocks(w13)
            w2, self.more["scale_w2"] = in_blocks(w2)
        elif self.form == "int4":
            w13, w2 = (wp.pack_int4(w, encoding="ex-bf16") for w in (w13, w2))
        elif self.form in ("mxf4", "nvf4"):
            w13, w2 = (wp.pack_fp4(w, encoding=f"{self.form}-bf16") for w in (w13, w2))
            if self.form == "nvf4":  # a factor for each expert
                for name, packed in (("scale_w13", w13), ("scale_w2", w2)):
                    self.more[name] = torch.tensor(packed.alpha, device="cuda")
        elif draw.random() < 0.5:
            self.more["bias13"] = self.normal(self.experts, 2 * self.inner).float()
            self.more["bias2"] = self.normal(self.experts, self.hidden).float()
        self.weights = w13, w2

    def normal(self, *shape):
        return torch.randn(*shape, generator=self.values, device="cuda", dtype=torch.bfloat16)

    def drawn(self):
        """x, ids and router weights; some ids are -1."""
        scores = torch.rand(self.tokens, self.experts, generator=self.values, device="cuda")
        weights, ids = scores.topk(self.top_k)
        left_out = torch.rand(ids.shape, generator=self.values, device="cuda") < 0.1
        return (self.normal(self.tokens, self.hidden), ids.int().masked_fill(left_out, -1), weights)

    def call(self, drawn, one_launch, out=None, **choices):
        if self.form == "e4m3" and not one_launch:
            choices["quantises_in_epilogue"] = False
        if self.form == "int4":
            choices["sums"] = "exact"
        return wp.moe(*drawn, *self.weights, one_launch=one_launch, out=out, **self.more, **choices)

    def check(self, drawn, got, **choices):
        want = self.call(drawn, False, **choices)
        if choices.get("batch_invariant"):
            assert torch.equal(got, want), f"{self}: other bits than by steps"
        else:
            off = (got.float() - want.float()).norm() / want.float().norm().clamp(min=1e-6)
            # A sum that is rounded the other way may change a row's scale, and so all its codes.
            most = 0.05 if self.form == "e4m3" else 0.02
            assert off < most, f"{self}: {off:.3g} off"

    def __str__(self):
        return (f"{self.form}, {self.tokens} tokens, top-{self.top_k} of {self.experts}, "
                f"{self.hidden} x {self.inner}{', biases' if 'bias2' in self.more else ''}")

    def in_a_graph(self, choices):
        drawn = self.drawn()
        out = self.call(drawn, True, **choices)  # plans, and clears the flags
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.call(drawn, True, out=out, **choices)
        for _ in range(EACH):
            for to, value in zip(drawn, self.drawn()):
                to.copy_(value)
            out.fill_(float("nan"))
            graph.replay()
            self.check(drawn, out, **choices)

    def beside_products(self, choices, stream):
        a = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
        for _ in range(EACH):
            drawn = self.drawn()
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    a @ a
            got = self.call(drawn, True, **choices)
            torch.cuda.synchronize()
            self.check(drawn, got, **choices)

    def in_two_streams(self, choices, stream):
        for _ in range(EACH // 2):
            both = self.drawn(), self.drawn()
            torch.cuda.synchronize()
            got = [None, None]
            for i in range(2):
                with torch.cuda.stream(stream if i else torch.cuda.current_stream()):
                    got[i] = self.call(both[i], True, **choices)
            torch.cuda.synchronize()
            for drawn, each in zip(both, got):
                self.check(drawn, each, **choices)


def main():
    launches = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    stream = torch.cuda.Stream()
    for seed in range(first, first + launches // EACH):
        layer = Layer(seed)
        choices = {"batch_invariant": True} if seed % 2 and layer.form != "e4m3" else {}
        try:
            if seed % 3 == 0:
                layer.in_a_graph(choices)
            elif seed % 3 == 1:
                layer.beside_products(choices, stream)
            else:
                layer.in_two_streams(choices, stream)
        except Exception:
            print(f"seed {seed}: {layer}")
            raise
    print(f"{launches // EACH} layers, {launches} launches from seed {first}: right")


if __name__ == "__main__":
    main()
