#!/usr/bin/env python3
"""Signals at any time while results are written: the old file or the new one, never a part.

    interrupt_test.py WARPWRIGHT [ROUNDS] [SEED]

Each round starts `gemm --out` or `pack` over a file that is there, ends it with SIGINT, SIGTERM,
SIGHUP or SIGKILL after some time between its start and its end, and compares the file with what
either run leaves when nobody ends it. Drafts may be left only by SIGKILL.
"""
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)


def main():
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"{rounds} rounds, seed {seed}")
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def gemm(run_seed, out):
            return [program, "gemm", "--random", "200", "256", "64", "--seed", str(run_seed),
                    "--out", out]

        for run_seed in (1, 2):
            subprocess.run(gemm(run_seed, f"w{run_seed}.safetensors:w"), cwd=folder, check=True,
                           capture_output=True)
        commands = (lambda s: gemm(s, "d.safetensors:d"),
                    lambda s: [program, "pack", str(folder / f"w{s}.safetensors"),
                               "d.safetensors:d"])
        for command in commands:
            interrupt(command, folder, draw, (rounds + 1) // 2)


def interrupt(command, folder, draw, rounds):
    """`rounds` rounds of command(1), which leaves d.safetensors, and command(2) over it."""
    whole = {}
    longest = 0.0
    for run_seed in (1, 2):
        begun = time.monotonic()
        subprocess.run(command(run_seed), cwd=folder, check=True, capture_output=True)
        longest = max(longest, time.monotonic() - begun)
        whole[run_seed] = (folder / "d.safetensors").read_bytes()
        (folder / "d.safetensors").unlink()
    assert whole[1] != whole[2]
    seen = {1: 0, 2: 0}
    for _ in range(rounds):
        work = folder / "work"
        work.mkdir()
        (work / "d.safetensors").write_bytes(whole[1])
        process = subprocess.Popen(command(2), cwd=work, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(draw.uniform(0, 1.1 * longest))
        which = draw.choice(SIGNALS)
        process.send_signal(which)
        assert process.wait() in (0, -which), f"{which.name} ended it with {process.returncode}"
        left = (work / "d.safetensors").read_bytes()
        found = next((s for s, content in whole.items() if content == left), None)
        assert found, f"{which.name} left a part of a file: {len(left)} bytes"
        seen[found] += 1
        drafts = [p.name for p in work.iterdir() if p.name != "d.safetensors"]
        assert which == signal.SIGKILL or not [d for d in drafts if "lock" not in d], drafts
        shutil.rmtree(work)
    print(f"{command(2)[1]}: {seen[1]} times the old file, {seen[2]} times the new one")


if __name__ == "__main__":
    main()
