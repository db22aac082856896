"""vLLM's doors without vLLM: the names, parameters and registries that the plug-in meets, for
0.24 and 0.33, in our own words. They were read in the wheels 0.24.0 and 0.33.0.

`install("0.24")` puts the modules into sys.modules. Methods and kernels of "vLLM" only say that
they ran: `apply` returns THEIRS.
"""
import abc
import enum
import logging
import math
import sys
import types

import torch

THEIRS = "vLLM's own kernel ran"
_PARAMETERS = "output hidden_states w1 w2 topk_weights topk_ids activation global_num_experts " \
              "expert_map a1q_scale a2_scale workspace13 workspace2 expert_tokens_meta " \
              "apply_router_weight_on_input"


def _module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        if parent not in sys.modules:
            _module(parent)
        setattr(sys.modules[parent], last, made)
    made.__path__ = []
    return made


class Activation(enum.Enum):
    SILU = "silu"
    GELU = "gelu"
    GELU_NO_MUL = "gelu_no_mul"
    GELU_TANH = "gelu_tanh"
    SWIGLUOAI = "swigluoai"
    SWIGLUOAI_UNINTERLEAVE = "swigluoai_uninterleave"
    RELU2 = "relu2"
    RELU2_NO_MUL = "relu2_no_mul"

    @property
    def is_gated(self):
        return not self.value.endswith("_no_mul")


class Format(enum.Enum):
    Standard = 1
    BatchedExperts = 2


class Experts(abc.ABC):
    """FusedMoEExperts and its modular kind in one."""

    def __init__(self, moe_config, quant_config, max_num_tokens=None, num_dispatchers=None):
        self.moe_config, self.quant_config = moe_config, quant_config

    a2_scale = None

    def process_weights_after_loading(self, layer):
        pass

    @staticmethod
    def is_supported_config(cls, moe_config, weight_key, activation_key, activation_format):
        for served, what in (
                (cls._supports_current_device(), "current device"),
                (moe_config.is_act_and_mul or cls._supports_no_act_and_mul(), "no act_and_mul"),
                (cls._supports_activation(moe_config.activation), f"{moe_config.activation}"),
                (cls._supports_quant_scheme(weight_key, activation_key), "quantization scheme"),
                (cls._supports_parallel_config(moe_config.moe_parallel_config), "parallel config"),
                (activation_format == cls.activation_format(), "activation format"),
                (not moe_config.is_lora_enabled, "LoRA")):
            if not served:
                return False, f"kernel does not support {what}"
        return True, None

    def workspace_dtype(self, act_dtype):
        return act_dtype


def _abstract(name, *parameters, static=False):
    source = f"def {name}({', '.join(parameters)}): raise NotImplementedError"
    made = {}
    exec(source, made)  # pylint: disable=exec-used
    function = abc.abstractmethod(made[name])
    return staticmethod(function) if static else function


for _name, _given in (("activation_format", ()), ("_supports_current_device", ()),
                      ("_supports_no_act_and_mul", ()), ("_supports_activation", ("activation",)),
                      ("_supports_quant_scheme", ("weight_key", "activation_key")),
                      ("_supports_parallel_config", ("moe_parallel_config",))):
    setattr(Experts, _name, _abstract(_name, *_given, static=True))
Experts.workspace_shapes = _abstract(
    "workspace_shapes", *"self M N K topk global_num_experts local_num_experts expert_tokens_meta "
    "activation".split())
Experts.finalize_weight_and_reduce_impl = _abstract("finalize_weight_and_reduce_impl", "self")
Experts.apply = _abstract("apply", "self", *_PARAMETERS.split())
abc.update_abstractmethods(Experts)


class NoOp:
    def apply(self, output, fused_expert_output):
        output[...] = fused_expert_output


class Kernel:
    """FusedMoEKernel, without other ranks."""

    def __init__(self, prepare_finalize, fused_experts):
        assert isinstance(fused_experts, Experts)
        self.prepare_finalize, self.fused_experts = prepare_finalize, fused_experts

    def apply(self, hidden_states, w1, w2, topk_weights, topk_ids, activation, global_num_experts,
              expert_map, apply_router_weight_on_input, shared_experts=None,
              shared_experts_input=None):
        ours = self.fused_experts
        x = hidden_states
        if apply_router_weight_on_input:
            assert topk_ids.shape[1] == 1
            x = (x.float() * topk_weights.float()).to(x.dtype)
        _, m, n, k, top = ours.moe_problem_size(x, w1, w2, topk_ids)
        if m == 0:
            return torch.empty_like(x)
        shapes = ours.workspace_shapes(m, n, k, top, global_num_experts, w1.shape[0], None,
                                       activation)
        memory = torch.empty(max(math.prod(shapes[0]), math.prod(shapes[2])), dtype=x.dtype)
        made = memory[:math.prod(shapes[2])].reshape(shapes[2])
        workspaces = [torch.empty(*shape, dtype=x.dtype) for shape in shapes[:2]]
        workspaces[1][...] = 1
        given = dict(zip(_PARAMETERS.split(), (
            made, x, w1, w2, topk_weights, topk_ids, activation, global_num_experts, expert_map,
            None, ours.a2_scale, *workspaces, None, apply_router_weight_on_input)))
        ours.apply(**given)
        assert bool((workspaces[1] != 1).any())  # it works there, in what vLLM counts
        output = torch.empty_like(hidden_states)
        ours.finalize_weight_and_reduce_impl().apply(output, made)
        return output


