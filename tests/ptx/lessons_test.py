#!/usr/bin/env python3
"""What nvcc makes of the lessons' kernels, without a GPU.

    lessons_test.py ROOT

A lesson's header has its kernel first and what launches it on the model behind; only g++ takes the
latter. Compiles only the kernels, right and broken, ptxas included. Exits 77 where there is no
nvcc.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import ptx_test  # noqa: E402

# By lesson: its architecture, its namespace, and the kernel's call behind its parameters.
MAP = "const __grid_constant__ isa::TensorMap map, float* out"
# Where a header's second part begins.
LAUNCH = r"(?:inline|template <bool Meets = true>\n)\s*testing::Outcome run\("
PARAMS = "const __grid_constant__ Params p"
KERNELS = {
    1: ("90a", "transpose<B>(in, out)", "const float* in, float* out"),
    2: ("90a", "kernel<B>(map, out)", MAP),
    3: ("90a", "kernel<B>(map, out)", MAP),
    4: ("90a", "kernel<B>(map, out)", MAP),
    5: ("90a", "kernel<B>(a, b, out)",
        "const std::uint16_t* a, const std::uint16_t* b, float* out"),
    6: ("90a", "kernel<3, B>(p)", "const Params p"),
    7: ("90a", "kernel<1, B>(p)", PARAMS),
    8: ("90a", "Kernel<B>::run(p)", "const __grid_constant__ own::LinearParams p"),
    9: ("90a", "kernel<B>(p)", PARAMS),
    10: ("90a", "kernel<B>(p)", PARAMS),
    11: ("100a", "kernel<B>(p)", PARAMS),
    12: ("100a", "kernel<B>(in, out)", "const float* in, float* out"),
    13: ("90a", "kernel<B>(p)", PARAMS),
    14: ("90a", "kernel<B>(p)", PARAMS),
    15: ("90a", "kernel<B>(p)", PARAMS),
}


def source(root, architecture):
    """All kernels of an architecture as one source."""
    text = ""
    for number, (of, call, parameters) in KERNELS.items():
        if of != architecture:
            continue
        header, = (root / "examples" / "lessons").glob(f"{number:02}_*.h")
        lesson = header.read_text()
        kernel = re.split(LAUNCH, lesson)[0]
        text += re.sub(r"#pragma once\n", "", kernel)
        for broken in ("true", "false"):
            text += (f"__global__ void lesson_{number}_{broken}({parameters}) {{\n"
                     f"  {call.replace('B>', broken + '>')};\n}}\n")
        namespace = re.search(r"^namespace (lessons::\w+) \{$", lesson, re.M)[1]
        text += f"}}  // namespace {namespace}\n"
    return text


def main():
    root, nvcc = ptx_test.root_and_nvcc()
    with tempfile.TemporaryDirectory() as folder:
        builds = []
        for architecture in ("90a", "100a"):
            path = pathlib.Path(folder) / f"lessons_{architecture}.cu"
            path.write_text(source(root, architecture))
            builds.append(subprocess.Popen(
                [nvcc, "-std=c++20", "-O2", f"-I{root}", f"-I{root / 'examples'}",
                 "--expt-relaxed-constexpr", "-cubin", f"-arch=sm_{architecture}",
                 "-o", path.with_suffix(".cubin"), path],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        said = [build.communicate()[0] for build in builds]
    failed = [text for build, text in zip(builds, said) if build.returncode != 0 or "(C75" in text]
    print("\n".join(failed) or f"{2 * len(KERNELS)} kernels compile")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
