#!/usr/bin/env python3
"""Rings of any depth: what kernels declare about their barriers is proved by induction, and what
is declared wrongly is refuted by a run that goes wrong.

    any_depth_test.py WARPWRIGHT BUILD

Declarations are read from `explain --json`. Z3 comes from PyPI into a virtual environment of
BUILD; without it this says so and exits with 77.
"""
import copy
import json
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Z3 = "z3-solver==5.4.1.0"

# A plan of each kind of ring: arguments behind `explain`.
PLANS = {
    "cooperative, in a cluster": "gemm --kernel hopper_bf16_bf16_128x256 --cluster 2,1",
    "ping-pong, drawn tiles":
        "gemm --kernel hopper_bf16_bf16_128x128_pp_dyn --cluster 2,1",
    "scales into the same stages": "gemm --scaling blockwise --dtype e4m3 --cluster 1,1",
    "tokens by index": "grouped --groups 4 --tokens 64 --rows-index random:64",
    "shares of K in a cluster": "gemm --kernel hopper_bf16_bf16_128x64_sw_ck --ctas 4",
    "weights of 4 bits": "gemm --weights int4 --dtype bf16",
    "tcgen05, CLC": "gemm --as b200 --kernel blackwell_f16_bf16_one_clc_sw128 --cluster 1,1",
    "pairs of SMs, CLC": "gemm --as b200 --kernel blackwell_f16_bf16_pair_clc --cluster 2,1",
    "accumulators that share columns":
        "gemm --as b200 --dtype mxf8 --kernel blackwell_mxf8f6f4_bf16_pair_clc",
    "mma.sync behind TMA": "gemm --as rtx5090 --kernel registers_bf16_bf16_128x128_tma",
}

# What the proof of `orders.places` is about, line by line: other text needs another proof.
PLACE = ["if (++stage == stages) {", "stage = 0;", "parity ^= 1;", "const int at = stage + count;",
         "parity ^= (at / stages) & 1;", "stage = at % stages;"]

# Declarations made wrong: plan, what is wrong, how (barrier, field, its new value), and the
# property that must fail in a run.
WRONG_ROWS = [
    ("pairs of SMs, CLC", "full", "arrivals", 1, "no deadlock"),
    ("cooperative, in a cluster", "empty", "arrivals", 1, "no deadlock"),
    ("mma.sync behind TMA", "empty", "arrivals", -1, "no overwrite"),
    ("mma.sync behind TMA", "empty", "first_wait_parity", 1, "no deadlock"),
    ("mma.sync behind TMA", "full", "first_wait_parity", 1, "no early read"),
    ("scales into the same stages", "full", "arrivals", 1, "no deadlock"),
    ("scales into the same stages", "full", "arrivals", -1, "no early read"),
    ("ping-pong, drawn tiles", "turn", "arrivals", 1, "no deadlock"),
    ("ping-pong, drawn tiles", "turn", "arrivals", -1, "no early read"),
    ("ping-pong, drawn tiles", "turn", "alternates", True, "no early read"),
    ("ping-pong, drawn tiles", "turn", "first_wait_parity", 1, "no early read"),
    ("ping-pong, drawn tiles", "tile_full", "arrivals", 1, "no deadlock"),
    ("ping-pong, drawn tiles", "tile_empty", "first_wait_parity", 1, "no deadlock"),
    ("tcgen05, CLC", "tile_empty", "arrivals", 1, "no deadlock"),
    ("tcgen05, CLC", "tile_empty", "arrivals", -1, "no overwrite"),
    ("tcgen05, CLC", "acc_full", "first_wait_parity", 1, "no early read"),
    ("tcgen05, CLC", "acc_full", "arrivals", 1, "no deadlock"),
    ("tcgen05, CLC", "acc_empty", "arrivals", -1, "no overwrite"),
    ("tcgen05, CLC", "acc_empty", "arrivals", 1, "no deadlock"),
    ("tcgen05, CLC", "acc_empty", "first_wait_parity", 1, "no deadlock"),
    ("accumulators that share columns", "acc_read", "first_wait_parity", 1, "no overwrite"),
    ("pairs of SMs, CLC", "tmem_done", "first_wait_parity", 1, "no overwrite"),
    ("tcgen05, CLC", "c_full", "first_wait_parity", 1, "no early read"),
    ("tcgen05, CLC", "c_full", "arrivals", 1, "no deadlock"),
]


def in_environment(build):
    """Runs this again where Z3 is; returns its exit status."""
    folder = pathlib.Path(build) / "python" / "venv-z3"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if subprocess.run([python, "-c", "import z3"], capture_output=True, check=False).returncode:
        got = subprocess.run([python, "-m", "pip", "install", "-q", Z3], capture_output=True,
                             text=True, check=False)
        if got.returncode != 0:
            why = (got.stderr.splitlines() or ["no word"])[-1]
            print(f"did not run: proofs for any depth: pip finds no {Z3} here ({why})")
            return 77
    return subprocess.run([python, __file__, *sys.argv[1:], "--here"], check=False).returncode


