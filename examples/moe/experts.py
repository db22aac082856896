"""The experts of a mixture, by two grouped products: for numpy on the model and for PyTorch.

A token goes to the experts that the router named. Tokens are sorted by expert, so that each expert
has a run of rows; `gate_up` (E x 2I x H) with SiLU and gate is one grouped product, `down`
(E x H x I) another. Offsets stay in the operands' memory: nothing waits for a length.
"""
import warpwright as wp


def numbers(xp, count, like):
    """0 .. count - 1, of the kind of `like` and where it lies."""
    return xp.arange(count, dtype=like.dtype, device=like.device)


def cast(xp, x, dtype):
    return x.astype(dtype) if xp.__name__ == "numpy" else x.to(dtype)


def by_expert(xp, keys, experts):
    """(order, offsets) that sort slots by expert: expert e has those from offsets[e] to
    offsets[e + 1] of the order. The key `experts` is of none and comes last."""
    order = xp.argsort(keys, stable=True)
    return order, xp.searchsorted(keys[order], numbers(xp, experts + 1, keys))


def begin(xp, x, index, experts):
    """(rows, order, offsets): the tokens sorted by expert. Row i is slot order[i] of `index`
    (tokens x top-k)."""
    order, offsets = by_expert(xp, index.reshape(-1), experts)
    return x[order // index.shape[1]], order, offsets


def in_slots(xp, y, order):
    """Sorted rows back in the order of the slots."""
    back = xp.empty_like(order)
    back[order] = numbers(xp, order.shape[0], order)
    return y[back]


def combine(xp, slots, weights):
    """The weighted sum of every token's slots, in their order, in float32: the bits of a row depend
    on that row."""
    tokens, top_k = weights.shape
    slots = slots.reshape(tokens, top_k, -1)
    total = None
    for j in range(top_k):
        each = cast(xp, slots[:, j], xp.float32) * weights[:, j:j + 1]
        total = each if total is None else total + each
    return total


def finish(xp, y, order, weights):
    return combine(xp, in_slots(xp, y, order), weights)


class Experts:
    """Weights as `transformers` has them, in bf16."""

    def __init__(self, gate_up, down):
        self.gate_up, self.down = gate_up, down
        self.count = gate_up.shape[0]

    def rows(self, x, offsets):
        """Rows of sorted tokens through their experts."""
        h = wp.grouped_gemm(x, self.gate_up, offsets, gated=True, batch_invariant=True)
        return wp.grouped_gemm(h, self.down, offsets, batch_invariant=True)


class BlockScaledExperts:
    """The same in e4m3 with scales of blocks: 128 x 128 of weights when they are loaded, 1 x 128 of
    activations at every call. `quantise` gives (codes, scales) of the last two dimensions in blocks
    of (rows, 128)."""

    def __init__(self, gate_up, down, quantise):
        self.quantise = quantise
        self.gate_up, self.gate_up_scale = quantise(gate_up, 128)
        self.down, self.down_scale = quantise(down, 128)
        self.count = gate_up.shape[0]

    def rows(self, x, offsets):
        def product(x, w, scale, **how):
            codes, of_x = self.quantise(x, 1)
            return wp.grouped_gemm(codes, w, offsets, scale_a=of_x, scale_b=scale,
                                   batch_invariant=True, dtype="bf16", **how)
        h = product(x, self.gate_up, self.gate_up_scale, gated=True)
        return product(h, self.down, self.down_scale)


def mixture(xp, experts, x, index, weights, begin=begin, finish=finish):
    """sum_j weights[t, j] * expert index[t, j] of token t, in float32: tokens x H. `begin` and
    `finish` may be compiled."""
    rows, order, offsets = begin(xp, x, index, experts.count)
    return finish(xp, experts.rows(rows, offsets), order, weights)
