#!/usr/bin/env python3
"""fields [NAME...] < OBJECT: prints these fields of a JSON object; without names its fields' names
and those of the objects in it. NAME is a key or a path: check.passed, rows.0.m, and
findings.# the number of findings. What is no single object ends with a fault.
"""
import json
import sys


def once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key twice: {keys}"
    return dict(pairs)


def names(found):
    return ", ".join(key + (f" ({names(value)})" if isinstance(value, dict) else "")
                     for key, value in found.items())


def main(wanted):
    whole = json.load(sys.stdin, object_pairs_hook=once)
    assert isinstance(whole, dict), whole
    if not wanted:
        print(names(whole))
    shown = []
    for name in wanted:
        found = whole
        for key in name.split("."):
            if key == "#":
                found = len(found)
            else:
                found = found[int(key) if isinstance(found, list) else key]
        shown.append(f"{name}: {json.dumps(found)}")
    if wanted:
        print(", ".join(shown))


if __name__ == "__main__":
    main(sys.argv[1:])
