#!/usr/bin/env python3
"""Says which tests did not run, and why: skipped.py CTEST_JUNIT_XML [MORE...]

ctest itself only says "Skipped". A test that cannot run prints a line "did not run: <why>", which
is repeated here; so is what a test that ran says of its parts that did not. MORE are sentences
about what never became a test on this machine.
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def main():
    lines = []
    try:
        cases = ElementTree.parse(sys.argv[1]).iter("testcase")
    except (OSError, ElementTree.ParseError):
        cases = []
    for case in cases:
        output = case.findtext("system-out") or ""
        if case.get("status") not in ("notrun", "disabled"):
            lines += [f"{case.get('name')}: {part}" for part in
                      re.findall(r"^did not run: *(.*)", output, re.M)]
            continue
        why = re.search(r"did not run: *(.*)", output)
        skipped = case.find("skipped")
        reason = why.group(1) if why else (skipped.get("message") if skipped is not None else "")
        lines.append(f"{case.get('name')}: {reason or 'it gave no reason'}")
    lines += sys.argv[2:]
    if lines:
        print("== did not run:")
        for line in lines:
            print(f"==   {line}")


if __name__ == "__main__":
    main()
