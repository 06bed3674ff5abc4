"""Games of cost matrices on CUDA, exact and tempered, for up to 64 labels and options: CUDA C++ in the folder ``cuda``.

Some neighbouring lanes of a warp share a row. The exact game is solved by exchanges, as in
:mod:`nashlearn.torch.pivots`, in a table that they keep in registers; the tempered one by Newton's method on the
options that are played, as in :mod:`nashlearn.torch.tempered_costs`. Both are certified in float64, and a row whose
gap exceeds 1e-6 of the largest cost is NaN.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from nashlearn.torch.checks import sum_type
from nashlearn.torch.nvrtc import Kernel

__all__ = ["WIDEST", "Game", "game", "strategies"]

WIDEST = 64  # labels and options
_KINDS = {torch.float64: 0, torch.float32: 1, torch.bfloat16: 2, torch.float16: 3}
_THREADS = 128
_SHARED = 64 * 1024  # bytes of a block, which every device since Volta has
_ROWS = 2  # that a group of lanes solves, for which costs are read once
_TABLE = 64  # entries of a table that a lane keeps


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


class Game:
    """The kernels for rows of ``k`` scores of one type and ``m`` options; ``rows`` are those of a block.

    Exact games of other types than float64 are sought in float32 first; rows whose gap that leaves are played again.
    """

    def __init__(self, k: int, m: int, dtype: torch.dtype, smooth: bool):
        lanes, threads = _lanes(k, m, smooth)
        groups = threads // lanes
        shared = _shared(k, m, groups, smooth)
        self.threads, self.rows = threads, groups * _ROWS
        constants = {"K": k, "M": m, "G": lanes, "THREADS": threads, "ROWS": _ROWS, "KIND": _KINDS[dtype]}
        source, name = ("newton.cu", "tempered") if smooth else ("exchanges.cu", "exact")
        singles = (0,) if smooth or dtype == torch.float64 else (1, 0)
        self.kernels = [
            Kernel(source, name, shared, **constants, SINGLE=one, LATER=one, BLOCKS=4 if smooth else 2 + one)
            for one in singles
        ]

    def __call__(
        self, n: int, tensors: tuple, integers: tuple[int], reduce: bool, smoothing: float, p: Tensor | None = None
    ) -> None:
        """Play ``n`` rows, as :class:`nashlearn.torch.triton_rows.Plan` says; ``q`` are the first of the numbers.

        Without a target both strategies alone.
        """
        scores, target, weight, costs, out, _, numbers = tensors
        kind = sum_type(scores.dtype)
        losses = None
        if target is not None:
            target, weight = target.to(torch.int64), None if weight is None else weight.to(kind)
            losses = out if reduce or out.dtype == kind else torch.empty_like(out, dtype=kind)
        given, found = (scores, target, weight, costs), (losses, numbers[scores.numel() :], numbers, p)
        for again, kernel in enumerate(self.kernels):
            how = int(reduce) + 2 * again
            kernel(-(-n // self.rows), self.threads, *given, *found, n, *integers, how, float(smoothing))
        if losses is not out:
            out.copy_(losses)

    def known(self, *launch: Any) -> None:
        """No launch of these kernels lacks only addresses."""


def _lanes(k: int, m: int, smooth: bool) -> tuple[int, int]:
    """How many lanes share a row, and threads of a block: as few lanes as have room for the table, or do not idle."""
    if not smooth:
        lanes = min(_power_of_two(-(-k * m // _TABLE)), _power_of_two(k))
        return lanes, lanes if lanes > 32 else _THREADS
    lanes, threads = max(2, _power_of_two(k) // (8 if k <= 16 else 4)), _THREADS
    while threads > 32 and _shared(k, m, threads // lanes, smooth) > _SHARED:
        threads //= 2
    while lanes < 32 and _shared(k, m, threads // lanes, smooth) > _SHARED:
        lanes *= 2
    return lanes, threads


def _shared(k: int, m: int, groups: int, smooth: bool) -> int:
    """Bytes of shared memory for a block: costs, sums, and what each group keeps, which is an odd number."""
    costs = m * k if smooth else m * k + (m * k + 1) // 2
    own = m + k + (4 * m + m * (m - 1) // 2 if smooth else 2 * m + k + (m + k + 1) // 2)
    return 8 * (costs + k + 2 * groups + groups * (own + 1 - own % 2))


game = cache(Game)


def strategies(scores: Tensor, costs: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Both strategies, ``q`` (n, labels) and ``p`` (n, options), for ``scores`` (n, labels), in the type of sums."""
    (m, k), n = costs.shape, len(scores)
    kind = sum_type(scores.dtype)
    q, p = scores.new_empty(n, k, dtype=kind), scores.new_empty(n, m, dtype=kind)
    if n:
        tensors = (scores.contiguous(), None, None, costs.contiguous(), None, None, q.view(-1))
        game(k, m, scores.dtype, smoothing > 0)(n, tensors, (0,), False, smoothing, p)
    return q, p
