#!/usr/bin/env python3
"""Which usual rows of Hopper's table plans take: draws products of LLM inference and plans each.

    script/rows_used.py BUILD [--draws 2000] [--seed 1] [--taken]

Shapes are those of layers of language models, whole and split among GPUs, of 1 to 16,384 tokens: as
dense products, in groups as routers fill them, and as mixtures of experts, of every type, scaling
and weight format, planned for an H200 and an H100. The shapes that `bench` has built in are there
too. Prints the usual rows that no plan takes, and pages and tests that name one. With --taken also
how often each row was taken. A row that nobody takes and nothing names may leave the usual build
(`more` in place of `common`). BUILD has the targets warpwright_exe and warpwright_python.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEVICES = ("h200", "h100")

# Hidden and inner columns, those of queries, and of keys and values, as of Llama 3, Qwen 3,
# Gemma 3, Mistral, Phi, DeepSeek-V3 and GPT-OSS.
LAYERS = [(2048, 8192, 2048, 1024), (3072, 8192, 3072, 1024), (4096, 14336, 4096, 2048),
          (4096, 12288, 4096, 2048), (5120, 25600, 8192, 2048), (5376, 21504, 4096, 4096),
          (6144, 16384, 6144, 2048), (7168, 18432, 24576, 576), (8192, 28672, 8192, 2048),
          (2880, 2880, 4096, 1024), (16384, 53248, 16384, 2048)]
VOCABULARIES = [32000, 128256, 151936, 262208]
# Experts, top-k, hidden, inner.
EXPERTS = [(128, 8, 2048, 768), (8, 2, 4096, 14336), (128, 8, 4096, 1536), (256, 8, 7168, 2048),
           (128, 4, 2880, 2880), (32, 4, 2880, 2880), (64, 6, 2048, 1408), (160, 6, 5120, 1536)]
# What bench has built in.
DENSE = [(8192, 8192, 8192), (4096, 4096, 4096), (2048, 2048, 2048), (1024, 1024, 1024),
         (4096, 7168, 2048), (4096, 2112, 7168), (4096, 24576, 1536), (4096, 32768, 512),
         (4096, 7168, 16384), (128, 7168, 4096), (64, 4096, 7168), (16, 24576, 1536),
         (8192, 8192, 1024), (16384, 4096, 4096)]
GROUPED = ([(8, 8 * t, 4096, 4096) for t in (1, 2, 4, 8, 16, 32, 48, 64, 128, 256, 512, 1024, 4096)]
           + [(32, 32 * t, n, k) for t in (16, 64, 128, 512)
              for n, k in ((4096, 7168), (7168, 2048))])

# For products: the type of A, and of B or the form of packed weights; scales.
PLAIN = [("bf16", "bf16", None), ("f16", "f16", None)]
FP8 = [("e4m3", "e4m3", s) for s in ("tensor", "row_column", "blockwise")]
MIXED = [("e5m2", "e4m3", "tensor"), ("e4m3", "e5m2", "tensor"), ("e5m2", "e5m2", "tensor")]
PACKED = [("e4m3", form, s) for form in ("ex", "sm", "zeros", "mxf4")
          for s in ("tensor", "row_column", "blockwise")]
PACKED += [("bf16", form, None) for form in ("ex-bf16", "zeros-bf16", "mxf4-bf16", "nvf4-bf16")]
PACKED += [("f16", form, None) for form in ("ex-fp16", "zeros-fp16", "mxf4-fp16", "nvf4-fp16")]
TYPES = 4 * PLAIN[:1] + PLAIN + 3 * FP8 + MIXED[:1] + PACKED


class Draw:
    def __init__(self, wp, seed):
        self.wp = wp
        self.random = random.Random(seed)

    def one(self, of):
        return self.random.choice(list(of))

    def chance(self, of):
        return self.random.random() < of

    def tokens(self, most):
        """Up to two to this power; half of them powers of two."""
        if self.chance(0.5):
            return 2 ** self.random.randint(0, most)
        return int(2 ** self.random.uniform(0, most))

    def weights(self, form, n, k, experts=None):
        wp = self.wp
        if form in ("bf16", "f16", "e4m3", "e5m2"):
            return wp.Spec((n, k) if experts is None else (experts, n, k), form)
        if form.startswith("zeros"):
            return wp.PackedWeights.spec(n, k, experts, encoding="ex" + form[5:], zero_points=True)
        return wp.PackedWeights.spec(n, k, experts, encoding=form)

    def block(self):
        """What a scale of blocks serves, in most cases 128 x 128."""
        return self.one([128] * 6 + [64, 32])

    def scales(self, scaling, m, n, k, experts=None, packed=False):
        f32 = "f32"
        if scaling is None or scaling == "tensor":
            return {} if scaling is None else {"scale_a": 1.0, "scaling": "tensor"}
        spec = self.wp.Spec
        block = 128 if packed else self.block()
        of_b = (n,) if scaling == "row_column" else (-(-n // block), -(-k // block))
        if experts is not None:
            of_b = (experts, *of_b)
        found = {"scaling": scaling,
                 "scale_a": spec((m,) if scaling == "row_column" else (m, -(-k // block)), f32)}
        if not packed:
            found["scale_b"] = spec(of_b, f32)
        return found

    def product(self, m, n, k, types, experts=None, gated=False, plain=True):
        """Arguments of wp.plan."""
        a, form, scaling = types
        packed = form not in ("bf16", "f16", "e4m3", "e5m2")
        spec = self.wp.Spec
        arguments = [spec((m, k), a), self.weights(form, n, k, experts)]
        if experts is not None:
            arguments.append(spec((experts + 1,), "int32"))
        how = self.scales(scaling, m, n, k, experts, packed)
        if plain:
            return arguments, how
        narrow = a in ("e4m3", "e5m2")
        if gated and self.chance(0.5):
            how |= {"gated": True, "activation": "silu"}
            if narrow and not packed and self.chance(0.6):
                how |= self.one([{"quantise_d": "1x128"}, {"dtype": "e4m3"}])
        elif narrow and not packed and self.chance(0.2):
            how |= self.one([{"accumulation": "promoted"}, {"quantise_d": "1x128"},
                             {"dtype": "f32"}, {"dtype": "f16"}, {"dtype": "e4m3"}])
        elif self.chance(0.1):
            how["dtype"] = self.one(["bf16", "f16"] if packed else ["f32", "bf16", "f16"])
        if packed and self.chance(0.3):
            how["sums"] = self.one(["exact", "folded"])
        if experts is None and not packed and not narrow and self.chance(0.1):
            turned = self.one([(0,), (1,), (0, 1)])
            for i in turned:
                rows, columns = arguments[i].shape
                arguments[i] = spec((rows, columns), arguments[i].dtype, strides=(1, rows))
        if self.chance(0.1):
            how["batch_invariant"] = True
        if experts is None and "gated" not in how and not packed and self.chance(0.05):
            how["c"] = spec((m, n), how.get("dtype", "bf16" if narrow else a))
        if experts is not None:
            how["expected_lengths"] = self.one(["routed", "routed", "equal", "zipf:1"])
            if self.chance(0.25):
                how |= {"rows": spec((m,), "int32")}
        return arguments, how

    def dense(self):
        hidden, inner, q, kv = self.one(LAYERS)
        split = self.one([1, 1, 2, 4, 8])
        n, k, gated = self.one([
            ((q + kv) // split, hidden, False), (hidden, q // split, False),
            (2 * inner // split, hidden, True), (hidden, inner // split, False),
            (self.one(VOCABULARIES) // split, hidden, False)])
        return self.product(self.tokens(14), n // 32 * 32, k // 32 * 32, self.one(TYPES),
                            gated=gated, plain=False)

    def grouped(self):
        experts, top_k, hidden, inner = self.one(EXPERTS)
        ranks = self.one([r for r in (1, 1, 2, 4, 8, 32) if experts // r >= 4])
        n, k, gated = self.one([(2 * inner, hidden, True), (hidden, inner, False)])
        rows = max(1, self.tokens(14) * top_k // ranks)
        return self.product(rows, n, k, self.one(TYPES), experts // ranks, gated, False)

    def mixture(self):
        """Arguments of wp.plan_moe."""
        spec = self.wp.Spec
        experts, top_k, hidden, inner = self.one(EXPERTS)
        tokens = self.tokens(13)
        quantised = 3 * FP8[1:] + [types for types in PACKED if types[2] != "tensor"]
        of_x, form, scaling = self.one(PLAIN + quantised)
        x = spec((tokens, hidden), "bf16" if of_x == "e4m3" else of_x)
        weights = [self.weights(form, 2 * inner, hidden, experts),
                   self.weights(form, hidden, inner, experts)]
        how = {} if scaling is None else {"scaling": scaling}
        if form == "e4m3":
            blocks, block = scaling == "blockwise", self.block()
            for name, n, k in (("scale_w13", 2 * inner, hidden), ("scale_w2", hidden, inner)):
                how[name] = spec((experts, -(-n // block), -(-k // block)) if blocks
                                 else (experts, n), "f32")
        if self.chance(0.2):
            how["by_index"] = self.chance(0.5)
        if self.chance(0.1):
            how["batch_invariant"] = True
        return [x, spec((tokens, top_k), "int32"), spec((tokens, top_k), "f32"), *weights], how

    def all(self, draws):
        """(mixture or not, arguments, keywords)"""
        for shape in DENSE:
            yield from ((False, *self.product(*shape, types)) for types in PLAIN + FP8)
        for i in range(4, 10):
            yield from ((False, *self.product(2 ** i, 4096, 4096, types)) for types in PACKED)
        for experts, m, n, k in GROUPED:
            yield from ((False, *self.product(m, n, k, types, experts))
                        for types in PLAIN + FP8 + PACKED)
        for _ in range(draws):
            kind = self.random.random()
            if kind < 0.8:
                yield (False, *(self.dense() if kind < 0.45 else self.grouped()))
            else:
                yield (True, *self.mixture())


def load(build):
    """The package of this tree with the build's module."""
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "warpwright").mkdir()
    for source in (ROOT / "python/warpwright").glob("*.py"):
        (folder / "warpwright" / source.name).symlink_to(source)
    module = build.resolve() / "python/_core.abi3.so"
    (folder / "warpwright" / module.name).symlink_to(module)
    sys.path.insert(0, str(folder))
    import warpwright  # pylint: disable=import-outside-toplevel
    return warpwright


