#!/usr/bin/env python3
"""Tensors for transcripts: makes, shows and compares them.

    tensor SPEC=TYPE:SHAPE[:VALUES]    makes one of random values, or of these, again and again
    tensor SPEC=SPEC[INDEX]+...        a part of another, or several, one below the other
    tensor SPEC[INDEX]                 prints type, shape and, with INDEX or of few, the values
    tensor SPEC==SPEC[INDEX]           prints which of them are the same; else the exit status is 1

SPEC is FILE.npy or FILE.safetensors:NAME, SHAPE 4x72x160 (or - for a scalar), VALUES 1,nan,-0.5
or 1,0.5*, whose last one goes on to the end.
INDEX begins with the first dimension: [3] or [16:19], then perhaps a comma and the next one's.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import tensor_files as files  # noqa: E402


def part(tensor, index):
    """What the index takes of a tensor's first dimensions."""
    word, shape, data = tensor
    if not index:
        return tensor
    first, _, rest = index.partition(",")
    size = len(data) // shape[0]
    if ":" in first:
        begin, end = (int(x) if x else otherwise
                      for x, otherwise in zip(first.split(":"), (0, shape[0])))
        rows = [part((word, shape[1:], data[i * size:(i + 1) * size]), rest)
                for i in range(begin, end)]
        inner = rows[0][1] if rows else shape[1:]
        return word, [end - begin, *inner], b"".join(row[2] for row in rows)
    i = int(first)
    return part((word, shape[1:], data[i * size:(i + 1) * size]), rest)


def read(text):
    spec, index = re.fullmatch(r"(.*?)(?:\[([^\]]*)\])?", text).groups()
    return part(files.read(spec), index)


def made(spec, text):
    if text.split(":")[0] not in files.TYPES:
        parts = [read(spec) for spec in text.split("+")]
        word, shape, _ = parts[0]
        if len(parts) > 1:
            shape = [sum(p[1][0] for p in parts), *shape[1:]]
        return word, shape, b"".join(p[2] for p in parts)
    word, shape, *values = text.split(":")
    shape = [] if shape == "-" else [int(x) for x in shape.split("x")]
    count = files.elements(shape)
    if not values:
        return word, shape, files.random_bytes(word, count, spec)
    goes_on = values[0].endswith("*")
    values = [float(x) for x in values[0].rstrip("*").split(",")]
    values += [values[-1]] * (count - len(values)) if goes_on else []
    return word, shape, files.encoded(word, [values[i % len(values)] for i in range(count)])


def shown(text):
    word, shape, data = read(text)
    line = f"{text}: {word} {'x'.join(map(str, shape)) or '-'}"
    if text.endswith("]") or files.elements(shape) <= 8:
        line += ":" + "".join(f" {x:g}" for x in files.decoded(word, data))
    return line


def main(arguments):
    status = 0
    for argument in arguments:
        one, same, other = argument.partition("==")
        if same:
            equal = read(one) == read(other)
            print(f"{one} {'is' if equal else 'is not'} {other}")
            status |= not equal
        elif "=" in argument:
            spec, _, text = argument.partition("=")
            files.write(spec, made(spec, text))
        else:
            print(shown(argument))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
