#!/usr/bin/env python3
"""The plug-ins of vLLM and SGLang, held to what those engines ask of one, without the engines.

    engines_test.py   with stub modules (vllm_stub.py, sglang_stub.py), for each version; with
                      PyTorch where it is installed, else on a stub of it; then real_vllm_test.py
                      and real_sglang_test.py, where those engines are installed

Layers of every format that is served are made with random weights, as the engine's loader leaves
them, go through the engine's doors to the machine model, and are compared with float64.
"""
import gc
import importlib
import logging
import os
import pathlib
import pickle
import subprocess
import sys
import types
import unittest
import weakref

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "integrations" / "vllm"),
                str(ROOT / "integrations" / "sglang")]
try:
    import ml_dtypes  # noqa: F401
    import numpy as np
    import warpwright as wp
except ImportError as missing:
    print(f"did not run: engines_test.py: {missing}")
    sys.exit(77)
try:
    import torch
except ImportError:
    print("did not run: with PyTorch's own tensors: no torch here, so a stub of it")
    import torch_stub
    torch = torch_stub.install()

import sglang_stub  # noqa: E402
import vllm_stub  # noqa: E402
from layers import Draw, bf16, reference, to_numpy, to_torch  # noqa: E402

EXPERTS, INNER, HIDDEN, TOKENS, TOP = 4, 128, 128, 5, 2
# The format, vLLM's method, how w13 and w2 are drawn, what the method knows, and how far off
# float64 with tokens as they are: e4m3 ones are 4 % off, those of 16 bits only rounded.
FORMATS = {
    "bf16": ("UnquantizedFusedMoEMethod", ("dense16",), {}, 0.01),
    "fp8 in blocks": ("Fp8MoEMethod", ("fp8_blocks",),
                      {"weight_block_size": [128, 128], "weight_scale_name": "weight_scale_inv"},
                      0.06),
    "fp8 in blocks of 64": ("Fp8MoEMethod", ("fp8_blocks", "weight_scale_inv", 64),
                            {"weight_block_size": [64, 64],
                             "weight_scale_name": "weight_scale_inv"}, 0.06),
    "fp8 by rows": ("CompressedTensorsW8A8Fp8MoEMethod", ("fp8_rows",),
                    {"weight_block_size": None}, 0.06),
    "fp8 by tensors": ("Fp8MoEMethod", ("fp8_tensors", 2), {"weight_block_size": None}, 0.06),
    "mxfp4": ("Mxfp4MoEMethod", ("mxfp4",), {}, 0.01),
    "mxfp4 of compressed-tensors": ("CompressedTensorsW4A4Mxfp4MoEMethod",
                                    ("mxfp4", "weight_packed"), {}, 0.01),
    "nvfp4 of ModelOpt": ("ModelOptNvFp4FusedMoE", ("nvfp4", 2), {}, 0.01),
    "nvfp4 of compressed-tensors": ("CompressedTensorsW4A4Nvfp4MoEMethod", ("nvfp4", 2, True), {},
                                    0.01),
    "int4 of compressed-tensors": ("CompressedTensorsWNA16MarlinMoEMethod", ("int4_compressed",),
                                   {"num_bits": 4, "symmetric": True, "actorder": None}, 0.01),
    "int4 of GPTQ": ("AutoGPTQMoEMethod", ("int4_gptq",),
                     {"quant_config": types.SimpleNamespace(
                         quant_type=types.SimpleNamespace(size_bits=4), desc_act=False)}, 0.01),
    "int4 of AWQ": ("AutoAWQMoEMethod", ("int4_awq",),
                    {"quant_config": types.SimpleNamespace(weight_bits=4)}, 0.01),
}


class Log(logging.Handler):
    """What the plug-in says in the engine's log."""

    def __init__(self, name):
        super().__init__()
        self.lines = []
        logger = logging.getLogger(name)
        logger.handlers = [self]
        logger.setLevel(logging.INFO)
        logger.propagate = False

    def emit(self, record):
        self.lines.append(record.getMessage())


