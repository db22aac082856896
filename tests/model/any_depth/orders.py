"""Why nobody waits in a circle, for any number of slots, tiles and k_tiles: each operation has a
rank, all that it waits for has a smaller one, and so has all that its role does before. So the
operation of the smallest rank that is not done can always be done.

Depths are names: S stages, Q answers of the tile ring, A accumulators. A tile t has len(t) k_tiles,
of which k is one; its first is number base(t) of all that go through the ring.
"""
import z3

S, Q, A = z3.Ints("S Q A")
base = z3.Function("base", z3.IntSort(), z3.IntSort())
number_of = z3.Function("number_of", z3.IntSort(), z3.IntSort())  # of a CTA's n-th ticket


def length(t):
    return base(t + 1) - base(t)


# The rank that an operation has in tile t, or in its k_tile k. `held` is how many more k_tiles a
# reader waits for before it gives one back.
def rank(event, t, k, held):
    table = {"ask": (t, 0, 0), "answer": (t, 1, 0), "tail": (t, 1, 1), "enter": (t, 2, 0),
             "load": (t, 3, 4 * k), "wait": (t, 3, 4 * k + 1), "leave": (t, 3, 4 * length(t) + 1),
             "release": (t, 3, 4 * (k + held) + 2), "commit": (t, 4, 0), "epilogue": (t, 5, 0)}
    return table[event]


def less(a, b):
    """Is rank a smaller? The first place where they differ says it."""
    (a0, a1, a2), (b0, b1, b2) = a, b
    return z3.Or(a0 < b0, z3.And(a0 == b0, z3.Or(a1 < b1, z3.And(a1 == b1, a2 < b2))))


class Order:
    """The claims about one kernel: `wait` for edges across roles, `then` for those of a role."""

    def __init__(self, held=0):
        self.held = held
        self.claims = []
        self.t, self.k, self.u, self.j = z3.Ints("t k u j")
        t, u, k, j = self.t, self.u, self.k, self.j
        self.given = [S >= 1, Q >= 1, A >= 1, t >= 0, u >= 0, k >= 0, k < length(t), j >= 0,
                      j < length(u), length(t) >= 0, length(u) >= 0,
                      # base grows, wherever it is asked here
                      z3.Implies(u > t, base(u) >= base(t + 1)),
                      z3.Implies(t > u, base(t) >= base(u + 1))]

    def edge(self, name, before, after, *where):
        """What is `before`, an (event, tile, k_tile), has the smaller rank."""
        ranks = [rank(event, t, k, self.held) for event, t, k in (before, after)]
        self.claims.append((name, [*self.given, *where], less(*ranks)))

    def ring(self):
        t, k, u, j = self.t, self.k, self.u, self.j
        self.edge("full: a k_tile is loaded before it is read", ("load", t, k), ("wait", t, k))
        self.edge("empty: its stage was given back before", ("release", u, j), ("load", t, k),
                  base(u) + j == base(t) + k - S)
        self.edge("a producer loads in order", ("load", t, k), ("load", t, k + 1))
        self.edge("a consumer waits in order", ("wait", t, k), ("wait", t, k + 1))
        if self.held:
            self.edge("a stage is given back behind the wait for a later one",
                      ("wait", t, k + self.held), ("release", t, k))
        self.edge("a stage is given back when it is there", ("wait", t, k), ("release", t, k))
        self.edge("then the next tile", ("release", t, k), ("answer", t + 1, 0))

    def turns(self):
        t, k = self.t, self.k
        self.edge("turn: the other warpgroup has left", ("leave", t, 0), ("enter", t + 1, 0))
        self.edge("reads within a turn", ("enter", t, 0), ("wait", t, k))
        self.edge("leaves behind its last wait", ("wait", t, k), ("leave", t, 0))
        self.edge("gives the last stages back behind that", ("leave", t, 0),
                  ("release", t, length(t) - 1), length(t) >= 1)
        # Past the other's tile, then the epilogue, then its own next one.
        self.edge("an epilogue beside the other's turn", ("answer", t + 1, 0), ("tail", t + 1, 0))
        self.edge("then the own next tile", ("tail", t + 1, 0), ("answer", t + 2, 0))

    def answers(self):
        t = self.t
        self.edge("tile_full: an answer was asked for", ("ask", t, 0), ("answer", t, 0))
        self.edge("tile_empty: all have read the one before", ("answer", t - Q, 0), ("ask", t, 0),
                  t >= Q)
        self.edge("a scheduler asks in order", ("answer", t, 0), ("ask", t + 1, 0))
        self.edge("an answer, then its k_tiles", ("answer", t, 0), ("load", t, self.k))

    def accumulators(self):
        t = self.t
        self.edge("acc_empty: the epilogue has read it", ("epilogue", t - A, 0), ("enter", t, 0),
                  t >= A)
        self.edge("an accumulator, then its MMAs", ("enter", t, 0), ("wait", t, self.k))
        self.edge("a commit behind its MMAs", ("wait", t, self.k), ("commit", t, 0))
        self.edge("acc_full: the MMAs are complete", ("commit", t, 0), ("epilogue", t, 0))
        self.edge("an epilogue, then the next tile", ("epilogue", t, 0), ("answer", t + 1, 0))

    def failed(self):
        """(the claim, numbers for which it fails), or None."""
        for name, given, claim in self.claims:
            solver = z3.Solver()
            solver.add(*given, z3.Not(claim))
            answer = solver.check()
            assert answer != z3.unknown, name
            if answer == z3.sat:
                model = solver.model()
                return name, {str(v): model.eval(v, model_completion=True).as_long()
                              for v in (S, Q, A, self.t, self.k, self.u, self.j)}
        return None


