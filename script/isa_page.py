#!/usr/bin/env python3
"""Writes docs/isa.md, the list of the instructions, from the docstrings of warpwright/isa/*.h.

    isa_page.py            writes the page of this checkout
    isa_page.py --print    prints it
    isa_page.py --self-test

A docstring is the run of "///" lines above a function, a struct, a class, an enum or an alias, as
tests/lint wants one above each function. For a declaration the page shows the name, what it is
given, and what it returns; for the docstring all. A function's section of the PTX manual is the one
that its docstring names, or the one before where it says "The same", or the one of its header. The
test isa_page fails where the page is another one.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Headers in the order of the page; the others have no instruction that a kernel calls.
ORDER = ["config", "thread", "memory", "mbarrier", "barrier", "fence", "tma", "copy_async",
         "tensor_map", "fragment", "wgmma", "mma", "warp", "tcgen05", "tcgen05_scaled",
         "tcgen05_memory", "clc", "draw", "atomic", "numeric", "call", "trace"]
LEFT_OUT = ["bounded_wait", "tcgen05_operands", "wgmma_operands"]
# What the instructions themselves call, and how the GPU's timelines lie in memory.
INTERNAL = re.compile(r"\btrace_|^Trace")

HEAD = """# The instructions: `warpwright/isa/`

<!-- Written by script/isa_page.py from the docstrings: change those, and run it. -->