class Method(abc.ABC):
    """FusedMoEMethodBase: one that has chosen a kernel of vLLM's."""

    def __init__(self, moe, quant_config=None):
        self.moe, self.quant_config = moe, quant_config
        self.moe_quant_config = self.moe_kernel = None

    def process_weights_after_loading(self, layer):
        layer.shuffled = True

    def get_fused_moe_quant_config(self, layer):
        """vLLM's warm-up asks for it when all layers are loaded; theirs reads the parameters."""
        return [getattr(layer, name) for name in self.loaded]

    def apply(self, layer, x, topk_weights, topk_ids, shared_experts, shared_experts_input):
        assert layer.shuffled
        return THEIRS


_oot = {}


class CustomOp:
    def __new__(cls, *args, **keywords):
        return super().__new__(_oot.get(cls.__name__, cls))

    @classmethod
    def register_oot(cls, kind):
        assert cls.__name__ not in _oot
        _oot[cls.__name__] = kind
        return kind


class UnquantizedFusedMoEMethod(Method, CustomOp):
    pass


class Config:
    """QuantizationConfig whose method for experts is `method`."""

    method = None

    def __init__(self, **about):
        self.__dict__.update(about)

    def get_quant_method(self, layer, prefix):
        return self.method(layer.moe_config, self)


def _configs():
    """Each module of vLLM's configurations, with those and their methods; methods by name."""
    methods = {}
    for module, kinds in {
            "fp8": {"Fp8Config": "Fp8MoEMethod"},
            "mxfp4": {"Mxfp4Config": "Mxfp4MoEMethod",
                      "GptOssMxfp4Config": "GptOssMxfp4MoEMethod"},
            "modelopt": {"ModelOptNvFp4Config": "ModelOptNvFp4FusedMoE",
                         "ModelOptFp8Config": "ModelOptFp8MoEMethod",
                         "ModelOptMixedPrecisionConfig": "ModelOptFp8MoEMethod"},
            "compressed_tensors.compressed_tensors": {
                "CompressedTensorsConfig": "CompressedTensorsWNA16MarlinMoEMethod"},
            "auto_gptq": {"AutoGPTQConfig": "AutoGPTQMoEMethod"},
            "auto_awq": {"AutoAWQConfig": "AutoAWQMoEMethod"}}.items():
        members = {}
        for config, method in kinds.items():
            methods[method] = type(method, (Method,), {})
            members[config] = type(config, (Config,), {"method": methods[method]})
        _module("vllm.model_executor.layers.quantization." + module, **members, **methods)
    return methods


class Linear(abc.ABC):
    """A dense kernel: its configuration, and the names of its parameters."""

    def __init__(self, config, *names, **named):
        self.config = config
        self.__dict__.update({**dict.fromkeys(self.names), **dict(zip(self.names, names)), **named})

    names = ()
    is_supported = classmethod(_abstract("is_supported", "cls", "compute_capability=None"))
    can_implement = classmethod(_abstract("can_implement", "cls", "config"))
    process_weights_after_loading = _abstract("process_weights_after_loading", "self", "layer")
    apply_weights = _abstract("apply_weights", "self", "layer", "x", "bias=None")


def _theirs(base):
    """A kernel of vLLM's own, that can do all."""
    return type("Theirs" + base.__name__, (base,), {
        "is_supported": classmethod(lambda cls, compute_capability=None: (True, None)),
        "can_implement": classmethod(lambda cls, config: (True, None)),
        "get_min_capability": classmethod(lambda cls: 75),
        "process_weights_after_loading": lambda self, layer: None,
        "apply_weights": lambda self, layer, x, bias=None: THEIRS,
        "apply_block_scaled_mm": None, "apply_scaled_mm": None})


