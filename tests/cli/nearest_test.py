#!/usr/bin/env python3
"""What a refusal calls the nearest is itself accepted.

    nearest_test.py WARPWRIGHT [--all]

Takes the refusals of the transcripts, and more of GENERATED, puts the nearest that each names in
the place of what was refused, and runs that: it must not be refused again. Without --all, which
script/campaign gives, those of some cases, drawn by WARPWRIGHT_SEED.
"""
import concurrent.futures
import functools
import os
import pathlib
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import samples  # noqa: E402
import transcript  # noqa: E402
import transcripts_test  # noqa: E402

# Commands beside those of the transcripts: products of every kind, and one thing that is wrong.
GENERATED = [
    "explain gemm --random 64 64 64 --weights int4",
    "explain gemm --random 64 64 96 --weights int4",
    "explain gemm --random 64 64 64 --scaling group --dtype e4m3",
    "explain gemm --random 64 64 64 --activation swiglu_oai",
    "explain gemm --random 64 64 64 --dtype nvf4",
    "explain gemm --random 64 64 64 --dtype mxf8 --as a100",
    "explain gemm --random 64 64 64 --dtype mxf8 --as l40s",
    "explain grouped --groups 2 --tokens 9 --n 64 --k 64 --dtype e4m3 --as rtx5090",
    "explain gemm --random 64 128 128 --weights mxf4 --as b200",
    "explain gemm --random 64 128 128 --weights nvf4 --as b200",
    "explain gemm --random 64 128 128 --weights int4 --as b200",
    "explain gemm --random 64 128 128 --weights mxf4 --as a100",
    "explain gemm --random 64 64 64 --cluster 4,4 --sms 8",
    "explain gemm --random 64 64 64 --cluster 3,7",
    "explain gemm --random 64 120 64 --gated",
    "explain gemm --random 64 512 4096 --cluster-k 7 --as h200",
    "explain grouped --groups 4 --tokens 2000000000 --n 64 --k 64",
    "explain grouped --groups 4 --tokens 99999999999 --n 64 --k 64",
    "explain moe --tokens 9 --experts 8 --top-k 33 --hidden 64 --inner 64",
    "explain moe --tokens 9 --experts 40 --top-k 33 --hidden 64 --inner 64",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 64 --inner 60",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 256 --inner 60 --weights int4",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 64 --inner 64 --experts-total 4",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 64 --inner 64 --first-expert 4",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 64 --inner 64 --first-expert 4 "
    "--experts-total 10",
    "explain moe --tokens -1 --experts 8 --top-k 2 --hidden 64 --inner 64",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 64 --inner 64 --activation relu",
    "explain moe --tokens 9 --experts 8 --top-k 2 --hidden 64 --inner 64 --scaling blockwise",
]

# What a sentence speaks of, as an option. "" is the word of the option that begins the sentence.
OPTIONS = {"cluster": "--cluster", "accumulation": "--accumulation", "activation": "--activation",
           "gate_up": "--gate-up", "scaling": "--scaling", "beta": "--beta", "dtype": "--dtype",
           "device": "--as", "group": "--group", "inner": "--inner", "total": "--total",
           "combine": "--combine",
           "experts_total": "--experts-total", "first_expert": "--first-expert",
           "way": "--quantise-d", "number of tokens of a group": "--tokens",
           "M": "--m", "N": "--n", "K": "--k"}
# Those that stand for another one, which goes.
INSTEAD = {"--dtype": ("--weights", "--sums", "--scaling")}
# What the library's words are as options' words.
WORDS = {"false": "no", "true": "yes"}
# Sentences of tensors of files, of shapes, and of what no single option says.
OF_OTHERS = re.compile(
    r"nearest legal (shape|B|number|rank) is|nearest is to keep|nearest is a K-major|"
    r"^(A|B|D|C|scale_|--offsets|--tokens \(|The weights|There is no completion|a tile of|"
    r"the groups have \d+ tokens in all, and the number)|"
    r"K is \d+, and \S+ is \S+ beside|the product with|is missing|, whose tensors|"
    r"accumulators of \d+ columns|the sums of packed|device \S+ is sm_|"
    r"^(quantises|gates_in|sort_with|by_index)")
# Cases are begun until they have taken so many seconds of processor time.
ENOUGH = 5
# What may be wrong besides: a GPU that is not here.
OF_DEVICES = re.compile(r"this build has no CUDA side|is no CUDA device|no CUDA driver")
NEAREST = re.compile(r"nearest (?:legal )?(?:(?P<of>[a-zA-Z_ ]+?) )?(?:is|has) (?:a )?"
                     r"(?P<value>\S+)")


def put(words, option, value):
    """The words with this value of the option."""
    words = list(words)
    for other in INSTEAD.get(option, ()):
        if other in words and option not in words:
            at = words.index(other)
            del words[at:at + 2]
    if option in ("--m", "--n", "--k") and "--random" in words:
        words[words.index("--random") + 1 + "mnk".index(option[2])] = value
        return words
    for i, word in enumerate(words):
        if word == option and i + 1 < len(words):
            words[i + 1] = value
            return words
        if word.startswith(option + "="):
            words[i] = f"{option}={value}"
            return words
    return words + [option, value]


