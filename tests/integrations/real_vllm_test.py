#!/usr/bin/env python3
"""The plug-in of vLLM inside of the vLLM that is installed, on the CPU: real_vllm_test.py

Its own methods make the parameters, whose shapes and types are held to those that our readers
expect; its own kernel class calls ours; what ours overrides has the parameters that it had. No
server runs, and no GPU is needed. Without vLLM or PyTorch nothing runs, with a line that says so.
"""
import importlib
import inspect
import logging
import os
import sys
import types
import unittest
import unittest.mock
from collections import Counter

os.environ["WARPWRIGHT_VLLM"] = "experts,linear,model"
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
try:
    import torch
    import vllm
    import vllm.model_executor.layers.fused_moe.modular_kernel as mk
    import warpwright_vllm
except ImportError as missing:
    print(f"did not run: real_vllm_test.py: {missing}")
    sys.exit(77)
from engines_test import (EXPERTS, FORMATS, HIDDEN, INNER, TOKENS, TOP, Log, layer_of, parallel,
                          routed)
from layers import Draw, bf16, reference, to_numpy, to_torch
from vllm.distributed import parallel_state
from vllm.model_executor import custom_op
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig, FusedMoEParallelConfig
from vllm.model_executor.layers.quantization.utils import quant_utils
from vllm.v1.worker.workspace import init_workspace_manager

LAYERS = "vllm.model_executor.layers."
QUANTISATION = LAYERS + "quantization."
COMPRESSED = QUANTISATION + "compressed_tensors.compressed_tensors_moe."
MODULES = {"UnquantizedFusedMoEMethod": LAYERS + "fused_moe.unquantized_fused_moe_method",
           "Fp8MoEMethod": QUANTISATION + "fp8", "Mxfp4MoEMethod": QUANTISATION + "mxfp4",
           "ModelOptNvFp4FusedMoE": QUANTISATION + "modelopt",
           "AutoGPTQMoEMethod": QUANTISATION + "auto_gptq",
           "AutoAWQMoEMethod": QUANTISATION + "auto_awq",
           "CompressedTensorsW8A8Fp8MoEMethod": COMPRESSED + "compressed_tensors_moe_w8a8_fp8",
           "CompressedTensorsW4A4Mxfp4MoEMethod": COMPRESSED + "compressed_tensors_moe_w4a4_mxfp4",
           "CompressedTensorsW4A4Nvfp4MoEMethod": COMPRESSED + "compressed_tensors_moe_w4a4_nvfp4",
           "CompressedTensorsWNA16MarlinMoEMethod":
               COMPRESSED + "compressed_tensors_moe_wna16_marlin",
           "CompressedTensorsWNA16MoEMethod": COMPRESSED + "compressed_tensors_moe_wna16"}
# What a method's own choice of a kernel would have set, which asks for a GPU.
STATE = {
    "Fp8MoEMethod": {"quant_config": types.SimpleNamespace(
        is_checkpoint_fp8_serialized=True, activation_scheme="dynamic"),
        "weight_scale_name": "weight_scale", "weight_scale_refine": None},
    "CompressedTensorsW8A8Fp8MoEMethod": {
        "weight_quant": types.SimpleNamespace(strategy="channel"), "static_input_scales": False,
        "input_quant": types.SimpleNamespace(strategy="token")},
    "ModelOptNvFp4FusedMoE": {"use_global_sf": False, "quant_config": types.SimpleNamespace(
        is_checkpoint_nvfp4_serialized=True, group_size=16)},
    "CompressedTensorsW4A4Nvfp4MoEMethod": {"use_global_sf": False, "group_size": 16},
    "CompressedTensorsW4A4Mxfp4MoEMethod": {"group_size": 32},
    "CompressedTensorsWNA16MarlinMoEMethod": {
        "strategy": "group", "group_size": 32, "packed_factor": 8, "wna16_backend": None},
    "CompressedTensorsWNA16MoEMethod": {
        "strategy": "group", "group_size": 32, "packed_factor": 8, "wna16_backend": None,
        "input_quant": None},
    "AutoGPTQMoEMethod": {"input_dtype": None, "experts_cls": None, "quant_config":
                          types.SimpleNamespace(quant_type=types.SimpleNamespace(size_bits=4),
                                                desc_act=False, group_size=32, pack_factor=8)},
    "AutoAWQMoEMethod": {"input_dtype": None, "experts_cls": None, "quant_config":
                         types.SimpleNamespace(weight_bits=4, group_size=32, pack_factor=8)},
}


