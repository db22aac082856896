"""Qwen3-MoE in numpy, as transformers defines it: for a tiny configuration and random weights."""
import dataclasses

import ml_dtypes
import numpy as np

bf16 = ml_dtypes.bfloat16


@dataclasses.dataclass(frozen=True)
class Config:
    """The shape of Qwen3-30B-A3B in small: tokens are bytes."""
    vocabulary: int = 256
    layers: int = 2
    hidden: int = 128
    heads: int = 4
    key_value_heads: int = 2
    head: int = 32
    experts: int = 8
    top_k: int = 2
    expert: int = 128
    theta: float = 1e6
    epsilon: float = 1e-6


def random_weights(c, seed):
    """Normal weights of about 1 / sqrt(fan in), rounded to bf16."""
    random = np.random.default_rng(seed)

    def draw(*shape):
        values = random.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[-1])
        return values.astype(bf16)

    layers = []
    for _ in range(c.layers):
        layers.append({
            "q": draw(c.heads * c.head, c.hidden), "k": draw(c.key_value_heads * c.head, c.hidden),
            "v": draw(c.key_value_heads * c.head, c.hidden), "o": draw(c.hidden, c.heads * c.head),
            "router": draw(c.experts, c.hidden) * bf16(4),
            "gate_up": draw(c.experts, 2 * c.expert, c.hidden),
            "down": draw(c.experts, c.hidden, c.expert)})
    return {"embedding": draw(c.vocabulary, c.hidden) * bf16(8), "layers": layers,
            "head": draw(c.vocabulary, c.hidden)}


def rms(x, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotate(x, theta):
    """Rotary positions of tokens x heads x head."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[0])[:, None] / theta ** (np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attention(c, w, x):
    q, k, v = ((x @ w[name].astype(np.float32).T).reshape(len(x), -1, c.head) for name in "qkv")
    q, k = rotate(rms(q, c.epsilon), c.theta), rotate(rms(k, c.epsilon), c.theta)
    k, v = (np.repeat(t, c.heads // c.key_value_heads, 1) for t in (k, v))
    scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(c.head)
    scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    mixed = np.einsum("hts,shd->thd", softmax(scores), v).reshape(len(x), -1)
    return mixed @ w["o"].astype(np.float32).T


def route(c, w, x):
    """(experts, weights) of every token, the weights normalised."""
    odds = softmax(x @ w["router"].astype(np.float32).T)
    index = np.argsort(-odds, axis=-1, stable=True)[:, :c.top_k]
    weights = np.take_along_axis(odds, index, -1)
    return index, (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def forward(c, weights, tokens, mix):
    """Logits of all positions. mix(layer, x in bf16, index, weights) is the mixture."""
    x = weights["embedding"].astype(np.float32)[tokens]
    for number, w in enumerate(weights["layers"]):
        x = x + attention(c, w, rms(x, c.epsilon))
        normed = rms(x, c.epsilon).astype(bf16)
        index, share = route(c, w, normed.astype(np.float32))
        x = x + mix(number, normed, index, share)
    return rms(x, c.epsilon) @ weights["head"].astype(np.float32).T


def reference(w, x, index, share):
    """The mixture in float32 over the same bf16 weights, expert by expert."""
    out = np.zeros(x.shape, np.float32)
    for e in range(w["down"].shape[0]):
        for t, j in zip(*np.nonzero(index == e)):
            both = w["gate_up"][e].astype(np.float32) @ x[t].astype(np.float32)
            gate, up = np.split(both, 2)
            made = w["down"][e].astype(np.float32) @ (gate / (1 + np.exp(-gate)) * up)
            out[t] += share[t, j] * made
    return out


def quantise(weights):
    """(e4m3 codes, float32 scales) of blocks of 128 x 128 of the last two dimensions."""
    *lead, m, k = weights.shape
    mb, kb = -(-m // 128), -(-k // 128)
    padded = np.zeros((*lead, mb * 128, kb * 128), np.float32)
    padded[..., :m, :k] = weights.astype(np.float32)
    blocks = padded.reshape(*lead, mb, 128, kb, 128)
    scales = np.maximum(np.abs(blocks).max((-3, -1)), 1e-12) / 448
    codes = (blocks / scales[..., :, None, :, None]).reshape(padded.shape)[..., :m, :k]
    return codes.astype(ml_dtypes.float8_e4m3fn), scales.astype(np.float32)
