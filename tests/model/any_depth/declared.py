"""From what a kernel declares, as `explain --json` prints it, to the systems and orders that are
proved. Who takes part is counted from the roles, their warps and the cluster; how many arrivals a
barrier expects, and which parity comes first, are the declaration's. So a proof is of both.

Bytes of copies are an arrival of each CTA that sends some.
"""
import orders
from slots import After, Arrive, Read, Stop, System, Wait, Write

SINGLE = {"producer", "scheduler", "load", "mma"}  # roles of which one thread takes part


class Unknown(Exception):
    """Words of a declaration that nothing here knows."""


class Declared:
    """One plan's declaration."""

    def __init__(self, told):
        self.kernel = told["kernel"]["kernel"]
        self.family = told["kernel"]["family"]
        self.stages = told["kernel"]["stages"]
        self.m, self.n = told["cluster"]
        self.rows = {row["barrier"]: row for row in told["barriers"]}
        self.warps = {r["role"]: r["last_warp"] - r["first_warp"] + 1 for r in told["roles"]
                      if r["role"] != "idle"}

    @property
    def pair(self):
        return "pair" in self.rows.get("acc_full", {"arrivers": ""})["arrivers"]

    @property
    def ctas(self):
        return [(x, y) for y in range(self.n) for x in range(self.m)]

    def issuer(self, cta):
        """The CTA whose MMAs read this one's stages."""
        return (cta[0] - cta[0] % 2, cta[1]) if self.pair else cta

    def senders(self, cta):
        """CTAs whose copies write its stages: A for the same x, B for the same y (and half)."""
        return [s for s in self.ctas if s[0] == cta[0] or
                (s[1] == cta[1] and (not self.pair or s[0] % 2 == cta[0] % 2))]

    def consumer_warps(self):
        """By role: those that read one stage. Where they take turns, one of two reads a tile."""
        roles = {r: n for r, n in self.warps.items() if r.startswith("consumer")}
        if "turn" in self.rows:
            # Both are alike: the first stands for whoever's tile it is.
            first = min(roles)
            count = roles[first] if len(roles) > 1 else roles[first] // 2
            return {first: count}
        return roles

    def readers(self):
        """Those of a CTA's stages, each with an arrival of its own."""
        words = self.rows["empty"]["arrivers"]
        if words.startswith("commits of"):
            return ["mma"]
        warps = sum(self.consumer_warps().values())
        if words.startswith("one lane of each consumer warpgroup"):
            return [f"warpgroup{w}" for w in range(warps // 4)]
        if words.startswith("one lane of each consumer warp "):
            return [f"warp{w}" for w in range(warps)]
        raise Unknown(words)

    def writers(self):
        """Those beside the thread that loads, each with an arrival of its own."""
        words = self.rows["full"]["arrivers"]
        start = ("producer (expects", "load thread")
        if not words.startswith(start):
            raise Unknown(words)
        found = []
        if "warps that write scales" in words:
            found += [f"scales{w}" for w in range(self.warps.get("scales", 0))]
        if "each lane that copies tokens" in words:
            tokens = sum(n for r, n in self.warps.items() if "tokens" in r)
            found += [f"lane{lane}" for lane in range(32 * tokens)]
        return found


def first(row, copy=0):
    return row["first_wait_parity"] ^ (copy & 1 if row["alternates"] else 0)


def name(what, cta):
    return f"{what}@{cta[0]}{cta[1]}"


def stage_ring(d):
    """One stage of the ring of operands, in all CTAs of a cluster."""
    full, empty = d.rows["full"], d.rows["empty"]
    s = System("ring")
    leads = [c for c in d.ctas if d.issuer(c) == c]
    for cta in d.ctas:
        s.counts[name("empty", cta)] = empty["arrivals"]
    for lead in leads:
        own = [c for c in d.ctas if d.issuer(c) == lead]
        s.counts[name("full", lead)] = full["arrivals"] + sum(len(d.senders(c)) for c in own)
    for cta in d.ctas:
        waits = Wait(name("empty", cta), first(empty), 0)
        lead = d.issuer(cta)
        # Only the leader's barrier expects; the other thread of a pair copies behind its own wait.
        expects = [Arrive(name("full", lead))] if lead == cta else []
        s.add(name("producer", cta), f"producer {cta[0] % 2 if d.pair else 0}", waits, *expects)
        for w in d.writers():
            s.add(name(w, cta), w.rstrip("0123456789"), waits, Write(name("stage", cta)),
                  Arrive(name("full", lead)))
        for sender in d.senders(cta):
            kind = f"bytes {sender == cta} {sender[0] == cta[0]} {cta[0] % 2 if d.pair else 0}"
            s.add(f"{name('bytes', cta)}from{sender[0]}{sender[1]}", kind,
                  After(name("producer", sender), 0), Write(name("stage", cta)),
                  Arrive(name("full", lead)))
    for lead in leads:
        own = [c for c in d.ctas if d.issuer(c) == lead]
        back = {z for c in own for z in d.ctas if c in d.senders(z) or z in d.senders(c)}
        if d.pair:  # and whoever sends to the other of the pair's rows
            back |= {z for z in d.ctas if z[1] == lead[1]}
        for r in d.readers():
            s.add(name(r, lead), r.rstrip("0123456789"),
                  Wait(name("full", lead), first(full), 1), *[Read(name("stage", c)) for c in own],
                  *[Arrive(name("empty", z)) for z in sorted(back)])
    return s


def accumulator_ring(d):
    """One accumulator, of an MMA's one or two CTAs."""
    full, empty = d.rows["acc_full"], d.rows["acc_empty"]
    s = System("accumulators")
    ctas = [(0, 0), (1, 0)] if d.pair else [(0, 0)]
    s.counts[name("acc_empty", (0, 0))] = empty["arrivals"]
    for cta in ctas:
        s.counts[name("acc_full", cta)] = full["arrivals"]
        for w in range(d.warps["epilogue"]):
            s.add(f"{name('epilogue', cta)}warp{w}", f"epilogue {cta}",
                  Wait(name("acc_full", cta), first(full), 1), Read(name("columns", cta)),
                  Arrive(name("acc_empty", (0, 0))))
    s.add("mma", "mma", Wait(name("acc_empty", (0, 0)), first(empty), 0),
          *[Write(name("columns", c)) for c in ctas],
          *[Arrive(name("acc_full", c)) for c in ctas])
    return s


def last_reads(d):
    """The end of tensor memory: all has been read before it is freed, by each CTA of an MMA."""
    s = System("end of tensor memory")
    readers = [f"epilogue{c}warp{w}" for c in range(2 if d.pair else 1)
               for w in range(d.warps["epilogue"])]
    row = d.rows.get("acc_read", d.rows["acc_empty"])
    s.counts["read"] = row["arrivals"]
    for r in readers:
        s.add(r, "epilogue", Read("columns"), Arrive("read"), Stop())
    # Without acc_read it is the wait for a further round of acc_empty.
    parity = first(row) if "acc_read" in d.rows else first(row) ^ 1
    done = [Arrive("done")] if d.pair else []
    s.add("mma", "mma", Wait("read", parity, 1), Write("columns", 1), *done, Stop())
    if d.pair:
        row = d.rows["tmem_done"]
        s.counts["done"] = row["arrivals"]
        s.add("mma of the odd CTA", "odd", Wait("done", first(row), 1), Write("columns", 1), Stop())
    return s


def tile_ring(d):
    """One answer, in all CTAs of a cluster."""
    full, empty = d.rows["tile_full"], d.rows["tile_empty"]
    s = System("answers")
    s.counts["tile_empty"] = empty["arrivals"]
    for cta in d.ctas:
        landed, answer, zero = name("tile_full", cta), name("answer", cta), cta == (0, 0)
        s.counts[landed] = full["arrivals"] + 1
        reads = [Wait(landed, first(full), 1), Read(answer), Arrive("tile_empty")]
        asks = [Wait("tile_empty", first(empty), 0)] if zero else []
        s.add(name("scheduler", cta), f"scheduler {zero}", *asks, Arrive(landed), *reads)
        s.add(name("bytes", cta), f"bytes {zero}", After(name("scheduler", (0, 0)), 1),
              Write(answer), Arrive(landed))
        for role, warps in d.warps.items():
            if role == "scheduler" or (role == "mma" and d.issuer(cta) != cta):
                continue
            for w in range(1 if role in SINGLE else warps):
                s.add(f"{name(role, cta)}warp{w}", f"reader {zero}", *reads)
    return s


def turn_ring(d):
    """Whose turn it is: the warps of two warpgroups, of which one is in the section."""
    row = d.rows["turn"]
    if row["copies"] != 2:
        raise Unknown(f"{row['copies']} turns")
    s = System("turns")
    s.counts = {"turn0": row["arrivals"], "turn1": row["arrivals"]}
    roles = [n for r, n in d.warps.items() if r.startswith("consumer")]
    for w in range(2):
        # The other must have left as often as this one has entered, and once more behind it.
        enter = Wait(f"turn{w}", first(row, w), w)
        # In the section warpgroup 0 writes what 1 reads, so that none may be there with the other.
        section = Write("section") if w == 0 else Read("section")
        for warp in range(roles[0] // (1 if len(roles) > 1 else 2)):
            s.add(f"warpgroup{w}warp{warp}", f"warpgroup {w}", enter, section,
                  Arrive(f"turn{1 - w}"))
    return s


def c_ring(d):
    """A buffer for C, which a warp fills for itself."""
    row = d.rows["c_full"]
    s = System("buffers of C")
    s.counts["c_full"] = row["arrivals"] + 1
    s.add("warp", "warp", Arrive("c_full"), Wait("c_full", first(row), 1), Read("buffer"))
    s.add("bytes", "bytes", After("warp", 0), Write("buffer"), Arrive("c_full"))
    return s


# The barriers of each system. `parts` is in none: docs/model.md says why.
SYSTEMS = [(("full", "empty"), stage_ring), (("turn",), turn_ring),
           (("acc_full", "acc_empty"), accumulator_ring), (("acc_empty",), last_reads),
           (("tile_full", "tile_empty"), tile_ring), (("c_full",), c_ring)]
COVERED = {"full", "empty", "turn", "acc_full", "acc_empty", "acc_read", "tmem_done", "tile_full",
           "tile_empty", "c_full"}
LEFT_OUT = {"parts"}


def systems(d):
    """All of a plan, by what each is."""
    unknown = set(d.rows) - COVERED - LEFT_OUT
    if unknown:
        raise Unknown(f"barriers {', '.join(sorted(unknown))}")
    return [make(d) for needed, make in SYSTEMS if set(needed) <= set(d.rows)]


def held(d):
    """K_tiles for which a reader waits before it gives one back: the wgmmas of one are in flight
    while the next are issued."""
    return 1 if d.family == "hopper_gemm" else 0


def order(d, least=None):
    """Who waits for whom in all of a plan, with names for its depths. `least` stages, by default
    one more than a reader holds."""
    o = orders.Order(held(d))
    o.given.append(orders.S >= (least or 1 + o.held))
    o.ring()
    if "turn" in d.rows:
        o.turns()
    if "tile_full" in d.rows:
        o.answers()
    if "acc_full" in d.rows:
        o.accumulators()
    return o
