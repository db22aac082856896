"""Experts on several ranks: each has a run of the experts, and tokens travel.

Every rank hears the routing of all tokens. A token goes once to each rank that has one of its
experts; that rank sums what its experts make of it, and sends one row back. The sums are added in
the order of the ranks. Nothing here knows the transport: `Local` joins the ranks of one process,
for tests; `torch_parallel.py` is NCCL or gloo.
"""
from experts import by_expert, cast, combine


def shard_of(experts, ranks, rank):
    """The experts [first, last) of a rank. Any number of ranks; sizes differ by one at most."""
    return experts * rank // ranks, experts * (rank + 1) // ranks


def pack(xp, index, weights, out=None):
    """A token's experts and the bits of their weights, to travel together. Expert -1 is none."""
    return xp.concatenate([cast(xp, index, xp.int32), weights.view(xp.int32)], 1, out=out)


def unused(xp, tokens, top_k, device):
    """Routing of tokens that go nowhere: ranks with fewer tokens than others have some."""
    return xp.full((tokens, 2 * top_k), -1, dtype=xp.int32, device=device)


def slots_of(xp, index, experts, ranks):
    """[rank, token]: of how many of a token's slots that rank has the expert."""
    shards = [shard_of(experts, ranks, rank) for rank in range(ranks)]
    return xp.stack([((index >= first) & (index < last)).sum(1) for first, last in shards])