def routed(draw, tokens=TOKENS, top=TOP):
    """ids with two slots of padding, and router weights."""
    ids = np.argsort(draw.random.random((tokens, EXPERTS)), 1)[:, :top].astype(np.int32)
    if tokens > 2 and top > 1:
        ids[0, 1] = ids[2, 0] = -1
    return ids, draw.random.random((tokens, top)).astype(np.float32)


def parallel(**others):
    return types.SimpleNamespace(**{"use_all2all_kernels": False, "enable_eplb": False,
                                    "use_ag_rs_all2all_kernels": False, **others})


def moe_config(activation, top=TOP, **others):
    return types.SimpleNamespace(**{
        "num_experts": EXPERTS, "experts_per_token": top, "activation": activation,
        "in_dtype": torch.bfloat16, "is_lora_enabled": False,
        "is_act_and_mul": activation.is_gated, "moe_parallel_config": parallel(), **others})


def layer_of(w13, w2, moe, **others):
    """A layer with the parameters of both weights, as vLLM's RoutedExperts has them."""
    layer = torch.nn.Module()
    layer.shuffled = False
    layer.moe_config, layer.activation = moe, moe.activation
    layer.global_num_experts, layer.expert_map = EXPERTS, None
    layer.apply_router_weight_on_input = False
    layer._expert_routing_tables = lambda: None
    for weight, parameters in (("w13", w13), ("w2", w2)):
        for name, array in parameters.items():
            layer.register_parameter(f"{weight}_{name}", torch.nn.Parameter(
                to_torch(array), requires_grad=False))
    for name, value in others.items():
        setattr(layer, name, value)
    return layer


