#!/usr/bin/env python3
"""Pictures for transcripts; one that is no XML ends with a fault.

    picture FILE.svg            prints its texts, and what its boxes say
    picture --tiles FILE.svg    of a picture of the grid: counts the boxes of tiles
    picture --loads FILE.svg    of a timeline: the texts on the boxes of loads
"""
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
LOADS = ("#2f6fb3", "#8fb9e3")
TILES = ("#2f6fb3", "#1f8a63")


def tiles(root):
    boxes = [[float(r.get(k)) for k in ("x", "y", "width", "height")]
             for r in root.iter(SVG + "rect") if r.get("fill") in TILES and r.get("rx") == "2"]
    overlaps = sum(all(a[i] + a[i + 2] > b[i] + 0.2 and b[i] + b[i + 2] > a[i] + 0.2
                       for i in (0, 1)) for n, a in enumerate(boxes) for b in boxes[:n])
    print(f"{len(boxes)} boxes, {overlaps} on another")


def main(*arguments):
    root = xml.parse(arguments[-1]).getroot()
    if arguments[0] == "--tiles":
        tiles(root)
    elif arguments[0] == "--loads":
        parts = list(root.iter())
        for box, text in zip(parts, parts[2:]):  # between them stands the box's title
            if box.get("fill") in LOADS and box.find(SVG + "title") is not None:
                print(text.text)
    else:
        for part in root.iter():
            if part.text and part.text.strip() and part.tag != SVG + "style":
                print(part.text)


if __name__ == "__main__":
    main(*sys.argv[1:])
