"""The loss of any game, solved on the host.

Scores on another device are copied to the host once and ``q - y`` back once; instances of one size are solved
together, by as many threads as PyTorch uses where the game's solver is compiled. A loss may bring a kernel of its own
for a device; what that leaves unsolved is finished on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar, Protocol
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from nashlearn.game import Equilibrium, Game, flat, inner
from nashlearn.solvers.threads import threads
from nashlearn.torch.checks import check_settings, lengths_of, reduced, sum_type
from nashlearn.torch.host import from_host, on_host
from nashlearn.torch.operators import by_instance, operator

__all__ = ["GameLoss"]

_PARTS = 4  # of the games, for each thread


class Kernel(Protocol):
    """Games on a device, for a loss that has a faster way there than by the host."""

    def takes(self, scores: Tensor, target: Tensor) -> bool:
        """Whether it plays games of such scores and labels."""
        ...

    def play(
        self, scores: Tensor, target: Tensor, mask: Tensor | None, smoothing: float, tol: float
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Losses and gaps (b,), ``q - y`` and ``p`` shaped as scores, and which instances (b,) are solved."""
        ...


class _Table:
    """Where the game of one loss is played, or the games of its sizes, with a name that operators can be given.

    They take tensors, numbers and strings alone, and find the table by its name while the loss lives.
    """

    _names = count()
    _open: ClassVar[WeakValueDictionary[str, _Table]] = WeakValueDictionary()

    def __init__(self, game: Game | Callable[[int], Game], kernel: Kernel | None = None, compiled: bool = False):
        self.game, self.kernel, self.compiled, self.name = game, kernel, compiled, f"table {next(self._names)}"
        self.sized = not hasattr(game, "vertex")
        self.of: Callable[[int], Any] = lambda n: game
        if self.sized:
            if not callable(game):
                raise ValueError(f"game must be a game, or a callable that makes the game of n elements; got {game!r}")
            self.of = lru_cache(maxsize=256)(game)
        self._open[self.name] = self

    @classmethod
    def named(cls, name: str) -> _Table:
        return cls._open[name]

    def __reduce__(self) -> tuple[type, tuple]:  # a copy is another table
        return _Table, (self.game, self.kernel, self.compiled)

    def whole(self, scores: Tensor, mask: Tensor | None) -> Game:
        """The game of instances without padding, of whose shape the scores must be."""
        if mask is not None and not self.sized:
            raise ValueError("mask must be None for a game of one size; give GameLoss a callable that makes one of n")
        if mask is not None and (mask.dim() != 2 or len(mask) != len(scores) or mask.dtype != torch.bool):
            raise ValueError(
                f"mask must be boolean of shape ({len(scores)}, n); got {mask.dtype} of shape {tuple(mask.shape)}"
            )
        if scores.dim() < 2 or not scores.is_floating_point():
            raise ValueError(
                f"scores must be floating point with an axis of instances; got {scores.dtype} of shape "
                f"{tuple(scores.shape)}"
            )
        game = self.of(scores.shape[1] if mask is None else mask.shape[1])
        if tuple(scores.shape[1:]) != tuple(game.shape):
            wanted = ", ".join(map(str, ("b", *game.shape)))
            raise ValueError(f"scores must have shape ({wanted}), that of the game; got {tuple(scores.shape)}")
        return game

    def groups(self, scores: Tensor, mask: Tensor | None) -> Iterator[tuple[np.ndarray, int, Game, np.ndarray]]:
        """Rows, size, game and float64 scores of the instances of each size but 0."""
        self.whole(scores, mask)
        x = on_host(scores.detach()).to(torch.float64).numpy()
        sizes = np.full(len(x), x.shape[1]) if mask is None else lengths_of(on_host(mask)).numpy()
        for n in np.unique(sizes[sizes > 0]).tolist():
            rows, game = np.flatnonzero(sizes == n), self.of(n)
            yield rows, n, game, x[_part(rows, game.shape)]


