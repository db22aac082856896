"""The mixture for PyTorch: what stands around the grouped products compiled, and e4m3 with scales
of blocks."""
import torch

import experts


def quantise(values, rows):
    """(e4m3 codes, float32 scales) of blocks of rows x 128 of the last two dimensions, whose
    extents are multiples of that."""
    *lead, m, k = values.shape
    blocks = values.float().reshape(*lead, m // rows, rows, k // 128, 128)
    scales = blocks.abs().amax((-3, -1)).clamp_min(1e-12) / 448
    codes = (blocks / scales[..., :, None, :, None]).reshape(values.shape)
    return codes.to(torch.float8_e4m3fn), scales


class Mixture:
    """`experts.mixture` with its glue in few kernels."""

    def __init__(self, compiled=True):
        torch._dynamo.config.recompile_limit = 64  # of every number of tokens
        def wrap(function):
            return torch.compile(function, dynamic=False) if compiled else function
        self.begin = wrap(lambda x, index, count: experts.begin(torch, x, index, count))
        self.finish = wrap(lambda y, order, weights: experts.finish(torch, y, order, weights))
        self.quantise = wrap(quantise)

    def __call__(self, made, x, index, weights):
        out = experts.mixture(
            torch, made, x, index, weights.float(),
            begin=lambda _, x, index, count: self.begin(x, index, count),
            finish=lambda _, y, order, weights: self.finish(y, order, weights))
        return out.to(x.dtype)
