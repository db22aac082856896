"""One slot of a ring for ever: agents that wait by parity and arrive at mbarriers, and a proof by
induction (Z3 over the integers) of what must hold in every state that they can reach.

Nothing is said of the other slots: an agent comes to its next round at this slot whenever it
likes. So what is proved holds for any number of slots and of rounds.
"""
import collections
import copy
import random

import z3

# Operations of an agent's program, which it repeats round after round:
#   Wait     on `barrier`; in round k its parity is first ^ (k & 1), and what it means is that
#            k + needs phases are complete
#   After    until `agent` has done its operation `at` of the same round
#   Write    to `slot`, when all its readers have read `before` + k rounds
#   Read     of `slot`: what was written in this round
#   Arrive   at `barrier`
#   Stop     for ever: barriers that serve once
Wait = collections.namedtuple("Wait", "barrier first needs")
After = collections.namedtuple("After", "agent at")
Write = collections.namedtuple("Write", "slot before", defaults=[0])
Read = collections.namedtuple("Read", "slot")
Arrive = collections.namedtuple("Arrive", "barrier")
Stop = collections.namedtuple("Stop", "")

# Agents of one kind do the same, at barriers of their own CTA: a step of the first stands for those
# of all, since CTAs of a cluster can be swapped.
Agent = collections.namedtuple("Agent", "name kind program")


class System:
    """Barriers with their counts, and agents."""

    def __init__(self, name):
        self.name = name
        self.counts = {}
        self.agents = {}
        self.hidden = {}  # how many more twins there are

    def add(self, name, kind, *program):
        self.agents[name] = Agent(name, kind, list(program))

    def places(self, of, **wanted):
        """(agent, index, operation) of all operations of a type with these fields."""
        return [(a, j, op) for a in self.agents.values() for j, op in enumerate(a.program)
                if isinstance(op, of) and all(getattr(op, k) == v for k, v in wanted.items())]

    def representatives(self):
        """The first of each kind."""
        seen = {}
        for agent in self.agents.values():
            seen.setdefault(agent.kind, agent)
        return list(seen.values())

    def twins(self):
        """Agents by what they do, first to last: those of one list can be swapped."""
        lists = {}
        for agent in self.agents.values():
            lists.setdefault(f"{agent.kind}: {agent.program}", []).append(agent)
        return lists

    def rests(self):
        """{(barrier, twins): agents} that `followed` has left out and that arrive there."""
        return {(op.barrier, twins): count for twins, count in self.hidden.items()
                for op in self.twins()[twins][0].program if isinstance(op, Arrive)}

    def followed(self):
        """The same with two agents of all that can be swapped, and numbers for the others. What
        holds for one of them and any other one holds for all."""
        few = System(self.name)
        few.counts = self.counts
        for twins, agents in self.twins().items():
            few.agents.update({a.name: a for a in agents[:2]})
            if len(agents) > 2:
                few.hidden[twins] = len(agents) - 2
        return few

    def shape(self):
        """What decides about the proof: systems of one shape need one."""
        return repr((sorted(self.counts.items()), list(self.agents.values())))


class State:
    """Z3's names for a state: a round and an operation for each agent, and the barriers; `rest` is
    how many of the agents that are not followed one by one have arrived in a barrier's phase."""

    def __init__(self, system, tag):
        self.round = {a: z3.Int(f"round.{a}.{tag}") for a in system.agents}
        self.at = {a: z3.Int(f"at.{a}.{tag}") for a in system.agents}
        self.phase = {b: z3.Int(f"phase.{b}.{tag}") for b in system.counts}
        self.pending = {b: z3.Int(f"pending.{b}.{tag}") for b in system.counts}
        self.rest = {r: z3.Int(f"rest.{r[0]}.{r[1]}.{tag}") for r in system.rests()}

    def done(self, agent, j):
        """How often the agent has done its operation j."""
        return self.round[agent] + choose(self.at[agent] > j, 1, 0)

    def is_at(self, agent, j):
        return self.at[agent] == j


# The same rules for Z3's terms and for numbers, with which a run is played.
def choose(when, then, other):
    if isinstance(when, bool):
        return then if when else other
    return z3.If(when, then, other)