def _part(rows: np.ndarray, shape: tuple[int, ...]) -> tuple:
    """Where instances of this shape lie in padded arrays: first on every axis."""
    return rows, *(slice(m) for m in shape)


def _solve(
    game: Game, scores: np.ndarray, smoothing: float, tol: float, threads: int
) -> tuple[Equilibrium, np.ndarray]:
    """The equilibrium, and which instances count: those without NaN or +inf."""
    kept = np.all(flat(scores) < np.inf, axis=1)
    return game.solve(scores[kept], smoothing=smoothing, tol=tol, n_jobs=threads), kept


def _solve_each(table: _Table, groups: list, smoothing: float, tol: float) -> list[tuple[Equilibrium, np.ndarray]]:
    """The equilibria of each group: one after another, or in parts that threads share where games are compiled."""
    jobs = torch.get_num_threads()
    if table.compiled and jobs > 1:
        with suppress(ValueError):  # which counts games from the first of a part: the whole group is asked again
            return _solve_parts(groups, smoothing, tol, jobs)
    return [_solve(game, x, smoothing, tol, jobs) for _, _, game, x in groups]


def _solve_parts(groups: list, smoothing: float, tol: float, jobs: int) -> list[tuple[Equilibrium, np.ndarray]]:
    few = max(1, sum(len(rows) for rows, *_ in groups) // (_PARTS * jobs))
    # Large games first, so that nobody waits for one at the end.
    order = sorted(range(len(groups)), key=lambda at: -groups[at][1])
    parts = [(at, first) for at in order for first in range(0, len(groups[at][0]), few)]
    solved = threads(jobs)(
        lambda at, first: _solve(groups[at][2], groups[at][3][first : first + few], smoothing, tol, 1), parts
    )
    own: list[list] = [[] for _ in groups]
    for (at, _), one in zip(parts, solved, strict=True):
        own[at].append(one)
    return [(_joined([found for found, _ in each]), np.concatenate([kept for _, kept in each])) for each in own]


def _joined(parts: list[Equilibrium]) -> Equilibrium:
    columns = ([getattr(part, name) for part in parts] for name in ("value", "q", "p", "gap", "entropy", "risk"))
    return Equilibrium(*map(np.concatenate, columns))


def _vertices(game: Game, labels: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The vertices that labels name, or an error that names the first label that is none."""
    try:
        return _shaped(game, labels)
    except (ValueError, IndexError):
        for i, label in zip(rows, labels, strict=True):
            try:
                _shaped(game, label[None])
            except (ValueError, IndexError) as error:
                raise ValueError(f"target[{i}] is no label of its game: {error}") from None
        raise


def _shaped(game: Game, labels: np.ndarray) -> np.ndarray:
    vertices = np.asarray(game.vertex(labels))
    if vertices.size != len(labels) * math.prod(game.shape):
        raise ValueError(f"its vertex must have shape {tuple(game.shape)}; got {vertices.shape[1:]}")
    return vertices.reshape(len(labels), *game.shape)


def _play(scores: Tensor, target: Tensor, mask: Tensor | None, table: str, smoothing: float, tol: float) -> Tensor:
    """The loss and ``q - y``, zero in the padding, as (b, 1 + scores of an instance): one array, one copy."""
    own = _Table.named(table)
    own.whole(scores, mask)
    if own.kernel is None or not own.kernel.takes(scores, target):
        return _play_on_host(scores, target, mask, own, smoothing, tol)
    loss, _, change, _, solved = own.kernel.play(scores, target, mask, smoothing, tol)
    played = torch.cat([loss[:, None], change.flatten(1)], 1)
    if not solved.all():
        rows = (~solved).nonzero()[:, 0]
        rest = None if mask is None else mask[rows]
        played[rows] = _play_on_host(scores[rows], target[rows], rest, own, smoothing, tol, rows.cpu().numpy())
    return played


def _play_on_host(
    scores: Tensor, target: Tensor, mask: Tensor | None, table: _Table, smoothing: float, tol: float,
    numbers: np.ndarray | None = None,
) -> Tensor:  # fmt: skip
    """The same by the host; ``numbers`` are those of the instances in errors."""
    labels = on_host(target).numpy()
    if len(labels) != len(scores):
        raise ValueError(f"target must have a label for each of the {len(scores)} instances; got {len(labels)}")
    played = np.zeros((len(scores), 1 + scores[:1].numel()))
    change = played[:, 1:].reshape(scores.shape)
    groups, truth = list(table.groups(scores, mask)), []
    for rows, n, game, _ in groups:
        named = rows if numbers is None else numbers[rows]
        truth.append(_vertices(game, labels[rows] if mask is None else labels[rows, :n], named))
    solved = _solve_each(table, groups, smoothing, tol)
    for (rows, _, game, x), y, (found, kept) in zip(groups, truth, solved, strict=True):
        own = np.full(x.shape, np.nan)
        own[kept] = found.q - y[kept]
        change[_part(rows, game.shape)] = own
        played[rows, 0] = np.nan
        played[rows[kept], 0] = found.entropy + inner(flat(x[kept]), flat(own[kept]))
    return from_host(torch.from_numpy(played).to(sum_type(scores.dtype)), scores.device)


def _fake(scores: Tensor, target: Tensor, mask: Tensor | None, table: str, smoothing: float, tol: float) -> Tensor:
    return scores.new_empty((scores.shape[0], 1 + scores[0].numel()), dtype=sum_type(scores.dtype))


_game = operator(
    "game(Tensor scores, Tensor target, Tensor? mask, str table, float smoothing, float tol) -> Tensor", _play, _fake
)


@by_instance
def _losses(scores: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    played = _game(scores, *others)
    return played[:, 0].clone(), played[:, 1:].reshape(scores.shape)


class GameLoss(torch.nn.Module):
    """The adversarial surrogate of the loss of any game: ``F(scores) - <scores, y>``, with gradient ``q - y``.

    .. math:: \\ell(\\theta, y) = \\max_{q \\in M} \\langle\\theta, q\\rangle
        + \\min_{p \\in P} \\langle p, L q\\rangle - \\langle\\theta, y\\rangle

    Whatever keeps the contract of :class:`nashlearn.Game` will do: the games of :mod:`nashlearn.games`, or one of your
    own two polytopes. :class:`nashlearn.torch.NashLoss` and :class:`nashlearn.torch.MarkovLoss` are faster for single
    labels and for chains.

    Parameters
    ----------
    game : Game, or callable that makes the game of ``n`` elements
        The second for instances of different sizes, which are padded at the end and come with a mask.
    smoothing : float
        The game's smoothing; 0 is the game itself. With smoothing the loss is differentiable.
    tol : float
        Gap of an instance to aim at.
    reduction : {"mean", "sum", "none"}
        The mean is over instances; ``"none"`` gives one loss for each.
    kernel : Kernel, optional
        Plays the games on a device, as :class:`nashlearn.torch.MatchingLoss` does on CUDA.

    Notes
    -----
    Scores are (b, \\*game.shape); a sequence of tensors (b, ...) is flattened and packed in its order, as Markov games
    take the scores of nodes and edges. -inf rules a part out; an instance with NaN or +inf has a loss of NaN. Solved on
    the host in float64, on as many threads as PyTorch uses: a device waits for two copies and for that.

    Examples
    --------
    >>> import torch
    >>> import nashlearn.torch as nt
    >>> from nashlearn import games
    >>> loss = nt.GameLoss(games.spanning_tree([(0, 1), (1, 2), (0, 2)]))
    >>> scores = torch.tensor([[1.0, 0.5, 0.0]], requires_grad=True)
    >>> value = loss(scores, torch.tensor([[True, True, False]]))
    >>> value.backward()
    >>> scores.grad.sum().abs().item() < 1e-6  # both trees have two edges
    True
    """

    _compiled = False  # whether games may be solved by several threads at once

    def __init__(
        self,
        game: Game | Callable[[int], Game],
        *,
        smoothing: float = 0.0,
        tol: float = 1e-7,
        reduction: str = "mean",
        kernel: Kernel | None = None,
    ):
        super().__init__()
        check_settings(reduction, smoothing, tol)
        self.smoothing, self.tol, self.reduction = float(smoothing), float(tol), reduction
        self._table = _Table(game, kernel, self._compiled)

    def forward(self, scores: Any, target: Any, mask: Tensor | None = None) -> Tensor:
        """The loss for labels ``target`` (b, ...), as the game's ``vertex`` takes them: a tensor, an array or a list.

        ``mask`` (b, n) is True for what is not padding; an instance of ``m`` elements is first in its padded scores on
        every axis, and first in its label, of which the rest is ignored.
        """
        scores, labels = _packed(scores), torch.as_tensor(target)
        settings = (self._table.name, self.smoothing, self.tol)
        values = _losses(scores, labels, mask, *settings)
        return reduced(values, self.reduction, self._count(scores, mask), scores)

    def _count(self, scores: Tensor, mask: Tensor | None) -> int | Tensor:
        """What the mean is over."""
        return scores.shape[0]

    @torch.no_grad()
    def predict_proba(self, scores: Any, mask: Tensor | None = None) -> Tensor:
        """The predictor's strategy ``p`` (b, \\*option_shape), zero in the padding."""
        scores = _packed(scores)
        return self._solve_on_host(scores, mask)[2].to(scores.dtype)

    def _solve_on_host(self, scores: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Values (b,), ``q``, ``p`` and gaps (b,) in float64, zero in the padding, on the device of the scores."""
        b, options = len(scores), self._table.whole(scores, mask).option_shape
        sizes = 1, 1, math.prod(scores.shape[1:]), math.prod(options)
        all_of_it = np.zeros((b, sum(sizes)))  # one array, one copy
        value, gap, q, p = np.split(all_of_it, np.cumsum(sizes)[:-1], axis=1)
        value, gap, q, p = value[:, 0], gap[:, 0], q.reshape(scores.shape), p.reshape(b, *options)
        groups = list(self._table.groups(scores, mask))
        solved = _solve_each(self._table, groups, self.smoothing, self.tol)
        for (rows, _, game, _), (found, kept) in zip(groups, solved, strict=True):
            for whole, place, part in (
                (value, (rows,), found.value), (gap, (rows,), found.gap),
                (q, _part(rows, game.shape), found.q), (p, _part(rows, game.option_shape), found.p),
            ):  # fmt: skip
                own = np.full((len(rows), *part.shape[1:]), np.nan)
                own[kept] = part
                whole[place] = own
        there = from_host(torch.from_numpy(all_of_it), scores.device).split(sizes, 1)
        return there[0][:, 0], there[2].reshape(scores.shape), there[3].reshape(b, *options), there[1][:, 0]

    @torch.no_grad()
    def predict(self, scores: Any, mask: Tensor | None = None) -> Tensor:
        """The labels of the best vertices, as the game's ``argmax`` returns them; -1 in the padding."""
        scores = _packed(scores)
        found = [(rows, np.asarray(game.argmax(x))) for rows, _, game, x in self._table.groups(scores, mask)]
        if mask is None:
            labels = found[0][1] if found else np.empty(0, np.int64)
        else:
            kind = found[0][1] if found else np.empty((0, 0), np.int64)
            labels = np.full((*mask.shape, *kind.shape[2:]), -1, kind.dtype)
            for rows, best in found:
                labels[rows, : best.shape[1]] = best
        return torch.as_tensor(labels).to(scores.device)

    def extra_repr(self) -> str:
        """Shown in the module's representation."""
        return f"smoothing={self.smoothing:g}, reduction={self.reduction!r}"


def _packed(scores: Any) -> Tensor:
    """Scores as one tensor; those of several kinds of parts one after the other."""
    return scores if isinstance(scores, Tensor) else torch.cat([part.flatten(1) for part in scores], 1)
