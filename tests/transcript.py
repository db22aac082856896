"""Commands and what they print: parsed, run, compared, and written anew.

A transcript's lines are "$ " and a command, which goes on behind a "\\" or on a line that begins
with "> ", and below it what the command prints. Where both streams are told apart, lines of stderr
begin with "! ", and "[2]" in the end is the exit status, where it is not 0. A line "..." stands
for any lines, and "..." within a line for any text.

"$* " stands before a command with alternatives, {--pair|--one-sm|}: it is run with each of them,
and all must print the same, but for "{}", which stands for those of the first braces. "prints: "
and a command begin a table: below are rows of WORDS -> LINE. With these words, at its end or where
it has {}, the command must print the line and nothing else. "refused: " begins one whose lines
stand on stderr, where the command exits with 2. Words may have alternatives too.

tests/docs/commands_test.py runs those of the pages, tests/cli/transcripts_test.py those of its
folder.
"""
import itertools
import os
import pathlib
import re
import subprocess
import time

TIMEOUT = 300  # seconds a command
ERR = "! "  # begins a line of stderr
ANY = "..."
REFUSED = "refused: "
TABLES = ("prints: ", REFUSED)
MARKS = ("$ ", "$* ") + TABLES  # what begins a line that is run
ALTERNATIVES = re.compile(r"\{([^{}]*\|[^{}]*)\}")

# What may differ from run to run: a pattern, and what stands for it on both sides.
IGNORED = [
    (re.compile(r"\bin \d[\d.e+-]* s\b"), "in TIME"),  # how long a product took
]


class Fault(Exception):
    """What is wrong with a page or a transcript, beginning with its place."""


class Step:
    """A command with what it has to print; `shown` is None where that is not compared."""

    def __init__(self, line, command, shown=None, status=0, alternatives=False):
        self.line, self.command, self.shown, self.status = line, command, shown, status
        self.alternatives = alternatives
        self.words = None  # of a row of a table, which shows a line
        self.begin = self.end = line  # of the lines that show it, counted from 0: [begin, end)

    def variants(self):
        """The command and what it has to print, once for each of its alternatives."""
        parts = ALTERNATIVES.split(self.command) if self.alternatives else [self.command]
        choices = [[part] if i % 2 == 0 else part.split("|") for i, part in enumerate(parts)]
        for words in itertools.product(*choices):
            chosen = words[1] if len(words) > 1 else "{}"
            shown = self.shown and [line.replace("{}", chosen) for line in self.shown]
            yield "".join(words), shown


def command_at(place, lines, at, text):
    """The whole command whose first line's text this is, and the number of its lines."""
    count = 1
    while at + count < len(lines) and (text.endswith("\\") or lines[at + count].startswith("> ")):
        text += "\n" + lines[at + count].removeprefix("> ")
        count += 1
    if text.endswith("\\") or re.search(r"\n\s*\$\*? ", text.split("<<")[0]):
        raise Fault(f"{place}: the command goes on behind the block, or in the next one")
    return text, count


def row_of(place, line, number, table):
    """The step of a row of the table: its mark and its command."""
    words, arrow, shown = line.partition(" -> ")
    if not arrow or not words.strip() or not shown.strip():
        raise Fault(f"{place}: a row is WORDS -> LINE")
    mark, command = table
    command = command.replace("{}", words) if "{}" in command else f"{command} {words}"
    step = Step(number, command, [shown], alternatives=ALTERNATIVES.search(command) is not None)
    if mark == REFUSED:
        step.shown, step.status = [ERR + shown], 2
    step.words = words
    step.begin, step.end = number - 1, number
    return step


