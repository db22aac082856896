#!/usr/bin/env python3
"""docs/isa.md is what script/isa_page.py makes of the docstrings of warpwright/isa/.

    isa_page_test.py ROOT
"""
import difflib
import pathlib
import subprocess
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    script = [sys.executable, root / "script" / "isa_page.py"]
    tested = subprocess.run([*script, "--self-test"], check=False)
    made = subprocess.run([*script, "--print"], capture_output=True, text=True, check=True).stdout
    there = (root / "docs" / "isa.md").read_text(encoding="utf-8")
    print("".join(difflib.unified_diff(there.splitlines(True), made.splitlines(True), "docs/isa.md",
                                       "what script/isa_page.py writes")), end="")
    if made != there:
        print("docs/isa.md is not what the docstrings say: run script/isa_page.py")
    # A call that a kernel begins with, so that an empty page is seen.
    for call in ("`mbarrier_init(SharedAddress barrier, int count", "`wgmma_fence<Accumulators>("):
        if call not in made:
            print(f"the page lacks {call}")
            return 1
    return int(made != there or tested.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
