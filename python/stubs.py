"""Writes the stubs of _core with the keywords of its verbs: stubs.py ARGUMENTS.inc FROM.pyi TO.pyi.

In FROM `**gemm: Any` stands for the keywords that gemm shows in ARGUMENTS.inc, and `product: Any`
for those that check and trace pass on, as members of a TypedDict.
"""
import pathlib
import re
import sys

ROW = re.compile(r'^(PRODUCT|MIXTURE|SHARED)\((\w+), "(.+?)", "(.+?)", (\w+)\)$', re.M)
SHOWN = {"gemm": ("all", "runs"), "grouped_gemm": ("all", "groups", "runs", "only_grouped"),
         "plan": ("only_plans", "all", "groups"), "moe": ("all", "runs"),
         "plan_moe": ("only_plans", "all"), "check": ("all", "groups")}


def main():
    rows = ROW.findall(pathlib.Path(sys.argv[1]).read_text())

    def keywords(verb, between, default):
        # What only plans takes tensors without memory.
        specs = ("Tensor", "Tensor | Spec") if "plan" in verb else ("", "")
        return between.join(
            f"{name}: {what.replace(*specs)}" + default.format(usual)
            for kind, name, what, usual, verbs in rows
            if (kind == "PRODUCT") == ("moe" not in verb) and verbs in SHOWN[verb])

    stubs = re.sub(r"\*\*(gemm|grouped_gemm|plan|moe|plan_moe): Any",
                   lambda found: "*, " + keywords(found[1], ",\n        ", " = {}"),
                   pathlib.Path(sys.argv[2]).read_text())
    stubs = stubs.replace("    product: Any", "    " + keywords("check", "\n    ", ""))
    pathlib.Path(sys.argv[3]).write_text(stubs)


if __name__ == "__main__":
    main()
