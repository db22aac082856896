"""Warpwright's mixture where SGLang runs a layer of experts.

SGLang's own quantisation methods make Triton's runner, whatever name was registered, so two doors
are used: a runner core "warpwright", for methods that ask for one by that name, and a hook around
MoeRunner.run, which takes what Triton's runner was given.
"""
from sglang.srt.layers.moe.moe_runner.base import DispatchMoeRunnerCore
from sglang.srt.layers.moe.moe_runner.runner import register_moe_runner_core
from sglang.srt.layers.moe.token_dispatcher.standard import StandardCombineInput
from sglang.srt.layers.moe.utils import resolve_moe_runner_backend
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
from warpwright import serving

from . import log, switch

NAME = "warpwright"
lines = serving.Lines(log, "SGLang")


def _gate(config):
    """SGLang's words and numbers of the gate, as serving.Experts takes them."""
    word = config.activation if config.is_gated else f"{config.activation}_no_mul"
    if word != "silu":
        return {"activation": word}
    if config.gemm1_alpha is not None:
        if config.gate_up_interleaved:
            word = "swigluoai"
        else:
            word = "swigluoai_uninterleave"
        return {"activation": word, "limit": config.gemm1_clamp_limit, "alpha": config.gemm1_alpha,
                "beta": 1.0}
    if config.gemm1_clamp_limit is not None:
        raise serving.Refusal("gemm1_clamp_limit is given without gemm1_alpha, which cuts "
                              "silu(gate); here the gate is cut before, as swiglu_limit says")
    return {"activation": "silu", "limit": config.swiglu_limit}


def _weights(info):
    """The weights of a TritonMoeQuantInfo, or of what has its fields."""
    for flag in ("use_mxfp8", "use_int8_w8a8", "use_int8_w8a16", "use_int4_w4a16",
                 "fuse_swiglu_interleaved"):
        if getattr(info, flag, False):
            raise serving.Refusal(f"{flag} is set; weights of 16 bits and e4m3 ones are served")
    if not getattr(info, "use_fp8_w8a8", False):
        return serving.dense16(info.w13_weight, info.w2_weight)
    for name in ("a13_scale", "a2_scale"):
        if getattr(info, name, None) is not None:
            raise serving.Refusal(f"{name} is given, fixed by the checkpoint; tokens are quantised "
                                  "by their own values here")
    return serving.fp8(info.w13_weight, info.w2_weight, info.w13_scale, info.w2_scale,
                       block=info.block_shape)


def experts_of(info, config, top_k, tokens):
    """The layer as ours; raises Refusal where it is not served."""
    if config.no_combine:
        raise serving.Refusal("no_combine is set; the weighted sum is part of the mixture here")
    weights = _weights(info)
    return serving.Experts(
        weights, top_k=top_k, tokens=tokens, bias13=getattr(info, "b13", None),
        bias2=getattr(info, "b2", None), total=config.num_experts,
        device=serving.place_of(weights.place, on_model=switch() == "model"),
        apply_router_weight_on_input=config.apply_router_weight_on_input,
        routed_scaling_factor=config.routed_scaling_factor or 1.0, **_gate(config))


def run(experts, dispatch_output, config):
    """One call: tokens x hidden, weighted and added up."""
    x, routing = dispatch_output.hidden_states, dispatch_output.topk_output
    out = x if config.inplace else x.new_empty(x.shape)
    experts(out, x, routing.topk_ids, routing.topk_weights)
    return StandardCombineInput(hidden_states=out)


def _served(kept, dispatch_output, info, config):
    """The layer's Experts; raises Refusal. `kept` is where they stay between calls."""
    routing = dispatch_output.topk_output
    if dispatch_output.hidden_states_scale is not None or not hasattr(routing, "topk_ids"):
        raise serving.Refusal("the tokens come quantised, or not with ids and weights of experts; "
                              "they are quantised and sorted here")
    key = info.w13_weight.data_ptr(), dispatch_output.hidden_states.dtype
    found = kept.__dict__.get("_warpwright")
    if found is None or found[0] != key:
        try:
            found = key, experts_of(info, config, routing.topk_ids.shape[1], key[1]), None
            lines.serves(found[1].line)
        except Exception as reason:  # pylint: disable=broad-exception-caught
            found = key, None, reason
        kept._warpwright = found
    if found[1] is None:
        raise serving.Refusal(str(found[2]))
    return found[1]


class WarpwrightRunnerCore(DispatchMoeRunnerCore):
    """A runner core by the name "warpwright"; what is not served raises Refusal when it runs."""

    @property
    def runner_backend(self):
        return resolve_moe_runner_backend(NAME)

    def run_from_dispatch(self, dispatch_output, quant_info, runner_config, hooks=None):
        if hooks is not None:
            raise serving.Refusal("LoRA is given; layers without are served")
        experts = _served(self, dispatch_output, quant_info, runner_config)
        return run(experts, dispatch_output, runner_config)


def around_run(original, runner, dispatch_output, quant_info, lora_info=None):
    """MoeRunner.run, which does what is not served."""
    if not runner.runner_backend.is_triton() or runner.lora_enabled:
        return original(runner, dispatch_output, quant_info, lora_info)
    try:
        experts = _served(runner, dispatch_output, quant_info, runner.config)
    except serving.Refusal as reason:
        lines.leaves("experts", reason)
        return original(runner, dispatch_output, quant_info, lora_info)
    return run(experts, dispatch_output, runner.config)


def register():
    """The core by its name, and the hook; SGLang calls this once in a process."""
    register_moe_runner_core(NAME, WarpwrightRunnerCore)
    HookRegistry.register("sglang.srt.layers.moe.moe_runner.runner.MoeRunner.run", around_run,
                          HookType.AROUND)
