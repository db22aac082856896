#!/usr/bin/env python3
"""vLLM with Warpwright beside vLLM as it comes, on one GPU: tokens a second, start-up, logits.

    compare.py --model qwen3-30b --out DIR   bf16; qwen3-30b-fp8, gpt-oss-120b
    compare.py ... --side theirs             only one of "theirs" and "ours", and later the other
    compare.py bring DIR                     here: vLLM and what it imports in parts, for a machine
                                             without a network; there `script/carry.py unpack`

The model is a config.json by transformers' own class, with dummy weights and no tokenizer. Each
side is a process of its own, WARPWRIGHT_VLLM=1 or 0, that takes the same token ids. Floats of 8 and
16 bits get values by their names' hashes once they are loaded, since dummy ones are so small that
every logit is the same; 4-bit weights stay as vLLM fills them, so for those the logits say little.
"""
import argparse
import json
import os
import pathlib
import statistics
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
    "modules_to_not_convert": ["lm_head"] + [f"model.layers.{i}.mlp.gate" for i in range(48)]})
SIDES = ("theirs", "ours")
BATCHES = (1, 8, 64, 256)
PREFILL = 8192
PROMPTS, PROMPT = 64, 256  # of the logits
# What the KL of the logits may be, a mean over prompts.
MOST = {"qwen3-30b": 1e-3, "qwen3-30b-fp8": 5e-3, "gpt-oss-120b": None}

# vLLM 0.24.0 and what it imports, beside PyTorch 2.11, transformers 5 and what those import.
PACKAGES = """vllm==0.24.0 compressed-tensors==0.17.0 aiohappyeyeballs aiohttp aiosignal
annotated-doc annotated-types anyio apache-tvm-ffi astor attrs blake3 cachetools cbor2 certifi
charset-normalizer click cloudpickle depyf==0.20.0 dill diskcache==5.6.3 einops fastapi<0.137
frozenlist h11 httpcore httpcore2 httpx httpx2 idna ijson lark==1.2.2 llguidance<1.8
lm-format-enforcer==0.11.3 loguru msgspec multidict ninja openai openai-harmony opentelemetry-api
opentelemetry-sdk opentelemetry-semantic-conventions outlines_core==0.2.14 packaging
partial-json-parser prometheus_client propcache psutil py-cpuinfo pybase64 pydantic pydantic-core
pydantic-extra-types Pygments python-json-logger python-multipart PyYAML pyzmq regex requests rich
sentencepiece setproctitle sniffio starlette tiktoken tqdm truststore typing-inspection
typing_extensions urllib3 uvicorn uvloop watchfiles xgrammar yarl""".split()
# What these models never load of them; FlashInfer and CUTLASS's Python are not brought.
LEFT_OUT = ("_vllm_fa2_C", "vllm-rs", "fmha_sm100", "_flashmla", "_rust_tool", "_qutlass_C",
            "swagger-ui", "deep_gemm/_C.cpython-310", "deep_gemm/_C.cpython-311",
            "deep_gemm/_C.cpython-313", "deep_gemm/_C.cpython-314")


def bring(to):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "script"))
    import carry
    carry.bring(to, PACKAGES, lambda name: not any(each in name for each in LEFT_OUT))


def kl(ours, theirs):
    """Mean over rows of KL(theirs || ours), of log-probabilities; both are normalised first."""
    import numpy
    p, q = (normalised(numpy.asarray(each, dtype=numpy.float64)) for each in (theirs, ours))
    if p.shape != q.shape:
        raise ValueError(f"logits of {p.shape} and of {q.shape}")
    with numpy.errstate(invalid="ignore"):  # 0 times infinity is 0 here
        each = numpy.where(p > -numpy.inf, numpy.exp(p) * (p - q), 0)
    return float(each.sum(axis=1).mean())


def normalised(logs):
    import numpy
    most = logs.max(axis=1, keepdims=True)
    return logs - most - numpy.log(numpy.exp(logs - most).sum(axis=1, keepdims=True))


def verdicts(model, ours, theirs):
    """(what, whether it holds) of both sides."""
    found = [("ours twice: the same bits", ours["same_twice"])]
    off = kl(ours["logits"], theirs["logits"])
    most = MOST[model]
    found.append((f"KL of the logits {off:.2e}" + (f", at most {most:g}" if most else ""),
                  most is None or off <= most))
    found.append(("ours ran: its line is in the log",
                  any("serves" in line for line in ours["said"])))
    found.append(("theirs ran without it", not theirs["said"]))
    return found


def table(ours, theirs):
    """The rows of the report, in Markdown: medians, and the spread of each side."""
    rows = ["| | ours | vLLM's own | ours over it |", "|---|---:|---:|---:|"]
    for name in ours["speed"]:
        each = [[statistics.median(side["speed"][name]), min(side["speed"][name]),
                 max(side["speed"][name])] for side in (ours, theirs)]
        a, b = each[0][0], each[1][0]
        ratio = b / a if name.endswith("s)") else a / b  # seconds: fewer are better
        said = [f"{mid:,.1f} ({low:,.1f}-{high:,.1f})" if low < high else f"{mid:,.1f}"
                for mid, low, high in each]
        rows.append(f"| {name} | {said[0]} | {said[1]} | {ratio:.3f} |")
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
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement")
    parser.add_argument("--attention", help="vLLM's attention backend, of both sides")
    parser.add_argument("--side", choices=SIDES, help="only this one (default: both)")
    parser.add_argument("--out", type=pathlib.Path, help="keep each side's numbers there")
    parser.add_argument("--measure", type=pathlib.Path, help=argparse.SUPPRESS)
    made = parser.parse_args(given)
    for name in ("layers", "tokens", "rounds"):
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
    import importlib.util
    made = {**os.environ, "WARPWRIGHT_VLLM": "0" if side == "theirs" else "1",
            "VLLM_ALLOW_INSECURE_SERIALIZATION": "1"}
    if importlib.util.find_spec("flashinfer") is None:
        made["VLLM_USE_FLASHINFER_SAMPLER"] = "0"
    return made


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


