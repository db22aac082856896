"""Warpwright's mixture as one of vLLM's experts classes."""
import vllm.model_executor.layers.fused_moe.modular_kernel as mk
from vllm import envs
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.all2all_utils import maybe_make_prepare_finalize
from vllm.model_executor.layers.fused_moe.config import FusedMoEQuantConfig
from vllm.model_executor.layers.fused_moe.topk_weight_and_reduce import TopKWeightAndReduceNoOP
from vllm.model_executor.layers.quantization.utils import quant_utils
from warpwright import serving

from . import engine

# Names of vLLM's keys: of weights, and of what tokens become. Tokens are quantised by our call.
SCHEMES = (
    (None, None),
    ("kFp8Static128BlockSym", "kFp8Dynamic128Sym"),
    ("kFp8StaticChannelSym", "kFp8DynamicTokenSym"),
    ("kFp8StaticTensorSym", "kFp8DynamicTokenSym"),
    ("kFp8StaticTensorSym", "kFp8DynamicTensorSym"),
    ("kMxfp4Static", None),
    ("kNvfp4Static", None),
    ("kInt4Static", None),
    ("kInt4Static32", None),
)


def _key(name):
    return None if name is None else getattr(quant_utils, name, NotImplemented)


class WarpwrightExperts(mk.FusedMoEExpertsModular):
    """Sort, both products, the gate and the weighted sum, of a serving.Experts."""

    def __init__(self, moe_config, quant_config, experts=None, max_num_tokens=None,
                 num_dispatchers=None):
        super().__init__(moe_config, quant_config, max_num_tokens, num_dispatchers)
        self.experts, self.largest = experts, 0

    @staticmethod
    def activation_format():
        return mk.FusedMoEActivationFormat.Standard

    @staticmethod
    def _supports_current_device():
        return engine.supported()[0]

    @staticmethod
    def _supports_no_act_and_mul():
        return True  # if the library has the activation, which it is asked

    @staticmethod
    def _supports_quant_scheme(weight_key, activation_key):
        return any((_key(weights), _key(tokens)) == (weight_key, activation_key)
                   for weights, tokens in SCHEMES)

    @staticmethod
    def _supports_activation(activation):
        return isinstance(activation, MoEActivation)  # the library is asked, with the layer

    @staticmethod
    def _supports_parallel_config(moe_parallel_config):
        # Kernels that send tokens to other ranks quantise them first, or leave the sum out.
        return (not moe_parallel_config.use_all2all_kernels
                or moe_parallel_config.use_ag_rs_all2all_kernels)

    @staticmethod
    def _supports_batch_invariance():
        return True

    @property
    def expects_unquantized_inputs(self):
        return True

    def finalize_weight_and_reduce_impl(self):
        return TopKWeightAndReduceNoOP()

    def moe_problem_size(self, a1, w1, w2, topk_ids):
        weights = self.experts.weights
        return (self.experts.count, a1.shape[0], weights.w13.shape[1], a1.shape[-1],
                topk_ids.shape[1])

    def workspace_shapes(self, M, N, K, topk, global_num_experts, local_num_experts,
                         expert_tokens_meta, activation):
        # As much for each call as for the largest, which vLLM's profile makes first and counts:
        # later its workspace may not grow. Elements are of 16 bits. The first may be the output.
        self.largest = max(self.largest, M)
        return (0,), ((self.experts.workspace_bytes(self.largest) + 1) // 2,), (M, K)

    def apply(self, output, hidden_states, w1, w2, topk_weights, topk_ids, activation,
              global_num_experts, expert_map, a1q_scale, a2_scale, workspace13, workspace2,
              expert_tokens_meta, apply_router_weight_on_input):
        if a1q_scale is not None:
            raise serving.Refusal("the tokens came quantised; they are quantised here")
        if apply_router_weight_on_input:  # done by what came before
            topk_weights = topk_weights.new_ones(topk_weights.shape)
        self.experts(output, hidden_states, topk_ids, topk_weights, expert_map, workspace2)


def kernel_of(method, layer, weights):
    """vLLM's kernel around ours for a layer; raises Refusal where it is not served."""
    moe = method.moe
    activation = layer.activation
    served, why_not = WarpwrightExperts.is_supported_config(
        WarpwrightExperts, moe, None, None, mk.FusedMoEActivationFormat.Standard)
    if not served:
        raise serving.Refusal(engine.supported()[1] or why_not)
    if weights.pack is not None and moe.moe_parallel_config.enable_eplb:
        raise serving.Refusal("experts' weights are packed, and EPLB moves them between ranks as "
                              "they were: leave EPLB out")
    experts = serving.Experts(
        weights, activation.value, top_k=moe.experts_per_token, tokens=moe.in_dtype,
        limit=_number(layer, moe, "swiglu_limit"), alpha=_number(layer, moe, "swiglu_alpha"),
        beta=_number(layer, moe, "swiglu_beta"), bias13=getattr(layer, "w13_bias", None),
        bias2=getattr(layer, "w2_bias", None), total=layer.global_num_experts,
        device=engine.device_of(weights.place), batch_invariant=bool(envs.VLLM_BATCH_INVARIANT))
    # Tokens stay as they are until our call.
    quant_config = FusedMoEQuantConfig.make()
    prepare = maybe_make_prepare_finalize(
        moe=moe, quant_config=quant_config, routing_tables=layer._expert_routing_tables(),
        allow_new_interface=True, use_monolithic=False)
    return quant_config, mk.FusedMoEKernel(
        prepare, WarpwrightExperts(moe, quant_config, experts=experts))


def _number(layer, moe, name):
    said = getattr(layer, name, None)
    return getattr(moe, name, None) if said is None else said
