#!/usr/bin/env python3
"""The slices of a trace for ui.perfetto.dev, a line each: where, from when to when, and what.

    perfetto FILE
    perfetto --during-epilogue 'CTA, TRACK' FILE   the CTA's during this track's first epilogue

Takes the file apart as the format says (protobuf) and ends with a fault where it does not fit: a
name that is not interned, a track before its CTA, a time before the last one, a slice left open.
"""
import collections
import pathlib
import sys


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def message(data):
    """A message as {field: values}; numbers and texts are all that the writer uses."""
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        assert key & 7 in (0, 2), f"wire type {key & 7}"
        if key & 7 == 2:
            assert at + value <= len(data), "a field that does not end"
            value, at = data[at:at + value], at + value
        fields[key >> 3].append(value)
    return fields


def one(fields, number, otherwise=0):
    return fields[number][0] if number in fields else otherwise


def slices(data):
    names, tracks, parents = {}, {}, {}
    opened, last, done = collections.defaultdict(list), collections.Counter(), []
    trace = message(data)
    assert set(trace) <= {1}, f"fields {set(trace)} beside packets"
    for packet in map(message, trace[1]):
        assert one(packet, 10) == 1, "a second sequence of packets"
        if 12 in packet:
            for name in map(message, message(packet[12][0])[2]):
                names[one(name, 1)] = one(name, 2).decode()
        elif 60 in packet:
            track = message(packet[60][0])
            cta = one(message(one(track, 3, b"")), 6, b"").decode()
            tracks[one(track, 1)] = cta or one(track, 2).decode()
            if one(track, 5):
                assert one(track, 5) in tracks, "a track before its CTA"
                parents[one(track, 1)] = one(track, 5)
        elif 11 in packet:
            event, time = message(packet[11][0]), one(packet, 8)
            on = one(event, 11)
            assert on in parents, "an event on no track"
            assert time >= last[on], f"{time} behind {last[on]} on {tracks[on]}"
            last[on] = time
            if one(event, 9) == 1:
                opened[on].append([tracks[parents[on]], tracks[on], time, None,
                                   names[one(event, 10)]])
                done.append(opened[on][-1])
            elif one(event, 9) == 2:
                opened[on].pop()[3] = time
    assert not any(opened.values()), "a slice is left open"
    return done


def first_epilogue(found, where):
    """When the epilogue of this track's first tile begins and ends."""
    times, ended = [], False
    for place, begin, end, name in found:
        if place == where and name.startswith("epilogue") and not ended:
            times += [begin, end]
        ended |= place == where and name.startswith("tile ") and bool(times)
    return min(times), max(times)


def main(*arguments):
    found = [(f"{cta.split(' (')[0]}, {track}", begin, end, name)
             for cta, track, begin, end, name in slices(pathlib.Path(arguments[-1]).read_bytes())]
    if arguments[0] == "--during-epilogue":
        first, last = first_epilogue(found, arguments[1])
        cta = arguments[1].split(",")[0]
        found = [s for s in found if s[0].startswith(f"{cta},") and s[1] < last and s[2] > first]
    for place, begin, end, name in found:
        print(f"{place}: {begin}..{end} {name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
