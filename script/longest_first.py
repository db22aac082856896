#!/usr/bin/env python3
"""Makespans of a product in groups: tiles static, drawn in the groups' order, or longest first.

    script/longest_first.py [--tokens 512] [--zipf 1.0] [--seeds 6]

A simulation of DeepSeek-V3's two products (256 experts, top-8, e4m3) on 132 SMs. A tile takes the
longer of its products and its bytes out of L2, and no less than its bytes out of memory, whose
bandwidth tiles share fairly: the first tile along the tokens brings the weights, the next find them
in L2. docs/log/tiles.md says what came out.
"""
import argparse
import math
import random

SMS = 132
MEMORY = 0.85 * 4.8e12        # bytes a second, of all SMs
PRODUCTS = 0.65 * 1979e12 / SMS  # e4m3 operations a second of an SM
L2 = 5.5e12 / SMS             # bytes a second of an SM
BEGIN = 0.6e-6                # seconds of a tile that nothing hides
EXPERTS, TOP_K = 256, 8
SHAPES = (("w13", 4096, 7168), ("w2", 7168, 2048))
TILES = ((128, 64), (128, 128), (256, 128))  # weights x tokens


def routed_lengths(tokens, zipf, rng):
    """Slots of each expert: the expert of rank r is liked as r^-zipf."""
    liked = [(rank + 1) ** -zipf for rank in range(EXPERTS)]
    rng.shuffle(liked)
    lengths = [0] * EXPERTS
    for _ in range(tokens):
        key = [-math.log(rng.random()) / like for like in liked]
        for expert in sorted(range(EXPERTS), key=key.__getitem__)[:TOP_K]:
            lengths[expert] += 1
    return lengths


def tiles_of(lengths, order, n, k, weights, tokens):
    """(seconds without memory, bytes out of memory) of all tiles, along the tokens first."""
    tiles = []
    for expert in order:
        for _ in range(n // weights if lengths[expert] else 0):
            for first in range(0, lengths[expert], tokens):
                rows = min(tokens, lengths[expert] - first)
                busy = max(2 * weights * tokens * k / PRODUCTS, (weights + rows) * k / L2)
                tiles.append((busy + BEGIN, weights * k if first == 0 else 0))
    return tiles


def speeds(running):
    """Shares of a tile a second, of each SM's."""
    left = MEMORY
    speed = {sm: 1 / busy for sm, (_, busy, _) in running.items()}
    reading = sorted((size / busy, sm) for sm, (_, busy, size) in running.items() if size)
    for done, (wanted, sm) in enumerate(reading):
        got = min(wanted, left / (len(reading) - done))
        left -= got
        speed[sm] = got / running[sm][2]
    return speed


def makespan(queue_of):
    """Seconds until all is done; queue_of(sm) is the list that an SM pops its tiles from."""
    now = 0.0
    running = {}
    idle = range(SMS)
    while True:
        for sm in idle:
            if queue := queue_of(sm):
                running[sm] = (1.0, *queue.pop())
        if not running:
            return now
        speed = speeds(running)
        step = min(left / speed[sm] for sm, (left, _, _) in running.items())
        now += step
        idle = []
        for sm, (left, busy, size) in list(running.items()):
            left -= step * speed[sm]
            if left > 1e-9:
                running[sm] = (left, busy, size)
            else:
                del running[sm]
                idle.append(sm)


def drawn(tiles):
    queue = tiles[::-1]
    return makespan(lambda sm: queue)


def static(tiles):
    queues = [tiles[sm::SMS][::-1] for sm in range(SMS)]
    return makespan(queues.__getitem__)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--tokens", type=int, default=512)
    options.add_argument("--zipf", type=float, default=1.0)
    options.add_argument("--seeds", type=int, default=6)
    asked = options.parse_args()
    print(f"{asked.tokens} tokens, zipf {asked.zipf:g}, {asked.seeds} seeds")
    print("us: static, drawn, longest first")
    for name, n, k in SHAPES:
        for weights, tokens in TILES:
            times = [0.0, 0.0, 0.0]
            gains = []
            for seed in range(asked.seeds):
                lengths = routed_lengths(asked.tokens, asked.zipf, random.Random(seed))
                longest = sorted(range(EXPERTS), key=lambda e: -lengths[e])
                usual = tiles_of(lengths, range(EXPERTS), n, k, weights, tokens)
                first = tiles_of(lengths, longest, n, k, weights, tokens)
                took = (static(usual), drawn(usual), drawn(first))
                times = [a + b for a, b in zip(times, took)]
                gains.append(100 * (took[1] / took[2] - 1))
            mean = " ".join(f"{1e6 * t / asked.seeds:8.1f}" for t in times)
            gain = 100 * (times[1] / times[2] - 1)
            print(f"{name:4} {weights}x{tokens:<4} {mean}   gain {gain:5.2f}% "
                  f"({min(gains):.2f} to {max(gains):.2f})", flush=True)


if __name__ == "__main__":
    main()
