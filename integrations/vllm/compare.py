#!/usr/bin/env python3
"""vLLM with Warpwright beside vLLM as it comes, on one GPU: tokens a second, start-up, logits.

**Not yet run on a GPU**: only what needs none was tried (tests/integrations/compare_test.py).

    compare.py --model qwen3-30b            bf16; qwen3-30b-fp8, gpt-oss-120b
    compare.py --model qwen3-30b --out DIR  keeps each side's numbers, DIR/ours.json and so on

The model is a config.json by transformers' own class, with dummy weights and no tokenizer. Each
side is a process of its own, WARPWRIGHT_VLLM=1 or 0, that takes the same token ids, and writes its
numbers; ours runs twice. Floats of 8 and 16 bits get values by their names' hashes once they are
loaded, since dummy ones are so small that every logit is the same; 4-bit weights stay as vLLM fills
them, so for those the logits say little.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

MODELS = {
    "qwen3-30b": ("Qwen3MoeConfig", {
        "architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 48,
        "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
        "num_experts_per_tok": 8, "moe_intermediate_size": 768, "intermediate_size": 6144,
        "vocab_size": 151936, "norm_topk_prob": True, "max_position_embeddings": 40960,
        "torch_dtype": "bfloat16"}, None),
    "gpt-oss-120b": ("GptOssConfig", {
        "architectures": ["GptOssForCausalLM"], "num_hidden_layers": 36, "hidden_size": 2880,
        "intermediate_size": 2880, "num_local_experts": 128, "num_experts_per_tok": 4,
        "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "vocab_size": 201088, "max_position_embeddings": 131072, "torch_dtype": "bfloat16"},
        {"quant_method": "mxfp4", "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
            "lm_head"]}),
}
MODELS["qwen3-30b-fp8"] = (*MODELS["qwen3-30b"][:2], {
    "quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
    "modules_to_not_convert": ["lm_head"]})
BATCHES = (1, 8, 64, 256)
PREFILL = 8192
PROMPTS, PROMPT = 64, 256  # of the logits
# What the KL of the logits may be, a mean over prompts.
MOST = {"qwen3-30b": 1e-3, "qwen3-30b-fp8": 5e-3, "gpt-oss-120b": None}


def kl(ours, theirs):
    """Mean over rows of KL(theirs || ours), of log-probabilities; both are normalised first."""
    total = 0.0
    for p, q in zip(theirs, ours, strict=True):
        p, q = normalised(p), normalised(q)
        total += sum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True) if a > -math.inf)
    return total / len(theirs)


def normalised(logs):
    most = max(logs)
    whole = most + math.log(sum(math.exp(each - most) for each in logs))
    return [each - whole for each in logs]


def verdicts(model, ours, again, theirs):
    """(what, whether it holds) of the three sides."""
    found = [("ours twice: the same bits", ours["logits"] == again["logits"]
              and ours["tokens"] == again["tokens"])]
    off = kl(ours["logits"], theirs["logits"])
    most = MOST[model]
    if most is not None:
        found.append((f"KL of the logits {off:.2e}, at most {most:g}", off <= most))
    found.append(("ours ran: its line is in the log", bool(ours["said"])))
    found.append(("theirs ran without it", not theirs["said"]))
    return found


def table(ours, theirs):
    """The rows of the report, in Markdown."""
    rows = ["| | ours | vLLM's own | ours over it |", "|---|---:|---:|---:|"]
    for name in ours["speed"]:
        a, b = ours["speed"][name], theirs["speed"][name]
        ratio = b / a if name.endswith("s)") else a / b  # seconds: fewer are better
        rows.append(f"| {name} | {a:,.1f} | {b:,.1f} | {ratio:.3f} |")
    return "\n".join(rows)


def prompts(count, length, vocabulary, seed):
    """Token ids that are the same on every machine."""
    state, made = seed, []
    for _ in range(count * length):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        made.append((state >> 33) % vocabulary)
    return [made[i:i + length] for i in range(0, len(made), length)]


def arguments(given):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="qwen3-30b")
    parser.add_argument("--layers", type=int, help="fewer, to try it")
    parser.add_argument("--tokens", type=int, default=128, help="made for each prompt")
    parser.add_argument("--attention", help="vLLM's attention backend, of both sides")
    parser.add_argument("--out", type=pathlib.Path, help="keep each side's numbers there")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    made = parser.parse_args(given)
    for name in ("layers", "tokens"):
        value = getattr(made, name)
        if value is not None and value < 1:
            parser.error(f"--{name} is {value}; the nearest legal is 1")
    return made


def configuration(model, layers=None):
    """(the name of transformers' class, its fields) of a model."""
    kind, fields, quantisation = MODELS[model]
    fields = dict(fields)
    if layers is not None:
        fields["num_hidden_layers"] = layers
    if quantisation:
        fields["quantization_config"] = quantisation
    return kind, fields


def environment(side):
    """A side's own; the rest is the caller's."""
    return {**os.environ, "WARPWRIGHT_VLLM": "0" if side == "theirs" else "1",
            "VLLM_ALLOW_INSECURE_SERIALIZATION": "1"}


def spread(model):
    """Values by name for what is float: 1 over the root of a row's length, and scales to fit."""
    import hashlib
    import torch
    for name, weight in model.named_parameters():
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
        draw = torch.Generator(device=weight.device).manual_seed(seed)
        if weight.dtype == torch.float8_e4m3fn:
            made = torch.empty(weight.shape, dtype=torch.bfloat16, device=weight.device)
            weight.data.copy_((made.normal_(generator=draw) * 64).clamp(-448, 448))
        elif "scale" in name and weight.is_floating_point():
            # A scale serves a block of 128 along a row.
            weight.data.fill_(1 / (64 * (128 * weight.shape[-1]) ** 0.5))
        elif weight.dtype in (torch.bfloat16, torch.float16):
            if weight.dim() == 1:
                weight.data.fill_(0 if "bias" in name else 1)
            else:
                weight.data.normal_(std=weight.shape[-1] ** -0.5, generator=draw)


def measure(given, folder):
    """One side, in this process: its numbers."""
    from vllm import LLM, SamplingParams
    import transformers
    kind, fields = configuration(given.model, given.layers)
    getattr(transformers, kind)(**fields).save_pretrained(folder)
    more = {"attention_backend": given.attention} if given.attention else {}
    begin = time.monotonic()
    llm = LLM(model=str(folder), load_format="dummy", skip_tokenizer_init=True, seed=0,
              max_model_len=PREFILL + 256, max_num_seqs=max(BATCHES), enable_prefix_caching=False,
              max_logprobs=-1, **more)
    speed = {"start-up (s)": time.monotonic() - begin}
    llm.apply_model(spread)

    def run(ids, count, **how):
        began = time.monotonic()
        made = llm.generate([{"prompt_token_ids": each} for each in ids], SamplingParams(
            temperature=0, max_tokens=count, ignore_eos=True, detokenize=False, **how),
            use_tqdm=False)
        return time.monotonic() - began, made
    vocabulary = fields["vocab_size"]
    tokens = []
    for batch in BATCHES:
        ids = prompts(batch, 32, vocabulary, batch)
        run(ids, 8)
        short, (whole, made) = run(ids, 1)[0], run(ids, given.tokens)
        speed[f"batch {batch}, tokens a second"] = batch * (given.tokens - 1) / (whole - short)
        tokens.append([list(each.outputs[0].token_ids) for each in made])
    long = prompts(1, PREFILL, vocabulary, 99)
    run(long, 1)
    speed[f"prefill of {PREFILL}, tokens a second"] = PREFILL / min(run(long, 1)[0]
                                                                    for _ in range(3))
    logits = []
    for each in prompts(PROMPTS, PROMPT, vocabulary, 7):
        (made,) = run([each], 1, logprobs=-1, flat_logprobs=True)[1]
        flat = made.outputs[0].logprobs
        row = [-math.inf] * vocabulary
        for token, log in zip(flat.token_ids, flat.logprobs):
            row[token] = log
        logits.append(row)
    return {"speed": speed, "tokens": tokens, "logits": logits}


def side(given, name, out):
    """Runs a side in a process of its own; what it says goes to a file."""
    log = out / f"{name}.log"
    with log.open("w") as said:
        subprocess.run([sys.executable, __file__, "--side", str(out / f"{name}.json"),
                        *sys.argv[1:]], env=environment(name), check=True, stdout=said,
                       stderr=subprocess.STDOUT)
    made = json.loads((out / f"{name}.json").read_text())
    made["said"] = [line for line in log.read_text().splitlines() if "Warpwright " in line]
    return made


def main():
    given = arguments(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        if given.side:
            pathlib.Path(given.side).write_text(json.dumps(
                measure(given, pathlib.Path(folder))))
            return 0
        out = given.out or pathlib.Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        theirs, ours, again = (side(given, name, out) for name in ("theirs", "ours", "again"))
    print(f"{given.model}\n\n{table(ours, theirs)}\n")
    for line in dict.fromkeys(line.split("Warpwright ", 1)[1] for line in ours["said"]):
        print("Warpwright", line)
    found = verdicts(given.model, ours, again, theirs)
    for what, holds in found:
        print("yes" if holds else "NO ", what)
    return 0 if all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main())
