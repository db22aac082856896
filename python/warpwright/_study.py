"""Products on the model to look at: `check` for faults of their synchronisation, `trace` for who
did what when."""
from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import TYPE_CHECKING, Any

from . import _core
from ._interop import Refusal

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._core import Product
    from ._prepare import PackedWeights
    from ._types import Tensor


class Checked:
    """What a check has to say, as text."""

    schedules: int
    findings: list[Any]

    def _told(self) -> tuple[str, list[tuple[str, int, str]]]:
        """What ran, and the findings as ``Check`` has them."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        name, found = self._told()
        lines = [f"{name} under {_count(self.schedules, 'schedule')}: "
                 + ("no findings" if self else _count(len(found), "finding"))]
        lines += [f"  {sentence} ({_count(count, 'schedule')}; the first: {first})"
                  for sentence, count, first in found]
        return "\n".join(lines)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@dataclasses.dataclass(frozen=True)
class Check(Checked):
    """What ``check`` found. True where nothing was."""

    plan: _core.Plan
    schedules: int  #: tried
    failing: int  #: of those, with a finding
    #: (sentence, how many schedules show it, the first of them) each
    findings: list[tuple[str, int, str]]

    def _told(self) -> tuple[str, list[tuple[str, int, str]]]:
        return self.plan.name, self.findings


@dataclasses.dataclass(frozen=True)
class Trace:
    """The timeline of a product on the model, in nominal cycles; a notebook shows its picture."""

    plan: _core.Plan
    svg: str = dataclasses.field(repr=False)  #: the first tiles: roles, copies, tensor cores
    grid_svg: str = dataclasses.field(repr=False)  #: which SM worked on which tile, when
    perfetto: bytes = dataclasses.field(repr=False)  #: a trace for ui.perfetto.dev
    cycles: int  #: nominal, at its end

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Writes the picture (.svg), or else the trace for ui.perfetto.dev."""
        to = pathlib.Path(path)
        if to.suffix.lower() in (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".html"):
            raise Refusal(f"{to.name} is no name of what is written: a picture is .svg, any other "
                          f"name gets the trace for ui.perfetto.dev; the nearest is "
                          f"{to.with_suffix('.svg').name}", nearest=to.with_suffix(".svg").name)
        if to.suffix == ".svg":
            to.write_text(self.svg, encoding="utf-8")
        else:
            to.write_bytes(self.perfetto)
        return to


def check(a: Tensor, b: Tensor | PackedWeights, offsets: Tensor | None = None, *,
          schedules: int = 64, seed: int = 1, jobs: int = 1, sms: int = 8,
          **product: Unpack[Product]) -> Check:
    """Runs ``gemm(a, b, ...)``, with ``offsets`` ``grouped_gemm``, on the model under many
    schedules and tells what is wrong with the kernel's synchronisation. Tensors in host memory;
    `out` keeps its content. The schedules are eager, latest, and random ones by ``seed``; ``jobs``
    threads share them; the model has ``sms`` SMs."""
    return Check(*_core.check(a, b, offsets, schedules=schedules, seed=seed, jobs=jobs, sms=sms,
                              **product))


def trace(a: Tensor, b: Tensor | PackedWeights, offsets: Tensor | None = None, *, sms: int = 8,
          seed: int = 1, **product: Unpack[Product]) -> Trace:
    """Runs ``gemm(a, b, ...)``, with ``offsets`` ``grouped_gemm``, on the model of ``sms`` SMs and
    records who did what when, in nominal cycles. Tensors in host memory."""
    return Trace(*_core.trace(a, b, offsets, sms=sms, seed=seed, **product))
