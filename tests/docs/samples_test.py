#!/usr/bin/env python3
"""Compiles the C++ samples of the documents as a reader would: with the includes that they show.

    samples_test.py ROOT CXX INCLUDE...

A sample is a fenced block of `cpp` that includes a header of warpwright, or the comment at the
head of warpwright.h. What it leaves to the reader (pointers, extents, a stream, `fail`) is declared
here. Warnings are errors: a sample that drops a refusal does not compile. The test also shows that
it can fail.
"""
import pathlib
import re
import subprocess
import sys

DOCUMENTS = ["README.md", "docs", "examples/own_kernel/README.md"]
# For samples that must be there, so that a change of the fences is seen.
EXPECTED = ["docs/gemm.md", "docs/grouped.md", "docs/moe.md", "warpwright/warpwright.h"]

READERS = """
int fail(const std::string& why);
"""
ARGUMENTS = ", ".join(
    f"[[maybe_unused]] void* {name}" for name in
    "a b c d x w y sa sb sx sw bias offsets stream ids router w13 w2".split()) + ", " + ", ".join(
    f"[[maybe_unused]] std::int64_t {name}" for name in
    "m n k total groups chunk hidden inner experts top_k".split())


def blocks(path):
    """The samples of a document with the lines on which they begin."""
    text = path.read_text()
    if path.suffix == ".h":
        lines = text.splitlines()
        head = [line for line in lines[:lines.index("#pragma once")] if line.startswith("//   ")]
        yield 1, "#include <warpwright/warpwright.h>\n" + "\n".join(line[5:] for line in head)
        return
    for match in re.finditer(r"^```cpp\n(.*?)^```$", text, re.M | re.S):
        if re.search(r"#include [<\"]warpwright/", match.group(1)):
            yield text[:match.start()].count("\n") + 2, match.group(1)


def program(sample):
    """A source file: the includes, what the reader has, and the rest as a function."""
    includes = [line for line in sample.splitlines() if line.startswith("#include")]
    rest = [line for line in sample.splitlines() if not line.startswith("#include")]
    if "constexpr" in sample and "launch" not in sample:  # declarations for a namespace
        return "\n".join(includes + rest) + "\n"
    if "#include <warpwright/c.h>" in includes:  # it brings nothing of C++'s library
        includes += ["#include <cstdint>", "#include <string>", "namespace warpwright {}"]
    usings = [line for line in rest if line.startswith("using namespace")]
    body = [line for line in rest if line not in usings]
    # Samples of device code name rooms without their namespace.
    if not usings:
        usings = ["using namespace warpwright;"]
    return "\n".join(includes + [READERS] + usings + [f"int sample({ARGUMENTS});",
                                                      f"int sample({ARGUMENTS}) {{"] +
                     body + ["return 0;", "}"]) + "\n"


def errors(compiler, includes, source):
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               "-Wno-unknown-pragmas", "-Wno-unused-const-variable", "-x", "c++", "-"]
    command += [f"-I{folder}" for folder in includes]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main():
    root, compiler, includes = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    paths = [root / "warpwright" / "warpwright.h"]
    for name in DOCUMENTS:
        paths += sorted((root / name).glob("*.md")) if (root / name).is_dir() else [root / name]
    failed = False
    seen = set()
    for path in paths:
        for line, sample in blocks(path):
            name = str(path.relative_to(root))
            seen.add(name)
            said = errors(compiler, includes, program(sample))
            print(f"{name}:{line}: {'does not compile' if said else 'compiles'}")
            if said:
                print(said)
                failed = True
    for name in EXPECTED:
        if name not in seen:
            print(f"{name} has no sample")
            failed = True
    # What the samples must not do: every line must be complained about, for the reason beside it.
    # (A name that is gone would be complained about too.)
    dropped = "unused-result"
    spoilt = {"launch(*plan(o, model_facts()), o, workspace, stream);": dropped,
              "launch(Plan{}, o, stream);": dropped,
              "prepare(Plan{}, workspace, stream);": dropped,
              "plan(o, model_facts());": dropped,
              "(void)Refusal{\"a sentence without a code\"};": "no matching function"}
    source = program("\n".join(["#include <warpwright/warpwright.h>", "using namespace warpwright;",
                                "GemmOperands o;", "Workspace workspace;"] + list(spoilt)))
    said = errors(compiler, includes, source)
    for number, line in enumerate(source.splitlines(), start=1):
        why = spoilt.get(line)
        if why is None:
            continue
        here = [text for text in said.splitlines() if text.startswith(f"<stdin>:{number}:")]
        if not any(why in text for text in here):
            print(f"compiles, and should not, because of {why}: {line}\n" + "\n".join(here))
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