def pages_of(kernel):
    """Pages, examples and tests that name it."""
    named = subprocess.run(["git", "-C", str(ROOT), "grep", "-lw", kernel, "--", "docs", "examples",
                            "tests", ":!docs/log"], capture_output=True, text=True, check=False)
    return named.stdout.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--taken", action="store_true")
    options = parser.parse_args()
    listed = subprocess.run([options.build / "bin/warpwright", "kernels", "--built", "--json"],
                            capture_output=True, text=True, check=True)
    usual = [k["kernel"] for k in json.loads(listed.stdout)["kernels"]
             if k["family"] == "hopper_gemm"]
    wp = load(options.build)
    taken, refusals, asked = collections.Counter(), collections.Counter(), 0
    for is_mixture, arguments, how in Draw(wp, options.seed).all(options.draws):
        asked += 1
        for device in DEVICES:
            try:
                if is_mixture:
                    taken.update(set(wp.plan_moe(*arguments, device=device, **how).kernels))
                else:
                    taken[wp.plan(*arguments, device=device, **how).kernel] += 1
            except wp.Refusal as refusal:
                refusals[str(refusal)] += 1
    print(f"{asked} products for {len(DEVICES)} devices, {refusals.total()} plans refused; "
          f"{len(usual)} usual rows, of which no plan takes:")
    for name in usual:
        if name not in taken:
            pages = pages_of(name)
            print("  " + name + ("  named in " + ", ".join(pages) if pages else ""))
    if options.taken:
        for name, times in taken.most_common():
            print(f"{times:6}  {name}")
        for refusal, times in refusals.most_common(12):
            print(f"{times:6} refused: {refusal}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
