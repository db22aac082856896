#!/usr/bin/env python3
"""Times PyTorch's grouped products on the shapes and lengths of `warpwright bench grouped`.

    warpwright bench grouped --json grouped.json
    script/bench_torch_grouped.py grouped.json [--json with_torch.json] [--rounds 21]

bf16 is torch._grouped_mm, e4m3 is torch._scaled_grouped_mm with row scales, the only ones that it
has here (its time stands beside ours of tensor, row and block scales alike). As in the bench,
launches go round sets of operands that together are more than twice the L2 cache, some 3 ms of them
in one CUDA graph, and the median of the rounds counts; products of more than 50 us that the tensor
cores bound rest between rounds. Results are compared with float32 first. The clock of the GPU may
differ between the two programs: run one right after the other, and compare no closer than 2%.

Exit status: 0; 1 when a row could not be timed; 2 where PyTorch, the GPU or the file is missing.
"""
import argparse
import json
import statistics
import sys
import time

ROUND_SECONDS = 3e-3
MAX_LAUNCHES = 4096


def import_torch():
    """The module, or a sentence on stderr and exit status 2."""
    try:
        import torch
    except ImportError as error:
        print(f"did not run: PyTorch is not here ({error})", file=sys.stderr)
        sys.exit(2)
    if not torch.cuda.is_available():
        print("did not run: PyTorch sees no CUDA device", file=sys.stderr)
        sys.exit(2)
    for name in ("_grouped_mm", "_scaled_grouped_mm"):
        if not hasattr(torch, name):
            print(f"did not run: PyTorch {torch.__version__} has no torch.{name}", file=sys.stderr)
            sys.exit(2)
    return torch


class Product:
    """One grouped product on several sets of operands."""

    def __init__(self, torch, narrow, lengths, n, k):
        self.torch = torch
        self.narrow = narrow
        self.lengths = lengths
        groups, total = len(lengths), sum(lengths)
        ends = [sum(lengths[:g + 1]) for g in range(groups)]
        self.offsets = torch.tensor(ends, dtype=torch.int32, device="cuda")
        width = 1 if narrow else 2
        busy = sum(1 for length in lengths if length)
        needed = (total * k + busy * n * k) * width + total * n * 2
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        free = torch.cuda.mem_get_info()[0]
        # Random numbers are made in float32 first.
        room = int(0.7 * free - 4 * (n + total) * k) // (needed + (groups - busy) * n * k * width)
        self.sets = [self.make(total, n, k, groups)
                     for _ in range(max(2, min(2 * l2_bytes // needed + 2, room)))]

    def make(self, total, n, k, groups):
        torch = self.torch
        kind = torch.float8_e4m3fn if self.narrow else torch.bfloat16
        x = torch.randn(total, k, device="cuda").to(kind)
        w = torch.empty(groups, n, k, device="cuda", dtype=kind)
        for g in range(groups):
            w[g] = torch.randn(n, k, device="cuda").to(kind)
        if not self.narrow:
            return x, w
        return (x, w, 0.5 + torch.rand(total, device="cuda"),
                0.5 + torch.rand(groups, n, device="cuda"))

    def launch(self, operands):
        torch = self.torch
        x, w = operands[0], operands[1].transpose(-2, -1)
        if not self.narrow:
            return torch._grouped_mm(x, w, offs=self.offsets)
        return torch._scaled_grouped_mm(x, w, operands[2], operands[3], offs=self.offsets,
                                        out_dtype=torch.bfloat16, use_fast_accum=True)

    def error(self):
        """The norm of the difference to a product in float32 over its norm, the worst group's."""
        x, w = self.sets[0][0], self.sets[0][1]
        y = self.launch(self.sets[0])
        worst, first = 0.0, 0
        for g, length in enumerate(self.lengths):
            if length:
                rows = slice(first, first + length)
                right = x[rows].float() @ w[g].float().t()
                if self.narrow:
                    right *= self.sets[0][2][rows, None] * self.sets[0][3][g][None, :]
                off = (y[rows].float() - right).norm() / right.norm()
                worst = max(worst, float(off))
            first += length
        return worst

    def times(self, rounds, rests):
        """Microseconds of a launch, one number a round."""
        torch = self.torch
        for operands in self.sets:
            self.launch(operands)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for operands in self.sets:
            self.launch(operands)
        end.record()
        torch.cuda.synchronize()
        each = max(begin.elapsed_time(end) * 1e-3 / len(self.sets), 1e-6)
        turns = -(-max(int(ROUND_SECONDS / each), len(self.sets)) // len(self.sets))
        launches = min(turns * len(self.sets), max(MAX_LAUNCHES, len(self.sets)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(launches):
                self.launch(self.sets[i % len(self.sets)])
        graph.replay()
        torch.cuda.synchronize()
        found = []
        for _ in range(rounds):
            start = time.monotonic()
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end) * 1e3 / launches)
            if rests and each > 50e-6:
                time.sleep(time.monotonic() - start)
        return found


def measure(torch, section, row, rounds):
    """Adds torch's numbers to a row, or why there are none."""
    narrow = section["dtype"].startswith("e4m3")
    row["torch_op"] = "torch._scaled_grouped_mm" if narrow else "torch._grouped_mm"
    try:
        product = Product(torch, narrow, row["lengths"], row["n"], row["k"])
        row["torch_error"] = product.error()
        if not row["torch_error"] < 2e-2:
            raise RuntimeError(f"the result differs from float32 by {row['torch_error']:.3g}")
        found = sorted(product.times(rounds, row.get("bound") == "tensor cores"))
        row["torch"] = {"median_us": statistics.median(found), "low_us": found[len(found) // 4],
                        "high_us": found[3 * len(found) // 4]}
    except RuntimeError as refusal:
        row["torch"] = None
        row["torch_refusal"] = str(refusal).split("\n")[0]
    torch.cuda.empty_cache()


def show(row):
    name = f"{row['groups']} x {row['tokens']} N{row['n']} K{row['k']}"
    if row["torch"] is None:
        print(f"{name:28} {row['torch_refusal']}", flush=True)
        return
    theirs = row["torch"]["median_us"]
    ratios = [theirs / row[key]["median_us"] if row.get(key) else float("nan")
              for key in ("ours", "config_time")]
    print(f"{name:28} {theirs:9.2f} us, ours are {ratios[0]:.3f} (plan) and {ratios[1]:.3f} "
          f"(fastest) as fast", flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("bench", help="the file of warpwright bench grouped --json")
    words.add_argument("--json", help="where that file is written with torch's numbers")
    words.add_argument("--rounds", type=int, default=21)
    options = words.parse_args()
    try:
        with open(options.bench, encoding="utf-8") as file:
            run = json.load(file)
    except (OSError, ValueError) as error:
        print(f"{options.bench} cannot be read: {error}", file=sys.stderr)
        return 2
    if not isinstance(run, dict) or run.get("format") != "warpwright-bench-grouped-1":
        print(f"{options.bench} is no file of warpwright bench grouped --json", file=sys.stderr)
        return 2
    torch = import_torch()
    torch.backends.cuda.matmul.allow_tf32 = False
    run["torch"] = torch.__version__
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    missing = 0
    for section in run["sections"]:
        print(f"\n{section['types']}")
        for row in section["rows"]:
            if not row.get("lengths"):
                continue
            measure(torch, section, row, options.rounds)
            show(row)
            missing += row["torch"] is None
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump(run, file, indent=1)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
