#!/usr/bin/env python3
"""The rules of the house that a program can read off the sources.

    lint.py ROOT          checks the tree, prints every finding, exits 1 if there is one
    lint.py --self-test   shows that each rule finds what it is there to find

Rules: switches (no #if above isa/), floors (a room includes only rooms below it), machine (kernel/,
tile/ and pipeline/ speak to the machine only through isa/), length (150 lines a lesson, 100
columns; functions have clang-tidy's limits), bits (no function of <bit> that nvcc makes 0),
families (nothing asks which family a kernel is of: a virtual function of Family does), fields
(those of a product are listed once, all of them, and nobody compares, hashes or writes products by
a list of their own), dates (measurements with a date stand only in docs/log/ and the CHANGELOG),
unfinished (no notes of unfinished work), rows (240 Hopper kernels in the usual build at most),
docstring (every instruction of isa/ has one), clobber (an instruction of isa/ that touches memory
or orders it is volatile and clobbers memory), prose (comments, strings and pages say "only", not
"alone", and "for X", not "Of X" where a sentence or clause begins).
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FLOORS = ["numeric", "layout", "atom", "facts", "model", "isa", "ptx", "pipeline", "tile", "kernel",
          "plan", "weights", "device", "simulation", "pictures", "reference"]
CLI_FLOORS = ["cli/files", "cli/compute", "cli/reports", "cli/commands"]
# Folders of a room, those that see the others last; files beside them are not held to it.
WITHIN = {"kernel": ["quantise", "moe", "registers", "hopper", "blackwell"],
          "plan": ["product", "cost", "families", "search", "moe", "tuning"],
          "cli/commands": ["gemm", "moe", "predict", "measure", "machine", "draw"]}
ABOVE_ISA = ("pipeline", "tile", "kernel")
CODE = (".h", ".cpp", ".cu", ".cuh", ".py")
CPP = (".h", ".cpp", ".cu", ".cuh")
TEXT = CODE + (".cmake", ".txt", ".md", ".sh", "")
LESSON = re.compile(r"examples/lessons/\d\d_\w+\.h")
MAX_LESSON = 150  # lines of a kernel that one reads in one go
MAX_COLUMNS = 100
ROWS = "warpwright/kernel/hopper/rows/"
MAX_ROWS = 240  # of the usual build: nvcc takes some seconds for each
PRODUCT_CODE = ("warpwright/", "cli/", "bench/", "python/")
# The one list of a product's fields, and that of a mixture of experts; and what they are of.
# Tensors are listed elsewhere too, by what they are to a caller; the other fields by nobody.
FIELDS = "warpwright/plan/product/problem.h"
MIXTURE_FIELDS = "warpwright/plan/moe/mixture.h"
LISTS = (FIELDS, MIXTURE_FIELDS)
PRODUCTS = ("Product|GemmProblem|GemmOperands|PlannedMatrix|Matrix(?:Shape|View)|Epilogue|Groups|"
            "PackedWeights|Mixture|MixtureOperands|MixtureProblem")
SCALARS = re.compile(r"(?<=[.>:])(alpha|beta|scaling|accumulation|epilogue|groups|packed)\b(?!\()")
# Spelt apart, so that this file passes its own rule.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")

MACHINE = [
    (r"\breinterpret_cast\b", "reinterpret_cast"),
    (r"\b(asm|__asm__)\b", "inline assembly"),
    (r"\b__CUDA\w*|\b__NVCC__\b", "a macro of the compiler"),
    (r"\b(threadIdx|blockIdx|blockDim|gridDim)\b", "a built-in variable of CUDA"),
    (r"\b__(sync\w*|shfl\w*|shared__|threadfence\w*)\b", "a built-in of CUDA"),
    (r"\bnew\b|\bmalloc\b", "an allocation"),
    (r"\bmem(cpy|set|move)\b", "a copy that the model does not see"),
    # A unary star before a name, where an expression begins.
    (r"(?:^\s*|[=(,;{!&|?:+]\s*|\breturn\s+)\*\s*(?!this\b)[A-Za-z_]\w*",
     "a raw dereference"),
]


# What inline assembly of isa/ touches only registers: it says nothing about memory.
REGISTERS_ALONE = re.compile(r"\b(mov|mapa|cvt|mul|sub\.rn|fma\.rn|lop3|prmt|ex2|createpolicy|"
                             r"setmaxnreg|mma\.sync|wgmma\.mma_async|"
                             r"clusterlaunchcontrol\.query_cancel)\b|// hides")


def strip(text):
    """The text without comments and without what strings hold, line for line."""
    def blank(match):
        token = match[0]
        if token[0] == "/":
            return re.sub(r"[^\n]", " ", token)
        return token[0] + token[-1]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
                  blank, text, flags=re.S)


def files_of(root):
    """Every file that git knows or would take; every file, where this is no git checkout."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard",
         "--deduplicate"], capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.splitlines()
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if not any(
            part.startswith((".git", "build")) for part in p.relative_to(root).parts)]
    return [name for name in sorted(names) if (root / name).is_file()]


