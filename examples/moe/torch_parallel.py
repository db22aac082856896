"""Experts on several ranks by torch.distributed: one process a GPU (NCCL), or on the CPU (gloo).

All ranks get the routing of all tokens first, in tensors that are equally long and never move, so
that this and what follows from it is in CUDA graphs. Lengths of what travels are then read by the
host, because all_to_all_single takes them from there: one wait a layer. All that stands around the
products is compiled. Rows travel as bytes.
"""
import json
import os
import statistics
import time

import torch
import torch.distributed as dist

import parallel
from experts import Experts
from torch_experts import Mixture


def compiled(step):
    """One compilation for all numbers of rows. Two-dimensional tiles read what belongs to a row
    (its slots' places and weights) once and not for every column; places are made here, so that
    there are no bounds to check, which costs barriers."""
    made = torch.compile(step, options={"triton.prefer_nd_tiling": True,
                                        "assert_indirect_indexing": False})

    def call(*of):
        tensors = [each for each in of if isinstance(each, torch.Tensor)]
        if any(len(each) == 0 for each in tensors):
            return step(*of)
        for each in tensors:
            torch._dynamo.maybe_mark_dynamic(each, 0)
        return made(*of)
    return call


class Exchange:
    """Rows to and from all ranks."""

    def __init__(self, device):
        self.device = device
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def start(self, rows, sent=None, received=None):
        """Sends rows, which are sorted by rank, as many to each; returns (rows that come, what to
        wait for)."""
        out = rows.new_empty((sum(received or [len(rows)]), *rows.shape[1:]))
        work = dist.all_to_all_single(out.view(torch.uint8), rows.view(torch.uint8), received, sent,
                                      async_op=True)
        return out, work


def captured(step):
    """A step that reads and writes the same tensors at every call, in a CUDA graph. It runs without
    one on the CPU, and where it cannot be captured."""
    if not torch.cuda.is_available():
        return step
    current, side = torch.cuda.current_stream(), torch.cuda.Stream()
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    current.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        # NCCL's watchdog may ask for its events meanwhile.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            made = step()
    except Exception as error:  # pylint: disable=broad-except
        torch.cuda.set_stream(current)  # a capture that fails at its end leaves its own
        torch.cuda.synchronize()
        print(f"without a CUDA graph: {error}", flush=True)
        return step

    def call():
        graph.replay()
        return made
    return call


class Layer:
    """A number of tokens, which may differ between ranks, through all experts, in float32."""

    def __init__(self, exchange, steps, shard, tokens, top_k, experts):
        self.exchange, self.steps, self.shard = exchange, steps, shard
        device, rank, ranks = exchange.device, exchange.rank, exchange.ranks
        most = torch.tensor([tokens], device=device)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        mine = parallel.unused(torch, int(most), top_k, device)
        everyone = mine.repeat(ranks, 1)
        self.routing = routing = mine[:tokens]
        self.lengths = torch.empty(ranks, ranks, 2, dtype=torch.int64,
                                   pin_memory=device.type == "cuda")
        self.read = torch.cuda.Event() if device.type == "cuda" else None

        def gather():
            dist.all_gather_into_tensor(everyone, mine)
            return steps.lengths(everyone, experts, ranks)
        self.gather = captured(gather)
        self.leave = captured(lambda: steps.leave(routing, experts, ranks))
        self.sort = captured(
            lambda: steps.sort(everyone, *parallel.shard_of(experts, ranks, rank)))

    def __call__(self, x, index, weights, stamp=lambda part: None):
        """`stamp` hears of every part that was enqueued."""
        exchange, steps = self.exchange, self.steps
        parallel.pack(torch, index, weights, self.routing)
        self.lengths.copy_(self.gather(), non_blocking=True)
        if self.read:
            self.read.record()
        stamp("routing")
        # What the GPU does while the host waits: more rows than will leave are gathered.
        at, tokens = self.leave()
        leaves = x[tokens]
        if self.read:
            self.read.synchronize()
        comes = self.lengths.tolist()
        goes = [to[exchange.rank][0] for to in comes]
        comes, slots = ([each[i] for each in comes[exchange.rank]] for i in (0, 1))
        stamp("lengths")
        rows, came = exchange.start(leaves[:sum(goes)], goes, comes)
        placed = self.sort()  # while x travels
        stamp("sort")
        came.wait()
        stamp("rows come")
        made = steps.partial_sums(self.shard, rows, placed, sum(slots))
        stamp("experts")
        rows, came = exchange.start(made, comes, goes)
        came.wait()
        stamp("sums come")
        out = steps.add_ranks(rows, at)
        stamp("add")
        return out


