"""Rows of a file as the table of the docs: the strongest rival's time over ours, losses in bold."""
from __future__ import annotations

from typing import Any, Iterable

# More than this far from float64 by the norm is no result: 8-bit tokens leave some 5%.
TOO_FAR = 0.15


def key_of(row: dict[str, Any]) -> tuple[str, str, str, int]:
    return row["layer"], row["weights"], row["routing"], row["tokens"]


def merged(lines: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str, int], dict[str, Any]]:
    """The rows by what they measure; a later line of the same takes an earlier one's place."""
    return {key_of(row): row for row in lines if "layer" in row}


def rivals(row: dict[str, Any]) -> dict[str, float]:
    """Times of the peers whose results are right."""
    return {name: us for name, us in row["us"].items()
            if name != "ours" and row["error"].get(name, 0.0) <= TOO_FAR}


def cell(row: dict[str, Any] | None) -> str:
    if row is None or "ours" not in row["us"] or not rivals(row):
        return ""
    name, best = min(rivals(row).items(), key=lambda item: item[1])
    ratio = best / row["us"]["ours"]
    text = f"{ratio:.2f}"
    return (f"**{text}**" if ratio < 1 else text) + f" {name}"


def markdown(lines: list[dict[str, Any]]) -> str:
    """A table with a row for each layer, weights and routing, and a column for each number of
    tokens; an empty cell was not measured. Below it what each peer took, and who was left out."""
    rows = merged(lines)
    counts = sorted({key[3] for key in rows})
    heads = list(dict.fromkeys(key[:3] for key in rows))
    out = [f"- {line['head']}" for line in lines if "head" in line]
    out = list(dict.fromkeys(out)) + ([""] if out else [])
    out.append("| layer | weights | ids | " + " | ".join(f"{count:,}" for count in counts) + " |")
    out.append("|---|---|---|" + "---|" * len(counts))
    for head in heads:
        cells = " | ".join(cell(rows.get((*head, count))) for count in counts)
        out.append("| " + " | ".join(head) + f" | {cells} |")
    out += ["", "| layer | weights | ids | tokens | peer | us | least to most | from float64 |",
            "|---|---|---|---:|---|---:|---:|---:|"]
    for key in sorted(rows, key=lambda k: (heads.index(k[:3]), k[3])):
        row = rows[key]
        for name, us in row["us"].items():
            least, most = row["spread"][name]
            wrong = row["error"][name] > TOO_FAR
            out.append("| " + " | ".join(key[:3]) + f" | {key[3]:,} | {name} | {us:,.1f} | "
                       f"{least:,.1f} to {most:,.1f} | {row['error'][name]:.4f}"
                       + (", not counted |" if wrong else " |"))
    left = {(name, why) for row in rows.values() for name, why in row["left_out"].items()}
    if left:
        out += ["", "Left out of rows:", ""] + [f"- {name}: {why}" for name, why in sorted(left)]
    return "\n".join(out) + "\n"
