"""vLLM's quantisation methods for layers of experts, with our kernel where it serves the layer.

vLLM's own method makes the parameters and loads them. Behind that, ours reads them as they lie,
asks the library, and takes its place in the method; where the library refuses, vLLM's goes on as
if nothing had been asked.
"""
import importlib

from vllm.model_executor.layers.fused_moe.fused_moe_method_base import FusedMoEMethodBase
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import (
    UnquantizedFusedMoEMethod)
from vllm.model_executor.layers.quantization import register_quantization_config
from warpwright import serving

from . import engine, experts

_LAYERS = "vllm.model_executor.layers.quantization."
# Names of vLLM's configurations, and where their classes are.
CONFIGS = {
    "fp8": ("fp8", "Fp8Config"),
    "mxfp4": ("mxfp4", "Mxfp4Config"),
    "gpt_oss_mxfp4": ("mxfp4", "GptOssMxfp4Config"),
    "modelopt": ("modelopt", "ModelOptFp8Config"),
    "modelopt_fp4": ("modelopt", "ModelOptNvFp4Config"),
    "modelopt_mixed": ("modelopt", "ModelOptMixedPrecisionConfig"),
    "compressed-tensors": ("compressed_tensors.compressed_tensors", "CompressedTensorsConfig"),
    "gptq": ("auto_gptq", "AutoGPTQConfig"),
    "auto_gptq": ("auto_gptq", "AutoGPTQConfig"),
    "gptq_marlin": ("auto_gptq", "AutoGPTQConfig"),
    "awq": ("auto_awq", "AutoAWQConfig"),
    "auto_awq": ("auto_awq", "AutoAWQConfig"),
    "awq_marlin": ("auto_awq", "AutoAWQConfig"),
}


def _both(layer, name):
    """A parameter of w13 and of w2."""
    return [getattr(layer, f"{weight}_{name}") for weight in ("w13", "w2")]


def _tokens(method):
    return serving.token_word(method.moe.in_dtype)


def _in_turns(layer):
    return layer.activation.value == "swigluoai"


def _dense16(_, layer):
    return serving.dense16(layer.w13_weight, layer.w2_weight)


def _fp8(method, layer):
    if getattr(layer, "w13_input_scale", None) is not None:
        raise serving.Refusal("the tokens' scales are fixed by the checkpoint (activation_scheme "
                              "static); tokens are quantised by their own values here")
    name = getattr(method, "weight_scale_name", "weight_scale")
    return serving.fp8(layer.w13_weight, layer.w2_weight, *_both(layer, name),
                       block=method.weight_block_size)


def _mxfp4(method, layer):
    name = "weight_packed" if hasattr(layer, "w13_weight_packed") else "weight"
    return serving.fp4("quark-mxfp4", *_both(layer, name), *_both(layer, "weight_scale"),
                       tokens=_tokens(method), interleaved=_in_turns(layer))


def _nvfp4(method, layer):
    packed = hasattr(layer, "w13_weight_packed")  # compressed-tensors, whose factors are divisors
    return serving.fp4(
        "compressed-tensors-nvfp4" if packed else "modelopt-nvfp4",
        *_both(layer, "weight_packed" if packed else "weight"), *_both(layer, "weight_scale"),
        *_both(layer, "weight_global_scale" if packed else "weight_scale_2"),
        tokens=_tokens(method), interleaved=_in_turns(layer))


def _four_bits(bits):
    if bits != 4:
        raise serving.Refusal(f"the weights have {bits} bits; the nearest served is 4")


def _compressed_int4(method, layer):
    _four_bits(method.num_bits)
    if getattr(method, "actorder", None) == "group":
        raise serving.Refusal("the weights are in act-order (actorder group), which needs tokens "
                              "in another order; without it they are served")
    zeros = [None, None] if getattr(method, "symmetric", True) \
        else _both(layer, "weight_zero_point")
    turned = layer.w13_weight_packed.shape[2] == 2 * layer.w2_weight_packed.shape[1] * 8
    return serving.int4("compressed-tensors" + "-turned" * turned, *_both(layer, "weight_packed"),
                        *_both(layer, "weight_scale"), *zeros, tokens=_tokens(method))


def _gptq(method, layer):
    config = method.quant_config
    _four_bits(config.quant_type.size_bits)
    if config.desc_act:
        raise serving.Refusal("the weights are in act-order (desc_act), which needs tokens in "
                              "another order; without it they are served")
    # vLLM has only symmetric ones here: codes of GPTQ lie as those of compressed-tensors, K first.
    return serving.int4("compressed-tensors-turned", *_both(layer, "qweight"),
                        *_both(layer, "scales"), tokens=_tokens(method))


def _awq(method, layer):
    _four_bits(method.quant_config.weight_bits)
    return serving.int4("awq", *_both(layer, "qweight"), *_both(layer, "scales"),
                        *_both(layer, "qzeros"), tokens=_tokens(method))