class Side:
    """vLLM in this process with one of the models."""

    def __init__(self, given, folder):
        from vllm import LLM
        import transformers
        kind, fields = configuration(given.model, given.layers)
        getattr(transformers, kind)(**fields).save_pretrained(folder)
        self.vocabulary, self.rounds = fields["vocab_size"], given.rounds
        more = {"attention_backend": given.attention} if given.attention else {}
        begin = time.monotonic()
        self.llm = LLM(
            model=str(folder), load_format="dummy", skip_tokenizer_init=True, seed=0,
            max_model_len=PREFILL + 256, max_num_seqs=max(BATCHES), enable_prefix_caching=False,
            max_logprobs=-1, **more)
        self.speed = {"start-up (s)": [time.monotonic() - begin]}
        self.llm.apply_model(spread)

    def run(self, ids, count, **how):
        """(seconds, what was made) of `count` tokens behind each prompt."""
        from vllm import SamplingParams
        began = time.monotonic()
        made = self.llm.generate([{"prompt_token_ids": each} for each in ids], SamplingParams(
            temperature=0, max_tokens=count, ignore_eos=True, detokenize=False, **how),
            use_tqdm=False)
        return time.monotonic() - began, [each.outputs[0] for each in made]

    def decode(self, batch, count):
        ids = prompts(batch, 32, self.vocabulary, batch)
        for warm in (1, 8, 1, count):  # kernels are compiled for sizes as they come
            self.run(ids, warm)
        rates, tokens = [], []
        for _ in range(self.rounds):
            short, (whole, made) = self.run(ids, 1)[0], self.run(ids, count)
            rates.append(batch * (count - 1) / (whole - short))
            tokens.append([list(each.token_ids) for each in made])
        self.speed[f"batch {batch}, tokens a second"] = rates
        return all(each == tokens[0] for each in tokens)

    def prefill(self):
        long = prompts(1, PREFILL, self.vocabulary, 99)
        self.run(long, 1)
        self.speed[f"prefill of {PREFILL}, tokens a second"] = [
            PREFILL / self.run(long, 1)[0] for _ in range(self.rounds)]

    def logits(self, count=PROMPTS):
        import numpy
        rows = numpy.full((count, self.vocabulary), -numpy.inf, dtype=numpy.float32)
        for row, each in zip(rows, prompts(count, PROMPT, self.vocabulary, 7)):
            (made,) = self.run([each], 1, logprobs=-1, flat_logprobs=True)[1]
            row[numpy.asarray(made.logprobs.token_ids)] = made.logprobs.logprobs
        return rows


def measure(given, folder):
    """One side, in this process: its numbers into the file, the logits beside it."""
    import numpy
    side = Side(given, folder)
    say = {"speed": side.speed, "same_twice": True}
    for batch in BATCHES:
        same = side.decode(batch, given.tokens)
        # Tokens of one batch come together or one after the other, as vLLM schedules: only one by
        # itself is the same work twice.
        say["same_twice"] &= same or batch > 1
        say[f"same_tokens_{batch}"] = same
        print(side.speed, flush=True)
    side.prefill()
    logits = side.logits(PROMPTS if MOST[given.model] else 8)
    say["same_twice"] &= bool((logits[:8] == side.logits(8)).all())
    numpy.save(given.measure.with_suffix(".npy"), logits)
    given.measure.write_text(json.dumps(say))


def start(given, name):
    """Runs a side in a process of its own; what it says goes to a file."""
    file = given.out / f"{name}.json"
    with file.with_suffix(".log").open("w") as said:
        done = subprocess.run([sys.executable, __file__, "--measure", file, *sys.argv[1:]],
                              env=environment(name), check=False, stdout=said,
                              stderr=subprocess.STDOUT)
    if done.returncode != 0:
        lines = file.with_suffix(".log").read_text().splitlines()
        sys.exit("\n".join(lines[-40:]) + f"\n{name} ended with {done.returncode}")


def read(given, name):
    """A side's numbers; None where it has not run."""
    import numpy
    file = given.out / f"{name}.json"
    if not file.exists():
        return None
    log = file.with_suffix(".log").read_text()
    return {**json.loads(file.read_text()), "logits": numpy.load(file.with_suffix(".npy")),
            "said": [line.split("Warpwright ", 1)[1] for line in log.splitlines()
                     if "Warpwright " in line],
            "chose": [line for line in log.splitlines() if "Using " in line]}


def main():
    if sys.argv[1:2] == ["bring"] and len(sys.argv) == 3:
        bring(pathlib.Path(sys.argv[2]))
        return 0
    given = arguments(sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        if given.measure:
            measure(given, pathlib.Path(folder))
            return 0
        given.out = given.out or pathlib.Path(folder)
        given.out.mkdir(parents=True, exist_ok=True)
        for name in SIDES if given.side is None else [given.side]:
            start(given, name)
        theirs, ours = (read(given, name) for name in SIDES)
    if theirs is None or ours is None:
        return 0
    print(f"{given.model}\n\n{table(ours, theirs)}\n")
    for line in dict.fromkeys(ours["said"]):
        print("Warpwright", line)
    for line in dict.fromkeys(theirs["chose"]):
        print("vLLM's own:", line)
    found = verdicts(given.model, ours, theirs)
    for what, holds in found:
        print("yes" if holds else "NO ", what)
    return 0 if all(holds for _, holds in found) else 1


if __name__ == "__main__":
    sys.exit(main())
