"""Experts on several ranks by torch.distributed: one process a GPU (NCCL), or on the CPU (gloo).

Two ways. The lengths of what travels are exchanged first and read by the host, because
all_to_all_single takes them from there: one wait a layer, in however many chunks. Or every token
goes to all ranks: no length is wanted then, the host waits for nothing, and the layer is one CUDA
graph; with two ranks and eight of 128 experts a token that is 0.3% more rows. What stands beside
the mixture is compiled. Rows travel as bytes.
"""
import json
import os
import statistics
import time

import torch
import torch.distributed as dist

import parallel
from experts import Experts


def compiled(step):
    """One compilation for all numbers of rows. Two-dimensional tiles read what belongs to a row
    (its places) once and not for every column; places are made here, so that there are no bounds to
    check, which costs barriers."""
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

    def everyone(self, rows):
        """The rows of all ranks, alike in number, and what to wait for."""
        out = rows.new_empty((self.ranks * len(rows), *rows.shape[1:]))
        work = dist.all_gather_into_tensor(out.view(torch.uint8), rows.view(torch.uint8),
                                           async_op=True)
        return out, work


def forward(exchange, steps, shard, x, index, weights, experts, chunks=1, stamp=lambda part: None):
    """This rank's tokens through all experts, in float32. With several chunks one travels while
    another is multiplied; the bits are the same. `stamp` hears of every part that was enqueued."""
    ends = [x.shape[0] * number // chunks for number in range(chunks + 1)]
    parts = [slice(begin, end) for begin, end in zip(ends, ends[1:])]
    plans = [steps.plan(index[part], weights[part], experts, exchange.ranks) for part in parts]
    stamp("plan")
    sent = torch.stack([made[0] for made in plans], 1)  # ranks x chunks
    received, work = exchange.start(sent)
    # The GPU gathers, more rows than will leave, while the host waits for the lengths.
    leaves = [x[part][rows] for part, (_, _, rows, _) in zip(parts, plans)]
    work.wait()
    sent, received = torch.stack((sent, received)).permute(0, 2, 1).tolist()
    stamp("lengths")
    under_way = []
    for rows, (_, at, _, routing), goes, comes in zip(leaves, plans, sent, received):
        under_way.append((at, goes, comes, [
            exchange.start(each[:sum(goes)], goes, comes) for each in (routing, rows)]))
    first, _ = parallel.shard_of(experts, exchange.ranks, exchange.rank)
    answers = []
    for at, goes, comes, ((routing, routing_came), (rows, rows_came)) in under_way:
        routing_came.wait()
        rows_came.wait()
        stamp("rows come")
        made = steps.partial_sums(shard, rows, routing, first, experts)
        stamp("experts")
        answers.append((at, exchange.start(made, comes, goes)))
    done = []
    for at, (rows, work) in answers:
        work.wait()
        stamp("sums come")
        done.append(steps.add_ranks(rows, at))
    stamp("add")
    return done[0] if chunks == 1 else torch.cat(done)


def forward_everywhere(exchange, steps, shard, x, index, weights, experts):
    """The same with every token at all ranks, which have equally many: nobody waits for lengths."""
    routing, routing_came = exchange.everyone(steps.join_routing(index, weights))
    rows, rows_came = exchange.everyone(x)
    routing_came.wait()
    rows_came.wait()
    first, _ = parallel.shard_of(experts, exchange.ranks, exchange.rank)
    made = steps.partial_sums(shard, rows, routing, first, experts)
    alike = [len(x)] * exchange.ranks
    sums, sums_came = exchange.start(made, alike, alike)
    at = parallel.places_of_all(torch, len(x), exchange.ranks, x.device)
    sums_came.wait()
    return steps.add_ranks(sums, at)


def captured(call, device):
    """`call` as a CUDA graph, which returns the same tensor at every call; on the CPU as it is."""
    if device.type != "cuda":
        return call
    # Compiled, planned and with NCCL's channels before the capture, which can have none of it.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
        out = call()

    def replay():
        graph.replay()
        return out
    return replay


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

    steps = parallel.Steps(torch, compiled)

    def ours(**how):
        return forward(exchange, steps, mine, x, index, weights, experts, **how)

    with torch.inference_mode():
        one = parallel.one_rank_by_shards(steps, shards, x, index, weights, experts)
        # On the CPU ranks have different numbers of tokens: so many as all have.
        alike = tokens if on_gpu else 3
        everywhere = captured(lambda: forward_everywhere(
            exchange, steps, mine, x[:alike], index[:alike], weights[:alike], experts), device)
        got = ours()
        for way, made in [("in one chunk", got), ("in four", ours(chunks=4)),
                          ("all tokens everywhere", everywhere()),
                          ("the same again", everywhere())]:
            same = torch.tensor([int(torch.equal(made, one[:len(made)]))], device=device)
            dist.all_reduce(same, dist.ReduceOp.MIN)
            if same.item() != 1:
                raise SystemExit("FAILED: ranks do not give the bits of one that sums by shard, "
                                 f"{way}")
        say(f"{ranks} ranks give the bits of one that sums by shard, in one chunk and in four, "
            "and where all tokens go everywhere")
        whole = Experts(gate_up, down)
        want = whole(x, index, weights).float()
        off = ((got - want).norm() / want.norm()).item()
        if not off < 0.01:
            raise SystemExit(f"FAILED: ranks are off from whole experts by {off:.4f} of their norm")
        if not on_gpu:
            return
        alone = seconds(captured(lambda: whole(x, index, weights), device), device)
        leaves = steps.plan(index, weights, experts, ranks)[0]
        travels = leaves.sum() - leaves[exchange.rank]
        row_bytes = hidden * 2 * 2 + top_k * 8
        bound = alone if not bandwidth else max(
            alone, alone + travels.item() * row_bytes / bandwidth)
        rows = []
        say("\n| tokens | us | x one GPU's throughput | x the bound of the link |\n"
            "|---|---:|---:|---:|")
        for way, call in [("where they must, 1 chunk", ours),
                          ("where they must, 2 chunks", lambda: ours(chunks=2)),
                          ("everywhere, a graph", everywhere)]:
            took = seconds(call, device)
            rows.append({"tokens": way, "us": took * 1e6, "scaling": ranks * alone / took,
                         "of_bound": bound / took})
            say(f"| {way} | {took * 1e6:.0f} | {ranks * alone / took:.2f} | "
                f"{bound / took:.2f} |")
        say(f"one GPU by itself, a graph: {alone * 1e6:.0f} us; with what must travel: "
            f"{bound * 1e6:.0f} us")
        parts = parts_us(lambda stamp: ours(stamp=stamp))
        say("in one chunk: " + ", ".join(f"{part} {took:.0f} us" for part, took in parts))
        if exchange.rank == 0:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / "expert_parallel.json").write_text(json.dumps(
                {"ranks": ranks, "tokens_a_rank": tokens, "bandwidth": bandwidth,
                 "alone_us": alone * 1e6, "rows": rows, "parts_us": dict(parts)}, indent=1))
