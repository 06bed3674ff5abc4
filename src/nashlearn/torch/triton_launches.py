"""Launches of Triton kernels from Python that cost as little time as they can."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, NamedTuple

import torch
import triton

__all__ = ["Launch", "Launcher", "halves", "usual"]


class Launch(NamedTuple):
    """A launch that lacks nothing but the addresses of its tensors; ``stream`` finds the current one of a device."""

    run: Any
    programs: int
    device: int
    function: Any
    metadata: Any
    others: tuple
    stream: Any

    def __call__(self, addresses: Sequence[int]) -> None:
        """Launch on the current stream."""
        stream = self.stream(self.device)
        self.run(
            self.programs, 1, 1, stream, self.function, self.metadata, None, None, None, *addresses, *self.others
        )  # fmt: skip


class Launcher:
    """A kernel with its ``constants`` and ``options``, launched with ``parts`` programs for every so many ``rows``.

    Machine code depends on ``choice`` and on the types of tensors besides, if these are aligned to 16 bytes, as PyTorch
    allocates them, and integers have 32 bits. It is found again by these and given addresses, in half the time that
    Triton takes to look it up and to check tensors. What is not as usual goes Triton's own way.
    """

    def __init__(
        self, kernel: Any, constants: tuple, rows: int = 1, parts: int = 1, tempered: bool = False, **options: Any
    ):
        self.kernel, self.constants, self.rows, self.parts, self.options = kernel, constants, rows, parts, options
        self.tempered = tempered
        self._compiled: dict[Any, Any] = {}

    def __call__(self, n: int, tensors: tuple, integers: tuple, choice: bool, smoothing: float = 0.0) -> None:
        """Launch ``kernel(*tensors, n, *integers, choice, *constants)`` on the current stream.

        A ``tempered`` kernel takes the halves of the smoothing behind the integers.
        """
        addresses = [0 if tensor is None else tensor.data_ptr() for tensor in tensors]
        launch = self.known(n, tensors, integers, choice, smoothing) if usual(addresses) else None
        if launch is not None:
            launch(addresses)
            return
        others = self._others(n, integers, choice, smoothing)
        found = self.kernel[(self._programs(n),)](*tensors, *others, **self.options)
        if usual(addresses) and not torch.version.hip:
            self._compiled[_types(tensors, choice)] = found

    def known(self, n: int, tensors: tuple, integers: tuple, choice: bool, smoothing: float = 0.0) -> Launch | None:
        """A launch with tensors of these types; None if there has been none, or an integer has more than 32 bits."""
        key = _types(tensors, choice)
        found = self._compiled.get(key)
        if found is None or max((n, *map(abs, integers))) >> 31:
            return None
        others = self._others(n, integers, choice, smoothing)
        stream = triton.runtime.driver.active.get_current_stream
        return Launch(found.run, self._programs(n), key[0], found.function, found.packed_metadata, others, stream)

    def _programs(self, n: int) -> int:
        return -(-n // self.rows) * self.parts

    def _others(self, n: int, integers: tuple, choice: bool, smoothing: float) -> tuple:
        """All arguments but tensors."""
        if self.tempered:
            integers += halves(smoothing)
        return n, *integers, choice, *self.constants


def _types(tensors: tuple, choice: bool) -> tuple:
    """What machine code depends on, the device first."""
    types = [tensor if tensor is None else tensor.dtype for tensor in tensors]
    return tensors[0].get_device(), choice, *types


def usual(addresses: Sequence[int]) -> bool:
    """Whether a launch may be repeated with them: all are multiples of 16, and no profiler is to hear of it."""
    return not (reduce(or_, addresses) & 15 or _watched())


_RUNTIME = getattr(getattr(triton, "knobs", None), "runtime", None)


def _watched() -> bool:
    """Whether a profiler is to hear of launches, which Triton's own way sees to; True if Triton is too old to say."""
    return bool(getattr(getattr(_RUNTIME, "launch_enter_hook", None), "calls", True))


@cache
def halves(x: float) -> tuple[int, int]:
    """The two halves of a float64 as integers: a number that kernels take would be rounded to float32."""
    low, high = struct.unpack("<ii", struct.pack("<d", x))
    return low, high
