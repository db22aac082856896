#!/usr/bin/env python3
"""Every link between the pages leads somewhere, and every page that a source names is there.

    links_test.py ROOT         prints each that does not
    links_test.py --self-test

Links are [words](path#anchor) of the pages (all .md files that git knows); an anchor is a heading
as GitHub spells it. In other text files "docs/name.md" must be a page.
"""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "script"))
from tracked import tracked  # noqa: E402

LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/])docs/[\w/]+\.md\b")
SOURCES = (".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".md", ".in", "")
# The changelog says where pages were then, the others make names up.
NAMES_NO_PAGES = ("CHANGELOG.md", "tests/docs/links_test.py", "tests/lint/lint.py")


def without_blocks(text):
    """The text with its fenced blocks, comments and code as blank lines: line numbers stay."""
    def blank(match):
        return "\n" * match[0].count("\n")
    text = re.sub(r"^ *```.*?^ *```$", blank, text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", re.sub(r"<!--.*?-->", blank, text, flags=re.S))


def anchors(text):
    """For each heading, as GitHub makes it: lower case, no punctuation, a dash for each space."""
    found = {}
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        count = found.setdefault(name, 0)
        found[name] += 1
        if count:
            found[f"{name}-{count}"] = 1
    return set(found)


def faults(root):
    texts = {}
    for name in tracked(root):
        if pathlib.PurePosixPath(name).suffix in SOURCES:
            try:
                texts[name] = (root / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    for name, text in texts.items():
        if name.endswith(".md"):
            for number, line in enumerate(without_blocks(text).splitlines(), 1):
                for target in LINK.findall(line):
                    if re.match(r"\w+:", target):
                        continue
                    path, _, anchor = target.partition("#")
                    place = (root / name).parent / path if path else root / name
                    if not place.exists():
                        yield f"{name}:{number}: {target} leads nowhere"
                    elif anchor and anchor not in anchors(place.read_text(encoding="utf-8")):
                        yield f"{name}:{number}: {target}: no such heading"
        if name not in NAMES_NO_PAGES:
            for number, line in enumerate(text.splitlines(), 1):
                for page in NAMED.findall(line):
                    if not (root / page).exists():
                        yield f"{name}:{number}: there is no {page}"


def self_test():
    pages = {"docs/x.md": "# A `b`: c, d\n[a](y.md) [b](y.md#two-1) [c](#a-b-c-d) `[d](none.md)`\n"
                          "```\n[e](none.md)\n```\n[w](https://a.b/c)\n",
             "docs/y.md": "## Two\n## Two\n[f](none.md) [g](x.md#none)\n",
             "s.h": "// docs/x.md and docs/none" ".md\n"}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in pages.items():
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found = list(faults(root))
    want = ["docs/y.md:3: none.md leads nowhere", "docs/y.md:3: x.md#none: no such heading",
            "s.h:1: there is no docs/none" ".md"]
    if found != want:
        print(f"wanted {want}, found {found}")
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = list(faults(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(found + [f"links: {len(found)} faults"]))
    return 1 if found else self_test()


if __name__ == "__main__":
    sys.exit(main())