class VllmCase(unittest.TestCase):
    version = None

    @classmethod
    def setUpClass(cls):
        if cls.version is None:
            raise unittest.SkipTest("one of the versions below")
        os.environ["WARPWRIGHT_VLLM"] = "experts,linear,model"
        cls.methods = vllm_stub.install(cls.version)
        cls.log = Log("vllm.warpwright")
        import warpwright_vllm
        cls.plugin = warpwright_vllm
        warpwright_vllm.register()

    def setUp(self):
        self.clear()
        self.draw = Draw(54)

    def clear(self):
        from warpwright_vllm import engine
        engine.lines.said.clear()
        self.log.lines.clear()

    def made(self, kind, how, known, activation="SILU", moe=None, layer=None):
        """(method, layer, float64 weights) of a format, behind vLLM's loading."""
        from warpwright_vllm import methods
        draw, *rest = how
        values = []
        wide = 2 * INNER if vllm_stub.Activation[activation].is_gated else INNER
        for n, k in ((wide, HIDDEN), (HIDDEN, INNER)):
            # Gates and ups have factors of their own only in w13.
            args = [1 if arg == 2 and n == HIDDEN and k == INNER and values else arg
                    for arg in rest]
            values.append(getattr(self.draw, draw)(EXPERTS, n, k, *args))
        config = moe_config(vllm_stub.Activation[activation], **(moe or {}))
        layer = layer_of(values[0][0], values[1][0], config, **(layer or {}))
        method = methods.served(self.methods[kind](config))
        self.assertEqual(type(method).__name__, kind)  # vLLM tells methods by their names
        for name, value in known.items():
            setattr(method, name, value)
        method.loaded = [f"{weight}_{name}" for weight, (parameters, _)
                         in zip(("w13", "w2"), values) for name in parameters]
        self.given = [weakref.ref(getattr(layer, name)) for name in method.loaded]
        method.process_weights_after_loading(layer)
        return method, layer, values[0][1], values[1][1]

    def run_layer(self, method, layer, x, ids, weights):
        return method.apply(layer, to_torch(x), to_torch(weights), to_torch(ids), None, None)

    def compare(self, got, want, most):
        self.assertNotIsInstance(got, str, self.log.lines)
        got = to_numpy(got)
        self.assertEqual(got.shape, want.shape)
        off = np.linalg.norm(got - want) / np.linalg.norm(want)
        self.assertLess(off, most)
        return got

    def test_every_format(self):
        for name in FORMATS if self.version == "0.24" else ("bf16", "fp8 by rows", "mxfp4"):
            kind, how, known, most = FORMATS[name]
            with self.subTest(name):
                self.clear()
                method, layer, w13, w2 = self.made(kind, how, known)
                x = bf16(self.draw.random.standard_normal((TOKENS, HIDDEN)))
                ids, weights = routed(self.draw)
                want = reference(x.astype(np.float64), ids, weights, w13, w2)
                self.compare(self.run_layer(method, layer, x, ids, weights), want, most)
                self.assertEqual(len(self.log.lines), 1, self.log.lines)
                self.assertRegex(self.log.lines[0], r"^Warpwright \S+ serves 4 experts of 128 x "
                                 r"128, .*, silu, top-2$")
                self.assertFalse(layer.shuffled)
                self.assertIs(method.get_fused_moe_quant_config(layer), method.moe_quant_config)
                if "e4m3" not in self.log.lines[0] and "bfloat16" not in self.log.lines[0]:
                    left = [n for n in vars(layer) if n.startswith(("w13_", "w2_"))]
                    left += list(getattr(layer, "_parameters", ()))
                    self.assertEqual(sorted(set(left)), ["w13_weight", "w2_weight"])
                    gc.collect()  # or a layer takes twice its memory
                    self.assertEqual([each() for each in self.given if each() is not None], [])

    def test_gpt_oss(self):
        """Rows of gates and ups in turns, biases, limits; packed rows are put into halves."""
        for kind, how in (("UnquantizedFusedMoEMethod", ("dense16",)),
                          ("GptOssMxfp4MoEMethod", ("mxfp4",))):
            biases = [bf16(self.draw.random.standard_normal((EXPERTS, n)))
                      for n in (2 * INNER, HIDDEN)]
            method, layer, w13, w2 = self.made(
                kind, how, {}, "SWIGLUOAI",
                layer={"w13_bias": to_torch(biases[0]), "w2_bias": to_torch(biases[1])})
            x = bf16(4 * self.draw.random.standard_normal((TOKENS, HIDDEN)))
            ids, weights = routed(self.draw)
            want = reference(x.astype(np.float64), ids, weights, w13, w2, "swigluoai",
                             *(b.astype(np.float64) for b in biases))
            self.compare(self.run_layer(method, layer, x, ids, weights), want, 0.01)

    def test_a_gate_with_numbers(self):
        method, layer, w13, w2 = self.made(
            "UnquantizedFusedMoEMethod", ("dense16",), {}, "SWIGLUOAI_UNINTERLEAVE",
            layer={"swiglu_limit": 7.0, "swiglu_alpha": 1.702, "swiglu_beta": 1.0})
        x = bf16(8 * self.draw.random.standard_normal((TOKENS, HIDDEN)))
        ids, weights = routed(self.draw)
        want = reference(x.astype(np.float64), ids, weights, w13, w2, "swigluoai_uninterleave")
        self.compare(self.run_layer(method, layer, x, ids, weights), want, 0.01)

    def agrees(self, activation):
        """Layers of three formats with vLLM's activation agree with float64."""
        word = vllm_stub.Activation[activation].value
        for name in ("bf16", "fp8 in blocks", "mxfp4"):
            kind, how, known, most = FORMATS[name]
            method, layer, w13, w2 = self.made(kind, how, known, activation)
            x = bf16(self.draw.random.standard_normal((TOKENS, HIDDEN)))
            ids, weights = routed(self.draw)
            want = reference(x.astype(np.float64), ids, weights, w13, w2, word)
            self.compare(self.run_layer(method, layer, x, ids, weights), want, most)

    def test_gelu(self):
        """By the error function, as vLLM's word without "tanh" means it."""
        self.agrees("GELU")

    def test_without_a_gate(self):
        """Nemotron's experts: w13 is experts x inner x hidden."""
        self.agrees("RELU2_NO_MUL")

    def test_ranks(self):
        """expert_map: two ranks' shares add up to the whole."""
        x = bf16(self.draw.random.standard_normal((TOKENS, HIDDEN)))
        ids, weights = routed(self.draw)
        ids[1, 0] = 9  # no expert's
        total, seed = 0, self.draw
        for mine in ([2, 0], [1, 3]):
            self.draw = Draw(7)
            method, layer, w13, w2 = self.made(*FORMATS["bf16"][:3])
            self.assertEqual(len(w13), EXPERTS)
            expert_map = np.full(EXPERTS, -1, np.int32)
            expert_map[mine] = range(2)
            for name in ("w13_weight", "w2_weight"):
                setattr(layer, name, torch.nn.Parameter(
                    to_torch(bf16(to_numpy(getattr(layer, name))[mine])), requires_grad=False))
            layer.expert_map = to_torch(expert_map)
            method.process_weights_after_loading(layer)
            total = total + to_numpy(self.run_layer(method, layer, x, ids, weights))
        want = reference(x.astype(np.float64), ids, weights, w13, w2)
        self.assertLess(np.linalg.norm(total - want) / np.linalg.norm(want), 0.015)
        self.draw = seed

    def test_tokens(self):
        """No token; one; router weights that are on the input already."""
        method, layer, w13, w2 = self.made(*FORMATS["bf16"][:3], moe={"experts_per_token": 1})
        for tokens in (0, 1):
            x = bf16(self.draw.random.standard_normal((tokens, HIDDEN)))
            ids, weights = routed(self.draw, tokens, 1)
            got = to_numpy(self.run_layer(method, layer, x, ids, weights))
            self.assertEqual(got.shape, (tokens, HIDDEN))
        layer.apply_router_weight_on_input = True
        x = bf16(self.draw.random.standard_normal((TOKENS, HIDDEN)))
        ids, weights = routed(self.draw, TOKENS, 1)
        scaled = bf16(x.astype(np.float32) * weights).astype(np.float64)
        want = reference(scaled, ids, np.ones_like(weights), w13, w2)
        self.compare(self.run_layer(method, layer, x, ids, weights), want, 0.01)

    def test_what_falls_back(self):
        """The library's sentence in vLLM's log, once, and vLLM's own kernel."""
        fp8 = FORMATS["fp8 in blocks"]
        cases = {
            "activation is gelu_no_mul, by the error function": (*FORMATS["bf16"][:3],
                                                                 {"activation": "GELU_NO_MUL"}),
            "relu2": (*FORMATS["bf16"][:3], {"activation": "RELU2"}),
            r"blocks are \[64, 128\]; the nearest legal is \[128, 128\]": (
                *fp8[:2], {**fp8[2], "weight_block_size": [64, 128]}, {}),
            "fixed by the checkpoint": (*fp8[:3], {"layer": {"w13_input_scale": torch.ones(4)}}),
            "act-order": (*FORMATS["int4 of GPTQ"][:2], {"quant_config": types.SimpleNamespace(
                quant_type=types.SimpleNamespace(size_bits=4), desc_act=True)}, {}),
            "have 8 bits": (*FORMATS["int4 of compressed-tensors"][:2],
                            {"num_bits": 8, "symmetric": True}, {}),
            "LoRA": (*FORMATS["bf16"][:3], {"moe": {"is_lora_enabled": True}}),
            "parallel config": (*FORMATS["bf16"][:3], {"moe": {
                "moe_parallel_config": parallel(use_all2all_kernels=True)}}),
            "EPLB": (*FORMATS["mxfp4"][:3], {"moe": {
                "moe_parallel_config": parallel(enable_eplb=True)}}),
            "tokens are float32": (*FORMATS["mxfp4"][:3], {"moe": {"in_dtype": torch.float32}}),
        }
        for words, (kind, how, known, more) in cases.items():
            with self.subTest(words):
                self.clear()
                for _ in range(2):  # two layers, one line
                    method, layer, *_ = self.made(kind, how, known, **more)
                self.assertTrue(layer.shuffled)
                self.assertEqual(len(self.log.lines), 1, self.log.lines)
                self.assertRegex(self.log.lines[0],
                                 rf"^Warpwright leaves experts \({kind}\) to vLLM: .*({words})")
                x, (ids, weights) = bf16(np.ones((TOKENS, HIDDEN))), routed(self.draw)
                self.assertEqual(self.run_layer(method, layer, x, ids, weights), vllm_stub.THEIRS)

    def test_the_registries(self):
        from vllm.model_executor.layers import quantization
        from warpwright_vllm import VARIABLE, experts, methods
        self.assertFalse(experts.WarpwrightExperts.__abstractmethods__)
        self.assertEqual(set(quantization.registered), set(methods.CONFIGS))
        made = vllm_stub.UnquantizedFusedMoEMethod(moe_config(vllm_stub.Activation.SILU))
        self.assertTrue(hasattr(made, "warpwright"))
        # A configuration goes to other processes.
        config = quantization.registered["fp8"](weight_block_size=[128, 128])
        layer = types.SimpleNamespace(moe_config=moe_config(vllm_stub.Activation.SILU))
        for each in (config, pickle.loads(pickle.dumps(config))):
            self.assertEqual(each.weight_block_size, [128, 128])
            self.assertTrue(hasattr(each.get_quant_method(layer, "x"), "warpwright"))
        self.clear()
        mixed = quantization.registered["modelopt_mixed"]()
        self.assertFalse(hasattr(mixed.get_quant_method(layer, "x"), "warpwright"))
        self.assertIn("leaves experts (ModelOptFp8MoEMethod) to vLLM: weights as this method has "
                      "them are not read", self.log.lines[0])
        # The variable is part of what compiled code is kept by.
        self.assertRegex(sys.modules["vllm.envs"].environment_variables[VARIABLE](), "experts")
        self.plugin.register()  # vLLM may call it again

    def test_off(self):
        """Nothing of vLLM is imported, and no failure leaves the plug-in."""
        modules = {name: module for name, module in sys.modules.items()
                   if name.split(".")[0] in ("vllm", "warpwright_vllm")}
        try:
            for said, words in (("", None), ("0", None), ("exprets", "it is 1, 0, or some of"),
                                ("1", "Warpwright is off for experts: ModuleNotFoundError")):
                for name in modules:
                    sys.modules.pop(name, None)
                os.environ["WARPWRIGHT_VLLM"] = said
                self.log.lines.clear()
                import warpwright_vllm
                warpwright_vllm.register()
                self.assertFalse([n for n in sys.modules if n == "vllm"])
                self.assertEqual(bool(self.log.lines), words is not None, self.log.lines)
                if words:
                    self.assertIn(words, self.log.lines[0])
                sys.modules.pop("warpwright_vllm")
        finally:
            sys.modules.update(modules)
            os.environ["WARPWRIGHT_VLLM"] = "experts,linear,model"

    # Dense layers.

    def linear(self, kind):
        from vllm.model_executor import kernels
        from vllm.platforms import PlatformEnum
        names = {"fp8_block": "_POSSIBLE_FP8_BLOCK_KERNELS", "fp8": "_POSSIBLE_FP8_KERNELS",
                 "mp": "_POSSIBLE_KERNELS", "nvfp4": "_POSSIBLE_NVFP4_KERNELS",
                 "mxfp4": "_POSSIBLE_MXFP4_KERNELS"}
        ours = getattr(kernels.linear, names[kind])[PlatformEnum.CUDA][0]
        self.assertEqual(ours.__module__, "warpwright_vllm.linear")
        self.assertFalse(ours.__abstractmethods__)
        return ours

    def scaled_config(self, n, k, static=False, block=(128, 128)):
        scale = types.SimpleNamespace(static=static, group_shape=block)
        return types.SimpleNamespace(
            weight_shape=(n, k), out_dtype=torch.bfloat16, input_dtype=torch.bfloat16,
            weight_quant_key=types.SimpleNamespace(scale=scale),
            activation_quant_key=types.SimpleNamespace(scale=scale))

    def dense(self, kind, config, parameters, weights, most, names=(), tags=()):
        ours = self.linear(kind)
        served, why_not = ours.can_implement(config)
        self.assertTrue(served, why_not)
        kernel = ours(config, *names)
        layer = torch.nn.Module()
        for name, array in parameters.items():
            parameter = torch.nn.Parameter(to_torch(array), requires_grad=False)
            if name == "weight" and kind == "fp8" and self.version == "0.24":
                parameter = parameter.t()
            layer.__dict__[name] = parameter
            for tag, value in tags:
                setattr(parameter, tag, value)
        kernel.process_weights_after_loading(layer)
        self.assertRegex(self.log.lines[-1], "serves dense layers, ")
        x = bf16(self.draw.random.standard_normal((2, 3, weights.shape[1])))
        bias = bf16(self.draw.random.standard_normal(weights.shape[0]))
        got = kernel.apply_weights(layer, to_torch(x), to_torch(bias))
        want = x.astype(np.float64) @ weights.T + bias.astype(np.float64)
        self.compare(got, want, most)

    def test_dense(self):
        n, k = 256, 128
        one = {name: lambda *a, d=name: tuple(
            {key: v[0] for key, v in part.items()} if isinstance(part, dict) else part[0]
            for part in getattr(self.draw, d)(1, n, k, *a))
            for name in ("fp8_blocks", "fp8_rows", "mxfp4", "int4_gptq", "nvfp4")}
        self.dense("fp8_block", self.scaled_config(n, k), *one["fp8_blocks"](), 0.06)
        self.dense("fp8_block", self.scaled_config(n, k, block=(32, 32)),
                   *one["fp8_blocks"]("weight_scale_inv", 32), 0.06)
        parameters, weights = one["fp8_rows"]()
        self.dense("fp8", self.scaled_config(n, k), parameters, weights, 0.06,
                   [["weight", "weight_scale", "input_scale", "input_scale_ub"]])
        parameters, weights = one["nvfp4"]()
        parameters["weight_global_scale"] = np.float32([parameters.pop("weight_scale_2")])
        self.dense("nvfp4", types.SimpleNamespace(), parameters, weights, 0.01)
        self.dense("mxfp4", types.SimpleNamespace(), *one["mxfp4"](), 0.01)
        mixed = {"full_weight_shape": (k, n), "partition_weight_shape": (k, n), "group_size": 32,
                 "weight_type": types.SimpleNamespace(size_bits=4), "act_type": torch.bfloat16,
                 "zero_points": False}
        if self.version == "0.24":
            mixed["has_g_idx"] = False
        parameters, weights = one["int4_gptq"]()
        for k_first in (True, False):
            given = parameters if k_first else {name: np.ascontiguousarray(v.T)
                                                for name, v in parameters.items()}
            self.dense("mp", types.SimpleNamespace(**mixed), given, weights, 0.01,
                       ["qweight", "scales"], [("output_dim", int(k_first))])

    def test_dense_that_fall_back(self):
        self.assertEqual(self.linear("fp8_block").can_implement(
            self.scaled_config(256, 128, block=(64, 128)))[0], False)
        self.assertIn("blocks are [64, 128]", self.log.lines[-1])
        self.assertFalse(self.linear("fp8").can_implement(
            self.scaled_config(256, 128, static=True))[0])
        self.assertIn("fixed by the checkpoint", self.log.lines[-1])
        # Where the refusal comes with the weights, vLLM's next kernel takes the layer.
        kernel = self.linear("nvfp4")(types.SimpleNamespace())
        layer = torch.nn.Module()
        layer.weight = to_torch(np.zeros((4, 12), np.uint8))  # 24 along K
        layer.weight_scale = to_torch(np.zeros((4, 1), np.float32))
        layer.weight_global_scale = torch.ones(1)
        kernel.process_weights_after_loading(layer)
        self.assertIn("Warpwright leaves dense layers (nvf4) to vLLM: ", self.log.lines[-1])
        self.assertEqual(kernel.apply_weights(layer, None), vllm_stub.THEIRS)


