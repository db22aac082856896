"""Views of every kind, in memory behind which nothing can be read."""
import ctypes
import mmap

import numpy as np


def guarded(count, dtype):
    """Elements whose last ends where memory that cannot be read begins."""
    size = max(1, count) * np.dtype(dtype).itemsize
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, -(-size // page) * page + page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address + len(memory) - page), page, 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    first = len(memory) - page - size
    memory[:len(memory) - page] = b"\x5a" * (len(memory) - page)
    return np.frombuffer(memory, np.uint8, size, first).view(dtype)[:count]


def placed(x, shape, of):
    """x as the view `of` an array of that shape, which has the end of its memory at a guard."""
    base = guarded(int(np.prod(shape)), x.dtype).reshape(shape)
    view = of(base)
    view[...] = x
    return view


def as_it_is(x):
    return placed(x, x.shape, lambda base: base)


def odd_address(x):
    base = guarded(x.size + 1, x.dtype)
    base[:-1] = x.reshape(-1)
    return base[:-1].reshape(x.shape)


def cut(axis, more, take):
    """The part `take`, of the extent, of an axis that has `more` of it."""
    def kind(x):
        n = x.shape[axis]
        shape = [more(n) if i == axis else e for i, e in enumerate(x.shape)]
        at = tuple(take(n) if i == axis else slice(None) for i in range(x.ndim))
        return placed(x, shape, lambda base: base[at])
    return kind


def same_along(axis):
    """All of x along `axis` like its first: a stride of 0."""
    def kind(x):
        first = x[tuple(slice(0, 1) if i == axis else slice(None) for i in range(x.ndim))]
        return np.broadcast_to(as_it_is(first), x.shape)
    return kind


def turned(i, j):
    return lambda x: as_it_is(x.swapaxes(i, j)).swapaxes(i, j)


def kinds(dimensions):
    """For each kind its name and what makes such a view of an array of so many dimensions. All have
    its values, but for those that are broadcast."""
    all_of_them = {"as it is": as_it_is, "odd address": odd_address}
    for axis in range(dimensions):
        all_of_them |= {
            f"gaps {axis}": cut(axis, lambda n: n + 16, lambda n: slice(0, n)),
            f"sliced {axis}": cut(axis, lambda n: n + 16, lambda n: slice(16, n + 16)),
            f"every second {axis}": cut(axis, lambda n: 2 * n, lambda n: slice(None, None, 2)),
            f"reversed {axis}": cut(axis, lambda n: n, lambda n: slice(None, None, -1)),
            f"broadcast {axis}": same_along(axis)}
    if dimensions > 1:
        all_of_them["transposed"] = turned(-1, -2)
    if dimensions > 2:
        all_of_them["batch inside"] = turned(0, 1)
    return all_of_them
