"""Experts on several ranks: each has a run of the experts, and tokens travel.

A token goes once to each rank that has one of its experts, with its experts' numbers and weights;
that rank sums what its experts make of it, and sends one row back. The sums are added in the order
of the ranks. Where most ranks have some expert of most tokens, as with two, every token may go to
all ranks: nobody then has to know a length. Nothing here knows the transport: `Local` joins the
ranks of one process, for tests; `torch_parallel.py` is NCCL or gloo.
"""


def cast(xp, x, dtype):
    return x.astype(dtype) if xp.__name__ == "numpy" else x.to(dtype)


def shard_of(experts, ranks, rank):
    """The experts [first, last) of a rank. Any number of ranks; sizes differ by one at most."""
    return experts * rank // ranks, experts * (rank + 1) // ranks


def plan(xp, index, weights, experts, ranks):
    """What leaves: (counts, at, rows, routing). Rank r gets counts[r] rows. `rows` are the tokens,
    sorted by rank; their shape does not wait for the counts, so that token 0 stands behind the last
    of them. at[token, rank] is the row or -1; `routing` has the experts and the bits of the weights
    of each row, to travel together."""
    tokens = index.shape[0]
    shards = [shard_of(experts, ranks, rank) for rank in range(ranks)]
    goes = xp.stack([((index >= first) & (index < last)).any(1) for first, last in shards])
    flat = goes.reshape(-1)
    at = xp.where(flat, xp.cumsum(flat, 0) - 1, -1).reshape(ranks, tokens)
    rows = xp.zeros(ranks * tokens + 1, dtype=xp.int64, device=index.device)
    rows[at] = xp.arange(tokens, device=index.device)  # -1: the last, which is not returned
    rows = rows[:-1]
    return goes.sum(1), at.T, rows, join_routing(xp, index, weights)[rows]


def join_routing(xp, index, weights):
    """The experts and the bits of the weights of each row, to travel together."""
    return xp.concatenate([cast(xp, index, xp.int32), weights.view(xp.int32)], 1)


def add_ranks(xp, rows, at):
    """The sum of what all ranks made of each token, in their order, in float32."""
    total = None
    for rank in range(at.shape[1]):
        each = cast(xp, rows[at[:, rank]], xp.float32)
        each = xp.where((at[:, rank] >= 0).reshape(-1, 1), each, xp.zeros_like(each[:1]))
        total = each if total is None else total + each
    return total


class Steps:
    """What a rank computes. `wrap` may compile what stands beside the mixture; bits are equal where
    the same steps are used."""

    def __init__(self, xp, wrap=lambda step: step):
        self.xp = xp
        self.plan = wrap(lambda *of: plan(xp, *of))
        self.join_routing = wrap(lambda *of: join_routing(xp, *of))
        self.add_ranks = wrap(lambda *of: add_ranks(xp, *of))

    def partial_sums(self, shard, x, routing, first, experts):
        """What a rank, whose experts begin at `first` of all `experts`, makes of the tokens that
        came to it. Their bits do not depend on the company in which they came."""
        top_k = routing.shape[1] // 2
        return shard(x, routing[:, :top_k], routing[:, top_k:].view(self.xp.float32),
                     first_expert=first, experts_total=experts, batch_invariant=True)


def places_of_all(xp, tokens, ranks, device=None):
    """at[token, rank] where every token goes to all ranks."""
    return xp.arange(ranks * tokens, device=device).reshape(ranks, tokens).T


def one_rank_by_shards(steps, shards, x, index, weights, experts):
    """What all ranks together make, on one: the sums of each shard, added in the order of the
    shards. `shards` are the experts of each rank."""
    counts, at, rows, routing = steps.plan(index, weights, experts, len(shards))
    made, begin = [], 0
    for rank, count in enumerate(counts.tolist()):
        part = slice(begin, begin + count)
        first, _ = shard_of(experts, len(shards), rank)
        made.append(steps.partial_sums(shards[rank], x[rows[part]], routing[part], first, experts))
        begin += count
    return steps.add_ranks(steps.xp.concatenate(made), at)


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


def all_ranks_everywhere(steps, transport, shards, batches, experts):
    """The same, with the same bits, where every token goes to all ranks. Batches are as long as
    each other."""
    ranks, tokens = transport.ranks, len(batches[0][0])
    join = steps.xp.concatenate
    routing = join([steps.join_routing(index, weights) for _, index, weights in batches])
    came = transport.exchange([[x] * ranks for x, _, _ in batches])
    answers = []
    for rank in range(ranks):
        first, _ = shard_of(experts, ranks, rank)
        made = steps.partial_sums(shards[rank], join(came[rank]), routing, first, experts)
        answers.append(split(made, [tokens] * ranks))
    at = places_of_all(steps.xp, tokens, ranks)
    return [steps.add_ranks(join(back), at) for back in transport.exchange(answers)]


def all_ranks(steps, transport, shards, batches, experts):
    """Every rank's tokens through all experts. `batches` are (x, index, weights) of each rank."""
    ranks = transport.ranks
    join = steps.xp.concatenate
    plans = [steps.plan(index, weights, experts, ranks) for _, index, weights in batches]
    lengths = [made[0].tolist() for made in plans]
    came_x = transport.exchange([split(batch[0][rows], sent) for batch, (_, _, rows, _), sent
                                 in zip(batches, plans, lengths)])
    came_routing = Local(ranks).exchange([split(routing, sent) for (_, _, _, routing), sent
                                          in zip(plans, lengths)])
    answers = []
    for rank in range(ranks):
        routing = join(came_routing[rank])
        first, _ = shard_of(experts, ranks, rank)
        made = steps.partial_sums(shards[rank], join(came_x[rank]), routing, first, experts)
        answers.append(split(made, [sent[rank] for sent in lengths]))
    return [steps.add_ranks(join(back), made[1])
            for back, made in zip(transport.exchange(answers), plans)]