class Vllm024(VllmCase):
    version = "0.24"


class Vllm033(VllmCase):
    version = "0.33"


class Sglang(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["WARPWRIGHT_SGLANG"] = "model"
        cls.runner = sglang_stub.install()
        cls.log = Log("sglang.warpwright")
        import warpwright_sglang
        warpwright_sglang.register()
        assert not cls.log.lines, cls.log.lines

    def setUp(self):
        from warpwright_sglang import runner
        runner.lines.said.clear()
        self.log.lines.clear()
        self.draw = Draw(23)

    def run_layer(self, config, info, x, ids, weights, backend="triton", scale=None, lora=False):
        made = self.runner(sglang_stub.Backend(backend), config, lora)
        routing = sglang_stub.Routing(to_torch(weights), to_torch(ids), None)
        return made.run(sglang_stub.Dispatched(to_torch(x.copy()), scale, routing), info)

    def drawn(self, how="dense16", **more):
        """quant_info and float64 weights of a format."""
        (p13, w13), (p2, w2) = (getattr(self.draw, how)(EXPERTS, n, k)
                                for n, k in ((2 * INNER, HIDDEN), (HIDDEN, INNER)))
        scales = [next((to_torch(v) for n, v in p.items() if "scale" in n), None)
                  for p in (p13, p2)]
        info = sglang_stub.quant_info(
            to_torch(p13["weight"]), to_torch(p2["weight"]), w13_scale=scales[0],
            w2_scale=scales[1], use_fp8_w8a8=how.startswith("fp8"),
            per_channel_quant=how == "fp8_rows",
            block_shape=[128, 128] if how == "fp8_blocks" else None, **more)
        return info, w13, w2

    def close(self, got, want, most):
        self.assertNotIsInstance(got, str, self.log.lines)
        off = np.linalg.norm(to_numpy(got.hidden_states) - want) / np.linalg.norm(want)
        self.assertLess(off, most)

    def test_formats_and_names(self):
        """By the hook around Triton's runner, and by the core's own name: the same bits."""
        for how, most in (("dense16", 0.01), ("fp8_blocks", 0.06), ("fp8_rows", 0.06),
                          ("fp8_tensors", 0.06)):
            info, w13, w2 = self.drawn(how)
            x = bf16(self.draw.random.standard_normal((TOKENS, HIDDEN)))
            ids, weights = routed(self.draw)
            want = reference(x.astype(np.float64), ids, weights, w13, w2)
            made = [self.run_layer(sglang_stub.config(), info, x, ids, weights, name)
                    for name in ("triton", "warpwright")]
            self.close(made[0], want, most)
            self.assertTrue((to_numpy(made[0].hidden_states)
                             == to_numpy(made[1].hidden_states)).all())
            self.assertRegex(self.log.lines[-1], "serves 4 experts of 128 x 128, ")
        self.assertEqual(len(self.log.lines), 3)  # one for each kind

    def test_fields(self):
        """What a runner core must honour."""
        info, w13, w2 = self.drawn()
        x = bf16(6 * self.draw.random.standard_normal((TOKENS, HIDDEN)))
        ids, weights = routed(self.draw)
        x64 = x.astype(np.float64)
        self.close(self.run_layer(sglang_stub.config(routed_scaling_factor=2.5), info, x, ids,
                                  weights), reference(x64, ids, 2.5 * weights, w13, w2), 0.01)
        numbers = {"gemm1_alpha": 1.702, "gemm1_clamp_limit": 7.0}
        for in_turns, kind in ((True, "swigluoai"), (False, "swigluoai_uninterleave")):
            self.close(self.run_layer(
                sglang_stub.config(gate_up_interleaved=in_turns, **numbers), info, x, ids, weights),
                reference(x64, ids, weights, w13, w2, kind), 0.01)
        self.close(self.run_layer(sglang_stub.config(activation="gelu"), info, x, ids, weights),
                   reference(x64, ids, weights, w13, w2, "gelu"), 0.01)
        got = self.run_layer(sglang_stub.config(swiglu_limit=1.0), info, x, ids, weights)
        self.assertGreater(np.abs(to_numpy(got.hidden_states)
                                  - reference(x64, ids, weights, w13, w2)).max(), 0.5)
        ids, weights = routed(self.draw, TOKENS, 1)
        scaled = bf16(x.astype(np.float32) * weights).astype(np.float64)
        self.close(self.run_layer(sglang_stub.config(apply_router_weight_on_input=True), info, x,
                                  ids, weights),
                   reference(scaled, ids, np.ones_like(weights), w13, w2), 0.01)
        for inplace in (True, False):
            mine, theirs = to_torch(x.copy()), to_torch(weights)
            made = self.runner(sglang_stub.Backend("triton"), sglang_stub.config(inplace=inplace))
            got = made.run(sglang_stub.Dispatched(
                mine, None, sglang_stub.Routing(theirs, to_torch(ids), None)), info)
            self.assertEqual(got.hidden_states is mine, inplace)

    def test_what_falls_back(self):
        info, *_ = self.drawn()
        x = bf16(np.ones((TOKENS, HIDDEN)))
        ids, weights = routed(self.draw)
        for words, fields, given in (
                ("no_combine is set", {"no_combine": True}, info),
                ("one expert: the nearest legal is",
                 {"apply_router_weight_on_input": True}, info),
                ("gemm1_clamp_limit is given without gemm1_alpha", {"gemm1_clamp_limit": 7.0},
                 info),
                ("activation is gelu_no_mul, by the error function",
                 {"activation": "gelu", "is_gated": False}, info),
                ("relu2", {"activation": "relu2"}, info),
                ("use_int4_w4a16 is set", {}, self.drawn(use_int4_w4a16=True)[0]),
                ("a13_scale is given", {}, self.drawn("fp8_rows", a13_scale=torch.ones(1))[0]),
                ("the tokens come quantised", {}, info)):
            with self.subTest(words):
                self.log.lines.clear()
                scale = torch.ones(1) if "quantised" in words else None
                got = self.run_layer(sglang_stub.config(**fields), given, x, ids, weights,
                                     scale=scale)
                self.assertEqual(got, sglang_stub.THEIRS)
                self.assertEqual(len(self.log.lines), 1)
                self.assertRegex(self.log.lines[0],
                                 "^Warpwright leaves experts to SGLang: .*" + words)
                with self.assertRaisesRegex(wp.Refusal, words):
                    self.run_layer(sglang_stub.config(**fields), given, x, ids, weights,
                                   "warpwright", scale=scale)
        self.assertEqual(self.run_layer(sglang_stub.config(), info, x, ids, weights, lora=True),
                         sglang_stub.THEIRS)

    def test_off(self):
        import warpwright_sglang
        for said in ("", "0", "no"):
            os.environ["WARPWRIGHT_SGLANG"] = said
            self.assertEqual(warpwright_sglang.switch(), "")
            warpwright_sglang.register()  # a second time it would refuse the name
        self.assertIn("it is 1 or 0", self.log.lines[0])
        os.environ["WARPWRIGHT_SGLANG"] = "1"
        warpwright_sglang.register()
        self.assertIn("Warpwright is off: ValueError", self.log.lines[-1])
        os.environ["WARPWRIGHT_SGLANG"] = "model"


class Packages(unittest.TestCase):
    def test_entry_points(self):
        """Each package's entry point is the function that its engine calls."""
        for engine, group in (("vllm", "vllm.general_plugins"), ("sglang", "sglang.srt.plugins")):
            text = (ROOT / "integrations" / engine / "pyproject.toml").read_text()
            section = text.split(f'[project.entry-points."{group}"]\n')[1]
            module, function = section.split('warpwright = "')[1].split('"')[0].split(":")
            self.assertTrue(callable(getattr(importlib.import_module(module), function)))


if __name__ == "__main__":
    done = unittest.main(verbosity=1, exit=False).result.wasSuccessful()
    if done and len(sys.argv) == 1:
        for real in ("real_vllm_test.py", "real_sglang_test.py"):
            done &= subprocess.run([sys.executable, HERE / real], check=False).returncode in (0, 77)
    sys.exit(not done)
