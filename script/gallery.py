#!/usr/bin/env python3
"""Makes the pictures of the gallery, and looks whether they are what pictures are to be.

    gallery.py WARPWRIGHT FOLDER [--only ID]   docs/site/gallery.json into FOLDER: of each picture
                                               ID.svg and ID.html, and made.json, what there is
    gallery.py --self-test

A command of the list is a whole line for a shell; --svg and --html are added. Exits with 1 and says
why where a command fails or takes long, a file is no SVG, is too large or asks for an address, an
id is there twice, there are fewer than 24 drawn pictures, a kind of `warpwright draw` or a lesson
is missing.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

LIST = pathlib.Path(__file__).resolve().parent.parent / "docs/site/gallery.json"
LEAST_DRAWN = 24
MOST_BYTES = 1_000_000
# Seconds of the processor. `break` runs a kernel's mutants: docs/pictures.md.
MOST_SECONDS = {"break": 5.0}
MOST_SECONDS_ELSE = 2.0
# Namespaces are names, and nobody asks for them.
NAMESPACES = re.compile(r'xmlns(:\w+)?="http://www\.w3\.org/[\w/]+"|"http://www\.w3\.org/[\w/]+"')
OUTSIDE = re.compile(r"""(?:(?:src|href|action|data)\s*=|url\()\s*["']?(?:https?:)?//|@import""")


def outside(text):
    """Whether a page or a picture asks for an address."""
    return OUTSIDE.search(NAMESPACES.sub("", text)) is not None


def kind_of(command):
    words = shlex.split(command)
    return words[2] if words[1] == "draw" else words[1]


def faults_of_list(groups, kinds, lessons):
    pictures = [p for group in groups for p in group["pictures"]]
    ids = [p["id"] for p in pictures]
    for name in sorted({i for i in ids if ids.count(i) > 1}):
        yield f"the id {name} is there twice"
    for name in ids:
        if not re.fullmatch(r"[a-z0-9_]+", name):
            yield f"the id {name} is no name for a file: a to z, 0 to 9 and _"
    commands = [p["command"] for p in pictures]
    for command in commands:
        if not command.startswith(("warpwright draw ", "warpwright lesson ")):
            yield f"no command of a picture: {command}"
    for command in sorted({c for c in commands if commands.count(c) > 1}):
        yield f"there are two pictures of {command}"
    drawn = [c for c in commands if c.startswith("warpwright draw ")]
    if len(drawn) < LEAST_DRAWN:
        yield f"{len(drawn)} pictures are drawn, fewer than {LEAST_DRAWN}"
    for kind in kinds:
        if kind not in map(kind_of, drawn):
            yield f"no picture of the kind {kind}"
    for number in lessons:
        if not any(re.match(rf"warpwright lesson {number}\b", c) for c in commands):
            yield f"no picture of lesson {number}"


def processor_seconds(command):
    """Runs it; its status, what it said, and the seconds it and its children had a processor."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL)
    said = process.stdout.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return process.returncode, said, used.ru_utime + used.ru_stime


def make(warpwright, folder, picture):
    """Draws one; gives its faults and seconds."""
    svg, page = folder / f"{picture['id']}.svg", folder / f"{picture['id']}.html"
    words = shlex.split(picture["command"])
    status, said, seconds = processor_seconds(
        [warpwright, *words[1:], "--svg", str(svg), "--html", str(page)])
    if status != 0:
        return [f"{picture['command']}: exits with {status}: {said.strip()[-400:]}"], seconds
    found = []
    most = MOST_SECONDS.get(kind_of(picture["command"]), MOST_SECONDS_ELSE)
    if seconds > most:
        found.append(f"takes {seconds:.1f} s, more than {most:.0f}")
    try:
        tree = ElementTree.parse(svg).getroot()
        if tree.tag != "{http://www.w3.org/2000/svg}svg" or len(tree.findall(".//*")) < 5:
            found.append("its SVG shows nothing")
    except ElementTree.ParseError as fault:
        found.append(f"its SVG is none: {fault}")
    for path in (svg, page):
        if path.stat().st_size > MOST_BYTES:
            found.append(f"{path.name} has {path.stat().st_size} bytes, more than {MOST_BYTES}")
        if outside(path.read_text(encoding="utf-8")):
            found.append(f"{path.name} asks for an address")
    return [f"{picture['command']}: {fault}" for fault in found], seconds


def self_test():
    def group(*commands):
        return [{"pictures": [{"id": f"p{i}", "command": c} for i, c in enumerate(commands)]}]
    full = [f"warpwright draw layout {i}" for i in range(24)] + ["warpwright lesson 1 --broken"]
    assert list(faults_of_list(group(*full), ["layout"], [1])) == []
    assert list(faults_of_list(group(*full), ["layout", "mma"], [1, 2])) == [
        "no picture of the kind mma", "no picture of lesson 2"]
    assert list(faults_of_list(group(*full[1:]), ["layout"], [1])) == [
        "23 pictures are drawn, fewer than 24"]
    wrong = group(*full, full[0], "warpwright gemm 1 1 1")
    assert list(faults_of_list(wrong, ["layout"], [1])) == [
        "no command of a picture: warpwright gemm 1 1 1", f"there are two pictures of {full[0]}"]
    twice = group(*full) + [{"pictures": [{"id": "p0", "command": "warpwright lesson 2"},
                                          {"id": "a b", "command": "warpwright lesson 3"}]}]
    assert list(faults_of_list(twice, ["layout"], [1])) == [
        "the id p0 is there twice",
        "the id a b is no name for a file: a to z, 0 to 9 and _"]
    assert outside('<img src="//a.b/c">') and outside("a{b:url( 'https://a.b')}")
    assert outside('<a xlink:href="http://a.b">') and not outside('<a href="#view=x">')
    assert not outside('<svg xmlns="http://www.w3.org/2000/svg">')
    assert kind_of("warpwright draw mma 'x y'") == "mma"
    assert kind_of("warpwright lesson 3") == "lesson"


def main():
    words = sys.argv[1:]
    if words == ["--self-test"]:
        self_test()
        return 0
    only = words[3] if len(words) == 4 and words[2] == "--only" else None
    if len(words) != 2 and only is None:
        print(__doc__)
        return 2
    warpwright, folder = os.path.abspath(words[0]), pathlib.Path(words[1])
    folder.mkdir(parents=True, exist_ok=True)
    groups = json.loads(LIST.read_text(encoding="utf-8"))["groups"]
    said = subprocess.run([warpwright, "lesson", "--json"], capture_output=True, check=True).stdout
    lessons = [lesson["number"] for lesson in json.loads(said)["lessons"]]
    said = subprocess.run([warpwright, "draw", "--help"], capture_output=True, check=True,
                          text=True).stdout
    kinds = re.findall(r"^  ([a-z]+) {2,}\S", said.partition("Subcommands:")[2], re.M)
    found = list(faults_of_list(groups, kinds, lessons))
    if not kinds:
        found.append("`warpwright draw --help` names no kinds")
    pictures = [p for group in groups for p in group["pictures"] if only in (None, p["id"])]
    if only is None:  # what a list of before has left
        for path in [*folder.glob("*.svg"), *folder.glob("*.html")]:
            path.unlink()
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(lambda picture: make(warpwright, folder, picture), pictures))
    for faults, _ in made:
        found += faults
    slowest = max(zip((seconds for _, seconds in made), (p["id"] for p in pictures)))
    (folder / "made.json").write_text(json.dumps({"groups": groups}, indent=1), encoding="utf-8")
    print("\n".join(found + [
        f"gallery: {len(pictures)} pictures in {time.monotonic() - begun:.1f} s, the slowest "
        f"({slowest[1]}) in {slowest[0]:.1f} s of a processor; {len(found)} faults"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
