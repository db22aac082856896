"""Our experts as one more of transformers' implementations (transformers 5).

    import warpwright.transformers

    warpwright.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(..., experts_implementation="warpwright")

or, for a model that is there, ``model.set_experts_implementation("warpwright")``.
"""
import math

import torch
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from ._experts import mixture
from ._interop import Refusal


def _silu(gate, up, limit):
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(gate) * up


def _gelu(form):
    def gelu(gate, up, limit):
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
        return torch.nn.functional.gelu(gate, approximate=form) * up
    return gelu


def _swiglu_oai(gate, up, limit):
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


def _limits_of(module):
    """What a gate may be cut at: nothing, or a number of the module's or of its configuration's."""
    said = (getattr(module, "limit", None),
            getattr(getattr(module, "config", None), "swiglu_limit", None))
    return [math.inf, 7.0, *(float(limit) for limit in said if isinstance(limit, (int, float)))]


def _gate_of(module):
    """The words and numbers of ours that the module's gate is, found by a few values."""
    limits = _limits_of(module)
    values = torch.tensor([-12.0, -3, -0.5, 0.25, 2, 6.5, 9, 20,
                           *(1.5 * limit for limit in limits if math.isfinite(limit))])
    gate, up = (x.reshape(-1) for x in torch.meshgrid(values, values.flip(0), indexing="ij"))
    lies = {"halves": torch.cat([gate, up]), "interleaved": torch.stack([gate, up], -1).reshape(-1)}
    made = {gate_up: module._apply_gate(both) for gate_up, both in lies.items()}
    for activation, function in (("silu", _silu), ("swiglu_oai", _swiglu_oai),
                                 ("gelu", _gelu("tanh")), ("gelu_erf", _gelu("none"))):
        for limit in limits:
            for gate_up, theirs in made.items():
                if torch.allclose(theirs, function(gate, up, limit), rtol=1e-4, atol=1e-5):
                    return {"activation": activation, "gate_up": gate_up, "gate_limit": limit}
    raise Refusal(f"the gate of {type(module).__name__} is neither silu(gate) * up nor gelu(gate) "
                  "* up nor gpt-oss' swiglu, with no limit, 7 or the module's own; "
                  "experts_implementation='grouped_mm' serves others", "unsupported")


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
    gate, w13, w2 = _prepared(module)
    biases = (None, None)
    if module.has_bias:
        biases = (module.gate_up_proj_bias.detach(), module.down_proj_bias.detach())
    return mixture(hidden_states, top_k_index, top_k_weights, w13, w2, bias13=biases[0],
                   bias2=biases[1], **gate)


def register(name="warpwright"):
    """Makes our experts an implementation of transformers, under this name.

    Experts whose gate is SiLU, GELU in either form or gpt-oss', with a limit of the module's own
    (`limit`, or its configuration's `swiglu_limit`), are served, in the model's 16-bit type; what
    is not raises Refusal at the first call. Where a module keeps weights as K x N, as gpt-oss does,
    a copy with rows of K is made at the first call, and again when they change.
    """
    ALL_EXPERTS_FUNCTIONS.register(name, _forward)