| you want | look at |
|---|---|
| to bring a tile into shared memory | [tma.h](#tmah); before sm_90 [copy_async.h](#copy_asynch) |
| to wait for it | [mbarrier.h](#mbarrierh) |
| to multiply on Hopper | [wgmma.h](#wgmmah) |
| on Blackwell | [tcgen05.h](#tcgen05h) |
| there with scales of blocks | [tcgen05_scaled.h](#tcgen05_scaledh) |
| elsewhere | [mma.h](#mmah) |
| to read or write a byte | [memory.h](#memoryh): views, never a raw pointer |
| to order plain stores before an asynchronous read | [fence.h](#fenceh) |
| to store a tile | [tma.h](#tmah) `tensor_store`, [warp.h](#warph) `store_matrix` |

Every function here has two bodies: PTX under nvcc, a call into the [machine model](model.md) under
g++. A kernel is written only with these, and then runs on both ([testing.md](testing.md),
[examples/own_kernel](../examples/own_kernel/README.md)). All names are in the namespace
`warpwright::isa`. Addresses in shared memory are numbers, `SharedAddress`. A last parameter of type
`Site` is left out below: it is the source line that calls, and nobody passes it. Numbers such as
9.7.13.15 are sections of the PTX ISA manual, version 9.1.
"""


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def split_at_commas(text):
    """The parts between the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        if letter in "(<{[":
            depth += 1
        elif letter in ")>}]" and text[i - 1:i + 1] != "->":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part.strip() for part in parts + [text[start:]] if part.strip()]


def closing(text, start, opening="(", end=")"):
    """The place behind the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += {opening: 1, end: -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError(f"a bracket without an end: {text}")


def template_parameters(declaration):
    """("<int N, bool Transpose = false>", the rest): what a caller may give, no conditions."""
    match = re.match(r"template\s*<", declaration)
    if not match:
        return "", declaration
    end = closing(declaration, match.end() - 1, "<", ">")
    parts = [p for p in split_at_commas(declaration[match.end():end - 1])
             if not re.match(r"(class|typename)\s*=", p)]
    return f"<{', '.join(re.sub(r'^(class|typename) ', '', p) for p in parts)}>", \
        declaration[end:].strip()


def shown(declaration, owner):
    """A declaration in one line, without what a caller does not give."""
    text = squeezed(re.sub(r"\[\[[\w:]+\]\]|\bWW_DEVICE\b|\bexplicit\b|\bfriend\b|/\*.*?\*/", "",
                           declaration))
    given, text = template_parameters(text)
    named = re.match(r"(?:struct|class|enum class)\s+(?:alignas\(.*?\)\s*)?(\w+)", text)
    if named:
        return named[1] + given
    if text.startswith("using "):
        return text.split("=")[0].removeprefix("using ").strip() + given
    call = re.match(r"(.*?)([~\w]+|operator\S+?)\(", text)
    if not call:
        return re.split(r"[={;]", text)[0].strip()
    start = call.end() - 1
    end = closing(text, start)
    parameters = [p for p in split_at_commas(text[start + 1:end - 1])
                  if not re.match(r"(isa::)?Site\b", p)]
    returned = re.sub(r"\b(constexpr|inline|static)\b", "", call[1]).strip()
    arrow = f" -> {returned}" if returned not in ("", "void") else ""
    prefix = f"{owner}::" if owner else ""
    return f"{prefix}{call[2]}{given}({', '.join(parameters)}){arrow}"


def items(text):
    """(declaration, docstring, owner) of everything that has a docstring outside of detail."""
    lines = [re.sub(r"\s*// NOLINT.*", "", line) for line in text.splitlines()]
    doc, owner, hidden, private, i = [], "", False, False, 0
    while i < len(lines):
        line = lines[i]
        if re.match(r"namespace detail", line):
            hidden = True
        elif re.match(r"}\s*// namespace detail", line):
            hidden = False
        elif re.match(r"};", line):
            owner, private = "", False
        stripped = line.strip()
        if stripped.startswith("///") and not stripped.startswith("///<"):
            doc.append(stripped[3:].strip())
        elif stripped in ("private:", "public:"):
            private = stripped == "private:"
        elif stripped.startswith("#"):
            pass
        elif not stripped:
            doc = []
        elif doc:
            declaration = line
            while not re.search(r"[{;]\s*(//.*)?$|\{.*\}\s*$", declaration):
                i += 1
                declaration += " " + lines[i]
            head = re.match(r"(?:template\s*<.*?>\s*)?(?:struct|class)\s+"
                            r"(?:alignas\(.*?\)\s*)?(\w+)", squeezed(declaration))
            if not hidden and not private and not stripped.startswith("friend"):
                yield squeezed(declaration), " ".join(doc), "" if head else owner
            if head and "};" not in declaration and not declaration.rstrip().endswith(";"):
                owner = head[1]
            doc = []
        i += 1


def sections(text):
    return list(dict.fromkeys(re.findall(r"\b(?:PTX ISA |and |, )?(\d+\.\d+\.\d+(?:\.\d+)*)\b",
                                         text)))


def introduction(text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    return "\n\n".join(squeezed(part) for part in "\n".join(lines).split("\n\n"))


def header_part(name, text):
    about = introduction(text)
    rows, before = [], []
    for declaration, doc, owner in items(text):
        call = shown(declaration, owner)
        if INTERNAL.search(call):
            continue
        source = sections(doc)
        if not source and "(" in call:
            source = before if doc.startswith("The same") else sections(about)
        before = source
        cell = doc.replace("|", "\\|")
        rows.append(f"| `{call}` | {cell} | {', '.join(source)} |")
    if not rows:
        return ""
    return (f"\n## {name}.h\n\n{about}\n\n| | what it does; shapes, units, alignment | PTX ISA |\n"
            "|---|---|---|\n" + "\n".join(rows) + "\n")


def page(root):
    folder = root / "warpwright" / "isa"
    there = {path.stem for path in folder.glob("*.h")}
    unknown = there - set(ORDER) - set(LEFT_OUT)
    if unknown:
        sys.exit(f"script/isa_page.py does not know where {', '.join(sorted(unknown))} belongs")
    return HEAD + "".join(header_part(name, (folder / f"{name}.h").read_text(encoding="utf-8"))
                          for name in ORDER)


EXAMPLE = """// Barriers of things (PTX ISA 9.7.1).
//
// More words.
#pragma once

namespace detail {
/// Hidden.
WW_DEVICE void hidden();
}  // namespace detail

/// One | two.
template <int N, class T,
          class = decltype(f(1))>
WW_DEVICE int call(SharedAddress to, [[maybe_unused]] const Words<4>& value = {},
                   [[maybe_unused]] Site site = Site::here()) {
}

/// A view (PTX ISA 9.7.2.3).
template <class T>
struct View {
  /// Loads (ld, PTX ISA 9.7.2.4).
  WW_DEVICE T load(int i = 0, Site site = Site::here()) const {
  }
  /// The same, once more.
  WW_DEVICE View again();

 private:
  /// Nobody's.
  WW_DEVICE void inner();
};
/// Internal.
struct TraceRing {
};

/// Single.
#if WW_GPU
struct Single {
"""


def self_test():
    want = """
## a.h

Barriers of things (PTX ISA 9.7.1).

More words.

| | what it does; shapes, units, alignment | PTX ISA |
|---|---|---|
| `call<int N, T>(SharedAddress to, const Words<4>& value = {}) -> int` | One \\| two. | 9.7.1 |
| `View<T>` | A view (PTX ISA 9.7.2.3). | 9.7.2.3 |
| `View::load(int i = 0) -> T` | Loads (ld, PTX ISA 9.7.2.4). | 9.7.2.4 |
| `View::again() -> View` | The same, once more. | 9.7.2.4 |
| `Single` | Single. |  |
"""
    made = header_part("a", EXAMPLE)
    if made != want:
        print(f"wanted{want}\nmade{made}")
        return 1
    print("isa_page: as it should be")
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    made = page(ROOT)
    if sys.argv[1:] == ["--print"]:
        print(made, end="")
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    (ROOT / "docs" / "isa.md").write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
