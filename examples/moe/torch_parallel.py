"""Experts on several ranks by torch.distributed: one process a GPU (NCCL), or on the CPU (gloo).

The lengths of what travels are exchanged first and read by the host, because all_to_all_single
takes them from there: one wait a layer. Rows travel as bytes.
"""
import json
import math
import os
import statistics
import time

import torch
import torch.distributed as dist

import parallel
from experts import Experts
from torch_experts import Mixture


class Exchange:
    """Rows to and from all ranks."""

    def __init__(self, device):
        self.device = device
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def lengths(self, sent):
        """(sent, received) to and from each rank, on the host."""
        mine = torch.tensor(sent, device=self.device)
        theirs = torch.empty_like(mine)
        dist.all_to_all_single(theirs, mine)
        return sent, theirs.tolist()

    def start(self, rows, sent, received):
        """Sends rows, which are sorted by rank; returns (rows that come, what to wait for)."""
        out = rows.new_empty((sum(received), *rows.shape[1:]))
        width = rows.element_size() * math.prod(rows.shape[1:])
        work = dist.all_to_all_single(
            out.view(torch.uint8).reshape(-1), rows.contiguous().view(torch.uint8).reshape(-1),
            [n * width for n in received], [n * width for n in sent], async_op=True)
        return out, work


def forward(exchange, shard, x, index, weights, experts, chunks=1):
    """This rank's tokens through all experts, in float32. With several chunks one travels while
    another is multiplied; the bits are the same."""
    ranks = exchange.ranks
    first, last = parallel.shard_of(experts, ranks, exchange.rank)
    under_way = []
    for number in range(chunks):  # on every rank as many, with whatever it has
        begin = x.shape[0] * number // chunks
        part = slice(begin, x.shape[0] * (number + 1) // chunks)
        goes = parallel.destinations(torch, index[part], experts, ranks)
        rows = [parallel.where_true(torch, goes[:, rank]) + begin for rank in range(ranks)]
        every = torch.cat(rows)
        sent, received = exchange.lengths([len(r) for r in rows])
        under_way.append((rows, sent, received, [exchange.start(t[every], sent, received)
                                                 for t in (x, index, weights)]))
    answers = []
    for rows, sent, received, came in under_way:
        for _, work in came:
            work.wait()
        (of_x, _), (of_index, _), (of_weights, _) = came
        made = parallel.partial_sums(torch, shard, of_x,
                                     parallel.local_index(torch, of_index, first, last), of_weights,
                                     x.dtype)
        answers.append((rows, sent, exchange.start(made, received, sent)))
    parts = [[] for _ in range(ranks)]
    for rows, sent, (back, work) in answers:
        work.wait()
        for rank, values in enumerate(back.split(sent)):
            parts[rank].append((rows[rank], values))
    return parallel.add_in_order(torch, x.shape[0], x.shape[1],
                                 [each for of_rank in parts for each in of_rank])


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
    dist.barrier()


def seconds(call, device, rounds=15):
    for _ in range(3):
        call()
    times = []
    for _ in range(rounds):
        wait(device)
        start = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def link_bandwidth(exchange, megabytes):
    """Bytes a second that a rank sends to others, all sending at once."""
    rows = torch.empty(exchange.ranks, megabytes << 20, dtype=torch.uint8, device=exchange.device)
    each = [1] * exchange.ranks

    def call():
        exchange.start(rows, each, each)[1].wait()
    return (exchange.ranks - 1) * (megabytes << 20) / seconds(call, exchange.device, 7)


def main(options):
    on_gpu = torch.cuda.is_available()
    if "RANK" not in os.environ:  # one rank: no torchrun
        os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT="29511")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else \
        torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    try:
        run(options, Exchange(device), on_gpu)
    finally:
        dist.destroy_process_group()


def run(options, exchange, on_gpu):
    device, ranks = exchange.device, exchange.ranks
    hidden, inner, experts, top_k = (2048, 768, 128, 8) if on_gpu else (128, 128, 8, 2)
    tokens = options.tokens[-1] if on_gpu else 3 + 8 * exchange.rank

    def say(text):
        if exchange.rank == 0:
            print(text, flush=True)
    bandwidth = link_bandwidth(exchange, 64 if on_gpu else 1) if ranks > 1 else None
    if bandwidth:
        say(f"{ranks} ranks, all to all: {bandwidth / 1e9:.1f} GB/s out of each")

    torch.manual_seed(options.seed)  # the same weights everywhere
    gate_up = (torch.randn(experts, 2 * inner, hidden, device=device) / hidden ** 0.5).bfloat16()
    down = (torch.randn(experts, hidden, inner, device=device) / inner ** 0.5).bfloat16()
    shards = []
    for rank in range(ranks):
        first, last = parallel.shard_of(experts, ranks, rank)
        shards.append(Experts(gate_up[first:last], down[first:last]))
    mine = shards[exchange.rank]

    torch.manual_seed(options.seed + 1 + exchange.rank)
    x = torch.randn(tokens, hidden, device=device).bfloat16()
    weights, index = torch.randn(tokens, experts, device=device).softmax(-1).topk(top_k)
    weights = weights / weights.sum(-1, keepdim=True)

    with torch.inference_mode():
        got = forward(exchange, mine, x, index, weights, experts)
        one = parallel.one_rank_by_shards(torch, shards, x, index, weights, experts)
        chunked = forward(exchange, mine, x, index, weights, experts, chunks=4)
        same = torch.equal(got, one) and torch.equal(got, chunked)
        same = torch.tensor([int(same)], device=device)
        dist.all_reduce(same, dist.ReduceOp.MIN)
        if same.item() != 1:
            raise SystemExit("FAILED: ranks do not give the bits of one that sums by shard")
        say(f"{ranks} ranks give the bits of one that sums by shard, in one chunk and in four")
        if not on_gpu:
            return
        mixture = Mixture()
        whole = Experts(gate_up, down)
        alone = seconds(lambda: mixture(whole, x, index, weights), device)
        travels = (parallel.destinations(torch, index, experts, ranks).sum()
                   - parallel.destinations(torch, index, experts, ranks)[:, exchange.rank].sum())
        row_bytes = hidden * 2 * 2 + top_k * 12
        bound = alone if not bandwidth else max(
            alone, alone + travels.item() * row_bytes / bandwidth)
        rows = []
        say("\n| chunks | us | x one GPU's throughput | x the bound of the link |\n"
            "|---:|---:|---:|---:|")
        for chunks in (1, 2, 4):
            took = seconds(lambda chunks=chunks: forward(exchange, mine, x, index, weights, experts,
                                                         chunks), device)
            rows.append({"chunks": chunks, "us": took * 1e6, "scaling": ranks * alone / took,
                         "of_bound": bound / took})
            say(f"| {chunks} | {took * 1e6:.0f} | {ranks * alone / took:.2f} | "
                f"{bound / took:.2f} |")
        say(f"one GPU alone: {alone * 1e6:.0f} us; with what must travel: {bound * 1e6:.0f} us")
        if exchange.rank == 0:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "expert_parallel.json").write_text(json.dumps(
                {"ranks": ranks, "tokens_a_rank": tokens, "bandwidth": bandwidth,
                 "alone_us": alone * 1e6, "rows": rows}, indent=1))