def parse(page, lines, first=1, streams=False):
    """The steps of a transcript's lines, the first of which has this number. With `streams` it may
    have all that is told above, else what a terminal shows of both streams."""
    steps, table, at = [], None, 0
    marks = MARKS if streams else ("$ ",)
    while at < len(lines):
        line, number = lines[at], first + at
        place = f"{page}:{number}"
        mark = next((m for m in marks if line.startswith(m)), None)
        if mark:
            text, count = command_at(place, lines, at, line[len(mark):])
            table = (mark, text) if mark in TABLES else None
            if table is None:
                steps.append(Step(number, text, [], alternatives=mark == "$* "))
                steps[-1].begin = steps[-1].end = number - 1 + count
            elif not "".join(lines[at + count:at + count + 1]).strip():
                raise Fault(f"{place}: a table without a row")
        elif not line.strip() and (not steps or table or steps[-1].words is not None):
            table, count = None, 1
        elif table:
            steps.append(row_of(place, line, number, table))
            count = 1
        elif not steps or steps[-1].words is not None:
            raise Fault(f"{place}: a transcript begins with \"$ \"")
        else:
            steps[-1].shown.append(line)
            steps[-1].end, count = number, 1
        at += count
    for step in steps:
        finish(page, step, streams)
    return steps


def finish(page, step, streams):
    """Takes blank lines and the exit status off what a step shows."""
    while step.words is None and step.shown and not step.shown[-1].strip():
        step.shown.pop()
        step.end -= 1
    if streams and step.words is None and step.shown:
        status = re.fullmatch(r"\[(\d+)\]", step.shown[-1])
        if status:
            step.status = int(status[1])
            step.shown.pop()
    if step.alternatives and not ALTERNATIVES.search(step.command):
        raise Fault(f"{page}:{step.line}: \"$* \" before a command without alternatives")


def environment(folder, paths, gpu=False):
    """No GPU, and nobody's measurements: the same output on every machine. SOURCE: the project."""
    made = dict(os.environ, XDG_CACHE_HOME=str(folder / ".cache"),
                SOURCE=str(pathlib.Path(__file__).resolve().parents[1]),
                PATH=":".join([*map(str, paths), os.environ["PATH"]]))
    if not gpu:
        made["CUDA_VISIBLE_DEVICES"] = ""
    return made