def room_of(name):
    """warpwright/<room>/... and cli/<room>/... give the room; what lies above the rooms of either
    has its name."""
    parts = pathlib.PurePosixPath(name).parts
    if parts[0] == "cli":
        return f"cli/{parts[1]}" if len(parts) > 2 else "cli"
    if parts[0] != "warpwright":
        return None
    return parts[1] if len(parts) > 2 else "warpwright"


def folder_of(room, name):
    """The place of a file's folder in a room; None of a file that lies in no folder of it."""
    parts = pathlib.PurePosixPath(name).parts[1 + len(room.split("/")) - ("/" in room):]
    if len(parts) < 2:
        return None
    order = WITHIN[room]
    return order.index(parts[0]) if parts[0] in order else len(order)


def floor(room):
    order = FLOORS + ["warpwright"] + CLI_FLOORS + ["cli"]
    return order.index(room) if room in order else None


def check_switches(name, text):
    if room_of(name) in ABOVE_ISA:
        for number, line in enumerate(strip(text).splitlines(), 1):
            if re.match(r"\s*#\s*(if|elif|else)", line):
                yield number, "a preprocessor switch above isa/, where nobody knows which body runs"


def check_floors(name, text):
    room = room_of(name)
    if room is None:
        return
    if floor(room) is None:
        yield 1, f"the room {room} has no floor: name it in tests/lint/lint.py"
        return
    for number, line in enumerate(text.splitlines(), 1):
        include = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
        if not include:
            continue
        path = include[1]
        if line.lstrip().lstrip("#").lstrip()[7:].lstrip().startswith('"') and "/" not in path:
            yield number, f'"{path}" names no room: write "warpwright/{room}/{path}"'
            continue
        if path.startswith(".."):
            yield number, f'"{path}" climbs: write the path from the root'
            continue
        if not path.startswith(("warpwright/", "cli/")):
            continue
        other = room_of(path)
        if floor(other) is None or floor(other) > floor(room):
            yield number, f"{room} includes {path}, which is no room below it"
        elif other == room and room in WITHIN:
            here, there = (folder_of(room, each) for each in (name, path))
            if here is not None and there is not None and here < there:
                yield number, f"{room} includes {path}, which lies above it"


def check_machine(name, text):
    if room_of(name) not in ABOVE_ISA:
        return
    for number, line in enumerate(strip(text).splitlines(), 1):
        if re.match(r"\s*#", line):
            continue
        for pattern, what in MACHINE:
            if re.search(pattern, line):
                yield number, f"{what}: above isa/ the machine is reached only through isa/"


def check_length(name, text):
    if not name.endswith(CODE):
        return
    lines = text.splitlines()
    if LESSON.fullmatch(name) and len(lines) > MAX_LESSON:
        yield len(lines), f"a lesson of more than {MAX_LESSON} lines"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, more than {MAX_COLUMNS}"


def check_bits(name, text):
    """nvcc 13.0 makes std::bit_width and its kin 0 in device code, without a word."""
    if not name.startswith("warpwright/") or room_of(name) == "model":
        return
    for number, line in enumerate(strip(text).splitlines(), 1):
        if re.search(r"\bstd::(bit_width|bit_floor|count[lr]_\w+|popcount)\b", line):
            yield number, "a function of <bit> that nvcc makes 0 in device code"


