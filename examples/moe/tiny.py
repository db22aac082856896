"""The mixture on the machine model: Qwen3-MoE with a tiny configuration in numpy."""
import sys
import time

import numpy as np

import numpy_model as model
import parallel
from experts import Experts, block_scaled


def divergence(want, got):
    """(relative error, mean KL divergence in nats) of logits."""
    p, q = model.softmax(want), model.softmax(got)
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    return error, float((p * (np.log(p) - np.log(q))).sum(-1).mean())


def check(ok, sentence):
    if not ok:
        sys.exit(f"FAILED: {sentence}")
    print(sentence)


def compare(text, seed):
    """Experts in bf16 and in fp8 beside float32, by the logits over the bytes of a text."""
    c = model.Config()
    weights = model.random_weights(c, seed)
    tokens = np.frombuffer(text, np.uint8)
    layers = weights["layers"]
    want = model.forward(c, weights, tokens, lambda i, x, index, share:
                         model.reference(layers[i], x, index, share))
    for name, bound, kl_bound, made in [
            ("bf16", 0.02, 0.001, [Experts(w["gate_up"], w["down"]) for w in layers]),
            ("fp8 with scales of blocks", 0.15, 0.03,
             [block_scaled(w["gate_up"], w["down"], model.quantise) for w in layers])]:
        start = time.monotonic()
        got = model.forward(c, weights, tokens, lambda i, x, index, share, made=made:
                            made[i](x, index, share, dtype="f32"))
        error, kl = divergence(want, got)
        check(error < bound and kl < kl_bound,
              f"{name}: logits over {len(tokens)} bytes are off by {error:.4f} of their norm, "
              f"KL {kl:.6f} nats, in {time.monotonic() - start:.1f} s on the model")


def expert_parallel(ranks, seed):
    """Tokens of several ranks through sharded experts: bit for bit as on one."""
    c = model.Config(experts=8, top_k=3)
    w = model.random_weights(c, seed)["layers"][0]
    random = np.random.default_rng(seed)
    batches = []
    for rank in range(ranks):
        x = random.standard_normal((5 + 6 * rank, c.hidden), dtype=np.float32).astype(model.bf16)
        batches.append((x, *model.route(c, w, x.astype(np.float32))))
    shards = []
    for rank in range(ranks):
        first, last = parallel.shard_of(c.experts, ranks, rank)
        shards.append(Experts(w["gate_up"][first:last], w["down"][first:last]))
    transport, steps = parallel.Local(ranks), parallel.Steps(np)
    got = parallel.all_ranks(steps, transport, shards, batches, c.experts)
    slots = sum(index.size for _, index, _ in batches)
    rows = transport.rows
    alike = [tuple(each[:5] for each in batch) for batch in batches]
    everywhere = parallel.all_ranks_everywhere(steps, transport, shards, alike, c.experts)
    same = True
    for (x, index, share), y in zip(batches + alike, got + everywhere):
        one = parallel.one_rank_by_shards(steps, shards, x, index, share, c.experts)
        same = same and one.tobytes() == y.tobytes()
        off = np.abs(y - model.reference(w, x, index, share)).max()
        if off > 0.1:
            sys.exit(f"FAILED: a rank's {len(x)} tokens are off by {off:.4f}")
    check(same, f"{ranks} ranks give the bits of one that sums by shard, tokens going where they "
          f"must or everywhere; {rows} rows travelled there and back for {slots} slots")
