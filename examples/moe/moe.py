#!/usr/bin/env python3
"""A real mixture of experts by Warpwright: see README.md beside this file, or --help."""
import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["auto", "model", "cuda"], default="auto",
                        help="model: a tiny configuration in numpy; cuda: transformers' Qwen3-MoE")
    parser.add_argument("--expert-parallel", action="store_true",
                        help="experts on several ranks; on GPUs start it by torchrun")
    parser.add_argument("--text", type=pathlib.Path,
                        default=HERE.parent / "real_layer" / "text.txt")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--layers", type=int, default=48, help="of the model on a GPU (48)")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 8, 64, 4096])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("moe"),
                        help="folder of tables and plots of the GPU")
    options = parser.parse_args()

    why_not = None
    if options.device != "model":
        try:
            import torch  # pylint: disable=import-outside-toplevel
            import transformers  # noqa: F401  pylint: disable=import-outside-toplevel,unused-import
            if not torch.cuda.is_available():
                why_not = "there is no CUDA device"
        except ImportError as missing:
            why_not = f"{missing.name} is not installed"
        if why_not and options.device == "cuda":
            sys.exit(f"the GPU part cannot run: {why_not}")
    if options.device == "model" or why_not:
        import tiny  # pylint: disable=import-outside-toplevel
        if options.expert_parallel:
            for ranks in (1, 2, 3, 8):
                tiny.expert_parallel(ranks, options.seed)
        else:
            tiny.compare(options.text.read_bytes()[:48], options.seed)
            tiny.expert_parallel(2, options.seed)
        if why_not:
            print(f"did not run: the part with transformers' classes: {why_not}")
        return
    if options.expert_parallel:
        import torch_parallel  # pylint: disable=import-outside-toplevel
        torch_parallel.main(options)
    else:
        import qwen3  # pylint: disable=import-outside-toplevel
        qwen3.main(options)


if __name__ == "__main__":
    main()