def check_families(name, text):
    """A chain of ifs over families is what a new one has to be added to."""
    if not name.startswith(PRODUCT_CODE):
        return
    for number, line in enumerate(strip(text).splitlines(), 1):
        if re.search(r"\bif (?:constexpr )?\(.*\bfamily(?:\(\)|_)?\s*[=!]=(?!\s*nullptr)", line):
            yield number, "asks for a family by name: let Family answer"


def members_of(text):
    """The fields of each struct of a header, with their types; those of its base first."""
    structs = {}
    struct = re.compile(r"^struct (\w+)(?: : (\w+))? \{\n(.*?)^\};", re.M | re.S)
    member = re.compile(r"^  (?!friend\b|using\b|static\b)([\w:<>, ]+[ *]+)(\w+)"
                        r"(?: = [^;()]+|\{[^;()]*\}|\[[^;()]*)?;", re.M)
    for name, base, body in struct.findall(text):
        fields = member.findall(body)
        structs[name] = structs.get(base, []) + [(field, kind.strip()) for kind, field in fields]
    return structs


def check_listed(text):
    """Every field of a struct that has a list is in it; an address is no field of a problem."""
    structs = members_of(strip(text))
    for start in re.finditer(r"\bfor_each_field\w*\(([^)]*)\) \{\n(.*?)^\}", text, re.M | re.S):
        kinds = re.findall(r"(\w+)(?:<\w+>)?&(?:\.\.\.)? \w+", start[1])
        kind = next((k for k in kinds for k in (k, k[:-1]) if k in structs), None)
        listed = re.findall(r'visit\("\w+", \w+\.([\w.]*\w)|\] = \w+\.(\w+);', start[2])
        listed = {one or other for one, other in listed}
        if kind is None or not listed:
            continue
        for field, of in structs[kind]:
            whole = {f"{field}.{part}" for part, _ in structs.get(of, [])}
            if of.endswith("*") or field in listed or (whole and whole <= listed):
                continue
            yield text.count("\n", 0, start.start()) + 1, f"the list of {kind} lacks {field}"


def check_fields(name, text):
    """What compares, hashes or writes products goes through the one list of their fields."""
    if not name.startswith(PRODUCT_CODE):
        return
    if name in LISTS:
        yield from check_listed(text)
    text = strip(text)
    again = "lists the fields of products again: for_each_field is the list"
    own = re.compile(rf"operator *(?:[=!]=|<=?>?) *\([^)]*\b(?:{PRODUCTS})\b[^)]*\)(?!\s*= default)"
                     rf"|\bhash<(?:{PRODUCTS})\b")
    if name not in LISTS:
        own = re.compile(own.pattern + r"|void for_each_field\w*\(")
    for found in own.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, again
    at = 0
    for function in re.split(r"(?<=\n)(?=\})", text):
        forms = {}
        for piece in re.split(r"&&|\|\||<<|[;,{}]", function) if name not in LISTS else ():
            fields = set(SCALARS.findall(piece))
            if len(fields) == 1:
                forms.setdefault(re.sub(r"\s+", "", SCALARS.sub("", piece)), set()).update(fields)
        at += function.count("\n")
        if max(map(len, forms.values()), default=0) > 4:
            yield at, again


def check_dates(name, text):
    """A page says what is; the log says what was measured when."""
    if name.startswith("docs/log/") or not name.startswith(("docs/", "README", "CONTRIBUTING")):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b20\d\d-\d\d-\d\d\b(?![\w-])", re.sub(r"\]\([^)]*\)", "]", line)):
            yield number, "a date: measurements of a day belong to docs/log/"


def check_unfinished(_, text):
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield number, "a note of unfinished work: finish it or file it"


def template_ends(lines, i):
    """Is line i the second one of a template head?"""
    return (i > 0 and lines[i].endswith(">") and
            re.match(r"\s*template\s*<[^>]*,$", lines[i - 1]) is not None)


