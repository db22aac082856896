"""The experts of a mixture, in one call: for numpy on the model and for PyTorch."""
import warpwright as wp


class Experts:
    """Weights as `transformers` has them, gate_up E x 2I x H and down E x H x I, in bf16; or e4m3
    with their scales."""

    def __init__(self, gate_up, down, **scales):
        self.gate_up, self.down, self.scales = gate_up, down, scales

    def __call__(self, x, index, weights, **how):
        """sum_j weights[t, j] * expert index[t, j] of token t: tokens x H."""
        return wp.moe(x, index, weights, self.gate_up, self.down, **self.scales, **how)


def block_scaled(gate_up, down, quantise):
    """The same in e4m3 with scales of blocks: 128 x 128 of weights, by `quantise`, which gives
    (codes, scales); 1 x 128 of activations, at every call."""
    (gate_up, of_gate_up), (down, of_down) = quantise(gate_up), quantise(down)
    return Experts(gate_up, down, scaling="blockwise", scale_w13=of_gate_up, scale_w2=of_down)
