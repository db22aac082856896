"""transformers' Qwen3-MoE on a GPU with its experts swapped for ours, compared and measured.

The model has the configuration of Qwen3-30B-A3B, its real classes and random weights. One model is
in memory: ours in bf16 multiplies the very tensors of transformers, and fp8 takes their place.
"""
import json
import statistics
import time

import torch
import transformers
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from experts import Experts, block_scaled

THEIRS = ["eager", "batched_mm", "grouped_mm"]
OURS = ["warpwright", "warpwright_fp8"]


# What waits for lengths on the host, which a capture does not allow.
WAITS = {"eager": "it reads the experts' lengths on the host"}


class StandingLayer(transformers.cache_utils.StaticLayer):
    """A static cache whose next token stands at one place, so that a step can be repeated."""

    def __init__(self, max_cache_len, place):
        super().__init__(max_cache_len)
        self.place = place

    def update(self, key_states, value_states, *_, **__):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.keys.index_copy_(2, self.place, key_states)
        self.values.index_copy_(2, self.place, value_states)
        return self.keys, self.values


def configuration(layers):
    """Qwen3-30B-A3B."""
    return transformers.Qwen3MoeConfig(
        vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=layers,
        num_attention_heads=32, num_key_value_heads=4, head_dim=128, num_experts=128,
        num_experts_per_tok=8, moe_intermediate_size=768, norm_topk_prob=True,
        decoder_sparse_step=1, max_position_embeddings=40960, tie_word_embeddings=False)


def build(config, seed, device="cuda"):
    torch.manual_seed(seed)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = transformers.Qwen3MoeForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return model.eval()


def expert_modules(model):
    return [layer.mlp.experts for layer in model.model.layers]


