#!/usr/bin/env python3
"""Completion as a shell does it, against what the commands' own help lists.

    completion_test.py SHELL WARPWRIGHT   SHELL is bash, zsh or fish; 77 where it is not here
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MISSING = 77

BASH = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_warpwright
printf '%s\n' "${COMPREPLY[@]}"
"""
# What the completion system gives a function of its own, as far as ours asks for it; what does not
# begin as the word does it would leave out.
ZSH = r"""
compdef() { : }
compset() { typed=${typed#*=} }
compadd() { shift; local w; for w in "$@"; do [[ $w == $typed* ]] && print -r -- $w; done }
_files() { local w; for w in *(N); do [[ $w == $typed* ]] && print -r -- $w; done }
source "$1"; shift
words=("$@"); CURRENT=$#; typed=$words[CURRENT]
_warpwright
"""
FISH = r"""
source $argv[1]
complete --do-complete "$argv[2]"
"""


class Shell:
    """One shell with the script that the program prints for it."""

    def __init__(self, name, program, folder):
        self.name, self.folder = name, folder
        self.script = folder / "script"
        self.script.write_text(subprocess.run([program, "completion", name], check=True, text=True,
                                              capture_output=True).stdout)

    def offers(self, *words):
        """What is offered for the last of these words, behind `warpwright`."""
        if self.name == "bash":
            split = []  # as COMP_WORDBREAKS has it
            for word in words:
                option, sign, value = word.partition("=")
                split += [option, sign] + ([value] if value else []) if sign else [word]
            call = ["bash", "--norc", "-c", BASH, "bash", str(self.script), "warpwright", *split]
        elif self.name == "zsh":
            call = ["zsh", "-f", "-c", ZSH, "zsh", str(self.script), "warpwright", *words]
        else:
            call = ["fish", "--no-config", "-c", FISH, str(self.script),
                    " ".join(("warpwright",) + words)]
        run = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, check=False,
                             env={**os.environ, "HOME": str(self.folder)})
        assert run.returncode in (0, 1), (words, run)
        assert not run.stderr, (words, run.stderr)
        found = [line.split("\t")[0] for line in run.stdout.splitlines() if line]
        if self.name == "fish":  # offers the option with the value
            found = [re.sub(r"^--[a-z-]+=", "", word) for word in found]
        return sorted(found)


def help_of(program, path):
    return subprocess.run([program, *path, "--help"], check=True, text=True,
                          capture_output=True).stdout


def commands_in(text):
    """The commands that a help lists."""
    if "Subcommands:" not in text:
        return []
    return re.findall(r"^  ([a-z][\w]*) ", text.split("Subcommands:")[1].split("\n\n")[0], re.M)


def options_in(text):
    """The options that a help lists, by all their names."""
    lines = re.findall(r"^  (-[^ ]+)", text.split("\nExamples:")[0], re.M)
    return sorted(name for line in lines for name in line.split(","))


def walk(program, path=()):
    """Every command with its help."""
    text = help_of(program, path)
    yield path, text
    for name in commands_in(text):
        yield from walk(program, path + (name,))


def main(name, program):
    if shutil.which(name) is None:
        print(f"did not run: no {name} here")
        return MISSING
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        (folder / "matrix.npy").touch()
        shell = Shell(name, program, folder)
        tree = list(walk(program))
        assert len(tree) > 20, tree
        for path, text in tree:
            listed = commands_in(text)
            if listed:
                assert shell.offers(*path, "") == sorted(listed), (path, shell.offers(*path, ""))
            wanted = [o for o in options_in(text) if o.startswith("--")]
            assert "--help" in wanted, text
            offered = [o for o in shell.offers(*path, "--") if o.startswith("--")]
            assert offered == sorted(set(wanted)), (path, set(offered) ^ set(wanted))
        cases = {
            ("gemm", "--layout", ""): ["NN", "NT", "TN", "TT"],
            ("gemm", "--dtype", "b"): ["bf16"],
            ("gemm", "--dtype=fp"): ["fp16"],
            ("gemm", "--check", "--swap-ab", ""): ["no", "yes"],
            ("explain", "gemm", "--as", "h"): ["h100", "h20", "h200"],
            ("check", "grouped", "--mode", "l"): ["latest"],
            ("grouped", "--bad-offsets", ""): ["beyond", "decreasing"],
            ("mask", "--cluster", "4,"): ["4,1", "4,2", "4,4"],
            ("bench", "w4a8", "--encoding", ""): ["ex", "sm"],
            ("kernels", "--dtype", "m"): ["mxf4", "mxf6", "mxf6-e3m2", "mxf8", "mxf8-e5m2"],
            ("completion", ""): ["bash", "fish", "zsh"],
            ("gemm", "--a", "mat"): ["matrix.npy"],
            ("pack", "mat"): ["matrix.npy"],
            ("gemm", "--alpha", "mat"): [],
        }
        for words, wanted in cases.items():
            assert shell.offers(*words) == wanted, (words, shell.offers(*words))
        kernels = shell.offers("gemm", "--kernel", "hopper_bf16_bf16_128x256")
        assert "hopper_bf16_bf16_128x256" in kernels, kernels
        # None of the words of these options is refused as no word of theirs.
        for option in ("--dtype", "--d-dtype", "--layout", "--device", "--as", "--scaling",
                       "--accumulation", "--schedule", "--scheduler", "--swap-ab", "--bias",
                       "--activation", "--cluster", "--weights", "--sums"):
            offered = shell.offers("explain", "gemm", option, "")
            assert offered, option
            for word in offered:
                run = subprocess.run([program, "explain", "gemm", "--random", "64", "64", "128",
                                      option, word], capture_output=True, text=True, check=False)
                assert "it must be" not in run.stderr and "is written" not in run.stderr, run
    print(f"{name}: {len(tree)} commands")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
