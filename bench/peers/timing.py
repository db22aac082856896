"""Steps of several peers in turns, each in a CUDA graph; on the model only if they are right."""
from __future__ import annotations

import statistics
from typing import Any, Callable

import torch
from cases import Case, DenseCase, reference

ROUNDS = 9
Step = Callable[..., torch.Tensor]


def sets_for(tokens: int) -> int:
    """How many sets of tokens a graph has: launches that find other experts, and cold weights."""
    return 10 if tokens <= 512 else 4


def captured(step: Step, sets: list[Any]) -> tuple[Any, list[torch.Tensor]]:
    """A graph of a step for each set, and its results, in memory that held NaN before."""
    for each in sets:
        step(*each)  # compiles, and tunes
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = [step(*each) for each in sets]
    for result in results:
        result.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    return graph, [result.clone() for result in results]


def in_turns(graphs: dict[str, Any], count: int) -> dict[str, tuple[float, float, float]]:
    """For each peer the median, least and most of ROUNDS, us a step; a first one is not counted."""
    took: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(ROUNDS + 1):
        for name, graph in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                took[name].append(begin.elapsed_time(end) * 1e3 / count)
    return {name: (statistics.median(t), min(t), max(t)) for name, t in took.items()}


def some_rows(case: Case | DenseCase, sets: list[Any]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Some rows of two sets, and what is right there."""
    made = []
    for one in sets[:2]:
        tokens = one[0].shape[0]
        rows = torch.linspace(0, tokens - 1, min(tokens, 16)).round().long().to(case.device)
        made.append((rows, reference(case, one, rows)))
    return made


def error_of(right: list[tuple[torch.Tensor, torch.Tensor]], results: list[torch.Tensor]) -> float:
    """The worst set's distance from float64 by the norm. Tokens that a peer quantises count as its
    error: 8 bits leave some 4%."""
    worst = 0.0
    for (rows, values), result in zip(right, results):
        apart = ((result[rows].double() - values).norm() / values.norm()).item()
        worst = max(worst, apart if apart == apart else float("inf"))
    return worst


def compiled(steps: dict[str, Step], sets: list[Any], say: Callable[[str], None]) -> None:
    """Each step once: what a compiler leaves in its cache, later calls find."""
    for name, step in steps.items():
        try:
            step(*sets[0])
            torch.cuda.synchronize()
        except Exception as fault:  # pylint: disable=broad-except  # a measuring call says it again
            say(f"{name}: {type(fault).__name__}: {fault}"[:300])


def measured(case: Case | DenseCase, steps: dict[str, Step], sets: list[Any],
             say: Callable[[str], None]) -> dict[str, Any]:
    """A row of the table: us, spread and error of each peer, or why it has none."""
    graphs: dict[str, Any] = {}
    row: dict[str, Any] = {"us": {}, "spread": {}, "error": {}, "left_out": {}}
    right = some_rows(case, sets)
    for name, step in steps.items():
        try:
            if case.device == "cpu":
                results = [step(*each) for each in sets]
            else:
                graphs[name], results = captured(step, sets)
            row["error"][name] = round(error_of(right, results), 5)
        except Exception as fault:  # pylint: disable=broad-except  # it loses this row only
            row["left_out"][name] = f"{type(fault).__name__}: {fault}"[:300]
            say(f"{name}: left out of this row: {row['left_out'][name]}")
            graphs.pop(name, None)
    for name, (middle, least, most) in in_turns(graphs, len(sets)).items() if graphs else ():
        row["us"][name] = round(middle, 2)
        row["spread"][name] = [round(least, 2), round(most, 2)]
    return row
