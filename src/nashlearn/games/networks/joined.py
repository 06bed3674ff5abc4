"""Networks with cycles that are played exactly, all of them together.

Elimination leaves a clique for each node (:mod:`nashlearn.games.networks.cliques`). One that lies within another's is
merged with it, so that every clique is as large as the graph allows and owns one node or more: a graph of which every
two nodes are joined is one clique, and its tables have half as many entries.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import nashlearn.kernels.junction_sweeps as kernels
from nashlearn.games.networks.cliques import relatives
from nashlearn.kernels.junctions import Junctions
from nashlearn.solvers.threads import Run

__all__ = ["Joined", "Merged", "merged"]

_BLOCK = 1 << 18  # entries of tables that one thread plays at a time


class Merged(NamedTuple):
    """A clique: its nodes, first those that it owns, and the number of its parent in preorder, -1 for none."""

    scope: tuple[int, ...]
    own: int
    parent: int


def merged(order: Sequence[tuple[int, tuple[int, ...]]]) -> list[Merged]:
    """The cliques of an elimination in preorder, from nodes in its order with their separators."""
    position = {v: i for i, (v, _) in enumerate(order)}
    separator = dict(order)
    above = {v: min(rest, key=position.__getitem__) if rest else -1 for v, rest in order}
    group: dict[int, list[int]] = {}  # nodes that a clique owns, by each of them
    for v, rest in order:
        own = group.setdefault(v, [v])
        u = above[v]
        if u >= 0 and u not in group and len(rest) == 1 + len(separator[u]):
            own.append(u)
            group[u] = own
    children: dict[int, list[int]] = {}
    for v, _ in reversed(order):
        own = group[v]
        if own[-1] == v:  # the last of them to go has what is left for its separator
            u = above[v]
            children.setdefault(group[u][0] if u >= 0 else -1, []).append(own[0])
    found: list[Merged] = []
    stack = [(first, -1) for first in children.get(-1, [])]
    while stack:
        first, parent = stack.pop()
        own = group[first]
        stack.extend((child, len(found)) for child in children.get(first, []))
        found.append(Merged((*own, *separator[own[-1]]), len(own), parent))
    return found


def _columns(scope: tuple[int, ...], above: tuple[int, ...], k: int) -> np.ndarray:
    """For each entry of a table over the nodes ``above`` the column, by the states of the nodes of ``scope``."""
    found = np.zeros([k] * len(above), dtype=np.int32)
    for v in scope:
        shape = [1] * len(above)
        shape[above.index(v)] = k
        found = found * k + np.arange(k, dtype=np.int32).reshape(shape)
    return found.ravel()


def _junctions(graphs: Sequence[tuple[list[Merged], np.ndarray]], k: int) -> Junctions:
    """Cliques and edges of each graph as compiled code takes them."""
    starts, pair_starts, ends = [0], [0], [0]
    scope: list[int] = []
    pairs: list[tuple[int, int, int, bool]] = []
    parents: list[int] = []
    places: list[int] = []
    maps: list[np.ndarray] = []
    kept: dict[tuple[tuple[int, ...], int], int] = {}  # maps that cliques may share
    used = 0
    for cliques, edges in graphs:
        first, home = len(parents), _homes(cliques, edges)
        for c, (nodes, own, up) in enumerate(cliques):
            for e in home[c]:
                u, v = (nodes.index(end) for end in edges[e].tolist())
                pairs.append((min(u, v), max(u, v), e, u > v))
            place = 0
            if up >= 0:
                above = cliques[up].scope
                key = tuple(above.index(v) for v in nodes[own:]), len(above)
                if key not in kept:
                    kept[key] = used
                    maps.append(_columns(nodes[own:], above, k))
                    used += maps[-1].size
                place = kept[key]
            scope.extend(nodes)
            starts.append(len(scope))
            pair_starts.append(len(pairs))
            parents.append(up + first if up >= 0 else -1)
            places.append(place)
        ends.append(len(parents))
    parent = np.array(parents, dtype=np.intp)
    return Junctions(
        k,
        np.array(ends, dtype=np.intp),
        np.array(starts, dtype=np.intp),
        np.array(scope, dtype=np.intp),
        np.array([clique.own for cliques, _ in graphs for clique in cliques], dtype=np.intp),
        parent,
        *relatives(parent),
        np.array(pair_starts, dtype=np.intp),
        np.array(pairs, dtype=np.intp).reshape(-1, 4),
        np.array(places, dtype=np.intp),
        np.concatenate(maps) if maps else np.zeros(0, dtype=np.int32),
    )


def _homes(cliques: list[Merged], edges: np.ndarray) -> list[list[int]]:
    """The edges of each clique: one is at home where the first of its ends to be eliminated is owned."""
    owner = {v: c for c, clique in enumerate(cliques) for v in clique.scope[: clique.own]}
    found: list[list[int]] = [[] for _ in cliques]
    for e, (u, v) in enumerate(edges.tolist()):
        found[max(owner[u], owner[v])].append(e)  # of two cliques on a path from the root, the lower one
    return found


class Joined:
    """Exact networks with cycles, whose rows and edges lie among those of all networks.

    Parameters
    ----------
    k : int
        Number of states.
    graphs : sequence of (list of Merged, ndarray (m, 2))
        Cliques and edges of graphs that differ.
    graph : sequence of int
        Which of these each network has.
    row, edge : ndarray of int
        The first row and the first edge of each network.
    """

    def __init__(
        self,
        k: int,
        graphs: Sequence[tuple[list[Merged], np.ndarray]],
        graph: Sequence[int],
        row: np.ndarray,
        edge: np.ndarray,
    ):
        self.n = len(graph)
        self._trees = _junctions(graphs, k)
        self._networks = tuple(np.array(part, dtype=np.intp) for part in (graph, row, edge))
        each = np.array([sum(k ** len(clique.scope) for clique in cliques) for cliques, _ in graphs], dtype=np.int64)
        self.n_entries = int(each[self._networks[0]].sum())
        before = np.cumsum(each[self._networks[0]]) - each[self._networks[0]]
        starts = np.flatnonzero(np.diff(before // _BLOCK, prepend=-1))
        self.blocks = list(itertools.pairwise([*starts.tolist(), self.n]))

    def sweep(
        self,
        loss: object,
        S: np.ndarray,
        T: np.ndarray,
        eps: float,
        rounds: int,
        p: np.ndarray,
        q: np.ndarray,
        edges: np.ndarray,
        weight: np.ndarray,
        run: Run,
    ) -> np.ndarray:
        """Renew the replies ``p``, write marginals ``q`` and those of ``edges``; value, cost, risk, score (n, 4)."""
        sums = np.empty((self.n, 4))
        shared = len(T) == 1
        own = np.zeros((len(self.blocks), *T.shape)) if shared else None

        def block(i: int) -> None:
            out = edges if own is None else own[i]
            kernels.play(loss, self._trees, self._networks, S, T, eps, rounds, p, q, out, weight, *self.blocks[i], sums)

        run(block, [(i,) for i in range(len(self.blocks))])
        if own is not None:
            edges += own.sum(axis=0)
        return sums

    def ceilings(self, loss: object, S: np.ndarray, T: np.ndarray, p: np.ndarray, run: Run) -> np.ndarray:
        """What the best labelling of each network gets against ``p``, without smoothing."""
        found = np.empty(self.n)
        run(
            lambda first, last: kernels.ceilings(loss, self._trees, self._networks, S, T, p, first, last, found),
            self.blocks,
        )
        return found

    def argmax(self, S: np.ndarray, T: np.ndarray, labels: np.ndarray, run: Run) -> None:
        """Write the best labelling of each network into ``labels``, in the order of rows."""
        run(lambda first, last: kernels.decode(self._trees, self._networks, S, T, first, last, labels), self.blocks)
