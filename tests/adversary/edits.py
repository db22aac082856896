#!/usr/bin/env python3
"""The hand edits of edits/*.diff, with the commands of commands.txt.

    edits.py ROOT         checks that every edit can be made in the tree; prints every fault
    edits.py --self-test  shows that each fault is refused, and what an edit makes of a text

A file of edits, by the room of the sources that they break:

    === warpwright/pipeline/a.h              the source of the edits below
    <empty line>
    A01_name: caught by pp, ring             or "clean under"; names of commands.txt
    note: why                                or "refused", words of the compiler's error; or what
    code: B5                                 the first finding must be and say: see below
    -parity_(0)
    +parity_(1)
    @@                                       another place; for another source: @@ FILE
     isa::sync_warp();
    +isa::sync_warp();

The lines of ' ' and '-' are one text, which is in the source exactly once; the lines of ' ' and '+'
replace it. Its first and last line may be parts of lines. Where no line stays or comes, the end of
the last one goes too. An empty line ends an edit, # begins a comment. Above the first ===, nothing
is edited: the kernels as they are.

For the first finding that a command of `check` prints, an edit may say the code; `at`, what stands
on the line that it names, in the edited tree; `says`, what it says before "Mend:", and `mend`, what
behind that, both without regard to case. Several words or phrases are parted by "; ": each must be
there. A phrase may have FILE:{text} for the place of a line of that file in the edited tree, which
is the only one with that text.

commands.txt has a line for each command, NAME: what runs. That is a command of `warpwright check`,
where NAME (KERNEL) says the kernel if the command does not, and `check moe` names both of its
kernels; or a script that is given the edited tree; or a target of the tests, its source to compile
with the edit, and arguments.
"""
import dataclasses
import difflib
import pathlib
import re
import sys
import tempfile

KEYS = ("note", "refused", "code", "at", "says", "mend")
SAID = ("code", "at", "says", "mend")
EXPECT = {"caught by": "caught", "clean under": "clean"}


class Fault(Exception):
    """Why an edit cannot be read or made."""


@dataclasses.dataclass
class Command:
    name: str
    words: str
    kernels: list

    @property
    def kind(self):
        if self.words.startswith("tests/"):
            return "script"
        return "program" if self.words.startswith("test_") else "check"


@dataclasses.dataclass
class Place:
    where: str
    file: str
    lines: list

    @property
    def old(self):
        text = "\n".join(line[1:] for line in self.lines if line[0] != "+")
        return text if any(line[0] != "-" for line in self.lines) else text + "\n"

    @property
    def new(self):
        return "\n".join(line[1:] for line in self.lines if line[0] != "-")


@dataclasses.dataclass
class Edit:
    where: str
    name: str
    expect: str
    commands: list
    file: str
    facts: dict = dataclasses.field(default_factory=dict)
    places: list = dataclasses.field(default_factory=list)

    def of_kind(self, kind):
        return [command for command in self.commands if command.kind == kind]

    @property
    def said(self):
        """What the first finding must be and say."""
        return {key: self.facts[key] for key in SAID if key in self.facts}

    @property
    def kernels(self):
        return list(dict.fromkeys(
            kernel for command in self.of_kind("check") for kernel in command.kernels))

    def made_in(self, root):
        """The edited files' texts, by name."""
        texts = {}
        for place in self.places:
            if place.file not in texts:
                path = root / place.file
                if not path.is_file():
                    raise Fault(f"{place.where}: {self.name}: there is no {place.file}")
                texts[place.file] = path.read_text(encoding="utf-8")
            text = texts[place.file]
            if text.count(place.old) != 1:
                raise Fault(f"{place.where}: {self.name}: its old text is in {place.file} "
                            f"{text.count(place.old)} times, not once{nearest(text, place.old)}")
            texts[place.file] = text.replace(place.old, place.new)
        return texts


def nearest(text, old):
    """The first line of a lost text that is not there, and the line that is most like it."""
    gone = next((line for line in old.split("\n") if line.strip() not in text), "").strip()
    if not gone:
        return ""
    lines = [line.strip() for line in text.split("\n")]
    like = difflib.get_close_matches(gone, lines, 1)
    return f"; lost: `{gone}`" + "".join(
        f"; most like it is line {lines.index(line) + 1}: `{line}`" for line in like)