def every(claims):
    claims = list(claims)
    return all(claims) if all(isinstance(c, bool) for c in claims) else z3.And(claims)


def some(claims):
    claims = list(claims)
    return any(claims) if all(isinstance(c, bool) for c in claims) else z3.Or(claims)


def follows(given, claim):
    if isinstance(given, bool):
        return claim if given else True
    return z3.Implies(given, claim)


def odd(number):
    return number % 2


def passes(state, agent, op):
    """Does a wait by parity pass? As mbarrier.try_wait.parity: when the phase that is not complete
    has the other parity."""
    parity = odd(state.round[agent] + op.first)
    return odd(state.phase[op.barrier]) != parity


def means(state, agent, op):
    """What the same wait is to wait for."""
    return state.phase[op.barrier] >= state.round[agent] + op.needs


def guard(state, agent, j):
    op = agent.program[j]
    here = state.is_at(agent.name, j)
    if isinstance(op, Stop):
        return False
    if isinstance(op, Wait):
        return every([here, passes(state, agent.name, op)])
    if isinstance(op, After):
        return every([here, state.done(op.agent, op.at) > state.round[agent.name]])
    return here


def behind(system, state, agent, j):
    """The state when the agent has done its operation j, in terms of the one before."""
    after = copy.copy(state)
    op = agent.program[j]
    last = j + 1 == len(agent.program)
    after.at = {**state.at, agent.name: 0 if last else j + 1}
    if last:
        after.round = {**state.round, agent.name: state.round[agent.name] + 1}
    if isinstance(op, Arrive):
        b = op.barrier
        full = state.pending[b] == 1
        after.pending = {**state.pending,
                         b: choose(full, system.counts[b], state.pending[b] - 1)}
        after.phase = {**state.phase, b: state.phase[b] + choose(full, 1, 0)}
        # None has arrived in the new phase: no agent was more than one arrival ahead.
        after.rest = {r: choose(full, 0, v) if r[0] == b else v for r, v in state.rest.items()}
    return after


def start(system, state):
    return z3.And([state.round[a] == 0 for a in system.agents] +
                  [state.at[a] == 0 for a in system.agents] +
                  [state.phase[b] == 0 for b in system.counts] +
                  [state.pending[b] == n for b, n in system.counts.items()] +
                  [v == 0 for v in state.rest.values()])


def invariant(system, state):
    """What is shown to hold in every reachable state. All of it is linear, but for parities."""
    holds = []
    for name, agent in system.agents.items():
        holds += [state.round[name] >= 0, state.at[name] >= 0,
                  state.at[name] < len(agent.program)]
        if isinstance(agent.program[-1], Stop):
            holds.append(state.round[name] == 0)
    # A phase counts each of those who arrive once: they are at most one arrival apart.
    for b, count in system.counts.items():
        arrived = [state.done(a.name, j) for a, j, _ in system.places(Arrive, barrier=b)]
        holds += [z3.And(n >= state.phase[b], n <= state.phase[b] + 1) for n in arrived]
        holds += [state.pending[b] >= 1, state.phase[b] >= 0, state.pending[b] == count - z3.Sum(
            [z3.If(n == state.phase[b] + 1, 1, 0) for n in arrived] +
            [v for r, v in state.rest.items() if r[0] == b])]
    holds += [z3.And(v >= 0, v <= system.rests()[r]) for r, v in state.rest.items()]
    # A waiter is at most one phase behind, and where it has passed, the next waits for it.
    for a, j, op in system.places(Wait):
        meant = state.round[a.name] + op.needs
        phase = state.phase[op.barrier]
        holds.append(choose(state.at[a.name] > j, phase == meant,
                           z3.And(phase >= meant - 1, phase <= meant)))
    for a, j, op in system.places(After):
        holds.append(state.done(op.agent, op.at) >= state.done(a.name, j))
    return holds