def explained(program, arguments):
    sizes = ["--n", "2048", "--k", "512"] + ([] if arguments.startswith("grouped") else
                                            ["--m", "2048"])
    words = arguments.split() + sizes + ([] if "--as" in arguments else ["--as", "h200"])
    ran = subprocess.run([program, "explain", *words, "--json"], capture_output=True, text=True,
                         check=False)
    if ran.returncode != 0:
        sys.exit(f"explain {arguments}: {ran.stderr.strip()}")
    return json.loads(ran.stdout)


class Test:
    """Counts what is as it must be, and says what is not."""

    def __init__(self, program):
        import declared  # noqa: PLC0415  (where Z3 is)
        import orders  # noqa: PLC0415
        import slots  # noqa: PLC0415
        self.declared, self.orders, self.slots = declared, orders, slots
        self.told = {name: explained(program, words) for name, words in PLANS.items()}
        self.failed = 0
        self.proved = {}

    def must(self, right, said):
        self.failed += not right
        print(f"{'ok      ' if right else 'FAILED  '}{said}", flush=True)

    def systems(self, told):
        return self.declared.systems(self.declared.Declared(told))

    def prove(self, name):
        """All rings of a plan, and its order."""
        d = self.declared.Declared(self.told[name])
        depths = [d.rows[b]["copies"] for b in ("full", "empty")]
        words = []
        for system in self.declared.systems(d):
            if system.shape() not in self.proved:
                start = time.process_time()
                wrong = self.slots.prove(system)
                self.proved[system.shape()] = (wrong, time.process_time() - start)
            wrong, seconds = self.proved[system.shape()]
            words.append(f"{system.name} of {len(system.agents)} ({seconds:.2f} s)")
            if wrong:
                self.must(False, f"{name}: {system.name}: {wrong}")
        wrong = self.declared.order(d).failed()
        least = 1 + self.declared.held(d)
        self.must(wrong is None, f"{name}, {d.kernel}: {', '.join(words)}; order: {wrong or 'yes'}")
        self.must(depths == [d.stages] * 2 and d.stages >= least,
                  f"{name}: barriers for each of {d.stages} stages, at least {least}")

    def refute(self, said, systems, wanted):
        """Some system is not proved, and a run shows how it goes wrong."""
        for system in systems:
            if self.slots.prove(system) is None:
                continue
            run = self.slots.refute(system)
            self.must(run is not None and run[0] == wanted,
                      f"{said}: {run[0] + ': ' + run[1] if run else 'no run goes wrong'}")
            return
        self.must(False, f"{said}: proved, although it is wrong")

    def refute_rows(self):
        for name, barrier, field, by, wanted in WRONG_ROWS:
            told = copy.deepcopy(self.told[name])
            row = next(r for r in told["barriers"] if r["barrier"] == barrier)
            row[field] = row[field] + by if field == "arrivals" else row[field] ^ by
            self.refute(f"{name}, {barrier}.{field} {row[field]}", self.systems(told), wanted)

    def refute_programs(self):
        """A reader that gives back before it reads, and one that does not wait."""
        for swap, wanted in ((True, "no overwrite"), (False, "no early read")):
            system = self.systems(self.told["mma.sync behind TMA"])[0]
            reader = next(a for a in system.agents.values() if a.kind == "warp")
            wait, read, arrive = reader.program
            reader.program[:] = [wait, arrive, read] if swap else [read, wait, arrive]
            system.agents[reader.name] = reader._replace(kind="wrong")
            self.refute("a release before the read" if swap else "a read before the wait",
                        [system], wanted)

    def refute_orders(self):
        o, d = self.orders, self.declared.Declared(self.told["cooperative, in a cluster"])
        window = o.window(1)
        self.must(window is not None, f"one barrier more than stages: {window}")
        shallow = self.declared.order(d, 1)
        for said, order in (("a ring of one stage, and a release behind the next wait", shallow),
                            ("a wait for what the role itself does later", o.Order())):
            if order is not shallow:
                order.edge("backwards", ("release", order.t, order.k), ("load", order.t, order.k))
            self.must(order.failed() is not None, f"{said}: {order.failed()}")
        later = o.tickets(waits_for_later=True)
        self.must(later is not None, f"an item that waits for a larger number: {later}")


def main():
    program, build = sys.argv[1:3]
    if "--here" not in sys.argv:
        return in_environment(build)
    sys.path.insert(0, str(HERE / "any_depth"))
    test = Test(program)
    for name in PLANS:
        test.prove(name)
    seen = {row["barrier"] for told in test.told.values() for row in told["barriers"]}
    missing = test.declared.COVERED - seen
    test.must(not missing, f"each kind of barrier is in some plan{': not ' if missing else ''}"
                           f"{', '.join(sorted(missing))}")
    text = (ROOT / "warpwright/pipeline/pipeline_state.h").read_text()
    body = re.sub(r"\s*//.*", "", text)
    test.must(all(line in body for line in PLACE), "PipelineState is what is proved of it")
    for said, wrong in (("stage and parity of a place", test.orders.places()),
                        ("a window of as many stages as barriers", test.orders.window()),
                        ("tickets wait for smaller numbers", test.orders.tickets())):
        test.must(wrong is None, f"{said}{': ' + str(wrong) if wrong else ''}")
    test.refute_rows()
    test.refute_programs()
    test.refute_orders()
    print(f"{len(test.proved)} different rings for any depth, {test.failed} lines failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
