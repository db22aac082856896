"""SGLang's doors without SGLang, of 0.5.23 (read in its wheel), in our own words: the runner, the
registry of runner cores, what a dispatcher hands on, and hooks of plug-ins."""
import abc
import collections
import enum
import sys
import types

from vllm_stub import _abstract, _module

THEIRS = "SGLang's own kernel ran"
MOE = "sglang.srt.layers.moe."
Dispatched = collections.namedtuple(
    "StandardDispatchOutput", "hidden_states hidden_states_scale topk_output")
Routing = collections.namedtuple("StandardTopKOutput", "topk_weights topk_ids router_logits")
Combined = collections.namedtuple("StandardCombineInput", "hidden_states")


class Core(abc.ABC):
    def __init__(self, config):
        self.config = config

    runner_backend = property(_abstract("runner_backend", "self"))
    run_from_dispatch = _abstract("run_from_dispatch", "self", "dispatch_output", "quant_info",
                                  "runner_config", "hooks=None")


class Backend:
    def __init__(self, value):
        self.value = value

    def is_triton(self):
        return self.value == "triton"


class Runner:
    """MoeRunner: a core that was registered, or Triton's fused function."""

    def __init__(self, runner_backend, config, lora_enabled=False):
        self.runner_backend, self.config, self.lora_enabled = runner_backend, config, lora_enabled
        factory = Runner.factories.get(runner_backend.value)
        self.runner_core = factory(config) if factory else None

    factories = {}

    def run(self, dispatch_output, quant_info, lora_info=None):
        if self.runner_core is None:
            return THEIRS
        return self.runner_core.run_from_dispatch(dispatch_output, quant_info, self.config,
                                                  hooks=None)


def config(**others):
    """A MoeRunnerConfig: every field that a core has to honour, as it is when nobody says more."""
    return types.SimpleNamespace(**{
        "num_experts": 4, "num_local_experts": 4, "activation": "silu", "is_gated": True,
        "apply_router_weight_on_input": False, "inplace": True, "no_combine": False,
        "no_combine_keep_router_weight": False, "routed_scaling_factor": None, "gemm1_alpha": None,
        "gemm1_beta": None, "gemm1_clamp_limit": None, "swiglu_limit": None,
        "gate_up_interleaved": True, **others})


def quant_info(w13, w2, **others):
    """A TritonMoeQuantInfo."""
    return types.SimpleNamespace(**{
        "w13_weight": w13, "w2_weight": w2, "b13": None, "b2": None, "use_mxfp8": False,
        "use_fp8_w8a8": False, "use_int8_w8a8": False, "use_int8_w8a16": False,
        "use_int4_w4a16": False, "per_channel_quant": False, "w13_scale": None, "w2_scale": None,
        "w13_zp": None, "w2_zp": None, "a13_scale": None, "a2_scale": None, "block_shape": None,
        "fuse_swiglu_interleaved": False, **others})


def install():
    for name in [name for name in sys.modules
                 if name.split(".")[0] in ("sglang", "warpwright_sglang")]:
        del sys.modules[name]
    Runner.factories.clear()
    runner = type("MoeRunner", (Runner,), {"run": Runner.run})

    def register_moe_runner_core(backend_name, factory):
        if backend_name in Runner.factories:
            raise ValueError(f"Runner core for {backend_name!r} is already registered")
        Runner.factories[backend_name] = factory

    def register(target, hook, hook_type, *, source=None):
        assert hook_type is kinds.AROUND and target == MOE + "moe_runner.runner.MoeRunner.run"
        original = runner.run
        runner.run = lambda *args, **keywords: hook(original, *args, **keywords)
    kinds = enum.Enum("HookType", ["BEFORE", "AFTER", "AROUND", "REPLACE"])
    _module(MOE + "moe_runner.base", DispatchMoeRunnerCore=Core)
    _module(MOE + "moe_runner.runner", MoeRunner=runner,
            register_moe_runner_core=register_moe_runner_core)
    _module(MOE + "token_dispatcher.standard", StandardCombineInput=Combined)
    _module(MOE + "utils", resolve_moe_runner_backend=Backend)
    _module("sglang.srt.plugins.hook_registry", HookType=kinds,
            HookRegistry=types.SimpleNamespace(register=register))
    return runner
