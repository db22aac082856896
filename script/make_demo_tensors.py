#!/usr/bin/env python3
"""Writes the demo's matrices: make_demo_tensors.py FOLDER

x.safetensors holds "x" (300 x 256) and w.safetensors holds "w" (200 x 256), both bf16. They are
smooth waves, the same on every machine.
"""
import json
import math
import pathlib
import struct
import sys


def bf16(value):
    """The two bytes of the bf16 nearest to a value, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + ((bits >> 16) & 1)
    return struct.pack("<H", (bits >> 16) & 0xFFFF)


def write(path, name, rows, columns, wave):
    data = b"".join(bf16(wave(i, j)) for i in range(rows) for j in range(columns))
    header = json.dumps({name: {"dtype": "BF16", "shape": [rows, columns],
                                "data_offsets": [0, len(data)]}}).encode()
    header += b" " * (-len(header) % 8)  # the format wants the data aligned
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "x.safetensors", "x", 300, 256,
          lambda i, j: math.sin(0.05 * i + 0.11 * j) + 0.25 * math.cos(0.7 * j))
    write(folder / "w.safetensors", "w", 200, 256,
          lambda i, j: 0.1 * math.cos(0.03 * i * (1 + j % 3) - 0.13 * j))


if __name__ == "__main__":
    main()