def quantise(weights):
    """(e4m3 codes, float32 scales) of blocks of 128 x 128 of the last two dimensions, whose extents
    are multiples of that. An expert at a time: float32 of all would take gigabytes."""
    codes = torch.empty_like(weights, dtype=torch.float8_e4m3fn)
    experts, m, k = weights.shape
    scales = weights.new_empty((experts, m // 128, k // 128), dtype=torch.float32)
    for expert, (to, scale) in enumerate(zip(codes, scales)):
        blocks = weights[expert].float().reshape(m // 128, 128, k // 128, 128)
        scale.copy_(blocks.abs().amax((1, 3)).clamp_min(1e-12) / 448)
        to.copy_((blocks / scale[:, None, :, None]).reshape(m, k))
    return codes, scales


def register():
    """Makes our experts two more of transformers' implementations."""
    def forward(self, x, index, weights):
        return self.warpwright(x, index, weights)
    for name in OURS:
        ALL_EXPERTS_FUNCTIONS.register(name, forward)


def use(model, implementation):
    """Makes `implementation` that of the model. fp8 replaces the weights in bf16, for good."""
    for module in expert_modules(model):
        if implementation == "warpwright" and not hasattr(module, "warpwright"):
            module.warpwright = Experts(module.gate_up_proj.data, module.down_proj.data)
        elif implementation == "warpwright_fp8" and module.gate_up_proj is not None:
            module.warpwright = block_scaled(module.gate_up_proj.data, module.down_proj.data,
                                             quantise)
            module.gate_up_proj = module.down_proj = None
    model.config._experts_implementation = implementation


def logits_of(model, tokens):
    with torch.inference_mode():
        return model(input_ids=tokens, use_cache=False).logits.float()


def divergence(want, got):
    """(relative error, mean KL divergence in nats)."""
    p, q = want.log_softmax(-1), got.log_softmax(-1)
    return (((got - want).norm() / want.norm()).item(),
            (p.exp() * (p - q)).sum(-1).mean().item())


def capture(call, why_not=None):
    """(replay, None), or (call, why) where it cannot be captured."""
    if why_not is not None or not torch.cuda.is_available():
        return call, why_not
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except Exception as error:  # pylint: disable=broad-except
        torch.cuda.synchronize()
        return call, str(error).split("\n", maxsplit=1)[0]
    # A graph owns what it allocates, not what it is given: `call` keeps that.
    return lambda _=call: graph.replay(), None


def microseconds(calls, rounds=15):
    """Medians of the calls' times, alternated, so that all see the same clocks."""
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            repeat = max(1, min(50, int(0.02 / (time.perf_counter() - start))))
            begin.record()
            for _ in range(repeat):
                call()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / repeat)
    return {name: statistics.median(of) for name, of in times.items()}


def layer_calls(model, tokens, names, layers=4):
    """A call for each implementation: the experts of some layers one after another, more weights
    than L2 holds, by the same routing."""
    torch.manual_seed(tokens)
    modules = expert_modules(model)[:layers]
    x = torch.randn(tokens, model.config.hidden_size, device=model.device, dtype=torch.bfloat16)
    odds = torch.randn(tokens, model.config.num_experts, device=model.device).softmax(-1)
    weights, index = odds.topk(model.config.num_experts_per_tok)
    weights = (weights / weights.sum(-1, keepdim=True)).bfloat16()
    calls, notes = {}, {}
    for name in names:
        use(model, name)

        @torch.inference_mode()
        def call(name=name):
            model.config._experts_implementation = name
            for module in modules:
                module(x, index, weights)
        calls[name], notes[name] = capture(call, WAITS.get(name))
    return calls, notes, len(modules)


def model_calls(model, tokens, names):
    """A step of the whole model for each implementation: up to 64 tokens one of each of as many
    sequences behind 128 others, more a prefill of one sequence."""
    calls, notes = {}, {}
    ids = torch.randint(0, 256, (1, tokens) if tokens > 64 else (tokens, 1), device=model.device)
    for name in names:
        use(model, name)
        if tokens > 64:
            @torch.inference_mode()
            def call(name=name):
                model.config._experts_implementation = name
                model(input_ids=ids, use_cache=False, logits_to_keep=1)
        else:
            at = torch.tensor([128], device=ids.device)
            seen = (torch.arange(256, device=ids.device) <= 128).expand(tokens, 1, 1, -1)
            cache = transformers.Cache(layers=[StandingLayer(256, at) for _ in model.model.layers])

            @torch.inference_mode()
            def call(name=name, cache=cache, at=at, seen=seen):
                model.config._experts_implementation = name
                model(input_ids=ids, past_key_values=cache, use_cache=True, attention_mask=seen,
                      position_ids=at[None].expand(tokens, 1))
        calls[name], notes[name] = capture(call, WAITS.get(name))
    return calls, notes


def report(title, tokens, times, notes, layers=1, beside=None):
    """Rows of a table, and of its file. `beside`: what transformers' own took before."""
    rows = []
    theirs = min(t for name, t in {**(beside or {}), **times}.items() if name in THEIRS)
    for name, each in times.items():
        rows.append({"what": title, "tokens": tokens, "experts": name, "us": each / layers,
                     "tokens_per_second": tokens / each * 1e6 * (1 if title == "model" else layers),
                     "faster": theirs / each, "without_graph": notes.get(name)})
        print(f"| {title} | {tokens} | {name} | {rows[-1]['us']:.1f} | "
              f"{rows[-1]['tokens_per_second']:.0f} | "
              f"{theirs / each:.2f} | {notes.get(name) or ''} |", flush=True)
    return rows


def plot(rows, path):
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
        matplotlib.use("Agg")
        from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    except ImportError:
        print("did not run: the plot: matplotlib is not installed")
        return
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4))
    for axis, title in zip(axes, ("layer", "model")):
        for name in THEIRS + OURS:
            points = [(r["tokens"], r["tokens_per_second"]) for r in rows
                      if r["what"] == title and r["experts"] == name]
            if points:
                axis.loglog(*zip(*sorted(points)), marker="o", label=name)
                axis.legend()
        axis.set_xlabel("tokens")
        axis.set_ylabel("tokens/s")
        axis.set_title("experts of a layer" if title == "layer" else "the whole model")
        axis.grid(True, which="both", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


def main(options):
    options.out.mkdir(parents=True, exist_ok=True)
    register()
    config = configuration(options.layers)
    print(f"building Qwen3-30B-A3B with {options.layers} layers, random weights, "
          f"seed {options.seed}", flush=True)
    model = build(config, options.seed)
    text = torch.tensor(list(options.text.read_bytes()[:512]), device="cuda")[None]
    torch.cuda.synchronize()

    use(model, "eager")
    want = logits_of(model, text)
    print("| experts | relative error of the logits | KL, nats |\n|---|---:|---:|")
    agreement = {}

    def compare(name):
        use(model, name)
        agreement[name] = divergence(want, logits_of(model, text))
        print(f"| {name} | {agreement[name][0]:.5f} | {agreement[name][1]:.2e} |", flush=True)
    compare("grouped_mm")
    compare("warpwright")

    print("\n| what | tokens | experts | us | tokens/s | x the best of transformers | "
          "without a graph because |\n|---|---:|---|---:|---:|---:|---|", flush=True)
    rows = []
    kept = {}
    for tokens in options.tokens:
        # batched_mm copies the weights of every slot: 75 MB a token.
        names = [n for n in THEIRS if not (n == "batched_mm" and tokens > 64)] + ["warpwright"]
        calls, notes, layers = layer_calls(model, tokens, names)
        times = microseconds(calls)
        rows += report("layer", tokens, times, notes, layers)
        kept["layer", tokens] = {n: t for n, t in times.items() if n in THEIRS}
        del calls
        calls, notes = model_calls(model, tokens, names)
        times = microseconds(calls, rounds=7)
        rows += report("model", tokens, times, notes)
        kept["model", tokens] = {n: t for n, t in times.items() if n in THEIRS}
        del calls
        torch.cuda.empty_cache()

    compare("warpwright_fp8")  # from here on there are no weights in bf16
    torch.cuda.empty_cache()
    for tokens in options.tokens:
        calls, notes, layers = layer_calls(model, tokens, ["warpwright_fp8"])
        rows += report("layer", tokens, microseconds(calls), notes, layers, kept["layer", tokens])
        del calls
        calls, notes = model_calls(model, tokens, ["warpwright_fp8"])
        rows += report("model", tokens, microseconds(calls, 7), notes, 1, kept["model", tokens])
        del calls
    (options.out / "moe.json").write_text(json.dumps(
        {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
         "transformers": transformers.__version__, "layers": options.layers, "rows": rows,
         "agreement": agreement}, indent=1))
    plot(rows, options.out / "moe.svg")
