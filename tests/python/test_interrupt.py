"""Ctrl-C while the model runs: the call raises KeyboardInterrupt soon, and all works afterwards."""
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from test_check_ptx import MENDED

BEGIN = """
    import signal, sys, threading, time
    import ml_dtypes
    import numpy as np
    import warpwright as wp

    bf16 = ml_dtypes.bfloat16
    a, b = np.ones((4096, 4096), bf16), np.ones((4096, 4096), bf16)  # minutes on the model
    small = np.ones((20, 64), bf16), np.ones((48, 64), bf16)

    def is_usable(**how):
        return (wp.gemm(*small, **how) == 64).all()

    assert is_usable()
    print("ready", flush=True)
"""


def interrupted(body, after=0.4):
    """What a program prints that gets a SIGINT so long after it is ready; seconds until it ended
    since."""
    program = textwrap.dedent(BEGIN) + textwrap.dedent(body)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(after)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            said, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    return said.split(), time.monotonic() - start, errors


class Interrupts(unittest.TestCase):
    def test_a_product_ends(self):
        said, took, errors = interrupted("""
            result, out = "none", np.zeros((4096, 4096), bf16)
            start = time.monotonic()
            try:
                result = wp.gemm(a, b, out=out)
            except KeyboardInterrupt:
                print("interrupted", result, is_usable())
        """)
        self.assertEqual(said, ["interrupted", "none", "True"], errors)
        self.assertLess(took, 2)  # a quarter of a second, mostly

    def test_a_workspace_serves_again(self):
        said, _, errors = interrupted("""
            # Nine tiles on eight SMs: the ninth is shared along K, and its parts come first.
            a = a.reshape(2048, 8192)
            a, b = a[:64], a[:1152]
            fixed = {"kernel": "hopper_bf16_bf16_128x64_sw_sk", "cluster": (1, 1)}
            plan = wp.plan(a, b, **fixed)
            again = a[:, :2048], b[:, :2048]
            workspace = wp.Workspace(plan.workspace_bytes + (1 << 20), "model")
            try:
                wp.gemm(a, b, plan=plan, workspace=workspace)
                print("it ended before the signal came")
            except KeyboardInterrupt:
                for _ in range(2):
                    print((wp.gemm(*again, **fixed, workspace=workspace) == 2048).all())
        """)
        self.assertEqual(said, ["True", "True"], errors)

    def test_a_check_and_a_trace_end(self):
        for call in ("wp.check(a, b)", "wp.check(a[:256], b[:256], schedules=100000)",
                     "wp.trace(a, b)", f"wp.check_ptx({MENDED!r}, args=[np.zeros(64, np.int32)],"
                     "block=64, schedules=1000000)"):
            said, took, errors = interrupted(f"""
                try:
                    {call}
                except KeyboardInterrupt:
                    print("interrupted", is_usable())
            """)
            self.assertEqual(said, ["interrupted", "True"], errors)
            self.assertLess(took, 3)

    def test_a_handler_runs_and_the_product_goes_on(self):
        said, _, errors = interrupted("""
            workspace = wp.Workspace(1 << 20, "model")
            def handler(*_):
                # It may multiply, but not in the memory of the product that it interrupts.
                try:
                    is_usable(workspace=workspace)
                except wp.Refusal as refusal:
                    print(refusal.code, is_usable(), flush=True)
            signal.signal(signal.SIGINT, handler)
            d = wp.gemm(a[:1024, :1024], b[:1024, :1024], workspace=workspace)
            print((d == 1024).all())
        """, after=0.3)
        self.assertEqual(said, ["bad_workspace", "True", "True"], errors)

    def test_another_threads_product_goes_on(self):
        said, _, errors = interrupted("""
            found = []
            thread = threading.Thread(
                target=lambda: found.append((wp.gemm(a[:512, :512], b[:512, :512]) == 512).all()))
            try:
                thread.start()
                wp.gemm(a, b)
            except KeyboardInterrupt:
                thread.join()
                print("interrupted", *found)
        """)
        self.assertEqual(said, ["interrupted", "True"], errors)


if __name__ == "__main__":
    unittest.main(verbosity=2)