def configured(activation="SILU"):
    fields = {"tp_size": 1, "pcp_size": 1, "dp_size": 1, "ep_size": 1, "tp_rank": 0, "pcp_rank": 0,
              "dp_rank": 0, "ep_rank": 0, "sp_size": 1, "use_ep": False, "enable_eplb": False,
              "all2all_backend": "allgather_reducescatter"}
    known = inspect.signature(FusedMoEParallelConfig).parameters
    return FusedMoEConfig(
        num_experts=EXPERTS, experts_per_token=TOP, hidden_dim=HIDDEN, intermediate_size=INNER,
        num_local_experts=EXPERTS, num_logical_experts=EXPERTS, device="cpu",
        activation=MoEActivation[activation], routing_method=None, in_dtype=torch.bfloat16,
        moe_parallel_config=FusedMoEParallelConfig(
            **{name: value for name, value in fields.items() if name in known}))


class RealVllm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        warpwright_vllm.register()
        cls.log = Log("vllm.warpwright")
        init_workspace_manager(torch.device("cpu"))
        parallel_state._TP = types.SimpleNamespace(world_size=1, rank_in_group=0)
        print(f"vLLM {vllm.__version__ if hasattr(vllm, '__version__') else ''}, PyTorch "
              f"{torch.__version__}")

    def setUp(self):
        from warpwright_vllm import engine
        engine.lines.said.clear()
        self.log.lines.clear()
        self.draw = Draw(24)

    def test_abstract_methods_and_parameters(self):
        from warpwright_vllm import experts, linear
        classes = [experts.WarpwrightExperts, *(ours for _, ours in linear.OURS)]
        for ours in classes:
            self.assertFalse(ours.__abstractmethods__, ours)
            for name, member in vars(ours).items():
                base = next((vars(kind)[name] for kind in ours.__mro__[1:]
                             if name in vars(kind) and kind.__module__.startswith("vllm")), None)
                if name.startswith("__") or base is None or not hasattr(member, "__get__"):
                    continue
                got, want = (list(inspect.signature(getattr(f, "__func__", f)).parameters)
                             for f in (member, base) if not isinstance(f, property)) \
                    if not isinstance(member, property) else ((), ())
                self.assertEqual(got[1:] if name == "check" else got, want, f"{ours}.{name}")

    def test_keys(self):
        from warpwright_vllm import experts
        for pair in experts.SCHEMES:
            for name in filter(None, pair):
                self.assertTrue(hasattr(quant_utils, name), name)
        served = experts.WarpwrightExperts._supports_quant_scheme
        self.assertTrue(served(quant_utils.kFp8Static128BlockSym, quant_utils.kFp8Dynamic128Sym))
        self.assertFalse(served(quant_utils.kFp8Static128BlockSym, None))

    def test_the_registries(self):
        from vllm.model_executor.kernels import linear as kernels
        from vllm.model_executor.layers import quantization
        from vllm.platforms import PlatformEnum
        from warpwright_vllm import linear, methods
        ours = quantization._CUSTOMIZED_METHOD_TO_QUANT_CONFIG
        self.assertLessEqual(set(methods.CONFIGS), set(ours))
        self.assertTrue(hasattr(custom_op.op_registry_oot["UnquantizedFusedMoEMethod"],
                                "warpwright"))
        for _, kind in linear.OURS:
            self.assertIs(getattr(kernels, kind.kinds)[PlatformEnum.CUDA][0], kind)

    def made(self, name):
        """(method, layer, float64 weights): the parameters are vLLM's own, filled by us."""
        kind, (draw, *rest), known, _ = FORMATS[name]
        from warpwright_vllm import methods
        if importlib.util.find_spec(MODULES[kind]) is None:  # its name since 0.33
            kind = kind.replace("Marlin", "")
        module = importlib.import_module(MODULES[kind])
        base = getattr(module, kind)
        method = object.__new__(base)
        if isinstance(method, torch.nn.Module):
            torch.nn.Module.__init__(method)
        moe = configured()
        state = {"moe": moe, "moe_quant_config": None, "moe_kernel": None, **known,
                 **STATE.get(kind, {})}
        if "weight_block_size" in known:
            state["block_quant"] = known["weight_block_size"] is not None
            state["moe_block_shape"] = known["weight_block_size"]
            if state["block_quant"]:
                state["weight_scale_name"] = known["weight_scale_name"]
        for key, value in state.items():
            setattr(method, key, value)
        layer = layer_of({}, {}, moe)
        layer.global_num_experts = layer.local_num_experts = EXPERTS
        more = {"intermediate_size_full": INNER, "weight_loader": None,
                "global_num_experts": EXPERTS}
        if hasattr(module, "marlin_make_workspace_new"):
            module.marlin_make_workspace_new = lambda *_: None
        method.create_weights(layer=layer, num_experts=EXPERTS, hidden_size=HIDDEN,
                              intermediate_size_per_partition=INNER, params_dtype=torch.bfloat16,
                              **more)
        values = []
        for weight, n, k in (("w13", 2 * INNER, HIDDEN), ("w2", HIDDEN, INNER)):
            args = [1 if arg == 2 and weight == "w2" else arg for arg in rest]
            parameters, each = getattr(self.draw, draw)(EXPERTS, n, k, *args)
            values.append(each)
            for key, array in parameters.items():
                made = to_torch(array)
                theirs = getattr(layer, f"{weight}_{key}")
                if kind == "CompressedTensorsWNA16MoEMethod":  # N first, for some of its kernels
                    made = made if theirs.shape == made.shape else made.swapaxes(1, 2)
                self.assertEqual((theirs.shape, theirs.dtype), (made.shape, made.dtype),
                                 f"{name}: {weight}_{key}")
                theirs.data.copy_(made)
        methods.served(method)
        method.process_weights_after_loading(layer)
        return method, layer, *values

    def test_every_format(self):
        """vLLM's create_weights, and its FusedMoEKernel around our experts."""
        for name, (kind, _, _, most) in FORMATS.items():
            with self.subTest(name):
                method, layer, w13, w2 = self.made(name)
                self.assertIsInstance(method.moe_kernel, mk.FusedMoEKernel, self.log.lines)
                # As vLLM's warm-up asks.
                self.assertIs(method.get_fused_moe_quant_config(layer), method.moe_quant_config)
                x = bf16(self.draw.random.standard_normal((TOKENS, HIDDEN)))
                ids, weights = routed(self.draw)
                got = to_numpy(method.apply(layer, to_torch(x), to_torch(weights), to_torch(ids),
                                            None, None))
                want = reference(x.astype(float), ids, weights, w13, w2)
                self.assertLess(((got - want) ** 2).sum() ** 0.5 / (want ** 2).sum() ** 0.5, most)
                self.assertIn("serves", self.log.lines[-1])

    def test_how_methods_are_made(self):
        """By vLLM's constructors: without quantisation, and by a configuration of ours."""
        from vllm.model_executor.layers import quantization
        from vllm.model_executor.layers.fused_moe import unquantized_fused_moe_method as plain
        from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
        from vllm.model_executor.layers.quantization import fp8
        backend = (plain.UnquantizedMoeBackend.TRITON, None)
        compiled = types.SimpleNamespace(custom_ops=["none"], enabled_custom_ops=Counter(),
                                         disabled_custom_ops=Counter(), mode=None,
                                         backend="eager")
        with unittest.mock.patch.object(plain, "select_unquantized_moe_backend",
                                        lambda **_: backend), \
                unittest.mock.patch.object(fp8, "select_fp8_moe_backend", lambda **_: backend), \
                unittest.mock.patch.object(custom_op, "get_cached_compilation_config",
                                           lambda: compiled):
            made = plain.UnquantizedFusedMoEMethod(configured())
            self.assertTrue(hasattr(made, "warpwright"))
            layer = object.__new__(RoutedExperts)
            torch.nn.Module.__init__(layer)
            layer.moe_config = configured()
            config = quantization._CUSTOMIZED_METHOD_TO_QUANT_CONFIG["fp8"].from_config({
                "quant_method": "fp8", "activation_scheme": "dynamic",
                "weight_block_size": [128, 128]})
            made = config.get_quant_method(layer, "model.layers.0.mlp.experts")
        self.assertIsInstance(made, fp8.Fp8MoEMethod)
        self.assertTrue(hasattr(made, "warpwright"))
        self.assertEqual(made.method_name, "Fp8MoEMethod")

    def dense(self, kernel, layer, weights, most):
        kernel.process_weights_after_loading(layer)
        self.assertIn("serves dense layers", self.log.lines[-1])
        x = bf16(self.draw.random.standard_normal((5, weights.shape[1])))
        want = x.astype(float) @ weights.T
        got = to_numpy(kernel.apply_weights(layer, to_torch(x)))
        self.assertLess(((got - want) ** 2).sum() ** 0.5 / (want ** 2).sum() ** 0.5, most)
        # vLLM compiles what dense layers are in, whole.
        compiled = torch.compile(kernel.apply_weights, backend="eager", fullgraph=True)
        self.assertTrue((to_numpy(compiled(layer, to_torch(x))) == got).all())

    def test_dense(self):
        """vLLM's own choice among kernels takes ours, on a platform that is CUDA."""
        from vllm.model_executor import parameter
        from vllm.model_executor.kernels import linear as kernels
        from vllm.platforms import PlatformEnum
        from vllm.scalar_type import scalar_types
        n, k = 256, 128
        cuda = types.SimpleNamespace(
            _enum=PlatformEnum.CUDA, get_device_capability=lambda: (9, 0), is_cuda=lambda: True)

        def drawn(name):
            parameters, weights = getattr(self.draw, name)(1, n, k)
            layer = torch.nn.Module()
            for key, array in parameters.items():
                setattr(layer, key, torch.nn.Parameter(to_torch(array[0]), requires_grad=False))
            return layer, weights[0]
        common = {"weight_shape": (n, k), "input_dtype": torch.bfloat16,
                  "out_dtype": torch.bfloat16}
        compiled = types.SimpleNamespace(custom_ops=["none"], enabled_custom_ops=Counter(),
                                         disabled_custom_ops=Counter(), mode=None,
                                         backend="eager")
        with unittest.mock.patch.object(kernels, "current_platform", cuda), \
                unittest.mock.patch.object(custom_op, "get_cached_compilation_config",
                                           lambda: compiled):
            for name, weight, tokens in (
                    ("fp8_blocks", "kFp8Static128BlockSym", "kFp8Dynamic128Sym"),
                    ("fp8_rows", "kFp8StaticChannelSym", "kFp8DynamicTokenSym")):
                kernel = kernels.init_fp8_linear_kernel(
                    getattr(quant_utils, tokens), getattr(quant_utils, weight), **common)
                self.dense(kernel, *drawn(name), 0.06)
            self.dense(kernels.init_mxfp4_linear_kernel(), *drawn("mxfp4"), 0.01)
            layer, weights = drawn("nvfp4")
            with torch.no_grad():
                layer.weight_global_scale = torch.nn.Parameter(layer.weight_scale_2.reshape(1),
                                                               requires_grad=False)
            self.dense(kernels.init_nvfp4_linear_kernel(), layer, weights, 0.01)
            fields = {"full_weight_shape": (k, n), "partition_weight_shape": (k, n),
                      "weight_type": scalar_types.uint4b8, "act_type": torch.bfloat16,
                      "group_size": 32, "zero_points": False, "has_g_idx": False}
            known = inspect.signature(kernels.MPLinearLayerConfig).parameters
            config = kernels.MPLinearLayerConfig(
                **{name: value for name, value in fields.items() if name in known})
            layer, weights = drawn("int4_gptq")
            loader = {"input_dim": 0, "output_dim": 1, "weight_loader": lambda *_: None}
            layer.qweight = parameter.PackedvLLMParameter(
                data=layer.qweight.data, packed_dim=0, packed_factor=8, **loader)
            layer.scales = parameter.GroupQuantScaleParameter(data=layer.scales.data, **loader)
            kind = kernels.choose_mp_linear_kernel(config)
            self.dense(kind(config, "qweight", "scales"), layer, weights, 0.01)

    def test_parallel_configurations(self):
        from warpwright_vllm.experts import WarpwrightExperts
        for served, more in ((True, {}), (False, {"use_all2all_kernels": True}),
                             (True, {"use_all2all_kernels": True,
                                     "use_ag_rs_all2all_kernels": True})):
            self.assertEqual(WarpwrightExperts._supports_parallel_config(parallel(**more)), served)
        self.assertFalse(configured().moe_parallel_config.use_all2all_kernels)


if __name__ == "__main__":
    logging.disable(logging.DEBUG)
    unittest.main(verbosity=1)