def properties(system, state):
    """What a user of a ring relies on, by name: in every reachable state."""
    lists = {"no overwrite": [], "no early read": [], "parity": [], "counted": []}
    for w, i, op in system.places(Write):
        for r, j, _ in system.places(Read, slot=op.slot):
            if r.name != w.name:
                lists["no overwrite"].append(follows(
                    state.is_at(w.name, i),
                    state.done(r.name, j) >= state.round[w.name] + op.before))
    for r, j, op in system.places(Read):
        for w, i, written in system.places(Write, slot=op.slot):
            if r.name != w.name and written.before == 0:
                lists["no early read"].append(follows(
                    state.is_at(r.name, j), state.done(w.name, i) == state.round[r.name] + 1))
    for a, j, op in system.places(Wait):
        lists["parity"].append(follows(
            state.is_at(a.name, j),
            passes(state, a.name, op) == means(state, a.name, op)))
    for b in system.counts:  # a phase is complete as soon as all have arrived
        lists["counted"].append(some(
            [state.done(a.name, j) == state.phase[b]
             for a, j, _ in system.places(Arrive, barrier=b)] +
            [v < system.rests()[r] for r, v in state.rest.items() if r[0] == b]))
    able = [guard(state, a, j) for a in system.agents.values() for j in range(len(a.program))]
    ended = [state.is_at(a.name, j) for a, j, _ in system.places(Stop)]
    if ended:
        able.append(every(ended))
    return {"no deadlock": some(able), **{k: every(v) for k, v in lists.items()}}


class Given:
    """A solver that knows some facts, and says whether goals follow."""

    def __init__(self, *facts):
        facts = [z3.BoolVal(f) if isinstance(f, bool) else f for f in facts]
        self.solver = z3.SolverFor("QF_LIA")
        self.solver.add(*facts)
        self.known = {fact.get_id() for fact in facts}

    def implies(self, goals):
        for goal in goals:
            if isinstance(goal, bool):
                goal = z3.BoolVal(goal)
            if goal.get_id() in self.known:
                continue
            self.solver.push()
            self.solver.add(z3.Not(goal))
            answer = self.solver.check()
            assert answer != z3.unknown, self.solver.reason_unknown()
            self.solver.pop()
            if answer == z3.sat:
                return False
        return True


def prove(system):
    """None when the invariant is inductive and all properties follow; else which part fails."""
    system = system.followed()
    state = State(system, 0)
    always = invariant(system, state)
    if not Given(start(system, state)).implies(always):
        return "the first state"
    for agent in system.representatives():
        for j, op in enumerate(agent.program):
            after = invariant(system, behind(system, state, agent, j))
            if isinstance(op, Stop):
                continue
            if not Given(guard(state, agent, j), *always).implies(after):
                return f"a step of {agent.name}, {type(op).__name__} ({j})"
    given = Given(*always, *laggards(system, state))
    for name, wanted in properties(system, state).items():
        if not given.implies([wanted]):
            return name
    return None


def laggards(system, state):
    """The first that is followed is the one of its twins that has done the least: when it has
    arrived in a phase, all have."""
    return [z3.Implies(state.rest[b, twins] < count, state.done(a.name, j) == state.phase[b])
            for (b, twins), count in system.rests().items()
            for a in system.twins()[twins][:1]
            for j, op in enumerate(a.program) if op == Arrive(b)]


def first_state(system):
    state = State(system, "first")
    state.round = dict.fromkeys(system.agents, 0)
    state.at = dict.fromkeys(system.agents, 0)
    state.phase = dict.fromkeys(system.counts, 0)
    state.pending = dict(system.counts)
    return state


def walk(system, seed, most):
    """(the property that fails, the run to there), where one of so many random steps breaks one.
    What is wrong about parities and counts is told by what comes of it."""
    state, draw, words = first_state(system), random.Random(seed), []
    for _ in range(most):
        for name, holds in properties(system, state).items():
            if not holds and name not in ("parity", "counted"):
                return name, words
        agent, j = draw.choice([(a, j) for a in system.agents.values()
                                for j in [state.at[a.name]] if guard(state, a, j)])
        op = agent.program[j]
        words.append(f"{agent.name} {type(op).__name__.lower()} {op[0]} #{state.round[agent.name]}")
        state = behind(system, state, agent, j)
    return None


def refute(system, tries=200, most=300):
    """(the property that fails, the last steps of a run that breaks it), or None."""
    for seed in range(tries):
        if run := walk(system, seed, most):
            name, words = run
            return name, f"{len(words)} steps, at last " + (", ".join(words[-4:]) or "none")
    return None