def _linear(version):
    platform = sys.modules["vllm.platforms"].PlatformEnum
    block = type("Fp8BlockScaledMMLinearKernel", (Linear,), {
        "apply_block_scaled_mm": _abstract("apply_block_scaled_mm", "self", "A", "B", "As", "Bs")})
    rows = type("FP8ScaledMMLinearKernel", (Linear,), {
        "apply_scaled_mm": _abstract("apply_scaled_mm", "self", "*", "A", "B", "out_dtype", "As",
                                     "Bs", "bias", "output_shape")})
    mixed = type("MPLinearKernel", (Linear,), {
        "is_supported": classmethod(lambda cls: (True, None)),
        "get_min_capability": classmethod(_abstract("get_min_capability", "cls")),
        "names": ("w_q_name", "w_s_name", "w_zp_name", "w_gidx_name")})
    nvfp4, mxfp4 = (type(name, (Linear,), {}) for name in ("NvFp4LinearKernel",
                                                            "MxFp4LinearKernel"))
    lists = {"mp": "_POSSIBLE_KERNELS", "fp8": "_POSSIBLE_FP8_KERNELS",
             "nvfp4": "_POSSIBLE_NVFP4_KERNELS", "mxfp4": "_POSSIBLE_MXFP4_KERNELS",
             "fp8_block": "_POSSIBLE_FP8_BLOCK_KERNELS"}
    kinds = {"mp": mixed, "fp8": rows, "nvfp4": nvfp4, "mxfp4": mxfp4, "fp8_block": block}
    made = _module("vllm.model_executor.kernels.linear",
                   **{base.__name__: base for base in kinds.values()},
                   **{lists[kind]: {platform.CUDA: [_theirs(base)]}
                      for kind, base in kinds.items()})

    def register_linear_kernel(kernel_class, platform, kernel_type="mp"):
        if kernel_type not in lists or (kernel_type == "fp8_block" and version == "0.24"):
            raise ValueError(f"Unrecognized kernel type: {kernel_type}")
        getattr(made, lists[kernel_type]).setdefault(platform, []).append(kernel_class)
    made.register_linear_kernel = register_linear_kernel


class Key:
    """A QuantKey that is only itself."""


def install(version):
    """Stub modules of one version; what the plug-in imported of another is let go."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("vllm", "warpwright_vllm")]:
        del sys.modules[name]
    _oot.clear()
    _module("vllm")
    _module("vllm.envs", environment_variables={}, VLLM_BATCH_INVARIANT=False)
    _module("vllm.logger", init_logger=logging.getLogger)
    _module("vllm.platforms", PlatformEnum=enum.Enum("PlatformEnum", ["CUDA", "ROCM", "CPU"]),
            current_platform=types.SimpleNamespace(is_cuda=lambda: False))
    layers = "vllm.model_executor.layers."
    moe = layers + "fused_moe."
    _module(moe + "modular_kernel", FusedMoEExpertsModular=Experts, FusedMoEKernel=Kernel,
            FusedMoEActivationFormat=Format)
    _module(moe + "activation", MoEActivation=Activation)
    _module(moe + "topk_weight_and_reduce", TopKWeightAndReduceNoOP=NoOp)
    _module(moe + "config", FusedMoEQuantConfig=types.SimpleNamespace(make=types.SimpleNamespace))
    more = "eep_stage=False" if version == "0.24" else "all2all_manager=None, input_dtype=None"
    made = {"prepare": types.SimpleNamespace()}
    exec("def maybe_make_prepare_finalize(moe, quant_config, "  # pylint: disable=exec-used
         f"routing_tables=None, allow_new_interface=False, use_monolithic=False, {more}):\n"
         "    assert allow_new_interface and not use_monolithic\n    return prepare", made)
    _module(moe + "all2all_utils", maybe_make_prepare_finalize=made["maybe_make_prepare_finalize"])
    _module(moe + "fused_moe_method_base", FusedMoEMethodBase=Method)
    _module(moe + "unquantized_fused_moe_method",
            UnquantizedFusedMoEMethod=UnquantizedFusedMoEMethod)
    registered = {}
    _module(layers + "quantization", registered=registered,
            register_quantization_config=lambda name: lambda kind: registered.setdefault(name,
                                                                                         kind))
    _module(layers + "quantization.utils.quant_utils", **{name: Key() for name in (
        "kFp8Static128BlockSym", "kFp8Dynamic128Sym", "kFp8StaticChannelSym",
        "kFp8DynamicTokenSym", "kFp8StaticTensorSym", "kFp8DynamicTensorSym", "kMxfp4Static",
        "kNvfp4Static", "kInt4Static", "kInt4Static32")})
    methods = _configs()
    methods["UnquantizedFusedMoEMethod"] = UnquantizedFusedMoEMethod
    for name in ("CompressedTensorsW8A8Fp8MoEMethod", "CompressedTensorsW4A4Nvfp4MoEMethod",
                 "CompressedTensorsW4A4Mxfp4MoEMethod"):
        methods[name] = type(name, (Method,), {})
    _linear(version)
    return methods
