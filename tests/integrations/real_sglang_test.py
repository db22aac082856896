#!/usr/bin/env python3
"""The plug-in of SGLang inside of the SGLang that is installed, on the CPU: real_sglang_test.py

Its own MoeRunner, with its own configuration and what its dispatcher and its quantisation methods
hand on. No server runs, and no GPU is needed. Without SGLang or PyTorch nothing runs, with a line
that says so.
"""
import inspect
import os
import sys
import unittest

os.environ["WARPWRIGHT_SGLANG"] = "model"
try:
    import sglang
    import torch
    from sglang.srt.layers.moe.moe_runner import runner as sglang_runner
    from sglang.srt.layers.moe.moe_runner.base import DispatchMoeRunnerCore, MoeRunnerConfig
    from sglang.srt.layers.moe.moe_runner.triton import TritonMoeQuantInfo
    from sglang.srt.layers.moe.token_dispatcher.standard import StandardDispatchOutput
    from sglang.srt.layers.moe.topk import StandardTopKOutput
    from sglang.srt.layers.moe.utils import resolve_moe_runner_backend
    from sglang.srt.plugins.hook_registry import HookRegistry
except ImportError as missing:
    print(f"did not run: real_sglang_test.py: {missing}")
    sys.exit(77)
import warpwright_sglang
from engines_test import EXPERTS, HIDDEN, INNER, TOKENS, Log, routed
from layers import Draw, bf16, reference, to_numpy, to_torch


class RealSglang(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.log = Log("sglang.warpwright")
        warpwright_sglang.register()
        HookRegistry.apply_hooks()
        assert not cls.log.lines, cls.log.lines
        print(f"SGLang {sglang.__version__}, PyTorch {torch.__version__}")

    def test_abstract_methods_and_parameters(self):
        from warpwright_sglang.runner import WarpwrightRunnerCore
        self.assertFalse(WarpwrightRunnerCore.__abstractmethods__)
        got, want = (list(inspect.signature(kind.run_from_dispatch).parameters)
                     for kind in (WarpwrightRunnerCore, DispatchMoeRunnerCore))
        self.assertEqual(got, want)

    def test_runners(self):
        """By the hook where Triton's was chosen, and by the name that was registered."""
        draw = Draw(5)
        (p13, w13), (p2, w2) = (draw.fp8_blocks(EXPERTS, n, k)
                                for n, k in ((2 * INNER, HIDDEN), (HIDDEN, INNER)))
        for fp8 in (True, False):
            if not fp8:
                w13, w2 = (bf16(w).astype(float) for w in (w13, w2))
            info = TritonMoeQuantInfo(
                w13_weight=to_torch(p13["weight"] if fp8 else bf16(w13)),
                w2_weight=to_torch(p2["weight"] if fp8 else bf16(w2)), use_fp8_w8a8=fp8,
                w13_scale=to_torch(p13["weight_scale_inv"]) if fp8 else None,
                w2_scale=to_torch(p2["weight_scale_inv"]) if fp8 else None,
                block_shape=[128, 128] if fp8 else None)
            config = MoeRunnerConfig(num_experts=EXPERTS, num_local_experts=EXPERTS,
                                     hidden_size=HIDDEN, intermediate_size_per_partition=INNER,
                                     top_k=2, inplace=False, routed_scaling_factor=2.5)
            x = bf16(draw.random.standard_normal((TOKENS, HIDDEN)))
            ids, weights = routed(draw)
            given = StandardDispatchOutput(to_torch(x), None, StandardTopKOutput(
                to_torch(weights), to_torch(ids), None))
            want = reference(x.astype(float), ids, 2.5 * weights, w13, w2)
            for name in ("triton", "warpwright"):
                runner = sglang_runner.MoeRunner(resolve_moe_runner_backend(name), config)
                got = to_numpy(runner.run(given, info).hidden_states)
                self.assertLess(((got - want) ** 2).sum() ** 0.5 / (want ** 2).sum() ** 0.5,
                                0.06 if fp8 else 0.01)
            self.assertRegex(self.log.lines[-1], "serves 4 experts of 128 x 128")


if __name__ == "__main__":
    unittest.main(verbosity=1)