def check_docstring(name, text):
    """A comment stands directly above each WW_DEVICE function, or above the unbroken run of
    one-line functions that it belongs to."""
    if room_of(name) != "isa" or not name.endswith((".h", ".cuh")):
        return
    start = re.compile(r"\s*(?!#)(template\s*<.*>\s*)?((\[\[\w+\]\]|static|inline|constexpr|"
                       r"explicit|friend)\s+)*WW_DEVICE\b")
    lines = text.splitlines()
    documented = [False] * len(lines)
    for i, line in enumerate(lines):
        if not start.match(line):
            continue
        above = i - 1
        while above >= 0 and (re.match(r"\s*(template\s*<|requires\b|\[\[)", lines[above]) or
                              template_ends(lines, above)):
            above -= 1
        if above >= 0:
            before = lines[above].strip()
            one_line = start.match(lines[above]) and before.endswith(("}", ";"))
            documented[i] = (before.startswith("//") or before.endswith("*/") or
                             bool(one_line and documented[above]))
        if not documented[i]:
            yield i + 1, "an instruction without a docstring directly above it"


def check_clobber(name, text):
    """PTX says what an instruction orders, but the compiler moves accesses over it unless told."""
    if room_of(name) != "isa":
        return
    for start in re.finditer(r"\basm\b(\s+volatile)?\s*(?=\()", text):
        depth, strings = 0, []
        for token in re.finditer(r'"(?:\\.|[^"\\])*"|[()]', text[start.end():]):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth == 0:
                break
            if token[0][0] == '"':
                strings.append(token[0])
        orders = not REGISTERS_ALONE.search(re.sub(r"\\[nt]", " ", " ".join(strings)))
        if orders and (not start[1] or '"memory"' not in strings):
            number = text.count("\n", 0, start.start()) + 1
            yield number, "assembly that the compiler may move accesses over: volatile, \"memory\""


# Comments and strings, by what begins a comment.
PIECES = {
    "//": r"//[^\n]*|/\*.*?\*/|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|R\"\(.*?\)\"|"
          r"\"(?:\\.|[^\"\\\n])*\"",
    "#": r"#[^\n]*|\"{3}.*?\"{3}|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"",
}
PROSE = [
    (r"\b[Aa]lone\b", "\"alone\": write \"only\", or \"by itself\""),
    (r"\bOf\b|; of\b", "\"Of X\": write \"for X\", or begin with the subject"),
]


def prose_of(name, text):
    """(where it begins, words) of what is written for people; names in words are blanks."""
    if name.endswith(".md"):
        pieces = [(0, text)]
    else:
        begin = "//" if name.endswith(CPP) else "#"
        pieces = [(m.start(), m[0]) for m in re.finditer(PIECES[begin], text, re.S)]
    for at, words in pieces:
        if " " in words:  # else a key or a name
            yield at, re.sub(r"`[^`\n]*`|\{[^{}\n]*\}", lambda m: " " * len(m[0]), words)


def check_prose(name, text):
    """Three rules for prose; what can be seen of them."""
    if name.startswith(("docs/log/", "CHANGELOG", "LICENSE", "tests/lint/lint.py")):
        return
    if name.endswith(".txt") and not name.endswith("CMakeLists.txt"):
        return
    faults = [(text.count("\n", 0, at + found.start()) + 1, words)
              for at, piece in prose_of(name, text)
              for pattern, words in PROSE for found in re.finditer(pattern, piece)]
    yield from faults


def check_rows(rows):
    """`rows`: the text of each file of Hopper's rows, by its name."""
    usual = sum(len(re.findall(r"^\s*common\(", text, flags=re.M)) for text in rows.values())
    if usual > MAX_ROWS:
        yield (f"{ROWS}: [rows] {usual} Hopper kernels in the usual build, more than {MAX_ROWS}: "
               "a row in, a row out")


