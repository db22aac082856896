"""Products on the model to look at: `check` for faults of their synchronisation, `trace` for who
did what when."""
import dataclasses
import pathlib

from . import _core


@dataclasses.dataclass(frozen=True)
class Check:
    """What ``check`` found. True where nothing was."""

    plan: _core.Plan
    schedules: int  #: tried
    failing: int  #: of those, with a finding
    findings: list  #: (sentence, how many schedules show it, the first of them) each

    def __bool__(self):
        return not self.findings

    def __str__(self):
        lines = [f"{self.plan.name} under {self.schedules} schedules: "
                 + ("no findings" if self else f"{len(self.findings)} findings")]
        lines += [f"  {sentence} ({count} schedules; the first: {first})"
                  for sentence, count, first in self.findings]
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Trace:
    """The timeline of a product on the model, in nominal cycles; a notebook shows its picture."""

    plan: _core.Plan
    svg: str = dataclasses.field(repr=False)  #: the first tiles: roles, copies, tensor cores
    grid_svg: str = dataclasses.field(repr=False)  #: which SM worked on which tile, when
    perfetto: bytes = dataclasses.field(repr=False)  #: a trace for ui.perfetto.dev
    cycles: int  #: nominal, at its end

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """Writes the picture (.svg), or else the trace for ui.perfetto.dev."""
        path = pathlib.Path(path)
        if path.suffix == ".svg":
            path.write_text(self.svg, encoding="utf-8")
        else:
            path.write_bytes(self.perfetto)
        return path


def check(a, b, offsets=None, *, schedules=64, seed=1, jobs=1, sms=8, **product):
    """Runs ``gemm(a, b, ...)``, with ``offsets`` ``grouped_gemm``, on the model under many
    schedules and tells what is wrong with the kernel's synchronisation. Tensors in host memory;
    `out` keeps its content. The schedules are eager, latest, and random ones by ``seed``; ``jobs``
    threads share them; the model has ``sms`` SMs."""
    return Check(*_core.check(a, b, offsets, schedules=schedules, seed=seed, jobs=jobs, sms=sms,
                              **product))


def trace(a, b, offsets=None, *, sms=8, seed=1, **product):
    """Runs ``gemm(a, b, ...)``, with ``offsets`` ``grouped_gemm``, on the model of ``sms`` SMs and
    records who did what when, in nominal cycles. Tensors in host memory."""
    return Trace(*_core.trace(a, b, offsets, sms=sms, seed=seed, **product))