def run(command, folder, paths, gpu=False, streams=False):
    """The exit status, and the lines as a transcript shows them."""
    try:
        ran = subprocess.run(["bash", "-c", command], cwd=folder, check=False,
                             env=environment(folder, paths, gpu), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, timeout=TIMEOUT,
                             stderr=subprocess.PIPE if streams else subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return None, [f"no end after {TIMEOUT} s"]
    lines = ran.stdout.decode("utf-8", "replace").splitlines()
    if streams:
        lines += [ERR + line for line in ran.stderr.decode("utf-8", "replace").splitlines()]
    return ran.returncode, lines


def plain(line):
    for pattern, name in IGNORED:
        line = pattern.sub(name, line)
    return line.rstrip()


def says(shown, printed):
    """Does a line that is shown stand for a line that was printed?"""
    parts = plain(shown).split(ANY)
    return re.fullmatch(".*".join(map(re.escape, parts)), plain(printed)) is not None


def is_any(line):
    """Does this line stand for any lines of its stream?"""
    return line.rstrip() in (ANY, ERR + ANY)


def is_error(line):
    return line.startswith(ERR)


def agree(shown, printed):
    """Do these lines show what was printed, with "..." for any?"""
    reached = {0}  # numbers of printed lines that are used up
    for line in shown:
        if is_any(line):
            for start in sorted(reached):
                end = start
                while end < len(printed) and is_error(printed[end]) == is_error(line):
                    end += 1
                    reached.add(end)
        else:
            reached = {i + 1 for i in reached if i < len(printed) and says(line, printed[i])}
    return len(printed) in reached


def compared(shown, printed):
    """Lines of both as (mark, line): " " where they agree, as it is shown; "-" for what is shown
    and was not printed, "+" for the other way round; as few of these as can be."""
    # costs[i][j]: of the lines from shown[i] and printed[j] on.
    costs = [[0] * (len(printed) + 1) for _ in range(len(shown) + 1)]

    def ways(i, j):
        """(cost, lines taken of both, marks) of what may come first."""
        if i < len(shown) and is_any(shown[i]):
            yield costs[i + 1][j], (1, 0), " "
            if j < len(printed) and is_error(printed[j]) == is_error(shown[i]):
                yield costs[i][j + 1], (0, 1), ""
        elif i < len(shown):
            if j < len(printed) and says(shown[i], printed[j]):
                yield costs[i + 1][j + 1], (1, 1), " "
            yield costs[i + 1][j] + 1, (1, 0), "-"
        if j < len(printed):
            yield costs[i][j + 1] + 1, (0, 1), "+"

    for i in range(len(shown), -1, -1):
        for j in range(len(printed), -1, -1):
            if (i, j) != (len(shown), len(printed)):
                costs[i][j] = min(ways(i, j))[0]
    lines, i, j = [], 0, 0
    while (i, j) != (len(shown), len(printed)):
        _, (down, right), mark = min(ways(i, j), key=lambda way: way[0])
        lines += [(mark, printed[j] if mark == "+" else shown[i])] if mark else []
        i, j = i + down, j + right
    return lines


def diff(shown, printed):
    return "".join(f"\n    {mark} {line}" for mark, line in compared(shown, printed))


def updated(step, status, printed, indent=""):
    """The lines that show the step as it went, with what was right of those that are there."""
    if step.words is not None:
        return [f"{indent}{step.words} -> {printed[0].removeprefix(ERR)}"]
    lines = [line for mark, line in compared(step.shown, printed) if mark != "-"]
    lines += [f"[{status}]"] if status else []
    return [indent + line if line else "" for line in lines]


def brief(command):
    """A command in one line, without its comment."""
    return re.sub(r" # .*", "", " ".join(re.sub(r"\\\n", " ", command).split()))


class Outcome:
    """What came of steps: their faults, what would mend them, and each command's seconds."""

    def __init__(self):
        self.faults, self.changes, self.seconds = [], {}, []
        self.files = {}  # what should lie at a path, where that is something else

    def check(self, step, page, folder, paths, gpu=False, streams=False):
        """Runs a step with all its alternatives."""
        for command, shown in step.variants():
            place = f"{page}:{step.line}: {brief(command)}"
            start = time.monotonic()
            status, printed = run(command, folder, paths, gpu, streams)
            self.seconds.append((time.monotonic() - start, place))
            if status == step.status and (shown is None or agree(shown, printed)):
                continue
            fault = place
            if status != step.status:
                fault += f"\n    exits with {status}, not with {step.status}"
            fault += (diff(shown, printed) if shown is not None else
                      "".join(f"\n    {line}" for line in printed[-12:]))
            self.faults.append(fault)
            if step.shown is not None and status is not None:
                self.changes.setdefault(step, (status, printed))

    def update(self, path, indent="", streams=False):
        """Writes what was printed into the file that shows something else, and prints it."""
        changes = {}
        for step, (status, printed) in self.changes.items():
            if step.words is not None and (status != step.status or len(printed) != 1 or
                                           is_error(printed[0]) != is_error(step.shown[0])):
                continue  # no row of a table says that
            if status != step.status and not streams:
                continue  # nor a page, but in its marks
            changes[step.begin, step.end] = updated(step, status, printed, indent)
        lines = path.read_text(encoding="utf-8").splitlines()
        for (begin, end), new in sorted(changes.items(), reverse=True):
            print(f"updated {path}:{begin + 1}" +
                  "".join(f"\n  - {line}" for line in lines[begin:end]) +
                  "".join(f"\n  + {line}" for line in new))
            lines[begin:end] = new
        if changes:
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return len(changes)


def report(outcomes, slowest=8, quiet=False):
    """Prints what went wrong and what took long, where that is not updated; the number of commands
    and that of faults."""
    print("CTEST_FULL_OUTPUT")  # ctest cuts what a test that passes prints without this word
    seconds = [s for outcome in outcomes for s in outcome.seconds]
    faults = [f for outcome in outcomes for f in outcome.faults]
    for spent, place in sorted(seconds, reverse=True)[:0 if quiet else slowest]:
        print(f"{spent:6.1f} s  {place[:160]}")
    for fault in [] if quiet else faults:
        print(f"FAULT {fault}")
    return len(seconds), len(faults)
