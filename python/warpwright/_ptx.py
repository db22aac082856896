"""Kernels in PTX on the model: `check_ptx`, beside the command `warpwright check ptx`."""
from __future__ import annotations

import dataclasses
import operator
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from . import _core
from ._interop import Refusal, dtype_name
from ._study import Checked

if TYPE_CHECKING:
    from ._types import Tensor


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """A tensor map of ``array``, as ``cuTensorMapEncodeTiled`` makes one: an argument of
    ``check_ptx``.

    ``box`` has an extent for each dimension, the innermost last, as shapes do. ``swizzle`` is 0,
    32, 64 or 128 bytes. ``extents`` are the array's shape, and ``pitches``, in bytes, of rows
    last, those of a dense tensor, where they are not given; ``dtype`` is the array's. A parameter
    that is a larger struct, which begins with the map, has ``struct_bytes``.
    """

    array: Tensor
    box: Sequence[int]
    swizzle: int = 0
    extents: Sequence[int] | None = None
    pitches: Sequence[int] | None = None
    dtype: Any = None
    struct_bytes: int = 128


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault of a kernel."""

    code: str  #: "O1": docs/model.md lists them
    name: str  #: "data race"
    #: the line of the text, "share.ptx:13", with that of the source in front where the text has
    #: it; or empty
    place: str
    sentence: str  #: who, what, which edge is missing
    schedules: int  #: how many show it
    first: str  #: of them, for ``replay``

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        return f"{self.code} {self.name}{at}: {self.sentence}"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A kernel with one statement broken on purpose: docs/mutation.md."""

    kind: str  #: "dropped"
    site: str  #: "named barrier at share.ptx:13"
    how: str  #: "dropped", or what became what
    fate: str  #: "killed"; "survived"; "equivalent", the same program in other words
    code: str  #: of the finding that killed it, or empty
    schedules: int  #: tried, until then


@dataclasses.dataclass(frozen=True, repr=False)
class PtxCheck(Checked):
    """What ``check_ptx`` found. True where nothing was."""

    kernel: str
    schedules: int  #: tried
    failing: int  #: of those, with a finding
    findings: list[Finding]
    mutants: list[Mutant]  #: with ``mutate``, of a kernel that is clean
    score: str  #: of these: "mutation score: 100% (killed 7 of 7, equivalent 0)"

    def __str__(self) -> str:
        survived = [f"  SURVIVED: {m.how}: {m.site}" for m in self.mutants if m.fate == "survived"]
        return "\n".join([super().__str__(), *([self.score] if self.score else []), *survived])

    def _told(self) -> tuple[str, list[tuple[str, int, str]]]:
        return self.kernel, [(str(f), f.schedules, f.first) for f in self.findings]

    def __repr__(self) -> str:
        return f"<PtxCheck of {self}>"


def check_ptx(ptx: str | bytes | os.PathLike[str], entry: str | None = None,
              args: Iterable[Any] = (), *, block: int | Sequence[int],
              grid: int | Sequence[int] = 1, cluster: int = 1, smem: int = 0,
              registers: int | None = None, sms: int = 8,
              expect: Mapping[int, Tensor] | None = None, schedules: int = 64, seed: int = 1,
              jobs: int = 1, replay: str | None = None, strict: bool = False,
              mutate: bool = False) -> PtxCheck:
    """Runs a kernel of a PTX text on the model under many schedules, and tells what is wrong with
    its synchronisation, by lines. No GPU is needed. docs/ptx.md says which instructions are known.

    ptx        the text, as nvcc -ptx -lineinfo, Triton and others write it, or the path of one: a
               str in several lines is a text.
    entry      the kernel's name in it; may be left out where it is the only one.
    args       a value for each parameter:
               - an array of host memory (numpy, PyTorch, JAX, ...), of any type, without gaps: a
                 buffer of global memory, and its address. Arrays that share memory share a buffer.
                 Whoever writes into a read-only one is a finding.
               - a number with its type: numpy.int32(5), or ("u32", 5), ("f32", 0.5), ("bf16", 1)
               - TensorMap(array, box, ...), which a kernel takes as a __grid_constant__
                 CUtensorMap
               - bytes, or what has a buffer (ctypes' structs), for a struct
               - None, a null pointer
    grid, block   CTAs, and threads of a CTA: a number, or up to three
    cluster    CTAs of a cluster, along x
    smem       bytes of dynamic shared memory
    registers  of a thread when it begins, as ptxas -v says; setmaxnreg counts from there
    sms        SMs of the model
    expect     by index in args: what the array must hold behind each run, byte for byte; else R1
    schedules, seed, jobs   as of ``check``: eager, latest, and random ones by ``seed``; ``jobs``
               threads share them
    replay     only one schedule, as ``Finding.first`` says it
    strict     the strict reading of a disputed rule, as --strict
    mutate     breaks every statement of a kernel that is clean, one at a time, and says which of
               these mutants the checks find: does its synchronisation matter, piece by piece?

    Each schedule begins with the arrays as they are. When it returns, they hold what the first
    schedule left there, as behind a launch on a GPU; also where something was found. Raises
    Refusal, with one sentence: an unknown instruction with its line, arguments that do not fit.
    """
    text, name = _text_of(ptx)
    expected = [(_index(at), want) for at, want in (expect or {}).items()]
    kernel, ran, failing, found, (mutants, score) = _core.check_ptx(
        text, name, entry, _extents("grid", grid), _extents("block", block), cluster, smem,
        registers, sms, [_argument(i, each) for i, each in enumerate(args)], expected, schedules,
        seed, jobs, replay, strict, mutate)
    return PtxCheck(kernel, ran, failing, [Finding(*each) for each in found],
                    [Mutant(*each) for each in mutants], score)


