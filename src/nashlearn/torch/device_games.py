"""Games of structures on CUDA: one block of threads plays one game, in float64, by the kernels of the folder ``cuda``.

Both players choose points of one polytope: matrices whose rows sum to 1, cut by further constraints. The game and the
method are those of :mod:`nashlearn.kernels.interior`, with Mehrotra's predictor and corrector [mehrotra1992]_: entries
are eliminated by 2 x 2 blocks, then rows, then the constraints, which are the columns of matchings, and for dependency
trees the cuts [edmonds1967]_ that have been violated on the way. It takes ten to thirty iterations of O(n³).

The certificate is computed from the strategies that are returned, which lie in the polytope up to rounding. Any
potentials ``lam`` of constraints ``a x >= b`` bound the best reply to rewards ``c``,

    max_y <c, y> <= sum_i max_j (c + a' lam)_ij - <b, lam>,

so that those of the method bound both players' best replies, and with them the gap, from above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from nashlearn.torch import nvrtc, ops
from nashlearn.torch.checks import lengths_there, sum_type

__all__ = ["DeviceGames", "matchings", "trees"]

_CUTS = 40  # that there is room for: MOST_CUTS in trees.cu
_RESERVED = 1024  # bytes of shared memory that each block costs beside its own


class Launch(NamedTuple):
    """Games of up to ``n`` elements: threads of a block, and how many blocks a multiprocessor has registers for."""

    n: int
    threads: int
    blocks: int


class Needs(NamedTuple):
    """Of games of one size: the most constraints, and bytes of shared memory that no other structure needs."""

    constraints: int
    shared: int


@dataclass(frozen=True)
class DeviceGames:
    """The games of one structure on CUDA devices, as :class:`nashlearn.torch.GameLoss` asks its kernel to play them.

    Parameters
    ----------
    stem : str
        Of the file ``<stem>.cu`` with the kernel ``play_<stem>``.
    extra : int
        How many more columns than rows scores have.
    needs : callable
        Gives the :class:`Needs` of ``n`` elements by so many warps.
    launches : tuple of Launch
        From small games to large ones.
    constants : tuple of pairs (str, int)
        What the file is compiled for beside.
    """

    stem: str
    extra: int
    needs: Callable[[int, int], Needs]
    launches: tuple[Launch, ...]
    constants: tuple[tuple[str, int], ...] = ()

    def launch(self, n: int) -> Launch:
        """How games of ``n`` elements are launched."""
        return next(one for one in self.launches if n <= one.n)

    def shared(self, n: int) -> tuple[int, int]:
        """Bytes of shared memory of a game, without and with the players' strategies and multipliers (game.cuh)."""
        warps = self.launch(n).threads // 32
        most, own = self.needs(n, warps)
        rows, constraints = (2 * n * 16, n * 24), (5 * most * 16, most * (most + 1) // 2 * 32, most * 24)
        lean = own + _pieces(n * max(4 * n, 3 * most) * 8, *rows, *constraints, warps * most * 16, 2 * warps * 8)
        return lean, lean + 4 * n * n * 8

    def _plan(self, device: torch.device, n: int) -> tuple[int, int]:
        """Bytes of shared memory of a block, 0 where there are not enough; and how many blocks, 0 for one a game.

        Strategies and multipliers lie in main memory where a multiprocessor takes twice as many blocks then; of those
        there are no more than run at once.
        """
        found, most = nvrtc.memory(device), self.launch(n).blocks
        lean, full = self.shared(n)
        at_once = [min(found.multiprocessor // (size + _RESERVED), most) for size in (lean, full)]
        if full <= found.block and 2 * at_once[1] > at_once[0]:
            return full, 0
        return (lean, at_once[0] * found.multiprocessors) if lean <= found.block else (0, 0)

    def takes(self, scores: Tensor, target: Tensor) -> bool:
        """Whether scores are there, and not too large; a target that does not fit them is the host's to refuse."""
        counted = not (target.is_floating_point() or target.is_complex() or target.dtype == torch.bool)
        there = nvrtc.available(scores.device.type) and target.device == scores.device
        fit = (
            counted
            and target.shape == scores.shape[:2]
            and scores.numel() > 0
            and scores.shape[1] <= self.launches[-1].n
        )
        return there and fit and self._plan(scores.device, scores.shape[1])[0] > 0

    def play(
        self, scores: Tensor, target: Tensor, mask: Tensor | None, smoothing: float, tol: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Losses and gaps (b,), ``q - y`` and ``p`` shaped as scores, and which instances (b,) are solved."""
        (b, n), kind = scores.shape[:2], sum_type(scores.dtype)
        loss, gap = scores.new_empty(b, dtype=kind), scores.new_empty(b, dtype=torch.float64)
        change, p = scores.new_zeros(2, b, n, n + self.extra, dtype=kind).unbind()
        room = loss, gap, change, p, torch.empty(b, dtype=torch.bool, device=scores.device)
        inputs = scores.to(kind).contiguous(), target.to(torch.int64).contiguous(), lengths_there(scores, mask)
        shared, blocks = self._plan(scores.device, n)
        blocks, state = min(blocks, b), None
        if blocks:
            state = scores.new_empty(blocks, 4 * n * n, dtype=torch.float64)
        with ops.current(scores.device):
            kernel, threads = _kernel(self, self.launch(n), kind == torch.float32), self.launch(n).threads
            kernel(blocks or b, threads, *inputs, *room, state, b, n, smoothing, tol, shared=shared)
        return room


@cache
def _kernel(games: DeviceGames, launch: Launch, single: bool) -> nvrtc.Kernel:
    """The kernel of games that are launched so, for scores of single precision or not; a lane has WIDE entries."""
    constants = {"SINGLE": int(single), "WIDE": -(-launch.n // 32), "THREADS": launch.threads, "BLOCKS": launch.blocks}
    constants.update(games.constants)
    return nvrtc.Kernel(f"{games.stem}.cu", f"play_{games.stem}", games.shared(launch.n)[1], **constants)


def _pieces(*sizes: int) -> int:
    """Bytes that pieces of these sizes take of a shelf (game.cuh)."""
    return sum((size + 15) // 16 * 16 for size in sizes)


def _matchings(n: int, warps: int) -> Needs:
    return Needs(n, _pieces(n * 8, n * 8))


def _trees(n: int, warps: int) -> Needs:
    most, word = min(_CUTS, n + 12), 4 if n <= 32 else 8
    return Needs(most, _pieces(most * word, n * 8, n * word, warps * n * 16, 2 * 8 * word * word + 48, n * 8))


matchings = DeviceGames("matchings", 0, _matchings, (Launch(24, 128, 5), Launch(32, 256, 2), Launch(64, 512, 1)))
"""Complete matchings."""


def trees(single_root: bool) -> DeviceGames:
    """Dependency trees."""
    launches = Launch(16, 128, 4), Launch(32, 256, 2), Launch(64, 512, 1)
    return DeviceGames("trees", 1, _trees, launches, (("SINGLE_ROOT", int(single_root)),))