# rule: (function, endings it reads)
RULES = {
    "switches": (check_switches, CPP),
    "floors": (check_floors, CPP),
    "machine": (check_machine, CPP),
    "length": (check_length, CODE),
    "bits": (check_bits, CPP),
    "families": (check_families, CPP),
    "fields": (check_fields, CPP),
    "dates": (check_dates, (".md",)),
    "unfinished": (check_unfinished, TEXT),
    "docstring": (check_docstring, CPP),
    "clobber": (check_clobber, CPP),
    "prose": (check_prose, TEXT),
}


def check(root):
    rows = {}
    for name in files_of(root):
        suffix = pathlib.PurePosixPath(name).suffix
        if suffix not in TEXT:
            continue
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for rule, (look, endings) in RULES.items():
            if suffix in endings:
                for number, words in look(name, text):
                    yield f"{name}:{number}: [{rule}] {words}"
        if name.startswith(ROWS):
            rows[name] = text
    yield from check_rows(rows)


# (rule, file, text, whether the rule must speak)
CASES = [
    ("switches", "warpwright/kernel/a.h", "#ifdef __CUDA_ARCH__\n#endif\n", True),
    ("switches", "warpwright/tile/a.h", "# if 1\n#endif\n", True),
    ("switches", "warpwright/tile/a.h", "#pragma once\n// #if in words\n", False),
    ("switches", "warpwright/isa/a.h", "#ifdef __CUDA_ARCH__\n#endif\n", False),
    ("families", "warpwright/plan/a.cpp", "if (family == Family::hopper) f();\n", True),
    ("families", "cli/a.cpp", "if (plan.family() != hopper) f();\n", True),
    ("families", "warpwright/plan/a.cpp", "if (family == nullptr) f();\n", False),
    ("families", "warpwright/plan/a.cpp", "// if (family == Family::hopper)\n", False),
    ("fields", FIELDS, "struct E {\n  int x = 0;\n  bool y = {};\n};\nstruct Product {\n  E e;\n"
     "  int k = 1;  ///< of K\n  const void* p = nullptr;\n};\n"
     'void for_each_field_of(const Visit& visit, Products&... p) {\n  visit("x", p.e.x...);\n'
     '  visit("y", p.e.y...);\n  visit("k", p.k...);\n}\n', False),
    ("fields", FIELDS, "struct Groups : Base {\n  int x = 0;\n  int y = 0;\n};\n"
     'void for_each_field(const Groups& g, const Visit& visit) {\n  visit("x", g.x);\n}\n', True),
    ("fields", FIELDS, "struct E {\n  int x = 0;\n  int y = 0;\n};\nstruct Product {\n  E e;\n};\n"
     'void for_each_field_of(const Visit& visit, Products&... p) {\n  visit("x", p.e.x...);\n}\n',
     True),
    ("fields", MIXTURE_FIELDS, "struct Mixture {\n  Matrix x = {};\n  bool y = false;\n};\n"
     'void for_each_field_of_mixtures(const Visit& visit, Mixtures&... m) {\n'
     '  visit("x", m.x...);\n}\n', True),
    ("fields", "warpwright/plan/a.h",
     "bool operator==(const GemmProblem& x, const GemmProblem& y) {\n", True),
    ("fields", FIELDS,
     "friend constexpr bool operator==(const Groups&, const Groups&) = default;\n", False),
    ("fields", "cli/a.cpp", "template <>\nstruct std::hash<GemmProblem> {\n", True),
    ("fields", "warpwright/a.cpp", "void for_each_field(const Groups& g, const Visit& visit) {\n",
     True),
    ("fields", "warpwright/a.cpp", "bool same(const P& x, const P& y) {\n  return x.a == y.a && "
     "x.alpha == y.alpha &&\n         x.beta == y.beta && x.scaling == y.scaling && x.groups == "
     "y.groups &&\n         x.epilogue == y.epilogue;\n}\n", True),
    ("fields", "bench/a.cpp", "int f(const P& p) {\n  add(p.alpha);\n  add(p.beta);\n"
     "  add(p.scaling);\n  add(p.packed);\n  add(p.accumulation);\n}\n", True),
    ("fields", "bench/a.cpp", "int f(P p) {\n  p.alpha = 1;\n  g(p.beta);\n  if (p.groups) h();\n"
     "  p.scaling = Scaling::none;\n  return p.packed ? p.epilogue : p.accumulation;\n}\n", False),
    ("dates", "docs/a.md", "Measured on 2026-11-23: 3 us.\n", True),
    ("dates", "docs/a.md", "See [the log](log/a.md#of-2026-11-23).\n", False),
    ("dates", "docs/log/a.md", "Measured on 2026-11-23: 3 us.\n", False),
    ("floors", "warpwright/layout/a.h", '#include "warpwright/atom/b.h"\n', True),
    ("floors", "warpwright/isa/a.h", "#include <warpwright/kernel/b.h>\n", True),
    ("floors", "warpwright/device/a.h", '#include "cli/b.h"\n', True),
    ("floors", "warpwright/plan/a.h", '#include "warpwright/warpwright.h"\n', True),
    ("floors", "warpwright/isa/a.h", '#include "b.h"\n', True),
    ("floors", "warpwright/isa/a.h", '#include "../kernel/b.h"\n', True),
    ("floors", "warpwright/cellar/a.h", "\n", True),
    ("floors", "warpwright/isa/a.h",
     '#include <vector>\n#include "warpwright/isa/b.h"\n#include "warpwright/model/c.h"\n', False),
    ("floors", "warpwright/plan/product/a.h",
     '#include "warpwright/plan/search/b.h"\n', True),
    ("floors", "warpwright/plan/moe/a.h", '#include "warpwright/plan/search/b.h"\n', False),
    ("floors", "warpwright/kernel/a.h", '#include "warpwright/kernel/hopper/b.h"\n', False),
    ("floors", "cli/commands/gemm/a.cpp", '#include "cli/commands/measure/b.h"\n', True),
    ("floors", "cli/commands/a.cpp", '#include "cli/commands/measure/b.h"\n', False),
    ("floors", "cli/a.cpp", '#include "warpwright/warpwright.h"\n#include "cli/b.h"\n', False),
    ("floors", "cli/files/a.cpp", '#include "cli/compute/b.h"\n', True),
    ("floors", "cli/compute/a.cpp", '#include "cli/files/b.h"\n', False),
    ("floors", "tests/a.cpp", '#include "warpwright/kernel/b.h"\n', False),
    ("machine", "warpwright/kernel/a.h", "auto p = reinterpret_cast<int*>(x);\n", True),
    ("machine", "warpwright/tile/a.h", 'asm volatile("nop;");\n', True),
    ("machine", "warpwright/pipeline/a.h", "int i = threadIdx.x;\n", True),
    ("machine", "warpwright/pipeline/a.h", "__syncthreads();\n", True),
    ("machine", "warpwright/kernel/a.h", "__shared__ int x;\n", True),
    ("machine", "warpwright/kernel/a.h", "int* p = new int;\n", True),
    ("machine", "warpwright/kernel/a.h", "memcpy(a, b, n);\n", True),
    ("machine", "warpwright/kernel/a.h", "  *pointer = 3;\n", True),
    ("machine", "warpwright/kernel/a.h", "int x = f(*pointer);\n", True),
    ("machine", "warpwright/kernel/a.h", "return *pointer;\n", True),
    ("machine", "warpwright/kernel/a.h",
     '// a new one: memcpy\nint x = a * b + 2 * c; f("asm"); return *this;\nint* p = q;\n', False),
    ("machine", "warpwright/isa/a.h", "int i = threadIdx.x;\n", False),
    ("length", "examples/lessons/02_tma_copy.h", "\n" * 151, True),
    ("length", "examples/lessons/02_tma_copy.h", "\n" * 150, False),
    ("length", "tests/a.cpp", "/" * (MAX_COLUMNS + 1), True),
    ("length", "tests/a.cpp", "/" * MAX_COLUMNS, False),
    ("switches", "warpwright/kernel/hopper/table.h", "#ifdef __CUDA_ARCH__\n#endif\n", True),
    ("rows", ROWS + "a.h", "    common(bf16(64, 8)),\n" * (MAX_ROWS + 1), True),
    ("rows", ROWS + "a.h", "    common(bf16(64, 8)),\n" * MAX_ROWS + "    more(f16(64, 8)),\n",
     False),
    ("bits", "warpwright/numeric/a.h", "int w = std::bit_width(x);\n", True),
    ("bits", "warpwright/model/a.cpp", "int w = std::countr_zero(x);\n", False),
    ("unfinished", "docs/a.md", "TO" "DO: finish\n", True),
    ("unfinished", "script/a", "# FIX" "ME\n", True),
    ("unfinished", "docs/a.md", "all done\n", False),
    ("docstring", "warpwright/isa/a.h", "\nWW_DEVICE void f() {\n}\n", True),
    ("docstring", "warpwright/isa/a.h",
     "// One.\nWW_DEVICE int f() {\n}\nWW_DEVICE int g();\n", True),
    ("docstring", "warpwright/isa/a.h", "\ntemplate <int N>\nWW_DEVICE inline void f();\n", True),
    ("docstring", "warpwright/isa/a.h",
     "// One.\ntemplate <int N>\nWW_DEVICE void f();\n/* Two. */\n  WW_DEVICE int g() {}\n"
     "  WW_DEVICE int h() {}\n#define WW_DEVICE inline\n", False),
    ("docstring", "warpwright/isa/a.h",
     "/// What it does.\ntemplate <int N,\n          int M = 1>\nWW_DEVICE void f();\n", False),
    ("docstring", "warpwright/isa/a.h",
     "\ntemplate <int N,\n          int M = 1>\nWW_DEVICE void f();\n", True),
    ("docstring", "warpwright/tile/a.h", "\nWW_DEVICE void f();\n", False),
    ("clobber", "warpwright/isa/a.h", 'asm volatile("fence.acq_rel.gpu;");\n', True),
    ("clobber", "warpwright/isa/a.h", 'asm("bar.sync 0;" ::: "memory");\n', True),
    ("clobber", "warpwright/isa/a.h",
     'asm volatile("{ .reg .pred p;"\n  "ld.shared.u32 %0, [%1]; }" : "=r"(x) : "r"(f(y)));\n',
     True),
    ("clobber", "warpwright/isa/a.h", 'asm volatile("" : "+r"(x));\n', True),
    ("clobber", "warpwright/isa/a.h",
     'asm volatile("bar.sync %0;" ::"r"(f(0)) : "memory");\nasm("mov.u32 %0, %%clusterid.x;" : '
     '"=r"(x));\n', False),
    ("prose", "cli/a.cpp", "// Groups alone.\n", True),
    ("prose", "cli/a.cpp", 'refuse("bf16 alone is taken");\n', True),
    ("prose", "docs/a.md", "Of groups: the sum.\n", True),
    ("prose", "script/a", "f()  # Of groups: the sum.\n", True),
    ("prose", "python/a.py", '"""The sum.\nOf groups\nits first."""\n', True),
    ("prose", "python/src/a.h", 'auto* help = R"(The sum; of groups\nits first.)";\n', True),
    ("prose", "cli/a.cpp",
     'const char quote = \'"\';\nbool alone = f("alone");  // `alone` of it\n', False),
    ("prose", "python/a.py", 'say(f"the time: {alone * 2} us")\n', False),
    ("prose", "docs/log/a.md", "Of groups alone.\n", False),
]


def self_test():
    wrong = 0
    for rule, name, text, speaks in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text(text, encoding="utf-8")
            found = [line for line in check(root) if f"[{rule}]" in line]
        if bool(found) != speaks:
            wrong += 1
            did = "missed" if speaks else "complained about"
            print(f"the rule {rule} {did} {text!r} in {name}: {found}")
    for rule in [*RULES, "rows"]:
        if {speaks for r, _, _, speaks in CASES if r == rule} != {True, False}:
            wrong += 1
            print(f"the rule {rule} has no case on both sides")
    print(f"{len(CASES) - wrong} of {len(CASES)} cases are right")
    return wrong


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "--self-test":
        return 1 if self_test() else 0
    findings = list(check(pathlib.Path(sys.argv[1]).resolve()))
    for line in findings:
        print(line)
    print(f"lint: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