def _text_of(ptx: str | bytes | os.PathLike[str]) -> tuple[bytes, str]:
    """A text, and what findings call it."""
    if isinstance(ptx, (bytes, bytearray)):
        return bytes(ptx), "ptx"
    if isinstance(ptx, str) and "\n" in ptx:
        return ptx.encode("utf-8", "surrogateescape"), "ptx"
    if not isinstance(ptx, (str, os.PathLike)):
        raise Refusal(f"ptx is a {type(ptx).__name__}; it is a text, or the path of one")
    path = pathlib.Path(ptx)
    try:
        return path.read_bytes(), path.name
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise Refusal(f"the PTX file {str(path)!r} cannot be read: {why}", "file_error") from None


def _extents(name: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    try:
        row = [operator.index(given)]  # type: ignore[arg-type]
    except TypeError:
        try:
            row = [operator.index(each) for each in given]  # type: ignore[union-attr]
        except TypeError:
            row = []
    if not 1 <= len(row) <= 3 or not all(1 <= each < 1 << 31 for each in row):
        raise Refusal(f"{name} is {given!r}; it is one to three whole numbers from 1 on: the "
                      "nearest is 1", nearest="1")
    x, y, z = [*row, 1, 1][:3]
    return x, y, z


def _index(at: int) -> int:
    if isinstance(at, int) and at >= 0:
        return at
    raise Refusal(f"expect has the key {at!r}; keys are indices of args, from 0: the nearest is 0",
                  nearest="0")


def _argument(index: int, given: Any) -> tuple[Any, ...]:
    """What _core.check_ptx takes for it: a kind, and its parts."""
    numpy = sys.modules.get("numpy")
    if given is None:
        return "bytes", bytes(8)
    if isinstance(given, TensorMap):
        dtype = None if given.dtype is None else dtype_name(given.dtype)
        return ("map", given.array, given.box, given.swizzle, given.extents, given.pitches, dtype,
                given.struct_bytes)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return ("number", *given)
    if numpy is not None and isinstance(given, numpy.generic):
        return "bytes", given.tobytes()
    if hasattr(given, "__dlpack__") or type(given).__name__ == "PyCapsule":
        return "tensor", given
    if isinstance(given, (int, float)):
        nearest = f'("{"f32" if isinstance(given, float) else "s32"}", {given})'
        raise Refusal(f"argument {index + 1} is {given!r}, and PTX does not say of which type: "
                      f"the nearest is {nearest}", nearest=nearest)
    try:
        return "bytes", bytes(memoryview(given))
    except TypeError:
        kind = type(given)
        raise Refusal(f"argument {index + 1} is a {kind.__module__}.{kind.__qualname__}; it is an "
                      'array, a number with its type, as ("u32", 5), a TensorMap, bytes or None: '
                      "the nearest is bytes", nearest="bytes") from None
