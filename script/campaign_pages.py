#!/usr/bin/env python3
"""Sums up what a campaign wrote: campaign_pages.py FOLDER docs/log

FOLDER (build/campaign) holds the tables that the tests wrote, each with a line that begins "Date"
and says when, of which commit and on what machine it was run, and programs.tsv, a line a program:
name, result, tests, passed, skipped, failed, seconds, date, commit, machine. campaign.md there is
written anew, and in mutation.md the tables between their two comments. Rows of sets and programs
that FOLDER does not have stay as they are: a figure keeps the commit that it is of.
"""
import pathlib
import re
import sys

# What the files of a family begin with, which end in "schedules" and "mutation".
FAMILIES = {"": "Hopper", "blackwell_": "Blackwell",
            "blackwell_tokens_": "Blackwell (tokens on N)",
            "blackwell_scaled_": "Blackwell (scales in the tensor core)"}

CAMPAIGN = """# What the full sets found

`script/test` runs a sample of every set of schedules and mutants, `script/campaign` the whole of
them (`script/campaign kernel` only one program of `tests/`) and writes this page. A row is of the
commit that it names and stays until its set is run again. The full tables are written to
`build/campaign/`; what is counted is in [mutation.md](../mutation.md). On a machine with many cores
`script/campaign --jobs N` shares the cases of a set among processes.

| set | kernels | runs | found | date, commit, machine |
|---|---:|---|---|---|
{sets}

Programs as a whole, with their full sets (`WARPWRIGHT_CAMPAIGN=1`):

| program | result | tests | passed | skipped | failed | seconds | date, commit, machine |
|---|---|---:|---:|---:|---:|---:|---|
{programs}
"""


def rows_of(path, columns):
    """The rows of a page's tables of so many columns, by their first cell."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        cells = line.strip().strip("|").split("|")
        if line.startswith("| ") and len(cells) == columns:
            rows.setdefault(cells[0].strip(), line)
    return {name: row for name, row in rows.items() if name not in ("set", "program")}


def stamp_of(text):
    """The day, commit and machine of a table."""
    return re.search(r"^Date (.*?)\.?$", text, re.M)[1]


def schedules_row(family, text):
    found = re.findall(r"^\| .* \| `.*` \| (\d+) \| (\d+) \|$", text, re.M)
    runs = sum(int(schedules) for schedules, _ in found)
    findings = sum(int(count) for _, count in found)
    name = f"{family} kernels, unbroken, under many schedules"
    return name, (f"| {name} | {len(found)} | {runs:,} schedules | {findings} findings | "
                  f"{stamp_of(text)} |")


def kernels_of(text):
    """(problem, plan, sites, score, killed, of, equivalent, by argument) of each kernel."""
    pattern = (r"^## (.*)\n\n`(.*)`, (\d+) sites, .*; mutation score: (\d+%) \(killed (\d+) of "
               r"(\d+), equivalent (\d+)\)(?:, of those by argument (\d+))?$")
    return [(m[1], m[2], *m.groups("0")[2:]) for m in re.finditer(pattern, text, re.M)]


def mutants_row(family, text):
    kernels = kernels_of(text)
    killed, of, equivalent, argued = (sum(int(k[i]) for k in kernels) for i in (4, 5, 6, 7))
    name = f"{family} kernels, mutants"
    return name, (f"| {name} | {len(kernels)} | {of + equivalent:,} mutants, up to 64 schedules "
                  f"each | {killed:,} of {of:,} killed, {equivalent} equivalent ({argued} by "
                  f"argument) | {stamp_of(text)} |")


def kernels_table(text):
    rows = [f"| {problem} | `{plan}` | {sites} | {killed} of {of} | {equivalent} | {argued} | "
            f"{score} |"
            for problem, plan, sites, score, killed, of, equivalent, argued in kernels_of(text)]
    return (f"{stamp_of(text)}:\n\n| problem | plan | sites | killed | equivalent | by argument | "
            "score |\n|---|---|---:|---:|---:|---:|---:|\n" + "\n".join(rows) + "\n")


def write_pages(folder, docs):
    sets = rows_of(docs / "campaign.md", 5)
    programs = rows_of(docs / "campaign.md", 8)
    mutation = (docs / "mutation.md").read_text(encoding="utf-8")
    for kind, row in (("schedules", schedules_row), ("mutation", mutants_row)):
        for begin, family in FAMILIES.items():
            table = folder / f"{begin}{kind}.md"
            if not table.exists():
                continue
            text = table.read_text(encoding="utf-8")
            if "\nDate " not in text:
                print(f"{table} has no date: its test ended early, so its rows stay as they are")
                continue
            name, line = row(family, text)
            sets[name] = line
            if row is mutants_row:
                place = rf"(<!-- {re.escape(family)}: [^\n]*-->\n).*?(<!-- end -->)"
                mutation, count = re.subn(place, lambda m, t=text: m[1] + kernels_table(t) + m[2],
                                          mutation, flags=re.S)
                if count != 1:
                    sys.exit(f"{docs}/mutation.md has {count} places for the {family} kernels, "
                             "not 1")
    results = folder / "programs.tsv"
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else []:
        *cells, date, commit, machine = line.split("\t")
        programs[cells[0]] = f"| {' | '.join(cells)} | {date}, commit {commit}, {machine} |"
    (docs / "mutation.md").write_text(mutation, encoding="utf-8")
    (docs / "campaign.md").write_text(CAMPAIGN.format(
        sets="\n".join(sets.values()), programs="\n".join(sorted(programs.values()))),
        encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_pages(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
