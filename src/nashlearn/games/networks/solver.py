"""What solvers of one graph's games share: certificates of the game itself and of smoothed ones, which are swept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from nashlearn.game import Equilibrium
from nashlearn.games.networks import stars
from nashlearn.games.networks.outcome import warn_of_gap

__all__ = ["Solver"]

_MAX_ITER = 10_000  # sweeps of a smoothed game
_PATIENCE = 5  # rounds of sweeps between attempts to extend them,
_FURTHEST = 1e4  # by so many times a round at most
_FORBIDDEN = 1e-7  # mass on forbidden pairs that is rounding
_ROUNDING = 1e-7  # gap of a game without smoothing that its scale accounts for


def _change(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """``new - old``, and 0 where either is infinite: multipliers of what is forbidden."""
    finite = np.isfinite(new) & np.isfinite(old)
    return np.subtract(new, old, out=np.zeros_like(new), where=finite)


class Solver:
    """Solves the games of one graph. Subclasses play the game itself (``_played``) and sweep (``improve``).

    Parameters
    ----------
    edges, n_states : ndarray
        The graph.
    loss : Hamming or NodeCosts
        The loss, as compiled code reads it.
    costs : list of ndarray
        The same as a matrix for each node, options by labels.
    """

    is_exact: ClassVar[bool]
    sweeps: ClassVar[int] = 1  # between certificates

    def __init__(self, edges: np.ndarray, n_states: np.ndarray, loss: Any, costs: list[np.ndarray]):
        self.edges, self.n_states, self.loss, self.costs = edges, n_states, loss, costs

    def solve(
        self,
        f: np.ndarray,
        T: np.ndarray,
        smoothing: float,
        tol: float,
        start: tuple[np.ndarray, ...] | None = None,
        max_iter: int = _MAX_ITER,
    ) -> Equilibrium:
        """The equilibrium of one instance, ``q`` a pair; a smoothed game is swept on from the state ``start``.

        Warns where ``tol``, or what the arithmetic allows at these costs, is missed. Where ``q`` secures nothing, since
        it has not left what is forbidden, the gap is infinite and the value is what ``p`` may lose.
        """
        state = None
        if smoothing:
            state = self.start() if start is None else tuple(part.copy() for part in start)
            found = self._swept(f, T, smoothing, tol, state, max_iter)
        else:
            found = self._played(f, T)
            tol = max(tol, _ROUNDING * (1.0 + max(float(L.max()) for L in self.costs) * len(self.costs)))
        if found.gap > tol:
            warn_of_gap(float(found.gap), tol)
        q: Any = found.q
        if found.gap < np.inf:  # no more than rounding is on forbidden pairs
            q = q[0], np.where(np.isneginf(T), 0.0, q[1])
        return replace(found, q=q, p=found.p[:, : max(L.shape[0] for L in self.costs)], reply=None, state=state)

    def certified(
        self,
        upper: float,
        gap: float,
        nodes: np.ndarray,
        pairs: np.ndarray,
        p: np.ndarray,
        added: float = 0.0,
        reply: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Equilibrium:
        """Both players' strategies, of which ``p`` loses ``upper`` at most, and what smoothing has ``added``."""
        risk, gap = self.risk(nodes), max(gap, 0.0)
        value = upper - gap if gap < np.inf else upper
        number: Any = np.float64
        q: Any = nodes, pairs
        return Equilibrium(number(value), q, p, number(gap), number(risk + added), number(risk), reply)

    def _played(self, f: np.ndarray, T: np.ndarray) -> Equilibrium:
        """The game without smoothing."""
        raise NotImplementedError

    def _swept(
        self, f: np.ndarray, T: np.ndarray, smoothing: float, tol: float, state: tuple[np.ndarray, ...], max_iter: int
    ) -> Equilibrium:
        """Sweep a smoothed game to a gap of ``tol``.

        Where nodes depend on each other strongly, sweeps move them a small part of the way, again and again. So now and
        then the last two rounds are extended to where they would end as a geometric series, if that lowers the bound.
        """
        f, T = self._left(f, T)
        last, before = [part.copy() for part in state], np.inf
        for done in range(0, max_iter, self.sweeps):
            found = self._round(f, T, smoothing, state, min(self.sweeps, max_iter))
            if found.gap <= tol:
                break
            moves = [_change(part, old) for part, old in zip(state, last, strict=True)]
            length = float(np.sqrt(sum((move**2).sum() for move in moves)))
            if done // self.sweeps % _PATIENCE == _PATIENCE - 1 and length < before:
                further = length / (before - length) if before < np.inf else 0.0
                found = self._extended(f, T, smoothing, state, moves, min(further, _FURTHEST), found)
                if found.gap <= tol:
                    break
            last, before = [part.copy() for part in state], length
        return found

    def _round(
        self, f: np.ndarray, T: np.ndarray, smoothing: float, state: tuple[np.ndarray, ...], sweeps: int
    ) -> Equilibrium:
        """A round of sweeps; the gap is infinite while ``q`` has not left what is forbidden."""
        found = self.improve(f, T, smoothing, state, sweeps)
        if not self._avoids(T, found.q[1]):
            found = replace(found, value=found.value + found.gap, gap=np.float64(np.inf))  # type: ignore[arg-type]
        return found

    def _extended(
        self,
        f: np.ndarray,
        T: np.ndarray,
        smoothing: float,
        state: tuple[np.ndarray, ...],
        moves: list[np.ndarray],
        further: float,
        found: Equilibrium,
    ) -> Equilibrium:
        """Go on by ``further`` times the ``moves``, replies within their simplices, where the bound falls by that."""
        p, falling = state[0], moves[0] < 0
        if falling.any():
            further = min(further, float((p[falling] / -moves[0][falling]).min()))
        if not (further > 0 and found.gap < np.inf):
            return found
        trial = tuple(part + further * move for part, move in zip(state, moves, strict=True))
        np.maximum(trial[0], 0.0, out=trial[0])
        reached = self._round(f, T, smoothing, trial, 1)
        if not reached.value + reached.gap < found.value + found.gap:
            return found
        for part, new in zip(state, trial, strict=True):
            part[:] = new
        return reached

    def _left(self, f: np.ndarray, T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores without labels and pairs that are in no labelling, as far as sweeps need that."""
        return f, T

    def start(self) -> tuple[np.ndarray, ...]:
        """Uniform replies, from which sweeps start."""
        p = np.zeros((self.n_states.size, max(int(self.n_states.max()), *(L.shape[0] for L in self.costs))))
        for v, L in enumerate(self.costs):
            p[v, : L.shape[0]] = 1.0 / L.shape[0]
        return (p,)

    def improve(
        self, f: np.ndarray, T: np.ndarray, smoothing: float, state: tuple[np.ndarray, ...], rounds: int
    ) -> Equilibrium:
        """Sweep ``rounds`` times at ``smoothing > 0`` from ``state``, in place."""
        raise NotImplementedError

    def risk(self, nodes: np.ndarray) -> float:
        """``min_p <p, L q>``."""
        return float(stars.risk(self.loss, nodes))

    @staticmethod
    def _scored(f: np.ndarray, T: np.ndarray, nodes: np.ndarray, pairs: np.ndarray) -> float:
        """``<f, nodes> + <T, pairs>`` over what is allowed."""
        return sum(float((np.where(s > -np.inf, s, 0.0) * x).sum()) for s, x in ((f, nodes), (T, pairs)))

    @staticmethod
    def _avoids(T: np.ndarray, pairs: np.ndarray) -> bool:
        """Whether no more than rounding is on forbidden pairs."""
        return float(pairs[np.isneginf(T)].sum()) <= _FORBIDDEN

    def secured(self, f: np.ndarray, T: np.ndarray, nodes: np.ndarray, pairs: np.ndarray) -> float:
        """What marginals get whatever the reply, without smoothing; -inf where they have not left what is forbidden."""
        return self._scored(f, T, nodes, pairs) + self.risk(nodes) if self._avoids(T, pairs) else -np.inf
