"""Our experts as one more of transformers' implementations (transformers 5).

    import warpwright.transformers

    warpwright.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(..., experts_implementation="warpwright")

or, of a model that is there, ``model.set_experts_implementation("warpwright")``.
"""
import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from ._experts import mixture
from ._interop import Refusal


def _silu(gate, up):
    return gate * torch.sigmoid(gate) * up


def _swiglu_oai(gate, up):
    gate, up = gate.clamp(max=7), up.clamp(-7, 7)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


def _gate_of(module):
    """(activation, gate_up): which of ours the module's gate is, found by a few values."""
    values = torch.tensor([-12.0, -3, -0.5, 0.25, 2, 6.5, 9, 20])
    gate, up = (x.reshape(-1) for x in torch.meshgrid(values, values.flip(0), indexing="ij"))
    lies = {"halves": torch.cat([gate, up]), "interleaved": torch.stack([gate, up], -1).reshape(-1)}
    for activation, function in (("silu", _silu), ("swiglu_oai", _swiglu_oai)):
        for gate_up, both in lies.items():
            if torch.allclose(module._apply_gate(both), function(gate, up), rtol=1e-4, atol=1e-5):
                return activation, gate_up
    raise Refusal(f"the gate of {type(module).__name__} is neither silu(gate) * up nor gpt-oss' "
                  "swiglu with limits; experts_implementation='grouped_mm' serves others",
                  "unsupported")


def _rows_by_k(module, weight):
    """N x K of each expert: a copy where the module has K x N."""
    weight = weight.detach()
    return weight.transpose(1, 2).contiguous() if module.is_transposed else weight


def _prepared(module):
    weights = (module.gate_up_proj, module.down_proj)
    places = [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in weights]
    kept = getattr(module, "_warpwright", None)
    if kept is None or kept[0] != places:
        for lacks, name in ((not module.has_gate, "no gate"),
                            (getattr(module, "has_post_expert_norm", False), "a norm behind each")):
            if lacks:
                raise Refusal(f"the experts of {type(module).__name__} have {name}; experts with a "
                              "gate and no norm are served", "unsupported")
        kept = (places, _gate_of(module), *(_rows_by_k(module, w) for w in weights))
        module._warpwright = kept
    return kept[1:]


def _forward(module, hidden_states, top_k_index, top_k_weights):
    (activation, gate_up), w13, w2 = _prepared(module)
    biases = (None, None)
    if module.has_bias:
        biases = (module.gate_up_proj_bias.detach(), module.down_proj_bias.detach())
    return mixture(hidden_states, top_k_index, top_k_weights, w13, w2, activation=activation,
                   gate_up=gate_up, bias13=biases[0], bias2=biases[1])


def register(name="warpwright"):
    """Makes our experts an implementation of transformers, under this name.

    Experts whose gate is SiLU (halves) or gpt-oss' are served, in the model's 16-bit type; what is
    not raises Refusal at the first call. Where a module keeps weights as K x N, as gpt-oss does, a
    copy with rows of K is made at the first call, and again when they change.
    """
    ALL_EXPERTS_FUNCTIONS.register(name, _forward)
