"""Experts on several ranks: each has a run of the experts, and tokens travel.

A token goes once to each rank that has one of its experts, with its experts' numbers and weights;
that rank sums what its experts make of it, and sends one row back. The sums are added in the order
of the ranks. Nothing here knows the transport: `Local` joins the ranks of one process, for tests;
`torch_parallel.py` is NCCL or gloo.
"""
from experts import begin, combine, in_slots, wide


def shard_of(experts, ranks, rank):
    """The experts [first, last) of a rank. Any number of ranks; sizes differ by one at most."""
    return experts * rank // ranks, experts * (rank + 1) // ranks


def destinations(xp, index, experts, ranks):
    """(tokens x ranks) of bool: which rank has an expert of which token."""
    goes = []
    for rank in range(ranks):
        first, last = shard_of(experts, ranks, rank)
        goes.append(((index >= first) & (index < last)).any(1))
    return xp.stack(goes, 1)


def where_true(xp, flags):
    return flags.nonzero()[0] if xp.__name__ == "numpy" else flags.nonzero().reshape(-1)


def local_index(xp, index, first, last):
    """The rank's own numbers of the experts; those of others become last - first, no expert."""
    return xp.where((index >= first) & (index < last), index - first, last - first)


def partial_sums(xp, shard, x, index, weights, dtype):
    """What a rank makes of the tokens that came to it: rows of `dtype`. `shard` are its experts,
    `index` its own numbers."""
    if x.shape[0] == 0:
        return x
    rows, order, offsets = begin(xp, x, index, shard.count)
    slots = in_slots(xp, shard.rows(rows, offsets), order)
    mine = index < shard.count
    # Rows of no expert here were not written: they may hold anything.
    slots = xp.where(mine.reshape(-1, 1), slots, xp.zeros_like(slots[:1]))
    weights = xp.where(mine, weights, xp.zeros_like(weights[:1]))
    total = combine(xp, slots, weights)
    return total.astype(dtype) if xp.__name__ == "numpy" else total.to(dtype)


def add_in_order(xp, tokens, hidden, parts):
    """Adds rows to tokens: parts are (token numbers, rows) in the order of the ranks."""
    like = parts[0][1]
    total = xp.zeros((tokens, hidden), dtype=xp.float32, **(
        {"device": like.device} if xp.__name__ == "torch" else {}))
    for rows, values in parts:
        total[rows] = total[rows] + wide(xp, values)  # a token is there once
    return total


def one_rank_by_shards(xp, shards, x, index, weights, experts):
    """What all ranks together make, on one: the sums of each shard, added in the order of the
    shards. `shards` are the experts of each rank."""
    goes = destinations(xp, index, experts, len(shards))
    parts = []
    for rank, shard in enumerate(shards):
        first, last = shard_of(experts, len(shards), rank)
        rows = where_true(xp, goes[:, rank])
        mine = local_index(xp, index[rows], first, last)
        parts.append((rows, partial_sums(xp, shard, x[rows], mine, weights[rows], x.dtype)))
    return add_in_order(xp, x.shape[0], x.shape[1], parts)


class Local:
    """All ranks in one process: what each sends to each, by lists."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.rows = 0  # that travelled to another rank

    def exchange(self, sent):
        """sent[from][to] -> received[to][from]."""
        self.rows += sum(len(sent[i][j][0]) for i in range(self.ranks) for j in range(self.ranks)
                         if i != j)
        return [[sent[i][j] for i in range(self.ranks)] for j in range(self.ranks)]


def all_ranks(xp, transport, shards, batches, experts):
    """Every rank's tokens through all experts. `batches` are (x, index, weights) of each rank."""
    ranks = transport.ranks
    goes = [destinations(xp, index, experts, ranks) for _, index, _ in batches]
    rows = [[where_true(xp, goes[i][:, j]) for j in range(ranks)] for i in range(ranks)]
    came = transport.exchange([[(batches[i][0][rows[i][j]], batches[i][1][rows[i][j]],
                                 batches[i][2][rows[i][j]]) for j in range(ranks)]
                               for i in range(ranks)])
    answers = []
    for j in range(ranks):
        first, last = shard_of(experts, ranks, j)
        x, index, weights = (xp.concatenate([part[at] for part in came[j]]) for at in range(3))
        made = partial_sums(xp, shards[j], x, local_index(xp, index, first, last), weights, x.dtype)
        ends = [0]
        for part in came[j]:
            ends.append(ends[-1] + len(part[0]))
        answers.append([(made[ends[i]:ends[i + 1]],) for i in range(ranks)])
    back = transport.exchange(answers)
    return [add_in_order(xp, len(batches[i][0]), batches[i][0].shape[1],
                         [(rows[i][j], back[i][j][0]) for j in range(ranks)])
            for i in range(ranks)]