# By the name of vLLM's method: how its parameters are read.
READERS = {
    "UnquantizedFusedMoEMethod": _dense16,
    "Fp8MoEMethod": _fp8,
    "CompressedTensorsW8A8Fp8MoEMethod": _fp8,
    "Mxfp4MoEMethod": _mxfp4,
    "GptOssMxfp4MoEMethod": _mxfp4,
    "CompressedTensorsW4A4Mxfp4MoEMethod": _mxfp4,
    "ModelOptNvFp4FusedMoE": _nvfp4,
    "CompressedTensorsW4A4Nvfp4MoEMethod": _nvfp4,
    "CompressedTensorsWNA16MoEMethod": _compressed_int4,
    "CompressedTensorsWNA16MarlinMoEMethod": _compressed_int4,
    "AutoGPTQMoEMethod": _gptq,
    "AutoAWQMoEMethod": _awq,
}
# What a packed layer keeps no longer.
_NAMES = ("weight", "weight_packed", "qweight", "weight_scale", "scales", "qzeros",
          "weight_zero_point", "weight_scale_2", "weight_global_scale")


def _keep_packed(layer, served):
    """The packed bytes take the weights' place, and what they were made of is let go."""
    import torch
    for weight, packed in (("w13", served.w13), ("w2", served.w2)):
        for name in _NAMES:
            if hasattr(layer, f"{weight}_{name}"):
                delattr(layer, f"{weight}_{name}")
        # By this name vLLM knows an expert's weights.
        setattr(layer, f"{weight}_weight",
                torch.nn.Parameter(packed.data, requires_grad=False))


def _in_front(kind):
    """The class of a method, with ours in front. It adds nothing to objects, so that one of `kind`
    can become one of it; and has its name, by which vLLM tells methods."""
    class Served(kind):
        supports_pre_processed_weights = False  # weights in a form of ours are no cache's
        warpwright = None  # the serving.Experts of a layer that is served

        def process_weights_after_loading(self, layer):
            self.warpwright = None
            try:
                weights = READERS[kind.__name__](self, layer)
                self.moe_quant_config, self.moe_kernel = experts.kernel_of(self, layer, weights)
            except Exception as reason:  # pylint: disable=broad-exception-caught
                engine.lines.leaves(f"experts ({kind.__name__})", reason)
                super().process_weights_after_loading(layer)
                return
            self.warpwright = self.moe_kernel.fused_experts.experts
            if self.warpwright.packed:
                _keep_packed(layer, self.warpwright)
            engine.lines.serves(self.warpwright.line)

        def get_fused_moe_quant_config(self, layer):
            if self.warpwright is None:
                return super().get_fused_moe_quant_config(layer)
            return self.moe_quant_config  # theirs reads parameters that packing has replaced

        def apply(self, layer, x, topk_weights, topk_ids, shared_experts, shared_experts_input):
            if self.warpwright is None:
                return super().apply(layer, x, topk_weights, topk_ids, shared_experts,
                                     shared_experts_input)
            return self.moe_kernel.apply(
                hidden_states=x, w1=layer.w13_weight, w2=layer.w2_weight,
                topk_weights=topk_weights, topk_ids=topk_ids, activation=layer.activation,
                global_num_experts=layer.global_num_experts, expert_map=layer.expert_map,
                apply_router_weight_on_input=layer.apply_router_weight_on_input,
                shared_experts=shared_experts, shared_experts_input=shared_experts_input)

    Served.__name__ = Served.__qualname__ = kind.__name__
    return Served


_classes = {}


def served(method):
    """The method of a layer, if it is one that we read, as ours."""
    kind = type(method)
    if not isinstance(method, FusedMoEMethodBase) or hasattr(kind, "warpwright"):
        return method
    if kind.__name__ not in READERS:
        engine.lines.leaves(f"experts ({kind.__name__})",
                            "weights as this method has them are not read")
        return method
    if kind not in _classes:
        _classes[kind] = _in_front(kind)
    method.__class__ = _classes[kind]
    return method


class _Config:
    """What goes in front of a configuration's class."""

    def get_quant_method(self, layer, prefix):
        return served(super().get_quant_method(layer, prefix))

    def __reduce_ex__(self, protocol):  # to other processes: the class is made there
        return _revived, (self._warpwright_name, self.__dict__)


def _config_class(name):
    module, kind = CONFIGS[name]
    theirs = getattr(importlib.import_module(_LAYERS + module), kind)
    return type(kind, (_Config, theirs), {"__module__": __name__, "_warpwright_name": name})


def _revived(name, state):
    kind = _configs.get(name) or _configs.setdefault(name, _config_class(name))
    made = kind.__new__(kind)
    made.__dict__.update(state)
    return made


_configs = {}


def register():
    """Our method for layers without quantisation, and our configurations by vLLM's names."""
    if _configs:
        return
    engine.keep_caches_apart()
    UnquantizedFusedMoEMethod.register_oot(_in_front(UnquantizedFusedMoEMethod))
    for name in CONFIGS:
        try:
            _configs[name] = register_quantization_config(name)(_config_class(name))
        except (ImportError, AttributeError, ValueError) as reason:
            engine.lines.leaves(f"checkpoints of {name}", reason)