def lines_of(path):
    """(where, line), without comments."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line.startswith("#"):
            yield f"{path.name}:{number}", line


def read_commands(path):
    commands = {}
    for where, line in lines_of(path):
        if not line:
            continue
        found = re.fullmatch(r"(\w+)(?: \((\w+)\))?: (\S.*)", line)
        if not found:
            raise Fault(f"{where}: not NAME: COMMAND: {line}")
        command = Command(found[1], found[3], [found[2]] * bool(found[2]))
        if command.name in commands:
            raise Fault(f"{where}: a second command of the name {command.name}")
        if command.kind == "check":
            of_moe = command.words.startswith("moe ")
            option = "--(?:first|second)-kernel" if of_moe else "--kernel"
            command.kernels += re.findall(option + r" (\S+)", command.words)
            if len(command.kernels) != 1 + of_moe:
                raise Fault(f"{where}: {command.name} names {len(command.kernels)} kernels, not "
                            + ("two" if of_moe else "one"))
        commands[command.name] = command
    return commands


def read_head(where, line, file, commands):
    """The edit that this line begins."""
    found = re.fullmatch(r"(\w+): (caught by|clean under) (.+)", line)
    if not found:
        raise Fault(f"{where}: not NAME: caught by (or: clean under) COMMANDS: {line}")
    names = found[3].split(", ")
    for name in names:
        if name not in commands:
            raise Fault(f"{where}: {found[1]}: commands.txt has no {name}")
    return Edit(where, found[1], EXPECT[found[2]], [commands[name] for name in names], file)


def read_line(edit, where, line):
    """A line below the first one of an edit."""
    if line[0] in " -+":
        if not edit.file:
            raise Fault(f"{where}: {edit.name}: no === says of which source")
        if not edit.places:
            edit.places.append(Place(where, edit.file, []))
        edit.places[-1].lines.append(line)
    elif re.fullmatch(r"@@( \S+)?", line):
        edit.places.append(Place(where, line[3:] or edit.file, []))
    elif re.match(r"\w+: ", line) and not edit.places:
        key, value = line.split(": ", 1)
        if key not in KEYS or key in edit.facts:
            what = "a second key" if key in KEYS else "unknown key"
            raise Fault(f"{where}: {edit.name}: {what} {key}; known: {', '.join(KEYS)}")
        edit.facts[key] = value
    else:
        raise Fault(f"{where}: {edit.name}: not understood: {line}")


def read_edits(folder):
    """(commands by name, edits) of tests/adversary."""
    commands, edits = read_commands(folder / "commands.txt"), {}
    for path in sorted((folder / "edits").glob("*.diff")):
        file, edit = "", None
        for where, line in lines_of(path):
            if not line:
                edit = None
            elif edit:
                read_line(edit, where, line)
            elif line.startswith("=== "):
                file = line[4:]
            else:
                edit = read_head(where, line, file, commands)
                if edit.name in edits:
                    raise Fault(f"{where}: a second edit of the name {edit.name}; "
                                f"the first: {edits[edit.name].where}")
                edits[edit.name] = edit
    for edit in edits.values():
        if edit.file and not edit.places:
            raise Fault(f"{edit.where}: {edit.name}: edits nothing")
        if edit.said and not (edit.expect == "caught" and edit.of_kind("check")):
            raise Fault(f"{edit.where}: {edit.name}: says what no finding of `check` can say")
        if edit.said and "code" not in edit.facts:
            raise Fault(f"{edit.where}: {edit.name}: says what a finding says, but not its code")
        for place in edit.places:
            if not place.old.strip():
                raise Fault(f"{place.where}: {edit.name}: no line says where")
            if place.old == place.new:
                raise Fault(f"{place.where}: {edit.name}: changes nothing")
    return commands, list(edits.values())


def check(root):
    """Every fault of the edits in this tree, and how many edits there are."""
    try:
        commands, edits = read_edits(root / "tests/adversary")
    except Fault as fault:
        return [str(fault)], 0
    faults = []
    sources = [path.read_text(encoding="utf-8") for ending in ("h", "cuh", "cpp")
               for path in sorted((root / "warpwright").rglob(f"*.{ending}"))]
    for edit in edits:
        try:
            made = edit.made_in(root)
        except Fault as fault:
            faults.append(str(fault))
            continue
        at = edit.said.get("at", "")
        if at and not any(at in text for text in [*made.values(), *sources]):
            faults.append(f"{edit.places[0].where}: {edit.name}: no line has what its finding is "
                          f"to be at: {at}")
    used = {command.name for edit in edits for command in edit.commands}
    for command in commands.values():
        if command.name not in used:
            faults.append(f"commands.txt: no edit names {command.name}")
        files = [word for word in command.words.split() if word.startswith("tests/")]
        faults += [f"commands.txt: {command.name}: there is no {name}" for name in files
                   if not (root / name).is_file()]
    return faults, len(edits)


COMMANDS = "pp: gemm --kernel k\nring (r): gemm --as b200\n"
A01 = "=== a.h\n\nA01: caught by pp, ring\nnote: why\n"
TEXT = "one();\n  two(1);\n  three();\n  three();\n"
# (commands, edits, the words of the fault; or, after "=", the text that an edit makes of TEXT)
CASES = [
    (COMMANDS, A01 + "-two(1)\n+two(2)\n", "=one();\n  two(2);\n  three();\n  three();\n"),
    (COMMANDS, A01 + "-one();\n@@\n   two(1);\n+\n   three();\n",
     "=  two(1);\n\n  three();\n  three();\n"),
    (COMMANDS, A01 + "-  two(1);\n-  three();\n+  four();\n", "=one();\n  four();\n  three();\n"),
    (COMMANDS, "# none\nA01: clean under ring, pp\n", "="),
    (COMMANDS, A01 + "-two(3);\n+two(2);\n", "a.diff:5: A01: its old text is in a.h 0 times, "
     "not once; lost: `two(3);`; most like it is line 2: `two(1);`"),
    (COMMANDS, A01 + "-three\n+four\n", "a.diff:5: A01: its old text is in a.h 2 times, not once"),
    (COMMANDS, A01 + "-one\n+a\n@@ b.h\n-one\n+a\n", "a.diff:7: A01: there is no b.h"),
    (COMMANDS, A01 + "+one();\n", "a.diff:5: A01: no line says where"),
    (COMMANDS, A01 + " one();\n", "a.diff:5: A01: changes nothing"),
    (COMMANDS, A01, "a.diff:3: A01: edits nothing"),
    (COMMANDS, A01 + "notes: why\n", "a.diff:5: A01: unknown key notes; known: " + ", ".join(KEYS)),
    (COMMANDS, A01 + "note: why\n",
     "a.diff:5: A01: a second key note; known: " + ", ".join(KEYS)),
    (COMMANDS, A01 + "says: why\n-two(1)\n+two(2)\n",
     "a.diff:3: A01: says what a finding says, but not its code"),
    (COMMANDS, A01 + "code: B5\nat: two(3)\n-two(1)\n+two(2)\n",
     "a.diff:7: A01: no line has what its finding is to be at: two(3)"),
    (COMMANDS, A01 + "code: B5\nat: two(2)\n-two(1)\n+two(2)\n",
     "=one();\n  two(2);\n  three();\n  three();\n"),
    (COMMANDS, A01.replace("caught by", "clean under") + "code: B5\n-two(1)\n+two(2)\n",
     "a.diff:3: A01: says what no finding of `check` can say"),
    (COMMANDS, A01 + "code: B5\nsays: why\n-two(1)\n+two(2)\n",
     "=one();\n  two(2);\n  three();\n  three();\n"),
    (COMMANDS, A01 + "one();\n", "a.diff:5: A01: not understood: one();"),
    (COMMANDS, A01 + "-one\n+a\n\nA01: clean under pp\n-one\n+a\n",
     "a.diff:8: a second edit of the name A01; the first: a.diff:3"),
    (COMMANDS, "A01: caught by pq\n-one\n+a\n", "a.diff:1: A01: commands.txt has no pq"),
    (COMMANDS, "A01: caught by pp\n-one\n+a\n", "a.diff:2: A01: no === says of which source"),
    (COMMANDS, "A01: found by pp\n",
     "a.diff:1: not NAME: caught by (or: clean under) COMMANDS: A01: found by pp"),
    (COMMANDS + "pp: gemm\n", "", "commands.txt:3: a second command of the name pp"),
    (COMMANDS + "p gemm\n", "", "commands.txt:3: not NAME: COMMAND: p gemm"),
    (COMMANDS + "p: gemm --sms 2\n", "", "commands.txt:3: p names 0 kernels, not one"),
    (COMMANDS + "p: moe --second-kernel k\n", "", "commands.txt:3: p names 1 kernels, not two"),
    (COMMANDS + "p: tests/no.py\n", A01 + "-one\n+a\n",
     "commands.txt: no edit names p\ncommands.txt: p: there is no tests/no.py"),
]


def self_test():
    wrong = 0
    for commands, text, wanted in CASES:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            here = folder / "tests/adversary"
            (here / "edits").mkdir(parents=True)
            (folder / "a.h").write_text(TEXT, encoding="utf-8")
            (here / "commands.txt").write_text(commands, encoding="utf-8")
            (here / "edits/a.diff").write_text(text, encoding="utf-8")
            faults, _ = check(folder)
            seen = "\n".join(faults)
            if not faults:
                made = [edit.made_in(folder) for edit in read_edits(here)[1]]
                seen = "=" + "".join(texts.get("a.h", "") for texts in made)
        if seen != wanted:
            wrong += 1
            print(f"{commands + text}gives: {seen}\ninstead of: {wanted}")
    print(f"{len(CASES) - wrong} of {len(CASES)} cases are right")
    return wrong


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    if sys.argv[1] == "--self-test":
        return 1 if self_test() else 0
    faults, count = check(pathlib.Path(sys.argv[1]).resolve())
    for fault in faults:
        print(fault)
    print(f"hand edits: {count} read, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