def parts_us(call, rounds=15):
    """[(part, median microseconds)] of call(stamp) on the GPU."""
    times = {}
    for _ in range(rounds):
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        events = []

        def stamp(part, events=events):
            events.append((part, torch.cuda.Event(enable_timing=True)))
            events[-1][1].record()
        stamp("begin")
        call(stamp)
        torch.cuda.synchronize()
        for (_, begin), (part, end) in zip(events, events[1:]):
            times.setdefault(part, []).append(begin.elapsed_time(end) * 1e3)
    return [(part, statistics.median(each)) for part, each in times.items()]


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
    dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
    run(options, Exchange(device), on_gpu)  # graphs end with it, before what they captured
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

    def routed(uneven):
        """(x, index, weights) of tokens that like the first experts more, and so the first rank."""
        x = torch.randn(tokens, hidden, device=device).bfloat16()
        like = torch.linspace(uneven, 0, experts, device=device)
        odds = (torch.randn(tokens, experts, device=device) + like).softmax(-1)
        weights, index = odds.topk(top_k)
        return x, index, weights / weights.sum(-1, keepdim=True)

    steps = parallel.Steps(torch, compiled)

    with torch.inference_mode():
        layer = Layer(exchange, steps, mine, tokens, top_k, experts)
        same = True
        for uneven in (2, 1, 0):  # other lengths in the same graphs
            x, index, weights = routed(uneven)
            got = layer(x, index, weights)
            one = parallel.one_rank_by_shards(steps, shards, x, index, weights, experts)
            same = same and torch.equal(got, one)
        same = torch.tensor([int(same)], device=device)
        dist.all_reduce(same, dist.ReduceOp.MIN)
        if same.item() != 1:
            raise SystemExit("FAILED: ranks do not give the bits of one that sums by shard")
        say(f"{ranks} ranks give the bits of one that sums by shard")
        mixture = Mixture(compiled=on_gpu)
        whole = Experts(gate_up, down)
        want = mixture(whole, x, index, weights).float()
        off = ((got - want).norm() / want.norm()).item()
        if not off < 0.01:
            raise SystemExit(f"FAILED: ranks are off from whole experts by {off:.4f} of their norm")
        if not on_gpu:
            return
        alone = seconds(lambda: mixture(whole, x, index, weights), device)
        goes = (steps.leave(parallel.pack(torch, index, weights), experts, ranks)[0] >= 0).sum(0)
        travels = goes.sum() - goes[exchange.rank]
        row_bytes = hidden * 2 * 2 + top_k * 8
        bound = alone if not bandwidth else max(
            alone, alone + travels.item() * row_bytes / bandwidth)
        took = seconds(lambda: layer(x, index, weights), device)
        say("\n| us | x one GPU's throughput | x the bound of the link |\n|---:|---:|---:|\n"
            f"| {took * 1e6:.0f} | {ranks * alone / took:.2f} | {bound / took:.2f} |")
        say(f"one GPU alone: {alone * 1e6:.0f} us; with what must travel: {bound * 1e6:.0f} us")
        parts = parts_us(lambda stamp: layer(x, index, weights, stamp))
        say("parts: " + ", ".join(f"{part} {each:.0f} us" for part, each in parts))
        if exchange.rank == 0:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "expert_parallel.json").write_text(json.dumps(
                {"ranks": ranks, "tokens_a_rank": tokens, "bandwidth": bandwidth,
                 "alone_us": alone * 1e6, "us": took * 1e6, "scaling": ranks * alone / took,
                 "of_bound": bound / took, "parts_us": dict(parts)}, indent=1))