def mended(words, sentence):
    """The words with the nearest that the sentence names; None where they say no such thing."""
    if OF_OTHERS.search(sentence):
        return None
    found = NEAREST.search(sentence)
    if not found:
        return None
    value = found["value"].rstrip(".:;,")
    value = WORDS.get(value, value)
    if value == "gated":
        return words + ["--gated"]
    begin = re.match(r"(?:--)?([a-z][a-z_-]*)( \d+,\d+)?(?: is|: | has| sends)", sentence)
    of = found["of"] or ""
    if of in OPTIONS:
        option = OPTIONS[of]
    elif sentence.startswith("--") and begin:
        option = "--" + begin[1]
    elif re.match(r"[MNK] is", sentence):
        option = OPTIONS[sentence[0]]
    elif begin and begin[1] in OPTIONS:
        option = OPTIONS[begin[1]]
    elif begin and "--" + begin[1].replace("_", "-") in words:
        option = "--" + begin[1].replace("_", "-")
    else:
        return None
    if option not in words and not any(w.startswith(option + "=") for w in words):
        if re.match(r"--(m|n|k|tokens)$", option) and "--random" not in words:
            return None
    return put(words, option, value)


# A refusal comes before any work: what takes more than 2 s of processor time is none.
LIMITED = ["sh", "-c", 'ulimit -t 2; exec "$0" "$@"']


def refused(program, words, folder, paths):
    """The sentence of the refusal; "" where it is none."""
    try:
        done = subprocess.run([*LIMITED, program, *words], cwd=folder, capture_output=True,
                              text=True, errors="replace", timeout=20, check=False,
                              env=transcript.environment(pathlib.Path(folder), paths))
    except subprocess.TimeoutExpired:
        return ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    return lines[-1] if done.returncode == 2 and lines else ""


def planned(words):
    """Only the product's plan, where that is all that may be refused."""
    slow = {"gemm": ("explain", "gemm"), "grouped": ("explain", "grouped")}
    takes_no = ("--check", "--out", "--bench", "--repeat", "--mode", "--seed", "--json")
    if "--as" in words and "--sms" in words:
        return words
    if words[0] not in slow or any(word.split("=")[0] in takes_no for word in words):
        return words
    return [*slow[words[0]], *words[1:]]


def try_one(program, words, folder, paths):
    """(was the sentence's nearest tried, the fault)."""
    sentence = refused(program, words, folder, paths)
    if "nearest" not in sentence:
        return False, None
    other = mended(words, sentence)
    if other is None:
        return False, None
    again = refused(program, planned(other), folder, paths)
    if again and again != sentence and "no option" in again:
        again = refused(program, other, folder, paths)
    if not again or OF_DEVICES.search(again):
        return True, None
    return True, (f"{shlex.join(words)}\n    {sentence}\n  and with that, {shlex.join(other)}\n"
                  f"    {again}")


def case(program, name, steps, paths):
    """The refusals of a case of a transcript, in whose folder its other commands have run."""
    tried, faults, seen = 0, [], set()
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        for step in steps:
            if step.words is None:
                makes = re.match(r"(warpwright (un)?pack|tensor|mkdir|touch|printf|for|echo|\w+=)",
                                 step.command)
                if makes or "--out" in step.command:
                    for command, _ in step.variants():
                        transcript.run(command, pathlib.Path(folder), paths)
                continue
            if "nearest" not in str(step.shown):
                continue
            for command, _ in step.variants():
                try:
                    words = shlex.split(command)
                except ValueError:
                    continue
                if str(step.shown) in seen:  # by another command that takes the same
                    continue
                if words[0] != "warpwright" or any(c in command for c in "|;$<>&"):
                    continue
                was_tried, fault = try_one(program, words[1:], folder, paths)
                tried += was_tried
                seen.add(str(step.shown))
                faults += [f"{name}:{step.line}: {fault}"] if fault else []
    return tried, faults


def generated(program, words, folder, paths):
    tried, fault = try_one(program, shlex.split(words), folder, paths)
    return int(tried), [fault] if fault else []


def spent():
    """Seconds of processor time of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as tools:
        transcripts_test.install(pathlib.Path(tools))
        paths = [pathlib.Path(program).parent, tools]
        work = [functools.partial(generated, program, words, tools, paths) for words in GENERATED]
        for file in sorted(transcripts_test.FOLDER.glob("*.txt")):
            for steps in transcripts_test.cases_of(file.name, file.read_text(encoding="utf-8")):
                if any(s.words is not None and "nearest" in str(s.shown) for s in steps):
                    work.append(functools.partial(case, program, file.name, steps, paths))
        every = "--all" in sys.argv
        if not every:
            random.Random(samples.run_seed()).shuffle(work)
        with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as workers:
            done = list(workers.map(lambda one: one() if every or spent() < ENOUGH else None, work))
    count, done = len(done), [one for one in done if one]
    if not every:
        print(f"{len(done)} of {count} cases; script/campaign runs all")
    faults = [fault for _, some in done for fault in some]
    for fault in faults:
        print("FAULT " + fault)
    tried = sum(count for count, _ in done)
    print(f"{tried} refusals name a nearest that was tried, {len(faults)} are refused again")
    # Were they not tried, they would not be right.
    return 1 if faults or tried < (90 if every else 1) else 0


if __name__ == "__main__":
    sys.exit(main())