def window(barriers_more=0):
    """None when slots of memory are as many as barriers: a producer at p has then waited for all
    readers of what it overwrites. With more barriers than slots, or fewer: numbers."""
    p, c = z3.Ints("p c")  # the next k_tiles of the producer, behind its wait, and of a reader
    barriers = S + barriers_more
    solver = z3.Solver()
    solver.add(S >= 1, barriers >= 1, c >= 0, p >= S, z3.Or(p < barriers, c > p - barriers))
    solver.add(z3.Not(c > p - S))
    if solver.check() == z3.unsat:
        return None
    return {str(v): solver.model().eval(v).as_long() for v in (S, p, c)}


def places():
    """None when a PipelineState's stage and parity are those of its place p in the sequence, for
    ever: p = rounds * S + stage with 0 <= stage < S, and parity = rounds mod 2. `turned` stands
    for rounds * S, so that all is linear."""
    p, stage, rounds, turned, count, more, rest, of_more = z3.Ints(
        "p stage rounds turned count more rest of_more")
    parity = z3.Int("parity")

    def holds(p, stage, parity, rounds, turned):
        return z3.And(p == turned + stage, stage >= 0, stage < S, parity == rounds % 2)

    given = [S >= 1, holds(p, stage, parity, rounds, turned), z3.Or(parity == 0, parity == 1)]
    wraps = stage + 1 == S
    advance = holds(p + 1, z3.If(wraps, 0, stage + 1), z3.If(wraps, 1 - parity, parity),
                    rounds + z3.If(wraps, 1, 0), turned + z3.If(wraps, S, 0))
    # skip: more = (stage + count) / S, rest = (stage + count) % S, of_more = more * S
    skip = holds(p + count, rest, (parity + more % 2) % 2, rounds + more, turned + of_more)
    for facts, goal in (([], advance), ([count >= 0, stage + count == of_more + rest, rest >= 0,
                                         rest < S], skip)):
        solver = z3.Solver()
        solver.add(*given, *facts, z3.Not(goal))
        if solver.check() != z3.unsat:
            return str(solver.model())
    return None


def tickets(waits_for_later=False):
    """None when items that CTAs draw cannot wait in a circle. A CTA's n-th item has the number
    number_of(n), which grows; one of the second product waits for some of the first, of the same
    expert, whose numbers are all smaller; its ask waits for what the CTA's roles have read."""
    first_tiles, second_tiles, tiles, mine, theirs, n = z3.Ints(
        "first_tiles second_tiles tiles mine theirs n")
    firsts = tiles * first_tiles  # numbers of the first product; one name, so that all is linear
    product = z3.Int("firsts")
    solver = z3.Solver()
    solver.add(first_tiles >= 1, second_tiles >= 1, tiles >= 1, product == firsts)
    is_second, is_first = mine >= product, z3.And(theirs >= 0, theirs < product)
    if waits_for_later:  # the second product's items come first
        is_second, is_first = z3.And(mine >= 0, mine < product), theirs >= product
    grows = z3.And(n >= Q, Q >= 1, number_of(n - Q) < number_of(n))
    solver.add(z3.Or(z3.And(is_second, is_first, z3.Not(theirs < mine)),
                     z3.And(grows, z3.Not(less((number_of(n - Q), 1, 0), (number_of(n), 0, 0))))))
    if solver.check() == z3.unsat:
        return None
    model = solver.model()
    return {str(v): model.eval(v, model_completion=True).as_long()
            for v in (first_tiles, tiles, mine, theirs)}