def lengths(xp, routing, experts, ranks):
    """[to, from] = (rows, slots) that travel, by the routing of all ranks, one after another and
    equally long."""
    slots = slots_of(xp, routing[:, :routing.shape[1] // 2], experts, ranks)
    slots = slots.reshape(ranks, ranks, -1)
    return xp.stack([(slots > 0).sum(2), slots.sum(2)], 2)


def line_up(xp, goes):
    """(at, those) of a mask: those[at[i]] = i where goes[i], else at[i] = -1. The shape of `those`
    does not wait for a count, so that 0 stands behind the last."""
    at = xp.where(goes, xp.cumsum(goes, 0) - 1, -1)
    those = xp.zeros(goes.shape[0] + 1, dtype=xp.int64, device=goes.device)
    those[at] = xp.arange(goes.shape[0], device=goes.device)  # -1: the last, which is not returned
    return at, those[:-1]


def leave(xp, routing, experts, ranks):
    """(at, tokens): what leaves a rank are these tokens, sorted by where they go; at[token, rank]
    is the row or -1."""
    goes = slots_of(xp, routing[:, :routing.shape[1] // 2], experts, ranks) > 0
    at, those = line_up(xp, goes.reshape(-1))
    return at.reshape(goes.shape).T, those % goes.shape[1]


def sort(xp, routing, first, last):
    """(tokens, offsets, back, routing) of the slots of experts [first, last), by the routing of all
    tokens, those that do not come here too: row i of the products is token tokens[i] of those that
    come, back[token, j] is the row of its slot, or -1 where the expert is of another rank, and
    `routing` is its routing. Behind the last of `tokens`, `back` and `routing` stands something."""
    top_k = routing.shape[1] // 2
    index = routing[:, :top_k]
    mine = (index >= first) & (index < last)
    # Narrow keys: a radix sort takes a pass for every 8 bits.
    keys = cast(xp, xp.where(mine, index - first, last - first), xp.int16).reshape(-1)
    order, offsets = by_expert(xp, keys, last - first)
    row = xp.arange(keys.shape[0], dtype=xp.int32, device=keys.device)
    back = xp.zeros_like(row)
    back[order] = xp.where(row < offsets[last - first], row, -1)
    at, those = line_up(xp, mine.any(1))
    return at[order // top_k], offsets, back.reshape(-1, top_k)[those], routing[those]


def add_slots(xp, y, back, routing):
    """The weighted sum of each token's rows of y, in the order of its slots."""
    at = back.reshape(-1)
    slots = xp.where((at >= 0).reshape(-1, 1), y[at], xp.zeros_like(y[:1]))
    weights = routing[:, back.shape[1]:].view(xp.float32)
    weights = xp.where(back >= 0, weights, xp.zeros_like(weights[:1]))
    return cast(xp, combine(xp, slots, weights), y.dtype)


def add_ranks(xp, rows, at):
    """The sum of what all ranks made of each token, in their order, in float32."""
    total = None
    for rank in range(at.shape[1]):
        each = cast(xp, rows[at[:, rank]], xp.float32)
        each = xp.where((at[:, rank] >= 0).reshape(-1, 1), each, xp.zeros_like(each[:1]))
        total = each if total is None else total + each
    return total


class Steps:
    """What a rank computes beside the products. `wrap` may compile a step; bits are equal where
    the same steps are used."""

    def __init__(self, xp, wrap=lambda step: step):
        self.xp = xp
        self.lengths = wrap(lambda *of: lengths(xp, *of))
        self.leave = wrap(lambda *of: leave(xp, *of))
        self.sort = wrap(lambda *of: sort(xp, *of))
        self.add_slots = wrap(lambda *of: add_slots(xp, *of))
        self.add_ranks = wrap(lambda *of: add_ranks(xp, *of))

    def partial_sums(self, shard, x, placed, slots):
        """What a rank makes of the tokens that came to it. `placed` is from `sort`, `slots` the
        number that it has experts for."""
        count = x.shape[0]
        if count == 0:
            return x
        tokens, offsets, back, routing = placed
        return self.add_slots(shard.rows(x[tokens[:slots]], offsets), back[:count], routing[:count])


def one_rank_by_shards(steps, shards, x, index, weights, experts):
    """What all ranks together make, on one: the sums of each shard, added in the order of the
    shards. `shards` are the experts of each rank."""
    xp, ranks = steps.xp, len(shards)
    routing = pack(xp, index, weights)
    at, tokens = steps.leave(routing, experts, ranks)
    made, begin = [], 0
    for rank, count in enumerate((at >= 0).sum(0).tolist()):
        placed = steps.sort(routing, *shard_of(experts, ranks, rank))
        slots = int(placed[1][-1])
        made.append(steps.partial_sums(shards[rank], x[tokens[begin:begin + count]], placed, slots))
        begin += count
    return steps.add_ranks(xp.concatenate(made), at)


class Local:
    """All ranks in one process: what each sends to each, by lists."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.rows = 0  # that travelled to another rank

    def exchange(self, sent):
        """sent[from][to] -> received[to][from], arrays of rows."""
        self.rows += sum(len(sent[i][j]) for i in range(self.ranks) for j in range(self.ranks)
                         if i != j)
        return [[sent[i][j] for i in range(self.ranks)] for j in range(self.ranks)]


def split(rows, counts):
    """As many rows for each rank as its count says."""
    ends = [sum(counts[:rank]) for rank in range(len(counts) + 1)]
    return [rows[begin:end] for begin, end in zip(ends, ends[1:])]


def all_ranks(steps, transport, shards, batches, experts):
    """Every rank's tokens through all experts. `batches` are (x, index, weights) of each rank."""
    xp, ranks = steps.xp, transport.ranks
    most = max(len(x) for x, _, _ in batches)
    routing = []
    for x, index, weights in batches:
        routing.append(unused(xp, most, index.shape[1], x.device))
        pack(xp, index, weights, routing[-1][:len(x)])
    everyone = xp.concatenate(routing)
    comes = steps.lengths(everyone, experts, ranks).tolist()  # [to][from]
    leaves = [steps.leave(each[:len(batch[0])], experts, ranks)
              for each, batch in zip(routing, batches)]
    came = transport.exchange([
        split(batch[0][tokens], [comes[to][rank][0] for to in range(ranks)])
        for rank, (batch, (_, tokens)) in enumerate(zip(batches, leaves))])
    answers = []
    for rank in range(ranks):
        placed = steps.sort(everyone, *shard_of(experts, ranks, rank))
        made = steps.partial_sums(shards[rank], xp.concatenate(came[rank]), placed,
                                  sum(slots for _, slots in comes[rank]))
        answers.append(split(made, [rows for rows, _ in comes[rank]]))
    return [steps.add_ranks(xp.concatenate(back), at)
            for back, (at, _) in zip(transport.exchange(answers), leaves)]
